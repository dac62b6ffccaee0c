"""A cache of what scans of large files found, valid while a file stays as it is.

A file is the same where its place, size, times of change and number on the disk are: the time of its last change
of any kind (ctime) cannot be set by hand. What is cached may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..config import parse_json
from .paths import cache_folder

LARGE = 2_000_000  # bytes; less is read faster than it is worth


def cached_scan(question: str, files: Sequence[Path], read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What scanning the files answers to a question, made of numbers and words: from the cache, or by `read`."""
    try:
        found = [path.stat() for path in files]
    except OSError:
        return read()  # which names what is missing
    if sum(one.st_size for one in found) < LARGE:
        return read()
    state = [
        (str(path.resolve()), one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino)
        for path, one in zip(files, found, strict=True)
    ]
    key = hashlib.sha256(json.dumps([question, state]).encode()).hexdigest()
    place = cache_folder() / "scans" / f"{key}.json"
    with contextlib.suppress(OSError, ValueError):
        known: dict[str, Any] = parse_json(place.read_text())
        return known
    answer = read()
    with contextlib.suppress(OSError):  # a cache is a convenience
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(answer))
        unfinished.replace(place)
    return answer
