"""Numeric columns of a .csv file -> a series in up to three parts, with what is missing marked.

data = open_numbers("temperatures.csv")
data.values         # (N, C) float64, NaN where a number is missing
data.parts["test"]  # the rows of the test part
"""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import torch

from ..errors import ConfigError, DataError, did_you_mean
from ..wording import counted
from .batch import Batch, next_value_batch
from .files import read_text, shown
from .source import PARTS, split_edges

MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-", "."}
DEFAULT_SPLIT = "80/10/10"
FEW_ODD = 0.5  # a column with a smaller share of words than this is numbers with mistakes in them
SHORTEST = 8  # rows of training data
LARGEST = 1e100  # numbers beyond this cannot be squared and summed


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
    """What was left out, and why."""

    @property
    def description(self) -> str:
        parts = ", ".join(f"{part} {rows.stop - rows.start:,}" for part, rows in self.parts.items())
        missing = int(np.isnan(self.values).sum())
        gaps = f", {counted(missing, 'number')} missing" if missing else ""
        shown = ", ".join(self.columns[:6]) + (", …" if len(self.columns) > 6 else "")
        steps = f"{counted(len(self.values), 'step')} of {counted(len(self.columns), 'number')} ({shown}){gaps}"
        return f"{self.name}: {steps}; {self.split} ({parts})"


@dataclass(frozen=True)
class Scaling:
    """Columns as models see them: mean zero, variance one in the training part."""

    columns: list[str]
    mean: np.ndarray  # (C,)
    scale: np.ndarray  # (C,)

    @staticmethod
    def of(data: NumberData) -> Scaling:
        train = data.values[data.parts["train"]]
        mean, scale = np.nanmean(train, axis=0), np.nanstd(train, axis=0)
        return Scaling(data.columns, mean, np.where(scale > 0, scale, 1.0))

    def apply(self, values: np.ndarray) -> np.ndarray:
        return (values - self.mean) / self.scale

    def undo(self, values: np.ndarray) -> np.ndarray:
        return values * self.scale + self.mean

    def to_dict(self) -> dict[str, list[str] | list[float]]:
        return {"columns": self.columns, "mean": self.mean.tolist(), "scale": self.scale.tolist()}

    @staticmethod
    def from_dict(saved: dict[str, list[float]]) -> Scaling:
        columns = [str(name) for name in saved["columns"]]
        mean, scale = (np.array(saved[name], dtype=np.float64) for name in ("mean", "scale"))
        is_sound = mean.shape == scale.shape == (len(columns),) and np.isfinite(mean).all()
        if not is_sound or not (np.isfinite(scale).all() and (scale > 0).all()):
            raise ValueError("columns, mean and scale do not fit each other")
        return Scaling(columns, mean, scale)


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

    def batch(self, places: np.ndarray) -> Batch:
        """Rows (B, T+1) of the series as inputs and, one step ahead, targets."""
        values = torch.from_numpy(self.values[places].astype(np.float32))
        return next_value_batch(values, torch.from_numpy(self.is_observed[places]))


def build_number_store(data: NumberData, part: str, scaling: Scaling) -> NumberStore:
    rows = data.parts[part]
    scaled = scaling.apply(data.values[: rows.stop])
    is_observed = np.concatenate([np.zeros((1, scaled.shape[1]), dtype=bool), ~np.isnan(scaled)])
    values = np.concatenate([np.zeros((1, scaled.shape[1])), np.nan_to_num(scaled)])
    return NumberStore(values, is_observed, rows.start + 1)


def open_numbers(source: str | Path, *, columns: Sequence[str] | None = None, split: str | None = None) -> NumberData:
    """Read a table with one step a row; columns of words and columns that never change are left out, and named."""
    table = _read_table(Path(source))
    kept, notes = table.choose(columns)
    values = np.column_stack([table.numbers(index) for index in kept])
    split = split or DEFAULT_SPLIT
    edges = split_edges(len(values), split)
    if edges[1] < SHORTEST:
        raise DataError(
            f"{source}: too few rows: {len(values)} in all leave {edges[1]} to train on, and {SHORTEST} are needed."
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
    return _number_data(Path(source), [table.header[kept[place]] for place in chosen], values, parts, split, notes)


def open_whole_series(source: str | Path, columns: Sequence[str]) -> NumberData:
    """These columns of a table as one part named "whole", for scoring and forecasting."""
    table = _read_table(Path(source))
    kept, _ = table.choose(columns)
    values = np.column_stack([table.numbers(index) for index in kept])
    return _number_data(Path(source), list(columns), values, {"whole": slice(0, len(values))}, "whole", [])


def _number_data(
    path: Path, names: list[str], values: np.ndarray, parts: dict[str, slice], split: str, notes: list[str]
) -> NumberData:
    edges = [(rows.start, rows.stop) for rows in parts.values()]
    digest = hashlib.sha256(f"{names}|{edges}|".encode() + np.ascontiguousarray(values).tobytes())
    words = "read whole" if split == "whole" else f"split in order {split}"
    return NumberData(path.name, names, values, parts, digest.hexdigest(), words, notes)


@dataclass(frozen=True)
class _Table:
    path: Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]
    """Where in the file each row ends."""

    def choose(self, wanted: Sequence[str] | None) -> tuple[list[int], list[str]]:
        """Which columns to read: those asked for, or all that hold numbers; and a note on each that is left out."""
        if wanted is not None:
            for name in wanted:
                if name not in self.header:
                    raise ConfigError(f'{self.path}: no column "{name}". {did_you_mean(name, self.header)}')
            return [self.header.index(name) for name in wanted], []
        kept, notes = [], []
        for index, name in enumerate(self.header):
            is_word = [_number(row[index]) is None for row in self.rows]
            if sum(is_word) > FEW_ODD * len(self.rows):
                notes.append(f"column {name} holds words ({shown(self.rows[0][index])}) and is left out")
            else:
                kept.append(index)
        if not kept:
            raise DataError(f"{self.path}: no column of numbers; found {', '.join(self.header)}.")
        return kept, notes

    def numbers(self, index: int) -> np.ndarray:
        """A column, NaN where a number is missing, (N,)."""
        found = np.empty(len(self.rows))
        for place, row in enumerate(self.rows):
            value = _number(row[index])
            if value is None or abs(value) > LARGEST:
                what = "is not a number" if value is None else f"is beyond {LARGEST:g}"
                raise DataError(
                    f"{self.path}: line {self.lines[place]}, column {self.header[index]}: {shown(row[index])} {what}. "
                    "Mend it, leave the cell empty where the number is missing, or choose other columns with --columns."
                )
            found[place] = value
        return found


def _read_table(path: Path) -> _Table:
    lines = _lines(path)
    blank, first = 0, ""
    for first in lines:
        if first.strip():
            break
        blank += 1
    reader = csv.reader(chain([first], lines), delimiter=max(",;\t", key=first.count))
    rows, ends = [], []
    try:
        for row in reader:
            if row:  # a blank line is no step; a line of empty cells is one at which all is missing
                rows.append(row)
                ends.append(reader.line_num + blank)
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num + blank}: {error}. Is a quote not closed?") from None
    if not rows or not first.strip():
        raise DataError(f"{path}: the file is empty. Give a table with one step a row.")
    numbers = [_number(cell) for cell in rows[0]]
    has_header = not any(number is not None and not math.isnan(number) for number in numbers)
    names = [cell.strip() for cell in rows[0]] if has_header else [""] * len(rows[0])
    header = [name or f"column{place + 1}" for place, name in enumerate(names)]
    if has_header:
        rows, ends = rows[1:], ends[1:]
    if not rows:
        raise DataError(f"{path}: only a header and no rows.")
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise DataError(f'{path}: two columns are named "{twice}". Give each a name of its own.')
    for row, end in zip(rows, ends, strict=True):
        if len(row) != len(header):
            raise DataError(
                f"{path}: line {end} has {len(row)} cells, but the first line has {len(header)}. "
                "Every row needs as many."
            )
    return _Table(path, header, rows, ends)


def _lines(path: Path) -> Iterator[str]:
    rest = ""
    for block in read_text(path):
        *whole, rest = (rest + block).split("\n")
        yield from (line + "\n" for line in whole)
    if rest:
        yield rest


def _number(cell: str) -> float | None:
    """A number, NaN where it is missing, None where it is a word."""
    if cell.strip().lower() in MISSING:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else math.nan


def find_season(values: np.ndarray) -> int:
    """After how many steps a series (N, C) resembles itself most: the highest peak of its autocorrelation, or 1.

    A straight line is taken out of each column first. A peak must stand out of the valley before it, else noise on a
    slow decline would do; a whole fraction of the highest peak's lag is taken where its own peak is nearly as high.
    """
    N = len(values)
    if N < 3 * SHORTEST:
        return 1
    flat = np.column_stack([_flat(column) for column in values.T])  # (N, C)
    spectrum = np.abs(np.fft.rfft(flat, 2 * N, axis=0)) ** 2
    correlation = np.fft.irfft(spectrum, axis=0)[:N].sum(axis=1)
    longest = N // 3
    correlation = correlation[: longest + 1] / (correlation[0] or 1.0) * (N / np.arange(N, N - longest - 1, -1))
    lags = np.arange(2, longest)
    is_peak = (correlation[lags] > correlation[lags - 1]) & (correlation[lags] >= correlation[lags + 1])
    height = correlation[lags] - np.minimum.accumulate(correlation)[lags]
    chance = max(0.2, 4 / math.sqrt(N))  # what white noise reaches somewhere
    peaks = lags[is_peak & (correlation[lags] > chance) & (height > 0.1)]
    if len(peaks) == 0:
        return 1
    highest = int(peaks[correlation[peaks].argmax()])
    for fraction in range(highest // 2, 1, -1):
        near = peaks[np.abs(peaks - highest / fraction) <= max(1, 0.03 * highest / fraction)]
        if len(near) and correlation[near].max() >= 0.7 * correlation[highest]:
            return int(near[correlation[near].argmax()])
    return highest


def _flat(column: np.ndarray) -> np.ndarray:
    """A column without its straight line, of variance one, and zero where a number is missing."""
    is_known = ~np.isnan(column)
    if is_known.sum() < 3:
        return np.zeros(len(column))
    time = np.arange(len(column), dtype=np.float64)
    slope, level = np.polyfit(time[is_known], column[is_known], 1)
    flat = np.where(is_known, column - (level + slope * time), 0.0)
    scale = flat[is_known].std()
    return flat / scale if scale > 0 else flat
