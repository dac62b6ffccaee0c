"""Compiled loops over the suffix automaton of a text (Blumer et al. 1985), whose states stand for the text's segments.

`reach[s, byte]` is the state after one more byte, `link[s]` that of the longest other suffix, `length[s]` the bytes of
the longest segment of s, `end[s]` behind which byte of the text the segments of s end for the first time.
"""

from __future__ import annotations

from numba import njit

BYTES = 256
NONE = -1


@njit(cache=True)
def build_automaton(text, reach, link, length, end):
    """Fill the arrays for a text (bytes). They have room for 2 T + 1 states, and hold NONE or 0."""
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
            else:  # the state holds longer segments too: split it
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
def follow_text(text, reach, link, length, end, begun, is_start, at):
    """Read another text (bytes) through the automaton; `at` moves in place: where it stands, and the longest match."""
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
