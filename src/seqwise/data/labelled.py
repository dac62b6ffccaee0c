"""Does a table hold texts with labels? Such data is not read yet, and would be misread as pairs or numbers."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import DataError
from .files import kind_of, lines_of, read_text, shown

LABEL_NAMES = {
    *("label", "labels", "class", "category", "sentiment", "polarity", "rating", "stars", "intent", "topic", "emotion"),
    *("label_id", "label_text", "label_name", "gold_label", "is_spam", "is_toxic", "spam", "toxic"),
}
TEXT_NAMES = {
    "text",
    "texts",
    "sentence",
    "review",
    "message",
    "comment",
    "tweet",
    "title",
    "body",
    "content",
    "utterance",
}
LOOKED_AT = 1000  # rows
MIN_ROWS = 20  # to take a column for labels that is not named so
MAX_LABELS = 50
MAX_LABEL_CHARACTERS = 30
LABEL_WORDS = 2
MIN_WORDS = 3  # of a text


@dataclass(frozen=True)
class _Column:
    name: str
    cells: list[str]

    @property
    def num_distinct(self) -> int:
        return len(set(self.cells))

    @property
    def is_named_label(self) -> bool:
        return self.name.lower() in LABEL_NAMES

    def is_text(self) -> bool:
        """Mostly letters, some words each, and hardly ever the same: not dates, not kinds of weather."""
        everything = "".join(self.cells)
        letters = sum(character.isalpha() for character in everything)
        visible = sum(not character.isspace() for character in everything)
        words = sum(len(cell.split()) for cell in self.cells)
        is_varied = 2 * self.num_distinct >= len(self.cells)
        return is_varied and 2 * letters >= max(1, visible) and words >= MIN_WORDS * len(self.cells)

    def is_label(self) -> bool:
        """Short, and few that come again and again; where the name says so, few are enough."""
        if any(len(cell) > MAX_LABEL_CHARACTERS or len(cell.split()) > LABEL_WORDS for cell in self.cells):
            return False
        if self.is_named_label:
            return self.num_distinct <= MAX_LABELS
        return len(self.cells) >= MIN_ROWS and 2 <= self.num_distinct <= min(MAX_LABELS, len(self.cells) // 5)


def refuse_labelled(path: Path) -> None:
    """A DataError where a table looks like texts with a label each."""
    columns = _columns(path)
    texts, labels = [c for c in columns if c.is_text()], [c for c in columns if c.is_label()]
    labels.sort(key=lambda column: not column.is_named_label)  # one that is called so is it
    for label in labels[:1]:
        text = next((column for column in texts if column is not label), None)
        is_whole = all(column in texts or column in labels for column in columns)  # no numbers to forecast beside them
        is_pair = kind_of(path) == ".tsv" and all(column in texts for column in columns[:2])
        if text is not None and (label.is_named_label or (is_whole and not is_pair)):
            some = ", ".join(shown(cell) for cell in sorted(set(label.cells))[:3])
            raise DataError(
                f"{path}: this looks like labelled text (texts in {text.name}, labels such as {some} in {label.name}), "
                "which no model here learns to label yet. To learn the texts alone, write them into a .txt file; "
                "to read it as pairs or numbers all the same, add --task pairs or --task numbers."
            )


def _columns(path: Path) -> list[_Column]:
    """The first rows of a table, by column; none where it cannot be read as one, which its reader will tell."""
    try:
        rows = list(islice(_json_rows(path) if kind_of(path) == ".jsonl" else _rows(path), LOOKED_AT))
    except (DataError, ValueError, RecursionError, csv.Error):
        return []
    rows = [row for row in rows if len(row) == len(rows[0])]  # the last may be cut in its middle
    if not rows:
        return []
    names = [name.lower() for name in rows[0]]
    has_header = kind_of(path) == ".jsonl" or any(name in LABEL_NAMES or name in TEXT_NAMES for name in names)
    header = rows[0] if has_header else [f"column {place}" for place in range(1, len(names) + 1)]
    body = rows[1:] if has_header else rows
    return [_Column(name, [row[place] for row in body]) for place, name in enumerate(header)] if body else []


def _rows(path: Path) -> Iterator[list[str]]:
    lines = (line for line in lines_of(read_text(path)) if line.strip())
    first = next(lines, "")
    if kind_of(path) == ".tsv":
        rows: Iterator[Sequence[str]] = (line.split("\t") for line in (first, *islice(lines, LOOKED_AT)))
    else:
        rows = csv.reader([first, *islice(lines, LOOKED_AT)], delimiter=max(",;\t", key=first.count))
    return ([cell.strip() for cell in row] for row in rows)


def _json_rows(path: Path) -> Iterator[list[str]]:
    """A row of names, then the values; all objects have the fields of the first."""
    names: list[str] = []
    for line in lines_of(read_text(path)):
        if not line.strip():
            continue
        found: Any = json.loads(line)
        if not isinstance(found, dict):
            raise ValueError("no object")
        if not names:
            names = list(found)
            yield names
        yield [str(found.get(name, "")).strip() for name in names]
