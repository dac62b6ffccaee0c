"""What every unit of a network is at each token of held-out data, for the finder of units (units.py).

Shapes: R rows, T tokens, U units.
"""

from __future__ import annotations

import numpy as np
import torch

from ..data.batch import Batch, Tokens
from ..data.text_examples import TextStore
from ..models.contract import Model, device_of, evaluating
from ..text import Tokenizer
from .attribution import steps_read
from .reading import pieces_of
from .trace import Trace, record

HELD = ("state", "memory", "hidden", "stream", "belief")
"""What is looked at: gates follow the same features less clearly."""
WINDOW = 256  # tokens of a segment

Units = dict[tuple[str, str], np.ndarray]
"""Site and what -> (T, U)."""


def units_over_text(model: Model, tokenizer: Tokenizer, ids: np.ndarray) -> tuple[Units, list[str]]:
    """Running text, read in segments; and its pieces."""
    window = min(model.context or WINDOW, WINDOW, len(ids))
    num_rows = len(ids) // window
    rows = torch.from_numpy(ids[: num_rows * window].reshape(num_rows, window))
    trace = _recorded(model, Batch({"tokens": Tokens(rows)}, {"tokens": Tokens(rows)}))
    units = {
        (site, what): values.flatten(0, 1).double().cpu().numpy() for what in HELD for site, values in trace.all(what)
    }
    return units, pieces_of(tokenizer, rows.flatten().tolist())


def units_over_rows(model: Model, tokenizer: Tokenizer, store: TextStore, limit: int) -> tuple[Units, list[str]]:
    """Rows that are answered, each by itself, up to so many tokens; and the pieces of what is read of them."""
    found: dict[tuple[str, str], list[np.ndarray]] = {}
    read: list[int] = []
    for row in range(int(np.searchsorted(store.tokens.edges, limit))):
        if row >= len(store) or len(read) + store.lengths[row] > limit:
            break
        batch = store.batch(np.array([row]))
        if model.context is not None and batch.inputs["tokens"].shape[1] > model.context:
            continue
        trace = _recorded(model, batch)
        steps = steps_read(model, batch.inputs["tokens"])  # (R, T)
        for what in HELD:
            for site, values in trace.all(what):
                noted = values.double().cpu().numpy()  # (R, T, U)
                noted = noted[:, ::-1] if site.endswith("cells.1") else noted  # read from behind
                found.setdefault((site, what), []).append(noted[steps >= 0])
        read += batch.inputs["tokens"].ids[0].numpy()[steps[steps >= 0]].tolist()
    return {place: np.concatenate(parts) for place, parts in found.items()}, pieces_of(tokenizer, read)


def _recorded(model: Model, batch: Batch) -> Trace:
    with torch.inference_mode(), evaluating(model), record(model) as trace:
        model.score(batch.to(device_of(model)))
    return trace
