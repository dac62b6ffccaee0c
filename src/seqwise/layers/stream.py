"""What a body hands to its heads, and what a head answers.

Shapes: B batch, T steps, D model width, N answers to choose from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TypeVar

import torch
from torch import Tensor

from ..data.batch import Tokens


@dataclass(frozen=True)
class Stream:
    """Hidden states of the steps of a batch."""

    hidden: Tensor  # (B, T, D)
    is_step: Tensor | None = None
    """(B, T) bool, False where a row is padded; None where every place is a step."""
    layers: tuple[Tensor, ...] = ()
    """(B, T, width) of embeddings and of each layer, the lowest first, where a body was asked for them."""
    pooled: Tensor | None = None
    """(B, D): a vector of the whole row, where the body itself makes one."""
    beside: Stream | None = None
    """The other one, where two things are read together: of words, the regions of their picture."""

    @property
    def lengths(self) -> Tensor:
        """Steps in each row, (B,)."""
        if self.is_step is None:
            return torch.full((self.hidden.shape[0],), self.hidden.shape[1], device=self.hidden.device)
        return self.is_step.sum(dim=1)


@dataclass(frozen=True)
class Prediction:
    """What belongs to each row: its label, its number, or a tag for each of its steps."""

    answers: Tensor
    """(B,) labels or numbers, (B, T) tags."""
    log_probs: Tensor | None = None
    """(B, N) or (B, T, N), nats, where there are N answers to choose from."""


def log_prob_of(log_probs: Tensor, ids: Tensor) -> Tensor:
    """log p of each answer: (..., N), (...) -> (...); of one that is not known (-1), minus infinity."""
    found = log_probs.gather(-1, ids.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return found.masked_fill(ids < 0, float("-inf"))


H = TypeVar("H")
Score = Callable[[H, Stream, Tokens], Tensor]


def only_scored(score: Score[H]) -> Score[H]:
    """A head's `score` that computes nothing of targets that do not count: there it says zero."""

    @wraps(score)
    def of_those_that_count(self: H, stream: Stream, wanted: Tokens) -> Tensor:
        if wanted.is_scored is None:
            return score(self, stream, wanted)
        hidden, ids = stream.hidden[wanted.is_scored], wanted.ids[wanted.is_scored]  # (N, D), (N,)
        found = score(self, Stream(hidden.unsqueeze(0)), Tokens(ids.unsqueeze(0)))
        return hidden.new_zeros(wanted.shape).masked_scatter(wanted.is_scored, found)

    return of_those_that_count
