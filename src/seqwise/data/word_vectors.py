"""Words as points in a space: how similar two are, what is near one, and what is to c as b is to a.

    cosine(u, v) = u . v / (|u| |v|)                                                                              (1)
    a is to b as c is to the w, none of the three, that is highest in
    add        cosine(w, b) - cosine(w, a) + cosine(w, c)        3CosAdd  (Mikolov, Yih & Zweig 2013)             (2)
    multiply   s(w, b) s(w, c) / (s(w, a) + 0.001),  s = (cosine + 1) / 2     3CosMul  (Levy & Goldberg 2014)     (3)

In (2) one large difference outweighs the others; in (3) all three must fit.

Shapes: V vocabulary, E embedding width, Q questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal

import numpy as np

from ..errors import DataError, did_you_mean

Method = Literal["add", "multiply"]
TINY = 1e-3  # of (3): what keeps the quotient finite
QUESTIONS_AT_ONCE = 128
NEARBY_WORDS = 5_000  # among which a misspelled one is looked for: frequent ones come first


def directions(table: np.ndarray) -> np.ndarray:
    """Vectors (V, E) at length one; those of length zero as they are."""
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    return table / np.where(lengths > 0, lengths, 1)


def best_rows(values: np.ndarray, num: int, *, without: Sequence[int] = ()) -> list[tuple[int, float]]:
    """The rows with the highest of some values (V,), best first, each with its value."""
    values = values.copy()
    values[list(without)] = -np.inf
    best = np.argsort(-values, kind="stable")[: max(0, num)]
    return [(int(row), float(values[row])) for row in best if np.isfinite(values[row])]


class WordVectors:
    """A vector for each of some words, the most frequent first."""

    def __init__(self, words: Sequence[str], vectors: np.ndarray):
        """`vectors` (V, E)."""
        if len(words) != len(vectors):
            raise ValueError(f"{len(words)} words, but {len(vectors)} vectors")
        self.words, self.vectors = list(words), vectors

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return self.find(word) is not None

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {word: row for row, word in reversed(list(enumerate(self.words)))}

    @cached_property
    def _row_of_folded(self) -> dict[str, int]:
        return {word.casefold(): row for row, word in reversed(list(enumerate(self.words)))}

    @cached_property
    def directions(self) -> np.ndarray:
        """(V, E)."""
        return directions(self.vectors).astype(np.float32)

    def find(self, word: str) -> int | None:
        """The row of a word: as it is written, else the most frequent that differs by capitals alone, else None."""
        row = self._row_of.get(word)
        return self._row_of_folded.get(word.casefold()) if row is None else row

    def row(self, word: str) -> int:
        """The same, where a word without a vector is a mistake."""
        found = self.find(word)
        if found is None:
            nearest = did_you_mean(word, self.words[:NEARBY_WORDS]) if len(self) else ""
            hint = nearest if nearest.startswith("Did you mean") else "Words that the text has too rarely have none."
            raise DataError(f'"{word}" has no vector. {hint}')
        return found

    def vector(self, word: str) -> np.ndarray:
        return self.vectors[self.row(word)]

    def similarity(self, first: str, second: str) -> float | None:
        """(1), from -1 to 1; None where one of the two has no vector."""
        return self.cosine(first, second) if first in self and second in self else None

    def cosine(self, first: str, second: str) -> float:
        """The same, where a word without a vector is a mistake."""
        return float(self.directions[self.row(first)] @ self.directions[self.row(second)])

    def neighbours(self, word: str, num: int = 10) -> list[tuple[str, float]]:
        """The nearest words by (1), nearest first, each with its cosine."""
        row = self.row(word)
        return self._best(self.directions @ self.directions[row], [row], num)

    def analogy(self, a: str, b: str, c: str, num: int = 10, *, method: Method = "add") -> list[tuple[str, float]]:
        """What is to c as b is to a, by (2) or (3), best first, each with its value: a, b, c = man, king, woman."""
        rows = [self.row(word) for word in (a, b, c)]
        (_, values), *_ = self._values(np.array([rows]), method)
        return self._best(values[0], rows, num)

    def answer(self, questions: np.ndarray, *, method: Method = "add") -> np.ndarray:
        """Rows of a, b, c (Q, 3) -> the row of the best answer to each (Q,)."""
        answers = np.empty(len(questions), dtype=np.int64)
        for start, values in self._values(questions, method):
            asked = questions[start : start + len(values)]
            np.put_along_axis(values, asked, -np.inf, axis=1)
            answers[start : start + len(values)] = values.argmax(axis=1)
        return answers

    def _values(self, questions: np.ndarray, method: Method) -> Iterator[tuple[int, np.ndarray]]:
        """(2) or (3) of every word, (some Q, V), and the first question of these."""
        for start in range(0, len(questions), QUESTIONS_AT_ONCE):
            asked = self.directions[questions[start : start + QUESTIONS_AT_ONCE]]  # (q, 3, E)
            if method == "add":
                yield start, (asked[:, 1] - asked[:, 0] + asked[:, 2]) @ self.directions.T
            else:
                to_a, to_b, to_c = ((asked[:, k] @ self.directions.T + 1) / 2 for k in range(3))
                yield start, to_b * to_c / (to_a + TINY)

    def _best(self, values: np.ndarray, without: list[int], num: int) -> list[tuple[str, float]]:
        return [(self.words[row], value) for row, value in best_rows(values, num, without=without)]
