"""Seasons of columns: found on slopes, drifts and across gaps, suggested by dates, and none where there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seqwise.data.numbers import open_numbers
from seqwise.data.seasons import find_seasons, main_season


def find_season(values: np.ndarray) -> int:
    return main_season(find_seasons(values))


def waves(period: int, *, num_rows: int, noise: float, slope: float, seed: int = 0) -> np.ndarray:
    random, time = np.random.default_rng(seed), np.arange(num_rows)
    wave = np.sin(2 * np.pi * time / period + seed) + slope * time / num_rows
    return (wave + noise * random.normal(size=num_rows))[:, None]


@pytest.mark.parametrize("period", [3, 4, 7, 12, 24])
@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("slope", [0.0, 10.0])
def test_the_season_of_a_sine_is_its_period(period: int, noise: float, slope: float) -> None:
    for seed in range(3):
        assert find_season(waves(period, num_rows=300, noise=noise, slope=slope, seed=seed)) == period


@pytest.mark.parametrize("period", [52, 90])
def test_a_long_season_is_found_to_a_step_or_two(period: int) -> None:
    assert abs(find_season(waves(period, num_rows=1000, noise=0.3, slope=5.0)) - period) <= 2


def test_a_season_of_many_tones_is_that_of_the_lowest() -> None:
    time = np.arange(400)
    sharp = (time % 24 == 7) * 5.0 + np.sin(2 * np.pi * time / 24)
    assert find_season(sharp[:, None] + 0.2 * np.random.default_rng(0).normal(size=(400, 1))) == 24


def test_columns_with_the_same_season_agree_and_gaps_do_no_harm() -> None:
    values = np.concatenate([waves(12, num_rows=300, noise=0.3, slope=3, seed=seed) for seed in (1, 2)], axis=1)
    values[50:80, 0] = np.nan
    assert find_season(values) == 12


def test_gaps_on_a_slope_do_no_harm() -> None:
    values = waves(12, num_rows=300, noise=0.3, slope=100)
    values[[20, 90, 91, 200, 250]] = np.nan
    assert find_season(values) == 12


def test_the_season_does_not_depend_on_the_units_of_columns() -> None:
    noise = np.random.default_rng(0).normal(size=(300, 1))
    values = np.concatenate([waves(12, num_rows=300, noise=0.1, slope=0), 0.5 * noise], axis=1)
    found = [find_season(values * np.array(units)) for units in ([1.0, 1.0], [1000.0, 1.0], [1.0, 1000.0])]
    assert found == [12, 12, 12]


@pytest.mark.parametrize("columns", [1, 3])
def test_white_noise_has_no_season(columns: int) -> None:
    assert {find_season(np.random.default_rng(seed).normal(size=(400, columns))) for seed in range(30)} == {1}


def test_white_noise_has_no_season_where_it_is_short_either() -> None:
    found = [find_season(np.random.default_rng(seed).normal(size=(60, 1))) for seed in range(40)]
    assert found.count(1) >= 30


@pytest.mark.parametrize(
    "values",
    [np.arange(100.0), np.arange(100.0) ** 2, np.zeros(100), np.full(100, 7.5), np.sin(np.arange(23) * np.pi / 2)],
    ids=["line", "parabola", "zeros", "constant", "too short"],
)
def test_what_has_no_season_says_one(values: np.ndarray) -> None:
    assert find_season(values[:, None]) == 1


def drifting(num_rows: int, *, drift: float, period: int = 24, seed: int = 0) -> np.ndarray:
    """A season on a level that goes where chance takes it, far beyond the height of the season."""
    random, time = np.random.default_rng(seed), np.arange(num_rows)
    level = drift * random.normal(size=num_rows).cumsum()
    return level + np.sin(2 * np.pi * time / period) + 0.2 * random.normal(size=num_rows)


@pytest.mark.parametrize("num_rows", [2000, 17420])
@pytest.mark.parametrize("drift", [0.02, 0.2])
def test_a_drifting_level_hides_no_season(num_rows: int, drift: float) -> None:
    for seed in range(3):
        column = drifting(num_rows, drift=drift, seed=seed)
        assert column.std() > (0.8 if drift < 0.1 else 2)
        assert find_seasons(column[:, None]) == [24]


def test_each_column_has_a_season_of_its_own() -> None:
    noise = np.random.default_rng(0).normal(size=2000)
    columns = [drifting(2000, drift=0.1), drifting(2000, drift=0.1, period=7, seed=1), noise, noise.cumsum()]
    assert find_seasons(np.column_stack(columns)) == [24, 7, 1, 1]


@pytest.mark.parametrize("num_rows", [60, 400, 3000])
def test_a_random_walk_has_no_season(num_rows: int) -> None:
    walks = np.random.default_rng(0).normal(size=(num_rows, 60)).cumsum(axis=0)
    assert find_seasons(walks).count(1) >= 59


def test_a_suggested_season_is_taken_before_others_where_it_is_there() -> None:
    column = drifting(3000, drift=0.6)  # by itself hard to tell from 23 or 25
    assert find_seasons(column[:, None], (24, 168)) == [24]
    other = drifting(3000, drift=0.1, period=30)
    assert find_seasons(other[:, None], (24, 168)) == [30]


def test_a_week_is_taken_where_it_says_more_than_a_day() -> None:
    time = np.arange(3000)
    week = np.sin(2 * np.pi * time / 24) * (time // 24 % 7 < 5) + 3.0 * (time // 24 % 7 == 6)
    column = week + 0.1 * np.random.default_rng(0).normal(size=3000)
    assert find_seasons(column[:, None], (24, 168)) == [168]


@pytest.mark.parametrize(
    ("seasons", "main"), [([1, 1], 1), ([1, 12], 12), ([7, 12, 12], 12), ([12, 7], 7), ([24, 24, 168, 1], 24)]
)
def test_the_main_season_is_that_of_most_columns(seasons: list[int], main: int) -> None:
    assert main_season(seasons) == main


def test_a_real_hourly_series_has_a_day_in_every_column(shared_data: Path) -> None:
    data = open_numbers(shared_data / "timeseries" / "ETTh1.csv.gz")
    assert data.dates is not None
    assert (data.dates.step, data.dates.seasons, data.dates.oddities) == ("1 hour", (24, 168), [])
    assert data.seasons == [24] * 7
    assert find_seasons(data.values[:2000])[:4] == [24] * 4
