"""Questions on pictures with a few choices each, answers or reasons: say which one is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..data.choices import answer_counts
from ..data.schema import CHOICE, PICTURES_AND_WORDS, LabelSpec, Schema, TokenSpec, seen_choice_schema
from ..data.seen import SeenData
from ..data.seen_choices import SeenChoiceStore, build_seen_choice_store
from ..data.seen_files import asked_on, open_other_seen, open_seen
from ..errors import DataError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig
from ..text import special_of
from .images import seen_spec
from .label import tokenizer_for_rows


class SeenChoiceTask:
    name = "seen-choice"
    title = "questions on pictures with a few choices each"
    kinds = (CHOICE,)
    reads = PICTURES_AND_WORDS
    goal = None
    options: tuple[str, ...] = ("tokenizers",)

    def open(self, config: DataConfig) -> SeenData:
        return open_seen(config, "choice")

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[SeenData, str]:
        return open_other_seen(source, split, "choice", config)

    def open_questions(self, source: str, schema: Schema, config: DataConfig) -> tuple[SeenData, str]:
        return open_other_seen(source, None, "choice", config, needs_answers=False)

    def questions(self, asked: Sequence[str | Sequence[str]], schema: Schema) -> SeenChoiceStore:
        """Each a file of a picture, what is asked of it, and the choices."""
        for one in asked:
            if isinstance(one, str) or len(one) < 4:
                raise DataError("a question has a picture and two choices at least: (file, question, choice, choice).")
        data = asked_on([one[0] for one in asked], [tuple(one[1:]) for one in asked], "choice")
        return self.store(data, "whole", schema)

    def schema(self, data: SeenData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        rows, image = data.parts["train"], seen_spec(data, tell, base)
        most = max(len(row.texts) - 1 for part in data.parts.values() for row in part)
        labels = [str(number + 1) for number in range(most)]
        numbers = LabelSpec(labels, answer_counts(rows, labels))
        if base is not None and "tokens" in base.inputs:
            return seen_choice_schema(
                image, replace(base.input("tokens", TokenSpec), alphabet="", num_texts=2), numbers
            )
        tokenizer = tokenizer_for_rows([text for row in rows for text in row.texts], config, tell)
        return seen_choice_schema(image, TokenSpec(tokenizer, special_of(tokenizer), num_texts=2), numbers)

    def stores(
        self, data: SeenData, schema: Schema, on_progress: OnProgress = lambda *_: None
    ) -> dict[str, SeenChoiceStore]:
        return {part: self.store(data, part, schema) for part in data.parts}

    def store(self, data: SeenData, part: str, schema: Schema) -> SeenChoiceStore:
        return build_seen_choice_store(data, part, schema)
