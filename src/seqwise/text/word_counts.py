"""The words of a text and how often each is there, compiled: in less time and memory than a dictionary of strings."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from ..kernels.word_counts import count_text, fill_again
from ..kernels.word_slots import FREE

RARE_SPACE = re.compile(r"[^\S\x00-\x7f]")  # white space beyond ASCII


def count_words(blocks: Iterable[str], *, min_count: int = 1) -> tuple[list[str], np.ndarray]:
    """Words between white space, by falling count and then by letters, and their counts; rarer ones are left out.

    Blocks are to end where no word goes on, as `whole_blocks` cuts them.
    """
    slots, letters = np.full(1 << 12, FREE, dtype=np.int32), np.empty(1 << 14, dtype=np.uint8)
    begins, counts, num = np.zeros(1 << 11, dtype=np.int64), np.zeros(1 << 11, dtype=np.int64), 0
    for block in blocks:
        plain = block if block.isascii() else RARE_SPACE.sub(" ", block)
        text, place = np.frombuffer(plain.encode("utf-8", "surrogatepass"), dtype=np.uint8), 0
        while True:
            place, num = count_text(text, place, slots, letters, begins, counts, num)
            if place == len(text):
                break
            if 2 * num >= len(slots):
                slots = np.full(2 * len(slots), FREE, dtype=np.int32)
                fill_again(slots, letters, begins, num)
            elif num + 1 == len(begins):
                begins, counts = (np.concatenate([array, np.zeros_like(array)]) for array in (begins, counts))
            else:
                letters = np.concatenate([letters, np.empty(max(len(letters), len(text)), dtype=np.uint8)])
    kept = np.flatnonzero(counts[:num] >= min_count)
    spelled, places = letters[: begins[num]].tobytes(), np.stack([begins[kept], begins[kept + 1]], axis=1)
    del slots, letters, begins
    words = [spelled[begin:end].decode("utf-8", "surrogatepass") for begin, end in places.tolist()]
    by_letters = np.array(sorted(range(len(words)), key=words.__getitem__), dtype=np.int64)
    order = by_letters[np.argsort(-counts[kept][by_letters], kind="stable")]
    return [words[k] for k in order], counts[kept][order]
