"""Batch: what a model reads and what it should answer, as named fields of a few kinds. Shapes: B batch, T steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tokens:
    """Ids of tokens. Padding stands at the end of a row and its ids mean nothing."""

    ids: Tensor  # (B, T) int64
    is_token: Tensor | None = None
    """(B, T) bool, False where a row is padded; None where every place holds a token."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.ids.shape[0], self.ids.shape[1]

    @property
    def lengths(self) -> Tensor:
        """Tokens in each row, (B,)."""
        if self.is_token is None:
            return torch.full((self.shape[0],), self.shape[1], device=self.ids.device)
        return self.is_token.sum(dim=1)

    def count(self) -> int:
        return self.ids.numel() if self.is_token is None else int(self.is_token.sum())


@dataclass(frozen=True)
class Batch:
    """For a language model both have one field, "tokens": the inputs and, one step ahead, the targets."""

    inputs: dict[str, Tokens]
    targets: dict[str, Tokens]
    starts_anew: Tensor | None = None
    """(B,) bool: rows that do not go on from the state of the batch before; None where that is not asked."""
    places: Tensor | None = None
    """(B,) where in the text the first target of each row stands; None where that is not asked."""

    def __len__(self) -> int:
        return next(iter(self.inputs.values())).shape[0]

    def counts(self) -> dict[str, int]:
        """How many targets each field has: what sums of losses are divided by."""
        return {name: field.count() for name, field in self.targets.items()}

    def split(self, parts: int) -> list[Batch]:
        """Micro-batches of whole rows, as even as can be."""
        edges = torch.linspace(0, len(self), min(parts, len(self)) + 1).round().int().tolist()
        return [self.rows(slice(a, b)) for a, b in pairwise(edges)]

    def rows(self, index: slice) -> Batch:
        return self._map(lambda tensor: tensor[index])

    def to(self, device: torch.device | str) -> Batch:
        return self._map(lambda tensor: tensor.to(device, non_blocking=True))

    def _map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        def changed(fields: dict[str, Tokens]) -> dict[str, Tokens]:
            return {
                name: Tokens(change(f.ids), None if f.is_token is None else change(f.is_token))
                for name, f in fields.items()
            }

        starts_anew = None if self.starts_anew is None else change(self.starts_anew)
        places = None if self.places is None else change(self.places)
        return Batch(changed(self.inputs), changed(self.targets), starts_anew, places)


def pad_rows(rows: Sequence[Sequence[int]], *, device: torch.device | str = "cpu") -> Tokens:
    """Rows of ids of different lengths -> one padded field."""
    longest = max(len(row) for row in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    is_token = torch.zeros(len(rows), longest, dtype=torch.bool)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.as_tensor(row, dtype=torch.long)
        is_token[i, : len(row)] = True
    return Tokens(ids.to(device), None if bool(is_token.all()) else is_token.to(device))


def prompt_batch(prompts: Sequence[Sequence[int]], *, device: torch.device | str = "cpu") -> Batch:
    """Prompts for `start`: they have inputs and no targets yet."""
    return Batch({"tokens": pad_rows(prompts, device=device)}, {})


def next_token_batch(rows: Tensor, is_token: Tensor | None = None) -> Batch:
    """(B, T+1) ids -> inputs (B, T) and the targets one step ahead (B, T)."""
    has_target = None if is_token is None else is_token[:, 1:]
    return Batch({"tokens": Tokens(rows[:, :-1], has_target)}, {"tokens": Tokens(rows[:, 1:], has_target)})
