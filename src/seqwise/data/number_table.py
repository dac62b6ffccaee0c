"""A .csv file as a table of cells, and its cells as numbers: what stands between them, whether the first line is a
header, how numbers are written, which of them are missing.

table = read_number_table(Path("prices.csv"))
table.numbers(1)      # (N,) float64, NaN where a number is missing
table.notes           # 'numbers are read with a decimal comma: "1,5" is 1.5'
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from ..errors import ConfigError, DataError, did_you_mean
from .dates import Dates, read_dates
from .files import read_text, shown

MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "+nan", "-nan", "null", "none", "?", "-", "."}
MAX_WORD_SHARE = 0.5  # a column with a smaller share of words than this is numbers with mistakes in them
MAX_VALUE = 1e100  # numbers beyond this cannot be squared and summed
BETWEEN_CELLS = ";\t,"  # a comma may also stand within a number, so it comes last
TRIED = 50  # rows that tell what stands between cells, and whether the first is a header

Comma = Literal["none", "decimal", "thousands"]
"""What a comma within a number is."""
WITH_COMMA = re.compile(r"[+-]?(\d+(\.\d{3})*,\d+|\d+(,\d{3})+(\.\d*)?|\d+(\.\d{3}){2,})([eE][+-]?\d+)?")
EITHER = re.compile(r"[+-]?\d{1,3},\d{3}")  # one and a bit, or more than a thousand
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
POINT = re.compile(r"[+-]?\d*\.(\d{1,2}|\d{4,})([eE][+-]?\d+)?")  # a decimal point, and no thousands


@dataclass(frozen=True)
class NumberTable:
    path: Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]
    """Where in the file each row ends."""
    comma: Comma = "none"
    notes: list[str] = field(default_factory=list)
    """How the file was read, where there was something to decide."""

    def choose(self, wanted: Sequence[str] | None) -> tuple[list[int], list[str]]:
        """Which columns to read: those asked for, or all that hold numbers; and a note on each that is left out."""
        if wanted is not None:
            for name in wanted:
                if name not in self.header:
                    raise ConfigError(f'{self.path}: no column "{name}". {did_you_mean(name, self.header)}')
            return [self.header.index(name) for name in wanted], []
        kept, notes = [], []
        for index, name in enumerate(self.header):
            if not self._holds_words[index]:
                kept.append(index)
            elif self.dates is not None and self.dates.column == name:
                notes.append(f"column {name} holds dates, {self.dates.step} apart, and is not forecast")
            else:
                notes.append(f"column {name} holds words ({shown(self.rows[0][index])}) and is left out")
        if not kept:
            why = "".join(f" {note[0].upper()}{note[1:]}." for note in self.notes)
            raise DataError(f"{self.path}: no column of numbers; found {', '.join(self.header)}.{why}")
        return kept, notes

    def numbers(self, index: int) -> np.ndarray:
        """A column, NaN where a number is missing, (N,)."""
        found = np.empty(len(self.rows))
        for place, row in enumerate(self.rows):
            value = number_in(row[index], self.comma)
            if value is None or abs(value) > MAX_VALUE:
                what = "is not a number" if value is None else f"is beyond {MAX_VALUE:g}"
                within = (
                    " (a comma within a number?)" if value is None and WITH_COMMA.fullmatch(row[index].strip()) else ""
                )
                raise DataError(
                    f"{self.path}: line {self.lines[place]}, column {self.header[index]}: {shown(row[index])} {what}"
                    f"{within}. Mend it, leave the cell empty where the number is missing, or choose other columns "
                    "with --columns."
                )
            found[place] = value
        return found

    @cached_property
    def dates(self) -> Dates | None:
        """The first column of words that holds dates."""
        for index, name in enumerate(self.header):
            if self._holds_words[index]:
                found = read_dates(name, [row[index] for row in self.rows], self.lines)
                if found is not None:
                    return found
        return None

    @cached_property
    def _holds_words(self) -> list[bool]:
        return [_holds_words([row[index] for row in self.rows], self.comma) for index in range(len(self.header))]


def number_in(cell: str, comma: Comma = "none") -> float | None:
    """A number, infinite where it is too large, NaN where it is missing, None where it is a word."""
    cell = cell.strip()
    if cell.lower() in MISSING:
        return math.nan
    if comma == "decimal" and "," in cell:
        cell = cell.replace(".", "").replace(",", ".")
    elif comma == "decimal" and re.fullmatch(r"[+-]?\d{1,3}(\.\d{3})+", cell):
        cell = cell.replace(".", "")
    elif comma == "thousands" and THOUSANDS.fullmatch(cell):
        cell = cell.replace(",", "")
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def read_number_table(path: Path) -> NumberTable:
    rows, ends, notes = _rows(path)
    has_header = _is_header(rows)
    if has_header and any(_is_finite(cell) for cell in rows[0]):
        notes.append(f"line {ends[0]} is taken for a header, though it holds numbers")
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
            is_number = all(re.fullmatch(r"\s*[+-]?\d+\s*", cell) for cell in row)
            hint = ' Is a comma within its numbers? Put ";" between cells.' if is_number else ""
            raise DataError(
                f"{path}: line {end} has {len(row)} cells, but the first line has {len(header)}. "
                f"Every row needs as many.{hint}"
            )
    comma, how = _comma(rows, ends)
    return NumberTable(path, header, rows, ends, comma, notes + how)


def _rows(path: Path) -> tuple[list[list[str]], list[int], list[str]]:
    """Rows of cells, the line of the file in which each ends, and what was decided on the way."""
    lines = list(_lines(path))
    blank = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    lines = lines[blank:]
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise DataError(f"{path}: the file is empty. Give a table with one step a row.")
    reader = csv.reader(lines, delimiter=_between_cells(lines))
    rows, ends = [], []
    try:
        for row in reader:
            rows.append(row)
            ends.append(reader.line_num + blank)
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num + blank}: {error}. Is a quote not closed?") from None
    notes = list[str]()
    is_blank = [not row for row in rows]
    if any(is_blank) and len(rows[0]) == 1:  # with one column, a blank line is an empty cell
        notes.append(
            f"{sum(is_blank):,} blank lines are taken for missing numbers (the first is line "
            f"{ends[is_blank.index(True)]})"
        )
        return [row or [""] for row in rows], ends, notes
    kept = [place for place, row in enumerate(rows) if row]  # with more, a blank line is no step
    return [rows[place] for place in kept], [ends[place] for place in kept], notes


def _between_cells(lines: Sequence[str]) -> str:
    """What stands equally often in the first lines; else what is most frequent in the very first."""
    some = [re.sub(r'"[^"]*"', "", line) for line in islice((line for line in lines if line.strip()), TRIED)]
    for mark in BETWEEN_CELLS:
        if some[0].count(mark) and all(line.count(mark) == some[0].count(mark) for line in some):
            return mark
    return max(reversed(BETWEEN_CELLS), key=lines[0].count)


def _is_finite(cell: str) -> bool:
    number = number_in(cell)
    return number is not None and math.isfinite(number)


def _is_header(rows: list[list[str]]) -> bool:
    """Whether the first row has no number, or has a word on top of a column of numbers or dates."""
    first, below = rows[0], [row for row in rows[1 : TRIED + 1] if len(row) == len(rows[0])]
    words = [index for index, cell in enumerate(first) if number_in(cell) is None and not WITH_COMMA.fullmatch(cell)]
    if not any(_is_finite(cell) or WITH_COMMA.fullmatch(cell.strip()) for cell in first):
        return bool(words)
    for index in words:
        column = [row[index] for row in below]
        is_numbers = len(column) > 0 and all(_is_finite(cell) for cell in column)
        is_dates = read_dates("", column, range(len(column))) is not None
        if is_numbers or (is_dates and read_dates("", [first[index], *column], range(len(column) + 1)) is None):
            return True
    return False


def _holds_words(cells: Sequence[str], comma: Comma) -> bool:
    return sum(number_in(cell, comma) is None for cell in cells) > MAX_WORD_SHARE * len(cells)


def _comma(rows: list[list[str]], lines: list[int]) -> tuple[Comma, list[str]]:
    """What a comma within numbers is, by those that can be read in one way only; and a sentence that says so."""
    if not any("," in cell or cell.count(".") > 1 for row in rows for cell in row):
        return "none", []
    decimal = thousands = either = point = None  # the first cell of each kind, with its line
    for index in range(len(rows[0])):
        cells = [row[index].strip() for row in rows]
        if sum(number_in(c) is None and not WITH_COMMA.fullmatch(c) for c in cells) > MAX_WORD_SHARE * len(cells):
            continue
        for cell, line in zip(cells, lines, strict=True):
            if not WITH_COMMA.fullmatch(cell):
                point = point or ((cell, line) if POINT.fullmatch(cell) else None)
            elif EITHER.fullmatch(cell):
                either = either or (cell, line)
            elif THOUSANDS.fullmatch(cell):
                thousands = thousands or (cell, line)
            else:
                decimal = decimal or (cell, line)
    if decimal and (other := thousands or point):
        return "none", [
            f"line {decimal[1]} has a decimal comma ({decimal[0]}) and line {other[1]} a decimal point ({other[0]}); "
            "write all numbers with a point"
        ]
    if decimal:
        value = number_in(decimal[0], "decimal")
        return "decimal", [f'numbers are read with a decimal comma: "{decimal[0]}" is {value:.12g}']
    if (found := thousands or either) and (thousands or point):
        value = number_in(found[0], "thousands")
        return "thousands", [f'commas within numbers are read as thousands: "{found[0]}" is {value:.12g}']
    if either:
        values = " or ".join(f"{number_in(either[0], comma):g}" for comma in ("decimal", "thousands"))
        return "none", [
            f'line {either[1]}: "{either[0]}" may be {values}, and nothing in the file tells which; '
            "write the numbers without commas"
        ]
    return "none", []


def _lines(path: Path) -> Iterator[str]:
    rest = ""
    for block in read_text(path):
        *whole, rest = (rest + block).split("\n")
        yield from (line + "\n" for line in whole)
    if rest:
        yield rest
