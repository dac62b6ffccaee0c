"""The texts of labelled data as running text, one a line: what a language model learns from before it learns labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from .builtin import write_once
from .label_files import open_labelled
from .paths import cache_folder
from .source import TextData, open_text


def open_labelled_text(
    sources: Sequence[str | Path],
    *,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    split: str | None = None,
    columns: Sequence[str] = (),
) -> TextData:
    """Parts as `open_labelled` makes them, so that what is tested on later is not read now."""
    data = open_labelled(sources, valid=valid, test=test, split=split, columns=columns)
    files = {}
    for part, rows in data.parts.items():
        files[part] = cache_folder() / "labelled-text" / f"{data.fingerprint[:24]}-{part}.txt"
        lines = [" ".join(text.split()) for row in rows for text in row.texts]
        write_once(files[part], partial("\n".join, [*lines, ""]))
    found = open_text(files["train"], valid=files["valid"], test=files.get("test"))
    note = "its texts are read one behind the other, each a line; its labels are not looked at"
    return replace(found, name=data.name, split=data.split, notes=[*data.notes, note])
