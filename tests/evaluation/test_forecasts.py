"""Scores of forecasts, with models whose forecasts are known exactly: a random walk, and kin that say what they see."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, Normal

from seqwise.config import to_json
from seqwise.data.batch import Batch, Values
from seqwise.data.numbers import NumberStore, ValueSpec
from seqwise.errors import ConfigError
from seqwise.evaluation.forecasts import (
    MAX_ORIGINS,
    Z95,
    ForecastScore,
    _read_to,
    default_horizon,
    evaluate_forecasts,
    forecasts,
    log_densities_of,
)
from seqwise.evaluation.likelihood import CHUNK
from seqwise.models import MODELS
from seqwise.models.contract import State, evaluating


class RandomWalk:
    """p(next | last number seen of each column) is normal around it; around zero where none was seen."""

    context: int | None = None

    def __init__(self, deviation: float = 1.0, *, num_columns: int = 1, context: int | None = None):
        self.deviation, self.num_columns, self.context = deviation, num_columns, context

    def initial_state(self, batch_size: int) -> State:
        return State({"last": torch.zeros(batch_size, self.num_columns)})

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State]:
        state, scores = state or self.initial_state(len(batch)), []
        inputs, targets = batch.inputs["values"], batch.targets["values"]
        assert self.context is None or inputs.shape[1] <= self.context
        for t in range(inputs.shape[1]):
            distribution, state = self.step(inputs.values[:, t], state, inputs.is_observed[:, t])
            log_density = distribution.base_dist.log_prob(targets.values[:, t])
            scores.append((log_density * targets.is_observed[:, t]).sum(dim=1))
        return torch.stack(scores, dim=1), state

    def start(self, prompt: Batch) -> tuple[Distribution, State]:
        inputs: Values = prompt.inputs["values"]
        assert self.context is not None
        assert inputs.shape[1] < self.context
        state = self.initial_state(len(prompt))
        there = inputs.is_observed if inputs.is_step is None else inputs.is_observed & inputs.is_step.unsqueeze(-1)
        for t in range(inputs.shape[1]):
            distribution, state = self.step(inputs.values[:, t], state, there[:, t])
        return distribution, state

    def step(self, values: Tensor, state: State, is_observed: Tensor | None = None) -> tuple[Any, State]:
        there = torch.ones_like(values, dtype=torch.bool) if is_observed is None else is_observed
        last = torch.where(there, values, state.per_row["last"])
        return Independent(Normal(last, self.deviation), 1), State({"last": last})


class ExactWalk(RandomWalk):
    """The same, and it says its distribution h steps ahead itself."""

    def step(self, values: Tensor, state: State, is_observed: Tensor | None = None) -> tuple[Any, State]:
        return None, super().step(values, state, is_observed)[1]

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State]:
        plain = RandomWalk(self.deviation, num_columns=self.num_columns)
        return plain.score(batch, state)

    def forecast(self, state: State, horizon: int) -> tuple[Tensor, Tensor]:
        last = state.per_row["last"].unsqueeze(1).expand(-1, horizon, -1)
        growth = torch.arange(1, horizon + 1).sqrt().view(1, -1, 1)
        return last, (self.deviation * growth).expand_as(last)


def walk(num_rows: int, num_columns: int = 1, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(num_rows, num_columns)).cumsum(axis=0)


def no_scaling(num_columns: int = 1) -> ValueSpec:
    return ValueSpec([f"c{i}" for i in range(num_columns)], np.zeros(num_columns), np.ones(num_columns))


def store_of(values: np.ndarray, first: int, scaling: ValueSpec | None = None) -> NumberStore:
    """A series in its own units (N, C), NaN where missing; its part begins at row `first`, counted from 1."""
    scaled = (scaling or no_scaling(values.shape[1])).encode(values)
    nothing = np.full((1, values.shape[1]), np.nan)
    rows = np.concatenate([nothing, scaled])
    return NumberStore(np.nan_to_num(rows), ~np.isnan(rows), first)


def with_gaps(values: np.ndarray, share: float, seed: int = 1) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(values.shape) < share, np.nan, values)


OWN = ValueSpec(["a", "b"], np.array([100.0, -3.0]), np.array([20.0, 0.05]))


def in_own_units(num_rows: int, *, gaps: float = 0.0) -> np.ndarray:
    return with_gaps(OWN.decode(walk(num_rows, 2)), gaps)


# -- log-likelihood --------------------------------------------------------------------------------------------------


def log_density_by_hand(values: np.ndarray, first: int, deviation: float) -> list[float]:
    """log p of each row of the part, in own units: normal around the last number of its column (mean where none)."""
    found = []
    for row in range(first - 1, len(values)):
        total = 0.0
        for column, scale in enumerate(OWN.scale):
            if math.isnan(values[row, column]):
                continue
            before = [v for v in values[:row, column] if not math.isnan(v)]
            last = before[-1] if before else OWN.mean[column]
            error = (values[row, column] - last) / (deviation * scale)
            total += -0.5 * error**2 - math.log(deviation * scale) - 0.5 * math.log(2 * math.pi)
        found.append(total)
    return found


@pytest.mark.parametrize("gaps", [0.0, 0.4])
@pytest.mark.parametrize("first", [1, 2, 31])
def test_the_log_likelihood_is_in_the_units_of_the_data(gaps: float, first: int) -> None:
    values = in_own_units(60, gaps=gaps)
    score = evaluate_forecasts(
        RandomWalk(0.7, num_columns=2), store_of(values, first, OWN), OWN, seasons=[1, 1], horizon=3
    )
    expected = np.array(log_density_by_hand(values, first, 0.7))
    assert score.log_densities == pytest.approx(expected, abs=2e-3)
    is_there = ~np.isnan(values[first - 1 :]).all(axis=1)
    assert score.observed.tolist() == is_there.tolist()
    assert score.log_likelihood == pytest.approx(expected[is_there].mean(), abs=1e-3)
    assert score.nats_per_step == -score.log_likelihood


def test_other_units_shift_the_log_likelihood_by_the_log_of_the_scale() -> None:
    """Degrees or milli-degrees: the same forecasts, log 1000 nats apart."""
    values = walk(80)
    small, large = (ValueSpec(["a"], np.zeros(1), np.array([scale])) for scale in (1.0, 1000.0))
    one, other = (
        evaluate_forecasts(RandomWalk(), store_of(values * s.scale, 41, s), s, seasons=[1], horizon=5)
        for s in (small, large)
    )
    assert one.log_likelihood - other.log_likelihood == pytest.approx(math.log(1000), abs=1e-4)
    assert other.mae() == pytest.approx(1000 * one.mae(), rel=1e-4)
    assert other.relative_error == pytest.approx(one.relative_error, rel=1e-4)
    assert other.coverage == one.coverage


@pytest.mark.parametrize("num_rows", [1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7])
def test_a_long_series_is_read_in_chunks_as_if_at_once(num_rows: int) -> None:
    model, store = RandomWalk(num_columns=2), store_of(with_gaps(walk(num_rows, 2), 0.3), 1)
    whole, _ = model.score(store.batch(np.arange(num_rows + 1)[None]))
    assert log_densities_of(model, store) == pytest.approx(whole[0].numpy(), abs=1e-4)


@pytest.mark.parametrize("first", [1, 2, 9, 40])
@pytest.mark.parametrize("context", [2, 3, 8, 100])
def test_a_model_with_a_context_scores_each_row_once_behind_half_a_context_at_least(context: int, first: int) -> None:
    store = store_of(np.arange(1.0, 51.0)[:, None], first)

    class Counts(RandomWalk):
        """Instead of a density: the row that is scored, and how many rows were read for it."""

        def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State]:
            assert state is None
            steps = 1 + torch.arange(batch.inputs["values"].shape[1])
            assert len(steps) <= context
            return batch.targets["values"].values[..., 0] + steps / 1000, State({})

    rows, read = np.divmod(np.round(1000 * log_densities_of(Counts(context=context), store)), 1000)
    assert rows.tolist() == list(range(first, 51))
    at_least = np.minimum(rows, context - max(1, context // 2) + 1)  # `rows` rows stand before, the empty one included
    assert (read >= at_least).all()
    assert (read <= context).all()


@pytest.mark.parametrize("context", [4, 10, 64])
def test_context_or_carried_state_is_the_same_where_the_last_row_says_all(context: int) -> None:
    values = in_own_units(200)
    store = store_of(values, 101, OWN)
    carried, windows = RandomWalk(num_columns=2), RandomWalk(num_columns=2, context=context)
    assert log_densities_of(windows, store) == pytest.approx(log_densities_of(carried, store), abs=1e-4)
    origins = np.array([100, 140, 190])
    for one, other in zip(
        forecasts(windows, store, origins, 6, seed=4), forecasts(carried, store, origins, 6, seed=4), strict=True
    ):
        assert one == pytest.approx(other, abs=1e-4)


def test_origins_at_the_very_beginning_are_forecast_by_a_model_with_a_context() -> None:
    store = store_of(walk(30) + 50, 1)
    middle, _, _ = forecasts(RandomWalk(0.01, context=8), store, np.array([0, 1, 20]), 2)
    assert middle[:, 0, 0] == pytest.approx([0, store.values[1, 0], store.values[20, 0]], abs=0.02)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_an_early_origin_takes_no_history_from_later_ones(gaps: float) -> None:
    """Each origin is forecast as if it were the only one: what a context holds, and less only where there is less."""
    store = store_of(in_own_units(80, gaps=gaps), 1, OWN)
    model = tiny_model("gpt", store)
    origins = np.array([0, 1, 4, 8, 9, 30, 79])
    with torch.inference_mode(), evaluating(model):
        means = _read_to(model, store, origins)[0].mean
        alone = torch.cat([_read_to(model, store, origins[i : i + 1])[0].mean for i in range(len(origins))])
        whole = model.start(store.batch(np.arange(22, 32)[None]).rows(slice(0, 1)))[0].mean  # rows 22 to 30
    assert means.numpy() == pytest.approx(alone.numpy(), abs=1e-5)
    assert means[5].numpy() == pytest.approx(whole[0].numpy(), abs=1e-5)  # three quarters of a context of 12


def test_a_part_that_begins_the_series_is_forecast_from_a_whole_context() -> None:
    values = np.tile(np.array([[0.0], [0.0], [9.0]]), (40, 1))

    class LastThree(RandomWalk):
        """Forecasts the mean of the last three rows it reads."""

        def start(self, prompt: Batch) -> tuple[Distribution, State]:
            inputs: Values = prompt.inputs["values"]
            rows = [row[:n][-3:].mean(dim=0) for row, n in zip(inputs.values, inputs.lengths.tolist(), strict=True)]
            last = torch.stack(rows)
            return Independent(Normal(last, 0.01), 1), State({"last": last})

        def step(self, values: Tensor, state: State, is_observed: Tensor | None = None) -> tuple[Any, State]:
            return Independent(Normal(state.per_row["last"], 0.01), 1), state

    score = evaluate_forecasts(LastThree(context=8), store_of(values, 1), no_scaling(), seasons=[1], horizon=3)
    assert score.errors["model"][3:].mean(axis=(1, 2)) == pytest.approx(4, abs=0.05)  # of |3 - 0|, |3 - 0|, |3 - 9|


# -- forecasts -------------------------------------------------------------------------------------------------------


def test_sampled_intervals_widen_and_cover_as_they_should() -> None:
    score = evaluate_forecasts(RandomWalk(), store_of(walk(3000), 1001), no_scaling(), seasons=[1], horizon=10)
    assert score.is_covered.shape == (MAX_ORIGINS, 10, 1)
    assert score.coverage == pytest.approx(0.95, abs=0.03)
    store = store_of(walk(300), 101)
    middle, low, high = forecasts(RandomWalk(), store, np.arange(100, 200), 9)
    width = (high - low).mean(axis=(0, 2))
    assert width == pytest.approx(2 * Z95 * np.sqrt(np.arange(1, 10)), rel=0.05)
    assert ((low <= middle) & (middle <= high)).all()
    assert middle.mean(axis=(1, 2)) == pytest.approx(store.values[100:200, 0], abs=0.6)


@pytest.mark.parametrize(("deviation", "at_least", "at_most"), [(0.2, 0.2, 0.5), (5.0, 0.999, 1.0)])
def test_a_model_too_sure_or_too_unsure_of_itself_is_seen(deviation: float, at_least: float, at_most: float) -> None:
    store = store_of(walk(1000), 501)
    score = evaluate_forecasts(RandomWalk(deviation), store, no_scaling(), seasons=[1], horizon=10)
    assert at_least <= score.coverage <= at_most


def test_a_model_that_says_its_forecast_is_taken_at_its_word() -> None:
    values = with_gaps(OWN.decode(walk(60, 2)), 0.2)
    store = store_of(values, 31, OWN)
    origins = np.array([30, 31, 40])
    middle, low, high = forecasts(ExactWalk(0.5, num_columns=2), store, origins, 4)
    for place, origin in enumerate(origins):
        for column in range(2):
            last = [v for v in values[:origin, column] if not math.isnan(v)][-1]
            for ahead in range(1, 5):
                assert OWN.decode(middle)[place, ahead - 1, column] == pytest.approx(last, abs=1e-3)
                half = Z95 * 0.5 * math.sqrt(ahead)
                assert high[place, ahead - 1, column] - middle[place, ahead - 1, column] == pytest.approx(half)
                assert middle[place, ahead - 1, column] - low[place, ahead - 1, column] == pytest.approx(half)


def test_sampled_and_said_forecasts_of_one_model_agree() -> None:
    store = store_of(walk(400, 2), 201)
    said, sampled = (
        evaluate_forecasts(kind(num_columns=2), store, no_scaling(2), seasons=[1, 1], horizon=8)
        for kind in (ExactWalk, RandomWalk)
    )
    assert sampled.log_likelihood == pytest.approx(said.log_likelihood, abs=1e-6)
    assert sampled.mae() == pytest.approx(said.mae(), rel=0.05)
    assert sampled.coverage == pytest.approx(said.coverage, abs=0.02)


@pytest.mark.parametrize("num_rows", [8, 30, 99])
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_the_error_is_that_of_every_forecast_that_has_room(num_rows: int, gaps: float) -> None:
    """A random walk forecasts what naive forecasts: the last number."""
    values, horizon = with_gaps(OWN.decode(walk(50 + num_rows, 2)), gaps), 5
    score = evaluate_forecasts(
        ExactWalk(num_columns=2), store_of(values, 51, OWN), OWN, seasons=[1, 1], horizon=horizon
    )
    errors: dict[int, list[float]] = {0: [], 1: []}
    for origin in range(50, 50 + num_rows - horizon + 1):
        for column in (0, 1):
            last = [v for v in values[:origin, column] if not math.isnan(v)][-1]
            for truth in values[origin : origin + horizon, column]:
                if not math.isnan(truth):
                    errors[column].append(abs(truth - last))
    assert score.errors["model"].shape == (num_rows - horizon + 1, horizon, 2)
    assert score.mae() == pytest.approx(np.mean(errors[0] + errors[1]), rel=1e-4)
    assert score.mae("naive") == pytest.approx(np.mean(errors[0] + errors[1]), rel=1e-9)
    assert score.relative_error == pytest.approx(1, rel=1e-3)
    found = score.to_dict()["mae_by_column"]
    assert found == pytest.approx({"a": np.mean(errors[0]), "b": np.mean(errors[1])}, rel=1e-3)


def test_a_forecast_is_not_told_what_it_has_to_forecast() -> None:
    values = walk(60)
    changed = values.copy()
    changed[45:] += 1000
    for model in (RandomWalk(), RandomWalk(context=8), ExactWalk()):
        one, other = (forecasts(model, store_of(v, 41), np.array([40, 45]), 5, seed=2) for v in (values, changed))
        for a, b in zip(one, other, strict=True):
            assert a.tolist() == b.tolist()


def test_the_relative_error_is_a_mean_over_columns_whatever_their_units() -> None:
    errors = {
        "model": np.array([[[1.0, 300.0]], [[3.0, 100.0]]]),
        "naive": np.array([[[4.0, 100.0]], [[4.0, 100.0]]]),
    }
    score = ForecastScore(np.zeros(2), np.ones(2, bool), errors, np.ones((2, 1, 2)), ["a", "b"], [1, 1], "")
    assert score.relative_error == pytest.approx((2 / 4 + 200 / 100) / 2)


def test_a_column_that_stands_still_does_not_drown_the_relative_error() -> None:
    errors = {"model": np.array([[[2.0, 1e-3]]]), "naive": np.array([[[4.0, 0.0]]])}
    score = ForecastScore(np.zeros(1), np.ones(1, bool), errors, np.ones((1, 1, 2)), ["a", "b"], [1, 1], "")
    assert score.relative_error == pytest.approx(0.5)


def test_the_same_seed_gives_the_same_forecast_and_leaves_chance_elsewhere_alone() -> None:
    store, origins = store_of(walk(40), 21), np.array([20, 30])
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, again, other = (forecasts(RandomWalk(), store, origins, 4, seed=seed)[0] for seed in (1, 1, 2))
    assert torch.rand(3).tolist() == expected.tolist()
    assert one.tolist() == again.tolist()
    assert one.tolist() != other.tolist()


# -- naive forecasts -------------------------------------------------------------------------------------------------


def naive_by_hand(values: np.ndarray, origin: int, horizon: int, column: int, season: int | None) -> list[float]:
    """What was there a season (or two, …) before each step to come, or the last number known at that time.

    Rows are counted from 1; season None is plain naive: the last number goes on.
    """

    def known_at(row: int) -> float:
        before = [v for v in values[:row, column] if not math.isnan(v)]
        return before[-1] if before else OWN.mean[column]

    found = []
    for ahead in range(1, horizon + 1):
        row = origin + ahead
        while season is not None and row > origin:
            row -= season
        found.append(known_at(row if season is not None and row >= 1 else origin))
    return found


@pytest.mark.parametrize("seasons", [[2, 2], [7, 7], [12, 12], [45, 45], [7, 3], [1, 12]])
@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_naive_forecasts_by_brute_force(seasons: list[int], gaps: float) -> None:
    values, first, horizon = in_own_units(70, gaps=gaps), 41, 9
    score = evaluate_forecasts(
        ExactWalk(num_columns=2), store_of(values, first, OWN), OWN, seasons=seasons, horizon=horizon
    )
    origins = range(first - 1, 70 - horizon + 1)
    assert score.errors["naive"].shape == (len(origins), horizon, 2)
    for who in ("naive", "seasonal"):
        for place, origin in enumerate(origins):
            for column in (0, 1):
                known = seasons[column] if who == "seasonal" else None
                expected = naive_by_hand(values, origin, horizon, column, known)
                truth = values[origin : origin + horizon, column]
                assert score.errors[who][place, :, column] == pytest.approx(np.abs(expected - truth), nan_ok=True)


def test_without_a_season_no_seasonal_forecast_is_shown() -> None:
    score = evaluate_forecasts(ExactWalk(num_columns=2), store_of(in_own_units(60), 31, OWN), OWN, seasons=[1, 1])
    assert set(score.errors) == {"model", "naive"}
    found = score.to_dict()
    assert (found["season"], found["mae_seasonal_naive"]) == (None, None)
    assert found["season_by_column"] == {"a": None, "b": None}
    assert "seasonal" not in score.headline() + str(dict(score.rows()))


def test_a_column_without_a_season_is_said_to_have_none() -> None:
    score = evaluate_forecasts(ExactWalk(num_columns=2), store_of(in_own_units(60), 31, OWN), OWN, seasons=[1, 12])
    rows = dict(score.rows())
    assert rows["MAE of seasonal naive (season none in a, 12 in b)"] == f"{score.mae('seasonal'):.5g}"
    assert "seasonal" not in rows["MAE of a"]
    assert "seasonal" in rows["MAE of b"]
    assert score.to_dict()["season_by_column"] == {"a": None, "b": 12}
    assert ",season=1/12|" in score.signature
    assert score.horizon == 12


def test_seasonal_naive_is_perfect_where_the_season_is() -> None:
    values = np.tile(np.array([[3.0], [8.0], [-1.0], [5.0]]), (20, 1))
    score = evaluate_forecasts(ExactWalk(), store_of(values, 41), no_scaling(), seasons=[4], horizon=10)
    assert score.mae("seasonal") == 0
    assert score.mae("naive") > 1


def test_a_part_that_begins_the_series_is_forecast_from_the_mean() -> None:
    score = evaluate_forecasts(
        ExactWalk(num_columns=2), store_of(in_own_units(12), 1, OWN), OWN, seasons=[3, 3], horizon=2
    )
    truth = in_own_units(12)[:2]
    for who in ("model", "naive", "seasonal"):
        assert score.errors[who][0] == pytest.approx(np.abs(truth - OWN.mean), rel=1e-5)


# -- the score -------------------------------------------------------------------------------------------------------


def numbers_in(found: Any) -> list[float]:
    if isinstance(found, dict | list):
        return [n for item in (found.values() if isinstance(found, dict) else found) for n in numbers_in(item)]
    return [found] if isinstance(found, int | float) else []


@pytest.mark.parametrize("gaps", [0.0, 0.5])
def test_the_score_as_a_dictionary_has_finite_numbers_and_can_be_sent(gaps: float) -> None:
    values = in_own_units(60, gaps=gaps)
    score = evaluate_forecasts(
        RandomWalk(num_columns=2), store_of(values, 31, OWN), OWN, seasons=[7, 7], scored="test:abc"
    )
    found = json.loads(json.dumps(score.to_dict(), allow_nan=False))
    assert all(math.isfinite(number) for number in numbers_in(found))
    assert (found["horizon"], found["season"], found["steps"]) == (7, 7, int(score.observed.sum()))
    assert found["mae"] == score.mae()
    assert found["interval"][0] <= found["log_likelihood_per_step"] <= found["interval"][1]
    assert found["signature"].startswith("forecast:horizon=7,origins=24,season=7|test:abc|seqwise=")


def test_a_column_that_ends_before_the_part_leaves_the_score_finite() -> None:
    values = in_own_units(60)
    values[31:, 1] = np.nan
    score = evaluate_forecasts(RandomWalk(num_columns=2), store_of(values, 33, OWN), OWN, seasons=[1, 1], horizon=4)
    found = json.loads(to_json(score.to_dict()))
    assert found["mae_by_column"].pop("b") is None
    assert math.isfinite(score.relative_error)
    json.dumps({**found, "mae_by_column": found["mae_by_column"]}, allow_nan=False)
    assert all(math.isfinite(value) for value in found.values() if isinstance(value, float))


def test_words_for_the_score_hold_its_numbers() -> None:
    score = evaluate_forecasts(RandomWalk(num_columns=2), store_of(in_own_units(60), 31, OWN), OWN, seasons=[7, 7])
    rows = dict(score.rows())
    assert f"log-likelihood {score.log_likelihood:.4f} nats per step" in score.headline()
    assert f"MAE {score.mae():.4g} over 7 steps" in score.headline()
    assert rows["MAE, 7 steps ahead"] == f"{score.mae():.5g}"
    assert rows["MAE of seasonal naive (season 7)"] == f"{score.mae('seasonal'):.5g}"
    assert rows["coverage of 95 % intervals"] == f"{100 * score.coverage:.1f} %"
    assert {"MAE of a", "MAE of b"} <= set(rows)
    assert rows["signature"] == f"`{score.signature}`"


@pytest.mark.parametrize(
    ("season", "asked", "num_rows", "expected"),
    [
        *((1, None, 60, 24), (7, None, 60, 7), (48, None, 60, 48), (49, None, 60, 24)),
        *((7, 3, 60, 3), (1, None, 5, 5), (1, 99, 5, 5), (1, 1, 1, 1)),
    ],
)
def test_the_horizon_is_a_season_or_a_day_and_no_longer_than_the_part(
    season: int, asked: int | None, num_rows: int, expected: int
) -> None:
    store = store_of(walk(100 + num_rows), 101)
    score = evaluate_forecasts(ExactWalk(), store, no_scaling(), seasons=[season], horizon=asked)
    assert score.horizon == expected
    if asked is None and num_rows == 60:
        assert default_horizon(season) == expected


def test_a_horizon_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a horizon of -1 steps is too short; ask for at least 1\."):
        evaluate_forecasts(ExactWalk(), store_of(walk(40), 21), no_scaling(), seasons=[1], horizon=-1)


# -- real families ---------------------------------------------------------------------------------------------------

SETTINGS: dict[str, dict[str, Any]] = {
    "hmm": {"num_states": 3},
    "kalman": {"state_dim": 3},
    "window": {"window": 4, "embed_dim": 4, "model_dim": 8},
    "conv": {"model_dim": 8, "num_layers": 2},
    "gru": {"model_dim": 8, "dropout": 0.5},
    "gpt": {"context": 12, "num_layers": 1, "model_dim": 8, "num_heads": 2, "dropout": 0.5},
}


def tiny_model(name: str, store: NumberStore) -> Any:
    row = MODELS[name]
    model = row.build(row.config(**SETTINGS[name]), schemas.of_numbers(2))
    if row.learns["next_values"] == "em":
        model.initialise([(store.values[1:], store.is_observed[1:])], seed=0)
        return model
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("name", list(SETTINGS))
@pytest.mark.parametrize("horizon", [1, 20])
def test_every_family_can_be_scored_beyond_its_context(name: str, horizon: int) -> None:
    values = in_own_units(80, gaps=0.2)
    store = store_of(values, 51, OWN)
    model = tiny_model(name, store)
    was_training = getattr(model, "training", None)
    one, other = (evaluate_forecasts(model, store, OWN, seasons=[7, 7], horizon=horizon) for _ in range(2))
    assert getattr(model, "training", None) == was_training  # and meanwhile nothing was dropped:
    assert one.to_dict() == other.to_dict()
    assert all(math.isfinite(number) for number in numbers_in(one.to_dict()))
    assert len(one.log_densities) == 30
