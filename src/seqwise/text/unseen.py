"""What a user should know of a text before a model reads it: what its tokenizer has never seen."""

from __future__ import annotations

from collections.abc import Iterator

from ..wording import counted
from . import Tokenizer

MAX_CHARACTERS_NAMED = 12


def unseen_in(tokenizer: Tokenizer, text: str) -> Iterator[str]:
    unknown = getattr(tokenizer, "unknown", None)
    if unknown is not None and (count := int((tokenizer.encode(text) == unknown).sum())):
        yield f"{counted(count, 'word is', 'words are')} not in the vocabulary and read as {tokenizer.piece(unknown)}"
    if tokenizer.kind != "char":
        return
    unseen = sorted(char for char in set(text) if len(tokenizer.encode(char)) > 1)
    if unseen:
        named = " ".join(map(_named, unseen[:MAX_CHARACTERS_NAMED]))
        named += " …" if len(unseen) > MAX_CHARACTERS_NAMED else ""
        yield f"the model has never seen {named}: they are spelled in bytes, expect little of them"


def _named(char: str) -> str:
    """By its number where it would act on a terminal or not be seen."""
    return char if char.isprintable() else f"U+{ord(char):04X}"
