"""Pairs as ids, and batches of them by length, so that little padding is computed.

A source ends in the boundary token, so that an empty one has something to read; a target begins and ends in it.

Shapes: N pairs, B batch, S source steps, T target steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from ..text import Tokenizer
from .batch import Batch, Tokens
from .pair_files import Pair

MIXED = 2.0  # tokens by which targets of one batch may differ in length, for the sake of chance


@dataclass(frozen=True)
class Rows:
    """Rows of different lengths, one behind the other."""

    ids: np.ndarray
    """int32, those of all rows."""
    edges: np.ndarray
    """(N+1,) where each row begins, and the last one ends."""

    @classmethod
    def of(cls, rows: Iterable[np.ndarray]) -> Rows:
        pieces = [np.asarray(row, dtype=np.int32) for row in rows]
        edges = np.cumsum([0, *(len(piece) for piece in pieces)])
        return cls(np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int32), edges)

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.edges)

    def take(self, num: int) -> Rows:
        """So many rows from the beginning."""
        return Rows(self.ids[: self.edges[num]], self.edges[: num + 1])

    def at(self, chosen: np.ndarray) -> Rows:
        """These rows, (n,), in this order."""
        return Rows.of(self.ids[self.edges[row] : self.edges[row + 1]] for row in chosen)

    def padded(self, chosen: np.ndarray) -> Tokens:
        """Some of the rows side by side."""
        starts, lengths = self.edges[chosen], self.lengths[chosen]
        steps = np.arange(lengths.max())
        is_token = steps < lengths[:, None]  # (B, longest)
        places = np.where(is_token, starts[:, None] + steps, 0)
        ids = np.where(is_token, self.ids[places], 0).astype(np.int64)
        return Tokens(torch.from_numpy(ids), None if is_token.all() else torch.from_numpy(is_token))


@dataclass(frozen=True)
class PairStore:
    source: Rows
    target: Rows
    texts: Sequence[Pair]

    @property
    def num_pairs(self) -> int:
        return len(self.source)

    def __len__(self) -> int:
        """Target tokens to predict."""
        return len(self.target.ids) - self.num_pairs

    @property
    def num_chars(self) -> int:
        """Of the targets."""
        return sum(len(target) for _, target in self.texts)

    def take(self, limit: int) -> PairStore:
        """As many pairs from the beginning as have `limit` target tokens, one at least."""
        return self.pairs(max(1, int(np.searchsorted(np.cumsum(self.target.lengths - 1), limit, side="right"))))

    def pairs(self, num: int) -> PairStore:
        """So many pairs from the beginning, or all."""
        if num >= self.num_pairs:
            return self
        return PairStore(self.source.take(num), self.target.take(num), self.texts[:num])

    def batch(self, chosen: np.ndarray) -> Batch:
        target = self.target.padded(chosen)
        has_target = None if target.is_token is None else target.is_token[:, 1:]
        inputs = {"source": self.source.padded(chosen), "tokens": Tokens(target.ids[:, :-1], has_target)}
        return Batch(inputs, {"tokens": Tokens(target.ids[:, 1:], has_target)})

    def in_order_of_length(self, max_tokens: int) -> Iterator[np.ndarray]:
        """All pairs once, long ones together, in batches of at most so many places on either side."""
        longer = np.maximum(self.source.lengths, self.target.lengths)
        order = np.argsort(longer, kind="stable")
        for a, b in cuts_by_length(longer[order], max_tokens):
            yield order[a:b]


def build_pair_store(pairs: Sequence[Pair], source: Tokenizer, target: Tokenizer) -> PairStore:
    return PairStore(
        Rows.of(source_ids(text, source) for text, _ in pairs),
        Rows.of(np.concatenate([[target.boundary], target.encode(text), [target.boundary]]) for _, text in pairs),
        pairs,
    )


def source_ids(text: str, tokenizer: Tokenizer) -> np.ndarray:
    return np.concatenate([tokenizer.encode(text), [tokenizer.boundary]])


class HasSides(Protocol):
    """Pairs, or rows that are their own source and target."""

    @property
    def source(self) -> Rows: ...
    @property
    def target(self) -> Rows: ...
    def batch(self, chosen: np.ndarray) -> Batch: ...


class PairBatches:
    """Batches of pairs of about the same lengths, shuffled anew in each epoch; the batch of any step by itself.

    Pairs are sorted by source, then by target, and cut where `batch_tokens` places are full. So most batches have
    sources of one length, which need no mask. The cuts are the same in each epoch; who stands between them is not,
    since targets that differ little in length are in a new order each time.
    """

    def __init__(self, store: HasSides, *, batch_tokens: int, seed: int = 0):
        self.store, self.seed = store, seed
        source, target = store.source.lengths, store.target.lengths
        self._cuts = cuts_by_length(np.maximum(source, target)[np.lexsort((target, source))], batch_tokens)
        self.steps_per_epoch = len(self._cuts)
        self._epoch = -1

    def batch(self, step: int, model: object = None) -> Batch:
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            random = np.random.default_rng((self.seed, epoch))
            source, target = self.store.source.lengths, self.store.target.lengths
            self._order = np.lexsort((target + MIXED * random.random(len(target)), source))
            self._batches = random.permutation(self.steps_per_epoch)
            self._epoch = epoch
        a, b = self._cuts[self._batches[place]]
        return self.store.batch(self._order[a:b])


def cuts_by_length(lengths: np.ndarray, max_tokens: int) -> list[tuple[int, int]]:
    """Where to cut rows so that rows * longest is at most `max_tokens`; each batch has one row at least."""
    cuts, start, longest = [], 0, 0
    for place, length in enumerate(lengths.tolist()):
        if place > start and (place + 1 - start) * max(longest, length) > max_tokens:
            cuts.append((start, place))
            start, longest = place, 0
        longest = max(longest, length)
    return [*cuts, (start, len(lengths))] if len(lengths) else []
