"""A question with its choices: the row of the one that a model takes, as it reads it, and how probable each is."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from ..data.annotated import LabelledRow
from ..data.batch import Batch, rows_of
from ..data.choices import build_choice_store
from ..data.schema import Schema, TokenSpec
from ..errors import DataError
from ..models.contract import Fields, device_of, evaluating
from ..models.headed import HeadedModel
from .read_answers import kept_places, pieces_of_texts
from .reading import BIT, Expected, Reading
from .trace import record


def chosen_row(text: str) -> LabelledRow:
    """A question and its choices, as they are given."""
    texts = tuple(part.strip() for part in text.rstrip("\n").split("\t"))
    if len(texts) < 3 or not all(texts):
        raise DataError('give what is asked and at least two choices: --text "question TAB choice TAB choice".')
    return LabelledRow(texts, "")


@torch.inference_mode()
def read_choice(
    model: HeadedModel,
    schema: Schema,
    row: LabelledRow,
    *,
    is_known: bool,
    max_tokens: int,
    beside: Fields | None = None,
) -> Reading:
    """`is_known`: whether the right choice is. `beside`: what is read with every choice, such as a picture."""
    batch, choices = choices_of(schema, row, beside).to(device_of(model)), row.texts[1:]
    with evaluating(model):
        found, cost = model.predict(batch), -float(model.score(batch)[0][0, 0]) / BIT
    assert found.log_probs is not None
    answer = int(found.answers[0])
    probable = found.log_probs[0, : len(choices)].exp().tolist()
    order = sorted(range(len(choices)), key=lambda place: -probable[place])
    notes = [f"read is the row of the choice that is taken: {choices[answer]}"]
    pieces, _ = pieces_of_texts(schema.input("tokens", TokenSpec), (row.texts[0], choices[answer]))
    kept = kept_places(model, len(pieces), max_tokens, notes)
    one = batch.rows(slice(answer, answer + 1))
    tokens = one.inputs["tokens"].map(lambda tensor: tensor[:, kept])
    one = Batch({**one.inputs, "tokens": tokens}, one.targets)
    with evaluating(model), record(model) as trace:
        model.predict(one)
    silent = len(kept) - 1
    return Reading(
        [pieces[place] for place in kept],
        tokens.ids[0].tolist(),
        [math.nan] * silent + [cost if is_known else math.nan],
        [*([] for _ in range(silent)), [Expected(choices[place], probable[place]) for place in order]],
        one,
        trace,
        unit="bits for the answer",
        is_answer=True,
        answer=[choices[answer]],
        wanted=[choices[int(str(row.answer)) - 1]] if is_known else None,
        choices=row.texts,
        notes=notes,
    )


def choices_of(schema: Schema, row: LabelledRow, beside: Fields | None = None) -> Batch:
    """A row for each choice of a question."""
    batch = build_choice_store([row], schema, where="this").batch(slice(0, 1))
    others = {name: rows_of(field, len(batch)) for name, field in (beside or {}).items()}
    return replace(batch, inputs={**others, **batch.inputs})
