"""Tables of text -> rows with the numbers of their lines: .csv, .tsv and .jsonl as they are found.

What a suffix promises is often not so, hence everything is found by content:

    separator    a .csv may have TABs or semicolons: the one that gives most rows the same number of cells
    quotes       those of .csv (a cell in quotes may hold separators and line ends, and doubled quotes) where all quotes
                 in the file are such; else they are characters of the text
    header       names that are known, words above numbers, or names above texts
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from ..errors import ConfigError, DataError, did_you_mean
from .files import kind_of, lines_of, read_text
from .json_lines import check_whole, json_rows

TABLE_KINDS = (".csv", ".tsv", ".jsonl")
SEPARATORS = {"\t": "TABs", ",": "commas", ";": "semicolons"}
ONE_COLUMN = "\x1f"  # a separator that stands in no text
LOOKED_AT = 1000  # lines, to choose the separator by
MAX_CHARACTERS = (1 << 31) - 1  # in a cell: the csv module refuses a long text by itself
NAME = re.compile(r"[^\W\d][\w.#-]*( [\w.#-]+)?")  # a cell that could be the name of a column
TEXT_WORDS = 3  # words a cell in a column of texts
UNNAMED = "column {}"

Cell = str | tuple[str, ...]
"""A list in a .jsonl file is several."""


class TableRow(NamedTuple):
    line: int
    """Where it begins."""
    cells: list[Cell]


@dataclass(frozen=True)
class Table:
    path: Path
    names: list[str]
    """Of the columns; "column 1" and so on where the file has no header."""
    rows: list[TableRow]
    has_header: bool
    notes: list[str] = field(default_factory=list)

    def place(self, name: str) -> int | None:
        """Of a column: by its name, its name in other case, or, without a header, its number from 1."""
        for names, wanted in ((self.names, name), ([known.casefold() for known in self.names], name.casefold())):
            if wanted in names:
                return names.index(wanted)
        is_number = name.isascii() and name.isdecimal() and 1 <= int(name) <= len(self.names)
        return int(name) - 1 if is_number and not self.has_header else None

    def checked_place(self, name: str) -> int:
        place = self.place(name)
        if place is None:
            known = self.names if self.has_header else [str(n + 1) for n in range(len(self.names))]
            raise ConfigError(f'{self.path}: there is no column "{name}". {did_you_mean(name, known)}')
        return place


def read_table(path: Path, known_names: Collection[str] = ()) -> Table:
    """The whole table. `known_names` (in lower case) are those by which a first line is known for a header."""
    if kind_of(path) == ".jsonl":
        return _json_table(path, None)
    lines = list(lines_of(read_text(path)))
    separator = _separator(path, lines[:LOOKED_AT])
    rows, notes = _cut(path, lines, separator, is_whole=True)
    table = _named(path, rows, known_names, notes) if rows else None
    if table is None or not table.rows:
        raise DataError(f"{path}: no rows in it. Give a table with a text and a label on each line.")
    for row in table.rows:
        if len(row.cells) != len(table.names):
            raise DataError(
                f"{path}: line {row.line} has {len(row.cells)} columns, but line {rows[0].line} has "
                f"{len(table.names)}. Put cells that hold {SEPARATORS[separator]} into quotes."
            )
    if len(table.names) > 1 and separator != _promised(path):
        table.notes.append(f"{path.name}: columns are separated by {SEPARATORS[separator]}, whatever its name says")
    return table


def read_beginning(path: Path, known_names: Collection[str] = ()) -> Table | None:
    """The first rows of a table, to see what it holds; None where they are none, which its reader will tell."""
    try:
        if kind_of(path) == ".jsonl":
            return _json_table(path, LOOKED_AT)
        lines = list(islice(lines_of(read_text(path)), LOOKED_AT))
        rows, notes = _cut(path, lines, _separator(path, lines), is_whole=False)
    except DataError:
        return None
    rows = [row for row in rows if len(row.cells) == len(rows[0].cells)]  # the last may be cut in its middle
    return _named(path, rows, known_names, notes) if rows else None


# -- .csv and .tsv -----------------------------------------------------------------------------------------------


def _separator(path: Path, lines: Sequence[str]) -> str:
    """The one by which most rows are as wide as the first; of equals the one that the suffix promises."""
    own = _promised(path)
    scores = {}
    for separator in (own, *(other for other in SEPARATORS if other != own)):
        try:
            rows, _ = _cut(path, lines, separator, is_whole=False)
        except DataError:
            scores[separator] = 0.1 if any(separator in line for line in lines[:1]) else 0.0
            continue
        width = len(rows[0].cells) if rows else 1
        scores[separator] = sum(len(row.cells) == width for row in rows) / len(rows) if width > 1 else 0.0
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] else ONE_COLUMN


def _promised(path: Path) -> str:
    """The separator that a suffix tells."""
    return "," if kind_of(path) == ".csv" else "\t"


def _cut(path: Path, lines: Sequence[str], separator: str, *, is_whole: bool) -> tuple[list[TableRow], list[str]]:
    """Rows, and what was found about quotes. Blank lines are no rows."""
    plain = [
        TableRow(number, [cell.strip() for cell in line.split(separator)])
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    if not any('"' in line for line in lines):
        return plain, []
    quoted, broken_at = _cut_quoted(lines, separator, is_whole=is_whole)
    is_even = len({len(row.cells) for row in plain}) == 1
    if broken_at is None and not (separator == "\t" and is_even and len(quoted) != len(plain)):
        return quoted, []
    if broken_at is not None and separator != "\t" and not is_even:
        raise DataError(
            f"{path}: line {broken_at}: a quote opens a cell there, and does not close it before a separator or a line "
            "end. Close it, and double quotes inside of quoted cells."
        )
    return plain, [f"{path.name}: quotes are read as part of the text, as they do not balance"]


def _cut_quoted(lines: Sequence[str], separator: str, *, is_whole: bool) -> tuple[list[TableRow], int | None]:
    """Rows by the rules of quoting, and the line where they are broken."""
    rows: list[TableRow] = []
    with _long_cells():
        reader = csv.reader((line + "\n" for line in lines), delimiter=separator, strict=True)
        start = 1
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    rows.append(TableRow(start, [cell.strip() for cell in cells]))
                start = reader.line_num + 1
        except csv.Error:
            is_cut_off = not is_whole and reader.line_num >= len(lines)
            return rows, None if is_cut_off else start
    return rows, None


@contextmanager
def _long_cells() -> Iterator[None]:
    before = csv.field_size_limit(MAX_CHARACTERS)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _named(path: Path, rows: list[TableRow], known_names: Collection[str], notes: list[str]) -> Table:
    if is_header(rows[0].cells, rows[1:], known_names):
        return Table(path, [str(name) for name in rows[0].cells], rows[1:], True, notes)
    names = [UNNAMED.format(place) for place in range(1, len(rows[0].cells) + 1)]
    return Table(path, names, rows, False, notes)


def is_header(first: Sequence[Cell], rest: Sequence[TableRow], known_names: Collection[str]) -> bool:
    """Whether a first row names the columns: what stands again below it is no name."""
    names = [str(cell) for cell in first]
    columns = [[str(row.cells[place]) for row in rest if place < len(row.cells)] for place in range(len(names))]
    again = [name in column for name, column in zip(names, columns, strict=True)]
    if any(name.casefold() in known_names and not is_again for name, is_again in zip(names, again, strict=True)):
        return True
    if any(again) or len(rest) < 2:
        return False
    for name, column in zip(names, columns, strict=True):
        if not is_number(name) and name and all(is_number(cell) for cell in column if cell) and any(column):
            return True
    are_names = all(NAME.fullmatch(name) for name in names) and len(set(names)) == len(names)
    return are_names and any(sum(len(c.split()) for c in column) >= TEXT_WORDS * len(column) for column in columns)


def is_number(cell: Cell) -> TypeGuard[str]:
    try:
        float(cell)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return False
    return True


# -- .jsonl ------------------------------------------------------------------------------------------------------


def _json_table(path: Path, most_rows: int | None) -> Table:
    names: dict[str, int] = {}
    found: list[tuple[int, dict[str, Any]]] = []
    for number, row in json_rows(path, '{"text": …, "label": …}'):
        if row is None:
            continue
        for name in row:
            names.setdefault(name, len(names))
        found.append((number, row))
        if len(found) == most_rows:
            break
    if not found:
        raise DataError(f"{path}: no rows in it. Give an object with a text and a label on each line.")
    rows = [
        TableRow(number, [cell_of(row.get(name), f'{path}: line {number}: field "{name}"') for name in names])
        for number, row in found
    ]
    return Table(path, list(names), rows, True)


def cell_of(value: Any, where: str) -> Cell:
    if value is None:
        return ""
    if isinstance(value, str):
        return check_whole(value, where).strip()
    if isinstance(value, list) and not any(isinstance(one, list | dict) for one in value):
        return tuple(str(cell_of(one, where)) for one in value)
    return json.dumps(value, ensure_ascii=False)
