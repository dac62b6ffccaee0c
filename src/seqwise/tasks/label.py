"""Sequences with one answer each: say which label, which labels, or which number. Texts, or steps of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data.annotated import Answer, LabelledData, LabelledRow
from ..data.builtin import is_example_set
from ..data.examples import ExampleData, ExampleStore
from ..data.label_files import open_labelled, open_whole_labelled, texts_of
from ..data.schema import LABEL, LABELS, NUMBER, LabelSpec, NumberSpec, Schema, TokenSpec, answer_schema
from ..data.text_examples import TextStore, build_label_store
from ..data.toys import open_examples
from ..errors import ConfigError, DataError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig
from ..text import IN_WORDS, Tokenizer, special_of, train_tokenizer

MIN_WORDS = 2.5  # a text, in the mean: below, texts are names or codes, and their characters tell more
MIN_WORD_COUNT = 2  # what comes once is unknown, so that what it is to be unknown is learned
MAX_VOCAB = 50_000


class LabelTask:
    name = "label"
    title = "sequences with one answer each"
    kinds = (LABEL, LABELS, NUMBER)
    goal = None
    options = ("tokenizers", "labels")

    def open(self, config: DataConfig) -> ExampleData | LabelledData:
        if not _is_toy(config.source[0]):
            return open_labelled(
                config.source, valid=config.valid, test=config.test, split=config.split, columns=config.columns
            )
        if len(config.source) > 1 or config.valid or config.test or config.split:
            raise ConfigError("a set of examples brings its own parts; drop the other files and --split-at.")
        return open_examples(config.source[0])

    def open_other(
        self, source: str, split: str | None, schema: Schema, config: DataConfig
    ) -> tuple[ExampleData | LabelledData, str]:
        if _is_toy(source):
            return open_examples(source), split or "test"
        if split is not None or not Path(source).is_file():
            return open_labelled([source], columns=config.columns if Path(source).exists() else ()), split or "test"
        spec = schema.main_spec
        labels = spec.names if isinstance(spec, LabelSpec) else ()
        return open_whole_labelled([source], config.columns, labels), "whole"

    def open_questions(self, source: str, schema: Schema, config: DataConfig) -> tuple[ExampleData | LabelledData, str]:
        """The texts of a file, to be labelled: it needs no labels."""
        if not Path(source).is_file():
            return self.open_other(source, None, schema, config)
        rows = [LabelledRow(texts, UNANSWERED[schema.kind]) for texts in texts_of(source, config.columns)]
        if not rows:
            raise DataError(f"{source}: there is no text in it to be labelled.")
        asks_for: Any = "number" if schema.kind == NUMBER else schema.kind
        return LabelledData(Path(source).name, {"whole": rows}, asks_for, "read whole"), "whole"

    def questions(self, asked: Sequence[str | Sequence[str]], schema: Schema) -> TextStore:
        texts = [(text,) if isinstance(text, str) else tuple(text) for text in asked]
        return build_label_store([LabelledRow(text, UNANSWERED[schema.kind]) for text in texts], schema)

    def schema(
        self, data: ExampleData | LabelledData, config: TokenizerConfig, tell: Tell, base: Schema | None = None
    ) -> Schema:
        if isinstance(data, ExampleData):
            if config.kind != "auto":
                raise ConfigError(f"--tokenizer {config.kind}: these sequences are not text; drop it.")
            return data.schema
        if base is not None and isinstance(spec := next(iter(base.specs.values())), TokenSpec):
            inputs = replace(spec, alphabet="", num_texts=data.num_texts)
        else:
            texts = [text for row in data.parts["train"] for text in row.texts]
            tokenizer = tokenizer_for_rows(texts, config, tell)
            inputs = TokenSpec(tokenizer, special_of(tokenizer), num_texts=data.num_texts)
        return answer_schema(inputs, _answer_spec(data), several=data.asks_for == "labels")

    def stores(
        self, data: ExampleData | LabelledData, schema: Schema, on_progress: OnProgress = lambda *_: None
    ) -> dict[str, ExampleStore | TextStore]:
        return {part: self.store(data, part, schema) for part in data.parts}

    def store(self, data: ExampleData | LabelledData, part: str, schema: Schema) -> ExampleStore | TextStore:
        if isinstance(data, LabelledData):
            _check_texts(data, schema)
            return build_label_store(data.parts[part], schema)
        found = data.schema
        sizes = [[spec.size for spec in one.specs.values()] for one in (found, schema)]
        if sizes[0] != sizes[1] or found.targets != schema.targets or found.inputs != schema.inputs:
            raise ConfigError(f"{data.name} has other inputs or labels than the model was trained for.")
        return data.parts[part]


UNANSWERED: dict[str, Answer] = {LABEL: "", LABELS: (), NUMBER: 0.0}
"""What stands in the place of an answer, by the kind of target."""


def _is_toy(source: str) -> bool:
    return not Path(source).exists() and is_example_set(source)


def _check_texts(data: LabelledData, schema: Schema) -> None:
    wanted = schema.input("tokens", TokenSpec).num_texts
    if data.num_texts != wanted:
        words = {1: "one text", 2: "two texts"}
        raise ConfigError(
            f"{data.name} has {words[data.num_texts]} in each row; the model was trained on {words[wanted]}. "
            "Name the columns with --columns text=NAME,text2=NAME."
        )


def _answer_spec(data: LabelledData) -> LabelSpec | NumberSpec:
    rows = data.parts["train"]
    if data.asks_for == "number":
        numbers = np.array([row.answer for row in rows], dtype=np.float64)
        return NumberSpec(float(numbers.mean()), float(numbers.std()) or 1.0)
    counts: Counter[Any] = Counter()
    for row in rows:
        counts.update([row.answer] if isinstance(row.answer, str) else row.answer)  # type: ignore[arg-type]
    return LabelSpec(data.labels, [counts[label] for label in data.labels])


def tokenizer_for_rows(texts: Sequence[str], config: TokenizerConfig, tell: Tell) -> Tokenizer:
    """Of texts that stand each for itself: the one that was asked for, or words or characters by what they are like."""
    kind, why = config.kind, "as asked"
    if kind == "auto":
        words = sum(len(text.split()) for text in texts) / len(texts)
        kind, why = ("word", "texts of words") if words >= MIN_WORDS else ("char", "texts of a word or two")
    options: dict[str, Any] = {"min_count": config.min_count} if config.min_count is not None else {}
    if kind in ("word", "wordpiece"):
        options["lower_case"] = config.lower_case is not False
    if kind == "word":
        options = {"min_count": MIN_WORD_COUNT, **options}
        options["split_contractions"] = config.split_contractions
    if kind != "char":
        options["vocab_size"] = config.vocab_size or (MAX_VOCAB if kind == "word" else 8000)
    made = train_tokenizer(kind, (text + "\n" for text in texts), **options)
    lower = ", in lower case" if options.get("lower_case") else ""
    tell(f"tokenizer: {IN_WORDS[kind]}{lower}, {made.vocab_size:,} tokens ({why})")
    return made
