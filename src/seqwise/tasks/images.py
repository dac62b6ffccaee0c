"""Pictures with one label each: say which. Photographs, drawings, digits; clips too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..data.schema import LABEL, PICTURES, ImageSpec, LabelSpec, RegionSpec, Schema, seen_schema
from ..data.seen import SeenData
from ..data.seen_build import build_seen_store, image_spec, with_labels
from ..data.seen_files import asked_on, open_other_seen, open_seen
from ..data.seen_store import SeenStore
from ..errors import ConfigError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig


class ImagesTask:
    name = "images"
    title = "pictures with one label each"
    kinds = (LABEL,)
    reads = PICTURES
    goal = None
    options: tuple[str, ...] = ()

    def open(self, config: DataConfig) -> SeenData:
        return open_seen(config, "label")

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[SeenData, str]:
        return open_other_seen(source, split, "label", config)

    def open_questions(self, source: str, schema: Schema, config: DataConfig) -> tuple[SeenData, str]:
        """The pictures of a folder or an archive, or one picture, to be labelled."""
        return open_other_seen(source, None, "label", config, needs_answers=False)

    def questions(self, asked: Sequence[str | Sequence[str]], schema: Schema) -> SeenStore:
        """Files of pictures."""
        paths = [one if isinstance(one, str) else one[0] for one in asked]
        return self.store(asked_on(paths, [()] * len(paths), "label"), "whole", schema)

    def schema(self, data: SeenData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        if config.kind != "auto":
            raise ConfigError(f"--tokenizer {config.kind}: pictures with labels are not text; drop it.")
        return seen_schema(seen_spec(data, tell, base), label_spec(data))

    def stores(self, data: SeenData, schema: Schema, on_progress: OnProgress = lambda *_: None) -> dict[str, SeenStore]:
        return {part: build_seen_store(data, part, schema, with_labels, on_progress) for part in data.parts}

    def store(self, data: SeenData, part: str, schema: Schema) -> SeenStore:
        return build_seen_store(data, part, schema, with_labels)


def seen_spec(data: SeenData, tell: Tell, base: Schema | None) -> ImageSpec | RegionSpec:
    """As the run sees pictures that this one starts from, else by the training part."""
    if base is not None and "image" in base.inputs:
        spec = base.specs[base.inputs["image"]]
        if isinstance(spec, ImageSpec | RegionSpec):
            return spec
    return image_spec(data, tell)


def label_spec(data: SeenData) -> LabelSpec:
    counts = Counter(row.answer for row in data.parts["train"])
    return LabelSpec(data.labels, [counts[label] for label in data.labels])
