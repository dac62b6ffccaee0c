"""Pictures with sentences, parts of both hidden: what a model of pictures and words is pretrained by."""

from __future__ import annotations

from dataclasses import replace

from ..data.schema import (
    MASKED_TOKEN,
    PICTURES_AND_WORDS,
    Schema,
    TokenSpec,
    seen_masked_schema,
    with_mask,
)
from ..data.seen import SeenData
from ..data.seen_build import build_seen_store, with_captions
from ..data.seen_files import open_other_seen, open_seen
from ..data.seen_masking import SeenMaskedStore
from ..goals.goal import OnProgress, Tell
from ..goals.seen_masked import SeenMaskedGoal
from ..settings import DataConfig, TokenizerConfig
from ..text import special_of
from .images import seen_spec
from .label import tokenizer_for_rows


class SeenMaskedTask:
    name = "seen-masked"
    title = "hidden words and regions of pictures with sentences"
    kinds = (MASKED_TOKEN,)
    reads = PICTURES_AND_WORDS
    goal = SeenMaskedGoal()
    options: tuple[str, ...] = ("tokenizers",)

    def open(self, config: DataConfig) -> SeenData:
        return open_seen(config, "caption")

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[SeenData, str]:
        return open_other_seen(source, split, "caption", config)

    def schema(self, data: SeenData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        image = seen_spec(data, tell, base)
        if base is not None and "tokens" in base.inputs:
            known = replace(base.input("tokens", TokenSpec), alphabet="", num_texts=1)
            return seen_masked_schema(image, with_mask(known))
        texts = [text for row in data.parts["train"] for text in row.texts]
        tokenizer = tokenizer_for_rows(texts, config, tell)
        return seen_masked_schema(image, with_mask(TokenSpec(tokenizer, special_of(tokenizer))))

    def stores(
        self, data: SeenData, schema: Schema, on_progress: OnProgress = lambda *_: None
    ) -> dict[str, SeenMaskedStore]:
        return {part: self.store(data, part, schema) for part in data.parts}

    def store(self, data: SeenData, part: str, schema: Schema) -> SeenMaskedStore:
        seen = build_seen_store(data, part, schema, with_captions)
        return SeenMaskedStore(seen, schema.input("tokens", TokenSpec), tuple(schema.targets))
