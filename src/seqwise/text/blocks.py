"""Where a text can be cut so that its blocks, encoded one by one, give the ids of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

LOOK_BACK = 1 << 16  # characters; how far from its end a block is searched for a place to cut


def whole_blocks(blocks: Iterable[str], *, longest: int = 1 << 22) -> Iterator[str]:
    """Cut a stream of text where no tokenizer joins across; the ids of the blocks are then those of the whole.

    A text that offers no such place for `longest` characters (one endless word) is cut anyway: the only place where
    the ids may differ from the whole's.
    """
    held = ""
    for block in blocks:
        held += block
        while cut := _last_cut(held[: longest + 1]) or (longest if len(held) > longest else 0):
            yield held[:cut]
            held = held[cut:]
    if held:
        yield held


def pieces_of(text: str, size: int) -> list[str]:
    """One text in pieces of about `size` characters, cut at the same safe places."""
    pieces, done = [], 0
    while len(text) - done > size:
        cut = _last_cut(text[done : done + size + 1])
        if cut == 0:
            break
        pieces.append(text[done : done + cut])
        done += cut
    return [*pieces, text[done:]]


def _last_cut(text: str) -> int:
    """The last place where text may be cut, or 0: behind a newline, or before a space, alone between two words.

    Byte pairs take a single space together with the word after it, and a run of white space as one piece.
    """
    for place in range(len(text) - 2, max(1, len(text) - LOOK_BACK), -1):
        if text[place].isspace() and not text[place - 1].isspace() and not text[place + 1].isspace():
            if text[place] == " ":
                return place
            if text[place] == "\n":
                return place + 1
    return 0
