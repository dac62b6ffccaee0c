"""How answers to a whole text are looked at: labels, numbers, choices, tags and spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..data.schema import (
    LabelSpec,
    Schema,
    TokenSpec,
)
from ..errors import DataError
from ..run import Run
from ..tasks import ReadsQuestions, task_named
from ..text import Tokenizer
from ..text.symbols import SymbolTokenizer
from ..wording import counted
from .options import InspectOptions
from .read_answers import labelled_row, read_labelled, read_tagged, tagged_row
from .read_choice import chosen_row, read_choice
from .read_numeric import read_example
from .read_spans import asked_question, read_question
from .reader import Inspectable, WholeReader
from .reading import Reading


def _tokenizer_of(schema: Schema) -> Tokenizer | None:
    """Of texts that are answered; None where numbers are, or symbols without names."""
    spec = schema.only_input()
    if not isinstance(spec, TokenSpec) or isinstance(spec.tokenizer, SymbolTokenizer):
        return None
    return spec.tokenizer


def _answers_texts(run: Run) -> bool:
    """Whether texts can be asked about that are in no file, and not only the task's own examples."""
    return _tokenizer_of(run.schema) is not None and isinstance(task_named(run.config.task), ReadsQuestions)


class AnswerReader:
    """A text, two with a TAB between them, or a row of the held-out part; other examples by their row alone."""

    has_source = is_running_text = False
    answers_options: tuple[str, ...] = ("row", "phrase")
    no_gradients = ""
    no_memory = "it is measured by what comes next, and here a whole sequence is answered."

    def reads_text(self, run: Run) -> bool:
        return _answers_texts(run)

    def takes_target(self, run: Run) -> bool:
        return _answers_texts(run)

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        schema = run.run.schema
        if not _answers_texts(run.run):
            return self._read_example(run, options.row)
        is_known = text is None or target is not None
        row, where = _row_of(run, text, lambda text: labelled_row(text, target, schema), options)
        reading = read_labelled(run.model, schema, row, is_known=is_known, max_tokens=options.max_tokens)
        return reading, where + " / ".join(row.texts)

    def _read_example(self, run: Inspectable, row: int) -> tuple[Reading, str]:
        store, spec = run.unseen_store(), run.run.schema.main_spec
        labels = spec.names if isinstance(spec, LabelSpec) else []
        reading = read_example(run.model, store, labels, row=row)
        answer = spec.decode(store.answers[row]) if labels else f"{float(store.answers[row]):.4g}"
        return reading, f"example {row:,} of the held-out part, whose answer is {answer}"

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        return [0]

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> str:
        return "all answers are weighed at once; see the last step under reading."

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        return _tokenizer_of(schema)


def _read_choice(
    run: Inspectable, text: str | None, target: str | None, options: InspectOptions
) -> tuple[Reading, str]:
    row, where = _row_of(run, text, chosen_row, options)
    reading = read_choice(run.model, run.run.schema, row, is_known=text is None, max_tokens=options.max_tokens)
    return reading, where + " / ".join(row.texts)


def _read_tags(run: Inspectable, text: str | None, target: str | None, options: InspectOptions) -> tuple[Reading, str]:
    schema = run.run.schema
    tags = schema.target(schema.main, LabelSpec)
    row, where = _row_of(run, text, lambda text: tagged_row(text, target, tags), options)
    is_known = text is None or target is not None
    reading = read_tagged(run.model, schema, row, is_known=is_known, max_tokens=options.max_tokens)
    return reading, where + " ".join(row.words)


def _read_span(run: Inspectable, text: str | None, target: str | None, options: InspectOptions) -> tuple[Reading, str]:
    question, where = _row_of(run, text, lambda text: asked_question(text, target), options)
    is_known = text is None or target is not None
    reading = read_question(run.model, run.run.schema, question, is_known=is_known, max_tokens=options.max_tokens)
    return reading, f"{where}{question.text} / {question.passage}"


CHOICE_READER = WholeReader(
    _read_choice,
    no_search="all choices are weighed at once; see the last step under reading.",
    no_gradients="choices are weighed against each other, each in a row of its own; see the last step under reading.",
    no_memory="it is measured by what comes next, and here one of a few choices is taken.",
    answers_options=("row",),
)
"""A question and its choices with TABs between them, or a row of the held-out part."""
TAG_READER = WholeReader(
    _read_tags,
    no_search="the tags of a row are weighed together, not one after the other; see them under answer.",
    no_gradients="a tag may rest on words before and behind it; see under answer which these are.",
    no_memory="it is measured by what comes next, and here each word is answered.",
    answers_options=("row", "phrase"),
    has_target=True,
)
"""Words with white space between them, or a row of the held-out part."""
SPAN_READER = WholeReader(
    _read_span,
    no_search="all spans are weighed at once; see the best under answer.",
    no_gradients="an answer may rest on all of the passage; see under attention where each head looks.",
    no_memory="it is measured by what comes next, and here a question is answered.",
    answers_options=("row",),
    has_target=True,
)
"""A question and its passage with a TAB between them, or a row of the held-out part."""


def _row_of(
    run: Inspectable, text: str | None, parse: Callable[[str], Any], options: InspectOptions
) -> tuple[Any, str]:
    """What a text says, or a row of the held-out part and where that stands."""
    return (parse(text), "") if text is not None else (_held_out_row(run, options.row), _place(options.row))


def _held_out_row(run: Inspectable, row: int) -> Any:
    rows = run.unseen_store().rows
    if row >= len(rows):
        raise DataError(f"the part has {counted(len(rows), 'row')}; there is none with the number {row:,}.")
    return rows[row]


def _place(row: int) -> str:
    return f"row {row:,} of the held-out part: "
