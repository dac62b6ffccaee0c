"""Folders whose names are labels -> texts with a label each.

reviews/pos/cv000.txt    a folder for each label, and a text in each file
names/Scottish.txt       a file for each label, and a text on each line
reviews/train/pos/…      either of them below folders for the parts
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import DataError
from ..wording import counted
from .annotated import LabelledRow, in_order
from .files import kind_of, lines_of, read_text, shown_names
from .label_checks import named
from .source import PART_NAMES

MIN_FILES = 2  # in the folder of a label, so that it is not taken for a chapter
TEXT_KINDS = (".txt", ".text", "")


def read_label_folder(folder: Path) -> tuple[dict[str, list[LabelledRow]], list[str]]:
    """The rows of each part, and what was found."""
    notes: list[str] = []
    found = _part_folders(folder) or {"train": folder}
    parts = {part: list(_rows(below, notes)) for part, below in found.items()}
    if len({row.answer for row in parts["train"]}) < 2:
        raise DataError(
            f"{folder}: expected a folder or a file for each label, such as {folder.name}/good/1.txt and "
            f"{folder.name}/bad/1.txt, or files for the parts, such as train.csv and test.csv."
        )
    return parts, notes


def is_label_folder(folder: Path) -> bool:
    """Whether the same labels stand below folders for the parts, which nothing else looks like."""
    parts = _part_folders(folder)
    labels = [{below.name for below in _label_folders(part)} for part in parts.values()]
    return len(labels) > 1 and len(labels[0]) > 1 and all(found == labels[0] for found in labels)


def may_be_label_folder(folder: Path) -> bool:
    """Whether a folder has nothing but folders, each with several texts: they may be labels, or chapters."""
    below = [path for path in folder.iterdir() if not path.name.startswith(".")]
    return len(below) > 1 and all(path.is_dir() for path in below) and len(_label_folders(folder)) == len(below)


def _part_folders(folder: Path) -> dict[str, Path]:
    found = {PART_NAMES[path.name.lower()]: path for path in _visible(folder) if path.name.lower() in PART_NAMES}
    return found if "train" in found and all(path.is_dir() for path in found.values()) else {}


def _label_folders(folder: Path) -> list[Path]:
    found = [path for path in _visible(folder) if path.is_dir() and path.name.lower() not in PART_NAMES]
    return [path for path in found if len(_text_files(path)) >= MIN_FILES]


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _text_files(folder: Path) -> list[Path]:
    return [path for path in _visible(folder) if path.is_file() and kind_of(path) in TEXT_KINDS]


def _rows(folder: Path, notes: list[str]) -> Iterator[LabelledRow]:
    folders = [path for path in _visible(folder) if path.is_dir() and _text_files(path)]
    files = _text_files(folder)
    empty: list[Path] = []
    if folders:
        notes.append(
            f"{folder.name}: each folder is a label ({_told(path.name for path in folders)}), each file a text"
        )
        for label in folders:
            for file in _text_files(label):
                if text := one_line("".join(read_text(file))):
                    yield LabelledRow((text,), label.name)
                else:
                    empty.append(file)
        if files:
            notes.append(f"left out, as they are in no folder of a label: {shown_names(folder, files)}")
    else:
        notes.append(f"{folder.name}: each file is a label ({_told(_label(path) for path in files)}), each line a text")
        for file in files:
            yield from (
                LabelledRow((line.strip(),), _label(file)) for line in lines_of(read_text(file)) if line.strip()
            )
    if empty:
        notes.append(f"{counted(len(empty), 'file is', 'files are')} empty and left out: {shown_names(folder, empty)}")


def _label(file: Path) -> str:
    """'Scottish.txt.gz' -> 'Scottish'."""
    return file.name.partition(".")[0]


def _told(labels: Iterator[str]) -> str:
    found = in_order(labels)
    return f"{len(found)}: {named(found)}"


def one_line(text: str) -> str:
    return re.sub(r"\s*[\r\n]+\s*", " ", text.strip())
