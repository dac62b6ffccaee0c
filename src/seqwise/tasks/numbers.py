"""Columns of numbers: predict the next row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.batches import Streams, Windows
from ..data.numbers import (
    NumberData,
    NumberStore,
    Scaling,
    build_number_store,
    open_numbers,
    open_whole_series,
    seasons_by_column,
)
from ..data.seasons import main_season
from ..data.vocab import Vocab
from ..errors import ConfigError
from ..evaluation.forecasts import (
    ForecastScore,
    default_horizon,
    evaluate_forecasts,
    forecasts,
    log_densities_of,
)
from ..settings import DataConfig, TokenizerConfig, TrainingConfig
from .task import Advance, BatchSource, Facts, Tell


class NumbersTask:
    name = "numbers"
    title = "columns of numbers"
    unit = "steps"
    metrics = ("log_likelihood_per_step", "mae", "mae_over_naive", "coverage")
    score_options: tuple[str, ...] = ("horizon", "season")
    reads_lines = False
    writes_table = True

    def open(self, config: DataConfig) -> NumberData:
        if len(config.source) > 1 or config.valid or config.test:
            raise ConfigError("numbers are read from one .csv file, split in order; drop the other files.")
        return open_numbers(config.source[0], columns=config.columns or None, split=config.split, season=config.season)

    def open_other(self, source: str, split: str | None, vocab: Vocab, config: DataConfig) -> tuple[NumberData, str]:
        columns = _scaling(vocab).columns
        if split is None:
            return open_whole_series(source, columns), "whole"
        return open_numbers(source, columns=columns), split

    def learn_vocab(self, data: NumberData, config: TokenizerConfig, tell: Tell) -> Vocab:
        if config.kind != "auto":
            raise ConfigError(f"--tokenizer {config.kind}: numbers have no tokenizer; drop it.")
        return Vocab(scaling=Scaling.of(data))

    def stores(self, data: NumberData, vocab: Vocab, advance: Advance = lambda *_: None) -> dict[str, NumberStore]:
        return {part: self.store(data, part, vocab) for part in data.parts}

    def store(self, data: NumberData, part: str, vocab: Vocab) -> NumberStore:
        scaling = _scaling(vocab)
        if data.columns != scaling.columns:
            raise ConfigError(
                f"{data.name} has the columns {', '.join(data.columns)}; the model reads {', '.join(scaling.columns)}."
            )
        return build_number_store(data, part, scaling)

    def facts(self, data: NumberData, train: NumberStore, vocab: Vocab, minutes: float | None) -> Facts:
        found, num_columns = {"season": data.seasons}, len(data.columns)
        return Facts(len(train), 0, "", minutes, self.name, num_columns=num_columns, season=data.season, data=found)

    def batches(self, store: NumberStore, model: Any, config: TrainingConfig) -> BatchSource:
        common = {"context": config.context, "batch_size": config.batch_size, "seed": config.seed}
        if model.carries_state:
            return Streams(store, **common)
        return Windows(store, stride=config.stride or max(1, config.context // 4), **common)

    def sequences(self, store: NumberStore, model: Any) -> list[Any]:
        first = 0 if getattr(model, "reads_empty_start", False) else 1
        return [(store.values[first:], store.is_observed[first:])]

    def beginning(self, store: NumberStore, most: int) -> NumberStore:
        return store.beginning(most)

    def validated(self, store: NumberStore, most: int | None) -> NumberStore:
        return store

    def validate(self, model: Any, store: NumberStore, most: int | None) -> float:
        store = store if most is None else store.beginning(most)
        is_observed = store.is_observed[store.first :].any(axis=1)
        return float(-log_densities_of(model, store)[is_observed].mean())

    def loss_as_value(self, score: Any) -> Callable[[float], float]:
        return lambda nats: nats + score.log_scale  # from scaled units to the data's own

    def score(
        self,
        model: Any,
        store: NumberStore,
        vocab: Vocab,
        config: DataConfig,
        *,
        scored: str,
        advance: Advance = lambda *_: None,
        **options: Any,
    ) -> ForecastScore:
        scaling, horizon = _scaling(vocab), options.get("horizon", config.horizon)
        season = replace(config, season=options.get("season", config.season)).season  # checked as any other
        seasons = seasons_by_column(season, scaling.columns)
        return evaluate_forecasts(model, store, scaling, seasons=seasons, horizon=horizon, about=scored)

    def sample(self, model: Any, store: Any, vocab: Vocab, config: TrainingConfig) -> str | None:
        return None

    def predict(
        self, model: Any, data: NumberData, part: str, vocab: Vocab, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """A forecast of what comes after the data, as a .csv: for each column the middle and a 95 % interval."""
        scaling = _scaling(vocab)
        store = self.store(data, next(reversed(data.parts)), vocab)
        horizon = options.get("horizon")
        if horizon is None:
            seasons = seasons_by_column(config.season, scaling.columns)
            horizon = config.horizon or default_horizon(main_season(seasons))
        origin = np.array([len(store)])
        found = forecasts(model, store, origin, horizon, seed=options.get("seed") or 0)
        middle, low, high = (scaling.undo(values)[0] for values in found)  # (h, C)
        yield ",".join(["step", *(f"{c}{suffix}" for c in scaling.columns for suffix in ("", "_low", "_high"))])
        for step in range(horizon):
            cells = [f"{v[step, c]:.6g}" for c in range(len(scaling.columns)) for v in (middle, low, high)]
            yield ",".join([str(step + 1), *cells])

    def next_command(self, path: str) -> str:
        return f"seqwise predict {path} --horizon 24"


def _scaling(vocab: Vocab) -> Scaling:
    assert vocab.scaling is not None
    return vocab.scaling
