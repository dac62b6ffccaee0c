"""The preflight for columns of numbers: what is missing, suspicious or constant, and whether the series repeats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..wording import counted
from .numbers import NumberData

FAR = 8.0  # times the middle half's width beyond it: is it a number, or a mistake?
MAX_MISSING_SHARE = 0.2
SHIFTED = 3.0  # standard deviations between the means of training and test part


@dataclass(frozen=True)
class ColumnFacts:
    name: str
    missing: int
    least: float
    middle: float
    most: float
    season: int
    """Steps after which the column resembles itself; 1 where it does not."""
    far: int
    """Numbers that lie far outside of what the column usually holds."""
    longest_gap: int
    shift: float
    """How far the mean of the last part lies from that of the training part, in its standard deviations."""


@dataclass(frozen=True)
class NumberCheck:
    description: str
    rows: int
    season: int
    """Of most columns; 1 where there is none."""
    columns: list[ColumnFacts]
    notes: list[str]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def sentences(self) -> Iterator[str]:
        yield self.description
        yield from self.notes
        for column in self.columns:
            yield (
                f"{column.name}: {column.least:g} to {column.most:g}, middle {column.middle:g}; "
                f"{column.missing:,} missing (longest gap {column.longest_gap:,})"
            )
        yield _seasons_in_words(self.columns)
        for warning in self.warnings:
            yield f"look at this: {warning}"
        if not self.warnings:
            yield "nothing suspicious found"


def check_numbers(data: NumberData) -> NumberCheck:
    columns = [_facts(data, place) for place in range(len(data.columns))]
    out_of_step = data.dates.oddities if data.dates else []
    notes = [note for note in data.notes if note not in out_of_step]
    warnings = [*out_of_step, *_warnings(data, columns)]
    return NumberCheck(data.description, len(data.values), data.season, columns, notes, warnings)


def _seasons_in_words(columns: list[ColumnFacts]) -> str:
    by_season = dict[int, list[str]]()
    for column in columns:
        by_season.setdefault(column.season, []).append(column.name)
    without = by_season.pop(1, [])
    if not by_season:
        return "no season was found"
    if len(by_season) == 1 and not without:
        return f"the series resembles itself after {next(iter(by_season))} steps"
    words = [f"after {season} steps: {', '.join(names)}" for season, names in sorted(by_season.items())]
    return f"the series resembles itself {'; '.join(words)}" + (
        f"; no season in {', '.join(without)}" if without else ""
    )


def _facts(data: NumberData, place: int) -> ColumnFacts:
    values = data.values[:, place]
    known = values[~np.isnan(values)]
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75])
    width = max(high - low, 1e-12 * max(1.0, abs(middle)))
    is_far = (known < low - FAR * width) | (known > high + FAR * width)
    train, last = (values[data.parts[part]] for part in ("train", next(reversed(data.parts))))
    shift = 0.0 if np.isnan(last).all() else (np.nanmean(last) - np.nanmean(train)) / max(np.nanstd(train), 1e-12)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.isnan(values), [0]])))  # where gaps begin and end
    gaps = edges[1::2] - edges[::2]
    return ColumnFacts(
        data.columns[place],
        int(np.isnan(values).sum()),
        float(known.min()),
        float(middle),
        float(known.max()),
        data.seasons[place],
        int(is_far.sum()),
        int(gaps.max()) if len(gaps) else 0,
        float(shift),
    )


def _warnings(data: NumberData, columns: list[ColumnFacts]) -> Iterator[str]:
    for column in columns:
        if column.missing > MAX_MISSING_SHARE * len(data.values):
            yield f"{column.name}: {100 * column.missing / len(data.values):.0f} % of its numbers are missing"
        if column.far:
            far = counted(column.far, "number lies", "numbers lie")
            yield f"{column.name}: {far} far outside of what it usually holds"
        if abs(column.shift) > SHIFTED:
            yield (
                f"{column.name}: the last part lies {column.shift:+.1f} standard deviations from the training part: "
                "a model that has not seen such numbers will be unsure of them"
            )
    if len(data.values) < 100:
        yield f"only {counted(len(data.values), 'row')}: intervals of scores will be wide"
