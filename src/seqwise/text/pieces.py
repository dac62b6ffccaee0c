"""Pieces that somebody else has learned: a tokenizer of the `tokenizers` library, held as it is.

Unigram and SentencePiece vocabularies (ALBERT, T5, Llama), where a space is written ▁. We learn none of these, but a
model that came with one is read and written with it. Where the vocabulary has a newline, that is the boundary and texts
are read whole; else a text is read line by line, and the boundary is the token that ends a text.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from tokenizers import Tokenizer as Backend

from .by_line import (
    UnknownSpelled,
    check_ids,
    decode_by_line,
    encode_by_line,
    encode_by_line_with_offsets,
    writable,
)
from .encoded import Encoded

SPACE = "▁"
NEWLINES = ("\n", "<0x0A>")  # how vocabularies write it: as it is, or as a byte


class PieceTokenizer:
    kind = "pieces"

    def __init__(self, backend: Backend, *, boundary: int, unknown: int | None = None):
        """`boundary`: what newlines are read as, where the vocabulary has none; else the newline."""
        vocab = backend.get_vocab()
        check_ids(vocab)
        self._backend, self.vocab_size = backend, len(vocab)
        for token in (boundary, *([] if unknown is None else [unknown])):
            if not 0 <= token < self.vocab_size:
                raise ValueError(f"there is no token {token}; ids go from 0 to {self.vocab_size - 1}")
        self.boundary, self.unknown = boundary, unknown
        self._pieces = sorted(vocab, key=vocab.__getitem__)
        self._by_line = self._pieces[boundary] not in NEWLINES
        self._added = set(backend.get_added_tokens_decoder())

    def encode(self, text: str) -> np.ndarray:
        if self._by_line:
            return encode_by_line(self._backend, text, self.boundary)
        return np.array(self._backend.encode(writable(text), add_special_tokens=False).ids, dtype=np.int64)

    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        if self._by_line:
            return encode_by_line_with_offsets(self._backend, text, self.boundary)
        found = self._backend.encode(writable(text), add_special_tokens=False)
        spans = np.array(found.offsets, dtype=np.int64).reshape(-1, 2)
        return np.array(found.ids, dtype=np.int64), spans

    def measure(self, text: str) -> Encoded:
        return self._unknown_spelled.measure(text, *self.encode_with_offsets(text))

    @functools.cached_property
    def _unknown_spelled(self) -> UnknownSpelled:
        known = [piece.lstrip(SPACE) for token, piece in enumerate(self._pieces) if token not in self._added]
        return UnknownSpelled(self._backend, self.unknown, known)

    @functools.cached_property
    def usual_lengths(self) -> np.ndarray:
        lengths = [1 if token == self.boundary else len(piece) for token, piece in enumerate(self._pieces)]
        return np.array(lengths, dtype=np.int32)

    def starts_word(self, token: int) -> bool:
        """Whether a word begins with it. Special tokens stand alone."""
        return token in self._added or token == self.boundary or self._pieces[token].startswith(SPACE)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        if self._by_line:
            return "\n".join(decode_by_line(self._backend, ids, self.boundary))
        return self._backend.decode([int(token) for token in ids], skip_special_tokens=False)

    def piece(self, token: int) -> str:
        return "\n" if token == self.boundary else self._pieces[token].replace(SPACE, " ")

    @property
    def backend(self) -> Backend:
        """The tokenizer of the library."""
        return self._backend

    def to_dict(self) -> dict[str, Any]:
        return {"backend": self._backend.to_str(), "boundary": self.boundary, "unknown": self.unknown}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> PieceTokenizer:
        try:
            return cls(Backend.from_str(saved["backend"]), boundary=saved["boundary"], unknown=saved["unknown"])
        except Exception as error:
            raise ValueError(str(error)) from None
