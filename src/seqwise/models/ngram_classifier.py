"""n-gram classifier: one n-gram model a label, and Bayes' rule: which label would have written this text?

McCallum & Nigam 1998 (order 1, multinomial naive Bayes); Peng & Schuurmans 2003 (longer grams, each smoothed in its own
model); Cavnar & Trenkle 1994 (grams of characters tell languages apart). With t_1 ... t_T the tokens of a text behind
the boundary that begins it, the boundary that ends it among them, and h_i the tokens before t_i, up to order - 1,

    p(t_i | h_i, k) = (1 - s) p_k(t_i | h_i) + s p_all(t_i | h_i),   s = background / (background + n_k)          (1)
    p(text | k)     = product over i of p(t_i | h_i, k)                                                           (2)
    p(k | text)     = prior(k) p(text | k)^(1/temperature) / sum over all labels of the same                      (3)

p_k is the n-gram model (ngram.py) of the training texts of label k, which have n_k tokens, and p_all that of all texts.
So a label with little text says little of its own, and one with none says what all say. prior(k) is the share of the
training texts that have label k, each label being counted once more.

In (2) each token speaks as if the ones before it had not said the same; answers are right more often than they are sure
for good reason. The temperature is the one with which validation texts are likeliest; 1 where there are none, which is
Bayes' rule.

Shapes: B batch, T steps, M rows, N labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..data.batch import Batch, Tokens
from ..data.pair_store import Rows
from ..data.schema import Schema, TokenSpec
from ..data.text_examples import TextStore
from ..errors import CheckpointError, ConfigError
from ..layers.stream import Prediction, log_prob_of
from .bag_of_ngrams import (
    Labelled,
    check_label_weights,
    check_labels,
    fit_temperature,
    label_field,
    orders_to_try,
    rows_of,
)
from .contract import State
from .ngram import Ngram, NgramConfig, Smoothing

BATCH_ROWS = 256  # scored at once


@dataclass(frozen=True)
class NgramClassifierConfig:
    order: int = 0
    """n: each token is predicted from the n-1 before it; 0 tries 1, 2, ... and keeps what validates best."""
    smoothing: Smoothing = "modified_kneser_ney"
    """How grams that a label's texts do not have get a probability; maximum_likelihood would rule labels out."""
    delta: float = 0.1
    """What add_delta adds to each count."""
    background: float = 100.0
    """How many tokens of a label weigh as much as the texts of all labels; 0 leaves each label to itself."""

    def __post_init__(self) -> None:
        if self.smoothing == "maximum_likelihood":
            raise ConfigError(
                'model.smoothing = "maximum_likelihood" rules out most texts, whatever the label; choose another.'
            )
        if not 0 <= self.background < float("inf"):
            raise ConfigError(f"model.background = {self.background} should be 0 or more.")
        self.of_each(self.order)

    def of_each(self, order: int) -> NgramConfig:
        """Of each n-gram model; texts are lines, over which no context reaches."""
        return NgramConfig(order=order, across_lines=False, smoothing=self.smoothing, delta=self.delta)


class NgramClassifier:
    """Counts from `fit`, probabilities by (3)."""

    context = None
    carries_state = continues = False

    def __init__(self, config: NgramClassifierConfig, schema: Schema):
        spec = schema.input("tokens", TokenSpec)
        self.config, self.schema, self.vocab_size, self.boundary = config, schema, spec.size, spec.boundary
        self.begin = spec.begin
        self.field, self.num_labels = label_field(schema)
        self.log_prior = np.full(self.num_labels, -math.log(self.num_labels))
        self.shares = np.zeros(self.num_labels)
        """s of (1), of each label."""
        self.order, self.temperature = max(1, config.order), 1.0
        """What was chosen."""
        self.all: Ngram | None = None
        self.models: dict[int, Ngram] = {}
        """By label; those without text have none."""

    # -- learning ------------------------------------------------------------------------------------------------

    def fit(
        self,
        rows: Rows,
        labels: np.ndarray,
        *,
        valid: Labelled | None = None,
        label_weights: np.ndarray | None = None,
    ) -> None:
        """Count rows of ids, each with a boundary before and behind it, by their labels (M,).

        `label_weights` (N,) multiply the prior: how much more a label counts than its share of the texts.
        """
        labels = check_labels(rows, labels, self.num_labels)
        weights = check_label_weights(label_weights, self.num_labels)
        counts = weights * (1 + np.bincount(labels, minlength=self.num_labels))
        self.log_prior = np.log(counts / counts.sum())
        texts = [self._text(rows, np.flatnonzero(labels == label)) for label in range(self.num_labels)]
        num_tokens = np.array([len(text) - 1 for text in texts])
        background = self.config.background
        self.shares = np.where(num_tokens > 0, background / np.maximum(1e-300, background + num_tokens), 1.0)
        texts.append(self._text(rows, np.arange(len(rows))))
        best = float("inf")
        for order in orders_to_try(self.config.order, has_valid=valid is not None):
            self._count(order, texts)
            loss = 0.0 if valid is None else self._heat(valid, weights)
            if loss >= best:
                break
            best, kept = loss, (order, self.temperature, self.all, self.models)
        self.order, self.temperature, self.all, self.models = kept

    def learn(self, train: TextStore, valid: TextStore, *, seed: int) -> None:
        """`fit` on rows as a task stores them; rows whose label training never had say nothing."""
        known, asked = (store.choose(np.flatnonzero(store.answers >= 0)) for store in (train, valid))
        self.fit(known.tokens, known.answers, valid=(asked.tokens, asked.answers))

    def _count(self, order: int, texts: list[np.ndarray]) -> None:
        """The texts of each label, and of all."""
        self.order, self.temperature = order, 1.0
        counted = {}
        for label, text in enumerate(texts):
            if len(text) > 1:
                counted[label] = self._empty()
                counted[label].fit(text)
        self.all = counted.pop(len(texts) - 1)
        self.models = counted

    def _heat(self, valid: Labelled, label_weights: np.ndarray) -> float:
        """The temperature with which validation texts are likeliest; -log p of these, in nats a text."""
        rows, labels = valid[0], check_labels(*valid, self.num_labels)
        log_likelihoods, costs = self._log_likelihoods(rows), label_weights[labels]
        self.temperature, loss = fit_temperature(log_likelihoods, labels, costs, offset=self.log_prior)
        return loss

    def _text(self, rows: Rows, chosen: np.ndarray) -> np.ndarray:
        """Some of the rows as lines of one text: the boundary, and each row without the one it begins with."""
        lines = [rows.ids[rows.edges[row] + 1 : rows.edges[row + 1]] for row in chosen]
        return np.concatenate([np.array([self.boundary], dtype=np.int32), *lines])

    def _empty(self) -> Ngram:
        return Ngram(self.config.of_each(self.order), self.schema)

    # -- the verbs -----------------------------------------------------------------------------------------------

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, None]:
        """log p of each row's label, (B, 1)."""
        wanted = batch.targets[self.field].ids.cpu()
        return log_prob_of(self.log_probs(batch.inputs["tokens"]), wanted).unsqueeze(1), None

    def predict(self, batch: Batch) -> Prediction:
        log_probs = self.log_probs(batch.inputs["tokens"])
        return Prediction(log_probs.argmax(dim=1), log_probs)

    def log_probs(self, tokens: Tokens) -> Tensor:
        """(3), (B, N), nats."""
        log_likelihoods = self._log_likelihoods(rows_of(tokens))
        return torch.from_numpy(self.log_prior + log_likelihoods / self.temperature).log_softmax(dim=1)

    def token_log_probs(self, tokens: Tokens) -> Tensor:
        """log of (1), of each token but the first under each label, (B, T-1, N), nats; 0 behind the end of a row.

        What a token says for one label and against another is the difference between the two.
        """
        is_there = torch.arange(tokens.shape[1]) < tokens.lengths.cpu().unsqueeze(1)
        ids = tokens.ids.cpu()
        ids = torch.where(is_there & (ids != self.begin), ids, self.boundary)  # as a line, whatever begins a row
        batch = Batch({"tokens": Tokens(ids[:, :-1])}, {"tokens": Tokens(ids[:, 1:])})
        assert self.all is not None
        of_all = self.all.score(batch)[0]  # (B, T-1)
        result = of_all.unsqueeze(2).repeat(1, 1, self.num_labels)
        with np.errstate(divide="ignore"):
            log_shares, log_rests = torch.from_numpy(np.log(self.shares)), torch.from_numpy(np.log1p(-self.shares))
        for label, model in self.models.items():
            own = model.score(batch)[0]
            result[:, :, label] = torch.logaddexp(log_rests[label] + own, log_shares[label] + of_all)  # (1)
        return result * is_there[:, 1:].unsqueeze(2)

    def _log_likelihoods(self, rows: Rows) -> np.ndarray:
        """log of (2), (M, N): rows of about one length at a time."""
        result, order = np.zeros((len(rows), self.num_labels)), np.argsort(rows.lengths, kind="stable")
        for start in range(0, len(rows), BATCH_ROWS):
            chosen = order[start : start + BATCH_ROWS]
            result[chosen] = self.token_log_probs(rows.padded(chosen)).sum(dim=1).numpy()
        return result

    # -- the run folder ------------------------------------------------------------------------------------------

    @property
    def num_parameters(self) -> int:
        models = [*self.models.values(), *([self.all] if self.all else [])]
        return self.num_labels + sum(model.num_parameters for model in models)

    def state_dict(self) -> dict[str, Tensor]:
        saved = {
            "log_prior": torch.from_numpy(self.log_prior),
            "shares": torch.from_numpy(self.shares),
            "chosen": torch.tensor([self.order, self.temperature], dtype=torch.float64),
            "labels": torch.tensor(sorted(self.models), dtype=torch.int64),
        }
        named = {f"label{label}": model for label, model in self.models.items()}
        for name, model in (named | ({"all": self.all} if self.all else {})).items():
            saved |= {f"{name}.{part}": tensor for part, tensor in model.state_dict().items()}
        return saved

    def load_state_dict(self, saved: dict[str, Tensor]) -> None:
        for name in ("log_prior", "shares", "chosen", "labels"):
            if name not in saved:
                raise CheckpointError(f'the n-gram classifier lacks "{name}"; its file is damaged.')
        log_prior, shares = (saved[name].cpu().numpy() for name in ("log_prior", "shares"))
        labels, chosen = saved["labels"].tolist(), saved["chosen"].tolist()
        is_sound = log_prior.shape == shares.shape == (self.num_labels,) and np.isfinite(log_prior).all()
        is_sound = is_sound and (shares >= 0).all() and (shares <= 1).all() and len(chosen) == 2
        if not is_sound or min(chosen) <= 0 or not all(0 <= label < self.num_labels for label in labels):
            raise CheckpointError(f"the n-gram classifier is damaged, or was not trained for {self.num_labels} labels.")
        self.order, self.temperature = int(chosen[0]), chosen[1]
        models = {name: self._loaded(saved, name) for name in ("all", *(f"label{label}" for label in labels))}
        self.log_prior, self.shares = log_prior, shares
        self.all, self.models = models["all"], {label: models[f"label{label}"] for label in labels}

    def _loaded(self, saved: dict[str, Tensor], name: str) -> Ngram:
        model, start = self._empty(), f"{name}."
        model.load_state_dict({part.removeprefix(start): t for part, t in saved.items() if part.startswith(start)})
        return model
