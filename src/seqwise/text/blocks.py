"""Where a text can be cut so that its blocks, encoded one by one, give the ids of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def whole_blocks(blocks: Iterable[str], *, longest: int = 1 << 22) -> Iterator[str]:
    """Cut a stream of text where no tokenizer joins across: after a newline that text follows.

    Encoding the pieces one by one then gives the ids of the whole. A line longer than `longest` characters is cut at
    its last space, or anywhere if it has none: the only place where the ids of a block may differ from the whole's.
    """
    held = ""
    for block in blocks:
        held += block
        while True:
            cut = _last_line_start(held)
            if cut == 0 and len(held) > longest:
                cut = held.rfind(" ", 1, longest)  # GPT-2's pattern takes a space with the word after it
                cut = cut if cut > 0 else longest
            if cut == 0:
                break
            yield held[:cut]
            held = held[cut:]
            if len(held) <= longest:
                break
    if held:
        yield held


def _last_line_start(text: str) -> int:
    """Index of the last character that follows a newline and is no white space, or 0."""
    newline = text.rfind("\n")
    while newline > 0:
        if newline + 1 < len(text) and not text[newline + 1].isspace():
            return newline + 1
        newline = text.rfind("\n", 0, newline)
    return 0


def pieces_of(text: str, size: int) -> list[str]:
    """One text in pieces of about `size` characters, cut at the same safe places."""
    pieces, done = [], 0
    while len(text) - done > size:
        cut = _last_line_start(text[done : done + size + 1])
        if cut == 0:
            break
        pieces.append(text[done : done + cut])
        done += cut
    return [*pieces, text[done:]]
