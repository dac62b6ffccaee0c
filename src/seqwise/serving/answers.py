"""What a run answers besides continuing text: a table by the kind of its target.

answer = answering(run.schema.kind)
answer(run, questions, asked) -> an answer for each, ready for JSON
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..data.schema import CHOICE, LABEL, LABELS, MASKED_TOKEN, NEXT_VALUES, NUMBER, SEQUENCE, SPAN, TAG
from ..errors import ConfigError, DataError
from ..trained_run import TrainedRun
from .messages import PredictAsked

MAX_VALUES = 100_000  # numbers of a series
MAX_VALUE = 1e30

Answer = Callable[[TrainedRun, Sequence[Any], PredictAsked], list[Any]]


def _texts(run: TrainedRun, questions: Sequence[Any], asked: PredictAsked) -> list[Any]:
    """Labels, tags and numbers of texts, or of pairs of them."""
    return run.answer_texts([_text_or_texts(question) for question in questions])


def _translations(run: TrainedRun, questions: Sequence[Any], asked: PredictAsked) -> list[Any]:
    lines = [_line(question) for question in questions]
    found = run.answers(lines, beam_width=max(asked.beam, asked.num), num_results=asked.num)
    return [{"text": each.text, "texts": each.texts, "scores": each.scores} for each in found]


def _spans(run: TrainedRun, questions: Sequence[Any], asked: PredictAsked) -> list[Any]:
    answers = []
    for question in questions:
        if not isinstance(question, dict) or set(question) != {"question", "context"}:
            raise DataError('this run finds answers in passages: ask {"question": "...", "context": "..."}.')
        found = run.answer(_text(question["question"]), _text(question["context"]), num=asked.num)
        answers.append([{"text": s.text, "start": s.start, "end": s.end, "probability": s.probability} for s in found])
    return answers


def _filled(run: TrainedRun, questions: Sequence[Any], asked: PredictAsked) -> list[Any]:
    num = max(asked.num, 5)
    return [
        [{word: round(p, 6) for word, p in place.words} for place in run.fill(_text(question), num=num)]
        for question in questions
    ]


def _forecasts(run: TrainedRun, questions: Sequence[Any], asked: PredictAsked) -> list[Any]:
    return [run.forecast(_rows(question), horizon=asked.horizon) for question in questions]


ANSWERS: dict[str, Answer] = {
    LABEL: _texts,
    LABELS: _texts,
    NUMBER: _texts,
    TAG: _texts,
    CHOICE: _texts,
    SEQUENCE: _translations,
    SPAN: _spans,
    MASKED_TOKEN: _filled,
    NEXT_VALUES: _forecasts,
}
"""By the kind of target."""


def answering(run: TrainedRun) -> Answer:
    found = ANSWERS.get(run.run.schema.kind)
    if found is None:
        raise ConfigError(
            f"{run.path.name} is a {run.run.config.model_name} model of {run.run.config.task}: it has no answers to "
            "give; ask /v1/completions or /v1/embeddings."
        )
    return found


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise DataError(f"a text was expected, not {type(given).__name__}.")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise DataError("the text holds half a character (a lone surrogate).") from None
    return given


def _line(given: Any) -> str:
    return " ".join(_text(given).splitlines())


def _text_or_texts(given: Any) -> str | list[str]:
    return [_text(each) for each in given] if isinstance(given, list) else _text(given)


def _rows(given: Any) -> list[list[float | None]]:
    """A series: a list of numbers, or of rows of them; null where one is missing."""
    if not isinstance(given, list) or not given:
        raise DataError("a series is a list of numbers, or of rows of numbers.")
    rows = [row if isinstance(row, list) else [row] for row in given]
    if len({len(row) for row in rows}) > 1 or len(rows) * len(rows[0]) > MAX_VALUES:
        raise DataError(f"rows of a series have as many numbers each, and {MAX_VALUES:,} at most together.")
    if not all(value is None or _is_number(value) for row in rows for value in row):
        raise DataError("a series holds numbers, and null where one is missing.")
    return rows


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < MAX_VALUE
