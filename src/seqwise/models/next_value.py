"""A body with a head that predicts the next numbers: the verbs of every neural forecaster.

Where a language model answers with log-probabilities, it answers with a distribution: `mean`, `stddev`, `sample`,
`log_prob`. Shapes: B batch, T steps, C columns, D model width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from ..data.batch import Batch, Values
from ..layers.heads import GaussianHead
from .contract import Body, Loss, State, Term, crop_values


class NextValueModel(nn.Module):
    body: Body
    head: GaussianHead

    def __init__(self, body: nn.Module, head: GaussianHead):
        super().__init__()
        self.body, self.head = body, head  # type: ignore[assignment]
        self.context = self.body.context
        self.carries_state = self.body.carries_state

    def fresh_state(self, batch_size: int) -> State:
        return self.body.fresh_state(batch_size)

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State | None]:
        """log density of the numbers of each step that are there, (B, T)."""
        hidden, state = self.body.encode(batch.inputs["values"], state)  # (B, T, D)
        targets = batch.targets["values"]
        return self.head.score(hidden, targets.values, targets.is_observed), state

    def loss(self, batch: Batch, state: State | None = None) -> Loss:
        log_density, state = self.score(batch, state)
        targets = batch.targets["values"]
        if targets.is_step is not None:
            log_density = log_density.masked_fill(~targets.is_step, 0.0)
        return Loss({"next_value": Term(-log_density.sum(), targets.count(), over="values")}, state)

    def start(self, prompt: Batch) -> tuple[Distribution, State]:
        values = crop_values(prompt.inputs["values"], self.context)
        hidden, state = self.body.encode(values, self.fresh_state(len(prompt)))
        last = hidden[torch.arange(len(prompt), device=hidden.device), values.lengths - 1]  # (B, D)
        assert state is not None
        return self.head.distribution(last), state

    def step(self, values: Tensor, state: State, is_observed: Tensor | None = None) -> tuple[Distribution, State]:
        """values (B, C)."""
        there = None if is_observed is None else is_observed.unsqueeze(1)
        hidden, after = self.body.encode(Values(values.unsqueeze(1), there), state)  # (B, 1, D)
        assert after is not None
        return self.head.distribution(hidden[:, 0]), after
