"""Annotated text: what readers of labelled and tagged files give, part by part.

LabelledRow(("a fine film",), "positive")                                a text and its label
LabelledRow(("a man sleeps", "nobody sleeps"), "contradiction")          two texts that belong together
LabelledRow(("a cat sits", "a cat is sitting"), 4.8)                     a number
LabelledRow(("loud and slow",), ("sound", "speed"))                      as many labels as are right
TaggedRow(("from", "Boston"), ("O", "B-city"), "flight")                 words with a tag each, and a label
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..wording import counted

if TYPE_CHECKING:
    from .tag_layouts import TagLayout

Answer = str | float | tuple[str, ...]
"""A label, a number, or all labels that are right."""


class LabelledRow(NamedTuple):
    texts: tuple[str, ...]
    """One, or two that belong together."""
    answer: Answer


class TaggedRow(NamedTuple):
    words: tuple[str, ...]
    tags: tuple[str, ...]
    label: str | None = None
    """Of the whole row, where the file has one besides."""


@dataclass(frozen=True)
class LabelledData:
    """Texts with an answer each, in up to three parts, read from end to end, known by their fingerprint."""

    name: str
    parts: dict[str, list[LabelledRow]]
    """train, valid and test; or all of it as "whole"."""
    asks_for: Literal["label", "labels", "number"]
    """One label of each text, all that are right, or a number."""
    split: str
    """How the parts were made, in words."""
    notes: list[str] = field(default_factory=list)
    """A sentence for each thing that was found or left out."""
    columns: tuple[str, ...] = ()
    """What was read of a table, such as text=review and label=stars: to read other files of its kind alike."""

    @property
    def labels(self) -> list[str]:
        """Of the training part (of the whole, where there is none), numbers in their order, words by the alphabet."""
        rows = self.parts.get("train", next(iter(self.parts.values())))
        if self.asks_for == "number":
            return []
        found = {label for row in rows for label in ((row.answer,) if self.asks_for == "label" else row.answer)}  # type: ignore[union-attr]
        return in_order(str(label) for label in found)

    @property
    def num_texts(self) -> int:
        """In each row."""
        return len(next(iter(self.parts.values()))[0].texts)

    @property
    def fingerprint(self) -> str:
        """sha256 of all rows of all parts."""
        return _digest(self.parts)

    @property
    def description(self) -> str:
        total = sum(len(rows) for rows in self.parts.values())
        what = counted(total, "text") if self.num_texts == 1 else f"{total:,} pairs of texts"
        kinds = {"label": "one of", "labels": "some of"}
        answer = f"{kinds[self.asks_for]} {counted(len(self.labels), 'label')}" if self.labels else "a number"
        return f"{self.name}: {what} with {answer} each; {self.split} ({_sizes(self.parts)})"


@dataclass(frozen=True)
class TaggedData:
    """Words with a tag each, row by row, in up to three parts."""

    name: str
    parts: dict[str, list[TaggedRow]]
    scheme: str
    """How tags mark entities: IOB2, to which others were converted; empty where each word has a tag of its own kind."""
    split: str
    notes: list[str] = field(default_factory=list)
    columns: tuple[str, ...] = ()
    """What was read of a file with several columns of tags, such as tags=xpos."""
    layout: TagLayout | None = None
    """How the file was written, where its tags are to be written anew."""

    @property
    def tags(self) -> list[str]:
        """Of the training part (of the whole, where there is none), by the alphabet."""
        rows = self.parts.get("train", next(iter(self.parts.values())))
        return sorted({tag for row in rows for tag in row.tags})

    @property
    def labels(self) -> list[str]:
        """Of whole rows; none where the file has none."""
        rows = self.parts.get("train", next(iter(self.parts.values())))
        return in_order({row.label for row in rows if row.label is not None})

    @property
    def fingerprint(self) -> str:
        return _digest(self.parts)

    @property
    def description(self) -> str:
        rows = [row for part in self.parts.values() for row in part]
        words = f"{counted(len(rows), 'row')} of {sum(len(row.words) for row in rows):,} words"
        tags = f"one of {counted(len(self.tags), 'tag')} each" + (f" ({self.scheme})" if self.scheme else "")
        label = f", and one of {counted(len(self.labels), 'label')} for the row" if self.labels else ""
        return f"{self.name}: {words}, {tags}{label}; {self.split} ({_sizes(self.parts)})"


def in_order(names: Iterable[str]) -> list[str]:
    """Numbers by their size, words by the alphabet."""
    found = sorted(names)
    try:
        return sorted(found, key=float)
    except ValueError:
        return found


def _sizes(parts: dict[str, list[LabelledRow]] | dict[str, list[TaggedRow]]) -> str:
    return ", ".join(f"{part} {len(rows):,}" for part, rows in parts.items())


def _digest(parts: dict[str, list[LabelledRow]] | dict[str, list[TaggedRow]]) -> str:
    digest = hashlib.sha256()
    for part, rows in parts.items():
        digest.update(f"{part} {len(rows)}\n".encode())
        digest.update("\n".join(map(repr, rows)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
