"""How a word is spelled: what the letters of words cost that a vocabulary does not have.

A model of words says <unk> and leaves open which word it is. So that its bits are those of the text, the letters are
paid for too, by an n-gram of the characters of all words in the vocabulary, each counted once: with c a character or
the end of the word, h the characters before it (h' those but the first), n(h) how often h was seen and t(h) how many
different characters followed it,

    p(c | h) = (n(h c) + t(h) p(c | h')) / (n(h) + t(h))         interpolation of Witten & Bell 1991

and below the shortest h all of Unicode alike, so that any word can be spelled. It follows from the vocabulary alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

ORDER = 4  # characters, the one that is predicted among them
BITS = 16  # of one symbol: ORDER of them make a key of 64
PAD, END, UNSEEN, FIRST = 0, 1, 2, 3  # before a word, after it, a character of no word; then the characters
FLOOR = 1 / (sys.maxunicode + 2)  # all of Unicode, and the end


class Spelling:
    def __init__(self, words: Sequence[str]):
        codes = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        self._characters = np.unique(codes)[: (1 << BITS) - FIRST]
        symbols = self._symbols(words)
        windows = np.lib.stride_tricks.sliding_window_view(symbols, ORDER)  # (N, ORDER)
        windows = windows[windows[:, -1] > PAD]  # what is predicted is a character or the end
        windows = windows[windows[:, -1] != UNSEEN]
        self._grams, self._contexts = [], []
        for length in range(ORDER):  # of the context
            grams, counts = np.unique(_key(windows[:, ORDER - 1 - length :]), return_counts=True)
            contexts, first = np.unique(grams >> np.uint64(BITS), return_index=True)
            self._grams.append((grams, counts))
            followers = np.diff(np.append(first, len(grams)))
            seen = np.add.reduceat(counts, first) if len(first) else counts
            self._contexts.append((contexts, np.stack([seen, followers], axis=-1).reshape(-1, 2)))

    def nats(self, words: Sequence[str]) -> np.ndarray:
        """-log p of the letters of each word and of its end, (words,)."""
        if not len(words):
            return np.zeros(0)
        symbols = self._symbols(words)
        windows = np.lib.stride_tricks.sliding_window_view(symbols, ORDER)
        is_asked = windows[:, -1] > PAD
        windows = windows[is_asked]
        probability = np.full(len(windows), FLOOR)
        for length in range(ORDER):
            keys = _key(windows[:, ORDER - 1 - length :])
            seen, followers = _found(*self._contexts[length], keys >> np.uint64(BITS)).T
            counts = _found(*self._grams[length], keys)
            known = seen > 0  # where a context is new, the shorter one has said all
            probability[known] = ((counts + followers * probability) / np.maximum(1, seen + followers))[known]
        word = np.cumsum(windows[:, -1] == END) - (windows[:, -1] == END)
        return np.bincount(word, weights=-np.log(probability), minlength=len(words))

    def _symbols(self, words: Sequence[str]) -> np.ndarray:
        """All words end to end, each with its end, and padding before it so that no context reaches into another."""
        lengths = np.array([len(word) for word in words], dtype=np.int64)
        codes = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        place = np.searchsorted(self._characters, codes)
        if len(self._characters):
            is_known = self._characters[np.minimum(place, len(self._characters) - 1)] == codes
        else:
            is_known = np.zeros(len(codes), dtype=bool)
        around = ORDER  # ORDER - 1 before the word, and its end
        symbols = np.full(len(codes) + around * len(words) + ORDER, PAD, dtype=np.uint64)
        number = np.repeat(np.arange(len(words)), lengths)
        symbols[np.arange(len(codes)) + number * around + ORDER - 1] = np.where(is_known, place + FIRST, UNSEEN)
        symbols[np.cumsum(lengths) + np.arange(1, len(words) + 1) * around - 1] = END
        return symbols


def _key(windows: np.ndarray) -> np.ndarray:
    """Symbols (N, K) as one number each, the last in its lowest bits."""
    keys = np.zeros(len(windows), dtype=np.uint64)
    for column in windows.T:
        keys = keys << np.uint64(BITS) | column
    return keys


def _found(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The values of wanted keys; zero where they are not known."""
    if not len(keys):
        return np.zeros((len(wanted), *values.shape[1:]), dtype=values.dtype)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    is_known = (keys[place] == wanted).reshape(-1, *[1] * (values.ndim - 1))
    return np.where(is_known, values[place], 0)
