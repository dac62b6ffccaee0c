"""Bag of n-grams: which grams a text has, in no order, and what each says for or against each label.

Wang & Manning 2012 (NBSVM): naive Bayes tells how much a gram can say, a linear classifier how much of that is needed.
Fixes in one n-gram model a label (ngram_classifier.py): grams that overlap are not counted as independent evidence.

    f_g(x)   = 1 where the text x has the gram g of up to `order` tokens, else 0. Of two texts: three kinds of grams,
               only in the first, only in the second, or in both; and for each length and each text the tenths of its
               grams that the other text has too, up to the share there is                                         (1)
    r(k, g)  = log [ (alpha + n(k, g)) / sum over g' of (alpha + n(k, g')) ]
             - log [ (alpha + n(not k, g)) / sum over g' of (alpha + n(not k, g')) ],
               n(k, g): how many training texts of the label k, or of all others, have g                           (2)
    logit_k  = log prior(k) + b_k + sum over g of f_g(x) w(k, g),   w(k, g) = r(k, g) u(k, g)                      (3)
    p(k | x) = softmax(logits)_k                                                                                   (4)

The ratio of two labels is that of the paper: r(0, g) = - r(1, g). With more labels each has its own against all others,
as in the one-against-rest of Rennie et al. 2003, so that what is typical of one label is judged by that label alone;
all are learned together, so that (4) are probabilities. Learning finds the lowest

    P = sum over texts i of -c_i log p(y_i | x_i) + strength / 2 (sum of u^2 + sum of b^2),  c_i the weight of y_i (5)

by dual coordinate ascent (Yu, Huang & Lin 2011; Shalev-Shwartz & Zhang 2013). Each text has a distribution a_i over
labels, at first all on its own, and u and b follow from these:

    u(k, g)  = r(k, g) / strength * sum over i of c_i ([y_i = k] - a_ik) f_g(x_i),   and b with r = f = 1
    D        = sum over i of c_i entropy(a_i) - strength / 2 (sum of u^2 + sum of b^2)  rises with each step:
               a_i moves towards p(. | x_i) as far as D rises                                                      (6)
    P - D    = sum over i of c_i KL(a_i || p(. | x_i))  is how much P can fall at most: where to stop              (7)

A few passes are enough. Of several strengths the one is kept that validates best. Then all logits are divided by the
temperature with which validation texts are likeliest (Guo et al. 2017): it changes no answer, but makes probabilities
honest.

Grams are known by 64-bit mixes of their tokens: that two of ten million are alike by
chance happens in one of 400,000 vocabularies.

Shapes: B batch, T steps, M rows, F grams in the vocabulary, N labels, G occurrences of grams in a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..data.batch import Batch, Tokens
from ..data.pair_store import Rows
from ..data.schema import LabelSpec, Schema, TokenSpec
from ..data.text_examples import TextStore
from ..errors import CheckpointError, ConfigError, DataError
from ..kernels.gram_bag import (
    FREE,
    ascend,
    count_by_label,
    distinct_grams,
    fill_index,
    find_grams,
    row_grams,
    sum_weights,
)
from ..layers.stream import Prediction, log_prob_of
from ..machine import check_memory
from .contract import State, check_tokens

STRENGTHS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)  # tried, from strong to weak
USUAL_STRENGTH = 1.0  # where there is nothing to validate on
MAX_WORSE = 2  # strengths in a row that validate no better: weaker ones are not tried
MAX_PASSES = 30  # where the pull is so weak that more are needed, validation is past its best
TOLERANCE = 1e-4  # nats a text by which the objective may be above the lowest
MAX_SINGLE_GRAMS = 1_000_000  # from here on, those that one text alone has are left out
MAX_ORDER = 20
MAX_TRIED_ORDER, USUAL_ORDER = 6, 3  # where the order is not told; the latter where there is nothing to validate on
GOLDEN = (math.sqrt(5) - 1) / 2
WIDEST, TEMPERATURE_STEPS = 5.0, 32  # of the search for the log of the temperature

Labelled = tuple[Rows, np.ndarray]
"""Rows of ids, and their labels (M,)."""


@dataclass(frozen=True)
class BagConfig:
    order: int = 3
    """Tokens in the longest grams; 0 tries 1, 2, ... and keeps what validates best."""
    min_count: int = 0
    """Grams that fewer training texts have are left out; 0 is 1, or 2 where more than a million grams would be kept."""
    strength: float = 0.0
    """Pull of the weights towards zero; 0 tries several and keeps what validates best."""
    alpha: float = 0.5
    """What is added to each count in the ratios of naive Bayes: the more, the less is made of rare grams."""

    def __post_init__(self) -> None:
        if not 0 <= self.order <= MAX_ORDER:
            raise ConfigError(f"model.order = {self.order} should lie between 1 and {MAX_ORDER}, or be 0 to choose it.")
        if self.min_count < 0:
            raise ConfigError(f"model.min_count = {self.min_count} should be at least 1, or 0 to choose it by rule.")
        if not 0 <= self.strength < float("inf"):
            raise ConfigError(f"model.strength = {self.strength} should be above 0, or 0 to choose it by validation.")
        if not 0 < self.alpha < float("inf"):
            raise ConfigError(f"model.alpha = {self.alpha} should be above 0.")


class BagOfNgrams:
    """Weights from `fit`, probabilities by (4)."""

    context = None
    carries_state = continues = False

    def __init__(self, config: BagConfig, schema: Schema):
        self.config, self.vocab_size = config, schema.input("tokens", TokenSpec).size
        self.field, self.num_labels = label_field(schema)
        self.separator = schema.input("tokens", TokenSpec).separator
        self.num_texts = 1
        self.order, self.strength, self.temperature = max(1, config.order), 1.0, 1.0
        """What was chosen; logits were divided by the temperature."""
        none = np.zeros((0, self.num_labels), dtype=np.float32)
        self._set(np.zeros(0, dtype=np.uint64), none, np.zeros(self.num_labels))

    # -- learning ------------------------------------------------------------------------------------------------

    def fit(
        self,
        rows: Rows,
        labels: np.ndarray,
        *,
        separator: int | None = None,
        num_texts: int = 1,
        valid: Labelled | None = None,
        label_weights: np.ndarray | None = None,
        seed: int = 0,
    ) -> None:
        """Learn from rows of ids and their labels (M,).

        `separator` stands before, between and behind texts; where not told, it is that of the rows. With
        `num_texts=2` what stands behind the second separator is another text. `label_weights` (N,) are the c of (5).
        `seed` tells in which order texts are visited.
        """
        self.separator = self.separator if separator is None else separator
        self.num_texts = num_texts
        labels = check_labels(rows, labels, self.num_labels)
        weights = check_label_weights(label_weights, self.num_labels)
        best = float("inf")
        for order in orders_to_try(self.config.order, has_valid=valid is not None):
            found = self._learn(order, rows, labels, weights, valid, np.random.default_rng(seed))
            if found.loss >= best:
                break
            best, kept = found.loss, found
        self.order, self.strength, self.temperature = kept.order, kept.strength, kept.temperature
        self._set(kept.vocabulary, kept.weights, kept.bias)

    def _learn(
        self,
        order: int,
        rows: Rows,
        labels: np.ndarray,
        label_weights: np.ndarray,
        valid: Labelled | None,
        random: np.random.Generator,
    ) -> _Learned:
        """All of learning, with grams of up to this order."""
        self.order = order
        keys, edges = self._grams(rows)
        self._set(self._choose(keys), self.weights[:0], self.bias)
        columns, edges = find_grams(keys, edges, self._vocabulary, self._index)
        del keys
        ratios, prior = self._ratios(columns, edges, labels), self._log_prior(labels, label_weights)
        problem = _Problem(columns, edges, labels, label_weights[labels], prior, ratios)
        if valid is None:
            problem.solve(self.config.strength or USUAL_STRENGTH, random)
            return problem.learned(order, self._vocabulary, temperature=1.0, loss=0.0)
        return self._search(problem, valid, label_weights, random)

    def learn(self, train: TextStore, valid: TextStore, *, seed: int) -> None:
        """`fit` on rows as a task stores them; rows whose label training never had say nothing."""
        known, asked = (store.choose(np.flatnonzero(store.answers >= 0)) for store in (train, valid))
        num_texts = 1 if train.segments is None else 2
        self.fit(known.tokens, known.answers, num_texts=num_texts, valid=(asked.tokens, asked.answers), seed=seed)

    def _grams(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """(1): the keys of the distinct grams of all rows, and where each row begins among them, (M+1,)."""
        check_tokens(rows.ids, self.vocab_size)
        check_memory(
            24 * self.order * len(rows.ids),
            f"all grams of up to {self.order} tokens in {len(rows):,} texts",
            "Lower model.order, or learn from fewer texts.",
        )
        edges = np.asarray(rows.edges, dtype=np.int64)
        return distinct_grams(rows.ids, edges, self.order, self.separator, self.num_texts)

    def _choose(self, keys: np.ndarray) -> np.ndarray:
        """The vocabulary (F,), sorted: keys of the grams that enough rows have."""
        keys = np.sort(keys)
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, int)
        counts = np.diff(np.append(first, len(keys)))
        min_count = self.config.min_count or (2 if len(first) > MAX_SINGLE_GRAMS else 1)
        found = keys[first[counts >= min_count]]
        check_memory(
            8 * 6 * len(found) * self.num_labels,
            f"{len(found):,} grams with a weight for each of {self.num_labels} labels",
            "Raise model.min_count, or lower model.order.",
        )
        return found

    def _log_prior(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(N,), each label counted once more than it is there: one that is not there can still be the answer."""
        counts = weights * (1 + np.bincount(labels, minlength=self.num_labels))
        return np.log(counts / counts.sum())

    def _ratios(self, columns: np.ndarray, edges: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(2), (F, N)."""
        counts = np.zeros((len(self._vocabulary), self.num_labels))
        count_by_label(columns, edges, labels, counts)
        others = counts.sum(axis=1, keepdims=True) - counts + self.config.alpha
        counts += self.config.alpha
        return np.log(counts / others) - np.log(counts.sum(axis=0) / others.sum(axis=0))

    def _search(
        self, problem: _Problem, valid: Labelled, label_weights: np.ndarray, random: np.random.Generator
    ) -> _Learned:
        """With the strength that validates best, at the best temperature."""
        rows, labels = valid[0], check_labels(*valid, self.num_labels)
        columns, edges = find_grams(*self._grams(rows), self._vocabulary, self._index)
        best, num_worse = None, 0
        for strength in [self.config.strength] if self.config.strength else STRENGTHS:
            problem.solve(strength, random)
            logits = np.tile(problem.bias, (len(rows), 1))
            sum_weights(columns, edges, problem.weights, logits)
            temperature, loss = fit_temperature(logits, labels, label_weights[labels])
            if best is None or loss < best.loss:
                best, num_worse = problem.learned(self.order, self._vocabulary, temperature=temperature, loss=loss), 0
            else:
                num_worse += 1
            if num_worse == MAX_WORSE:
                break
        assert best is not None
        return best

    # -- the verbs -----------------------------------------------------------------------------------------------

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, None]:
        """log p of each row's label, (B, 1)."""
        wanted = batch.targets[self.field].ids.cpu()
        return log_prob_of(self.log_probs(batch.inputs["tokens"]), wanted).unsqueeze(1), None

    def predict(self, batch: Batch) -> Prediction:
        log_probs = self.log_probs(batch.inputs["tokens"])
        return Prediction(log_probs.argmax(dim=1), log_probs)

    def log_probs(self, tokens: Tokens) -> Tensor:
        """(4), (B, N), nats."""
        columns, edges = find_grams(*self._grams(rows_of(tokens)), self._vocabulary, self._index)
        logits = np.tile(self.bias, (tokens.shape[0], 1))
        sum_weights(columns, edges, self.weights, logits)  # (3)
        return torch.from_numpy(logits).log_softmax(dim=1)

    def weights_of(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What each gram of a row of ids (T,) adds to each logit: where it begins and ends (G, 2), weights (G, N).

        All weights and `bias` together are the logits. A gram that occurs several times counts once: each occurrence
        has its part. What two texts share is said of the whole row, from 0 to T.
        """
        row = np.asarray(tokens, dtype=np.int32)
        keys = self._grams(Rows(row, np.array([0, len(row)])))[0]
        starts, lengths, texts = np.zeros((3, self.order * len(row)), dtype=np.int64)
        raw = np.zeros(len(starts), dtype=np.uint64)
        num_grams = row_grams(row, self.order, self.separator, self.num_texts, starts, lengths, texts, raw)
        _, first, which, counts = np.unique(raw[:num_grams], return_index=True, return_inverse=True, return_counts=True)
        by_first = np.argsort(np.argsort(first))  # keys are in the order in which grams first occur
        spans = np.stack([starts, starts + lengths], axis=1)[:num_grams]
        each = self._weights_at(keys[by_first[which]]) / counts[which][:, None]
        whole = self._weights_at(keys[len(first) :]).sum(axis=0, keepdims=True)  # tenths that are shared
        if self.num_texts == 1:
            return spans, each
        return np.concatenate([spans, [[0, len(row)]]]), np.concatenate([each, whole])

    def _weights_at(self, keys: np.ndarray) -> np.ndarray:
        """(G, N); zero for grams that the vocabulary does not have."""
        if not len(self._vocabulary):
            return np.zeros((len(keys), self.num_labels))
        places = np.minimum(np.searchsorted(self._vocabulary, keys), len(self._vocabulary) - 1)
        return np.where((self._vocabulary[places] == keys)[:, None], self.weights[places].astype(np.float64), 0.0)

    # -- the run folder ------------------------------------------------------------------------------------------

    @property
    def num_parameters(self) -> int:
        return self.weights.size + self.bias.size

    def _set(self, vocabulary: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> None:
        self._vocabulary, self.weights, self.bias = vocabulary, weights, bias
        self._index = np.full(1 << int(2 * len(vocabulary)).bit_length(), FREE, dtype=np.int32)  # at most half is full
        fill_index(self._index, vocabulary)

    def state_dict(self) -> dict[str, Tensor]:
        return {
            "vocabulary": torch.from_numpy(self._vocabulary.view(np.int64)),
            "weights": torch.from_numpy(self.weights),
            "bias": torch.from_numpy(self.bias),
            "texts": torch.tensor([self.num_texts, self.separator, self.order]),
            "chosen": torch.tensor([self.strength, self.temperature], dtype=torch.float64),
        }

    def load_state_dict(self, saved: dict[str, Tensor]) -> None:
        try:
            vocabulary, weights, bias = (saved[name].cpu().numpy() for name in ("vocabulary", "weights", "bias"))
            (num_texts, separator, order), (strength, temperature) = saved["texts"].tolist(), saved["chosen"].tolist()
        except (KeyError, ValueError) as error:
            raise CheckpointError(f"the bag of n-grams lacks {error}; its file is damaged.") from None
        vocabulary, expected = vocabulary.view(np.uint64), (len(vocabulary), self.num_labels)
        if weights.shape != expected or bias.shape != (self.num_labels,):
            raise CheckpointError(
                f"the bag of n-grams has weights of shape {weights.shape}; its grams and labels ask for {expected}."
            )
        is_sound = (vocabulary[1:] > vocabulary[:-1]).all() and np.isfinite(weights).all() and np.isfinite(bias).all()
        if not is_sound or num_texts not in (1, 2) or not 1 <= order <= MAX_ORDER:
            raise CheckpointError("the bag of n-grams is damaged: grams should be sorted, and weights be numbers.")
        self.num_texts, self.separator, self.order = num_texts, separator, order
        self.strength, self.temperature = strength, temperature
        self._set(vocabulary, weights, bias)


@dataclass(frozen=True)
class _Learned:
    """What learning found, and -log p of validation texts with it, in nats a text."""

    order: int
    strength: float
    temperature: float
    vocabulary: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    loss: float


class _Problem:
    """(5) for some rows, solved for one strength after the other; each begins where the one before ended."""

    def __init__(
        self,
        columns: np.ndarray,
        edges: np.ndarray,
        labels: np.ndarray,
        costs: np.ndarray,
        log_prior: np.ndarray,
        ratios: np.ndarray,
    ):
        self.columns, self.edges, self.costs, self.log_prior = columns, edges, costs, log_prior
        self.table = np.stack([np.zeros_like(ratios), ratios**2], axis=2)  # (F, N, 2)
        self.own_bias = np.zeros(len(log_prior))
        self.shares = np.eye(len(log_prior))[labels]  # (M, N), the a of (6)
        self.strength = 0.0

    @property
    def weights(self) -> np.ndarray:
        return np.ascontiguousarray(self.table[:, :, 0])

    @property
    def bias(self) -> np.ndarray:
        return self.log_prior + self.own_bias

    def learned(self, order: int, vocabulary: np.ndarray, *, temperature: float, loss: float) -> _Learned:
        """As it stands now, logits divided by the temperature."""
        weights, bias = (self.weights / temperature).astype(np.float32), self.bias / temperature
        return _Learned(order, self.strength, temperature, vocabulary, weights, bias, loss)

    def solve(self, strength: float, random: np.random.Generator) -> None:
        """Until (7) is small. The shares stay as they are: by (6), weights are those of the strength before, scaled."""
        self.table[:, :, 0] *= self.strength / strength
        self.own_bias *= self.strength / strength
        self.strength = strength
        for _ in range(MAX_PASSES):
            gap = ascend(
                random.permutation(len(self.shares)),
                self.columns,
                self.edges,
                self.costs,
                strength,
                self.log_prior,
                self.table,
                self.own_bias,
                self.shares,
            )
            if gap <= TOLERANCE * self.costs.sum():
                break


def fit_temperature(
    logits: np.ndarray, labels: np.ndarray, costs: np.ndarray, *, offset: np.ndarray | float = 0.0
) -> tuple[float, float]:
    """What to divide logits (M, N) by so that labels (M,) are likeliest, and -log p of these then, in nats a row.

    `offset` (N,) is added to logits and not divided.

    The log of the temperature is as uncertain as a standard normal before anything is seen, so that few rows, all of
    them right, do not make it zero. Found by golden-section search.
    """

    def loss_at(log_temperature: float) -> float:
        scaled = logits / math.exp(log_temperature) + offset
        scaled = scaled - scaled.max(axis=1, keepdims=True)
        losses = np.log(np.exp(scaled).sum(axis=1)) - scaled[np.arange(len(labels)), labels]
        return float((costs * losses).sum()) + 0.5 * log_temperature**2

    low, high = -WIDEST, WIDEST
    for _ in range(TEMPERATURE_STEPS):
        width = GOLDEN * (high - low)
        if loss_at(high - width) < loss_at(low + width):
            high = low + width
        else:
            low = high - width
    found = 0.5 * (low + high)
    return math.exp(found), loss_at(found) / max(float(costs.sum()), 1e-9)


def orders_to_try(order: int, *, has_valid: bool) -> list[int]:
    """The one that was asked for; else from short to long, until one validates no better."""
    if order:
        return [order]
    return list(range(1, MAX_TRIED_ORDER + 1)) if has_valid else [USUAL_ORDER]


def label_field(schema: Schema) -> tuple[str, int]:
    """The target that is a label, and how many labels there are."""
    for name, target in schema.targets.items():
        spec = schema.specs[target.spec]
        if isinstance(spec, LabelSpec):
            return name, spec.size
    raise ConfigError(f"a classifier answers with a label; asked for was: {', '.join(schema.kinds)}.")


def check_labels(rows: Rows, labels: np.ndarray, num_labels: int) -> np.ndarray:
    """As int64, one for each row, all of them known."""
    labels = np.asarray(labels, dtype=np.int64)
    if len(rows) == 0 or labels.shape != (len(rows),):
        raise DataError(f"found {len(rows):,} texts and {labels.size:,} labels; expected as many, and one at least.")
    if labels.min() < 0 or labels.max() >= num_labels:
        wrong = int(np.flatnonzero((labels < 0) | (labels >= num_labels))[0])
        raise DataError(f"text {wrong + 1} has the label {labels[wrong]}; labels go from 0 to {num_labels - 1}.")
    return labels


def check_label_weights(weights: np.ndarray | None, num_labels: int) -> np.ndarray:
    """(N,), one for each label; all alike where nobody told."""
    weights = np.ones(num_labels) if weights is None else np.asarray(weights, dtype=np.float64)
    if weights.shape != (num_labels,) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ConfigError(f"found label weights {weights.tolist()}; expected {num_labels} numbers above 0.")
    return weights


def rows_of(tokens: Tokens) -> Rows:
    """Without padding, one behind the other."""
    lengths = tokens.lengths.cpu().numpy()
    ids = tokens.ids.cpu().numpy()
    is_token = np.arange(ids.shape[1]) < lengths[:, None]
    return Rows(ids[is_token].astype(np.int32), np.concatenate([[0], np.cumsum(lengths)]))
