"""What goes to a terminal is shown, never obeyed: text of models, data and files may hold what moves a cursor, changes
a title or turns the direction of a line. In a pipe it stays as it is.
"""

from __future__ import annotations

import re
import sys
from typing import TextIO

ACTS = re.compile(  # C0 and C1 but for tab and newline, and marks that turn the direction of text
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def shown_on(stream: TextIO, text: str) -> str:
    """The text; on a terminal with each character that would act on it written as JSON writes it, \\u001b."""
    return ACTS.sub(lambda found: f"\\u{ord(found.group()):04x}", text) if stream.isatty() else text


def write(stream: TextIO, text: str) -> None:
    stream.write(shown_on(stream, text))
    stream.flush()


def say(text: str = "") -> None:
    """A line of result, to standard output."""
    write(sys.stdout, text + "\n")


def note(text: str) -> None:
    """A line about the work, to standard error, so that results can be piped."""
    write(sys.stderr, text + "\n")
