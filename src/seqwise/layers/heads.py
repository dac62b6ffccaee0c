"""Heads: what is read off the hidden states of a body.

    score(stream, wanted)   how probable is each target? nats, (B, T), or (B, 1) where a row has one
    predict(stream)         the answer to each row                          heads that answer
    expect(hidden)          what comes next: log-probabilities, or a distribution    heads that continue
    read(what, …)           what was just said, as the next step that a body reads   heads that continue

Shapes: B batch, T steps, D model width, V vocabulary, C columns, N labels.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.distributions import Independent, Normal
from torch.nn import functional

from ..data.batch import Labels, Tokens, Values
from .fused_likelihood import fused_loss
from .stream import Prediction, Stream

LOG_TWO_PI = math.log(2 * math.pi)


class NextTokenHead(nn.Module):
    """log p(token | hidden) = log softmax(W hidden). Tied: W is the embedding table (Press & Wolf 2017)."""

    continues = True

    def __init__(self, model_dim: int, vocab_size: int, *, tied_to: nn.Embedding | None = None):
        super().__init__()
        self.output = nn.Linear(model_dim, vocab_size, bias=False)
        if tied_to is None:
            nn.init.zeros_(self.output.weight)  # every token is as likely as the next at the start
        else:
            self.output.weight = tied_to.weight

    def expect(self, hidden: Tensor) -> Tensor:
        """(..., D) -> (..., V), nats."""
        return functional.log_softmax(self.output(hidden), dim=-1)

    def read(self, tokens: Tensor) -> Tokens:
        """(B,) -> one step."""
        return Tokens(tokens.unsqueeze(1))

    def loss(self, hidden: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """-log p of the targets together, part of it asking for every token alike: (N, D), (N,) -> (), nats."""
        return fused_loss(hidden, self.output.weight, targets, smoothing)

    def score(self, stream: Stream, wanted: Tokens) -> Tensor:
        """log p of each target: (B, T, D), (B, T) -> (B, T), nats."""
        logits, ids = self.output(stream.hidden), wanted.ids
        return -functional.cross_entropy(logits.flatten(0, 1), ids.flatten(), reduction="none").view_as(ids)


class GaussianHead(nn.Module):
    """p(values | hidden): each column normal, with a mean and a scale of its own."""

    continues = True

    def __init__(self, model_dim: int, num_columns: int):
        super().__init__()
        self.output = zero_linear(model_dim, 2 * num_columns)  # values have mean zero and variance one: so say it

    def expect(self, hidden: Tensor) -> Independent:
        """Of the C values together: (..., D) -> batch shape (...), event shape (C,)."""
        mean, log_scale = self._mean_and_log_scale(hidden)
        return Independent(Normal(mean, log_scale.exp()), 1)

    def read(self, values: Tensor, is_observed: Tensor | None = None) -> Values:
        """(B, C) -> one step."""
        return Values(values.unsqueeze(1), None if is_observed is None else is_observed.unsqueeze(1))

    def score(self, stream: Stream, wanted: Values) -> Tensor:
        """log density of the values that are there: (B, T, D), (B, T, C) -> (B, T), nats."""
        mean, log_scale = self._mean_and_log_scale(stream.hidden)
        log_density = -0.5 * ((wanted.values - mean) / log_scale.exp()) ** 2 - log_scale - 0.5 * LOG_TWO_PI
        if wanted.is_observed is not None:
            log_density = log_density.masked_fill(~wanted.is_observed, 0.0)
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
    """log p(label | sequence) = log softmax(W pooled + b)."""

    continues = False

    def __init__(self, model_dim: int, num_labels: int, *, pooling: str, both_ends: bool = False):
        super().__init__()
        self.pooling = Pooling(pooling, model_dim, both_ends=both_ends)
        self.output = zero_linear(self.pooling.output_dim, num_labels)

    def log_probs(self, stream: Stream) -> Tensor:
        """(B, T, D) -> (B, N), nats."""
        return self.output(self.pooling(stream.hidden, stream.lengths)).log_softmax(dim=-1)

    def score(self, stream: Stream, wanted: Labels) -> Tensor:
        """log p of each row's label, (B, 1)."""
        return self.log_probs(stream).gather(1, wanted.ids.unsqueeze(1))

    def predict(self, stream: Stream) -> Prediction:
        log_probs = self.log_probs(stream)
        return Prediction(log_probs.argmax(dim=1), log_probs)


class NumberHead(nn.Module):
    """A number for a whole sequence, W pooled + b, with an error of unit variance."""

    continues = False

    def __init__(self, model_dim: int, *, pooling: str, both_ends: bool = False):
        super().__init__()
        self.pooling = Pooling(pooling, model_dim, both_ends=both_ends)
        self.output = zero_linear(self.pooling.output_dim, 1)

    def number(self, stream: Stream) -> Tensor:
        """(B, T, D) -> (B, 1)."""
        return self.output(self.pooling(stream.hidden, stream.lengths))

    def score(self, stream: Stream, wanted: Values) -> Tensor:
        """log density of each row's number, (B, 1)."""
        return -0.5 * (self.number(stream) - wanted.values[:, 0]) ** 2 - 0.5 * LOG_TWO_PI

    def predict(self, stream: Stream) -> Prediction:
        return Prediction(self.number(stream)[:, 0])


def zero_linear(input_dim: int, output_dim: int) -> nn.Linear:
    """A layer that says the same of everything at the start."""
    layer = nn.Linear(input_dim, output_dim)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
