"""What is known of a public data set: its files, where they are, and what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GITHUB = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class PublicFile:
    path: str
    """Below the data folder; a copy at hand may also be packed, with .gz, .xz or .bz2 at the end of its name."""
    address: str
    """What is there may be packed in the same ways. Empty where no address is known that has this content."""
    sha256: str
    """Of the unpacked content, computed from a copy at hand."""
    num_bytes: int
    """Of the unpacked content."""


@dataclass(frozen=True)
class PublicData:
    title: str
    licence: str
    files: dict[str, PublicFile]
    """By part; a data set with one file is split as `split` says. Else what its reader reads, by names of its own."""
    split: str | None = None
    holds: Literal["text", "pairs", "labels", "tags", "spans", "pictures"] = "text"
    how_to_get: str = ""
    """What to do where there is no address."""
