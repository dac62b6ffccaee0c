"""Sums over segments of the data: what intervals are resampled from, and by what two models are compared in pairs.

Resampling N segments shows too little of how much they differ, the less the fewer they are. So the distances of what
was drawn from what was found are stretched as Student's t (1908) stretches a normal distribution: by

    sqrt(N / (N - 1)) * t(N - 1) / t(infinity)

with t(d) the 97.5 % point for d degrees of freedom. Several seeds are a second source of chance, with its own degrees
of freedom; those of the sum follow Satterthwaite (1946).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from ..errors import ConfigError

RESAMPLES = 1000
CONFIDENCE = 0.95
MIN_SEGMENTS = 6  # of fewer, even if all agree, chance alone is above 5 %: 2 * 0.5**5
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
    is_higher_better: bool = False
    complement: str = ""
    """What one minus the value is called, where people know that better: "accuracy"."""

    def shown(self, cost: float) -> float:
        """The value as people know it, from one of which lower is better, as Segments have it."""
        return -cost + 0.0 if self.is_higher_better else cost

    def cost(self, value: float) -> float:
        """The way back."""
        return -value if self.is_higher_better else value

    @property
    def better(self) -> str:
        return "higher" if self.is_higher_better else "lower"


@dataclass(frozen=True)
class Kind:
    """How sums over segments, (..., K), become a value, (...): lower is better."""

    value: Callable[[np.ndarray], np.ndarray]
    of_data: slice
    """The sums that the data alone decides: the same for every model of it."""
    bounds: Callable[[np.ndarray], tuple[float, float]]
    """Between which a value can lie, whatever the data: per cents and shares have ends."""


def _ratio(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0] / np.maximum(sums[..., 1], 1e-12)


def _bounds_of_ratio(sums: np.ndarray) -> tuple[float, float]:
    """Of totals that are never negative, and never more than what they are counted over."""
    totals, counts = sums[..., 0], sums[..., 1]
    return 0.0 if (totals >= 0).all() else -math.inf, 1.0 if (totals <= counts).all() else math.inf


def _per_cent(sums: np.ndarray) -> tuple[float, float]:
    return -100.0, 0.0


def _chrf(sums: np.ndarray) -> np.ndarray:
    """-chrF2 in per cent (Popović 2015), from the n-grams of hypotheses, of references, and in common, for each n."""
    ours, theirs, common = (sums[..., part::3].astype(np.float64) for part in range(3))  # (..., orders)
    is_counted = (ours > 0) & (theirs > 0)
    orders = np.maximum(1, is_counted.sum(axis=-1))
    precision = np.where(is_counted, common / np.maximum(ours, 1), 0.0).sum(axis=-1) / orders
    recall = np.where(is_counted, common / np.maximum(theirs, 1), 0.0).sum(axis=-1) / orders
    return -100 * 5 * precision * recall / np.maximum(4 * precision + recall, 1e-16)


def _bleu(sums: np.ndarray) -> np.ndarray:
    """-BLEU in per cent (Papineni et al. 2002), from the lengths of hypotheses and references, and for each n the
    n-grams in common and in all. The k-th n without any in common counts 2**-k of one (exponential smoothing)."""
    ours, theirs = sums[..., 0], sums[..., 1]
    common, all_ = sums[..., 2:6], np.maximum(sums[..., 6:10], 1e-9)
    smoothed = 0.5 ** (common == 0).cumsum(axis=-1)
    precision = np.where(sums[..., 6:10] > 0, np.where(common > 0, common, smoothed) / all_, 0.0)
    with np.errstate(divide="ignore"):
        mean = np.exp(np.log(precision).mean(axis=-1))
        brevity = np.exp(np.minimum(0.0, 1 - theirs / np.maximum(ours, 1e-9)))
    return -100 * np.where(common.sum(axis=-1) > 0, brevity * mean, 0.0)


def _f1(sums: np.ndarray) -> np.ndarray:
    """-F1, from what was right, wanted, and answered."""
    right, wanted, answered = (sums[..., part].astype(np.float64) for part in range(3))
    return -2 * right / np.maximum(wanted + answered, 1)


def _unbounded(sums: np.ndarray) -> tuple[float, float]:
    return -math.inf, 0.0


def _negative_share(sums: np.ndarray) -> tuple[float, float]:
    return -1.0, 0.0


def _mean(sums: np.ndarray) -> np.ndarray:
    """-mean, of shares that are the better the higher."""
    return -_ratio(sums)


KINDS = {
    "ratio": Kind(_ratio, slice(1, 2), _bounds_of_ratio),
    "chrf": Kind(_chrf, slice(1, None, 3), _per_cent),
    "bleu": Kind(_bleu, slice(1, 2), _per_cent),
    "f1": Kind(_f1, slice(1, 2), _negative_share),
    "mean": Kind(_mean, slice(1, 2), _negative_share),
    "mean_score": Kind(_mean, slice(1, 2), _unbounded),
    # of several references that one counts which is nearest in length to what was answered: nothing is the data's alone
    "bleu_of_several": Kind(_bleu, slice(0, 0), _per_cent),
}


@dataclass(frozen=True)
class Segments:
    """Sums over segments of the data, which are the same for every model of it, and the value of them all together."""

    statistics: np.ndarray
    """(S, N, K): S seeds of one model, N segments, K sums over each."""
    kind: str = "ratio"
    """ratio: a total, such as -log p or errors, over what the value is per: characters, steps, answers. mean: the same
    of shares, such as the F1 of a question, of which higher is better; mean_score: of what is no share."""

    @classmethod
    def of(cls, totals: np.ndarray, counts: np.ndarray, kind: str = "ratio") -> Segments:
        """A ratio, or a mean of shares, of one seed: totals and counts (N,)."""
        return cls(np.stack([totals, counts], axis=-1)[None].astype(np.float64), kind)

    @property
    def value(self) -> float:
        return float(KINDS[self.kind].value(self.statistics.sum(axis=1)).mean())

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, by resampling segments, and seeds where there are several; without ends where they are too few."""
        low, high = _interval(self)
        if not (self.is_enough and self.is_possible):
            return low, high
        lowest, highest = KINDS[self.kind].bounds(self.statistics)
        return max(lowest, low), min(highest, high)

    @property
    def is_enough(self) -> bool:
        """Whether there are segments enough for an interval that keeps its promise."""
        return self.statistics.shape[1] >= MIN_SEGMENTS

    @property
    def is_possible(self) -> bool:
        """Whether nothing came that the model thought impossible."""
        return bool(np.isfinite(self.statistics).all())

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "statistics": self.statistics.tolist()}

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Segments:
        return cls(np.array(found["statistics"], dtype=np.float64), found["kind"])


def joined(seeds: Sequence[Segments]) -> Segments:
    """Several seeds of one model as one."""
    return Segments(np.concatenate([one.statistics for one in seeds]), seeds[0].kind)


@dataclass(frozen=True)
class Difference:
    """How much better the first of two models is than the second, on the same data."""

    gain: float
    interval: tuple[float, float]
    """95 %, by resampling the same segments for both; without ends where they are too few."""
    is_enough: bool = True
    """Whether there is data enough to tell."""

    @property
    def is_distinguishable(self) -> bool:
        """Whether it is surely not zero."""
        low, high = self.interval
        return self.is_enough and (low > ROUNDING or high < -ROUNDING)


def same_data(first: Segments, second: Segments) -> bool:
    """Whether both are of the same segments of the same data."""
    if first.kind != second.kind or first.statistics.shape[1:] != second.statistics.shape[1:]:
        return False
    of_data = KINDS[first.kind].of_data
    return np.array_equal(first.statistics[0][:, of_data], second.statistics[0][:, of_data])


def compare_segments(first: Segments, second: Segments) -> Difference:
    """A paired bootstrap: hard passages are hard for both, so the difference is surer than either score."""
    if not same_data(first, second):
        raise ConfigError("two scores can be compared only where they are of the same data.")
    impossible = [not one.is_possible for one in (first, second)]
    if any(impossible):  # a model that found something impossible loses without end
        gain = 0.0 if all(impossible) else -math.inf if impossible[0] else math.inf
        return Difference(gain, (gain, gain))
    return Difference(second.value - first.value, _interval(second, minus=first), first.is_enough)


def interval_in_words(interval: tuple[float, float], digits: int) -> str:
    """ "95 %: 1.20 to 1.40", or that there is none."""
    low, high = interval
    if low == -math.inf:
        return "too little data for an interval"
    return f"95 %: {low + 0.0:.{digits}f} to {high + 0.0:.{digits}f}"


def _interval(one: Segments, *, minus: Segments | None = None) -> tuple[float, float]:
    """Of the value, or of its distance to that of another model."""
    if not one.is_possible:  # no data drawn from something impossible says less than that
        return math.inf, math.inf
    if not one.is_enough:
        return -math.inf, math.inf
    num, random = one.statistics.shape[1], np.random.default_rng(0)
    drawn = random.multinomial(num, np.full(num, 1 / num), RESAMPLES)  # (R, N)
    found = one.value - (0.0 if minus is None else minus.value)
    values, means, sources = np.zeros(RESAMPLES), np.zeros(RESAMPLES), []
    for model, sign in ((one, 1), (minus, -1)):
        if model is not None:
            by_seed = KINDS[model.kind].value(
                np.einsum("rn,snk->rsk", drawn, model.statistics, optimize=True)
            )  # (R, S)
            values += sign * _mean_of_drawn_seeds(by_seed, random)
            means += sign * by_seed.mean(axis=1)
            sources += _chance_of_seeds(model)
    sources.append((num / (num - 1) * float(means.var()), num - 1))
    return interval_around(found, values, sources)


def interval_around(found: float, resampled: np.ndarray, sources: list[tuple[float, int]]) -> tuple[float, float]:
    """Of what was found, from what it was in each resample (R,), and from sources of chance: variance, freedom."""
    tail = (1 - CONFIDENCE) / 2
    distances = np.quantile(resampled, [tail, 1 - tail]) - found
    low, high = found + _stretch(sources, float(resampled.var())) * distances
    return float(low), float(high)


def _mean_of_drawn_seeds(by_seed: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(R, S) -> (R,)"""
    num_seeds = by_seed.shape[1]
    if num_seeds == 1:
        return by_seed[:, 0]
    shares = random.multinomial(num_seeds, np.full(num_seeds, 1 / num_seeds), len(by_seed)) / num_seeds
    return (by_seed * shares).sum(axis=1)


def _chance_of_seeds(one: Segments) -> list[tuple[float, int]]:
    """The variance of the mean over seeds, and its degrees of freedom; nothing where there is one seed."""
    by_seed = KINDS[one.kind].value(one.statistics.sum(axis=1))  # (S,)
    return [(float(by_seed.var(ddof=1)) / len(by_seed), len(by_seed) - 1)] if len(by_seed) > 1 else []


def _stretch(sources: list[tuple[float, int]], drawn: float) -> float:
    """What a distance must be stretched by: from sources of chance (variance, degrees of freedom), and the variance
    that was drawn."""
    variance = sum(part for part, _ in sources)
    if not (variance > 0 and drawn > 0):
        return 1.0
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in sources)
    return math.sqrt(variance / drawn) * _t(freedom) / NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def _t(freedom: float) -> float:
    """The point that Student's t exceeds in 2.5 % of cases: with t = sqrt(freedom) tan(angle) the density of the angle
    is cos(angle) ** (freedom - 1)."""
    angle = np.linspace(0, math.pi / 2, 20_001)
    density = np.cos(angle) ** (freedom - 1)
    share = np.append(0.0, np.cumsum(density[1:] + density[:-1]))
    return math.sqrt(freedom) * math.tan(float(np.interp(CONFIDENCE, share / share[-1], angle)))
