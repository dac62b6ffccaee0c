"""Corpora that every Python has: no download, and no file of ours.

They differ between versions of Python, so a run records the fingerprint of the text it saw.
"""

from __future__ import annotations

import os
import platform
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import DataError
from .folders import cache_folder


@dataclass(frozen=True)
class Builtin:
    title: str
    text: Callable[[], str]


def _language_reference() -> str:
    """English prose with code: the pages behind help('assignment') and its like."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name].strip() + "\n" for name in sorted(topics))


def _library_source() -> str:
    """The top-level modules of the standard library, in the order of their names."""
    folder = Path(sysconfig.get_path("stdlib"))
    sources = (path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("*.py")))
    return "\n".join(sources)


BUILTIN = {
    "python-reference": Builtin(
        "Python's language reference: English prose and code, about 0.6 MB", _language_reference
    ),
    "python-source": Builtin("Python's standard library: source code, about 4 MB", _library_source),
}


def builtin_file(name: str) -> Path:
    """The corpus as a text file in the cache, written once per version of Python."""
    path = cache_folder() / "builtin" / f"{name}-{platform.python_version()}.txt"
    if not path.exists():
        unfinished = path.with_suffix(f".{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_text(BUILTIN[name].text(), encoding="utf-8")
            unfinished.replace(path)
        except OSError as error:
            raise DataError(
                f"cannot write {path}: {error.strerror or error}. "
                "Free some space, or set SEQWISE_CACHE to a folder on another disk."
            ) from None
    return path
