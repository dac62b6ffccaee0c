"""Numeric columns of a .csv file -> a series in up to three parts, with what is missing marked.

data = open_numbers("temperatures.csv")
data.values         # (N, C) float64, NaN where a number is missing
data.parts["test"]  # the rows of the test part
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from ..errors import ConfigError, DataError
from ..wording import counted
from .batch import Batch, next_value_batch
from .dates import Dates
from .number_table import NumberTable, read_number_table
from .schema import ValueSpec
from .seasons import find_seasons, main_season
from .source import PARTS, split_edges

DEFAULT_SPLIT = "80/10/10"
MIN_TRAIN_ROWS = 8
FARTHEST = 1e12  # standard deviations of the training part; networks compute with seven digits and squares up to 1e38


@dataclass(frozen=True)
class NumberData:
    """A table of numbers, one step a row, in order of time."""

    name: str
    columns: list[str]
    values: np.ndarray
    """(N, C) float64, NaN where a number is missing."""
    parts: dict[str, slice]
    fingerprint: str
    split: str
    notes: list[str] = field(default_factory=list)
    """How the file was read; what was left out, and why."""
    dates: Dates | None = None
    given_season: int | list[int] | None = None
    """Steps after which all columns, or each of them, resemble themselves; found in the training part where not set."""

    @cached_property
    def seasons(self) -> list[int]:
        """Of each column; 1 where it has none."""
        if self.given_season is not None:
            return seasons_by_column(self.given_season, self.columns)
        first = next(iter(self.parts.values()))
        return find_seasons(self.values[first], self.dates.seasons if self.dates else ())

    @property
    def season(self) -> int:
        """That of most columns; 1 where none has any."""
        return main_season(self.seasons)

    @property
    def description(self) -> str:
        parts = ", ".join(f"{part} {rows.stop - rows.start:,}" for part, rows in self.parts.items())
        missing = int(np.isnan(self.values).sum())
        gaps = f", {counted(missing, 'number')} missing" if missing else ""
        shown = ", ".join(self.columns[:6]) + (", …" if len(self.columns) > 6 else "")
        steps = f"{counted(len(self.values), 'step')} of {counted(len(self.columns), 'number')} ({shown}){gaps}"
        return f"{self.name}: {steps}; {self.split} ({parts})"


def seasons_by_column(season: int | list[int] | None, columns: Sequence[str]) -> list[int]:
    """One season for all columns, or one for each, or none (1)."""
    if not isinstance(season, list):
        return [season or 1] * len(columns)
    if len(season) != len(columns):
        raise ConfigError(
            f"data.season names {len(season)} seasons for {len(columns)} columns ({', '.join(columns)}); "
            "give one for each, or one number for all."
        )
    return season


def scaling_of(data: NumberData) -> ValueSpec:
    """The columns with their mean and spread in the training part."""
    train = data.values[data.parts["train"]]
    mean, scale = np.nanmean(train, axis=0), np.nanstd(train, axis=0)
    return ValueSpec(data.columns, mean, np.where(scale > 0, scale, 1.0))


@dataclass(frozen=True)
class NumberStore:
    """A series, scaled, up to the end of a part. Before its first row stands one at which nothing is observed."""

    values: np.ndarray  # (N+1, C) float64, zero where missing
    is_observed: np.ndarray  # (N+1, C) bool
    first: int
    """The first row of the part; what stands before it is history that may be read."""

    def __len__(self) -> int:
        """Rows to predict, of the whole series."""
        return len(self.values) - 1

    def take(self, limit: int) -> NumberStore:
        """The same with at most so many rows of the part; more where nothing is observed in those."""
        is_observed = self.is_observed[self.first :].any(axis=1)
        end = self.first + max(limit, int(is_observed.argmax()) + 1)
        return NumberStore(self.values[:end], self.is_observed[:end], self.first)

    def batch(self, places: np.ndarray) -> Batch:
        """Rows (B, T+1) of the series as inputs and, one step ahead, targets."""
        values = torch.from_numpy(self.values[places].astype(np.float32))
        return next_value_batch(values, torch.from_numpy(self.is_observed[places]))


def build_number_store(data: NumberData, part: str, scaling: ValueSpec) -> NumberStore:
    rows = data.parts[part]
    return store_of(data.values[: rows.stop], scaling, data.name, first=rows.start)


def store_of(values: np.ndarray, scaling: ValueSpec, name: str, *, first: int = 0) -> NumberStore:
    """Of a series (N, C) as it was measured, nan where missing; rows before the `first` are history."""
    scaled = scaling.encode(values)
    for row, column in np.argwhere(np.abs(scaled) > FARTHEST):  # not of what is missing
        raise DataError(
            f"{name}: row {row + 1}, column {scaling.columns[column]}: {values[row, column]:g} lies "
            f"{abs(scaled[row, column]):.0e} standard deviations from the training part. Mend it, or leave it empty."
        )
    is_observed = np.concatenate([np.zeros((1, scaled.shape[1]), dtype=bool), ~np.isnan(scaled)])
    scaled = np.concatenate([np.zeros((1, scaled.shape[1])), np.nan_to_num(scaled)])
    return NumberStore(scaled, is_observed, first + 1)


def open_numbers(
    source: str | Path,
    *,
    columns: Sequence[str] | None = None,
    split: str | None = None,
    season: int | list[int] | None = None,
) -> NumberData:
    """Read a table with one step a row; columns of words and columns that never change are left out, and named."""
    table = read_number_table(Path(source))
    kept, notes = table.choose(columns)
    values = np.column_stack([table.numbers(index) for index in kept])
    notes = [*table.notes, *notes]
    split = split or DEFAULT_SPLIT
    edges = split_edges(len(values), split)
    if edges[1] < MIN_TRAIN_ROWS:
        raise DataError(
            f"{source}: too few rows: {len(values)} in all leave {edges[1]} to train on, and {MIN_TRAIN_ROWS} are "
            "needed."
        )
    parts = {part: slice(a, b) for part, (a, b) in zip(PARTS, pairwise(edges), strict=False)}
    chosen = []
    for place, index in enumerate(kept):
        known = values[parts["train"], place]
        known = known[~np.isnan(known)]
        if len(known) == 0:
            notes.append(f"column {table.header[index]} has no number in the training part and is left out")
        elif known.min() == known.max():
            notes.append(f"column {table.header[index]} is always {known[0]:g} in the training part and is left out")
        else:
            chosen.append(place)
    if not chosen:
        raise DataError(f"{source}: nothing to forecast: {'; '.join(notes)}.")
    values = np.ascontiguousarray(values[:, chosen])
    for part, rows in parts.items():
        if np.isnan(values[rows]).all():
            raise DataError(
                f"{source}: the {part} part ({rows.stop - rows.start} of {len(values)} rows, split {split}) "
                "holds no number. Give more rows, or cut elsewhere with --split-at."
            )
    names = [table.header[kept[place]] for place in chosen]
    return _number_data(table, names, values, parts, split, notes, season)


def open_whole_series(source: str | Path, columns: Sequence[str]) -> NumberData:
    """These columns of a table as one part named "whole", for scoring and forecasting."""
    table = read_number_table(Path(source))
    kept, _ = table.choose(columns)
    values = np.column_stack([table.numbers(index) for index in kept])
    return _number_data(table, list(columns), values, {"whole": slice(0, len(values))}, "whole", table.notes)


def _number_data(
    table: NumberTable,
    names: list[str],
    values: np.ndarray,
    parts: dict[str, slice],
    split: str,
    notes: list[str],
    season: int | list[int] | None = None,
) -> NumberData:
    edges = [(rows.start, rows.stop) for rows in parts.values()]
    digest = hashlib.sha256(f"{names}|{edges}|".encode() + np.ascontiguousarray(values).tobytes())
    words = "read whole" if split == "whole" else f"split in order {split}"
    notes = [*notes, *(table.dates.oddities if table.dates else [])]
    fingerprint = digest.hexdigest()
    return NumberData(table.path.name, names, values, parts, fingerprint, words, notes, table.dates, season)
