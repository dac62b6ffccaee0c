"""HMM classifier: one hidden Markov model a label, and Bayes' rule: which label would have made this sequence?

Rabiner 1989, section VI (isolated words, one model a word). For short sequences: spoken words, gestures, names. Fixes
in one n-gram model a label (ngram_classifier.py): numbers can be read, and what was read is kept as a belief.

    p(x | k)  = (1 - s) p_k(x) + s p_all(x),   s = background / (background + n_k)                               (1)
    p(k | x)  = prior(k) p(x | k) / sum over all labels of the same                                              (2)

p_k is the HMM (hmm.py) of the n_k training sequences of label k, p_all that of all sequences. A model of few sequences
knows them by heart and finds all others impossible; then (1) is the second term, and the label neither gains nor loses
by what the sequence shows. prior(k) is the share of the training sequences of label k, each being counted once more.

All models learn side by side, by EM: the objective is the sum of theirs, so no step lowers it. To learn from is a list
with an entry for each sequence, its label last: (ids, label), or (values, is_observed, label).

Shapes: B batch, T steps, Z hidden states, N labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.batch import Batch, Tokens, Values
from ..data.schema import NEXT_TOKEN, NEXT_VALUES, Schema, Target, ValueSpec
from ..errors import CheckpointError, ConfigError, DataError
from ..kernels.hidden_chain import log_normal
from ..layers.stream import Prediction, log_prob_of
from .bag_of_ngrams import label_field
from .contract import State
from .hmm import HMM, HMMConfig, Observed

ALL = "all"


@dataclass(frozen=True)
class HMMClassifierConfig(HMMConfig):
    num_states: int = 16
    """Z: hidden states of each label's model, and of the one of all; 0 tries several and keeps what validates best."""
    smoothing: float = 0.1
    """Pseudo-count added to each count of a first state, a transition or a token; 0 is pure maximum likelihood."""
    background: float = 1.0
    """How many sequences of a label weigh as much as the sequences of all labels; 0 leaves each label to itself."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.background < float("inf"):
            raise ConfigError(f"model.background = {self.background} should be 0 or more.")


class HMMClassifier:
    """Probabilities from `initialise`, then `em_step` again and again; answers by (2)."""

    context = None
    carries_state = continues = False
    reads_empty_start = True
    """Sequences to learn from begin as those to label do."""
    score_tracks = 1

    def __init__(self, config: HMMClassifierConfig, schema: Schema):
        self.config = config
        self.field, self.num_labels = label_field(schema)
        spec = schema.only_input()
        self.reads_numbers = isinstance(spec, ValueSpec)
        self.input = "values" if self.reads_numbers else "tokens"
        target = Target(self.input, NEXT_VALUES if self.reads_numbers else NEXT_TOKEN)
        self._schema = Schema({self.input: spec}, {self.input: self.input}, {self.input: target})
        self.counts = np.zeros(self.num_labels)
        """n_k: training sequences of each label."""
        self.models: dict[str, HMM] = {ALL: self._empty()}
        """Of all, and by label; those without a sequence have none."""

    # -- learning ------------------------------------------------------------------------------------------------

    def initialise(self, sequences: Sequence[Any], seed: int) -> None:
        """A random start for each label that has a sequence, and for all together."""
        grouped = self._grouped(sequences)
        self.counts = np.array([len(grouped.get(str(label), [])) for label in range(self.num_labels)], dtype=np.float64)
        self.models = {name: self._empty() for name in grouped}
        for number, (name, own) in enumerate(grouped.items()):
            self.models[name].initialise(own, seed + number * 1009)  # far from the seeds of other starts

    def em_step(self, sequences: Sequence[Any]) -> float:
        """One iteration of Baum-Welch for each model. Returns the sum of their objectives before it, in nats."""
        return sum(self.models[name].em_step(own) for name, own in self._grouped(sequences).items())

    def _grouped(self, sequences: Sequence[Any]) -> dict[str, list[Observed]]:
        """Those of all, and of each label that has one."""
        grouped: dict[str, list[Observed]] = {ALL: []}
        for number, (*parts, label) in enumerate(sequences, start=1):
            if not 0 <= label < self.num_labels:
                raise DataError(f"sequence {number} has the label {label}; labels go from 0 to {self.num_labels - 1}.")
            sequence: Observed = (parts[0], parts[1]) if self.reads_numbers else parts[0]
            grouped[ALL].append(sequence)
            grouped.setdefault(str(int(label)), []).append(sequence)
        return grouped

    # -- the verbs -----------------------------------------------------------------------------------------------

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, None]:
        """log p of each row's label, (B, 1)."""
        wanted = batch.targets[self.field].ids.cpu()
        return log_prob_of(self.log_probs(batch.inputs[self.input]), wanted).unsqueeze(1), None

    def predict(self, batch: Batch) -> Prediction:
        log_probs = self.log_probs(batch.inputs[self.input])
        return Prediction(log_probs.argmax(dim=1), log_probs)

    def log_probs(self, field: Tokens | Values) -> Tensor:
        """(2), (B, N), nats. A sequence that is impossible under all models has the prior."""
        log_prior = torch.from_numpy(np.log((self.counts + 1) / (self.counts + 1).sum()))
        log_likelihoods = self.log_likelihoods(field)
        is_possible = log_likelihoods.isfinite().any(dim=1, keepdim=True)
        return (log_prior + torch.where(is_possible, log_likelihoods, 0.0)).log_softmax(dim=1)

    def log_likelihoods(self, field: Tokens | Values) -> Tensor:
        """log of (1), (B, N), nats."""
        of_all = self._log_likelihood(self.models[ALL], field)  # (B,)
        result = of_all.unsqueeze(1).repeat(1, self.num_labels)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = self.config.background / (self.config.background + self.counts)
            log_shares, log_rests = (torch.from_numpy(np.log(each)) for each in (shares, 1 - shares))
        for label in range(self.num_labels):
            if str(label) in self.models:
                own = self._log_likelihood(self.models[str(label)], field)
                result[:, label] = torch.logaddexp(log_rests[label] + own, log_shares[label] + of_all)  # (1)
        return result

    def _log_likelihood(self, model: HMM, field: Tokens | Values) -> Tensor:
        """log p of each row, its first step included, (B,)."""
        is_step = torch.arange(field.shape[1]) < field.lengths.cpu().unsqueeze(1)  # (B, T)
        before, later = (_cut(field, steps, is_step[:, 1:]) for steps in (slice(None, -1), slice(1, None)))
        found, _ = model.score(Batch({self.input: before}, {self.input: later}))
        first = torch.where(is_step[:, 0], self._first_step(model, field), 0.0)
        return first + torch.where(is_step[:, 1:], found, 0.0).sum(dim=1)

    def _first_step(self, model: HMM, field: Tokens | Values) -> Tensor:
        """log p of the first step of each row, (B,)."""
        with np.errstate(divide="ignore"):
            if isinstance(field, Tokens):
                return torch.from_numpy(np.log(model.initial @ model.emission[:, field.ids[:, 0].cpu().numpy()]))
            values = field.values[:, 0].double().cpu().numpy()
            there = np.ones(values.shape, bool) if field.is_observed is None else field.is_observed[:, 0].cpu().numpy()
            likely = np.log(model.initial) + log_normal(values, there, model.mean, model.scale)  # (B, Z)
        return torch.from_numpy(likely).logsumexp(dim=1)

    # -- the run folder ------------------------------------------------------------------------------------------

    def _empty(self) -> HMM:
        return HMM(self.config, self._schema)

    @property
    def num_parameters(self) -> int:
        return self.num_labels + sum(model.num_parameters for model in self.models.values())

    def state_dict(self) -> dict[str, Tensor]:
        saved = {"counts": torch.from_numpy(self.counts)}
        for name, model in self.models.items():
            saved |= {f"{name}.{part}": tensor for part, tensor in model.state_dict().items()}
        return saved

    def load_state_dict(self, saved: dict[str, Tensor]) -> None:
        if "counts" not in saved:
            raise CheckpointError('the hmm classifier lacks "counts"; its file is damaged.')
        counts = saved["counts"].double().cpu().numpy()
        if counts.shape != (self.num_labels,) or not (np.isfinite(counts) & (counts >= 0)).all():
            raise CheckpointError(f"the hmm classifier is damaged, or was not trained for {self.num_labels} labels.")
        models = {}
        for name in (ALL, *(str(label) for label in np.flatnonzero(counts))):
            models[name] = self._empty()
            own = {part.removeprefix(f"{name}."): t for part, t in saved.items() if part.startswith(f"{name}.")}
            models[name].load_state_dict(own)
        self.counts, self.models = counts, models


def _cut(field: Tokens | Values, steps: slice, is_step: Tensor) -> Tokens | Values:
    """Some steps of all rows, of which these are no padding, (B, T)."""
    some = field.map(lambda tensor: tensor[:, steps])
    return replace(some, is_token=is_step) if isinstance(some, Tokens) else replace(some, is_step=is_step)
