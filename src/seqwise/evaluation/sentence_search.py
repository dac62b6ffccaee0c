"""The texts of a corpus that are nearest to a query, by the cosine of their vectors: all of them are looked at.

    cosine(q, t) = q . t / (|q| |t|)                                                                              (1)

Vectors of a corpus are kept in the cache under what they follow from: weights, settings, vocabulary, pooling and the
texts themselves. On another machine, or with the file in another place, they are the same.

Shapes: N texts, Q queries, D width.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.files import kind_of, lines_of, read_text
from ..data.label_files import texts_of
from ..data.paths import cache_folder
from ..data.text_tables import TABLE_KINDS
from ..data.word_vectors import directions
from ..errors import DataError
from .sentence_vectors import OnProgress, TextEncoder

CACHE_FORMAT = 1
BLOCK = 1 << 16  # texts whose cosines are computed at once


@dataclass(frozen=True)
class Corpus:
    texts: list[str]
    lines: list[int]
    """Where each stands in the file: its line, or its row in a table; from 1."""

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for text in self.texts:
            content = text.encode("utf-8", "surrogatepass")
            digest.update(len(content).to_bytes(8, "little") + content)
        return digest.hexdigest()


@dataclass(frozen=True)
class Hit:
    """A text that was found."""

    line: int
    cosine: float
    text: str


def read_corpus(path: str | Path, columns: Sequence[str] = ()) -> Corpus:
    """The lines of a file, or the texts of a table (.csv, .tsv, .jsonl): those of `columns`, or of the one that is
    found to hold texts. Blank ones are left out."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file.")
    found: Iterator[str] = lines_of(read_text(path))
    if kind_of(path) in TABLE_KINDS:
        roles = [name if "=" in name else f"text{'' if place == 0 else 2}={name}" for place, name in enumerate(columns)]
        found = (" ".join(texts) for texts in texts_of(path, roles))
    rows = [(number, text.strip()) for number, text in enumerate(found, start=1) if text.strip()]
    if not rows:
        raise DataError(f"{path}: there is no text in it to be searched.")
    return Corpus([text for _, text in rows], [number for number, _ in rows])


def corpus_vectors(
    encoder: TextEncoder,
    corpus: Corpus,
    *,
    use_cache: bool = True,
    on_progress: OnProgress = lambda *_: None,
) -> np.ndarray:
    """(N, D), each of length one, or zero; from the cache where they are known."""
    place = cache_folder() / "vectors" / f"{_key(encoder, corpus)}.npy"
    if use_cache:
        with contextlib.suppress(OSError, ValueError, EOFError):
            kept: np.ndarray = np.load(place, mmap_mode="r", allow_pickle=False)
            if kept.ndim == 2 and len(kept) == len(corpus.texts) and kept.dtype == np.float32:
                return kept
    found = directions(encoder.embed(corpus.texts, on_progress=on_progress).vectors).astype("<f4")
    if use_cache:
        with contextlib.suppress(OSError):  # a cache is a convenience
            place.parent.mkdir(parents=True, exist_ok=True)
            unfinished = place.with_suffix(f".{os.getpid()}")
            with unfinished.open("wb") as file:
                np.save(file, found)
            unfinished.replace(place)
    return found


def _key(encoder: TextEncoder, corpus: Corpus) -> str:
    run = encoder.run
    with (run.path / "model.safetensors").open("rb") as file:
        weights = hashlib.file_digest(file, "sha256").hexdigest()
    made_of = {
        "format": CACHE_FORMAT,
        "weights": weights,
        "family": run.config.model_name,
        "settings": {name: str(value) for name, value in vars(run.config.model).items()},
        "tokens": encoder.spec.to_dict(),
        "pooling": encoder.kind,
        "texts": corpus.fingerprint,
    }
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:32]


def nearest(queries: np.ndarray, corpus: np.ndarray, num: int) -> list[list[tuple[int, float]]]:
    """(1) of each query (Q, D) with all of a corpus (N, D) of length one: the best rows, best first, each with its
    cosine; of those that are equal, the first."""
    asked = directions(queries).astype(np.float32)
    best_values = np.empty((len(asked), 0), dtype=np.float32)
    best_rows = np.empty((len(asked), 0), dtype=np.int64)
    for start in range(0, len(corpus), BLOCK):
        block = np.asarray(corpus[start : start + BLOCK])
        values = np.concatenate([best_values, asked @ block.T], axis=1)  # (Q, kept + n)
        rows = np.concatenate([best_rows, np.broadcast_to(start + np.arange(len(block)), (len(asked), len(block)))], 1)
        order = np.argsort(-values, axis=1, kind="stable")[:, :num]
        best_values, best_rows = (np.take_along_axis(found, order, axis=1) for found in (values, rows))
    return [
        [(int(row), float(value)) for row, value in zip(rows, values, strict=True)]
        for rows, values in zip(best_rows, best_values, strict=True)
    ]


def search(
    encoder: TextEncoder,
    corpus: Corpus,
    queries: Sequence[str],
    *,
    num: int = 5,
    use_cache: bool = True,
    on_progress: OnProgress = lambda *_: None,
) -> list[list[Hit]]:
    """For each query, the texts that are nearest to it."""
    asked = encoder.embed(queries)
    for query in np.flatnonzero(asked.is_empty).tolist():
        raise DataError(f'"{queries[query]}": the model reads nothing of this query; use words that it knows.')
    vectors = corpus_vectors(encoder, corpus, use_cache=use_cache, on_progress=on_progress)
    return [
        [Hit(corpus.lines[row], cosine, corpus.texts[row]) for row, cosine in found]
        for found in nearest(asked.vectors, vectors, num)
    ]
