"""HMM: a hidden state walks from step to step by chance, and each step shows something of the state it is in.

Baum & Petrie 1966, Baum et al. 1970 (learning), Viterbi 1967 (the best path), Rabiner 1989 (the tutorial). Fixes in the
n-gram: tokens that behave alike can share a state, and what was read is kept as a belief over states, not cut after n-1
tokens.

    belief_t(j)   = sum over i of alpha_{t-1}(i) transition(i, j);  belief_0 = initial                       (1)
    alpha_t(j)    = belief_t(j) gain_t(j),  gain_t(j) = p(x_t | j) / p(x_t | x before t),
                    p(x_t | x before t) = sum over j of belief_t(j) p(x_t | j)                               (2)
    beta_{t-1}(i) = sum over j of transition(i, j) gain_t(j) beta_t(j);  beta at the last step = 1           (3)
    p(z_t = j | x)                = alpha_t(j) beta_t(j)                                                     (4)
    p(z_{t-1} = i, z_t = j | x)   = alpha_{t-1}(i) transition(i, j) gain_t(j) beta_t(j)                      (5)
    best_t(j)     = max over i of best_{t-1}(i) + log transition(i, j) + log p(x_t | j)                      (6)

belief_t is what is expected before x_t is read, and alpha_t what is believed after it. Dividing by p(x_t | x before t)
at each step keeps them near one, however long the sequence. Learning (Baum-Welch) counts by (4) and (5) how often each
state comes first, follows each other and shows each symbol. The shares of these counts are the new probabilities, and
never make the sequences less probable. What p(x | j) is depends on the data:

    tokens   p(x | j) = emission(j, x)                                                                       (7)
    numbers  p(x | j) = product over observed columns c of Normal(x_c; mean(j, c), scale(j, c))              (8)

so columns are independent given the state (a diagonal covariance), and a number that is missing says nothing.

Shapes: B batch, T steps, V vocabulary, Z hidden states, C columns, N steps of all sequences together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from ..data.batch import Batch, Values
from ..data.schema import NEXT_TOKEN, NEXT_VALUES, Schema
from ..errors import CheckpointError, ConfigError, DataError
from ..kernels.hidden_chain import (
    MAX_VALUE,
    NEGLIGIBLE,
    best_path,
    draw_each,
    expect,
    log_likelihood_of,
    log_normal,
    score_batch,
    walk,
    weighted_squares,
)
from ..layers.notes import is_recorded, note
from ..layers.stream import Prediction
from .contract import State, check_tokens

Observed = np.ndarray | tuple[np.ndarray, np.ndarray | None]
"""One sequence: ids (T,); or values (T, C) and is_observed (T, C), which is None where nothing is missing."""

SUM_SLACK = 1e-6  # by which probabilities in a file may miss a sum of one
KEPT = 1 << 17  # numbers kept of the forward pass, as a cache can hold; reading a longer sequence twice is no slower


@dataclass(frozen=True)
class HMMConfig:
    num_states: int = 16
    """Z: hidden states; 0 tries several numbers and keeps the one that validates best."""
    smoothing: float = 0.01
    """Pseudo-count added to each count of a first state, a transition or a token; 0 is pure maximum likelihood."""
    min_scale: float = 1e-3
    """Smallest standard deviation of a state, as a share of the column's own; for numbers only."""
    order: int = 3
    """Tags: how many are looked at together; 3 predicts each from the two before it."""

    def __post_init__(self) -> None:
        if self.num_states < 0:
            raise ConfigError(f"model.num_states = {self.num_states} should be at least 1, or 0 to choose it.")
        if not 0 <= self.smoothing < float("inf"):
            raise ConfigError(f"model.smoothing = {self.smoothing} should be 0 or more.")
        if not 1 <= self.order <= 3:
            raise ConfigError(f"model.order = {self.order} should be 1, 2 or 3.")
        if not 1e-9 <= self.min_scale <= 1:
            raise ConfigError(f"model.min_scale = {self.min_scale} should lie between 1e-9 and 1.")


class HMM:
    """Probabilities from `initialise`, then `em_step` again and again. Its state is the belief (1)."""

    context = None
    carries_state = continues = True
    reads_empty_start = True
    """Sequences to learn from begin as those to score do: with the boundary token, or a row that shows nothing."""
    score_tracks = 1
    """Each step waits for the one before: reading several segments side by side gains nothing."""

    def __init__(self, config: HMMConfig, schema: Schema):
        if schema.kind not in (NEXT_TOKEN, NEXT_VALUES):
            raise ConfigError(f"an hmm says what comes next in a text or in numbers; asked for was: {schema.kind}.")
        self.config, self.reads_numbers, size = config, schema.kind == NEXT_VALUES, schema.only_input().size
        self.vocab_size, self.num_columns = (0, size) if self.reads_numbers else (size, 0)
        Z = max(1, config.num_states)
        self.initial = np.full(Z, 1 / Z)
        self.transition = np.full((Z, Z), 1 / Z)  # row i: where state i goes
        if self.reads_numbers:
            self.mean, self.scale = np.zeros((Z, self.num_columns)), np.ones((Z, self.num_columns))
        else:
            self.emission = np.full((Z, self.vocab_size), 1 / self.vocab_size)

    # -- learning ------------------------------------------------------------------------------------------------

    def initialise(self, sequences: Sequence[Observed], seed: int) -> None:
        """A random start. States that are all alike would stay so for ever: each step of learning treats them alike."""
        random, Z = np.random.default_rng(seed), self.config.num_states
        data = self._join(sequences)
        self.initial = random.dirichlet(np.ones(Z))
        self.transition = random.dirichlet(np.ones(Z), size=Z)
        if self.reads_numbers:
            center, spread, smallest = self._columns(data)
            standard = np.where(data.is_observed, (data.values - center) / spread, 0.0)
            self.mean = center + spread * _spread_out(standard, Z, random)
            self.scale = np.tile(np.maximum(spread, smallest), (Z, 1))
        else:
            counts = np.bincount(data.ids, minlength=self.vocab_size) + self.config.smoothing
            emission = counts * random.gamma(4.0, size=(Z, self.vocab_size))  # half as likely here, twice there
            self.emission = emission / emission.sum(axis=1, keepdims=True)

    def em_step(self, sequences: Sequence[Observed]) -> float:
        """One iteration of Baum-Welch. Returns the `objective`, in nats, of the probabilities that it then replaces.

        Called again and again with the same sequences, the objective never falls. (The one exception: numbers, and a
        start with scales smaller than `min_scale` allows.)
        """
        data = self._join(sequences)
        rows, table = self._likelihoods(data)
        log_prior, s = self.log_prior(), self.config.smoothing
        log_likelihood, first, pairs, visits = self._expect(rows, data.offsets, table)
        self.initial = _shares(first + s, self.initial)
        self.transition = _shares(pairs + s, self.transition)
        if self.reads_numbers:
            self._update_normals(data, visits)
        else:
            self.emission = _shares(np.ascontiguousarray(visits.T) + s, self.emission)  # sums as in a loaded model
        return log_likelihood + log_prior

    def objective(self, sequences: Sequence[Observed]) -> float:
        """What learning raises: log p(all sequences) + log p(probabilities), in nats."""
        return self.log_likelihood(sequences) + self.log_prior()

    def log_prior(self) -> float:
        """log p(probabilities) up to a constant, where smoothing is a Dirichlet prior: pseudo-count * sum of logs."""
        if self.config.smoothing == 0:
            return 0.0
        tables = [self.initial, self.transition] + ([] if self.reads_numbers else [self.emission])
        with np.errstate(divide="ignore"):
            return self.config.smoothing * sum(float(np.log(table).sum()) for table in tables)

    def log_likelihood(self, sequences: Sequence[Observed]) -> float:
        """log p of all sequences, first steps included, in nats; -inf where one is impossible."""
        data = self._join(sequences)
        rows, table = self._likelihoods(data)
        return float(log_likelihood_of(rows, data.offsets, table, self.reads_numbers, self.initial, self._incoming))

    def _update_normals(self, data: _Joined, visits: np.ndarray) -> None:
        """Weighted mean and standard deviation of what each state saw; a state that saw nothing stays as it is."""
        center, spread, smallest = self._columns(data)
        counts = visits.T @ data.is_observed.astype(np.float64)  # (Z, C)
        there = counts > NEGLIGIBLE
        counts = np.where(there, counts, 1.0)
        standard = np.where(data.is_observed, (data.values - center) / spread, 0.0)  # (N, C)
        self.mean = np.where(there, center + spread * (visits.T @ standard / counts), self.mean)
        variance = weighted_squares(data.values, data.is_observed, visits, self.mean, spread) / counts
        self.scale = np.where(there, np.maximum(spread * np.sqrt(variance), smallest), self.scale)

    def _columns(self, data: _Joined) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each column (C,): mean, standard deviation (1 where all is alike), and the smallest scale of a state."""
        columns = [values[there] for values, there in zip(data.values.T, data.is_observed.T, strict=True)]
        center = np.array([column.mean() if len(column) else 0.0 for column in columns])
        spread = np.array([column.std() if len(column) and np.ptp(column) > 0 else 1.0 for column in columns])
        spread = np.where(spread > NEGLIGIBLE, spread, 1.0)
        finest = 1e-9 * np.abs(data.values).max(axis=0)  # below this, rounding of the numbers themselves would show
        return center, spread, np.maximum(self.config.min_scale * spread, finest)

    def _expect(
        self, rows: np.ndarray, offsets: np.ndarray, table: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """log-likelihood, and expected counts: first states (Z,), transitions (Z, Z), visits by row of the table."""
        max_steps = max(1, KEPT // self.config.num_states)
        log_likelihood, impossible, first, pairs, visits = expect(
            rows, offsets, table, self.reads_numbers, self.initial, self.transition, self._incoming, max_steps
        )
        if impossible >= 0:
            which = f"sequence {impossible + 1}" if len(offsets) > 2 else "the sequence"
            raise DataError(
                f"{which} has probability zero under this hmm, so nothing can be said of its hidden states; "
                "train with model.smoothing above 0."
            )
        return float(log_likelihood), first, pairs * self.transition, visits

    # -- hidden states -------------------------------------------------------------------------------------------

    def posteriors(self, sequence: Observed) -> np.ndarray:
        """(4): how probable each state is at each step, given the whole sequence, (T, Z)."""
        data = self._join([sequence])
        rows, table = self._likelihoods(data)
        each_step = np.arange(len(rows))  # a row of the table for each step, so that visits are those of the step
        return self._expect(each_step, data.offsets, table[rows])[3]

    def viterbi(self, sequence: Observed) -> tuple[np.ndarray, float]:
        """(6): the most probable path of hidden states (T,), and log p(path, sequence) in nats.

        Of equally probable paths the one that ends in the lowest state, and before it came from the lowest, and so on.
        """
        rows, table = self._likelihoods(self._join([sequence]))
        with np.errstate(divide="ignore"):
            log_table = table if self.reads_numbers else np.log(table)
            path, log_joint = best_path(rows, log_table, np.log(self.initial), np.log(self._incoming))
        if log_joint == -np.inf:
            raise DataError("the sequence has probability zero under this hmm; train with model.smoothing above 0.")
        return path, float(log_joint)

    def sample(self, length: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Hidden states (T,) and what they show: ids (T,), or numbers (T, C)."""
        random = np.random.default_rng(seed)
        states = walk(self.initial.cumsum(), self.transition.cumsum(axis=1), random.random(length))
        if self.reads_numbers:
            return states, random.normal(self.mean[states], self.scale[states])
        return states, draw_each(self.emission.cumsum(axis=1), states, random.random(length))

    # -- the verbs -----------------------------------------------------------------------------------------------

    def initial_state(self, batch_size: int) -> State:
        return State({"belief": torch.from_numpy(np.tile(self.initial, (batch_size, 1)))})

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State]:
        """A token that is impossible (smoothing = 0) scores -inf, and reading one changes no belief but by (1)."""
        return self._read(batch.inputs[self._field], batch.targets[self._field], state)

    def start(self, prompt: Batch, state: State | None = None) -> tuple[Tensor | MixtureSameFamily, State]:
        inputs = prompt.inputs[self._field]
        _, state = self._read(inputs, inputs, state)  # only the state is asked for: any targets will do
        return self._next(state), state

    def step(
        self, tokens: Tensor, state: State, is_observed: Tensor | None = None
    ) -> tuple[Tensor | MixtureSameFamily, State]:
        """Tokens (B,); or values (B, C), with is_observed (B, C) where some are missing."""
        if self.reads_numbers:
            inputs = Values(tokens.unsqueeze(1), None if is_observed is None else is_observed.unsqueeze(1))
            _, state = self._read(inputs, inputs, state)
            return self._next(state), state
        belief = state.per_row["belief"]  # (B, Z)
        alpha = belief * torch.from_numpy(self.emission)[:, tokens.cpu()].T  # (B, Z)  (7)
        evidence = alpha.sum(dim=1, keepdim=True)
        alpha = torch.where(evidence > NEGLIGIBLE**2, alpha / evidence, belief)  # (2)
        note(self, "belief", alpha)
        state = State({"belief": alpha @ torch.from_numpy(self.transition)})  # (1)
        return self._next(state), state

    def _read(self, inputs: Any, targets: Any, state: State | None) -> tuple[Tensor, State]:
        """log p of each target (B, T) after the inputs up to it, and the belief after each row's last input."""
        seen, wanted = self._likelihoods_of_field(inputs), self._likelihoods_of_field(targets)
        belief = (state or self.initial_state(inputs.shape[0])).per_row["belief"].cpu().numpy().copy()  # (B, Z)
        if is_recorded():
            self._show_beliefs(*seen, belief)
        log_probs = score_batch(
            belief, inputs.lengths.cpu().numpy(), *seen, *wanted, self.reads_numbers, self._incoming
        )
        return torch.from_numpy(log_probs), State({"belief": torch.from_numpy(belief)})

    def _show_beliefs(self, rows: np.ndarray, table: np.ndarray, belief: np.ndarray) -> None:
        """What is thought of the hidden state once each step (B, T) is read."""
        for t in range(rows.shape[1]):
            likelihood = table[rows[:, t]]  # (B, Z)
            if self.reads_numbers:  # in logs
                likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
            alpha = belief * likelihood
            evidence = alpha.sum(axis=1, keepdims=True)
            alpha = np.where(evidence > 0, alpha / np.where(evidence > 0, evidence, 1.0), belief)  # (2)
            note(self, "belief", torch.from_numpy(alpha))
            belief = alpha @ self.transition  # (1)

    @property
    def _field(self) -> str:
        return "values" if self.reads_numbers else "tokens"

    def _next(self, state: State) -> Tensor | MixtureSameFamily:
        """log p of every token, (B, V); or the distribution of the next numbers, a mixture of normals."""
        belief = state.per_row["belief"]
        if not self.reads_numbers:
            return (belief @ torch.from_numpy(self.emission)).log()
        shape = (len(belief), *self.mean.shape)  # (B, Z, C)
        mean, scale = (torch.from_numpy(table).expand(shape) for table in (self.mean, self.scale))
        return MixtureSameFamily(Categorical(belief), Independent(Normal(mean, scale), 1))

    def predict(self, batch: Batch) -> Prediction:
        """Tags that nobody taught: the best path (6) of each row, (B, T), and the log of (4), (B, T, Z)."""
        field = batch.inputs[self._field]
        B, T = field.shape
        answers, log_probs = torch.zeros(B, T, dtype=torch.long), torch.zeros(B, T, self.config.num_states).double()
        for row, length in enumerate(field.lengths.tolist()):
            if length > 0:
                sequence = self._row_of(field, row, length)
                answers[row, :length] = torch.from_numpy(self.viterbi(sequence)[0])
                log_probs[row, :length] = torch.from_numpy(self.posteriors(sequence)).log()
        return Prediction(answers, log_probs)

    def _row_of(self, field: Any, row: int, length: int) -> Observed:
        if not self.reads_numbers:
            return field.ids[row, :length].cpu().numpy()
        is_observed = None if field.is_observed is None else field.is_observed[row, :length].cpu().numpy()
        return field.values[row, :length].double().cpu().numpy(), is_observed

    # -- what the compiled loops want ----------------------------------------------------------------------------

    def _likelihoods(self, data: _Joined) -> tuple[np.ndarray, np.ndarray]:
        """A table of p(x | j), one row for each x that occurs, and where in it each step is found, (N,).

        Tokens: a row for each of the vocabulary, (V, Z). Numbers: a row for each step, (N, Z), and in logs.
        """
        if self.reads_numbers:
            return np.arange(len(data.values)), log_normal(data.values, data.is_observed, self.mean, self.scale)
        return data.ids, np.ascontiguousarray(self.emission.T)

    def _likelihoods_of_field(self, field: Any) -> tuple[np.ndarray, np.ndarray]:
        """The same for Tokens or Values (B, T): rows (B, T) of a table. What padding holds is not looked at."""
        is_step = torch.ones(field.shape, dtype=torch.bool) if field.is_step is None else field.is_step.cpu()
        if self.reads_numbers:
            values = field.values.double().cpu()  # (B, T, C)
            there = is_step.unsqueeze(-1).expand(values.shape)
            if field.is_observed is not None:
                there = there & field.is_observed.cpu()
            data = _join_numbers([(values.flatten(0, 1).numpy(), there.flatten(0, 1).numpy())], self.num_columns)
        else:
            data = _join_tokens([torch.where(is_step, field.ids.cpu(), 0).flatten().numpy()], self.vocab_size)
        rows, table = self._likelihoods(data)
        return rows.reshape(field.shape), table

    @property
    def _incoming(self) -> np.ndarray:
        """Row j: from where state j is reached. Loops run along rows."""
        return np.ascontiguousarray(self.transition.T)

    def _join(self, sequences: Sequence[Observed]) -> _Joined:
        """All sequences end to end, checked."""
        if sum(_length(sequence) for sequence in sequences) == 0:
            raise DataError("an hmm needs at least one step to read.")
        if self.reads_numbers:
            return _join_numbers(sequences, self.num_columns)
        return _join_tokens(sequences, self.vocab_size)

    # -- the run folder ------------------------------------------------------------------------------------------

    @property
    def _tables(self) -> list[str]:
        return ["initial", "transition", *(["mean", "scale"] if self.reads_numbers else ["emission"])]

    @property
    def num_parameters(self) -> int:
        return sum(getattr(self, name).size for name in self._tables)

    def state_dict(self) -> dict[str, Tensor]:
        return {name: torch.from_numpy(np.ascontiguousarray(getattr(self, name))) for name in self._tables}

    def load_state_dict(self, saved: dict[str, Tensor]) -> None:
        for name in self._tables:
            if name not in saved:
                raise CheckpointError(f'the hmm lacks "{name}"; its file is damaged.')
            found, expected = tuple(saved[name].shape), getattr(self, name).shape
            if found != expected:
                raise CheckpointError(f'"{name}" of the hmm has the shape {found}; its settings ask for {expected}.')
        tables = {name: saved[name].double().cpu().numpy().copy() for name in self._tables}
        for name, table in tables.items():
            if name == "mean":
                is_sound, expected = np.isfinite(table).all(), "numbers"
            elif name == "scale":
                is_sound, expected = np.isfinite(table).all() and (table > 0).all(), "numbers above 0"
            else:
                sums = table.sum(axis=-1)
                is_sound = (table >= 0).all() and (np.abs(sums - 1) < SUM_SLACK).all()
                expected = f"probabilities that sum to 1 (found sums from {sums.min():.6g} to {sums.max():.6g})"
            if not is_sound:
                raise CheckpointError(f'"{name}" of the hmm is damaged: it should hold {expected}.')
        for name, table in tables.items():
            setattr(self, name, table)


@dataclass(frozen=True)
class _Joined:
    """Sequences end to end: tokens, or numbers. Sequence s stands at offsets[s] to offsets[s+1]."""

    offsets: np.ndarray  # (sequences + 1,)
    ids: np.ndarray  # (N,)
    values: np.ndarray  # (N, C)
    is_observed: np.ndarray  # (N, C)


_NOTHING = np.empty(0, dtype=np.int64)


def _length(sequence: Observed) -> int:
    return len(sequence[0] if isinstance(sequence, tuple) else sequence)


def _join_tokens(sequences: Sequence[Observed], vocab_size: int) -> _Joined:
    ids = np.concatenate([np.asarray(sequence, dtype=np.int64) for sequence in sequences])
    check_tokens(ids, vocab_size)
    return _Joined(_offsets(sequences), ids, _NOTHING, _NOTHING)


def _join_numbers(sequences: Sequence[Observed], num_columns: int) -> _Joined:
    offsets = _offsets(sequences)
    values = np.concatenate([np.asarray(values, dtype=np.float64) for values, _ in sequences])
    if values.ndim != 2 or values.shape[1] != num_columns:
        raise DataError(f"found numbers of shape {values.shape}; expected (steps, {num_columns}).")
    is_observed = np.concatenate(
        [np.ones(np.shape(values), dtype=bool) if there is None else there for values, there in sequences]
    )
    for step, column in np.argwhere(is_observed & ~(np.abs(values) <= MAX_VALUE))[:1]:
        sequence = np.searchsorted(offsets, step, side="right") - 1
        raise DataError(
            f"sequence {sequence + 1}, step {step - offsets[sequence] + 1}, column {column + 1} holds "
            f"{values[step, column]}; expected a number up to {MAX_VALUE:g}, or False in is_observed."
        )
    return _Joined(offsets, _NOTHING, np.where(is_observed, values, 0.0), is_observed)


def _offsets(sequences: Sequence[Observed]) -> np.ndarray:
    return np.cumsum([0, *(_length(sequence) for sequence in sequences)])


def _shares(counts: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Counts over their sum, row by row; where nothing was counted, what was there before."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), otherwise)


def _spread_out(points: np.ndarray, how_many: int, random: np.random.Generator) -> np.ndarray:
    """Some of the points (N, C), each drawn by its squared distance to those before (Arthur & Vassilvitskii 2007)."""
    chosen = [points[random.integers(len(points))]]
    distance = np.full(len(points), np.inf)
    while len(chosen) < how_many:
        distance = np.minimum(distance, ((points - chosen[-1]) ** 2).sum(axis=1))
        total = distance.sum()  # zero where there are fewer different points than states: then any will do
        chosen.append(points[random.choice(len(points), p=distance / total if total > 0 else None)])
    return np.array(chosen)
