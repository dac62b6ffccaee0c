"""A text as a model of hidden words reads it: what each word costs, hidden alone, and what is guessed in its place."""

from __future__ import annotations

import math

import torch

from ..data.batch import Batch, Tokens
from ..data.schema import TokenSpec
from ..evaluation.filling import hidden_one_by_one
from ..models.contract import Fields, evaluating
from ..models.headed import HeadedModel
from .reading import BIT, Reading, framed_row, most_probable
from .trace import record


@torch.inference_mode()
def read_masked(
    model: HeadedModel, spec: TokenSpec, text: str, *, max_tokens: int, beside: Fields | None = None
) -> Reading:
    """What goes on inside is that of the text with nothing hidden. `beside`: what is read too, such as a picture."""
    row, pieces, notes = framed_row(model, spec, text, max_tokens=max_tokens)
    tokens = Tokens(row.unsqueeze(0))
    inputs = {**(beside or {}), "tokens": tokens}
    with evaluating(model):
        with record(model) as trace:
            model.predict(Batch(inputs, {}))
        log_probs = hidden_one_by_one(model, spec, row, torch.arange(1, len(row) - 1, device=row.device), beside)
    costs = -log_probs.gather(1, row[1:-1].unsqueeze(1)).squeeze(1).double().cpu() / BIT
    expected = [most_probable(each, spec.tokenizer, ends=False) for each in log_probs]
    bits = [math.nan, *costs.tolist(), math.nan]
    return Reading(
        pieces,
        row.tolist(),
        bits,
        [*expected, []],
        Batch(inputs, {"tokens": tokens}),
        trace,
        notes=notes,
        unit="bits a token, hidden alone",
    )
