"""A .jsonl file -> its objects, one a line, each with the number of its line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import DataError
from .files import lines_of, read_text, shown


def json_rows(path: Path, expected: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Line number and object; None for a blank line. `expected` shows an object as it should be."""
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        if not line.strip():
            yield number, None
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: line {number} is not JSON ({error}): {shown(line)}.") from None
        if not isinstance(row, dict):
            raise DataError(f"{path}: line {number} is no object, expected {expected}: {shown(line)}.")
        yield number, row


def check_whole(text: str, where: str) -> str:
    """The text, where it can be written again: JSON may hold halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(f"{where} holds half a character (a lone surrogate). Mend it.") from None
    return text
