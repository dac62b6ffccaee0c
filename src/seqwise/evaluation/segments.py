"""Sums over stretches of the data: what intervals are resampled from, and by what two models are compared in pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ConfigError

RESAMPLES = 1000
CONFIDENCE = 0.95
ROUNDING = 1e-6  # what rounding makes of two equal models


@dataclass(frozen=True)
class Metric:
    """What is compared."""

    name: str
    """"bits per character"."""
    short: str
    """As a column's title: "bits/char"."""
    digits: int = 3
    """Behind the point."""


@dataclass(frozen=True)
class Segments:
    """value = sum of totals / sum of counts, lower is better. Stretches are the same for every model of the data."""

    totals: np.ndarray
    """(S, N): S seeds of one model, N stretches; -log p in bits or nats, or errors."""
    counts: np.ndarray
    """(N,): what the value is per: characters, steps, answers."""

    @classmethod
    def of(cls, totals: np.ndarray, counts: np.ndarray) -> Segments:
        """Of one seed: totals (N,)."""
        return cls(totals[None].astype(np.float64), counts.astype(np.float64))

    @property
    def value(self) -> float:
        return float(self.totals.mean(axis=0).sum() / self.counts.sum())

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, by resampling stretches, and seeds where there are several."""
        return _interval(self.totals, self.counts)


def joined(seeds: Sequence[Segments]) -> Segments:
    """Several seeds of one model as one."""
    return Segments(np.concatenate([one.totals for one in seeds]), seeds[0].counts)


@dataclass(frozen=True)
class Difference:
    """How much better the first of two models is than the second, on the same data."""

    gain: float
    interval: tuple[float, float]
    """95 %, by resampling the same stretches for both."""

    @property
    def is_distinguishable(self) -> bool:
        """Whether it is surely not zero."""
        low, high = self.interval
        return low > ROUNDING or high < -ROUNDING


def compare_segments(first: Segments, second: Segments) -> Difference:
    """A paired bootstrap: hard passages are hard for both, so the difference is surer than either score."""
    if not np.array_equal(first.counts, second.counts):
        raise ConfigError("two scores can be compared only where they are of the same data.")
    impossible = [not np.isfinite(one.totals).all() for one in (first, second)]
    if any(impossible):  # a model that found something impossible loses without end
        gain = 0.0 if all(impossible) else -math.inf if impossible[0] else math.inf
        return Difference(gain, (gain, gain))
    return Difference(second.value - first.value, _interval(second.totals, first.counts, minus=first.totals))


def bootstrap_interval(totals: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """The middle 95 % of total / count over data made of as many stretches (N,), drawn with replacement."""
    return _interval(totals[None], counts)


def _interval(totals: np.ndarray, counts: np.ndarray, minus: np.ndarray | None = None) -> tuple[float, float]:
    """Of totals (S, N), less those of another model where there is one, over counts (N,)."""
    if not np.isfinite(totals).all():  # something impossible came: no data drawn from it says less than that
        return math.inf, math.inf
    num, random = len(counts), np.random.default_rng(0)
    drawn = random.multinomial(num, np.full(num, 1 / num), RESAMPLES)  # (R, N)
    sums = _sums(totals, drawn, random)
    if minus is not None:
        sums -= _sums(minus, drawn, random)
    ratios = sums / np.maximum(drawn @ counts, 1e-12)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    return float(low), float(high)


def _sums(totals: np.ndarray, drawn: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The sum over the drawn stretches (R, N), the mean over seeds drawn likewise: (R,)."""
    num_seeds = len(totals)
    by_seed = drawn @ totals.T  # (R, S)
    if num_seeds == 1:
        return by_seed[:, 0]
    shares = random.multinomial(num_seeds, np.full(num_seeds, 1 / num_seeds), len(drawn)) / num_seeds
    return (by_seed * shares).sum(axis=1)
