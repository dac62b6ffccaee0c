"""After how many steps a column of numbers resembles itself: by its dates where there are any, else by its own peaks.

A level that drifts hides a season from the plain autocorrelation. So a season of P steps is looked for in what is left
when the running mean over P steps is taken away: of white noise, a random walk or any slow drift, what is left at two
steps P apart has nothing in common; of a season, all.

Shapes: N steps, C columns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

MIN_STEPS = 24
MIN_PERIODS = 3  # of a season in the series
MIN_CORRELATION = 0.2  # below it a season helps no forecast
SURE = 3.5  # standard errors that a correlation found by search must lie above zero
SURE_BY_DATE = 2.5  # the same for one that the dates suggest
WALK = 0.2  # of a random walk, N / P times the variance of the correlation
FARTHEST = 12  # steps between a peak of the autocorrelation and the season
NEARLY = 0.8  # a shorter season is taken where it is nearly as strong as its multiples


def find_seasons(values: np.ndarray, suggested: Sequence[int] = ()) -> list[int]:
    """The season of each column of a series (N, C), NaN where a number is missing; 1 where there is none.

    `suggested` are tried first: what the dates of an hourly series suggest are 24 and 168.
    """
    return [_season(_known(column), suggested) for column in values.T]


def main_season(seasons: Sequence[int]) -> int:
    """The season that most columns have, the shortest of several; 1 where none has any."""
    found = Counter(season for season in seasons if season > 1)
    return min(found, key=lambda season: (-found[season], season)) if found else 1


def _season(column: np.ndarray, suggested: Sequence[int]) -> int:
    longest = len(column) // MIN_PERIODS
    if len(column) < MIN_STEPS or not column.any():
        return 1
    by_date = [period for period in suggested if 1 < period <= longest and _stands_out(column, period)]
    found = _shortest_strong(column, by_date, SURE_BY_DATE)
    if found is not None:
        return found
    found = _shortest_strong(column, [period for period in _peaks(column) if period <= longest], SURE)
    if found is None:
        return 1
    reach = min(FARTHEST, math.ceil(0.1 * found))  # a peak on a slope is a little off
    return max(range(max(2, found - reach), min(found + reach, longest) + 1), key=lambda p: _strength(column, p))


def _shortest_strong(column: np.ndarray, periods: Sequence[int], sure: float) -> int | None:
    """Of the seasons that are there, the shortest that is nearly as strong as the strongest."""
    strengths = {period: _strength(column, period) for period in periods}
    strong = {p: s for p, s in strengths.items() if s > max(MIN_CORRELATION, sure * _chance(p, len(column)))}
    return min((p for p, s in strong.items() if s >= NEARLY * max(strong.values())), default=None)


def _known(column: np.ndarray) -> np.ndarray:
    """Without its straight line, of variance one; across what is missing goes a straight line."""
    is_known, time = ~np.isnan(column), np.arange(len(column), dtype=np.float64)
    if is_known.sum() < 3:
        return np.zeros(len(column))
    slope, level = np.polyfit(time[is_known], column[is_known], 1)
    flat = column - (level + slope * time)
    flat = np.interp(time, time[is_known], flat[is_known])
    scale = flat.std()
    return flat / scale if scale > 1e-9 * np.abs(column[is_known]).max() else np.zeros(len(column))


def _without_running_mean(column: np.ndarray, width: int) -> np.ndarray:
    """What lies above or below the mean of the `width` steps around; at the ends of those that are there."""
    N, before = len(column), width // 2
    sums = np.concatenate([np.zeros(before + 1), np.cumsum(column)])
    sums = np.concatenate([sums, np.full(width, sums[-1])])  # (N + 1 + before + width,)
    there = np.minimum(np.arange(N) - before + width, N) - np.maximum(np.arange(N) - before, 0)
    return column - (sums[width : width + N] - sums[:N]) / there


def _correlations(column: np.ndarray) -> np.ndarray:
    """The autocorrelation at the lags 0, 1, ..., up to a third of the series."""
    N = len(column)
    spectrum = np.abs(np.fft.rfft(column, 1 << (2 * N).bit_length())) ** 2
    lags = np.arange(N // MIN_PERIODS + 2)
    products = np.fft.irfft(spectrum)[lags] * N / (N - lags)
    return products / products[0] if products[0] > 1e-9 * N else np.zeros(len(lags))


def _strength(column: np.ndarray, period: int) -> float:
    """The correlation of steps a period apart, once the running mean over a period is taken away."""
    flat = _without_running_mean(column, period)
    square = float(flat @ flat) / len(flat)
    return float(flat[period:] @ flat[:-period]) / (len(flat) - period) / square if square > 1e-9 else 0.0


def _stands_out(column: np.ndarray, period: int) -> bool:
    """Whether no other season around would be much stronger: one of 30 steps shows at 24 as well."""
    around = range(period - period // 4, period + period // 4 + 1, max(1, period // 48))
    return _strength(column, period) >= NEARLY * max(_strength(column, p) for p in around if p > 1)


def _chance(period: int, num_steps: int) -> float:
    """The standard error of a strength of which nothing is true: that of white noise, or of a random walk."""
    return math.sqrt(max(1.0, WALK * period) / num_steps)


def _peaks(column: np.ndarray) -> set[int]:
    """Lags at which the autocorrelation is highest, once as the column is, and once without drifts of each length."""
    N, found = len(column), set[int]()
    widths = [2 * 4**n for n in range(12) if 2 * 4**n <= N]
    for flat in (column, *(_without_running_mean(column, width) for width in widths)):
        correlation = _correlations(flat)
        lags = np.arange(2, len(correlation) - 1)
        is_peak = (correlation[lags] > correlation[lags - 1]) & (correlation[lags] >= correlation[lags + 1])
        peaks = lags[is_peak & (correlation[lags] > 0)]
        if len(peaks) == 0:
            continue
        highest = int(peaks[correlation[peaks].argmax()])
        # a multiple of a season is as high a peak as the season: take the best near each whole fraction
        high = peaks[(correlation[peaks] >= 0.7 * correlation[highest]) & (peaks <= highest)]
        parts = np.rint(highest / high)
        is_near = np.abs(high - highest / parts) <= np.maximum(1, 0.03 * highest / parts)
        best = dict[int, int]()
        for peak, part in zip(high[is_near].tolist(), parts[is_near].tolist(), strict=True):
            if part not in best or correlation[peak] > correlation[best[part]]:
                best[part] = peak
        found |= set(best.values())
    return found
