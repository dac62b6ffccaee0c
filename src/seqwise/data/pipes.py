"""Standard input and pipes as data: what comes out of them once is kept in a file, which can be read again and resumed.

The file lies in the cache, under its content: the same text from a pipe is the same file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from ..errors import DataError
from .files import BLOCK_BYTES
from .paths import cache_folder

STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
SUFFIXES = {"pairs": ".tsv", "numbers": ".csv"}  # by the task that was asked for; else text


def owned(sources: Sequence[str | Path], task: str | None = None) -> list[str]:
    """The sources as they are, but for - and pipes: these are read to their end, and stand as the file they became."""
    alone = len(sources) == 1  # two pipes of pairs are parallel texts
    return [_owned(str(source), SUFFIXES.get(task or "", ".txt") if alone else ".txt") for source in sources]


def _owned(source: str, suffix: str) -> str:
    if source == "-":
        return _kept(sys.stdin.buffer, "standard-input", suffix)
    try:
        mode = os.stat(source).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return source
        with open(source, "rb") as pipe:
            if stat.S_ISCHR(mode) and not pipe.isatty():
                raise DataError(f"{source}: is a device, expected a file, a folder or a pipe.")
            return _kept(pipe, "standard-input" if source in STANDARD_INPUT else "pipe", suffix)
    except (OSError, ValueError):  # missing or no name at all: told by who reads it
        return source


def _kept(pipe: IO[bytes], name: str, suffix: str) -> str:
    folder = cache_folder() / "pipes"
    unfinished = folder / f".{os.getpid()}"
    digest, beginning = hashlib.sha256(), b""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as file:
            while data := pipe.read(BLOCK_BYTES):
                beginning = beginning or data
                digest.update(data)
                file.write(data)
        if not beginning:
            raise DataError(f"{name.replace('-', ' ')}: nothing came out of it. Give some data to read.")
        if suffix == ".tsv" and beginning.lstrip().startswith(b"{"):
            suffix = ".jsonl"
        path = folder / digest.hexdigest()[:16] / f"{name}{suffix}"
        path.parent.mkdir(exist_ok=True)
        shutil.move(unfinished, path)
        return str(path)
    except OSError as error:
        raise DataError(
            f"cannot keep what came out of a pipe in {folder}: {error.strerror or error}. "
            "Free some space, or set SEQWISE_CACHE to a folder on another disk."
        ) from None
    finally:
        unfinished.unlink(missing_ok=True)
