"""Questions on pictures: one of the answers that training knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..data.schema import LABEL, PICTURES_AND_WORDS, Schema, TokenSpec, seen_schema
from ..data.seen import SeenData
from ..data.seen_build import build_seen_store, with_labels
from ..data.seen_files import asked_on, open_other_seen, open_seen
from ..data.seen_store import SeenStore
from ..errors import ConfigError, DataError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig
from ..text import special_of
from .images import label_spec, seen_spec
from .label import tokenizer_for_rows


class QuestionsTask:
    name = "questions"
    title = "questions on pictures"
    kinds = (LABEL,)
    reads = PICTURES_AND_WORDS
    goal = None
    options: tuple[str, ...] = ("tokenizers",)

    def open(self, config: DataConfig) -> SeenData:
        return open_seen(config, "answer")

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[SeenData, str]:
        return open_other_seen(source, split, "answer", config)

    def open_questions(self, source: str, schema: Schema, config: DataConfig) -> tuple[SeenData, str]:
        """A table of pictures and questions, to be answered."""
        return open_other_seen(source, None, "answer", config, needs_answers=False)

    def questions(self, asked: Sequence[str | Sequence[str]], schema: Schema) -> SeenStore:
        """Each a file of a picture, and what is asked of it."""
        for one in asked:
            if isinstance(one, str) or len(one) != 2 or not one[1].strip():
                raise DataError("a question is asked of a picture: give both, as (file, question).")
        data = asked_on([one[0] for one in asked], [(one[1],) for one in asked], "answer")
        return self.store(data, "whole", schema)

    def schema(self, data: SeenData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        image = seen_spec(data, tell, base)
        if base is not None and "tokens" in base.inputs:
            known = base.input("tokens", TokenSpec)
            return seen_schema(image, label_spec(data), replace(known, alphabet="", num_texts=1))
        tokenizer = tokenizer_for_rows([text for row in data.parts["train"] for text in row.texts], config, tell)
        return seen_schema(image, label_spec(data), TokenSpec(tokenizer, special_of(tokenizer)))

    def stores(self, data: SeenData, schema: Schema, on_progress: OnProgress = lambda *_: None) -> dict[str, SeenStore]:
        return {part: build_seen_store(data, part, schema, with_labels, on_progress) for part in data.parts}

    def store(self, data: SeenData, part: str, schema: Schema) -> SeenStore:
        return build_seen_store(data, part, schema, with_labels)


def ask_on_picture(
    answer_texts: Callable[[Sequence[Sequence[str]]], list[dict[str, Any]]],
    schema: Schema,
    where: str,
    image: str,
    questions: Sequence[str],
    num: int,
) -> list[dict[str, float]]:
    """The most probable answers to each question on one picture, with their probabilities."""
    if schema.kind != LABEL or schema.reads not in PICTURES_AND_WORDS:
        raise ConfigError(
            f"{where} answers no questions on pictures. Train a run that does: seqwise train scenes --model crossmodal."
        )
    told = answer_texts([(image, question) for question in questions])
    return [dict(list(one["probabilities"].items())[:num]) for one in told]
