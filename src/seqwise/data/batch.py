"""Batch: what a model reads and what it should answer, as named fields of a few kinds.

Shapes: B batch, T steps, C columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
    segments: Tensor | None = None
    """(B, T) int64: which of the texts that stand in a row each token belongs to; None where there is one."""
    characters: Tensor | None = None
    """(B, T, K) int64: the characters of each word, zero behind its last; None where words are not spelled."""
    is_scored: Tensor | None = None
    """(B, T) bool: targets that count, where only some do (masked words); None where every token does."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.ids.shape[0], self.ids.shape[1]

    @property
    def is_step(self) -> Tensor | None:
        """The same as `is_token`, by the name that all fields share."""
        return self.is_token

    @property
    def is_target(self) -> Tensor | None:
        """(B, T) bool: places that count; None where all do."""
        return self.is_token if self.is_scored is None else self.is_scored

    @property
    def lengths(self) -> Tensor:
        """Tokens in each row, (B,)."""
        return _lengths(self.ids, self.is_token)

    def count(self) -> int:
        """Targets."""
        return self.ids.numel() if self.is_target is None else int(self.is_target.sum())

    def map(self, change: Change) -> Tokens:
        others = (self.is_token, self.segments, self.characters, self.is_scored)
        return Tokens(change(self.ids), *(_map(change, other) for other in others))

    def shortened(self, limit: int) -> Tokens:
        """Of rows with more than `limit` tokens, the first and the last half of so many."""
        lengths = self.lengths
        if int(lengths.max()) <= limit:
            return self
        steps, head = torch.arange(limit, device=lengths.device), limit - limit // 2
        skipped = (lengths - limit).clamp(min=0).unsqueeze(1)  # (B, 1)
        places = steps + skipped * (steps >= head)  # (B, limit)
        is_token = steps < lengths.unsqueeze(1)
        rows = torch.arange(len(lengths), device=lengths.device).unsqueeze(1)
        kept = self.map(lambda tensor: tensor[rows, places])
        return replace(kept, is_token=None if bool(is_token.all()) else is_token)

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
    def is_target(self) -> Tensor | None:
        return self.is_step

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
    is_step = is_target = None
    """Every row has one."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.ids.shape[0], 1

    def count(self) -> int:
        return len(self.ids)

    def map(self, change: Change) -> Labels:
        return Labels(change(self.ids))


@dataclass(frozen=True)
class LabelSets:
    """For each row, which of the labels are right: any number of them."""

    is_right: Tensor  # (B, N) bool
    is_step = is_target = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.is_right.shape[0], 1

    def count(self) -> int:
        return len(self.is_right)

    def map(self, change: Change) -> LabelSets:
        return LabelSets(change(self.is_right))


@dataclass(frozen=True)
class Tags:
    """An answer for each word of a row, read at the step where its first piece stands."""

    ids: Tensor  # (B, W) int64
    steps: Tensor
    """(B, W) int64: where each word begins."""
    is_word: Tensor | None = None
    """(B, W) bool, False behind the last word of a row; None where all rows have as many."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.ids.shape[0], self.ids.shape[1]

    @property
    def is_step(self) -> Tensor | None:
        return self.is_word

    @property
    def is_target(self) -> Tensor | None:
        return self.is_word

    @property
    def lengths(self) -> Tensor:
        """Words in each row, (B,)."""
        return _lengths(self.ids, self.is_word)

    def count(self) -> int:
        return self.ids.numel() if self.is_word is None else int(self.is_word.sum())

    def map(self, change: Change) -> Tags:
        return Tags(change(self.ids), change(self.steps), _map(change, self.is_word))


@dataclass(frozen=True)
class Spans:
    """Of each row, a question and a window of a passage, where in the window the answer stands."""

    places: Tensor
    """(B, 2) int64: the first and the last step of the answer; both 0, which is the step before the question, where the
    window does not hold it."""
    passages: Tensor
    """(B, 2) int64: the first and the last step of the window, between which an answer may stand."""
    is_step = is_target = None
    """Every row has one."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.places.shape[0], 1

    def count(self) -> int:
        return len(self.places)

    def map(self, change: Change) -> Spans:
        return Spans(change(self.places), change(self.passages))


@dataclass(frozen=True)
class Choices:
    """Which row of each group is the right one."""

    is_right: Tensor
    """(B,) bool: one row of each group; none where that is not known."""
    groups: Tensor
    """(B,) int64: rows of one number are the choices of one question, and stand side by side."""
    is_step = is_target = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.groups.shape[0], 1

    def count(self) -> int:
        return len(self.groups.unique_consecutive())

    def map(self, change: Change) -> Choices:
        return Choices(change(self.is_right), change(self.groups))


@dataclass(frozen=True)
class Images:
    """What is to be seen: a picture for each row, or a clip of several, as pixels from 0 to 255.

    A single picture is a clip of one frame; the frames are the steps.
    """

    pixels: Tensor  # (B, T, C, H, W) uint8
    is_step: Tensor | None = None
    """(B, T) bool, False behind the last frame of a clip; None where every place holds a frame."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.pixels.shape[0], self.pixels.shape[1]

    @property
    def is_target(self) -> Tensor | None:
        return self.is_step

    @property
    def lengths(self) -> Tensor:
        """Frames of each row, (B,)."""
        return _lengths(self.pixels, self.is_step)

    def count(self) -> int:
        """Rows: a picture is one answer."""
        return len(self.pixels)

    def map(self, change: Change) -> Images:
        return Images(change(self.pixels), _map(change, self.is_step))


@dataclass(frozen=True)
class Regions:
    """What was seen: for each row a few places of its picture, a vector of each. Cells of a grid, things in boxes, or
    whole frames of a clip, in the order of time."""

    features: Tensor  # (B, N, F) float
    boxes: Tensor | None = None
    """(B, N, 4) float: left, top, right and bottom edge, as shares of width and height; None where nobody knows."""
    is_region: Tensor | None = None
    """(B, N) bool, False behind the last region of a row; None where every place holds one."""
    labels: Tensor | None = None
    """(B, N) int64: what each region shows; None where nobody said."""
    is_scored: Tensor | None = None
    """(B, N) bool: targets that count, where only some do (masked regions); None where every region does."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.features.shape[0], self.features.shape[1]

    @property
    def is_step(self) -> Tensor | None:
        """The same as `is_region`, by the name that all fields share."""
        return self.is_region

    @property
    def is_target(self) -> Tensor | None:
        """(B, N) bool: regions that count; None where all do."""
        return self.is_region if self.is_scored is None else self.is_scored

    @property
    def lengths(self) -> Tensor:
        """Regions of each row, (B,)."""
        return _lengths(self.features, self.is_region)

    def count(self) -> int:
        """Targets."""
        B, N = self.shape
        return B * N if self.is_target is None else int(self.is_target.sum())

    def map(self, change: Change) -> Regions:
        others = (self.boxes, self.is_region, self.labels, self.is_scored)
        return Regions(change(self.features), *(_map(change, other) for other in others))


@dataclass(frozen=True)
class Noise:
    """Chance, drawn beforehand: numbers from 0 to 1 for each row, as many as the model asks for, so that a step can be
    repeated and rows do not depend on who else is in the batch."""

    uniform: Tensor  # (B, K) float32, in (0, 1)
    is_step = is_target = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.uniform.shape[0], 1

    @property
    def lengths(self) -> Tensor:
        """None is read: (B,) zeros."""
        return torch.zeros(len(self.uniform), dtype=torch.long, device=self.uniform.device)

    def normal(self) -> Tensor:
        """The same as draws from the normal distribution, (B, K)."""
        return torch.special.ndtri(self.uniform.double()).to(self.uniform)

    def map(self, change: Change) -> Noise:
        return Noise(change(self.uniform))


@dataclass(frozen=True)
class Batch:
    """Fields by name. A language model reads "tokens" and should answer "tokens", one step ahead."""

    inputs: dict[str, Any]
    targets: dict[str, Any]
    """Each a field of some kind, Tokens, Values, Labels, …; typed loosely, since the name tells which."""
    resets: Tensor | None = None
    """(B,) bool: rows that do not go on from the state of the batch before; None where that is not asked."""
    places: Tensor | None = None
    """(B,) where in the text the first target of each row stands; None where that is not asked."""
    groups: Tensor | None = None
    """(B,) int64: rows of one number belong together (windows of a passage, choices of a question, samples of a
    prompt), stand side by side, and are never cut apart; None where each row stands alone."""

    def __len__(self) -> int:
        return int(next(iter(self.inputs.values())).shape[0])

    def counts(self) -> dict[str, int]:
        """How many targets each field has: what sums of losses are divided by."""
        return {name: field.count() for name, field in self.targets.items()}

    def sizes(self) -> dict[str, int]:
        """What sums over rows, and over groups of them, are divided by."""
        return {"rows": len(self), "groups": len(self) if self.groups is None else len(self.groups.unique())}

    @property
    def num_steps(self) -> int:
        """Steps of all inputs: what was read."""
        return sum(int(field.lengths.sum()) for field in self.inputs.values())

    def split(self, parts: int) -> list[Batch]:
        """Micro-batches of whole rows, and of whole groups, as even as can be."""
        edges = torch.linspace(0, len(self), min(parts, len(self)) + 1).round().int().tolist()
        if self.groups is not None:
            starts = [0, *((self.groups[1:] != self.groups[:-1]).nonzero().squeeze(1) + 1).tolist(), len(self)]
            edges = sorted({min(starts, key=lambda start: abs(start - edge)) for edge in edges})
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
        others = (self.resets, self.places, self.groups)
        return Batch(inputs, targets, *(_map(change, other) for other in others))


def _map(change: Change, tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else change(tensor)


def _lengths(content: Tensor, is_step: Tensor | None) -> Tensor:
    if is_step is None:
        return torch.full((content.shape[0],), content.shape[1], device=content.device)
    return is_step.sum(dim=1)


def rows_of(field: Any, num: int) -> Any:
    """A field of one row, so many times."""
    return field.map(lambda tensor: tensor.expand(num, *tensor.shape[1:]))


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
