"""What a model learned by heart: the longest stretch of its samples that stands in the training text, word for word.

The samples become a suffix automaton (Blumer et al. 1985): its states stand for the stretches of the samples, and
reading the training text through it, byte by byte, keeps the longest stretch that ends here in both. One pass over a
text of any length, in constant memory.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import njit

from .results import Match

BYTES = 256
NONE = -1


class Automaton:
    """Of one text: `reach[s, byte]` is the state after one more byte, `link[s]` that of the longest other suffix."""

    def __init__(self, text: bytes):
        self.text = text
        most = 2 * len(text) + 1
        self.reach = np.full((most, BYTES), NONE, dtype=np.int32)
        self.link = np.full(most, NONE, dtype=np.int32)
        self.length = np.zeros(most, dtype=np.int64)
        self.end = np.zeros(most, dtype=np.int64)
        """Behind which byte of the text the stretches of a state end, for the first time."""
        codes = np.frombuffer(text, dtype=np.uint8)
        _build(codes, self.reach, self.link, self.length, self.end)
        is_start = np.append((codes & 0xC0) != 0x80, True)  # of a character, and the end of the text
        self.begun = np.append(0, np.cumsum(is_start))  # characters that begin before each byte
        self.is_start = is_start

    def longest_match(self, blocks: Iterable[bytes]) -> bytes:
        """The stretch of the text with the most characters that stands in the blocks joined."""
        at = np.zeros(5, dtype=np.int64)  # state and bytes of the match here; end, bytes and characters of the longest
        for block in blocks:
            codes = np.frombuffer(block, dtype=np.uint8)
            _follow(codes, self.reach, self.link, self.length, self.end, self.begun, self.is_start, at)
        return self.text[at[2] - at[3] : at[2]]


def longest_match(texts: Iterable[str], blocks: Iterable[str]) -> Match:
    """The longest stretch of any of the texts that stands in the text that the blocks make up."""
    separator = b"\xff"  # in no UTF-8
    joined = separator.join(text.encode("utf-8", "replace") for text in texts)
    found = Automaton(joined).longest_match(block.encode("utf-8", "replace") for block in blocks)
    text = found.decode("utf-8", "ignore")  # half a character at either end is none
    return Match(len(text), text)


@njit(cache=True)
def _build(text, reach, link, length, end):
    last, num = 0, 1
    for place in range(len(text)):
        byte = text[place]
        new = num
        num += 1
        length[new] = length[last] + 1
        end[new] = place + 1
        state = last
        while state != NONE and reach[state, byte] == NONE:
            reach[state, byte] = new
            state = link[state]
        if state == NONE:
            link[new] = 0
        else:
            there = reach[state, byte]
            if length[state] + 1 == length[there]:
                link[new] = there
            else:  # the state holds longer stretches too: split it
                copy = num
                num += 1
                for other in range(BYTES):
                    reach[copy, other] = reach[there, other]
                length[copy], link[copy], end[copy] = length[state] + 1, link[there], end[there]
                while state != NONE and reach[state, byte] == there:
                    reach[state, byte] = copy
                    state = link[state]
                link[there] = copy
                link[new] = copy
        last = new


@njit(cache=True)
def _follow(text, reach, link, length, end, begun, is_start, at):
    state, matched, best_end, best, most = at[0], at[1], at[2], at[3], at[4]
    for byte in text:
        while state != 0 and reach[state, byte] == NONE:
            state = link[state]
            matched = length[state]
        if reach[state, byte] != NONE:
            state = reach[state, byte]
            matched += 1
            stop = end[state]
            if is_start[stop]:  # a whole character ends here
                characters = begun[stop] - begun[stop - matched]
                if characters > most:
                    best_end, best, most = stop, matched, characters
    at[0], at[1], at[2], at[3], at[4] = state, matched, best_end, best, most
