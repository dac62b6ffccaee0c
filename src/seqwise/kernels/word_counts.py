"""A compiled loop that counts the words of a text.

The different words lie end to end in `letters`, each begins where begins[.] says, and a table of slots tells by the
hash of a word (FNV-1a, as in word_slots.py) which one it is. Where an array is full, the loop stops and says how far it
read.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .word_slots import BASIS, FREE, ONE, PRIME, _is_space


@njit(cache=True, nogil=True)
def count_text(text, start, slots, letters, begins, counts, num):
    """Words of text[start:] (bytes of UTF-8, between ASCII white space): where it stopped, and how many differ now."""
    mask, place = np.uint64(len(slots) - 1), start
    while place < len(text):
        if _is_space(text[place]):
            place += 1
            continue
        end, mixed = place, BASIS
        while end < len(text) and not _is_space(text[end]):
            mixed = (mixed ^ np.uint64(text[end])) * PRIME
            end += 1
        slot = (mixed ^ mixed >> np.uint64(32)) & mask
        while slots[slot] != FREE and not _is_same(text, place, end, letters, begins, slots[slot]):
            slot = slot + ONE & mask
        if slots[slot] == FREE:
            begin = begins[num]
            if begin + end - place > len(letters) or num + 1 == len(begins) or 2 * num >= len(slots):
                return place, num
            for i in range(end - place):
                letters[begin + i] = text[place + i]
            slots[slot], counts[num], begins[num + 1] = num, 0, begin + end - place
            num += 1
        counts[slots[slot]] += 1
        place = end
    return place, num


@njit(cache=True, nogil=True, inline="always")
def _is_same(text, place, end, letters, begins, word):
    if begins[word + 1] - begins[word] != end - place:
        return False
    is_same = True
    for i in range(end - place):
        is_same &= letters[begins[word] + i] == text[place + i]
    return is_same


@njit(cache=True)
def fill_again(slots, letters, begins, num):
    """Each word into a larger table."""
    mask = np.uint64(len(slots) - 1)
    for word in range(num):
        mixed = BASIS
        for place in range(begins[word], begins[word + 1]):
            mixed = (mixed ^ np.uint64(letters[place])) * PRIME
        slot = (mixed ^ mixed >> np.uint64(32)) & mask
        while slots[slot] != FREE:
            slot = slot + ONE & mask
        slots[slot] = word
