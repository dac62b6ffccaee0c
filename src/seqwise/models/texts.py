"""Texts that are being written side by side, each with its own way to choose the next token.

    texts = Texts.begin([Choice(temperature=0.8, is_sampled=True)], limits=[200], chances=...)
    texts.add(tokens)                      # (R, t), one or more for each
    texts = texts.select(rows)             # some leave
    texts = join_texts([texts, others])    # some come

Sizes and settings are numbers in arrays, as the compiled loop reads them (kernels/writing.py).

Shapes: R rows, S samples, T tokens of a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..kernels.writing import DONE, LIMIT, SAMPLE, STOP


@dataclass(frozen=True)
class Choice:
    """How the next token is chosen: as DecodingConfig says it, for one text."""

    is_sampled: bool = False
    """Drawn by chance; else the most probable one."""
    stop: int | None = None
    never: int | None = None
    min_tokens: int = 0
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float = 1.0

    def settings(self, limit: int, sample: int) -> list[int]:
        """A row of them, in the order of kernels/writing.py."""
        stop, never, top_k = (-1 if found is None else found for found in (self.stop, self.never, self.top_k))
        return [stop, never, self.min_tokens, int(self.is_sampled), top_k, sample, 0, limit]

    @property
    def factors(self) -> list[float]:
        return [self.temperature, 1.0 if self.top_p is None else self.top_p, self.repetition_penalty]


@dataclass
class Texts:
    choices: list[Choice]
    """How each is chosen, and below the same as numbers."""
    settings: np.ndarray
    """(R, ROW) int64: with how many tokens there are, and how many there may be."""
    factors: np.ndarray
    """(R, 3) float64."""
    chances: np.ndarray
    """(S, U) float64: a number between 0 and 1 for each sample and token; which one a row takes, `settings` say."""
    tokens: np.ndarray
    """(R, T) int64, those of a row first; behind them anything."""
    samples: int = 1
    """Rows of one prompt, which stand side by side."""

    @staticmethod
    def begin(choices: Sequence[Choice], limits: Sequence[int], chances: np.ndarray, samples: int = 1) -> Texts:
        """With nothing written yet. Row i takes the chances of sample i, and from the first again behind the last."""
        rows = enumerate(zip(choices, limits, strict=True))
        of = [choice.settings(limit, i % len(chances)) for i, (choice, limit) in rows]
        settings, factors = np.array(of, dtype=np.int64), np.array([choice.factors for choice in choices])
        return Texts(list(choices), settings, factors, chances, np.zeros((len(of), 0), dtype=np.int64), samples)

    def __len__(self) -> int:
        return len(self.settings)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each, (R,)."""
        return self.settings[:, DONE]

    @property
    def last(self) -> np.ndarray:
        """The newest token of each, (R,)."""
        return self.tokens[np.arange(len(self)), self.lengths - 1]

    @property
    def longest(self) -> int:
        return int(self.lengths.max())

    @property
    def room(self) -> int:
        """Steps after which each has as many tokens as it may have: some may be over before."""
        return int((self.settings[:, LIMIT] - self.lengths).max())

    @property
    def is_over(self) -> np.ndarray:
        """(R,) whether each has all its tokens, or has come to its stop token."""
        places = np.arange(self.tokens.shape[1]) < self.lengths[:, None]  # (R, T)
        has_stopped = ((self.tokens == self.settings[:, STOP, None]) & places).any(axis=1)
        return has_stopped | (self.lengths >= self.settings[:, LIMIT])

    def add(self, tokens: np.ndarray) -> None:
        """(R, t) to each."""
        end = self.longest + tokens.shape[1]
        if end > self.tokens.shape[1]:  # twice as much room, so that adding one by one costs no more than its share
            room = np.zeros((len(self), max(end, 2 * self.tokens.shape[1])), dtype=np.int64)
            room[:, : self.tokens.shape[1]] = self.tokens
            self.tokens = room
        np.put_along_axis(self.tokens, self.lengths[:, None] + np.arange(tokens.shape[1]), tokens, axis=1)
        self.settings[:, DONE] += tokens.shape[1]

    def select(self, rows: np.ndarray) -> Texts:
        """Those at `rows` (R',), in this order."""
        choices = [self.choices[row] for row in rows.tolist()]
        of_rows = {name: getattr(self, name)[rows] for name in ("settings", "factors", "tokens")}
        return replace(self, choices=choices, **of_rows)


def join_texts(parts: Sequence[Texts]) -> Texts:
    """All of them, one behind the other; chances that nobody takes any more are left behind."""
    settings, chances, first = np.concatenate([part.settings for part in parts]), [], 0
    for part in parts:
        used, taken = np.unique(part.settings[:, SAMPLE], return_inverse=True)
        chances.append(part.chances[used])
        settings[first : first + len(part), SAMPLE] = sum(map(len, chances[:-1])) + taken
        first += len(part)
    factors, tokens = np.concatenate([part.factors for part in parts]), [part.tokens for part in parts]
    choices = [choice for part in parts for choice in part.choices]
    return Texts(choices, settings, factors, _side_by_side(chances), _side_by_side(tokens))


def _side_by_side(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Tables of different widths as one, zero behind the ends."""
    width = max(part.shape[1] for part in parts)
    return np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts])
