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
from numba import njit
from torch import Tensor
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from ..data.batch import Batch, Values
from ..errors import CheckpointError, ConfigError, DataError
from .contract import Interface, Prediction, State

Observed = np.ndarray | tuple[np.ndarray, np.ndarray | None]
"""One sequence: ids (T,); or values (T, C) and is_observed (T, C), which is None where nothing is missing."""

NEGLIGIBLE = 1e-150  # a belief below this counts as zero, so that no quotient of beliefs can overflow
LOG_NEGLIGIBLE = float(np.log(NEGLIGIBLE))
LARGEST = 1e150  # numbers beyond this could not be squared
KEPT = 1 << 17  # numbers kept of the forward pass, as a cache can hold; reading a longer sequence twice is no slower


@dataclass(frozen=True)
class HMMConfig:
    num_states: int = 16
    """Z: hidden states."""
    smoothing: float = 0.01
    """Pseudo-count added to each count of a first state, a transition or a token; 0 is pure maximum likelihood."""
    min_scale: float = 1e-3
    """Smallest standard deviation of a state, as a share of the column's own; for numbers only."""

    def __post_init__(self) -> None:
        if self.num_states < 1:
            raise ConfigError(f"model.num_states = {self.num_states} should be at least 1.")
        if not 0 <= self.smoothing < float("inf"):
            raise ConfigError(f"model.smoothing = {self.smoothing} should be 0 or more.")
        if not 1e-9 <= self.min_scale <= 1:
            raise ConfigError(f"model.min_scale = {self.min_scale} should lie between 1e-9 and 1.")


class HMM:
    """Probabilities from `initialise`, then `em_step` again and again. Its state is the belief (1)."""

    context = None
    carries_state = True
    reads_empty_start = True
    """Sequences to learn from begin as those to score do: with the boundary token, or a row that shows nothing."""
    score_tracks = 1
    """Each step waits for the one before: reading several stretches side by side gains nothing."""

    def __init__(self, config: HMMConfig, interface: Interface):
        if interface.task not in ("text", "numbers"):
            raise ConfigError(f'an hmm reads a text or numbers; found the task "{interface.task}".')
        self.config, self.vocab_size, self.num_columns = config, interface.vocab_size, interface.num_columns
        self.reads_numbers = interface.task == "numbers"
        Z = config.num_states
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
        return float(_log_likelihood(rows, data.offsets, table, self.reads_numbers, self.initial, self._incoming))

    def _update_normals(self, data: _Joined, visits: np.ndarray) -> None:
        """Weighted mean and standard deviation of what each state saw; a state that saw nothing stays as it is."""
        center, spread, smallest = self._columns(data)
        counts = visits.T @ data.is_observed.astype(np.float64)  # (Z, C)
        there = counts > NEGLIGIBLE
        counts = np.where(there, counts, 1.0)
        standard = np.where(data.is_observed, (data.values - center) / spread, 0.0)  # (N, C)
        self.mean = np.where(there, center + spread * (visits.T @ standard / counts), self.mean)
        variance = _squares(data.values, data.is_observed, visits, self.mean, spread) / counts
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
        most = max(1, KEPT // self.config.num_states)
        log_likelihood, impossible, first, pairs, visits = _expect(
            rows, offsets, table, self.reads_numbers, self.initial, self.transition, self._incoming, most
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
        """(6): the most probable path of hidden states (T,), and log p(path, sequence) in nats."""
        rows, table = self._likelihoods(self._join([sequence]))
        with np.errstate(divide="ignore"):
            log_table = table if self.reads_numbers else np.log(table)
            path, log_joint = _viterbi(rows, log_table, np.log(self.initial), np.log(self._incoming))
        if log_joint == -np.inf:
            raise DataError("the sequence has probability zero under this hmm; train with model.smoothing above 0.")
        return path, float(log_joint)

    def sample(self, length: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Hidden states (T,) and what they show: ids (T,), or numbers (T, C)."""
        random = np.random.default_rng(seed)
        states = _walk(self.initial.cumsum(), self.transition.cumsum(axis=1), random.random(length))
        if self.reads_numbers:
            return states, random.normal(self.mean[states], self.scale[states])
        return states, _draw_each(self.emission.cumsum(axis=1), states, random.random(length))

    # -- the verbs -----------------------------------------------------------------------------------------------

    def fresh_state(self, batch_size: int) -> State:
        return State({"belief": torch.from_numpy(np.tile(self.initial, (batch_size, 1)))})

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State]:
        """A token that is impossible (smoothing = 0) scores -inf, and reading one changes no belief but by (1)."""
        return self._read(batch.inputs[self._field], batch.targets[self._field], state)

    def start(self, prompt: Batch) -> tuple[Tensor | MixtureSameFamily, State]:
        inputs = prompt.inputs[self._field]
        _, state = self._read(inputs, inputs, None)  # only the state is asked for: any targets will do
        return self._next(state), state

    def step(
        self, tokens: Tensor, state: State, is_observed: Tensor | None = None
    ) -> tuple[Tensor | MixtureSameFamily, State]:
        """Tokens (B,); or values (B, C), with is_observed (B, C) where some are missing."""
        if self.reads_numbers:
            inputs = Values(tokens.unsqueeze(1), None if is_observed is None else is_observed.unsqueeze(1))
            _, state = self._read(inputs, inputs, state)
            return self._next(state), state
        belief = state.own["belief"]  # (B, Z)
        alpha = belief * torch.from_numpy(self.emission)[:, tokens.cpu()].T  # (B, Z)  (7)
        evidence = alpha.sum(dim=1, keepdim=True)
        alpha = torch.where(evidence > NEGLIGIBLE**2, alpha / evidence, belief)  # (2)
        state = State({"belief": alpha @ torch.from_numpy(self.transition)})  # (1)
        return self._next(state), state

    def _read(self, inputs: Any, targets: Any, state: State | None) -> tuple[Tensor, State]:
        """log p of each target (B, T) after the inputs up to it, and the belief after each row's last input."""
        seen, wanted = self._likelihoods_of_field(inputs), self._likelihoods_of_field(targets)
        belief = (state or self.fresh_state(inputs.shape[0])).own["belief"].cpu().numpy().copy()  # (B, Z)
        log_probs = _score(belief, inputs.lengths.cpu().numpy(), *seen, *wanted, self.reads_numbers, self._incoming)
        return torch.from_numpy(log_probs), State({"belief": torch.from_numpy(belief)})

    @property
    def _field(self) -> str:
        return "values" if self.reads_numbers else "tokens"

    def _next(self, state: State) -> Tensor | MixtureSameFamily:
        """log p of every token, (B, V); or the distribution of the next numbers, a mixture of normals."""
        belief = state.own["belief"]
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
            return np.arange(len(data.values)), _log_normal(data.values, data.is_observed, self.mean, self.scale)
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
        for name in self._tables:
            setattr(self, name, saved[name].double().cpu().numpy().copy())


def plain_expectations(
    initial: np.ndarray, transition: np.ndarray, likelihood: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """(1) to (5) as they stand, for one sequence: log p(x) in nats, posteriors (T, Z), expected transitions (Z, Z).

    `likelihood` (T, Z) holds p(x_t | j). The compiled `_expect` does the same for many sequences.
    """
    log_likelihood, belief, alphas, gains = 0.0, initial, [], []
    for likely in likelihood:
        evidence = belief @ likely
        log_likelihood += float(np.log(evidence))
        gains.append(likely / evidence)
        alphas.append(belief * gains[-1])  # (2)
        belief = alphas[-1] @ transition  # (1)
    posteriors, pairs, beta = np.empty_like(likelihood), np.zeros_like(transition), np.ones_like(initial)
    for t in reversed(range(len(likelihood))):
        posteriors[t] = alphas[t] * beta  # (4)
        if t > 0:
            pairs += alphas[t - 1][:, None] * transition * (gains[t] * beta)  # (5)
        beta = transition @ (gains[t] * beta)  # (3)
    return log_likelihood, posteriors, pairs


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
    for unknown in ids[(ids < 0) | (ids >= vocab_size)][:1]:
        raise DataError(f"token {unknown} is not in the vocabulary, which goes from 0 to {vocab_size - 1}.")
    return _Joined(_offsets(sequences), ids, _NOTHING, _NOTHING)


def _join_numbers(sequences: Sequence[Observed], num_columns: int) -> _Joined:
    offsets = _offsets(sequences)
    values = np.concatenate([np.asarray(values, dtype=np.float64) for values, _ in sequences])
    if values.ndim != 2 or values.shape[1] != num_columns:
        raise DataError(f"found numbers of shape {values.shape}; expected (steps, {num_columns}).")
    is_observed = np.concatenate(
        [np.ones(np.shape(values), dtype=bool) if there is None else there for values, there in sequences]
    )
    for step, column in np.argwhere(is_observed & ~(np.abs(values) <= LARGEST))[:1]:
        sequence = np.searchsorted(offsets, step, side="right") - 1
        raise DataError(
            f"sequence {sequence + 1}, step {step - offsets[sequence] + 1}, column {column + 1} holds "
            f"{values[step, column]}; expected a number up to {LARGEST:g}, or False in is_observed."
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


# The compiled loops. `table` holds p(x | j); step t finds its own in row rows[t]. Where `is_log`, it holds logs, each
# row serves one step, and reading replaces it. fastmath lets sums be taken in any order; infinities keep their meaning.

_FAST = {"reassoc", "contract", "nsz"}


@njit(cache=True)
def _copy(source, target):
    """target[:] = source, which takes two seconds to compile."""
    for j in range(len(target)):
        target[j] = source[j]


@njit(cache=True, fastmath=_FAST, inline="always")
def _carry(vector, matrix, factor, result):
    """result = factor * matrix @ vector; what is negligible becomes zero."""
    for i in range(len(result)):
        total = 0.0
        for j in range(len(vector)):
            total += matrix[i, j] * vector[j]
        total *= factor
        result[i] = total if total > NEGLIGIBLE else 0.0


@njit(cache=True, fastmath=_FAST, inline="always")
def _meet(belief, likely, joint):
    """joint = belief * likely; returns its sum, the evidence p(x_t | x before t): 0 where the step is impossible."""
    evidence = 0.0
    for j in range(len(belief)):
        both = belief[j] * likely[j]
        joint[j] = both
        evidence += both
    return evidence if evidence > NEGLIGIBLE * NEGLIGIBLE else 0.0


@njit(cache=True, fastmath=_FAST)
def _leave_logs(belief, row):
    """Logs of p(x | j) become p(x | j) relative to the likeliest of the states that can be, whose log is returned."""
    top = -np.inf
    for j in range(len(belief)):
        if belief[j] > 0.0 and row[j] > top:
            top = row[j]
    for j in range(len(belief)):
        apart = row[j] - top if belief[j] > 0.0 else -np.inf
        row[j] = np.exp(apart) if apart > LOG_NEGLIGIBLE else 0.0
    return top


@njit(cache=True, fastmath=_FAST)
def _forward(rows, table, is_log, incoming, belief, alphas, gains):
    """Read some steps from `belief` on, which becomes that of the step after them. alphas[t+1] is alpha_t.

    Returns log p of these steps. Dividing by the evidence comes last, so that no step waits for a division.
    """
    Z = len(belief)
    joint = np.empty(Z)
    log_likelihood = 0.0
    for t in range(len(rows)):
        row = rows[t]
        if is_log:
            log_likelihood += _leave_logs(belief, table[row])
        evidence = _meet(belief, table[row], joint)
        if evidence == 0.0:
            return -np.inf
        share = 1.0 / evidence
        _carry(joint, incoming, share, belief)  # (1)
        for j in range(Z):  # (2)
            after = joint[j] * share
            is_there = after > NEGLIGIBLE * 1e-20  # lower than for a belief: what is left out here is in none
            alphas[t + 1, j] = after if is_there else 0.0
            gains[t, j] = table[row, j] * share if is_there else 0.0
        log_likelihood += np.log(evidence)
    return log_likelihood


@njit(cache=True, fastmath=_FAST)
def _backward(rows, transition, beta, alphas, gains, visits):
    """From beta of the last of these steps to that of the first, adding (4) to visits. gains[t] becomes gain * beta."""
    for t in range(len(rows) - 1, -1, -1):
        row = rows[t]
        for j in range(len(beta)):
            visits[row, j] += alphas[t + 1, j] * beta[j]
            gains[t, j] *= beta[j]
        if t > 0:
            _carry(gains[t], transition, 1.0, beta)  # (3)


@njit(cache=True, fastmath=_FAST)
def _add_pairs(alphas, gains, num_steps, pairs):
    """(5) but for its factor transition: pairs += alphas.T @ gains. Four steps at once, which spares memory."""
    Z = len(pairs)
    whole = num_steps - num_steps % 4
    for t in range(0, whole, 4):
        for i in range(Z):
            a, b, c, d = alphas[t, i], alphas[t + 1, i], alphas[t + 2, i], alphas[t + 3, i]
            for j in range(Z):
                pairs[i, j] += a * gains[t, j] + b * gains[t + 1, j] + (c * gains[t + 2, j] + d * gains[t + 3, j])
    for t in range(whole, num_steps):
        for i in range(Z):
            for j in range(Z):
                pairs[i, j] += alphas[t, i] * gains[t, j]


@njit(cache=True, fastmath=_FAST)
def _expect(rows, offsets, table, is_log, initial, transition, incoming, most):
    """log p, the first sequence that is impossible (or -1), and the expected counts of (4) and (5).

    At most `most` steps are kept. A longer sequence is read twice: once for the belief at the start of each stretch of
    that length, and then stretch by stretch from the last to the first.
    """
    Z = len(initial)
    longest = 1
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    size = min(most, longest)
    alphas, gains = np.zeros((size + 1, Z)), np.empty((size, Z))
    starts = np.empty(((longest + size - 1) // size, 2, Z))  # belief and the alpha before it
    belief, beta = np.empty(Z), np.empty(Z)
    first, pairs, visits = np.zeros(Z), np.zeros((Z, Z)), np.zeros(table.shape)
    log_likelihood = 0.0
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        if begin == end:
            continue
        stretches = (end - begin + size - 1) // size
        _copy(initial, belief)
        for j in range(Z):
            alphas[0, j] = 0.0  # nothing leads to the first step
        for k in range(stretches):
            a, b = begin + k * size, min(end, begin + (k + 1) * size)
            _copy(belief, starts[k, 0])
            _copy(alphas[0], starts[k, 1])
            found = _forward(rows[a:b], table, is_log, incoming, belief, alphas, gains)
            if found == -np.inf:
                return found, s, first, pairs, visits
            log_likelihood += found
            if k < stretches - 1:
                _copy(alphas[b - a], alphas[0])
        for j in range(Z):
            beta[j] = 1.0
        for k in range(stretches - 1, -1, -1):
            a, b = begin + k * size, min(end, begin + (k + 1) * size)
            if k < stretches - 1:
                _carry(gains[0], transition, 1.0, beta)  # (3), from the first step of the stretch behind
                _copy(starts[k, 0], belief)
                _copy(starts[k, 1], alphas[0])
                _forward(rows[a:b], table, False, incoming, belief, alphas, gains)  # logs were left before
            _backward(rows[a:b], transition, beta, alphas, gains, visits)
            _add_pairs(alphas, gains, b - a, pairs)
        for j in range(Z):
            first[j] += alphas[1, j] * beta[j]
    return log_likelihood, -1, first, pairs, visits


@njit(cache=True, fastmath=_FAST)
def _log_likelihood(rows, offsets, table, is_log, initial, incoming):
    Z = len(initial)
    belief, joint = np.empty(Z), np.empty(Z)
    log_likelihood = 0.0
    for s in range(len(offsets) - 1):
        _copy(initial, belief)
        for t in range(offsets[s], offsets[s + 1]):
            if is_log:
                log_likelihood += _leave_logs(belief, table[rows[t]])
            evidence = _meet(belief, table[rows[t]], joint)
            if evidence == 0.0:
                return -np.inf
            _carry(joint, incoming, 1.0 / evidence, belief)
            log_likelihood += np.log(evidence)
    return log_likelihood


@njit(cache=True, fastmath=_FAST)
def _score(belief, lengths, rows, table, target_rows, target_table, is_log, incoming):
    """log p of each target (B, T), 0 behind the end of a row. `belief` (B, Z) becomes that after the last step."""
    joint = np.empty(belief.shape[1])
    result = np.zeros(rows.shape)
    for b in range(len(rows)):
        for t in range(lengths[b]):
            likely, wanted = table[rows[b, t]], target_table[target_rows[b, t]]
            if is_log:
                _leave_logs(belief[b], likely)
            evidence = _meet(belief[b], likely, joint)
            if evidence == 0.0:
                _copy(belief[b], joint)
                evidence = 1.0
            _carry(joint, incoming, 1.0 / evidence, belief[b])
            if is_log:
                result[b, t] = _leave_logs(belief[b], wanted)
            result[b, t] += np.log(_meet(belief[b], wanted, joint))
    return result


@njit(cache=True, fastmath=_FAST)
def _log_normal(values, is_observed, mean, scale):
    """(8) in logs, (N, Z). Distances are cut at 1e150 scales, so that their squares are finite."""
    result = np.zeros((len(values), len(mean)))
    constant = -np.log(scale) - 0.5 * np.log(2 * np.pi)  # (Z, C)
    for n in range(len(values)):
        for c in range(values.shape[1]):
            if is_observed[n, c]:
                for j in range(len(mean)):
                    distance = min(abs(values[n, c] - mean[j, c]) / scale[j, c], LARGEST)
                    result[n, j] += constant[j, c] - 0.5 * distance * distance
    return result


@njit(cache=True, fastmath=_FAST)
def _squares(values, is_observed, visits, mean, spread):
    """Sum of squared distances to the mean of each state, in units of spread and weighted by its visits, (Z, C)."""
    result = np.zeros(mean.shape)
    for n in range(len(values)):
        for c in range(values.shape[1]):
            if is_observed[n, c]:
                for j in range(len(mean)):
                    distance = (values[n, c] - mean[j, c]) / spread[c]
                    result[j, c] += visits[n, j] * distance * distance
    return result


@njit(cache=True)
def _viterbi(rows, log_table, log_initial, log_incoming):
    """(6), and the path found by going back from its end. Of equally good states the first is taken."""
    T, Z = len(rows), len(log_initial)
    came_from = np.zeros((T, Z), dtype=np.int32)
    best, previous = log_initial + log_table[rows[0]], np.empty(Z)
    for t in range(1, T):
        _copy(best, previous)
        for j in range(Z):
            top, top_state = previous[0] + log_incoming[j, 0], 0
            for i in range(1, Z):
                through = previous[i] + log_incoming[j, i]
                if through > top:
                    top, top_state = through, i
            best[j] = top + log_table[rows[t], j]
            came_from[t, j] = top_state
    path = np.empty(T, dtype=np.int64)
    path[T - 1] = np.argmax(best)
    for t in range(T - 1, 0, -1):
        path[t - 1] = came_from[t, path[t]]
    return path, best[path[T - 1]]


@njit(cache=True)
def _draw(cumulative, uniform):
    """The first place whose cumulative probability lies above uniform, a number in [0, 1)."""
    return min(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"), len(cumulative) - 1)


@njit(cache=True)
def _walk(initial, transition, uniforms):
    """Hidden states (T,) from cumulative probabilities and a number in [0, 1) for each step."""
    states = np.empty(len(uniforms), dtype=np.int64)
    for t in range(len(uniforms)):
        states[t] = _draw(initial if t == 0 else transition[states[t - 1]], uniforms[t])
    return states


@njit(cache=True)
def _draw_each(cumulative, which, uniforms):
    """One draw for each step, from the row that `which` names."""
    drawn = np.empty(len(uniforms), dtype=np.int64)
    for t in range(len(uniforms)):
        drawn[t] = _draw(cumulative[which[t]], uniforms[t])
    return drawn
