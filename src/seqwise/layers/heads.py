"""Heads: what is read off the hidden states of a body.

Shapes: B batch, T steps, D model width, V vocabulary, C columns, N labels.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.distributions import Independent, Normal
from torch.nn import functional

from .fused_likelihood import fused_loss

LOG_TWO_PI = math.log(2 * math.pi)


class NextTokenHead(nn.Module):
    """log p(token | hidden) = log softmax(W hidden). Tied: W is the embedding table (Press & Wolf 2017)."""

    def __init__(self, model_dim: int, vocab_size: int, *, tied_to: nn.Embedding | None = None):
        super().__init__()
        self.output = nn.Linear(model_dim, vocab_size, bias=False)
        if tied_to is None:
            nn.init.zeros_(self.output.weight)  # every token is as likely as the next at the start
        else:
            self.output.weight = tied_to.weight

    def log_probs(self, hidden: Tensor) -> Tensor:
        """(..., D) -> (..., V), nats."""
        return functional.log_softmax(self.output(hidden), dim=-1)

    def loss(self, hidden: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """-log p of the targets together, part of it asking for every token alike: (N, D), (N,) -> (), nats."""
        return fused_loss(hidden, self.output.weight, targets, smoothing)

    def score(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """log p of each target: (B, T, D), (B, T) -> (B, T), nats."""
        logits = self.output(hidden)
        return -functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets)


class GaussianHead(nn.Module):
    """p(values | hidden): each column normal, with a mean and a scale of its own."""

    def __init__(self, model_dim: int, num_columns: int):
        super().__init__()
        self.output = nn.Linear(model_dim, 2 * num_columns)
        nn.init.zeros_(self.output.weight)  # values have mean zero and variance one: so say it at the start
        nn.init.zeros_(self.output.bias)

    def distribution(self, hidden: Tensor) -> Independent:
        """Of the C values together: (..., D) -> batch shape (...), event shape (C,)."""
        mean, log_scale = self._mean_and_log_scale(hidden)
        return Independent(Normal(mean, log_scale.exp()), 1)

    def score(self, hidden: Tensor, values: Tensor, is_observed: Tensor | None) -> Tensor:
        """log density of the values that are there: (B, T, D), (B, T, C) -> (B, T), nats."""
        mean, log_scale = self._mean_and_log_scale(hidden)
        log_density = -0.5 * ((values - mean) / log_scale.exp()) ** 2 - log_scale - 0.5 * LOG_TWO_PI
        if is_observed is not None:
            log_density = log_density.masked_fill(~is_observed, 0.0)
        return log_density.sum(dim=-1)

    def _mean_and_log_scale(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_scale = self.output(hidden).chunk(2, dim=-1)
        return mean, log_scale.clamp(-7.0, 7.0)  # a scale of zero would make one lucky guess infinitely good


class Pooling(nn.Module):
    """Hidden states of a whole sequence -> one vector: the last, the mean, or a weighted mean that is learned.

    attention: weights = softmax(v . tanh(W h_t)) over the steps of a row (Yang et al. 2016)

    Where a body reads from both ends, each direction has its last step at its own end: "last" takes both ends.
    """

    def __init__(self, kind: str, model_dim: int, *, both_ends: bool = False):
        super().__init__()
        self.kind, self.both_ends = kind, both_ends and kind == "last"
        self.output_dim = 2 * model_dim if self.both_ends else model_dim
        if kind == "attention":
            self.project, self.query = nn.Linear(model_dim, model_dim), nn.Linear(model_dim, 1, bias=False)

    def forward(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        """(B, T, D), (B,) -> (B, output_dim)."""
        B, T, _ = hidden.shape
        if self.kind == "last":
            last = hidden[torch.arange(B, device=hidden.device), lengths - 1]
            return torch.cat([last, hidden[:, 0]], dim=-1) if self.both_ends else last
        is_step = torch.arange(T, device=hidden.device) < lengths.unsqueeze(1)  # (B, T)
        if self.kind == "mean":
            return (hidden * is_step.unsqueeze(-1)).sum(dim=1) / lengths.unsqueeze(1)
        scores = self.query(self.project(hidden).tanh()).squeeze(-1)  # (B, T)
        weights = scores.masked_fill(~is_step, float("-inf")).softmax(dim=1)
        return (weights.unsqueeze(1) @ hidden).squeeze(1)


class LabelHead(nn.Module):
    """One answer for a whole sequence: log p(label | sequence), or a number with an error of unit variance."""

    def __init__(self, model_dim: int, num_labels: int, *, pooling: str, both_ends: bool = False):
        super().__init__()
        self.num_labels = num_labels
        self.pooling = Pooling(pooling, model_dim, both_ends=both_ends)
        self.output = nn.Linear(self.pooling.output_dim, max(1, num_labels))
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        """(B, T, D) -> log p of each label (B, N), or the number (B, 1)."""
        answer = self.output(self.pooling(hidden, lengths))
        return answer.log_softmax(dim=-1) if self.num_labels else answer
