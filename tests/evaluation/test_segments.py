"""Whether intervals and paired tests keep the level they promise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from seqwise.errors import ConfigError
from seqwise.evaluation.segments import (
    MIN_SEGMENTS,
    Difference,
    Metric,
    Segments,
    _t,
    compare_segments,
    interval_in_words,
    joined,
    same_data,
)

TRIALS = 400
Noise = Callable[[np.random.Generator, int], np.ndarray]
NOISE: dict[str, Noise] = {
    "normal": lambda random, num: random.normal(size=num),
    "skewed": lambda random, num: random.gamma(1.0, size=num),
}


def segments(totals: np.ndarray) -> Segments:
    return Segments.of(totals, np.full(len(totals), 100.0))


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
@pytest.mark.parametrize("num", [1, 2, 3, 5, MIN_SEGMENTS, 10, 30])
def test_equal_models_are_called_different_in_one_of_twenty_trials_at_most(num: int, noise: Noise) -> None:
    random = np.random.default_rng(num)
    wrong = 0
    for _ in range(TRIALS):
        hard = random.gamma(4.0, 50.0, size=num)  # passages differ much
        found = compare_segments(*(segments(hard + noise(random, num)) for _ in range(2)))
        wrong += found.is_distinguishable
    assert wrong / TRIALS <= 0.08
    if num < MIN_SEGMENTS:
        assert wrong == 0
    else:
        assert wrong / TRIALS >= 0.01  # nor does it see nothing


@pytest.mark.parametrize("seeds", [2, 3])
def test_equal_models_of_a_few_seeds_are_called_different_as_seldom(seeds: int) -> None:
    random, wrong = np.random.default_rng(seeds), 0
    hard = random.gamma(4.0, 50.0, size=100)
    for _ in range(TRIALS // 2):
        luck = random.normal(0.0, 10.0, size=(2, seeds))  # much more than what segments differ by
        models = [[segments(hard + shift + random.normal(size=100)) for shift in row] for row in luck]
        wrong += compare_segments(*map(joined, models)).is_distinguishable
    assert wrong / (TRIALS // 2) <= 0.08


@pytest.mark.parametrize("num", [MIN_SEGMENTS, 10, 30])
def test_the_interval_of_one_score_holds_the_truth_as_often_as_it_says(num: int) -> None:
    random, held = np.random.default_rng(num), 0
    for _ in range(TRIALS):
        low, high = Segments.of(random.normal(2.0, 0.5, size=num), np.ones(num)).interval
        held += low <= 2.0 <= high
    assert 0.92 <= held / TRIALS <= 0.98


@pytest.mark.parametrize("num", range(1, MIN_SEGMENTS))
def test_few_segments_are_too_little_to_tell(num: int) -> None:
    """However far apart they are."""
    first, second = segments(np.full(num, 100.0)), segments(np.full(num, 900.0))
    found = compare_segments(first, second)
    assert found.gain == pytest.approx(8.0)
    assert not found.is_enough
    assert not found.is_distinguishable
    assert found.interval == (-math.inf, math.inf)
    assert not first.is_enough
    assert first.interval == (-math.inf, math.inf)


def test_scores_of_other_segments_are_not_compared() -> None:
    eight = segments(np.full(8, 100.0))
    for other in (segments(np.full(9, 100.0)), Segments.of(np.full(8, 100.0), np.full(8, 99.0))):
        assert not same_data(eight, other)
        with pytest.raises(ConfigError, match="only where they are of the same data"):
            compare_segments(eight, other)


def test_as_many_as_are_enough_tell_what_all_of_them_say() -> None:
    first, second = segments(np.full(MIN_SEGMENTS, 100.0)), segments(np.full(MIN_SEGMENTS, 110.0))
    found = compare_segments(first, second)
    assert found.is_enough
    assert found.is_distinguishable


def test_what_is_impossible_loses_on_however_little_data() -> None:
    found = compare_segments(segments(np.array([100.0])), segments(np.array([math.inf])))
    assert found == Difference(math.inf, (math.inf, math.inf))
    assert found.is_distinguishable


@pytest.mark.parametrize(("freedom", "point"), [(1, 12.7062), (2, 4.3027), (5, 2.5706), (29, 2.0452), (399, 1.9659)])
def test_points_of_students_t_are_those_of_the_tables(freedom: int, point: float) -> None:
    assert _t(freedom) == pytest.approx(point, abs=1e-4)


def test_an_interval_in_words() -> None:
    assert interval_in_words((-0.0, 1.25), 2) == "95 %: 0.00 to 1.25"
    assert interval_in_words((-1.25, -0.0), 2) == "95 %: -1.25 to 0.00"
    assert interval_in_words((-math.inf, math.inf), 2) == "too little data for an interval"


def test_an_interval_ends_where_values_do() -> None:
    """Of twelve answers one is wrong: by resampling alone the interval would go below zero."""
    wrong = np.zeros(12)
    wrong[3] = 1.0
    low, high = Segments.of(wrong, np.ones(12)).interval
    assert low == 0.0
    assert 1 / 12 < high < 1
    low, high = Segments.of(1 - wrong, np.ones(12)).interval
    assert high == 1.0
    nats = np.random.default_rng(0).normal(size=12)  # densities may cost less than nothing
    low, high = Segments.of(nats, np.ones(12)).interval
    assert low < nats.mean() < high
    assert low < 0


@pytest.mark.parametrize(
    ("freedom", "point"), [(1, 12.7062), (2, 4.3027), (5, 2.5706), (10, 2.2281), (30, 2.0423), (1000, 1.9623)]
)
def test_students_t_is_that_of_the_tables(freedom: int, point: float) -> None:
    assert _t(freedom) == pytest.approx(point, abs=2e-4)


def test_a_metric_says_which_way_is_better_and_is_shown_as_people_know_it() -> None:
    chrf, bits = Metric("chrF", "chrF", is_higher_better=True), Metric("bits per character", "bits/char")
    assert (chrf.better, chrf.shown(-61.5), chrf.cost(61.5)) == ("higher", 61.5, -61.5)
    assert (bits.better, bits.shown(2.5), bits.cost(2.5)) == ("lower", 2.5, 2.5)


def test_fewer_segments_are_enough_only_where_all_of_them_agreeing_could_not_be_chance() -> None:
    """A sign test: N fair coins all fall on one side with probability 2 / 2**N."""
    assert 2 * 0.5**MIN_SEGMENTS <= 0.05 < 2 * 0.5 ** (MIN_SEGMENTS - 1)


def test_a_value_is_the_ratio_of_the_sums_however_small_they_are() -> None:
    assert Segments.of(np.full(8, 0.01), np.full(8, 0.005)).value == pytest.approx(2.0)


def test_one_seed_joined_with_none_is_itself() -> None:
    one = Segments(np.random.default_rng(0).gamma(4.0, size=(1, 8, 10)), "bleu")
    found = joined([one])
    assert (found.kind, found.value, found.interval) == (one.kind, one.value, one.interval)


def test_models_that_differ_by_rounding_alone_are_not_told_apart() -> None:
    totals = np.random.default_rng(0).gamma(4.0, 50.0, size=40)
    first, second = segments(totals), segments(totals * (1 + 1e-10))
    assert not compare_segments(first, second).is_distinguishable
    assert not compare_segments(second, first).is_distinguishable
