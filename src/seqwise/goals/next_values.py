"""The next row of columns of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.batches import Streams, Windows
from ..data.numbers import NumberData, NumberStore, seasons_by_column
from ..data.schema import Schema, ValueSpec
from ..data.seasons import main_season
from ..evaluation.forecasts import (
    ForecastScore,
    default_horizon,
    evaluate_forecasts,
    forecasts,
    log_densities_of,
)
from ..models.contract import Forecaster
from ..settings import DataConfig, TrainingConfig
from .goal import BatchSource, Facts, OnProgress


class NextValuesGoal:
    unit = "steps"
    metrics = ("log_likelihood_per_step", "mae", "mae_over_naive", "coverage")
    score_options: tuple[str, ...] = ("horizon", "season")
    reads_lines = False
    writes_table = True

    def facts(self, data: NumberData, train: NumberStore, schema: Schema, minutes: float | None) -> Facts:
        found, num_columns = {"season": data.seasons}, len(data.columns)
        return Facts(len(train), 0, "", minutes, num_columns=num_columns, season=data.season, data=found)

    def batches(self, store: NumberStore, model: Forecaster, config: TrainingConfig) -> BatchSource:
        common = {"context": config.context, "batch_size": config.batch_size, "seed": config.seed}
        if model.carries_state:
            return Streams(store, **common)
        return Windows(store, stride=config.stride or max(1, config.context // 4), **common)

    def sequences(self, store: NumberStore, model: Forecaster) -> list[Any]:
        first = 0 if getattr(model, "reads_empty_start", False) else 1
        return [(store.values[first:], store.is_observed[first:])]

    def take(self, store: NumberStore, limit: int) -> NumberStore:
        return store.take(limit)

    def validated(self, store: NumberStore, limit: int | None) -> NumberStore:
        return store

    def validate(self, model: Forecaster, store: NumberStore, limit: int | None) -> float:
        store = store if limit is None else store.take(limit)
        is_observed = store.is_observed[store.first :].any(axis=1)
        return float(-log_densities_of(model, store)[is_observed].mean())

    def loss_as_value(self, score: Any) -> Callable[[float], float]:
        return lambda nats: nats + score.log_scale  # from scaled units to the data's own

    def score(
        self,
        model: Forecaster,
        store: NumberStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> ForecastScore:
        scaling, horizon = _values(schema), options.get("horizon", config.horizon)
        season = replace(config, season=options.get("season", config.season)).season  # checked as any other
        seasons = seasons_by_column(season, scaling.columns)
        return evaluate_forecasts(model, store, scaling, seasons=seasons, horizon=horizon, scored=scored)

    def beginning_of_text(self, data: NumberData, part: str, num_chars: int) -> None:
        return None

    def sample(self, model: Forecaster, store: NumberStore, schema: Schema, config: TrainingConfig) -> str | None:
        return None

    def predicted(self, parts: Sequence[str], part: str) -> str:
        """What comes after the data comes after its last part."""
        return parts[-1]

    def predict(
        self, model: Forecaster, store: NumberStore, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """A forecast of what comes after the data, as a .csv: for each column the middle and a 95 % interval."""
        scaling = _values(schema)
        horizon = options.get("horizon")
        if horizon is None:
            seasons = seasons_by_column(config.season, scaling.columns)
            horizon = config.horizon or default_horizon(main_season(seasons))
        middle, low, high = self.forecast(model, store, schema, horizon, seed=options.get("seed") or 0)
        yield ",".join(["step", *(f"{c}{suffix}" for c in scaling.columns for suffix in ("", "_low", "_high"))])
        for step in range(horizon):
            cells = [f"{v[step, c]:.6g}" for c in range(len(scaling.columns)) for v in (middle, low, high)]
            yield ",".join([str(step + 1), *cells])

    def forecast(
        self, model: Forecaster, store: NumberStore, schema: Schema, horizon: int, *, seed: int = 0
    ) -> tuple[np.ndarray, ...]:
        """What comes after a series, and the ends of its 95 % interval: (h, C) each."""
        found = forecasts(model, store, np.array([len(store)]), horizon, seed=seed)
        return tuple(_values(schema).decode(values)[0] for values in found)

    def next_command(self, path: str) -> str:
        return f"seqwise predict {path} --horizon 24"


def _values(schema: Schema) -> ValueSpec:
    return schema.target("values", ValueSpec)
