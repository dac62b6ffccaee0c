"""Questions on passages: say where in the passage the answer stands, or that it does not hold one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..data.questions import Question, SpanData, distinct_passages
from ..data.schema import SPAN, Schema, SpanSpec, TokenSpec, span_schema
from ..data.span_files import open_spans, open_whole_spans
from ..data.span_store import SpanStore, build_span_store
from ..errors import DataError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig
from ..text import special_of
from .label import tokenizer_for_rows


class SpanTask:
    name = "span"
    title = "questions on passages"
    kinds = (SPAN,)
    goal = None
    options = ("tokenizers", "labels")

    def open(self, config: DataConfig) -> SpanData:
        return open_spans(config.source, valid=config.valid, test=config.test, split=config.split, stride=config.stride)

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[SpanData, str]:
        if split is not None or not Path(source).is_file():
            return open_spans([source], stride=config.stride), split or "test"
        return open_whole_spans([source], stride=config.stride), "whole"

    def open_questions(self, source: str, schema: Schema, config: DataConfig) -> tuple[SpanData, str]:
        """The questions of a file, to be answered: they need no answers."""
        if not Path(source).is_file():
            return self.open_other(source, None, schema, config)
        return open_whole_spans([source], stride=config.stride, answered=False), "whole"

    def questions(self, asked: Sequence[str | Sequence[str]], schema: Schema, stride: int | None = None) -> SpanStore:
        """Each a question and the passage that it is asked on."""
        rows = []
        for number, pair in enumerate(asked, start=1):
            question, passage = ("", "") if isinstance(pair, str) or len(pair) != 2 else pair
            if not question.strip():
                raise DataError("a question is asked on a passage: give both, as (question, passage).")
            if not passage.strip():
                raise DataError(f'"{question}" has no passage to be answered from; give one with --context or --text.')
            rows.append(Question(str(number), question, passage))
        return build_span_store(rows, schema, stride)

    def schema(self, data: SpanData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        spans = SpanSpec(data.may_lack)
        if base is not None and isinstance(spec := next(iter(base.specs.values())), TokenSpec):
            return span_schema(replace(spec, alphabet="", num_texts=2), spans)
        train = data.parts["train"]
        texts = [*distinct_passages(train), *(question.text for question in train)]
        tokenizer = tokenizer_for_rows([" ".join(text.split()) for text in texts], config, tell)
        return span_schema(TokenSpec(tokenizer, special_of(tokenizer), num_texts=2), spans)

    def stores(self, data: SpanData, schema: Schema, on_progress: OnProgress = lambda *_: None) -> dict[str, SpanStore]:
        return {part: self.store(data, part, schema) for part in data.parts}

    def store(self, data: SpanData, part: str, schema: Schema) -> SpanStore:
        return build_span_store(data.parts[part], schema, data.stride)
