"""What --json prints: one object of one shape, whatever the command."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from .. import __version__
from ..config import to_json


def say_results(command: str, results: Iterable[Any]) -> None:
    """{"seqwise": version, "command": name, "results": [...]}, to standard output.

    Each result stands on a line of its own as soon as it is there, so that long work can be read as it comes; where
    the first one fails, nothing is written.
    """
    head = f'{{"seqwise": {json.dumps(__version__)}, "command": {json.dumps(command)}, "results": ['
    before, end = head, "]}\n"
    for result in results:
        sys.stdout.write(f"{before}\n{to_json(result)}")
        sys.stdout.flush()
        before, end = ",", "\n]}\n"
    sys.stdout.write((head if before == head else "") + end)
    sys.stdout.flush()
