"""Compiled loops that find the words of a text in a vocabulary.

The pieces of a vocabulary lie end to end, and a table of slots tells by a word's hash (FNV-1a) which piece it is.
"""

from __future__ import annotations

import numpy as np
from numba import njit

UNKNOWN, BOUNDARY = 0, 1
PRIME, BASIS, ONE = np.uint64(1099511628211), np.uint64(14695981039346656037), np.uint64(1)
FREE = -1


@njit(cache=True)
def fill_slots(slots, letters, ends):
    """Each piece into the slot that its hash names, or the next free one."""
    mask, begin = np.uint64(len(slots) - 1), 0
    for piece in range(len(ends)):
        mixed = BASIS
        for place in range(begin, ends[piece]):
            mixed = (mixed ^ np.uint64(letters[place])) * PRIME
        slot = (mixed ^ mixed >> np.uint64(32)) & mask
        while slots[slot] != FREE:
            slot = slot + ONE & mask
        slots[slot], begin = piece, ends[piece]


@njit(cache=True)
def _is_space(letter):
    """ASCII white space, as Python's \\s has it."""
    return letter == 32 or 9 <= letter <= 13 or 28 <= letter <= 31


@njit(cache=True)
def _is_rare_space(letter, after, last):
    """Whether these bytes of UTF-8 begin white space beyond ASCII."""
    if letter == 0xC2:
        return after == 0x85 or after == 0xA0
    if letter == 0xE1:
        return after == 0x9A and last == 0x80
    if letter == 0xE2:
        is_general = after == 0x80 and (last <= 0x8A or last == 0xA8 or last == 0xA9 or last == 0xAF)
        return is_general or (after == 0x81 and last == 0x9F)
    return letter == 0xE3 and after == 0x80 and last == 0x80


@njit(cache=True, nogil=True)
def encode_words(text, letters, ends, slots):
    """UTF-8 -> ids, their spans in characters, and whether all white space was ASCII."""
    mask = np.uint64(len(slots) - 1)
    most, last = _num_tokens(text), len(text) - 1
    ids, spans = np.empty(most, dtype=np.int64), np.empty((most, 2), dtype=np.int64)
    num_tokens, place, characters = 0, 0, 0
    while place < len(text):
        letter = text[place]
        if letter == 10:
            ids[num_tokens], spans[num_tokens, 0], spans[num_tokens, 1] = BOUNDARY, characters, characters + 1
            num_tokens += 1
        if _is_space(letter):
            place += 1
            characters += 1
            continue
        begin, mixed = place, BASIS
        spans[num_tokens, 0] = characters
        while place < len(text) and not _is_space(text[place]):
            letter = text[place]
            if letter >= 0xC2 and _is_rare_space(letter, text[min(place + 1, last)], text[min(place + 2, last)]):
                return ids[:0], spans[:0], False
            mixed = (mixed ^ np.uint64(letter)) * PRIME
            place += 1
            characters += letter & 0xC0 != 0x80  # all bytes of a character but its first are 10xxxxxx
        ids[num_tokens] = _find(text, begin, place, mixed, mask, letters, ends, slots)
        spans[num_tokens, 1] = characters
        num_tokens += 1
    return ids, spans, True


@njit(cache=True)
def _num_tokens(text):
    """Newlines and words between ASCII white space."""
    found, was_space = 0, True
    for letter in text:
        is_space = _is_space(letter)
        found += (letter == 10) + (was_space and not is_space)
        was_space = is_space
    return found


@njit(cache=True)
def _find(text, begin, end, mixed, mask, letters, ends, slots):
    """Which piece text[begin:end] is, or UNKNOWN."""
    slot = (mixed ^ mixed >> np.uint64(32)) & mask
    while slots[slot] != FREE:
        piece = slots[slot]
        start = ends[piece - 1] if piece > 0 else 0
        if ends[piece] - start == end - begin:
            is_same = True
            for i in range(end - begin):
                is_same &= letters[start + i] == text[begin + i]
            if is_same:
                return piece
        slot = slot + ONE & mask
    return UNKNOWN
