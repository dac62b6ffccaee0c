"""Byte-level byte-pair encoding (Sennrich 2016; bytes as in GPT-2), by the `tokenizers` library.

Starts from 256 bytes and joins the most frequent neighbours until the vocabulary is full. Any text can be written.

Vocabularies of others (GPT-2, RoBERTa) have special tokens besides, which are read where a text has them, and may put
a space before what they read: then a text is read line by line, so that blocks of it have the ids of the whole.
(RoBERTa's <mask> takes the white space before it, a newline too.)
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers

from .blocks import pieces_of
from .by_line import check_ids, decode_by_line, encode_by_line, encode_by_line_with_offsets, lengths_by_ends, writable
from .encoded import Encoded, without_unknown

PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]  # bytes that are written as they are
OTHERS = [byte for byte in range(0x100) if byte not in PRINTABLE]  # written as U+0100, U+0101, ...
SIGN_OF = {byte: chr(byte) for byte in PRINTABLE} | {byte: chr(0x100 + n) for n, byte in enumerate(OTHERS)}
CONTINUATIONS = {SIGN_OF[byte] for byte in range(0x80, 0xC0)}  # bytes of UTF-8 that go on with a character


class BPETokenizer:
    kind = "bpe"

    def __init__(self, backend: Backend):
        self._backend, vocab = backend, backend.get_vocab()
        self.vocab_size = len(vocab)
        check_ids(vocab)
        if lacking := set(pre_tokenizers.ByteLevel.alphabet()) - set(vocab):
            raise ValueError(f"{len(lacking)} of the 256 bytes have no token")
        self.boundary = vocab["Ċ"]  # how the byte-level alphabet writes the newline
        self._added = backend.get_added_tokens_decoder()
        self._puts_space = self._ids_of("a") == self._ids_of(" a")
        takes_space = any(token.lstrip or token.rstrip for token in self._added.values())
        self._is_plain = not self._puts_space and not takes_space and backend.normalizer is None
        """Whether each token stands for as many characters wherever it is."""

    def _ids_of(self, text: str) -> list[int]:
        return self._backend.encode(text, add_special_tokens=False).ids

    @classmethod
    def train(cls, blocks: Iterable[str], *, vocab_size: int = 4096, min_count: int = 2) -> BPETokenizer:
        backend = Backend(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        backend.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=min_count,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        lines = (writable(line) for block in blocks for line in block.splitlines(keepends=True))
        backend.train_from_iterator(lines, trainer)
        return cls(backend)

    def encode(self, text: str) -> np.ndarray:
        if self._puts_space:
            return encode_by_line(self._backend, text, self.boundary)
        # in pieces, so that the library can use every core
        encoded = self._backend.encode_batch_fast(pieces_of(writable(text), 1 << 15), add_special_tokens=False)
        return np.concatenate([np.asarray(piece.ids, dtype=np.int64) for piece in encoded])

    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        if self._puts_space:
            return encode_by_line_with_offsets(self._backend, text, self.boundary)
        ids, spans, done = [np.zeros(0, dtype=np.int64)], [np.zeros((0, 2), dtype=np.int64)], 0
        pieces = pieces_of(writable(text), 1 << 15)
        for piece, encoded in zip(pieces, self._backend.encode_batch(pieces, add_special_tokens=False), strict=True):
            ids.append(np.asarray(encoded.ids, dtype=np.int64))
            spans.append(np.asarray(encoded.offsets, dtype=np.int64).reshape(-1, 2) + done)
            done += len(piece)
        return np.concatenate(ids), np.concatenate(spans)

    def measure(self, text: str) -> Encoded:
        if not self._is_plain:
            ids, spans = self.encode_with_offsets(text)
            return without_unknown(ids, lengths_by_ends(spans, len(text)))
        ids = self.encode(text)
        return without_unknown(ids, self.usual_lengths[ids])

    @functools.cached_property
    def usual_lengths(self) -> np.ndarray:
        """Characters that begin in a token; it may end in the middle of one."""
        vocabulary = self._backend.get_vocab()
        lengths = np.zeros(max(vocabulary.values()) + 1, dtype=np.int32)
        for piece, token in vocabulary.items():
            is_added = token in self._added
            lengths[token] = len(piece) if is_added else sum(sign not in CONTINUATIONS for sign in piece)
        return lengths

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        if self._puts_space:
            return "\n".join(line.removeprefix(" ") for line in decode_by_line(self._backend, ids, self.boundary))
        return self._backend.decode([int(i) for i in ids], skip_special_tokens=False)

    def piece(self, token: int) -> str:
        return self._backend.decode([token], skip_special_tokens=False)

    @property
    def backend(self) -> Backend:
        """The tokenizer of the library."""
        return self._backend

    def to_dict(self) -> dict[str, Any]:
        return {"backend": self._backend.to_str()}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> BPETokenizer:
        try:
            return cls(Backend.from_str(saved["backend"]))
        except Exception as error:
            raise ValueError(str(error)) from None
