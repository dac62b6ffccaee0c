"""Characters: one token per character, and any Unicode text comes back as it was.

A character that the training text does not have (or has fewer than `min_count` times) is spelled by its UTF-8 bytes,
two hexadecimal digits each, with sixteen digit tokens. So nothing is lost, and such a character costs its real price in
bits: an <unk> would hide it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .encoded import Encoded, without_unknown

NUM_DIGITS = 16  # ids 0..15: the hexadecimal digits of a spelled character
BOUNDARY = NUM_DIGITS  # id 16: the newline


class CharTokenizer:
    kind = "char"
    boundary = BOUNDARY

    def __init__(self, characters: list[str]):
        """`characters` in the order of their ids, which begin after the sixteen digits; the first is the newline."""
        if characters[:1] != ["\n"] or any(not isinstance(c, str) or len(c) != 1 for c in characters):
            raise ValueError("the first character must be the newline, and each must be a single one")
        if len(set(characters)) < len(characters):
            raise ValueError("each character must have one id")
        self.characters = characters
        self.vocab_size = NUM_DIGITS + len(characters)
        code_points = np.array([ord(c) for c in characters])
        self._id_of = np.full(code_points.max() + 2, -1, dtype=np.int64)  # code point -> id; the last stays -1
        self._id_of[code_points] = np.arange(NUM_DIGITS, self.vocab_size)
        self._code_of = np.concatenate([np.zeros(NUM_DIGITS, dtype=np.int64), code_points])

    @classmethod
    def train(cls, blocks: Iterable[str], *, min_count: int = 1) -> CharTokenizer:
        counts = np.zeros(sys.maxunicode + 1, dtype=np.int64)
        for block in blocks:
            in_block = np.bincount(_code_points(block))
            counts[: len(in_block)] += in_block
        seen = np.flatnonzero(counts >= max(1, min_count))
        return cls(["\n", *(chr(code) for code in seen if code != ord("\n"))])

    def encode(self, text: str) -> np.ndarray:
        code_points = _code_points(text)
        ids = self._id_of[np.minimum(code_points, len(self._id_of) - 1)]
        unseen = np.flatnonzero(ids < 0)
        if len(unseen) == 0:
            return ids
        pieces, done = [], 0
        for place in unseen:
            pieces += [ids[done:place], _spell(text[place])]
            done = int(place) + 1
        return np.concatenate([*pieces, ids[done:]])

    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        begins = np.repeat(np.arange(len(text)), self._num_tokens(text))
        return self.encode(text), np.stack([begins, begins + 1], axis=1)

    def measure(self, text: str) -> Encoded:
        """The first digit of a spelled character stands for it, the others for nothing more."""
        ids = self.encode(text)
        if len(ids) == len(text):
            return without_unknown(ids, np.ones(len(ids), dtype=np.int32))
        num_tokens = self._num_tokens(text)
        lengths = np.zeros(len(ids), dtype=np.int32)
        lengths[np.cumsum(num_tokens) - num_tokens] = 1
        return without_unknown(ids, lengths)

    def _num_tokens(self, text: str) -> np.ndarray:
        """Of each character: one, or two for each byte where it is spelled."""
        code_points = _code_points(text)
        is_unseen = self._id_of[np.minimum(code_points, len(self._id_of) - 1)] < 0
        num_bytes = 1 + sum((code_points >= least).astype(np.int64) for least in (0x80, 0x800, 0x10000))
        return np.where(is_unseen, 2 * num_bytes, 1)

    @property
    def usual_lengths(self) -> np.ndarray:
        return (np.arange(self.vocab_size) >= NUM_DIGITS).astype(np.int32)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        ids = np.asarray(ids, dtype=np.int64)
        is_digit = ids < NUM_DIGITS
        if not is_digit.any():
            return _text(self._code_of[ids])
        # runs of digits and runs of characters in turn
        edges = np.flatnonzero(np.diff(is_digit)) + 1
        runs = np.split(ids, edges)
        return "".join(_unspell(run) if run[0] < NUM_DIGITS else _text(self._code_of[run]) for run in runs if len(run))

    def piece(self, token: int) -> str:
        return f"<{token:x}>" if token < NUM_DIGITS else self.characters[token - NUM_DIGITS]

    def to_dict(self) -> dict[str, Any]:
        return {"characters": self.characters}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> CharTokenizer:
        return cls(saved["characters"])


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _text(code_points: np.ndarray) -> str:
    return code_points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _spell(character: str) -> np.ndarray:
    """'é' -> C3 A9 -> [12, 3, 10, 9]"""
    data = np.frombuffer(character.encode("utf-8", "surrogatepass"), dtype=np.uint8).astype(np.int64)
    return np.stack([data // 16, data % 16], axis=1).ravel()


def _unspell(digits: np.ndarray) -> str:
    digits = digits[: len(digits) // 2 * 2]  # a model may generate half a byte, or bytes that are no character
    data = (digits[0::2] * 16 + digits[1::2]).astype(np.uint8).tobytes()
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")
