"""Texts line by line through a tokenizer of the `tokenizers` library: a newline is the boundary, whatever it does.

Such a tokenizer often drops newlines as white space, or puts a space before whatever it reads. Read by lines, a text in
blocks has the ids of the whole.

Shapes: T tokens, U of them unknown.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np
from tokenizers import Tokenizer as Backend

from .encoded import Encoded
from .spelling import Spelling


def writable(text: str) -> str:
    """Lone surrogates (half of a pair) have no bytes of their own; everything else passes unchanged."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def check_ids(vocab: Mapping[str, int]) -> None:
    if sorted(vocab.values()) != list(range(len(vocab))):  # a model has one row for each, and no others
        raise ValueError(f"the ids of the {len(vocab)} tokens are not 0 to {len(vocab) - 1}, each once")


def encode_by_line(backend: Backend, text: str, boundary: int) -> np.ndarray:
    """The ids, (T,)."""
    ids: list[int] = []
    for line in backend.encode_batch_fast(writable(text).split("\n"), add_special_tokens=False):
        ids += line.ids
        ids.append(boundary)
    return np.array(ids[:-1], dtype=np.int64)  # behind the last line there is no newline


def encode_by_line_with_offsets(backend: Backend, text: str, boundary: int) -> tuple[np.ndarray, np.ndarray]:
    """The ids (T,), and which characters of the text each stands for, (T, 2)."""
    lines, ids, spans, done = writable(text).split("\n"), list[int](), [np.zeros((0, 2), dtype=np.int64)], 0
    for line, encoded in zip(lines, backend.encode_batch(lines, add_special_tokens=False), strict=True):
        end = len(line)
        ids += [*encoded.ids, boundary]
        spans.append(np.array([*encoded.offsets, (end, end + 1)], dtype=np.int64) + done)
        done += end + 1
    found = np.concatenate(spans)[:-1]
    found[:, 0] = np.minimum(found[:, 0], np.maximum(0, found[:, 1] - 1))
    return np.array(ids[:-1], dtype=np.int64), found


def decode_by_line(backend: Backend, ids: Sequence[int] | np.ndarray, boundary: int) -> list[str]:
    """The lines; what stands behind the last boundary is one too."""
    lines: list[list[int]] = [[]]
    for token in ids:
        if token == boundary:
            lines.append([])
        else:
            lines[-1].append(int(token))
    return [backend.decode(line, skip_special_tokens=False) if line else "" for line in lines]


def lengths_by_ends(spans: np.ndarray, num_characters: int) -> np.ndarray:
    """Characters that each token stands for, (T,): what is before it and after the one before is its own; what is at
    the end of the text is the last one's."""
    ends = np.maximum.accumulate(spans[:, 1])
    lengths = np.diff(ends, prepend=0).astype(np.int32)
    if len(lengths):
        lengths[-1] += num_characters - ends[-1]
    return lengths


class UnknownSpelled:
    """What the letters of unknown pieces cost, as those of unknown words do."""

    def __init__(self, backend: Backend, unknown: int | None, pieces: Sequence[str]):
        """`pieces`: what is known, to learn from how words are spelled."""
        self._backend, self._unknown, self._pieces = backend, unknown, pieces

    @functools.cached_property
    def _spelling(self) -> Spelling:
        return Spelling(self._pieces)

    def measure(self, text: str, ids: np.ndarray, spans: np.ndarray) -> Encoded:
        lengths = lengths_by_ends(spans, len(text))
        places = np.flatnonzero(ids == (-1 if self._unknown is None else self._unknown))
        if not len(places):
            return Encoded(ids, lengths, places, np.zeros(0))
        assert self._unknown is not None
        written, mark = (
            [text[begin:end] for begin, end in spans[places].tolist()],
            self._backend.id_to_token(self._unknown),
        )
        is_spelled = np.array([piece != mark for piece in written], dtype=bool)
        read = [self._read(piece) for piece in written if piece != mark]
        return Encoded(ids, lengths, places[is_spelled], self._spelling.nats(read))

    def _read(self, piece: str) -> str:
        """Small letters, without accents, where the tokenizer reads so."""
        normalizer = self._backend.normalizer
        return piece if normalizer is None else normalizer.normalize_str(writable(piece)).strip()
