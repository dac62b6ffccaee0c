"""What data is taken for, by its name, its suffix and its beginning: found without anything that computes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import DataError
from .builtin import BUILTIN, is_example_set
from .files import TABLE_SUFFIXES, kind_of, read_bytes
from .labelled import refuse_labelled
from .pairs import looks_like_pairs
from .public import PUBLIC, is_pair_set
from .source import unknown_set

NEEDED = {".csv": "a table with one step a row", ".tsv": "a pair on each line", ".jsonl": "an object on each line"}


def task_of(sources: Sequence[str]) -> str:
    """What the data is taken for where nobody said: by the name of the set, or the suffix of the file."""
    first = str(sources[0])
    if looks_like_pairs([str(source) for source in sources]):
        return "pairs"
    if not Path(first).exists() and is_example_set(first):
        return "label"
    return "numbers" if len(sources) == 1 and kind_of(Path(first)) == ".csv" else "text"


def task_for(asked: str | None, sources: Sequence[str], columns: Sequence[str] = ()) -> str:
    """The task that was asked for, or that the data is taken for; what would be misread without a word is refused."""
    if asked is not None:
        return asked
    if not columns:
        for source in map(Path, sources):
            files = sorted(source.iterdir()) if source.is_dir() else [source]
            for file in files:
                if kind_of(file) in TABLE_SUFFIXES and file.is_file():
                    refuse_labelled(file)
    return task_of(sources)


def check_there(sources: Sequence[str]) -> None:
    """Data that is missing, unknown or empty, told at once. Two parallel files may stand with a comma between.

    Of pipes nothing is read.
    """
    for source in sources:
        if source == "-":
            continue
        if Path(source).exists():
            files = [Path(source)]
        elif "," in source:
            files = [Path(name.strip()) for name in source.split(",")]
        elif _is_known(source):
            continue
        else:
            raise unknown_set(source)
        for file in files:
            if not file.exists():
                raise DataError(f"{file}: no such file or folder.")
            if file.is_file() and not next(read_bytes(file), b""):
                raise DataError(
                    f"{file}: the file is empty. Give {NEEDED.get(kind_of(file), 'some text to learn from')}."
                )


def _is_known(name: str) -> bool:
    return name.partition(":")[0] in BUILTIN or is_pair_set(name) or is_example_set(name) or name in PUBLIC
