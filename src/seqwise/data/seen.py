"""Pictures and what is said of them: what readers of images give, part by part.

SeenRow(("images/12.png",), (), "cat")                           a picture and its label
SeenRow(("1000.jpg",), ("A dog runs .", "A brown dog ."), None)  a picture and its captions
SeenRow(("7.png",), ("what color is the shape?",), "red")        a picture, a question and its answer
SeenRow(("clip/000.png", "clip/001.png"), ("a ball falls",), None)   a clip, frame by frame

A picture is named; PictureSource (pictures.py) gives its content by that name, wherever it is kept: in a folder, inside
of an archive, in a file with many, or drawn when asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..wording import counted


class SeenRow(NamedTuple):
    frames: tuple[str, ...]
    """Names of the picture, or of each frame of a clip."""
    texts: tuple[str, ...]
    """Captions of it, any number; or one question; none where pictures only have a label."""
    answer: str | None = None


class PictureSource(Protocol):
    """Where pictures are kept."""

    def read(self, name: str) -> np.ndarray:
        """Pixels (H, W, C) uint8 of one picture in the size that it has, C being 1 or 3; a DataError names the file."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes when what would be read changes, and is found without reading all of it."""
        ...


class FoundRegions(NamedTuple):
    """What somebody found in a picture beforehand: the vectors of regions, or of the frames of a clip."""

    features: np.ndarray
    """(N, F) float32."""
    boxes: np.ndarray | None = None
    """(N, 4) float32: left, top, right and bottom edge, as shares of width and height."""
    labels: Sequence[str] | None = None
    """What each region shows."""


@runtime_checkable
class RegionSource(Protocol):
    """Where regions are kept that were found in pictures beforehand."""

    def regions(self, name: str) -> FoundRegions: ...

    @property
    def fingerprint(self) -> str: ...


@dataclass(frozen=True)
class PictureSettings:
    """How pictures are to be read; what is not set follows from the training part."""

    size: tuple[int, int] | None = None
    """Height and width."""
    fit: str = "contain"
    grey: bool | None = None
    max_frames: int | None = None
    """Of a clip."""


@dataclass(frozen=True)
class SeenData:
    """Rows in up to three parts, read from end to end but for their pixels, known by their fingerprint."""

    name: str
    parts: dict[str, list[SeenRow]]
    """train, valid and test; or all of it as "whole"."""
    pictures: PictureSource | RegionSource
    asks_for: Literal["label", "answer", "choice", "caption", "picture"]
    """A label of each picture, the answer to a question about it, which of a few choices is right, a sentence, or more
    pictures of the kind."""
    split: str
    """How the parts were made, in words."""
    notes: list[str] = field(default_factory=list)
    """A sentence for each thing that was found or left out."""
    columns: tuple[str, ...] = ()
    """What was read of a table, such as image=file and caption=text: to read other files of its kind alike."""
    settings: PictureSettings = PictureSettings()

    @property
    def labels(self) -> list[str]:
        """Answers of the training part (of the whole, where there is none), by the alphabet."""
        rows = self.parts.get("train", next(iter(self.parts.values())))
        return sorted({row.answer for row in rows if row.answer is not None})

    @property
    def max_frames(self) -> int:
        return max(len(row.frames) for rows in self.parts.values() for row in rows)

    @property
    def fingerprint(self) -> str:
        """sha256 of all rows of all parts, and of where their pictures are from."""
        digest = hashlib.sha256(self.pictures.fingerprint.encode())
        for part, rows in self.parts.items():
            digest.update(f"{part} {len(rows)}\n".encode())
            digest.update("\n".join(map(repr, rows)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @property
    def description(self) -> str:
        rows = [row for part in self.parts.values() for row in part]
        what = counted(len({row.frames for row in rows}), "clip" if self.max_frames > 1 else "picture")
        said = {
            "label": f"one of {counted(len(self.labels), 'label')} each",
            "answer": f"{counted(len(rows), 'question')} with one of {counted(len(self.labels), 'answer')} each",
            "choice": f"{counted(len(rows), 'question')} with a few choices each",
            "caption": counted(sum(len(row.texts) for row in rows), "caption"),
            "picture": "to be painted",
        }[self.asks_for]
        parts = ", ".join(f"{part} {len(rows):,}" for part, rows in self.parts.items())
        return f"{self.name}: {what}, {said}; {self.split} ({parts})"


def frames_of(rows: Sequence[SeenRow]) -> list[tuple[str, ...]]:
    """Each picture or clip once, in the order in which rows first name it."""
    return list(dict.fromkeys(row.frames for row in rows))
