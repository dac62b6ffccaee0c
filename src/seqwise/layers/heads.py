"""Heads: what is read off the hidden states of a body.

    score(stream, wanted)   how probable is each target? nats, (B, T), or (B, 1) where a row has one
    objective(stream, wanted)  what training raises: the score, where some answers do not weigh more
    predict(stream, wanted) the answer to each row                          heads that answer
    expect(hidden)          what comes next: log-probabilities, or a distribution    heads that continue
    read(what, …)           what was just said, as the next step that a body reads   heads that continue

Shapes: B batch, T steps, D model width, V vocabulary, C columns, N labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.distributions import Independent, Normal
from torch.nn import functional

from ..data.batch import Labels, LabelSets, Tags, Tokens, Values
from ..errors import ConfigError
from .crf import LinearChainCRF
from .feed_forward import ACTIVATIONS
from .fused_likelihood import fused_loss
from .notes import note
from .products import Linear
from .stream import Prediction, Stream, log_prob_of, only_scored

LOG_TWO_PI = math.log(2 * math.pi)


class NextTokenHead(nn.Module):
    """log p(token | hidden) = log softmax(W hidden), or of W hidden + b. Tied: W is the embedding table (Press & Wolf
    2017)."""

    continues = True

    def __init__(self, model_dim: int, vocab_size: int, *, tied_to: nn.Embedding | None = None, bias: bool = False):
        super().__init__()
        self.output = Linear(model_dim, vocab_size, bias=bias)
        if bias:
            nn.init.zeros_(self.output.bias)
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
        return fused_loss(hidden, self.output.weight, targets, smoothing, self.output.bias)

    @only_scored
    def score(self, stream: Stream, wanted: Tokens) -> Tensor:
        """log p of each target: (B, T, D), (B, T) -> (B, T), nats."""
        logits, ids = self.output(stream.hidden), wanted.ids
        return -functional.cross_entropy(logits.flatten(0, 1), ids.flatten(), reduction="none").view_as(ids)

    objective = score


class MaskedTokenHead(nn.Module):
    """log p(token at a hidden place) = log softmax(table norm(f(W hidden + b)) + c), by the table of embeddings."""

    continues = False

    def __init__(self, model_dim: int, tied_to: nn.Embedding, *, activation: str = "gelu", epsilon: float = 1e-12):
        super().__init__()
        vocab_size, embed_dim = tied_to.weight.shape
        self.activation = ACTIVATIONS[activation]
        self.transform, self.norm = Linear(model_dim, embed_dim), nn.LayerNorm(embed_dim, eps=epsilon)
        nn.init.normal_(self.transform.weight, std=0.02)
        nn.init.zeros_(self.transform.bias)
        self.output = Linear(embed_dim, vocab_size)
        self.output.weight = tied_to.weight
        nn.init.zeros_(self.output.bias)

    def logits(self, hidden: Tensor) -> Tensor:
        """(..., D) -> (..., V)."""
        return self.output(self.norm(self.activation(self.transform(hidden))))

    @only_scored
    def score(self, stream: Stream, wanted: Tokens) -> Tensor:
        """log p of each hidden token: (B, T, D), (B, T) -> (B, T), nats."""
        logits, ids = self.logits(stream.hidden), wanted.ids
        return -functional.cross_entropy(logits.flatten(0, 1), ids.flatten(), reduction="none").view_as(ids)

    objective = score

    def predict(self, stream: Stream, wanted: object = None) -> Prediction:
        """The most probable token of every place, hidden or not."""
        log_probs = self.logits(stream.hidden).log_softmax(dim=-1)
        return Prediction(log_probs.argmax(dim=-1), log_probs)


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

    objective = score

    def _mean_and_log_scale(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_scale = self.output(hidden).chunk(2, dim=-1)
        return mean, log_scale.clamp(-7.0, 7.0)  # a scale of zero would make one lucky guess infinitely good


class Pooling(nn.Module):
    """Hidden states of a whole sequence -> one vector: the last, the mean, the highest of each number, or a weighted
    mean that is learned.

    attention: weights = softmax(v . tanh(W h_t)) over the steps of a row (Yang et al. 2016)

    concat: the last, the highest of each number and the mean side by side (Howard & Ruder 2018)

    first: the first step, or what the body makes of it (Devlin et al. 2019)

    Where a body reads from both ends, each direction has its last step at its own end: "last" takes both ends.
    """

    def __init__(self, kind: str, model_dim: int, *, both_ends: bool = False):
        super().__init__()
        self.kind, self.both_ends = kind, both_ends and kind in ("last", "concat")
        self.output_dim = model_dim * (1 + self.both_ends + 2 * (kind == "concat"))
        if kind == "attention":
            self.project, self.query = nn.Linear(model_dim, model_dim), nn.Linear(model_dim, 1, bias=False)

    def of(self, stream: Stream) -> Tensor:
        """(B, T, D) -> (B, output_dim)."""
        if self.kind == "first" and stream.pooled is not None:
            return stream.pooled
        return self(stream.hidden, stream.lengths)

    def forward(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        """(B, T, D), (B,) -> (B, output_dim)."""
        if self.kind == "first":
            return hidden[:, 0]
        if self.kind == "last":
            return self._last(hidden, lengths)
        is_step = torch.arange(hidden.shape[1], device=hidden.device) < lengths.unsqueeze(1)  # (B, T)
        if self.kind == "mean":
            return self._mean(hidden, is_step, lengths)
        if self.kind == "max":
            return self._highest(hidden, is_step)
        if self.kind == "concat":
            parts = self._last(hidden, lengths), self._highest(hidden, is_step), self._mean(hidden, is_step, lengths)
            return torch.cat(parts, dim=-1)
        scores = self.query(self.project(hidden).tanh()).squeeze(-1)  # (B, T)
        weights = scores.masked_fill(~is_step, float("-inf")).softmax(dim=1)
        note(self, "pooling", weights)
        return (weights.unsqueeze(1) @ hidden).squeeze(1)

    def _last(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        last = hidden[torch.arange(len(hidden), device=hidden.device), lengths - 1]
        return torch.cat([last, hidden[:, 0]], dim=-1) if self.both_ends else last

    def _mean(self, hidden: Tensor, is_step: Tensor, lengths: Tensor) -> Tensor:
        return (hidden * is_step.unsqueeze(-1)).sum(dim=1) / lengths.unsqueeze(1)

    def _highest(self, hidden: Tensor, is_step: Tensor) -> Tensor:
        return hidden.masked_fill(~is_step.unsqueeze(-1), float("-inf")).amax(dim=1)


class LabelHead(nn.Module):
    """log p(label | sequence) = log softmax(W pooled + b)."""

    continues = False
    weights: Tensor | None

    def __init__(
        self,
        pooling: Pooling,
        num_labels: int,
        *,
        weights: Sequence[float] | None = None,
        smoothing: float = 0.0,
        threshold: float = 0.5,
        rarer: int = 1,
    ):
        """`weights` of the labels in the objective, `smoothing` the share of it that asks for all alike; of two labels
        the `rarer` one is the answer from `threshold` on."""
        super().__init__()
        self.smoothing = smoothing
        self.pooling, self.threshold, self.rarer = pooling, threshold, rarer
        self.output = zero_linear(pooling.output_dim, num_labels)
        self.register_buffer("weights", None if weights is None else torch.tensor(weights), persistent=False)

    def log_probs(self, stream: Stream) -> Tensor:
        """(B, T, D) -> (B, N), nats."""
        return self.output(self.pooling.of(stream)).log_softmax(dim=-1)

    def score(self, stream: Stream, wanted: Labels) -> Tensor:
        """log p of each row's label, (B, 1); of one that is not known (-1), minus infinity."""
        return log_prob_of(self.log_probs(stream), wanted.ids).unsqueeze(1)

    def objective(self, stream: Stream, wanted: Labels) -> Tensor:
        """The same, each label as much as it weighs, and part of it for every label alike."""
        if self.smoothing:
            every = self.log_probs(stream)
            log_probs = (1 - self.smoothing) * log_prob_of(every, wanted.ids) + self.smoothing * every.mean(dim=1)
            log_probs = log_probs.unsqueeze(1)
        else:
            log_probs = self.score(stream, wanted)
        return log_probs if self.weights is None else log_probs * self.weights[wanted.ids].unsqueeze(1)

    def predict(self, stream: Stream, wanted: object = None) -> Prediction:
        return self.answer(self.log_probs(stream))

    def answer(self, log_probs: Tensor) -> Prediction:
        """Of (B, N), nats."""
        if log_probs.shape[1] == 2 and self.threshold != 0.5:
            is_rarer = log_probs[:, self.rarer] >= math.log(self.threshold)
            return Prediction(torch.where(is_rarer, self.rarer, 1 - self.rarer), log_probs)
        return Prediction(log_probs.argmax(dim=1), log_probs)


class LabelSetHead(nn.Module):
    """p(label n is right | sequence) = sigmoid(W pooled + b)_n, for each label by itself."""

    continues = False

    def __init__(self, pooling: Pooling, num_labels: int, *, threshold: float = 0.5):
        super().__init__()
        self.pooling, self.threshold = pooling, threshold
        self.output = zero_linear(pooling.output_dim, num_labels)

    def logits(self, stream: Stream) -> Tensor:
        """(B, T, D) -> (B, N)."""
        return self.output(self.pooling.of(stream))

    def score(self, stream: Stream, wanted: LabelSets) -> Tensor:
        """log p of all that is right and of all that is wrong in each row, (B, 1)."""
        logits = self.logits(stream)
        signed = torch.where(wanted.is_right, logits, -logits)
        return functional.logsigmoid(signed).sum(dim=1, keepdim=True)

    objective = score

    def predict(self, stream: Stream, wanted: object = None) -> Prediction:
        """Answers (B, N) bool; log_probs that each is right."""
        log_probs = functional.logsigmoid(self.logits(stream))
        return Prediction(log_probs >= math.log(self.threshold), log_probs)


class NumberHead(nn.Module):
    """A number for a whole sequence, W pooled + b, with an error of unit variance."""

    continues = False

    def __init__(self, pooling: Pooling):
        super().__init__()
        self.pooling = pooling
        self.output = zero_linear(pooling.output_dim, 1)

    def number(self, stream: Stream) -> Tensor:
        """(B, T, D) -> (B, 1)."""
        return self.output(self.pooling.of(stream))

    def score(self, stream: Stream, wanted: Values) -> Tensor:
        """log density of each row's number, (B, 1)."""
        return -0.5 * (self.number(stream) - wanted.values[:, 0]) ** 2 - 0.5 * LOG_TWO_PI

    objective = score

    def predict(self, stream: Stream, wanted: object = None) -> Prediction:
        return Prediction(self.number(stream)[:, 0])


class VectorHead(nn.Module):
    """A vector for a whole sequence: its pooled hidden states, brought to length one where that is asked for.

    It has no weights, and nothing that an answer could be judged by.
    """

    continues = False

    def __init__(self, pooling: Pooling, *, is_normalised: bool = False):
        super().__init__()
        self.pooling, self.is_normalised = pooling, is_normalised

    def predict(self, stream: Stream, wanted: object = None) -> Prediction:
        """Answers (B, output_dim)."""
        found = self.pooling(stream.hidden, stream.lengths)
        return Prediction(functional.normalize(found, dim=-1) if self.is_normalised else found)

    def score(self, stream: Stream, wanted: object) -> Tensor:
        raise ConfigError("a vector of a text is not right or wrong: this model has no answers to be judged by.")

    objective = score


class TagHead(nn.Module):
    """log p(tag of a word | sequence) = log softmax(W hidden + b), read where the first piece of the word stands."""

    continues = False

    def __init__(self, model_dim: int, num_tags: int):
        super().__init__()
        self.output = zero_linear(model_dim, num_tags)

    def logits(self, stream: Stream, words: Tags) -> Tensor:
        """(B, T, D), the steps of the words (B, W) -> (B, W, N)."""
        steps = words.steps.unsqueeze(-1).expand(-1, -1, stream.hidden.shape[-1])
        return self.output(stream.hidden.gather(1, steps))

    def score(self, stream: Stream, wanted: Tags) -> Tensor:
        """log p of each word's tag, (B, W); of one that is not known (-1), minus infinity."""
        return log_prob_of(self.logits(stream, wanted).log_softmax(dim=-1), wanted.ids)

    objective = score

    def predict(self, stream: Stream, wanted: Tags) -> Prediction:
        """Of the words of `wanted`, whose own tags are not looked at."""
        log_probs = self.logits(stream, wanted).log_softmax(dim=-1)
        return Prediction(log_probs.argmax(dim=-1), log_probs)


class CRFTagHead(TagHead):
    """log p(all tags of a row | sequence), by a linear-chain CRF over the same logits (layers/crf.py)."""

    def __init__(self, model_dim: int, crf: LinearChainCRF, num_tags: int):
        super().__init__(model_dim, num_tags)
        self.crf = crf

    def score(self, stream: Stream, wanted: Tags) -> Tensor:
        """log p of the tags of each row together, (B, 1); with one that is not known, minus infinity."""
        is_word = torch.ones_like(wanted.ids, dtype=torch.bool) if wanted.is_word is None else wanted.is_word
        has_unknown = ((wanted.ids < 0) & is_word).any(dim=1, keepdim=True)
        found = self.crf.log_prob(self.logits(stream, wanted), wanted.ids.clamp(min=0), is_word).unsqueeze(1)
        return found.masked_fill(has_unknown, float("-inf"))

    objective = score

    def predict(self, stream: Stream, wanted: Tags) -> Prediction:
        """The best tags of each row together; log_probs of each word's tags whatever the others are."""
        logits = self.logits(stream, wanted)
        return Prediction(self.crf.best_path(logits, wanted.is_word)[0], self.crf.log_marginals(logits, wanted.is_word))


def zero_linear(input_dim: int, output_dim: int) -> nn.Linear:
    """A layer that says the same of everything at the start."""
    layer = nn.Linear(input_dim, output_dim)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
