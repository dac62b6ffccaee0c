"""Rows of text as ids, each read up to its end and then written again: what a sequence autoencoder learns from.

    read      ⟨b⟩ w_1 … w_n ⟨b⟩ w_1 … w_n
    wanted    w_1 … w_n ⟨b⟩ w_1 … w_n ⟨b⟩        ⟨b⟩ is the boundary, which begins and ends a row
    scored     –  …  –   –  yes … yes yes         only the second copy

A row is a line; lines of more than `row_tokens` tokens are cut into rows of so many, which makes windows of a text that
has no lines.

Shapes: N rows, B batch, L tokens of a row with its boundaries, T = 2 L - 2 steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

import numpy as np
import torch

from ..text import Tokenizer
from .batch import Batch, Tokens
from .files import lines_of
from .pair_store import Rows, cuts_by_length
from .source import TextData

ROW_TOKENS = 100  # where nobody said


@dataclass(frozen=True)
class RowText(TextData):
    """Text whose lines are rows."""

    row_tokens: int = ROW_TOKENS
    """Of a row, at most."""

    @classmethod
    def of(cls, text: TextData, row_tokens: int | None) -> RowText:
        found = {field.name: getattr(text, field.name) for field in fields(text)}
        return cls(**found, row_tokens=row_tokens or ROW_TOKENS)

    def lines_of(self, part: str) -> Iterator[str]:
        """That are not blank."""
        return (line for line in lines_of(self.parts[part].blocks()) if line.strip())


@dataclass(frozen=True)
class RowStore:
    rows: Rows
    """The boundary, the tokens of the row, the boundary: as a classifier reads it."""

    def __len__(self) -> int:
        """Tokens to write, ends among them."""
        return len(self.rows.ids) - len(self.rows)

    @property
    def source(self) -> Rows:
        """A row is its own source and target (data/pair_store.py)."""
        return self.rows

    @property
    def target(self) -> Rows:
        return self.rows

    def take(self, limit: int) -> RowStore:
        """As many rows from the beginning as have `limit` tokens to write, one at least."""
        fitting = max(1, int(np.searchsorted(np.cumsum(self.rows.lengths - 1), limit, side="right")))
        return self if fitting >= len(self.rows) else RowStore(self.rows.take(fitting))

    def batch(self, chosen: np.ndarray) -> Batch:
        starts, lengths = self.rows.edges[chosen][:, None], self.rows.lengths[chosen][:, None]  # (B, 1)
        steps = np.arange(2 * lengths.max() - 2)
        is_step = steps < 2 * lengths - 2  # (B, T)
        read = np.where(steps < lengths, steps, steps - lengths + 1)  # where in the row each step stands
        wanted = np.where(steps + 1 < lengths, steps + 1, steps - lengths + 2)
        ids = [np.where(is_step, self.rows.ids[starts + np.where(is_step, at, 0)], 0) for at in (read, wanted)]
        inputs, targets = (torch.from_numpy(found.astype(np.int64)) for found in ids)
        is_token = None if is_step.all() else torch.from_numpy(is_step)
        is_scored = torch.from_numpy(is_step & (steps >= lengths - 1))
        return Batch({"tokens": Tokens(inputs, is_token)}, {"tokens": Tokens(targets, is_token, is_scored=is_scored)})

    def in_order_of_length(self, max_tokens: int) -> Iterator[np.ndarray]:
        """All rows once, long ones together, in batches of at most so many places."""
        order = np.argsort(self.rows.lengths, kind="stable")
        for a, b in cuts_by_length(self.rows.lengths[order], max_tokens):
            yield order[a:b]


def build_row_store(lines: Iterable[str], tokenizer: Tokenizer, row_tokens: int) -> RowStore:
    """Lines of which the tokenizer makes nothing are no rows."""
    boundary = np.array([tokenizer.boundary])
    encoded = (tokenizer.encode(line) for line in lines)
    cut = (ids[start : start + row_tokens] for ids in encoded for start in range(0, len(ids), row_tokens))
    return RowStore(Rows.of(np.concatenate([boundary, ids, boundary]) for ids in cut))
