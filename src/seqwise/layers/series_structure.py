"""What a series is made of, before anything is learned: trend, tones of a season, and what else foretells the future.

`models/kalman.py` starts EM from it. Shapes: N steps of all series together, T steps of one, C columns, k states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MAX_TONES = 100
MIN_TREND_VARIANCE = 0.2  # of the variance; a weaker one is better left to slow states
MIN_TONE_VARIANCE = 0.01  # of the variance that is left
CLEAR_TONE = 0.3  # of the variance; from there on its frequency can be told better than in whole steps
DRIFT = 0.01  # variance that trend and tones gather over the whole series
MAX_WINDOW = 512  # numbers in a window of the past; windows are products of that size


@dataclass(frozen=True)
class Part:
    """A few states whose course is known in advance: a trend, or one tone of a season."""

    A: np.ndarray  # (k, k)
    start: np.ndarray  # (k,) at x_0
    course: np.ndarray  # (N, k) at the steps of all series
    shown: np.ndarray  # (k,) bool: whether columns see it directly
    noise: np.ndarray  # (k,)


def bridge_gaps(values: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Straight lines across what is missing: good enough for a start, and EM goes on with the gaps themselves."""
    filled, steps = np.zeros_like(values), np.arange(len(values))
    for c in np.flatnonzero(seen.any(axis=0)):
        there = seen[:, c]
        filled[:, c] = np.interp(steps, steps[there], values[there, c])
    return filled


def find_parts(rows: np.ndarray, lengths: list[int], season: int, *, max_states: int) -> list[Part]:
    """Trend and tones that explain enough of the rows (N, C), in at most `most` states."""
    N, longest = len(rows), max(lengths)
    times = np.concatenate([np.arange(1, length + 1) for length in lengths])
    rest, left, parts = rows - rows.mean(axis=0), max_states, []

    def explained(part: Part) -> np.ndarray:
        course = part.course[:, part.shown]
        return course @ np.linalg.lstsq(course, rest, rcond=None)[0]

    if left >= 2 and longest >= 4:
        trend = _trend(times, longest)
        found = explained(trend)
        if (found**2).sum() > MIN_TREND_VARIANCE * (rest**2).sum():
            parts.append(trend)
            rest, left = rest - found, left - 2
    if 1 < season <= longest // 2:
        # a season read off noisy data is a little off, which adds up: try others, up to a turn apart at the end
        nearby = season / (1 + np.arange(-16, 17) / 16 * season / longest)
        power = [(explained(_tone(times, longest, 1 / near)) ** 2).sum() for near in nearby]
        is_clear = max(power) > CLEAR_TONE * (rest**2).sum() and max(power) > 1.1 * power[16]
        exact = float(nearby[np.argmax(power)]) if is_clear else season
        tones = [_tone(times, longest, n / exact) for n in range(1, min(season // 2, MAX_TONES) + 1)]
        for tone in sorted(tones, key=lambda tone: -(explained(tone) ** 2).sum()):
            found = explained(tone)
            # of N random numbers, a tone explains 2 / N
            if len(tone.start) > left or (found**2).sum() < (MIN_TONE_VARIANCE + 4 / N) * ((rest - found) ** 2).sum():
                break
            parts.append(tone)
            rest, left = rest - found, left - len(tone.start)
    return parts


def _trend(times: np.ndarray, longest: int) -> Part:
    """A level, scaled to variance 1, and the slope that is added to it at each step."""
    slope, middle = np.sqrt(12) / longest, (longest + 1) / 2
    course = np.stack([slope * (times - middle), np.full(len(times), slope)], axis=1)
    noise = DRIFT / longest * np.array([1.0, 0.01])
    start = np.array([-slope * middle, slope])
    return Part(np.array([[1.0, 1.0], [0.0, 1.0]]), start, course, np.array([True, False]), noise)


def _tone(times: np.ndarray, longest: int, frequency: float) -> Part:
    """A point that goes round once in 1 / frequency steps; at every other step, one number that changes its sign."""
    angle = 2 * np.pi * frequency
    size = 1 if frequency == 0.5 else 2
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    course = np.stack([np.cos(angle * times), -np.sin(angle * times)], axis=1)
    noise = np.full(size, DRIFT / longest)
    return Part(turn[:size, :size], np.eye(2)[0, :size], course[:, :size], np.ones(size, dtype=bool), noise)


def predictive_states(
    rests: list[np.ndarray], season: int, *, max_states: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """States that are combinations of past rows: those that foretell most of the rows to come (Larimore 1990).

    Canonical correlations of the p rows before a step with the p rows from it on. Returns, for each series that is long
    enough, the states (T - 2p + 1, k) of its steps from p on and the rows (T - 2p + 1, C) that were then seen.
    """
    N, C, longest = sum(len(rest) for rest in rests), rests[0].shape[1], max(len(rest) for rest in rests)
    lags = min(max(N // 20, 4), max(MAX_WINDOW // C, 1), longest // 3)
    if season > 1:
        lags = min(lags, season + 1)
    usable = [rest for rest in rests if len(rest) > 2 * lags]
    if lags < 1 or max_states < 1 or sum(float((rest**2).sum()) for rest in usable) < 1e-9 * N:
        return [], []
    windows = [_windows(rest, 2 * lags) for rest in usable]  # (T - 2p + 1, 2 p C)
    joined = np.concatenate(windows)
    past, future = joined[:, : lags * C], joined[:, lags * C :]
    whiten_past, whiten_future = (_whitening(part.T @ part / len(part)) for part in (past, future))
    agreement = whiten_future @ (future.T @ past / len(past)) @ whiten_past
    directions = np.linalg.svd(agreement)[2][:max_states]  # (k, pC)
    states = [window[:, : lags * C] @ whiten_past @ directions.T for window in windows]
    return states, [rest[lags : len(rest) - lags + 1] for rest in usable]


def _windows(rows: np.ndarray, length: int) -> np.ndarray:
    """All windows of that length, one in a row: (T - length + 1, length C)."""
    windows = np.lib.stride_tricks.sliding_window_view(rows, length, axis=0)  # (T - length + 1, C, length)
    return windows.transpose(0, 2, 1).reshape(len(windows), -1)


def regression(states: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Weights W with rows = states W', held back a little: the states have variance 1, and may be more than steps."""
    ridge = 1e-3 * len(states) * np.eye(states.shape[1])
    return np.linalg.solve(states.T @ states + ridge, states.T @ rows).T


def _whitening(covariance: np.ndarray) -> np.ndarray:
    """Its inverse square root; directions with hardly any variance are held back."""
    found, directions = np.linalg.eigh(covariance)
    return (directions / np.sqrt(np.maximum(found, 0) + 1e-3 * found.mean() + 1e-12)) @ directions.T
