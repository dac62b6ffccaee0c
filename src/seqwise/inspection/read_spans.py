"""A question and its passage, as a model that marks the answer reads them: where it might begin, and where end.

Of a passage that takes several windows, the one with the best answer is looked at.

Shapes: T steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..data.batch import Batch, Spans
from ..data.questions import Question, Reference
from ..data.schema import Schema, TokenSpec
from ..data.span_store import SpanStore, SpanWindows, build_span_store, on_one_line
from ..errors import ConfigError, DataError
from ..evaluation.span_answers import FoundSpan, spans_of, window_steps
from ..goals.span import SpanGoal
from ..models.contract import device_of, evaluating
from ..models.headed import HeadedModel
from ..text.unseen import unseen_in
from .read_answers import BETWEEN
from .reading import BIT, END, START, Expected, Reading, pieces_in
from .trace import record

NUM_ANSWERS = 6
NONE = "no answer"


@dataclass(frozen=True)
class Answering:
    """Where a model looks for the answer."""

    pieces: list[str]
    """Of the window, and before them what stands for no answer."""
    begins: np.ndarray
    """(T,) how probable it is that the answer begins at each."""
    ends: np.ndarray
    """(T,) how probable it is that it ends there."""
    answers: list[Expected]
    """Best first, over all windows; with the probability that each has in its own."""
    wanted: list[str] | None
    """None where it is not known."""


def asked_question(text: str, target: str | None) -> Question:
    """ "question TAB passage", and the answer where it is told."""
    question, tab, passage = text.rstrip("\n").partition(BETWEEN)
    if not tab or not question.strip() or not passage.strip():
        raise DataError('a question is asked on a passage: --text "question TAB passage", with a tabulator for TAB.')
    if not target:
        return Question("1", question, passage)
    if target not in passage:
        raise ConfigError(f'--target "{target}" does not stand in the passage; give it as it is written there.')
    return Question("1", question, passage, (Reference(target, passage.find(target)),))


def read_question(
    model: HeadedModel, schema: Schema, question: Question, *, is_known: bool, max_tokens: int
) -> Reading:
    """`is_known`: whether the answer of the question is; else the model's own stands for it where one is needed."""
    spec, store = schema.input("tokens", TokenSpec), build_span_store([question], schema)
    notes = [note for text in (question.text, question.passage) for note in unseen_in(spec.tokenizer, text)]
    found = SpanGoal().answer(model, store, NUM_ANSWERS)[0]
    steps = max(store.num_special + 2, min(window_steps(model), max_tokens + store.num_special))
    windows = store.windows(steps)
    chosen = _best_window(model, store, windows)
    if len(windows) > 1:
        notes.append(f"the passage takes {len(windows):,} windows; that with the best answer is looked at")
    batch = windows.batch(np.array([chosen])).to(device_of(model))
    with torch.no_grad(), evaluating(model):
        prediction = model.predict(batch)
        if not is_known:
            batch = Batch(batch.inputs, {schema.main: replace(_spans(batch, schema), places=prediction.answers)})
        with record(model) as trace:
            score = model.score(batch)[0]
    pieces = _pieces(spec, windows, chosen)
    expected = [Expected(NONE if span.is_none else span.text, span.probability) for span in found]
    return Reading(
        pieces,
        batch.inputs["tokens"].ids[0].tolist(),
        [math.nan] * (len(pieces) - 1) + [-float(score) / BIT if is_known else math.nan],
        [*([] for _ in pieces[1:]), expected],
        batch,
        trace,
        unit="bits for where the answer begins and ends",
        is_answer=True,
        answer=[expected[0].piece],
        wanted=(list(question.texts) or [NONE]) if is_known else None,
        notes=notes,
    )


def find_answering(model: HeadedModel, schema: Schema, reading: Reading) -> Answering:
    with torch.inference_mode(), evaluating(model):
        log_probs = model.predict(reading.batch).log_probs
    assert log_probs is not None
    first, last = _spans(reading.batch, schema).passages[0].tolist()
    kept = [0, *range(first, last + 1)]
    begins, ends = (each[kept].exp().numpy() for each in log_probs[0].double().cpu())
    pieces = [NONE, *(reading.pieces[place] for place in kept[1:])]
    return Answering(pieces, begins, ends, reading.expected[-1], reading.wanted)


def _spans(batch: Batch, schema: Schema) -> Spans:
    found: Spans = batch.targets[schema.main]
    return found


def _best_window(model: HeadedModel, store: SpanStore, windows: SpanWindows) -> int:
    """The first that holds the best span; the first of all where there is none."""
    best: list[FoundSpan] = spans_of(model, store).spans[0]
    for window, (question, first, last) in enumerate(windows.cuts.tolist()):
        begin, end = store.characters(question, first, last - 1) if last > first else (0, 0)
        if best and begin <= best[0].start and best[0].end <= end:
            return window
    return 0


def _pieces(spec: TokenSpec, windows: SpanWindows, chosen: int) -> list[str]:
    store, (number, first, last) = windows.store, windows.cuts[chosen].tolist()
    row, tokens = store.rows[number], store.passages.ids[first:last].tolist()
    asked = store.questions.ids[: windows.question_steps[number]].tolist()
    begin = store.characters(number, first, first)[0] if last > first else 0
    return [
        START,
        *pieces_in(spec.tokenizer, asked, on_one_line(row.text)),
        *[END] * len(spec.behind(is_last=False)),
        *pieces_in(spec.tokenizer, tokens, on_one_line(row.passage[begin:])),
        *[END] * len(spec.behind(is_last=True)),
    ]
