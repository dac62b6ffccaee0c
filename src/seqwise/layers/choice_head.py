"""Which of a few rows is the right one: each has a score by itself, and those of a group share their probability.

    s_r              = w . pooled(row r) + b                       (1)   Radford et al. 2018, 3.3
    log p(row r)     = s_r - log sum over its group of exp s       (2)

Shapes: B rows, G groups, N choices at most, T steps, D model width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..data.batch import Choices
from .heads import Pooling, zero_linear
from .stream import Prediction, Stream


class ChoiceHead(nn.Module):
    continues = False

    def __init__(self, pooling: Pooling, num_choices: int):
        super().__init__()
        self.pooling, self.num_choices = pooling, num_choices
        self.output = zero_linear(pooling.output_dim, 1)

    def log_probs(self, stream: Stream, wanted: Choices) -> tuple[Tensor, Tensor, Tensor]:
        """(G, N) nats, minus infinity where a group has no such row; and of each row its group and its place in it."""
        scores = self.output(self.pooling.of(stream)).squeeze(1)  # (B,)  (1)
        _, group, sizes = torch.unique_consecutive(wanted.groups, return_inverse=True, return_counts=True)
        starts = sizes.cumsum(0) - sizes
        place = torch.arange(len(group), device=group.device) - starts[group]
        table = scores.new_full((len(sizes), self.num_choices), float("-inf"))
        table[group, place] = scores
        return table.log_softmax(dim=1), group, place  # (2)

    def score(self, stream: Stream, wanted: Choices) -> Tensor:
        """log p of the right row of each group, (G, 1); minus infinity where none is known to be right."""
        log_probs, group, place = self.log_probs(stream, wanted)
        right = log_probs.new_full((len(log_probs),), float("-inf"))
        is_right = wanted.is_right
        right[group[is_right]] = log_probs[group[is_right], place[is_right]]
        return right.unsqueeze(1)

    objective = score

    def predict(self, stream: Stream, wanted: Choices) -> Prediction:
        """Of each group the place of the most probable row, (G,). Which is right is not looked at."""
        log_probs, _, _ = self.log_probs(stream, wanted)
        return Prediction(log_probs.argmax(dim=1), log_probs)
