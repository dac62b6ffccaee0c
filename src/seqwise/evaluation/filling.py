"""What belongs where a text leaves words out: the most probable tokens at each [MASK]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..data.batch import Tokens, rows_of
from ..data.schema import TokenSpec
from ..errors import ConfigError, DataError
from ..models.contract import Fields, device_of, evaluating
from ..models.headed import HeadedModel

MASK = "[MASK]"
READ_AT_ONCE = 32  # rows


@dataclass(frozen=True)
class Filling:
    """Of one place that was left out."""

    words: list[tuple[str, float]]
    """The most probable tokens with their probabilities, best first."""


@torch.inference_mode()
def hidden_one_by_one(
    model: HeadedModel, spec: TokenSpec, row: Tensor, places: Tensor, beside: Fields | None = None
) -> Tensor:
    """log p of every token at each of these places (P,) of a row (T,), hidden alone: (P, V). `beside`: what is read
    with it, such as a picture, as fields of one row."""
    found = []
    for some in places.split(READ_AT_ONCE):
        ids, each = row.repeat(len(some), 1), torch.arange(len(some), device=row.device)
        ids[each, some] = spec.special["mask"]
        others = {name: rows_of(field, len(some)) for name, field in (beside or {}).items()}
        hidden = model.body.encode({**others, "tokens": Tokens(ids)}, None).stream.hidden[each, some]  # (p, D)
        found.append(_told(model, spec, hidden))
    return torch.cat(found)


def _told(model: HeadedModel, spec: TokenSpec, hidden: Tensor) -> Tensor:
    """log p of every token, (places, D) -> (places, V); those that no text has are out of the question."""
    log_probs = model.main_head.logits(hidden).log_softmax(dim=-1)  # type: ignore[attr-defined]
    log_probs[:, list(spec.special.values())] = -torch.inf
    return log_probs


@torch.inference_mode()
def fill(model: HeadedModel, spec: TokenSpec, text: str, *, num: int = 5) -> list[Filling]:
    """Of each [MASK] in a text, all of them left out at once."""
    parts = text.split(MASK)
    if len(parts) == 1:
        raise DataError(f"{text!r} leaves nothing out: write {MASK} where a word should be filled in.")
    mask = np.array([spec.special["mask"]])
    ids = [np.array([spec.begin])]
    for number, part in enumerate(parts):
        ids += [*([mask] if number else []), spec.tokenizer.encode(part)]
    row = np.concatenate([*ids, np.array([spec.separator])])
    if model.context is not None and len(row) > model.context:
        raise ConfigError(f"the text has {len(row)} tokens, and the model reads {model.context}; give a shorter one.")
    tokens = torch.from_numpy(row.astype(np.int64)).unsqueeze(0).to(device_of(model))
    with evaluating(model):
        hidden = model.body.encode({"tokens": Tokens(tokens)}, None).stream.hidden[tokens == spec.special["mask"]]
        log_probs = _told(model, spec, hidden)
    best = log_probs.topk(min(num, log_probs.shape[1]), dim=-1)
    return [
        Filling([(spec.tokenizer.piece(int(token)), float(value)) for token, value in zip(each, values, strict=True)])
        for each, values in zip(best.indices, best.values.exp(), strict=True)
    ]
