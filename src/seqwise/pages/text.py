"""Text from anywhere made visible: nothing in it can act, and nothing in it is overlooked."""

from __future__ import annotations

import unicodedata

MAX_MARKS = 3  # accents above one another; more are set side by side, so that they cannot climb over the lines above


def visible(text: str, *, newline: str = "↵", limit: int = 2_000) -> str:
    """Text from anywhere, so that all of it can be seen and none of it can act.

    Control characters become pictures; what turns, hides or breaks text becomes its code point; an accent with nothing
    below it gets a circle to sit on. Behind `limit` characters it is cut.

    >>> visible("a\\x1b[2J\\u202e!")
    'a␛[2J⟨U+202E⟩!'
    """
    shown: list[str] = []
    marks = MAX_MARKS  # upon the last character that can carry any; at the start there is none
    for char in text[:limit]:
        category, is_joiner = unicodedata.category(char), char in "\u200c\u200d"
        if category[0] == "M" or (is_joiner and marks < MAX_MARKS):
            if marks == MAX_MARKS:
                shown.append("◌")
                marks = 0
            shown.append(char)
            marks += 1
        elif char == "\n":
            shown.append(newline)
            marks = MAX_MARKS
        elif category in ("Cc", "Cf", "Cs", "Zl", "Zp") or _is_no_character(ord(char)):
            shown.append(_picture(ord(char)))
            marks = MAX_MARKS
        else:
            shown.append(char)
            marks = MAX_MARKS if char.isspace() else 0
    return "".join(shown) + ("…" if len(text) > limit else "")


def _is_no_character(code: int) -> bool:
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
