"""The Kalman filter against one large Gaussian, conditioned by plain linear algebra, and against statsmodels."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from safetensors.torch import load, save

from seqwise.data.batch import Batch, Values, next_value_batch
from seqwise.errors import CheckpointError, ConfigError, DataError
from seqwise.models.contract import State, select_rows
from seqwise.models.kalman import GROWTH, Kalman, KalmanConfig

Series = tuple[np.ndarray, np.ndarray | None]


def build(state_dim: int, num_columns: int, **settings: Any) -> Kalman:
    return Kalman(KalmanConfig(state_dim=state_dim, **settings), schemas.of_numbers(num_columns))


def random_model(state_dim: int, num_columns: int, seed: int = 0) -> Kalman:
    """Dynamics that turn and forget slowly; every parameter is different."""
    model, random = build(state_dim, num_columns), np.random.default_rng(seed)
    model.A = np.linalg.qr(random.normal(size=(state_dim, state_dim)))[0] * random.uniform(0.6, 0.98, size=state_dim)
    model.Q, model.P0 = (random_covariance(state_dim, random) for _ in range(2))
    model.H, model.d = random.normal(size=(num_columns, state_dim)), random.normal(size=num_columns)
    model.R, model.m0 = random.uniform(0.1, 1, size=num_columns), random.normal(size=state_dim)
    return model


def random_covariance(size: int, random: np.random.Generator) -> np.ndarray:
    root = random.normal(size=(size, size)) / np.sqrt(size)
    return root @ root.T + 0.1 * np.eye(size)


def series_of(model: Kalman, length: int, *, missing: float = 0.3, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A series drawn from the model with gaps in it; its second step is not observed at all."""
    values = model.sample(length, seed)
    seen = np.random.default_rng(seed).random(values.shape) >= missing
    if missing and length > 1:
        seen[1] = False
    return np.where(seen, values, np.nan), seen


def batch_of(*series: tuple[np.ndarray, np.ndarray]) -> Batch:
    """Series of the same length as one batch, each behind a row at which nothing is observed."""
    values = np.stack([np.concatenate([np.zeros((1, v.shape[1])), np.nan_to_num(v)]) for v, _ in series])
    seen = np.stack([np.concatenate([np.zeros((1, s.shape[1]), dtype=bool), s]) for _, s in series])
    return next_value_batch(torch.from_numpy(values), torch.from_numpy(seen))


@dataclass
class Posterior:
    """The distribution of x_0..x_T (first) and y_1..y_T (then) given some of the latter, as one Gaussian."""

    mean: np.ndarray
    covariance: np.ndarray
    log_likelihood: float
    D: int
    num_states: int

    def states(self, *times: int) -> np.ndarray:
        return np.concatenate([np.arange(t * self.D, (t + 1) * self.D) for t in times])

    def moments(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.mean[places], self.covariance[np.ix_(places, places)]

    def cross(self, t: int, s: int) -> np.ndarray:
        return self.covariance[np.ix_(self.states(t), self.states(s))]


def condition(model: Kalman, values: np.ndarray, seen: np.ndarray) -> Posterior:
    """All of (1) and (2) written as one linear map of independent noises, then conditioned on what is seen."""
    T, C = values.shape
    D = len(model.A)
    state, mean = np.zeros((D, (T + 1) * D)), model.m0
    state[:, :D] = np.eye(D)
    rows, means = [state], [mean]
    for t in range(1, T + 1):
        state, mean = model.A @ state, model.A @ mean
        state[:, t * D : (t + 1) * D] = np.eye(D)
        rows.append(state)
        means.append(mean)
    map_ = np.concatenate([*rows, *(model.H @ row for row in rows[1:])])
    center = np.concatenate([*means, *(model.H @ m + model.d for m in means[1:])])
    noise = np.zeros(((T + 1) * D, (T + 1) * D))
    for t in range(T + 1):
        noise[t * D : (t + 1) * D, t * D : (t + 1) * D] = model.P0 if t == 0 else model.Q
    covariance = map_ @ noise @ map_.T
    covariance[np.arange((T + 1) * D, len(covariance)), np.arange((T + 1) * D, len(covariance))] += np.tile(model.R, T)
    known = (T + 1) * D + np.flatnonzero(seen)
    error = values[seen] - center[known]
    inner, outer = covariance[np.ix_(known, known)], covariance[:, known]
    log_likelihood = -0.5 * (
        len(known) * np.log(2 * np.pi) + np.linalg.slogdet(inner)[1] + error @ np.linalg.solve(inner, error)
    )
    gain = np.linalg.solve(inner, outer.T).T
    return Posterior(center + gain @ error, covariance - gain @ outer.T, float(log_likelihood), D, (T + 1) * D)


def close(a: Any, b: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=tolerance, rtol=tolerance)


# -- beliefs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("D", "C", "missing"), [(1, 1, 0.0), (2, 3, 0.4), (3, 1, 0.3), (3, 2, 0.0), (2, 2, 0.9)])
def test_filter_is_the_gaussian_conditioned_on_the_past(D: int, C: int, missing: float) -> None:
    model = random_model(D, C, seed=D + C)
    values, seen = series_of(model, 5, missing=missing)
    found, before = model.filter(values, seen), 0.0
    for t in range(1, 6):
        past = condition(model, values[:t], seen[:t])
        mean, covariance = past.moments(past.states(t))
        close(found.means[t - 1], mean)
        close(found.covariances[t - 1], covariance)
        earlier = np.where(np.arange(t)[:, None] < t - 1, seen[:t], False)
        mean, covariance = (part := condition(model, values[:t], earlier)).moments(part.states(t))
        close(found.predicted_means[t - 1], mean)
        close(found.predicted_covariances[t - 1], covariance)
        close(found.log_likelihoods[t - 1], past.log_likelihood - before)
        before = past.log_likelihood
    close(model.log_likelihood([(values, seen)]), before)
    assert missing == 0 or found.log_likelihoods[1] == 0


@pytest.mark.parametrize(("D", "C", "missing"), [(1, 1, 0.0), (2, 3, 0.4), (3, 2, 0.0), (3, 2, 0.6)])
def test_smoother_is_the_gaussian_conditioned_on_everything(D: int, C: int, missing: float) -> None:
    model = random_model(D, C, seed=D)
    values, seen = series_of(model, 6, missing=missing)
    found, expected = model.smooth(values, seen), condition(model, values, seen)
    for t, (mean, covariance) in enumerate(zip(found.means, found.covariances, strict=True), start=1):
        for a, b in zip((mean, covariance), expected.moments(expected.states(t)), strict=True):
            close(a, b)
        close(found.cross_covariances[t - 1], expected.cross(t, t - 1))
    for a, b in zip((found.start_mean, found.start_covariance), expected.moments(expected.states(0)), strict=True):
        close(a, b)


@pytest.mark.parametrize("missing", [0.0, 0.25])
@pytest.mark.filterwarnings("ignore")
def test_log_likelihood_is_that_of_statsmodels(missing: float) -> None:
    mlemodel = pytest.importorskip("statsmodels.tsa.statespace.mlemodel")
    model = random_model(4, 3)
    values, seen = series_of(model, 300, missing=missing)
    other = mlemodel.MLEModel(np.where(seen, values, np.nan), k_states=4, k_posdef=4)
    other["transition"], other["design"], other["selection"] = model.A, model.H, np.eye(4)
    other["state_cov"], other["obs_cov"], other["obs_intercept"] = model.Q, np.diag(model.R), model.d[:, None]
    other.ssm.initialize_known(model.A @ model.m0, model.A @ model.P0 @ model.A.T + model.Q)
    assert model.log_likelihood([(values, seen)]) == pytest.approx(other.ssm.loglike(), abs=1e-6)
    theirs = other.ssm.smooth()
    found = model.smooth(values, seen)
    close(found.means.T, theirs.smoothed_state, 1e-7)
    close(found.covariances.transpose(1, 2, 0), theirs.smoothed_state_cov, 1e-7)


def test_covariances_that_have_settled_are_shared_and_change_nothing() -> None:
    model = random_model(4, 2)
    values = model.sample(1500, seed=0)
    seen = np.ones(values.shape, dtype=bool)
    seen[700:703, 1] = seen[900] = False  # they have to settle again
    forward = model._forward(np.where(seen, values, 0.0), seen)
    assert len(forward.covariances) < 600
    batch = batch_of((values, seen))
    one_by_one, state = model.score(batch)
    close(forward.log_likelihoods[1:], one_by_one[0])
    close(model.A @ forward.means[-2], state.per_row["mean"][0])  # the last target has not been read
    smoothed = model.smooth(values, seen)
    for t in (1, 650, 701, 899, 1000, 1400):  # (7) and (9), as they stand
        P = forward.covariances[forward.slot[t]]
        ahead = model.A @ P @ model.A.T + model.Q
        J = P @ model.A.T @ np.linalg.inv(ahead)
        close(smoothed.means[t - 1], forward.means[t] + J @ (smoothed.means[t] - forward.predicted_means[t + 1]))
        close(smoothed.covariances[t - 1], P + J @ (smoothed.covariances[t] - ahead) @ J.T)


# -- the verbs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_forecasts_are_the_gaussian_conditioned_on_the_past(missing: float) -> None:
    model = random_model(3, 2)
    values, seen = series_of(model, 4, missing=missing)
    _, state = model.start(Batch({"values": prompt(values, seen)}, {}))
    mean, scale = model.forecast(state, 5)
    assert mean.shape == scale.shape == (1, 5, 2)
    later = np.concatenate([values, np.zeros((5, 2))]), np.concatenate([seen, np.zeros((5, 2), dtype=bool)])
    expected = condition(model, *later)
    places = expected.num_states + np.arange(4 * 2, 9 * 2)
    expected_mean, covariance = expected.moments(places)
    close(mean[0].flatten(), expected_mean)
    close(scale[0].flatten() ** 2, np.diag(covariance))


def prompt(values: np.ndarray, seen: np.ndarray) -> Values:
    """One series, all of it, as a prompt."""
    nothing = np.zeros((1, values.shape[1]))
    return Values(
        torch.from_numpy(np.concatenate([nothing, np.nan_to_num(values)]))[None],
        torch.from_numpy(np.concatenate([nothing.astype(bool), seen]))[None],
    )


def test_stepping_gives_the_scores_of_the_whole() -> None:
    model = random_model(3, 2)
    both = [series_of(model, 8, missing=0, seed=seed) for seed in (1, 2)]
    scores, _ = model.score(batch_of(*both))
    assert scores.shape == (2, 8)
    assert scores.dtype == torch.float64
    nothing = Values(torch.zeros(2, 1, 2), torch.zeros(2, 1, 2, dtype=torch.bool))
    distribution, state = model.start(Batch({"values": nothing}, {}))
    for t in range(8):
        row = torch.from_numpy(np.stack([values[t] for values, _ in both]))
        close(distribution.log_prob(row), scores[:, t])
        close(distribution.mean, model.forecast(state, 1)[0][:, 0])
        close(distribution.stddev, model.forecast(state, 1)[1][:, 0])
        distribution, state = model.step(row, state)
    at_once, _ = model.start(Batch({"values": prompt(*both[0])}, {}))
    close(distribution.mean[0], at_once.mean[0])
    close(distribution.covariance_matrix[0], at_once.covariance_matrix[0])


def test_missing_numbers_are_left_out_of_scores_and_steps() -> None:
    model = random_model(3, 2)
    values, seen = series_of(model, 7, missing=0.4)
    scores, _ = model.score(batch_of((values, seen)))
    close(scores[0], model.filter(values, seen).log_likelihoods)
    assert scores[0, 1] == 0
    _, state = model.start(Batch({"values": prompt(values[:4], seen[:4])}, {}))
    row, there = torch.from_numpy(np.nan_to_num(values[4:5])), torch.from_numpy(seen[4:5])
    stepped, _ = model.step(row, state, there)
    at_once, _ = model.start(Batch({"values": prompt(values[:5], seen[:5])}, {}))
    close(stepped.mean, at_once.mean)
    close(stepped.covariance_matrix, at_once.covariance_matrix)


def test_chunks_with_carried_state_give_the_score_of_the_whole() -> None:
    model = random_model(3, 2)
    values, seen = series_of(model, 12, missing=0.2)
    batch = batch_of((values, seen))
    whole, end = model.score(batch)
    state, scores = model.initial_state(1), []
    for a, b in ((0, 5), (5, 6), (6, 12)):
        part = batch._map(lambda tensor, a=a, b=b: tensor[:, a:b])
        before = {name: tensor.clone() for name, tensor in state.per_row.items()}
        log_densities, after = model.score(part, state)
        assert all(torch.equal(before[name], state.per_row[name]) for name in before)
        scores.append(log_densities)
        state = after
    close(torch.cat(scores, dim=1), whole, 1e-12)
    close(state.per_row["covariance"], end.per_row["covariance"], 1e-12)


def test_padding_and_batch_composition_change_nothing() -> None:
    model = random_model(3, 2)
    long, short = series_of(model, 9, seed=1), series_of(model, 4, seed=2)
    values = np.stack([long[0], np.concatenate([short[0], np.full((5, 2), 7.0)])])
    seen = np.stack([long[1], np.concatenate([short[1], np.ones((5, 2), dtype=bool)])])
    batch = batch_of((values[0], seen[0]), (values[1], seen[1]))
    is_step = torch.tensor([[True] * 9, [True] * 4 + [False] * 5])
    inputs, targets = batch.inputs["values"], batch.targets["values"]
    padded = Batch(
        {"values": Values(inputs.values, inputs.is_observed, is_step)},
        {"values": Values(targets.values, targets.is_observed, is_step)},
    )
    together, state = model.score(padded)
    close(together[1, 4:], np.zeros(5))
    for row, one in enumerate((long, short)):
        alone, alone_state = model.score(batch_of(one))
        close(together[row, : len(one[0])], alone[0], 1e-12)
        for name in ("mean", "covariance"):
            close(select_rows(state, torch.tensor([row])).per_row[name], alone_state.per_row[name], 1e-12)


def test_a_saved_and_loaded_model_gives_the_same_numbers() -> None:
    model, copy = random_model(3, 2), build(3, 2)
    copy.load_state_dict(load(save(model.state_dict())))
    batch = batch_of(series_of(model, 8))
    assert torch.equal(copy.score(batch)[0], model.score(batch)[0])
    assert all(tensor.dtype == torch.float64 for tensor in model.state_dict().values())
    assert model.num_parameters == 9 + 6 + 6 + 2 + 2 + 3 + 6


def test_samples_follow_the_model() -> None:
    model = random_model(2, 2)
    rows = np.stack([model.sample(3, seed) for seed in range(4000)])
    expected = condition(model, np.zeros((3, 2)), np.zeros((3, 2), dtype=bool))
    mean, covariance = expected.moments(expected.num_states + np.arange(6))
    spread = np.sqrt(np.diag(covariance))
    assert np.abs(rows.reshape(4000, 6).mean(axis=0) - mean).max() < 5 * spread.max() / np.sqrt(4000)
    found = np.cov(rows.reshape(4000, 6).T)
    assert np.abs(found / np.outer(spread, spread) - covariance / np.outer(spread, spread)).max() < 0.1
    np.testing.assert_array_equal(model.sample(3, 7), rows[7])


# -- learning ----------------------------------------------------------------------------------------------------


def test_one_step_of_em_is_that_of_the_equations() -> None:
    """(10) to (14) with expectations from the one large Gaussian; no limit binds here."""
    model = random_model(2, 3)
    series = [series_of(model, 6, seed=seed) for seed in (1, 2, 3)]
    before, after, cross, first = np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2)), []
    rows: list[list[tuple[float, np.ndarray, np.ndarray]]] = [[], [], []]
    log_likelihood = 0.0
    for values, seen in series:
        posterior = condition(model, values, seen)
        log_likelihood += posterior.log_likelihood
        first.append(posterior.moments(posterior.states(0)))
        for t in range(1, 7):
            (old, old_spread), (new, new_spread) = (posterior.moments(posterior.states(s)) for s in (t - 1, t))
            before += old_spread + np.outer(old, old)
            after += new_spread + np.outer(new, new)
            cross += posterior.cross(t, t - 1) + np.outer(new, old)
            for c in np.flatnonzero(seen[t - 1]):
                with_one, square = np.append(new, 1.0), np.zeros((3, 3))
                square[:2, :2] = new_spread
                rows[c].append((values[t - 1, c], with_one, square + np.outer(with_one, with_one)))
    assert model.em_step(series) == pytest.approx(log_likelihood)
    A = cross @ np.linalg.inv(before)
    close(model.A, A)
    close(model.Q, (after - A @ cross.T - cross @ A.T + A @ before @ A.T) / 18)
    for c in range(3):
        weights = np.linalg.solve(sum(s for *_, s in rows[c]), sum(y * z for y, z, _ in rows[c]))
        close(np.append(model.H[c], model.d[c]), weights)
        close(model.R[c], np.mean([y**2 - 2 * y * weights @ z + weights @ s @ weights for y, z, s in rows[c]]))
    close(model.m0, np.mean([mean for mean, _ in first], axis=0))
    close(model.P0, np.mean([spread + np.outer(m - model.m0, m - model.m0) for m, spread in first], axis=0))


def rises(model: Kalman, series: list[Any], steps: int) -> list[float]:
    curve = [model.em_step(series) for _ in range(steps)]
    curve.append(model.log_likelihood(series))
    worst = min(np.diff(curve))
    assert worst >= -1e-9 * max(map(abs, curve)), f"fell by {-worst}"
    assert np.isfinite(curve).all()
    return curve


@pytest.mark.parametrize("init", ["subspace", "random"])
@pytest.mark.parametrize("seed", range(4))
def test_em_never_lowers_the_likelihood(init: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    truth = random_model(int(random.integers(1, 5)), int(random.integers(1, 4)), seed=seed)
    series = [series_of(truth, int(random.integers(1, 60)), missing=0.3, seed=seed + i) for i in range(3)]
    model = build(int(random.integers(1, 7)), truth.num_columns, init=init, season=int(random.integers(0, 13)))
    model.initialise(series, seed)
    curve = rises(model, series, 40)
    assert curve[-1] > curve[0]


def test_em_rises_where_limits_bind() -> None:
    """An exponential wants a growing mode, a straight line a noise of zero, a constant a column without noise."""
    time = np.arange(60.0)
    rows = np.stack([np.exp(time / 10), time, np.ones(60)], axis=1)
    series = [((rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1.0), None)]
    model = build(5, 3)
    model.initialise(series)
    rises(model, series, 100)
    assert np.abs(np.linalg.eigvals(model.A)).max() <= 1 + GROWTH / 60 + 1e-9
    for matrix in (model.Q, model.P0, np.diag(model.R)):
        assert np.linalg.eigvalsh(matrix).min() >= 1e-6 * (1 - 1e-6)
    assert model.R[2] == pytest.approx(1e-6)


@pytest.mark.parametrize("init", ["subspace", "random"])
def test_em_finds_a_model_as_likely_as_the_one_that_made_the_data(init: str) -> None:
    truth = build(2, 2)
    truth.A = 0.95 * np.array([[np.cos(0.5), np.sin(0.5)], [-np.sin(0.5), np.cos(0.5)]])
    truth.Q, truth.H, truth.R = 0.1 * np.eye(2), np.array([[1.0, 0.0], [0.3, 1.0]]), np.array([0.2, 0.4])
    values = truth.sample(3000, seed=0)
    seen = np.random.default_rng(0).random(values.shape) > 0.1
    learned, test = [(values[:2000], seen[:2000])], [(values[2000:], seen[2000:])]
    model = build(2, 2, init=init)
    model.initialise(learned, seed=1)
    rises(model, learned, 60)
    assert model.log_likelihood(learned) > truth.log_likelihood(learned)
    assert model.log_likelihood(test) == pytest.approx(truth.log_likelihood(test), abs=0.01 * 1000)
    close(np.sort_complex(np.linalg.eigvals(model.A)), np.sort_complex(np.linalg.eigvals(truth.A)), 0.03)


def test_trend_and_season_are_found_at_the_start_and_carried_on() -> None:
    random, time = np.random.default_rng(0), np.arange(132)
    season = np.sin(2 * np.pi * time / 12) + 0.5 * np.cos(2 * np.pi * time / 4)
    values = (0.03 * time + season + 0.1 * random.normal(size=132))[:, None]
    series = [(values[:108], None)]
    model = build(10, 1, season=12)
    model.initialise(series)
    rises(model, series, 10)
    _, state = model.start(Batch({"values": prompt(values[:108], np.ones((108, 1), dtype=bool))}, {}))
    mean, scale = model.forecast(state, 24)
    error = np.abs(mean[0].numpy() - values[108:])
    assert error.mean() < 0.15
    assert (error < 1.96 * scale[0].numpy()).mean() > 0.8


@pytest.mark.parametrize(("given", "turn"), [(50, 50.0), (49, 50.0), (52, 50.0)])
def test_a_season_that_is_a_little_off_is_set_right(given: int, turn: float) -> None:
    values = np.sin(2 * np.pi * np.arange(1000) / turn)[:, None] + np.random.default_rng(0).normal(size=(1000, 1)) / 2
    model = build(4, 1, season=given)
    model.initialise([(values, None)])
    angles = np.abs(np.angle(np.linalg.eigvals(model.A)))
    assert np.abs(angles - 2 * np.pi / turn).min() < 2 * np.pi / turn / 200


def test_airline_passengers_are_forecast_better_than_by_the_season_before(shared_data: Path) -> None:
    with (shared_data / "timeseries" / "airline-passengers.csv").open() as file:
        values = np.array([[float(number)] for _, number in list(csv.reader(file))[1:]])
    values = (values - values[:115].mean()) / values[:115].std()
    series = [(values[:115], None)]
    model = build(16, 1, season=12)
    model.initialise(series)
    rises(model, series, 20)
    found = model.filter(values)
    origins = np.arange(115, 133)  # rows known
    state = State(
        {
            "mean": torch.from_numpy(found.predicted_means[origins]),
            "covariance": torch.from_numpy(found.predicted_covariances[origins]),
        }
    )
    ahead = origins[:, None] + np.arange(12)
    error = np.abs(model.forecast(state, 12)[0].numpy() - values[ahead]).mean()
    assert error < 0.25  # the season before: 0.51; a seasonal ARIMA (0,1,1)(0,1,1): 0.22
    assert error < 0.5 * np.abs(values[ahead] - values[ahead - 12]).mean()


# -- bad input ---------------------------------------------------------------------------------------------------


def odd_series() -> dict[str, Series]:
    random = np.random.default_rng(0)
    noise = random.normal(size=(30, 2))
    gaps = np.ones((30, 2), dtype=bool)
    gaps[:, 1] = False
    late = gaps.copy()
    late[25:, 1] = True
    return {
        "a constant column": (np.stack([noise[:, 0], np.zeros(30)], axis=1), None),
        "only constants": (np.zeros((30, 2)), None),
        "a column that is never observed": (np.where(gaps, noise, np.nan), gaps),
        "a column that begins late": (noise, late),
        "nothing observed at all": (noise, np.zeros((30, 2), dtype=bool)),
        "one step": (noise[:1], None),
        "two steps": (noise[:2], None),
        "three steps": (noise[:3], None),
        "one number": (noise[:1], np.array([[True, False]])),
        "two equal columns": (noise[:, :1].repeat(2, axis=1), None),
        "large numbers": (1e4 * noise + 1e5, None),
    }


@pytest.mark.parametrize("init", ["subspace", "random"])
@pytest.mark.parametrize("name", odd_series())
def test_odd_series_give_finite_answers(name: str, init: str) -> None:
    series = [odd_series()[name]]
    model = build(5, 2, init=init, season=4)
    model.initialise(series, seed=0)
    rises(model, series, 30)
    assert all(torch.isfinite(tensor).all() for tensor in model.state_dict().values())
    values, seen = series[0][0], np.ones(series[0][0].shape, dtype=bool) if series[0][1] is None else series[0][1]
    distribution, state = model.start(Batch({"values": prompt(values, seen)}, {}))
    for tensor in (distribution.mean, distribution.covariance_matrix, *model.forecast(state, 50)):
        assert torch.isfinite(tensor).all()
    assert np.isfinite(model.smooth(*series[0]).covariances).all()
    assert torch.isfinite(model.score(batch_of((values, seen)))[0]).all()


def test_series_that_cannot_be_read_get_a_sentence() -> None:
    model = build(2, 2)
    rows = np.zeros((5, 2))
    rows[3, 1] = np.nan
    with pytest.raises(DataError, match="step 4, column 2 holds nan"):
        model.initialise([(rows, None)])
    with pytest.raises(DataError, match="holds inf"):
        model.filter(np.full((5, 2), np.inf))
    with pytest.raises(DataError, match=r"should be \(steps, 2\).*found \(5, 3\)"):
        model.em_step([(np.zeros((5, 3)), None)])
    with pytest.raises(DataError, match="at least one step"):
        model.em_step([])
    with pytest.raises(DataError, match="at least one step"):
        model.initialise([(np.zeros((0, 2)), None)])
    model.filter(rows, ~np.isnan(rows))


def test_bad_settings_get_a_sentence() -> None:
    with pytest.raises(ConfigError, match="state_dim = 0 should be at least 1"):
        KalmanConfig(state_dim=0)
    with pytest.raises(ConfigError, match="season = -1 should be 0"):
        KalmanConfig(season=-1)
    with pytest.raises(ConfigError, match=r"noise_floor = 0\.0 should lie between"):
        KalmanConfig(noise_floor=0.0)
    with pytest.raises(ConfigError, match="columns of numbers, and this data has none"):
        Kalman(KalmanConfig(), schemas.of_text(5))
    with pytest.raises(ConfigError, match="a horizon of 0 steps"):
        build(2, 2).forecast(build(2, 2).initial_state(1), 0)


def test_a_forecast_beyond_all_numbers_gets_a_sentence() -> None:
    model = random_model(2, 2)
    model.A = 1.1 * np.eye(2)
    with pytest.raises(DataError, match="beyond all numbers within 10000 steps"):
        model.forecast(model.initial_state(1), 10_000)


def test_a_damaged_file_gets_a_sentence() -> None:
    model = random_model(3, 2)
    saved = model.state_dict()
    with pytest.raises(CheckpointError, match='lacks "Q"'):
        model.load_state_dict({name: tensor for name, tensor in saved.items() if name != "Q"})
    with pytest.raises(CheckpointError, match=r'"H" of the Kalman filter has the shape \(2, 4\).*\(2, 3\)'):
        model.load_state_dict({**saved, "H": torch.zeros(2, 4)})
    for name in saved:
        with pytest.raises(CheckpointError, match=f'"{name}" of the Kalman filter is damaged'):
            model.load_state_dict({**saved, name: saved[name] * torch.nan})
    with pytest.raises(CheckpointError, match='"R" of the Kalman filter is damaged: variances should be above 0'):
        model.load_state_dict({**saved, "R": torch.zeros(2)})
    for name in ("Q", "P0"):
        lopsided = saved[name].clone()
        lopsided[0, 1] += 1
        for wrong in (lopsided, -torch.eye(3)):
            with pytest.raises(CheckpointError, match=f'"{name}" .* is damaged: it should be a covariance'):
                model.load_state_dict({**saved, name: wrong})
