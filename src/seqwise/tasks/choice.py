"""Questions with a few choices each: say which one is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..data.annotated import LabelledRow
from ..data.choice_files import ChoiceData, open_choices, open_whole_choices, questions_of
from ..data.choices import ChoiceStore, answer_counts, build_choice_store
from ..data.schema import CHOICE, LabelSpec, Schema, TokenSpec, choice_schema
from ..errors import ConfigError, DataError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig
from ..text import special_of
from .label import tokenizer_for_rows


class ChoiceTask:
    name = "choice"
    title = "questions with a few choices each"
    kinds = (CHOICE,)
    goal = None
    options = ("tokenizers", "labels")

    def open(self, config: DataConfig) -> ChoiceData:
        return open_choices(
            config.source, valid=config.valid, test=config.test, split=config.split, columns=config.columns
        )

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[ChoiceData, str]:
        if split is not None or not Path(source).is_file():
            return open_choices([source], columns=config.columns if Path(source).exists() else ()), split or "test"
        return open_whole_choices(source, config.columns), "whole"

    def open_questions(self, source: str, schema: Schema, config: DataConfig) -> tuple[ChoiceData, str]:
        """The questions of a file, to be answered: it needs no answers."""
        if not Path(source).is_file():
            return self.open_other(source, None, schema, config)
        rows = questions_of(source, config.columns)
        if not rows:
            raise DataError(f"{source}: there are no questions in it to be answered.")
        return ChoiceData(Path(source).name, {"whole": rows}, "label", "read whole"), "whole"

    def questions(self, asked: Sequence[str | Sequence[str]], schema: Schema) -> ChoiceStore:
        """Each is what is asked and its choices, in a list or with TABs between."""
        rows = [tuple(one.split("\t")) if isinstance(one, str) else tuple(one) for one in asked]
        if any(len(row) < 3 for row in rows):
            raise ConfigError("a question has at least two choices: give what is asked, then each choice.")
        return build_choice_store([LabelledRow(row, "") for row in rows], schema)

    def schema(self, data: ChoiceData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        rows = data.parts["train"]
        if base is not None and isinstance(spec := next(iter(base.specs.values())), TokenSpec):
            inputs = replace(spec, alphabet="", num_texts=data.num_texts)
        else:
            tokenizer = tokenizer_for_rows([text for row in rows for text in row.texts], config, tell)
            inputs = TokenSpec(tokenizer, special_of(tokenizer), num_texts=data.num_texts)
        return choice_schema(inputs, LabelSpec(data.labels, answer_counts(rows, data.labels)))

    def stores(
        self, data: ChoiceData, schema: Schema, on_progress: OnProgress = lambda *_: None
    ) -> dict[str, ChoiceStore]:
        return {part: self.store(data, part, schema) for part in data.parts}

    def store(self, data: ChoiceData, part: str, schema: Schema) -> ChoiceStore:
        return build_choice_store(data.parts[part], schema, where=data.name)
