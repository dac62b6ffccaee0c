"""Symbols: sequences that are numbered already (bits, pixels, states), written as numbers with a space between."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DataError
from .encoded import Encoded, without_unknown


class SymbolTokenizer:
    kind = "symbol"

    def __init__(self, vocab_size: int, boundary: int = 0):
        """`boundary`: the symbol that stands between sequences, where they are read as one text."""
        if not 0 <= boundary < vocab_size:
            raise ValueError("the boundary must be one of the symbols")
        self.vocab_size, self.boundary = vocab_size, boundary

    def encode(self, text: str) -> np.ndarray:
        try:
            ids = np.array([int(symbol) for symbol in text.split()], dtype=np.int64)
        except ValueError:
            raise DataError(f'"{text[:40]}": symbols are whole numbers with spaces between.') from None
        if len(ids) and not 0 <= ids.min() <= ids.max() < self.vocab_size:
            raise DataError(f'"{text[:40]}": symbols go from 0 to {self.vocab_size - 1}.')
        return ids

    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        spans = [found.span() for found in re.finditer(r"\S+", text)]
        return self.encode(text), np.array(spans, dtype=np.int64).reshape(-1, 2)

    def measure(self, text: str) -> Encoded:
        """Each symbol stands for its digits and the space behind it; the last one has none."""
        ids = self.encode(text)
        lengths = np.array([len(symbol) + 1 for symbol in text.split()], dtype=np.int32)
        lengths[-1:] -= 1
        return without_unknown(ids, lengths)

    @property
    def usual_lengths(self) -> np.ndarray:
        return np.array([len(str(symbol)) + 1 for symbol in range(self.vocab_size)], dtype=np.int32)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        return " ".join(str(int(symbol)) for symbol in ids)

    def piece(self, token: int) -> str:
        return str(token)

    def to_dict(self) -> dict[str, Any]:
        return {"vocab_size": self.vocab_size, "boundary": self.boundary}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> SymbolTokenizer:
        return cls(int(saved["vocab_size"]), int(saved["boundary"]))
