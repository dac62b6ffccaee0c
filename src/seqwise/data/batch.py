"""Batch: what a model reads and what it should answer, as named fields of a few kinds.

Shapes: B batch, T steps, C columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

Change = Callable[[Tensor], Tensor]
KEPT_SHARE = 0.75  # of a context that is full; the rest makes room for what comes


def kept_of(context: int) -> int:
    """How many steps of a full context are kept."""
    return max(1, math.floor(KEPT_SHARE * context))


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
    def is_step(self) -> Tensor | None:
        """The same as `is_token`, by the name that tokens and values share."""
        return self.is_token

    @property
    def lengths(self) -> Tensor:
        """Tokens in each row, (B,)."""
        return _lengths(self.ids, self.is_token)

    def count(self) -> int:
        return self.ids.numel() if self.is_token is None else int(self.is_token.sum())

    def map(self, change: Change) -> Tokens:
        return Tokens(change(self.ids), _map(change, self.is_token))

    def crop(self, context: int | None) -> Tokens:
        """Rows that leave no room in the context keep their end."""
        if context is None or self.shape[1] < context:
            return self
        rows = [row[:n] for row, n in zip(self.ids.tolist(), self.lengths.tolist(), strict=True)]
        kept = [row if len(row) < context else row[-kept_of(context) :] for row in rows]
        return pad_rows(kept, device=self.ids.device)


@dataclass(frozen=True)
class Values:
    """Numbers at each step, in columns. Padding stands at the end of a row; a number that is missing is zero."""

    values: Tensor  # (B, T, C) float
    is_observed: Tensor | None = None
    """(B, T, C) bool, False where a number is missing; None where all are there."""
    is_step: Tensor | None = None
    """(B, T) bool, False where a row is padded; None where every place is a step."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    @property
    def lengths(self) -> Tensor:
        """Steps in each row, (B,)."""
        return _lengths(self.values, self.is_step)

    @property
    def has_any(self) -> Tensor:
        """(B, T) bool: steps, not padding, at which at least one number is there."""
        B, T = self.shape
        there = torch.ones(B, T, dtype=torch.bool, device=self.values.device)
        if self.is_observed is not None:
            there = self.is_observed.any(dim=-1)
        return there if self.is_step is None else there & self.is_step

    def count(self) -> int:
        """Steps with something to predict."""
        return int(self.has_any.sum())

    def map(self, change: Change) -> Values:
        return Values(change(self.values), _map(change, self.is_observed), _map(change, self.is_step))

    def crop(self, context: int | None) -> Values:
        """Rows that leave no room in the context keep their end."""
        if context is None or self.shape[1] < context:
            return self
        lengths = self.lengths
        kept = torch.where(lengths < context, lengths, kept_of(context))  # (B,)
        steps = torch.arange(int(kept.max()), device=lengths.device)
        places = (lengths - kept).unsqueeze(1) + steps  # (B, T'); behind the end of a row anything
        is_step = steps < kept.unsqueeze(1)
        places = places.clamp(max=self.shape[1] - 1)
        rows = torch.arange(len(lengths), device=lengths.device).unsqueeze(1)
        cropped = self.map(lambda tensor: tensor[rows, places])
        return Values(cropped.values, cropped.is_observed, None if bool(is_step.all()) else is_step)


@dataclass(frozen=True)
class Labels:
    """One answer for each row: which of the labels it is."""

    ids: Tensor  # (B,) int64
    is_step = None
    """Every row has one."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.ids.shape[0], 1

    def count(self) -> int:
        return len(self.ids)

    def map(self, change: Change) -> Labels:
        return Labels(change(self.ids))


@dataclass(frozen=True)
class Batch:
    """Fields by name. A language model reads "tokens" and should answer "tokens", one step ahead."""

    inputs: dict[str, Any]
    targets: dict[str, Any]
    """Each a Tokens, Values or Labels; typed loosely, since the name tells which."""
    starts_anew: Tensor | None = None
    """(B,) bool: rows that do not go on from the state of the batch before; None where that is not asked."""
    places: Tensor | None = None
    """(B,) where in the text the first target of each row stands; None where that is not asked."""

    def __len__(self) -> int:
        return int(next(iter(self.inputs.values())).shape[0])

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

    def in_64_bits(self) -> Batch:
        """For a model that computes so."""
        return self._map(lambda tensor: tensor.double() if tensor.is_floating_point() else tensor)

    def _map(self, change: Change) -> Batch:
        inputs, targets = ({n: f.map(change) for n, f in fields.items()} for fields in (self.inputs, self.targets))
        return Batch(inputs, targets, _map(change, self.starts_anew), _map(change, self.places))


def _map(change: Change, tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else change(tensor)


def _lengths(content: Tensor, is_step: Tensor | None) -> Tensor:
    if is_step is None:
        return torch.full((content.shape[0],), content.shape[1], device=content.device)
    return is_step.sum(dim=1)


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


def next_value_batch(values: Tensor, is_observed: Tensor | None = None) -> Batch:
    """(B, T+1, C) numbers, zero where missing -> inputs (B, T, C) and the targets one step ahead (B, T, C).

    A series begins with a step at which nothing is observed, as a text begins with the boundary token.
    """
    seen, wanted = (None, None) if is_observed is None else (is_observed[:, :-1], is_observed[:, 1:])
    return Batch({"values": Values(values[:, :-1], seen)}, {"values": Values(values[:, 1:], wanted)})
