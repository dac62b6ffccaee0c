"""SentencePiece with scores (Kudo & Richardson 2018), as Llama has it: pieces are joined by the best score.

    1. a space is put before the text, so that its first word looks like any other
    2. each character is its piece, or its UTF-8 bytes where it has none
    3. of all neighbours whose joint text is a piece, those whose piece has the highest score are joined, the first of
       them where several have it; and again, until there are none

Ids: 0 unknown (never written here), 1 begins a text, 2 ends one, 3 to 258 the bytes, then the pieces. It is not learned
here but read from a file (interop/llama2c.py). The boundary is the token that begins a text, since a model of this kind
has seen it there; it is shown as a newline. A newline inside a text is a byte like others.
"""

from __future__ import annotations

import functools
import heapq
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .encoded import Encoded, without_unknown

UNKNOWN, BEGIN, END, FIRST_BYTE = 0, 1, 2, 3
FIRST_PIECE = FIRST_BYTE + 256
MAX_KNOWN_WORDS = 100_000  # whose tokens are remembered
WORD = re.compile(r" +[^ ]*|[^ ]+")  # with the spaces before it


class SentencePieceTokenizer:
    kind = "sentencepiece"
    boundary = BEGIN

    def __init__(self, pieces: Sequence[str], scores: Sequence[float]):
        """`pieces` in the order of their ids, which begin behind the bytes, and the score of each."""
        if len(pieces) != len(scores):
            raise ValueError(f"{len(pieces)} pieces have {len(scores)} scores")
        if not all(isinstance(piece, str) and piece for piece in pieces) or not all(map(math.isfinite, scores)):
            raise ValueError("each piece must be a text, and its score a number")
        self.pieces, self.scores = list(pieces), [float(score) for score in scores]
        self.vocab_size = FIRST_PIECE + len(pieces)
        self._id_of = {piece: token for token, piece in reversed([*enumerate(pieces, start=FIRST_PIECE)])}
        self._joins_words = any(re.search("[^ ] ", piece) for piece in pieces)
        self._known: dict[str, list[int]] = {}

    def encode(self, text: str) -> np.ndarray:
        if not text:
            return np.zeros(0, dtype=np.int64)
        written = f" {text.encode('utf-8', 'replace').decode()}"  # half a surrogate pair has no bytes
        if self._joins_words:
            return np.array(self._tokens(written), dtype=np.int64)
        ids: list[int] = []
        for word in WORD.findall(written):  # no piece reaches from one into the next
            if word not in self._known:
                if len(self._known) >= MAX_KNOWN_WORDS:
                    self._known.clear()
                self._known[word] = self._tokens(word)
            ids += self._known[word]
        return np.array(ids, dtype=np.int64)

    def _tokens(self, written: str) -> list[int]:
        """Steps 2 and 3. A heap has what can be joined, the best first; what is not there any more is passed over."""
        ids: list[int] = []
        for character in written:
            token = self._id_of.get(character)
            ids += [FIRST_BYTE + byte for byte in character.encode()] if token is None else [token]
        texts = [self.pieces[token - FIRST_PIECE] if token >= FIRST_PIECE else None for token in ids]
        before, after = list(range(-1, len(ids) - 1)), list(range(1, len(ids) + 1))
        found: list[tuple[float, int, int, int]] = []  # minus the score, left place, right place, joint token

        def look(left: int, right: int) -> None:
            if left < 0 or right >= len(ids) or (first := texts[left]) is None or (second := texts[right]) is None:
                return
            if (token := self._id_of.get(first + second)) is not None:
                heapq.heappush(found, (-self.scores[token - FIRST_PIECE], left, right, token))

        for place in range(len(ids) - 1):
            look(place, place + 1)
        while found:
            _, left, right, token = heapq.heappop(found)
            first, second, joint = texts[left], texts[right], self.pieces[token - FIRST_PIECE]
            if first is None or second is None or first + second != joint:
                continue
            ids[left], ids[right], texts[left], texts[right] = token, -1, joint, None
            after[left] = after[right]
            if after[left] < len(ids):
                before[after[left]] = left
            look(before[left], left)
            look(left, after[left])
        return [token for token in ids if token >= 0]

    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """The space that was put before the text belongs to its first character."""
        ids = self.encode(text)
        lengths = self.usual_lengths[ids].astype(np.int64)
        ends = np.cumsum(lengths)
        begins = ends - np.maximum(lengths, 1)  # a byte that goes on with a character belongs to all of it
        begins = np.maximum(begins - 1, 0)
        return ids, np.stack([begins, np.maximum(ends - 1, begins + 1)], axis=1)

    def measure(self, text: str) -> Encoded:
        ids = self.encode(text)
        lengths = self.usual_lengths[ids]
        lengths[:1] -= 1  # the space that was put before the text
        return without_unknown(ids, lengths)

    @functools.cached_property
    def usual_lengths(self) -> np.ndarray:
        """Characters that begin in a token: those of a piece, one for a byte that begins a character."""
        of_bytes = [int(byte & 0xC0 != 0x80) for byte in range(256)]
        return np.array([0, 1, 0, *of_bytes, *map(len, self.pieces)], dtype=np.int32)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """The first word of a text stands without its space."""
        found, begins = bytearray(), True
        for token in map(int, ids):
            if token >= FIRST_PIECE:
                piece = self.pieces[token - FIRST_PIECE]
                found += (piece.removeprefix(" ") if begins else piece).encode()
            elif token >= FIRST_BYTE:
                byte = token - FIRST_BYTE
                found += b"" if begins and byte == ord(" ") else bytes([byte])
            else:
                found += {UNKNOWN: b"<unk>", BEGIN: b"\n", END: b""}[token]
            begins = token == BEGIN
        return found.decode("utf-8", "replace")

    def piece(self, token: int) -> str:
        if token >= FIRST_PIECE:
            return self.pieces[token - FIRST_PIECE]
        if token >= FIRST_BYTE:
            byte = token - FIRST_BYTE
            return chr(byte) if byte < 0x80 else f"<0x{byte:02X}>"
        return {UNKNOWN: "<unk>", BEGIN: "\n", END: "</s>"}[token]

    def to_dict(self) -> dict[str, Any]:
        return {"pieces": self.pieces, "scores": self.scores}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> SentencePieceTokenizer:
        return cls(saved["pieces"], saved["scores"])
