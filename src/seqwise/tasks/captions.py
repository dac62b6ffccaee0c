"""Pictures and clips: write a sentence about each."""

from __future__ import annotations

from collections.abc import Sequence

from ..data.schema import CAPTION, PICTURES_AND_WORDS, Schema, TokenSpec, caption_schema
from ..data.seen import SeenData
from ..data.seen_build import build_seen_store, with_captions
from ..data.seen_files import asked_on, open_other_seen, open_seen
from ..data.seen_store import SeenStore
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig
from .images import seen_spec
from .label import tokenizer_for_rows


class CaptionsTask:
    name = "captions"
    title = "pictures or clips with captions"
    kinds = (CAPTION,)
    reads = PICTURES_AND_WORDS
    goal = None
    options: tuple[str, ...] = ()

    def open(self, config: DataConfig) -> SeenData:
        return open_seen(config, "caption")

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[SeenData, str]:
        return open_other_seen(source, split, "caption", config)

    def open_questions(self, source: str, schema: Schema, config: DataConfig) -> tuple[SeenData, str]:
        """The pictures of a folder, an archive or a table, or one picture, to be described."""
        return open_other_seen(source, None, "caption", config, needs_answers=False)

    def questions(self, asked: Sequence[str | Sequence[str]], schema: Schema) -> SeenStore:
        """Files of pictures."""
        paths = [one if isinstance(one, str) else one[0] for one in asked]
        return self.store(asked_on(paths, [()] * len(paths), "caption"), "whole", schema)

    def schema(self, data: SeenData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        image = seen_spec(data, tell, base)
        if base is not None and base.kind == CAPTION:
            return caption_schema(image, base.input("tokens", TokenSpec))
        captions = [text for row in data.parts["train"] for text in row.texts]
        return caption_schema(image, TokenSpec(tokenizer_for_rows(captions, config, tell)))

    def stores(self, data: SeenData, schema: Schema, on_progress: OnProgress = lambda *_: None) -> dict[str, SeenStore]:
        return {part: build_seen_store(data, part, schema, with_captions, on_progress) for part in data.parts}

    def store(self, data: SeenData, part: str, schema: Schema) -> SeenStore:
        return build_seen_store(data, part, schema, with_captions)
