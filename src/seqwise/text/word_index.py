"""Words of a text -> ids, compiled: about eight times as fast as a dictionary, which counts where texts are long."""

from __future__ import annotations

import numpy as np

from ..kernels.word_slots import FREE, encode_words, fill_slots


class WordIndex:
    def __init__(self, pieces: list[str]):
        """`pieces` in the order of their ids; <unk> and the newline are the first two."""
        spelled = [piece.encode("utf-8", "surrogatepass") for piece in pieces]
        self.letters = np.frombuffer(b"".join(spelled), dtype=np.uint8)
        self.ends = np.cumsum([len(piece) for piece in spelled])
        self.slots = np.full(1 << (4 * len(spelled)).bit_length(), FREE)  # at most a quarter is taken
        fill_slots(self.slots, self.letters, self.ends)

    def encode(self, text: str) -> tuple[np.ndarray, np.ndarray] | None:
        """The words between white space, and the newlines: their ids (T,), and where in the text each begins and ends
        (T, 2), in characters; None where only Python can tell what is white space."""
        letters = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        ids, spans, is_known = encode_words(letters, self.letters, self.ends, self.slots)
        return (ids, spans) if is_known else None
