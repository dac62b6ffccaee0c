"""Memorization: the longest segment of a model's samples that stands in the training text, word for word.

The samples become a suffix automaton (Blumer et al. 1985): its states stand for the segments of the samples, and
reading the training text through it, byte by byte, keeps the longest segment that ends here in both. One pass over a
text of any length, in constant memory.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..kernels.suffix_automaton import BYTES, NONE, build_automaton, follow_text
from .results import Match


class Automaton:
    """Of one text: `reach[s, byte]` is the state after one more byte, `link[s]` that of the longest other suffix."""

    def __init__(self, text: bytes):
        self.text = text
        size = 2 * len(text) + 1
        self.reach = np.full((size, BYTES), NONE, dtype=np.int32)
        self.link = np.full(size, NONE, dtype=np.int32)
        self.length = np.zeros(size, dtype=np.int64)
        self.end = np.zeros(size, dtype=np.int64)
        """Behind which byte of the text the segments of a state end, for the first time."""
        codes = np.frombuffer(text, dtype=np.uint8)
        build_automaton(codes, self.reach, self.link, self.length, self.end)
        is_start = np.append((codes & 0xC0) != 0x80, True)  # of a character, and the end of the text
        self.begun = np.append(0, np.cumsum(is_start))  # characters that begin before each byte
        self.is_start = is_start

    def longest_match(self, blocks: Iterable[bytes]) -> bytes:
        """The segment of the text with the most characters that stands in the blocks joined."""
        at = np.zeros(5, dtype=np.int64)  # state and bytes of the match here; end, bytes and characters of the longest
        for block in blocks:
            codes = np.frombuffer(block, dtype=np.uint8)
            follow_text(codes, self.reach, self.link, self.length, self.end, self.begun, self.is_start, at)
        return self.text[at[2] - at[3] : at[2]]


def longest_match(texts: Iterable[str], blocks: Iterable[str]) -> Match:
    """The longest segment of any of the texts that stands in the text that the blocks make up."""
    separator = b"\xff"  # in no UTF-8
    joined = separator.join(text.encode("utf-8", "replace") for text in texts)
    found = Automaton(joined).longest_match(block.encode("utf-8", "replace") for block in blocks)
    text = found.decode("utf-8", "ignore")  # half a character at either end is none
    return Match(len(text), text)
