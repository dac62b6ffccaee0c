"""Columns of numbers: predict the next row."""

from __future__ import annotations

from ..data.numbers import NumberData, NumberStore, build_number_store, open_numbers, open_whole_series, scaling_of
from ..data.schema import NEXT_VALUES, Schema, ValueSpec, series_schema
from ..errors import ConfigError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig


class NumbersTask:
    name = "numbers"
    title = "columns of numbers"
    kinds = (NEXT_VALUES,)
    goal = None
    options = ("season",)

    def open(self, config: DataConfig) -> NumberData:
        if len(config.source) > 1 or config.valid or config.test:
            raise ConfigError("numbers are read from one .csv file, split in order; drop the other files.")
        return open_numbers(config.source[0], columns=config.columns or None, split=config.split, season=config.season)

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[NumberData, str]:
        columns = schema.input("values", ValueSpec).columns
        if split is None:
            return open_whole_series(source, columns), "whole"
        return open_numbers(source, columns=columns), split

    def schema(self, data: NumberData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        if base is not None and base.kind == NEXT_VALUES:
            return base  # with its scaling
        if config.kind != "auto":
            raise ConfigError(f"--tokenizer {config.kind}: numbers have no tokenizer; drop it.")
        return series_schema(scaling_of(data))

    def stores(
        self, data: NumberData, schema: Schema, on_progress: OnProgress = lambda *_: None
    ) -> dict[str, NumberStore]:
        return {part: self.store(data, part, schema) for part in data.parts}

    def store(self, data: NumberData, part: str, schema: Schema) -> NumberStore:
        scaling = schema.input("values", ValueSpec)
        if data.columns != scaling.columns:
            raise ConfigError(
                f"{data.name} has the columns {', '.join(data.columns)}; the model reads {', '.join(scaling.columns)}."
            )
        return build_number_store(data, part, scaling)
