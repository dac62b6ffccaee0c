"""How well a model forecasts numbers: log-likelihood per step, error and coverage of forecasts, beside naive ones.

    log-likelihood per step = sum of log p(row | rows before) / steps, one step ahead, in the data's own units      (1)
    MAE      = mean |forecast - what came|, 1 to h steps ahead, from origins spread over the part                   (2)
    coverage = share of numbers that fall into their 95 % interval                                                  (3)
    naive: the last number goes on; seasonal naive: what was there a season ago comes again

A family that knows its h-step distribution says it (`forecast`); of the others paths are sampled, step by step.

Shapes: O origins, S sampled paths, h horizon, C columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import __version__
from ..data.batch import Batch, Values, kept_of
from ..data.numbers import NumberStore
from ..data.schema import ValueSpec
from ..data.seasons import main_season
from ..errors import ConfigError
from ..models.contract import Forecaster, State, device_of, evaluating, select_rows
from ..wording import counted
from .likelihood import CHUNK
from .segments import Metric, Segments, interval_in_words

PATHS = 200  # sampled per origin
MAX_ORIGINS = 100
DEFAULT_HORIZON = 24
MAX_HORIZON_STEPS = 48
Z95 = 1.959964


@dataclass(frozen=True)
class ForecastScore:
    metric = Metric("nats per step", "nats/step")
    log_densities: np.ndarray
    """Of each step of the part, in the data's own units, nats, (steps,)."""
    observed: np.ndarray
    """Whether a step has anything to predict, (steps,)."""
    errors: dict[str, np.ndarray]
    """|forecast - truth| by who forecast ("model", "naive" and, where there is a season, "seasonal"), (O, h, C), NaN
    where the truth is missing."""
    is_covered: np.ndarray
    """(O, h, C), NaN where the truth is missing."""
    columns: list[str]
    seasons: list[int]
    """Of each column; 1 where it has none, and where none has any there is no seasonal forecast."""
    signature: str
    log_scale: float = 0.0
    """What nats per step in scaled units lack to those in the data's own."""

    @property
    def nats_per_step(self) -> float:
        """Negative log-likelihood; lower is better (1)."""
        return float(-self.log_densities[self.observed].mean())

    @property
    def log_likelihood(self) -> float:
        return -self.nats_per_step

    @property
    def interval(self) -> tuple[float, float]:
        """Of the log-likelihood per step, 95 %, by resampling segments of the part."""
        low, high = self.segments.interval
        return -high, -low

    @property
    def segments(self) -> Segments:
        """-log p of segments of the part over the steps in them that can be predicted."""
        num = max(1, min(100, len(self.log_densities) // 2))
        segment = np.arange(len(self.log_densities)) * num // len(self.log_densities)
        totals = np.bincount(segment, weights=np.where(self.observed, -self.log_densities, 0.0), minlength=num)
        return Segments.of(totals, np.bincount(segment, weights=self.observed, minlength=num))

    def mae(self, who: str = "model") -> float:
        """The mean over origins, steps ahead and columns, in the data's own units (2)."""
        return _mean(self.errors[who])

    @property
    def relative_error(self) -> float:
        """The error as a share of the naive one, the mean over columns: below 1 is better than naive.

        Columns that stood still, so that naive had no error, are left out; without others there is nothing to gain: 1.
        """
        places = range(len(self.columns))
        model, naive = (np.array([_mean(self.errors[w][..., place]) for place in places]) for w in ("model", "naive"))
        moved = naive > 0
        return _mean(model[moved] / naive[moved]) if moved.any() else 1.0

    @property
    def coverage(self) -> float:
        return _mean(self.is_covered)  # (3)

    @property
    def horizon(self) -> int:
        return int(self.errors["model"].shape[1])

    @property
    def season(self) -> int:
        """That of most columns; 1 where none has any."""
        return main_season(self.seasons)

    @property
    def has_season(self) -> bool:
        return "seasonal" in self.errors

    @property
    def _season_in_words(self) -> str:
        if len(set(self.seasons)) == 1:
            return f"season {self.seasons[0]}"
        named = (
            f"{season if season > 1 else 'none'} in {c}" for c, season in zip(self.columns, self.seasons, strict=True)
        )
        return f"season {', '.join(named)}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        seasonal = f", seasonal naive {self.mae('seasonal'):.4g}" if self.has_season else ""
        return (
            f"log-likelihood {self.log_likelihood:.4f} nats per step ({interval_in_words(self.interval, 4)}); MAE "
            f"{self.mae():.4g} over {counted(self.horizon, 'step')} (naive {self.mae('naive'):.4g}{seasonal}); "
            f"95 % intervals cover {100 * self.coverage:.1f} %"
        )

    def rows(self) -> Iterator[tuple[str, str]]:
        shown = f"{self.log_likelihood:.4f} ({interval_in_words(self.interval, 4)})"
        yield "log-likelihood, nats per step", shown
        yield f"MAE, {counted(self.horizon, 'step')} ahead", f"{self.mae():.5g}"
        yield "MAE of naive", f"{self.mae('naive'):.5g}"
        yield "MAE as a share of naive, mean of columns", f"{self.relative_error:.3f}"
        if self.has_season:
            yield f"MAE of seasonal naive ({self._season_in_words})", f"{self.mae('seasonal'):.5g}"
        yield "coverage of 95 % intervals", f"{100 * self.coverage:.1f} %"
        for place, column in enumerate(self.columns if len(self.columns) > 1 else []):
            errors = {who: _mean(error[..., place]) for who, error in self.errors.items()}
            seasonal = f", seasonal {errors['seasonal']:.5g}" if self.seasons[place] > 1 else ""
            yield f"MAE of {column}", f"{errors['model']:.5g} (naive {errors['naive']:.5g}{seasonal})"
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        return {
            "log_likelihood_per_step": self.log_likelihood,
            "interval": list(self.interval),
            "is_enough": self.segments.is_enough,
            "steps": int(self.observed.sum()),
            "horizon": self.horizon,
            "season": self.season if self.has_season else None,
            "season_by_column": dict(zip(self.columns, (s if s > 1 else None for s in self.seasons), strict=True)),
            "mae": self.mae(),
            "mae_naive": self.mae("naive"),
            "mae_over_naive": self.relative_error,
            "mae_seasonal_naive": self.mae("seasonal") if self.has_season else None,
            "coverage": self.coverage,
            "mae_by_column": {
                column: _mean(self.errors["model"][..., place]) for place, column in enumerate(self.columns)
            },
            "signature": self.signature,
        }


def _mean(values: np.ndarray) -> float:
    """Of those that are numbers; NaN where there is none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan


def _checked(horizon: int) -> int:
    if horizon < 1:
        raise ConfigError(f"a horizon of {horizon} steps is too short; ask for at least 1.")
    return horizon


def default_horizon(season: int) -> int:
    return season if 1 < season <= MAX_HORIZON_STEPS else DEFAULT_HORIZON


@torch.inference_mode()
def evaluate_forecasts(
    model: Forecaster,
    store: NumberStore,
    scaling: ValueSpec,
    *,
    seasons: Sequence[int],
    horizon: int | None = None,
    seed: int = 0,
    scored: str = "",
) -> ForecastScore:
    """Score a part of a series, given the season of each column; what stands before the part is read first."""
    num_rows = len(store) + 1 - store.first
    horizon = min(default_horizon(main_season(seasons)) if horizon is None else _checked(horizon), num_rows)
    log_scales = (store.is_observed[store.first :] * np.log(scaling.scale)).sum(axis=1)
    log_densities = log_densities_of(model, store) - log_scales
    origins = _origins(store, horizon)
    mean, low, high = forecasts(model, store, origins, horizon, seed=seed)
    truth = _own_units(store, scaling, origins[:, None] + 1 + np.arange(horizon))  # (O, h, C)
    naive, seasonal = _naive(store, scaling, origins, horizon, seasons)
    mean, low, high = (scaling.decode(values) for values in (mean, low, high))
    errors = {"model": np.abs(mean - truth), "naive": np.abs(naive - truth)}
    if max(seasons) > 1:
        errors["seasonal"] = np.abs(seasonal - truth)
    is_covered = np.where(np.isnan(truth), np.nan, (low <= truth) & (truth <= high))
    season = "/".join(map(str, seasons if len(set(seasons)) > 1 else seasons[:1]))
    how = f"forecast:horizon={horizon},origins={len(origins)},season={season}"
    signature = "|".join([how, *([scored] if scored else []), f"seqwise={__version__}"])
    observed = np.asarray(store.is_observed[store.first :].any(axis=1))
    log_scale = float(log_scales[observed].mean())
    return ForecastScore(
        log_densities, observed, errors, is_covered, scaling.columns, list(seasons), signature, log_scale
    )


@torch.inference_mode()
def log_densities_of(model: Forecaster, store: NumberStore) -> np.ndarray:
    """log p of each row of the part given all before it (as far as the model sees), scaled units, nats: (steps,)."""
    with evaluating(model):
        return np.concatenate(list(_scores(model, store)))


def _scores(model: Forecaster, store: NumberStore) -> Iterator[np.ndarray]:
    """The log densities of the part, segment by segment."""
    device = device_of(model)
    if model.context is None:
        state: State | None = model.initial_state(1)
        for start in range(0, len(store), CHUNK):
            places = np.arange(start, min(start + CHUNK, len(store)) + 1)[None]
            scores, state = model.score(store.batch(places).to(device), state)
            yield scores[0].double().cpu().numpy()[max(0, store.first - 1 - start) :]
        return
    context, place = model.context, store.first - 1  # `place` stands before the next row to score
    while place < len(store):
        start = max(0, place - (context - max(1, context // 2)))
        end = min(start + context, len(store))
        scores, _ = model.score(store.batch(np.arange(start, end + 1)[None]).to(device))
        yield scores[0, place - start :].double().cpu().numpy()
        place = end


def forecasts(
    model: Forecaster, store: NumberStore, origins: np.ndarray, horizon: int, *, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forecast, and ends of its 95 % interval, 1 to h steps behind each origin, in scaled units: (O, h, C) each."""
    _checked(horizon)
    with evaluating(model), torch.inference_mode(), torch.random.fork_rng(devices=[]):
        distribution, state = _read_to(model, store, origins)
        if hasattr(model, "forecast"):
            mean, scale = (part.double().cpu().numpy() for part in model.forecast(state, horizon))
            return mean, mean - Z95 * scale, mean + Z95 * scale
        torch.manual_seed(seed)
        paths = sample_paths(model, distribution, state, len(origins), horizon)  # (S, O, h, C)
    low, middle, high = np.quantile(paths, [0.025, 0.5, 0.975], axis=0)
    return middle, low, high


def sample_paths(model: Forecaster, distribution: Any, state: State, num_origins: int, horizon: int) -> np.ndarray:
    """(S, O, h, C): each path is drawn step by step, what was drawn being read as if it had come."""
    steps = []
    values: Tensor = distribution.sample((PATHS,))  # (S, O, C)
    rows = torch.arange(num_origins, device=values.device).repeat(PATHS)
    state = select_rows(state, rows)  # S times all origins
    for step in range(horizon):
        steps.append(values)
        if step + 1 < horizon:
            following, state = model.step(values.reshape(PATHS * num_origins, -1), state)
            values = following.sample().view_as(values)
    return torch.stack(steps, dim=2).double().cpu().numpy()


def _read_to(model: Forecaster, store: NumberStore, origins: np.ndarray) -> tuple[Any, State]:
    """The distribution behind each origin and the state there; one row per origin."""
    device = device_of(model)
    if model.context is not None:  # as much of the past as it sees and still has room to go on
        lengths = np.minimum(kept_of(model.context), origins + 1)  # (O,) shorter at the beginning of the series
        steps = np.arange(lengths.max())
        is_step = steps < lengths[:, None]
        places = np.where(is_step, (origins - lengths + 1)[:, None] + steps, 0)  # the first row shows nothing
        inputs = Values(*_rows_at(store, places), None if is_step.all() else torch.from_numpy(is_step))
        return model.start(Batch({"values": inputs}, {}).to(device))
    state, states, rows, before = model.initial_state(1), [], [], 0
    for origin in origins:
        if origin > before:
            _, after = model.score(store.batch(np.arange(before, origin + 1)[None]).to(device), state)
            assert after is not None
            state = after
        states.append(select_rows(state, torch.zeros(1, dtype=torch.long, device=device)))
        rows.append(origin)
        before = origin
    joined = State({name: torch.cat([s.per_row[name] for s in states]) for name in states[0].per_row})
    values, is_observed = _rows_at(store, np.array(rows))
    return model.step(values.to(device), joined, is_observed.to(device))


def _rows_at(store: NumberStore, places: np.ndarray) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(store.values[places].astype(np.float32)), torch.from_numpy(store.is_observed[places])


def _origins(store: NumberStore, horizon: int) -> np.ndarray:
    """The last rows known before each forecast: spread over the part, the first just before it."""
    first, last = store.first - 1, len(store) - horizon
    num = max(1, min(MAX_ORIGINS, last - first + 1))
    return np.unique(np.linspace(first, last, num).round().astype(np.int64))


def _own_units(store: NumberStore, scaling: ValueSpec, places: np.ndarray) -> np.ndarray:
    values = scaling.decode(store.values[places])
    values[~store.is_observed[places]] = np.nan
    return values


def _naive(
    store: NumberStore, scaling: ValueSpec, origins: np.ndarray, horizon: int, seasons: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """What the last number, and the number a season of its column before, would have forecast: (O, h, C) each."""
    filled = _own_units(store, scaling, np.arange(len(store) + 1))
    filled[0] = scaling.mean  # before anything is known
    for row in range(1, len(filled)):  # a missing number is what it was before
        gaps = np.isnan(filled[row])
        filled[row, gaps] = filled[row - 1, gaps]
    naive = np.repeat(filled[origins][:, None], horizon, axis=1)
    ahead, season = np.arange(1, horizon + 1)[:, None], np.asarray(seasons)
    back = origins[:, None, None] + ahead - season * -(-ahead // season)  # (O, h, C): the last such row known
    seasonal = np.where(back >= 1, filled[np.maximum(back, 0), np.arange(len(season))], naive)
    return naive, seasonal
