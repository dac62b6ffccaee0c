"""Pictures alone: paint others of their kind."""

from __future__ import annotations

from ..data.schema import PICTURE, PICTURES, ImageSpec, Schema, picture_schema
from ..data.seen import SeenData
from ..data.seen_build import alone, build_seen_store
from ..data.seen_files import open_other_seen, open_seen
from ..data.seen_store import SeenStore
from ..errors import ConfigError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig
from .images import seen_spec


class PaintTask:
    name = "paint"
    title = "pictures to be painted"
    kinds = (PICTURE,)
    reads = PICTURES
    goal = None
    options: tuple[str, ...] = ()

    def open(self, config: DataConfig) -> SeenData:
        return open_seen(config, "picture")

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[SeenData, str]:
        return open_other_seen(source, split, "picture", config, needs_answers=False)

    def schema(self, data: SeenData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        if config.kind != "auto":
            raise ConfigError(f"--tokenizer {config.kind}: pictures are not text; drop it.")
        spec = seen_spec(data, tell, base)
        if not isinstance(spec, ImageSpec):
            raise ConfigError(f"{data.name} has features, of which no picture can be painted.")
        return picture_schema(spec)

    def stores(self, data: SeenData, schema: Schema, on_progress: OnProgress = lambda *_: None) -> dict[str, SeenStore]:
        return {part: build_seen_store(data, part, schema, alone, on_progress) for part in data.parts}

    def store(self, data: SeenData, part: str, schema: Schema) -> SeenStore:
        return build_seen_store(data, part, schema, alone)
