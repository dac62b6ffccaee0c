"""How well rows are written again by a model that has just read them.

    nats per token = -sum over rows and t of log p(w_t | the whole row, w_1 … w_{t-1} again) / tokens written

The row is known, so this is no likelihood of the text, and says nothing beside one: a model that copied perfectly would
be at zero, and one that forgot what it read at what a language model needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from .. import __version__
from ..data.row_store import RowStore
from ..models.contract import Scores, device_of, evaluating
from ..wording import counted
from .segments import RESAMPLES, Metric, Segments, interval_in_words

SCORED_PLACES = 4096  # of the rows of a batch


@dataclass(frozen=True)
class ReconstructionScore:
    metric = Metric("nats per token of rows that are written again", "nats/token again", digits=4)

    nats: np.ndarray
    """(N,): -log p of each row, written again."""
    tokens: np.ndarray
    """(N,): of each row, its end among them."""
    scored: str = ""
    """Of the data, for the signature."""

    @property
    def nats_per_token(self) -> float:
        return float(self.nats.sum() / self.tokens.sum())

    @cached_property
    def segments(self) -> Segments:
        """Row by row."""
        return Segments.of(self.nats, self.tokens)

    @property
    def signature(self) -> str:
        parts = ["reconstruction", self.scored, f"bootstrap={RESAMPLES}x{len(self.nats)}", f"seqwise={__version__}"]
        return "|".join(part for part in parts if part)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def _in_words(self) -> str:
        return f"{self.nats_per_token:.4f} ({interval_in_words(self.segments.interval, 4)})"

    def _size(self) -> str:
        return f"{counted(len(self.nats), 'row')}, {counted(int(self.tokens.sum()), 'token')}"

    def headline(self) -> str:
        return (
            f"rows written again at {self._in_words()} nats per token, of {self._size()}; "
            "each was read before, so this is no likelihood of the text"
        )

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "nats per token, written again", self._in_words()
        yield "of", self._size()
        yield "what it is not", "a likelihood of the text: each row was read before it was written"
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        return {
            "reconstruction_nats_per_token": self.nats_per_token,
            "interval": list(self.segments.interval),
            "is_enough": self.segments.is_enough,
            "rows": len(self.nats),
            "tokens": int(self.tokens.sum()),
            "signature": self.signature,
        }


@torch.inference_mode()
def evaluate_reconstruction(model: Scores, store: RowStore, *, scored: str = "") -> ReconstructionScore:
    """Every row of a store."""
    device, nats = device_of(model), np.zeros(len(store.rows))
    with evaluating(model):
        for chosen in store.in_order_of_length(SCORED_PLACES):
            batch = store.batch(chosen).to(device)
            log_probs, _ = model.score(batch)
            is_scored = batch.targets["tokens"].is_scored
            nats[chosen] = -log_probs.double().masked_fill(~is_scored, 0.0).sum(dim=1).cpu().numpy()
    return ReconstructionScore(nats, store.rows.lengths - 1, scored)
