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
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from ..errors import ConfigError, DataError, did_you_mean
from .batch import Batch, next_value_batch
from .files import read_text
from .source import PARTS, split_edges

MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-", "."}
DEFAULT_SPLIT = "80/10/10"
FEW_ODD = 0.5  # a column with a smaller share of words than this is numbers with mistakes in them
SHORTEST = 8  # rows of training data


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
        gaps = f", {missing:,} numbers missing" if missing else ""
        shown = ", ".join(self.columns[:6]) + (", …" if len(self.columns) > 6 else "")
        steps = f"{len(self.values):,} steps of {len(self.columns)} numbers ({shown}){gaps}"
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
        if not len(columns) == len(mean) == len(scale):
            raise ValueError("columns, mean and scale differ in length")
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


def open_numbers(
    source: str | Path, *, columns: Sequence[str] | None = None, split: str | None = None, name: str | None = None
) -> NumberData:
    """Read a table with one step a row; columns of words and columns that never change are left out, and named."""
    path = Path(source)
    header, rows = _read_table(path)
    table = _Table(path, header, rows)
    kept, notes = table.choose(columns)
    values = np.column_stack([table.numbers(index) for index in kept])
    edges = split_edges(len(values), split or DEFAULT_SPLIT)
    if edges[1] < SHORTEST or any(b - a < 1 for a, b in pairwise(edges)):
        raise DataError(
            f"{path}: too few rows: {len(values)} in all leave {edges[1]} to train on, and {SHORTEST} are needed."
        )
    parts = {part: slice(a, b) for part, a, b in zip(PARTS, edges, edges[1:], strict=False)}
    chosen, notes = [], list(notes)
    for place, index in enumerate(kept):
        known = values[parts["train"], place]
        known = known[~np.isnan(known)]
        if len(known) == 0:
            notes.append(f"column {header[index]} has no number in the training part and is left out")
        elif known.min() == known.max():
            notes.append(f"column {header[index]} is always {known[0]:g} in the training part and is left out")
        else:
            chosen.append(place)
    if not chosen:
        raise DataError(f"{path}: nothing to forecast: {'; '.join(notes)}.")
    values = np.ascontiguousarray(values[:, chosen])
    names = [header[kept[place]] for place in chosen]
    digest = hashlib.sha256(f"{names}|{edges}|".encode() + values.tobytes())
    words = f"split in order {split or DEFAULT_SPLIT}"
    return NumberData(name or path.name, names, values, parts, digest.hexdigest(), words, notes)


def _read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    lines = _lines(path)
    first = next(lines, "")
    delimiter = max(",;\t", key=first.count)
    rows = [row for row in csv.reader(_chain(first, lines), delimiter=delimiter) if any(cell.strip() for cell in row)]
    if not rows:
        raise DataError(f"{path}: the file is empty. Give a table with one step a row.")
    has_header = not any(_number(cell) is not None for cell in rows[0])
    header = [cell.strip() for cell in rows[0]] if has_header else [f"column{i + 1}" for i in range(len(rows[0]))]
    body = rows[1:] if has_header else rows
    if not body:
        raise DataError(f"{path}: only a header and no rows.")
    for number, row in enumerate(body, start=2 if has_header else 1):
        if len(row) != len(header):
            raise DataError(
                f"{path}: line {number} has {len(row)} cells, but the first line has {len(header)}. "
                "Every row needs as many."
            )
    return header, body


def _lines(path: Path) -> Iterator[str]:
    rest = ""
    for block in read_text(path):
        *whole, rest = (rest + block).split("\n")
        yield from (line + "\n" for line in whole)
    if rest:
        yield rest


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _number(cell: str) -> float | None:
    """A number, NaN where it is missing, None where it is a word."""
    if cell.strip().lower() in MISSING:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else math.nan


class _Table:
    def __init__(self, path: Path, header: list[str], rows: list[list[str]]):
        self.path, self.header, self.rows = path, header, rows
        self.first_line = 1 if header == [f"column{i + 1}" for i in range(len(header))] else 2

    def choose(self, wanted: Sequence[str] | None) -> tuple[list[int], list[str]]:
        """Which columns to read: those asked for, or all that hold numbers."""
        if wanted is not None:
            for name in wanted:
                if name not in self.header:
                    raise ConfigError(f'{self.path}: no column "{name}". {did_you_mean(name, self.header)}')
            return [self.header.index(name) for name in wanted], []
        kept, notes = [], []
        for index, name in enumerate(self.header):
            is_word = [_number(row[index]) is None for row in self.rows]
            if sum(is_word) > FEW_ODD * len(self.rows):
                notes.append(f"column {name} holds words ({self.rows[0][index]!r}) and is left out")
            else:
                kept.append(index)
        if not kept:
            raise DataError(f"{self.path}: no column of numbers; found {', '.join(self.header)}.")
        return kept, notes

    def numbers(self, index: int) -> np.ndarray:
        found = np.empty(len(self.rows))
        for number, row in enumerate(self.rows):
            value = _number(row[index])
            if value is None:
                raise DataError(
                    f"{self.path}: line {number + self.first_line}, column {self.header[index]}: "
                    f'"{row[index]}" is not a number. Mend it, leave the cell empty where the number is missing, '
                    "or choose other columns with --columns."
                )
            found[number] = value
        return found


def find_season(values: np.ndarray) -> int:
    """After how many steps a series (N, C) resembles itself most: the highest peak of its autocorrelation, or 1.

    A straight line is taken out of each column first. A peak must stand out of the valley before it, else noise on a
    slow decline would do; a whole fraction of the highest peak's lag is taken where its own peak is nearly as high.
    """
    N = len(values)
    if N < 3 * SHORTEST:
        return 1
    filled = np.where(np.isnan(values), np.nanmean(values, axis=0), values)
    time = np.arange(N) - (N - 1) / 2
    slope = time @ (filled - filled.mean(axis=0)) / (time @ time)
    flat = filled - filled.mean(axis=0) - time[:, None] * slope
    spectrum = np.abs(np.fft.rfft(flat, 2 * N, axis=0)) ** 2
    correlation = np.fft.irfft(spectrum, axis=0)[:N].sum(axis=1)
    longest = N // 3
    correlation = correlation[: longest + 1] / (correlation[0] or 1.0) * (N / np.arange(N, N - longest - 1, -1))
    lags = np.arange(2, longest)
    is_peak = (correlation[lags] > correlation[lags - 1]) & (correlation[lags] >= correlation[lags + 1])
    height = correlation[lags] - np.minimum.accumulate(correlation)[lags]
    peaks = lags[is_peak & (correlation[lags] > 0.2) & (height > 0.1)]
    if len(peaks) == 0:
        return 1
    highest = int(peaks[correlation[peaks].argmax()])
    for fraction in range(highest // 2, 1, -1):
        near = peaks[np.abs(peaks - highest / fraction) <= max(1, 0.03 * highest / fraction)]
        if len(near) and correlation[near].max() >= 0.7 * correlation[highest]:
            return int(near[correlation[near].argmax()])
    return highest
