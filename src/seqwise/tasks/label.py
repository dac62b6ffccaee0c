"""Sequences with one answer each: say which label, or which number."""

from __future__ import annotations

from ..data.examples import ExampleData, ExampleStore
from ..data.schema import LABEL, NUMBER, Schema
from ..data.toys import open_examples
from ..errors import ConfigError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig


class LabelTask:
    name = "label"
    title = "sequences with one answer each"
    kinds = (LABEL, NUMBER)
    goal = None
    options: tuple[str, ...] = ()

    def open(self, config: DataConfig) -> ExampleData:
        if len(config.source) > 1 or config.valid or config.test or config.split:
            raise ConfigError("a set of examples brings its own parts; drop the other files and --split-at.")
        return open_examples(config.source[0])

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[ExampleData, str]:
        return open_examples(source), split or "test"

    def schema(self, data: ExampleData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        if config.kind != "auto":
            raise ConfigError(f"--tokenizer {config.kind}: these sequences are not text; drop it.")
        return data.schema

    def stores(
        self, data: ExampleData, schema: Schema, on_progress: OnProgress = lambda *_: None
    ) -> dict[str, ExampleStore]:
        return dict(data.parts)

    def store(self, data: ExampleData, part: str, schema: Schema) -> ExampleStore:
        found = data.schema
        sizes = [[spec.size for spec in one.specs.values()] for one in (found, schema)]
        if sizes[0] != sizes[1] or found.targets != schema.targets or found.inputs != schema.inputs:
            raise ConfigError(f"{data.name} has other inputs or labels than the model was trained for.")
        return data.parts[part]
