"""A text as a model reads it that answers with a vector: nothing is guessed, and nothing has a cost."""

from __future__ import annotations

import math

import torch

from ..data.batch import Batch, Tokens
from ..data.schema import TokenSpec
from ..models.contract import evaluating
from ..models.headed import HeadedModel
from .reading import Reading, framed_row
from .trace import record


@torch.inference_mode()
def read_vector(model: HeadedModel, spec: TokenSpec, text: str, *, max_tokens: int) -> Reading:
    row, pieces, notes = framed_row(model, spec, text, max_tokens=max_tokens)
    batch = Batch({"tokens": Tokens(row.unsqueeze(0))}, {})
    with evaluating(model), record(model) as trace:
        model.predict(batch)
    return Reading(pieces, row.tolist(), [math.nan] * len(pieces), [[] for _ in pieces], batch, trace, notes=notes)
