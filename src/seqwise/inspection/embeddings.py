"""The table of embeddings as a space: neighbours, analogies, and a map in two dimensions.

    nearest to x: highest cosine(x, row)                        (1)
    a is to b as c is to ?: nearest to b - a + c                (2)   Mikolov et al. 2013
    map: the two directions along which the rows differ most    (3)   principal components

Shapes: V vocabulary, D width, N tokens drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from ..data.word_vectors import best_rows, directions
from ..layers.embeddings import TokenEmbedding
from ..models.word2vec import Word2Vec


@dataclass(frozen=True)
class Map:
    tokens: list[int]
    places: np.ndarray
    """(N, 2)."""
    shares: tuple[float, float]
    """How much of all differences each direction shows."""


class EmbeddingSpace:
    def __init__(self, table: np.ndarray):
        """`table` (V, D)."""
        self.table = table.astype(np.float64)
        self._directions = directions(self.table)

    @classmethod
    def of(cls, model: object) -> EmbeddingSpace | None:
        """The table that targets are read from; None where the model has none."""
        if isinstance(model, Word2Vec):  # by direction: how long a vector is tells how often the word was read
            return cls(directions(model.vectors))
        tables = [m for m in model.modules() if isinstance(m, TokenEmbedding)] if isinstance(model, nn.Module) else []
        return cls(tables[-1].weight.detach().cpu().numpy()) if tables else None

    def has(self, token: int) -> bool:
        """Whether the token has a vector."""
        return bool(self.table[token].any())

    def nearest(self, vector: np.ndarray, count: int, *, without: Sequence[int] = ()) -> list[tuple[int, float]]:
        """(1): tokens and cosines, nearest first."""
        length = np.linalg.norm(vector)
        return best_rows(self._directions @ (vector / length if length else vector), count, without=without)

    def neighbours(self, token: int, count: int = 8) -> list[tuple[int, float]]:
        return self.nearest(self.table[token], count, without=[token])

    def analogy(self, a: int, b: int, c: int, count: int = 8) -> list[tuple[int, float]]:
        """(2), by directions, so that frequent words do not weigh more; the three themselves are left out."""
        d = self._directions
        return self.nearest(d[b] - d[a] + d[c], count, without=[a, b, c])

    def map(self, tokens: Sequence[int]) -> Map:
        """(3) of these rows; each direction is turned so that its largest entry is positive."""
        rows = self.table[list(tokens)]
        centred = rows - rows.mean(axis=0)
        u, s, v = np.linalg.svd(centred, full_matrices=False)
        k = min(2, len(s))
        signs = np.sign(v[:k][np.arange(k), np.abs(v[:k]).argmax(axis=1)])
        places = np.zeros((len(rows), 2))
        places[:, :k] = u[:, :k] * s[:k] * np.where(signs == 0, 1, signs)
        total = float((s**2).sum()) or 1.0
        shares = [float(s[i] ** 2) / total if i < len(s) else 0.0 for i in range(2)]
        return Map(list(tokens), places, (shares[0], shares[1]))
