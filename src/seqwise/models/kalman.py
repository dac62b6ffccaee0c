"""Kalman filter: a hidden state made of numbers moves linearly and is seen through noise; it is believed as a Gaussian.

Kalman 1960 (the filter), Rauch, Tung & Striebel 1965 (the smoother), Shumway & Stoffer 1982 (EM, and missing numbers).
Fixes in the HMM: its state is one of Z and cannot lie in between. Here it is a point in space, so that levels, trends
and cycles are kept as they are, and sums over states become a few products of matrices.

    x_0 ~ N(m0, P0),   x_t = A x_{t-1} + w_t,   w_t ~ N(0, Q)                                      (1) what moves
    y_t = H x_t + d + v_t,   v_t ~ N(0, diag(R))                                                   (2) what is seen

Filter. The belief N(m, P) goes from one step to the next by (3), then takes in the columns c that are observed, one
after another, by (4) and (5): given the state, columns are independent, so one that is missing is just left out.

    m <- A m,   P <- A P A' + Q                                                                    (3) predict
    e = y_c - h_c m - d_c,   s = h_c P h_c' + R_c,   log p(y_c | before) = log N(e; 0, s)          (4) compare
    k = P h_c' / s,   m <- m + k e,   P <- P - k s k'                                              (5) observe

Smoother. What all observations say of x_t, last step first; m, P are filtered, m+ and P+ what (3) makes of them:

    J = P A' inverse(P+)                                                                           (6)
    M_t = m + J (M_{t+1} - m+)                                                                     (7) mean
    cov(x_{t+1}, x_t) = V_{t+1} J'                                                                 (8)
    V_t = P - J A P + J V_{t+1} J'                                                                 (9) covariance

EM. With expectations E by (7) to (9), each parameter goes to where the expected log-likelihood is highest:

    A = sum of E[x_t x_{t-1}']  inverse(sum of E[x_{t-1} x_{t-1}'])                                (10)
    Q = mean of E[(x_t - A x_{t-1}) (x_t - A x_{t-1})']                                            (11)
    h_c, d_c: regression of y_c on (x_t, 1) over the steps where c is observed                     (12)
    R_c = mean of E[(y_c - h_c x_t - d_c)^2] over the same steps                                   (13)
    m0 = mean of E[x_0],   P0 = mean of E[(x_0 - m0) (x_0 - m0)']                                  (14)

Two limits keep the numbers sound. No variance in Q, R and P0 is below a floor: raising the eigenvalues that are lower
is the exact maximum under that limit. No eigenvalue of A lets a state outgrow the series: where (10) would, A goes only
as far towards it as the limit allows and the expected log-likelihood gains. So the likelihood never falls.

Shapes: B batch, T steps, C columns, D state width, N steps of all series together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.distributions import MultivariateNormal

from ..data.batch import Batch, Values
from ..errors import CheckpointError, ConfigError, DataError
from .contract import Interface, State

Series = tuple[np.ndarray, np.ndarray | None]
"""Values (T, C) and is_observed (T, C), which is None where nothing is missing; no unobserved row stands first."""

GROWTH = 0.3  # no eigenvalue of A grows by more than exp(0.3), a third, over the longest series
LARGEST = 1e150  # numbers beyond this could not be squared
SETTLED = 1e-13  # a covariance that changes by less, relative to its own scale, has converged
LOG_TWO_PI = float(np.log(2 * np.pi))
PARAMETERS = ("A", "Q", "H", "d", "R", "m0", "P0")


@dataclass(frozen=True)
class KalmanConfig:
    state_dim: int = 16
    """D: numbers in the hidden state. A trend takes two, each tone of a season two, and the rest is learned freely."""
    season: int = 0
    """Steps after which the series repeats itself, for the start of learning; 0 where it does not."""
    init: Literal["subspace", "random"] = "subspace"
    """Where EM starts: from trend, season and what else of the past foretells the future, or from random dynamics."""
    noise_floor: float = 1e-6
    """Least variance of any noise, in a state or a column; times the variance of the column where that is above 1."""

    def __post_init__(self) -> None:
        if self.state_dim < 1:
            raise ConfigError(f"model.state_dim = {self.state_dim} should be at least 1.")
        if self.season < 0:
            raise ConfigError(f"model.season = {self.season} should be 0 (none) or a number of steps.")
        if not 1e-8 <= self.noise_floor <= 1:
            raise ConfigError(f"model.noise_floor = {self.noise_floor} should lie between 1e-8 and 1.")


@dataclass(frozen=True)
class Filtered:
    """What the observations so far say of the state, at the steps t = 1..T."""

    predicted_means: np.ndarray  # (T, D) of p(x_t | y_1..y_{t-1})
    predicted_covariances: np.ndarray  # (T, D, D)
    means: np.ndarray  # (T, D) of p(x_t | y_1..y_t)
    covariances: np.ndarray  # (T, D, D)
    log_likelihoods: np.ndarray  # (T,) log p(y_t | y_1..y_{t-1}), nats; 0 where nothing is observed


@dataclass(frozen=True)
class Smoothed:
    """What all observations say of the state, at the steps t = 1..T and at the start before them."""

    start_mean: np.ndarray  # (D,) of p(x_0 | y_1..y_T)
    start_covariance: np.ndarray  # (D, D)
    means: np.ndarray  # (T, D) of p(x_t | y_1..y_T)
    covariances: np.ndarray  # (T, D, D)
    cross_covariances: np.ndarray  # (T, D, D) of x_t (rows) and x_{t-1} (columns), given y_1..y_T


class Kalman:
    """Parameters from `initialise`, then `em_step` again and again.

    Its state is the belief N(mean, covariance) of x at the row that is read next, given the rows before it. The first
    row of a series shows nothing and stands for x_0, so a fresh belief is N(m0, P0).
    """

    context = None
    carries_state = True
    score_tracks = 1
    """Each step waits for the one before: reading several stretches side by side gains nothing."""

    def __init__(self, config: KalmanConfig, interface: Interface):
        if interface.num_columns < 1:
            raise ConfigError("a Kalman filter reads columns of numbers, and this data has none; choose another model.")
        self.config, self.num_columns = config, interface.num_columns
        D, C = config.state_dim, self.num_columns
        # before anything is learned, columns are white noise of variance 1
        self.A, self.Q, self.m0, self.P0 = _idle(D)
        self.H, self.d, self.R = np.zeros((C, D)), np.zeros(C), np.ones(C)

    # -- learning ------------------------------------------------------------------------------------------------

    def initialise(self, sequences: Sequence[Series], seed: int = 0) -> None:
        """Where EM starts. It climbs to the nearest peak, so this decides what it can find.

        "subspace" takes, in this order and as far as D goes, a trend, the tones of the season that matter, and those
        combinations of past rows that foretell most of the coming ones. `seed` is for "random" alone.
        """
        series = self._checked(sequences)
        D, C, floor = self.config.state_dim, self.num_columns, self.config.noise_floor
        filled = [_bridge_gaps(values, seen) for values, seen in series]
        if self.config.init == "random":
            random, rows = np.random.default_rng(seed), np.concatenate(filled)
            self.A, self.Q, self.m0, self.P0 = _idle(D)
            self.A = 0.9 * np.linalg.qr(random.normal(size=(D, D)))[0]  # turns and forgets
            self.H = random.normal(size=(C, D)) / np.sqrt(2 * D)
            self.d, self.R = rows.mean(axis=0), np.maximum(rows.var(axis=0) / 2, floor)
        else:
            self._start_from_structure(filled)
        is_known = np.concatenate([seen for _, seen in series]).any(axis=0)
        self.H[~is_known], self.d[~is_known], self.R[~is_known] = 0.0, 0.0, 1.0

    def em_step(self, sequences: Sequence[Series]) -> float:
        """One iteration of EM. Returns log p of all series, in nats, under the parameters that it then replaces.

        Called again with the same series, it never returns less.
        """
        series = self._checked(sequences)
        moments = self._moments(*series[0])
        for values, seen in series[1:]:
            moments = moments.plus(self._moments(values, seen))
        self._maximise(moments)
        return moments.log_likelihood

    def log_likelihood(self, sequences: Sequence[Series]) -> float:
        """log p of everything observed in all series, in nats."""
        return float(sum(self._forward(*one).log_likelihoods.sum() for one in self._checked(sequences)))

    def _moments(self, values: np.ndarray, seen: np.ndarray) -> _Moments:
        """The E-step for one series."""
        forward = self._forward(values, seen)
        backward = self._backward(forward, keep=False)
        means, (before, now) = backward.means, (backward.means[:-1], backward.means[1:])
        with_one = np.concatenate([now, np.ones((len(values), 1))], axis=1)  # (T, D+1): x_t and 1
        centred = values - self.d  # squares of numbers far from zero would lose what matters
        states, with_values = [], []
        for c in range(self.num_columns):
            there = seen[:, c]
            total = with_one[there].T @ with_one[there]
            total[:-1, :-1] += backward.column_totals[c]
            states.append(total)
            with_values.append(centred[there, c] @ with_one[there])
        first, last = (V + np.outer(m, m) for V, m in ((backward.first, means[0]), (backward.last, means[-1])))
        now_square = now.T @ now + backward.total
        return _Moments(
            log_likelihood=float(forward.log_likelihoods.sum()),
            num_series=1,
            num_steps=len(values),
            longest=len(values),
            start=means[0],
            start_square=first,
            now=now_square,
            cross=now.T @ before + backward.cross_total,
            before=now_square + first - last,
            counts=seen.sum(axis=0),
            states=np.stack(states),
            with_values=np.stack(with_values),
            squares=(centred**2).sum(axis=0, where=seen),
        )

    def _maximise(self, moments: _Moments) -> None:
        """The M-step."""
        floor = self.config.noise_floor
        limit = 1 + GROWTH / moments.longest
        self.A, self.Q = moments.best_dynamics(self.A, limit=limit, floor=floor)  # (10) (11)
        for c in np.flatnonzero(moments.counts):  # a column that was never observed stays as it is
            weights = np.linalg.solve(moments.states[c], moments.with_values[c])  # (12)
            rest = moments.squares[c] - 2 * weights @ moments.with_values[c] + weights @ moments.states[c] @ weights
            self.H[c], self.d[c] = weights[:-1], self.d[c] + weights[-1]
            mean, square = moments.with_values[c, -1] / moments.counts[c], moments.squares[c] / moments.counts[c]
            self.R[c] = max(rest / moments.counts[c], floor * max(1.0, square - mean**2))  # (13)
        self.m0 = moments.start / moments.num_series
        self.P0 = _above(moments.start_square / moments.num_series - np.outer(self.m0, self.m0), floor)  # (14)

    def _start_from_structure(self, filled: list[np.ndarray]) -> None:
        """Parts whose course is known in advance (trend, tones), and predictive states of what they leave over."""
        D, C, floor = self.config.state_dim, self.num_columns, self.config.noise_floor
        rows = np.concatenate(filled)  # (N, C)
        parts = _find_parts(rows, [len(one) for one in filled], self.config.season, most=D - max(1, D // 4))
        course = np.concatenate([part.course for part in parts] or [np.empty((len(rows), 0))], axis=1)  # (N, k)
        shown = np.concatenate([part.shown for part in parts] or [np.empty(0, dtype=bool)])
        k = len(shown)
        known = np.concatenate([course[:, shown], np.ones((len(rows), 1))], axis=1)
        weights = np.linalg.lstsq(known, rows, rcond=None)[0]
        rest = rows - known @ weights
        self.A, self.Q, self.m0, self.P0 = _idle(D)
        self.H = np.zeros((C, D))
        self.H[:, :k][:, shown], self.d = weights[:-1].T, weights[-1]
        at = 0
        for part in parts:
            here = slice(at, at + len(part.start))
            self.A[here, here], self.Q[here, here], self.m0[here] = part.A, np.diag(part.noise), part.start
            self.P0[here, here] *= 0.01
            at = here.stop
        ends = np.cumsum([len(one) for one in filled])[:-1]
        states, seen_by = _predictive_states(np.split(rest, ends), self.config.season, most=D - k)
        if states:
            now = np.concatenate(states)
            here = slice(k, k + now.shape[1])
            before, after = (np.concatenate([x[a:b] for x in states]) for a, b in ((0, -1), (1, None)))
            A = _within(_regression(before, after), limit=1.0)
            noise = after - before @ A.T
            self.A[here, here], self.Q[here, here] = A, _above(noise.T @ noise / len(noise), floor)
            target = np.concatenate(seen_by)
            self.H[:, here] = _regression(now, target)
            rest = target - now @ self.H[:, here].T
        # half of what is unexplained is taken for noise of the columns, half is left to that of the states
        self.R = np.maximum((rest**2).mean(axis=0) / 2, max(1e-3, floor) * np.maximum(1.0, rows.var(axis=0)))
        self.Q, self.P0 = _above(self.Q, floor), _above(self.P0, floor)

    # -- what is believed ----------------------------------------------------------------------------------------

    def filter(self, values: np.ndarray, is_observed: np.ndarray | None = None) -> Filtered:
        """Beliefs about one series: values (T, C), is_observed (T, C) where some are missing."""
        forward = self._forward(*self._checked([(values, is_observed)])[0])
        covariances = forward.covariances[forward.slot]  # (T+1, D, D)
        return Filtered(
            forward.predicted_means[1:],
            self.A @ covariances[:-1] @ self.A.T + self.Q,  # (3)
            forward.means[1:],
            covariances[1:],
            forward.log_likelihoods[1:],
        )

    def smooth(self, values: np.ndarray, is_observed: np.ndarray | None = None) -> Smoothed:
        """The same with hindsight: values (T, C), is_observed (T, C) where some are missing."""
        forward = self._forward(*self._checked([(values, is_observed)])[0])
        backward = self._backward(forward, keep=True)
        means, covariances = backward.means, backward.covariances[backward.slot]  # of x_0 to x_T
        return Smoothed(means[0], covariances[0], means[1:], covariances[1:], backward.crosses[backward.slot[:-1]])

    def sample(self, length: int, seed: int) -> np.ndarray:
        """Rows drawn from the model, (T, C)."""
        random = np.random.default_rng(seed)
        state = random.multivariate_normal(self.m0, self.P0)
        moves = random.multivariate_normal(np.zeros(len(self.Q)), self.Q, size=length)
        rows = np.empty((length, self.num_columns))
        for t in range(length):
            state = self.A @ state + moves[t]  # (1)
            rows[t] = self.H @ state + self.d
        return rows + random.normal(size=rows.shape) * np.sqrt(self.R)  # (2)

    def _forward(self, values: np.ndarray, seen: np.ndarray) -> _Forward:
        """Filter one series, the start included. The fast way: what is observed, and not what it says, decides on the
        covariances, so they come first, and only as many as differ."""
        nothing = np.zeros((1, self.num_columns))
        values, seen = np.concatenate([nothing, values]), np.concatenate([nothing.astype(bool), seen])
        A, Q, H, d, R, m0, P0 = self._arrays
        slot, covariances, gains, scales = _covariances(A, Q, H, R, P0, seen)
        return _Forward(seen, slot, covariances, *_means(A, H, d, m0, values, seen, slot, gains, scales))

    def _backward(self, forward: _Forward, *, keep: bool) -> _Backward:
        """Smooth one series. To `keep` each covariance takes room; EM needs but their sums."""
        A, Q, *_ = self._arrays
        beliefs = (forward.slot, forward.covariances, forward.predicted_means, forward.means)
        means, slot, covariances, crosses, totals = _smooth(A, Q, *beliefs, forward.seen, keep)
        first, last = covariances[slot[0]], forward.covariances[forward.slot[-1]]
        return _Backward(means, first, last, totals[-2], totals[-1], totals[:-2], slot, covariances, crosses)

    # -- the verbs -----------------------------------------------------------------------------------------------

    def fresh_state(self, batch_size: int) -> State:
        mean, covariance = np.tile(self.m0, (batch_size, 1)), np.tile(self.P0, (batch_size, 1, 1))
        return State({"mean": torch.from_numpy(mean), "covariance": torch.from_numpy(covariance)})

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State]:
        """log density of the columns of each target that are observed, (B, T); 0 where none is, and in padding."""
        return self._read(batch.inputs["values"], batch.targets["values"], state)

    def start(self, prompt: Batch) -> tuple[MultivariateNormal, State]:
        """The distribution of the row (B, C) behind each prompt."""
        _, state = self._read(prompt.inputs["values"], None, None)
        return self._next(state), state

    def step(self, values: Tensor, state: State, is_observed: Tensor | None = None) -> tuple[MultivariateNormal, State]:
        """Values (B, C), with is_observed (B, C) where some are missing."""
        there = None if is_observed is None else is_observed.unsqueeze(1)
        _, state = self._read(Values(values.unsqueeze(1), there), None, state)
        return self._next(state), state

    def forecast(self, state: State, horizon: int) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each number in the next h rows, (B, h, C) each.

        95 % of the numbers are expected within 1.96 standard deviations of the mean.
        """
        if horizon < 1:
            raise ConfigError(f"a horizon of {horizon} steps is too short; ask for at least 1.")
        mean, covariance = (state.own[name].cpu().numpy() for name in ("mean", "covariance"))
        view, noise = self.H, self.R  # how the row to come sees the state, and what else is in it
        means, variances = [], []
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(horizon):
                means.append(mean @ view.T + self.d)  # (B, C)
                variances.append(((view @ covariance) * view).sum(axis=-1) + noise)
                noise = noise + ((view @ self.Q) * view).sum(axis=-1)
                view = view @ self.A
        if not np.isfinite(means[-1]).all() or not np.isfinite(variances[-1]).all():
            raise DataError(f"what this model learned grows beyond all numbers within {horizon} steps; ask for fewer.")
        return torch.from_numpy(np.stack(means, axis=1)), torch.from_numpy(np.sqrt(np.stack(variances, axis=1)))

    def _next(self, state: State) -> MultivariateNormal:
        H, noise = torch.from_numpy(self.H), torch.from_numpy(np.diag(self.R))
        mean = state.own["mean"] @ H.T + torch.from_numpy(self.d)
        return MultivariateNormal(mean, covariance_matrix=H @ state.own["covariance"] @ H.T + noise)

    def _read(self, inputs: Values, targets: Values | None, state: State | None) -> tuple[Tensor, State]:
        """log density of each target (B, T) after the inputs up to it, and the belief behind each row's last input."""
        state = state or self.fresh_state(inputs.shape[0])
        mean, covariance = (state.own[name].double().cpu().numpy().copy() for name in ("mean", "covariance"))
        values, seen = self._arrays_of(inputs)
        if targets is None:
            wanted, asked = values, np.zeros_like(seen)
        else:
            wanted, asked = self._arrays_of(targets)
        lengths = inputs.lengths.cpu().numpy()
        log_densities = _read(*self._arrays[:5], values, seen, wanted, asked, lengths, mean, covariance)
        return torch.from_numpy(log_densities), State(
            {"mean": torch.from_numpy(mean), "covariance": torch.from_numpy(covariance)}
        )

    def _arrays_of(self, field: Values) -> tuple[np.ndarray, np.ndarray]:
        """Values and what is observed of them, (B, T, C) each; padding is not observed."""
        values = field.values.double().cpu()
        seen = torch.ones(values.shape, dtype=torch.bool) if field.is_observed is None else field.is_observed.cpu()
        if field.is_step is not None:
            seen = seen & field.is_step.cpu().unsqueeze(-1)
        B, T, C = values.shape
        flat = self._checked_one((values.reshape(B * T, C).numpy(), seen.reshape(B * T, C).numpy()))
        return flat[0].reshape(B, T, C), flat[1].reshape(B, T, C)

    def _checked(self, sequences: Sequence[Series]) -> list[tuple[np.ndarray, np.ndarray]]:
        series = [self._checked_one(one) for one in sequences]
        if not series or min(len(values) for values, _ in series) == 0:
            raise DataError("a Kalman filter needs series of at least one step; found none, or an empty one.")
        return series

    def _checked_one(self, one: Series) -> tuple[np.ndarray, np.ndarray]:
        """Values (T, C), zero where missing, and whether each is observed."""
        values = np.ascontiguousarray(one[0], dtype=np.float64)
        seen = np.ones(values.shape, dtype=bool) if one[1] is None else np.ascontiguousarray(one[1], dtype=bool)
        if values.ndim != 2 or values.shape[1] != self.num_columns or seen.shape != values.shape:
            raise DataError(
                f"a series should be (steps, {self.num_columns}), and is_observed like it; "
                f"found {values.shape} and {seen.shape}."
            )
        is_bad = seen & ~(np.abs(values) <= LARGEST)
        if is_bad.any():
            t, c = np.argwhere(is_bad)[0]
            raise DataError(
                f"step {t + 1}, column {c + 1} holds {values[t, c]}, which is no number to compute with; "
                "mark what is missing in is_observed."
            )
        return np.where(seen, values, 0.0), seen

    # -- the run folder ------------------------------------------------------------------------------------------

    @property
    def _arrays(self) -> list[np.ndarray]:
        """All parameters, laid out as the compiled loops want them."""
        return [np.ascontiguousarray(getattr(self, name)) for name in PARAMETERS]

    @property
    def num_parameters(self) -> int:
        """Free numbers: of a symmetric matrix one half and the diagonal."""
        D, C = self.config.state_dim, self.num_columns
        return D * D + D * (D + 1) // 2 + C * D + 2 * C + D + D * (D + 1) // 2

    def state_dict(self) -> dict[str, Tensor]:
        return {name: torch.from_numpy(array.copy()) for name, array in zip(PARAMETERS, self._arrays, strict=True)}

    def load_state_dict(self, saved: dict[str, Tensor]) -> None:
        for name in PARAMETERS:
            if name not in saved:
                raise CheckpointError(f'the Kalman filter lacks "{name}"; its file is damaged.')
            found, expected = tuple(saved[name].shape), getattr(self, name).shape
            if found != expected:
                raise CheckpointError(
                    f'"{name}" of the Kalman filter has the shape {found}; its settings ask for {expected}.'
                )
        for name in PARAMETERS:
            setattr(self, name, saved[name].double().cpu().numpy().copy())


# -- learning, in parts ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Forward:
    """The filter over x_0 to x_T. Step t has the covariance at slot[t]: once it has settled, many steps share one."""

    seen: np.ndarray  # (T+1, C)
    slot: np.ndarray  # (T+1,)
    covariances: np.ndarray  # (slots, D, D), filtered
    predicted_means: np.ndarray  # (T+1, D)
    means: np.ndarray  # (T+1, D), filtered
    log_likelihoods: np.ndarray  # (T+1,)


@dataclass(frozen=True)
class _Backward:
    """The smoother over x_0 to x_T: means, V_t (9) and sums of it, and the covariances of x_{t+1} and x_t (8)."""

    means: np.ndarray  # (T+1, D)
    first: np.ndarray  # (D, D) V_0
    last: np.ndarray  # (D, D) V_T
    total: np.ndarray  # (D, D) sum of V_1..V_T
    cross_total: np.ndarray  # (D, D) sum of (8)
    column_totals: np.ndarray  # (C, D, D) sum of V_t over the steps at which a column is observed
    slot: np.ndarray  # (T+1,) where in the next two V_t and (8) are, if they were kept
    covariances: np.ndarray  # (slots, D, D)
    crosses: np.ndarray  # (slots, D, D)


@dataclass(frozen=True)
class _Moments:
    """Sums over all steps of all series, of expectations given all observations: what the M-step needs to know."""

    log_likelihood: float
    num_series: int
    num_steps: int
    longest: int
    start: np.ndarray  # (D,) E[x_0]
    start_square: np.ndarray  # (D, D) E[x_0 x_0']
    now: np.ndarray  # (D, D) E[x_t x_t'], t = 1..T
    cross: np.ndarray  # (D, D) E[x_t x_{t-1}']
    before: np.ndarray  # (D, D) E[x_{t-1} x_{t-1}']
    counts: np.ndarray  # (C,) steps at which a column is observed; the sums below are over these
    states: np.ndarray  # (C, D+1, D+1) E[z_t z_t'], z_t = (x_t, 1)
    with_values: np.ndarray  # (C, D+1) (y_c - d_c) E[z_t], d_c being the offset so far
    squares: np.ndarray  # (C,) (y_c - d_c)^2

    def plus(self, other: _Moments) -> _Moments:
        sums = {name: mine + getattr(other, name) for name, mine in vars(self).items()}
        return _Moments(**{**sums, "longest": max(self.longest, other.longest)})

    def best_dynamics(self, old: np.ndarray, *, limit: float, floor: float) -> tuple[np.ndarray, np.ndarray]:
        """A and Q by (10) and (11), within the limits. Towards (10) the expected log-likelihood only rises, so from the
        old A a part of the way is always a gain; lowering the eigenvalues of (10) often gains more."""
        best = np.linalg.solve(self.before, self.cross.T).T
        if _radius(best) <= limit:
            return best, self._noise(best, floor)[1]
        least, A = self._noise(old, floor)[0], old
        for candidate in (_within(best, limit), *(old + share * (best - old) for share in 0.5 ** np.arange(1, 12))):
            if _radius(candidate) <= limit and self._noise(candidate, floor)[0] >= least:
                A = candidate
                break
        return A, self._noise(A, floor)[1]

    def _noise(self, A: np.ndarray, floor: float) -> tuple[float, np.ndarray]:
        """The best Q for this A (11), and the expected log-likelihood they give, up to factor and constant."""
        spread = (self.now - A @ self.cross.T - self.cross @ A.T + A @ self.before @ A.T) / self.num_steps
        found, directions = np.linalg.eigh((spread + spread.T) / 2)
        kept = np.maximum(found, floor)
        return -float((np.log(kept) + found / kept).sum()), _composed(directions, kept)


def _above(matrix: np.ndarray, floor: float) -> np.ndarray:
    """The symmetric matrix with eigenvalues below the floor raised to it."""
    found, directions = np.linalg.eigh((matrix + matrix.T) / 2)
    return _composed(directions, np.maximum(found, floor))


def _composed(directions: np.ndarray, eigenvalues: np.ndarray) -> np.ndarray:
    matrix = (directions * eigenvalues) @ directions.T
    return (matrix + matrix.T) / 2


def _radius(A: np.ndarray) -> float:
    """By how much the fastest mode of A grows in a step."""
    return float(np.abs(np.linalg.eigvals(A)).max())


def _within(A: np.ndarray, limit: float) -> np.ndarray:
    """A with the eigenvalues that are larger than the limit brought back to it."""
    found, directions = np.linalg.eig(A)
    size = np.abs(found)
    if size.max() <= limit:
        return A
    limit *= 1 - 1e-9  # room for rounding
    lowered = found * np.minimum(1.0, limit / np.maximum(size, limit))
    result = np.real((directions * lowered) @ np.linalg.pinv(directions))
    # where directions nearly coincide that loses all precision, and all of A is made smaller
    return result if _radius(result) <= limit * (1 + 1e-9) else A * (limit / size.max())


def _idle(D: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A, Q, m0 and P0 of states that wander about zero with variance 1."""
    return 0.9 * np.eye(D), 0.19 * np.eye(D), np.zeros(D), np.eye(D)


# -- where EM starts ---------------------------------------------------------------------------------------------

MOST_TONES = 100
LEAST_TREND = 0.2  # of the variance; a weaker one is better left to slow states
LEAST_TONE = 0.01  # of the variance that is left
CLEAR_TONE = 0.3  # of the variance; from there on its frequency can be told better than in whole steps
DRIFT = 0.01  # variance that trend and tones gather over the whole series
WIDEST_WINDOW = 512  # numbers in a stretch of the past; windows are products of that size


@dataclass(frozen=True)
class _Part:
    """A few states whose course is known in advance: a trend, or one tone of a season."""

    A: np.ndarray  # (k, k)
    start: np.ndarray  # (k,) at x_0
    course: np.ndarray  # (N, k) at the steps of all series
    shown: np.ndarray  # (k,) bool: whether columns see it directly
    noise: np.ndarray  # (k,)


def _bridge_gaps(values: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Straight lines across what is missing: good enough for a start, and EM goes on with the gaps themselves."""
    filled, steps = np.zeros_like(values), np.arange(len(values))
    for c in np.flatnonzero(seen.any(axis=0)):
        there = seen[:, c]
        filled[:, c] = np.interp(steps, steps[there], values[there, c])
    return filled


def _find_parts(rows: np.ndarray, lengths: list[int], season: int, *, most: int) -> list[_Part]:
    """Trend and tones that explain enough of the rows (N, C), in at most `most` states."""
    N, longest = len(rows), max(lengths)
    times = np.concatenate([np.arange(1, length + 1) for length in lengths])
    rest, left, parts = rows - rows.mean(axis=0), most, []

    def explained(part: _Part) -> np.ndarray:
        course = part.course[:, part.shown]
        return course @ np.linalg.lstsq(course, rest, rcond=None)[0]

    if left >= 2 and longest >= 4:
        trend = _trend(times, longest)
        found = explained(trend)
        if (found**2).sum() > LEAST_TREND * (rest**2).sum():
            parts.append(trend)
            rest, left = rest - found, left - 2
    if 1 < season <= longest // 2:
        # a season read off noisy data is a little off, which adds up: try others, up to a turn apart at the end
        nearby = season / (1 + np.arange(-16, 17) / 16 * season / longest)
        power = [(explained(_tone(times, longest, 1 / near)) ** 2).sum() for near in nearby]
        is_clear = max(power) > CLEAR_TONE * (rest**2).sum() and max(power) > 1.1 * power[16]
        exact = float(nearby[np.argmax(power)]) if is_clear else season
        tones = [_tone(times, longest, n / exact) for n in range(1, min(season // 2, MOST_TONES) + 1)]
        for tone in sorted(tones, key=lambda tone: -(explained(tone) ** 2).sum()):
            found = explained(tone)
            # of N random numbers, a tone explains 2 / N
            if len(tone.start) > left or (found**2).sum() < (LEAST_TONE + 4 / N) * ((rest - found) ** 2).sum():
                break
            parts.append(tone)
            rest, left = rest - found, left - len(tone.start)
    return parts


def _trend(times: np.ndarray, longest: int) -> _Part:
    """A level, scaled to variance 1, and the slope that is added to it at each step."""
    slope, middle = np.sqrt(12) / longest, (longest + 1) / 2
    course = np.stack([slope * (times - middle), np.full(len(times), slope)], axis=1)
    noise = DRIFT / longest * np.array([1.0, 0.01])
    start = np.array([-slope * middle, slope])
    return _Part(np.array([[1.0, 1.0], [0.0, 1.0]]), start, course, np.array([True, False]), noise)


def _tone(times: np.ndarray, longest: int, frequency: float) -> _Part:
    """A point that goes round once in 1 / frequency steps; at every other step, one number that changes its sign."""
    angle = 2 * np.pi * frequency
    size = 1 if frequency == 0.5 else 2
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    course = np.stack([np.cos(angle * times), -np.sin(angle * times)], axis=1)
    noise = np.full(size, DRIFT / longest)
    return _Part(turn[:size, :size], np.eye(2)[0, :size], course[:, :size], np.ones(size, dtype=bool), noise)


def _predictive_states(rests: list[np.ndarray], season: int, *, most: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """States that are combinations of past rows: those that foretell most of the rows to come (Larimore 1990).

    Canonical correlations of the p rows before a step with the p rows from it on. Returns, for each series that is long
    enough, the states (T - 2p + 1, k) of its steps from p on and the rows (T - 2p + 1, C) that were then seen.
    """
    N, C, longest = sum(len(rest) for rest in rests), rests[0].shape[1], max(len(rest) for rest in rests)
    lags = min(max(N // 20, 4), max(WIDEST_WINDOW // C, 1), longest // 3)
    if season > 1:
        lags = min(lags, season + 1)
    usable = [rest for rest in rests if len(rest) > 2 * lags]
    if lags < 1 or most < 1 or sum(float((rest**2).sum()) for rest in usable) < 1e-9 * N:
        return [], []
    windows = [_windows(rest, 2 * lags) for rest in usable]  # (T - 2p + 1, 2 p C)
    joined = np.concatenate(windows)
    past, future = joined[:, : lags * C], joined[:, lags * C :]
    whiten_past, whiten_future = (_whitening(part.T @ part / len(part)) for part in (past, future))
    agreement = whiten_future @ (future.T @ past / len(past)) @ whiten_past
    directions = np.linalg.svd(agreement)[2][:most]  # (k, pC)
    states = [window[:, : lags * C] @ whiten_past @ directions.T for window in windows]
    return states, [rest[lags : len(rest) - lags + 1] for rest in usable]


def _windows(rows: np.ndarray, length: int) -> np.ndarray:
    """All stretches of that length, one in a row: (T - length + 1, length C)."""
    stretches = np.lib.stride_tricks.sliding_window_view(rows, length, axis=0)  # (T - length + 1, C, length)
    return stretches.transpose(0, 2, 1).reshape(len(stretches), -1)


def _regression(states: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Weights W with rows = states W', held back a little: the states have variance 1, and may be more than steps."""
    ridge = 1e-3 * len(states) * np.eye(states.shape[1])
    return np.linalg.solve(states.T @ states + ridge, states.T @ rows).T


def _whitening(covariance: np.ndarray) -> np.ndarray:
    """Its inverse square root; directions with hardly any variance are held back."""
    found, directions = np.linalg.eigh(covariance)
    return _composed(directions, 1 / np.sqrt(np.maximum(found, 0) + 1e-3 * found.mean() + 1e-12))


# -- the compiled loops ------------------------------------------------------------------------------------------
# Products are written out: D is small, and numba's own would need scipy. Matrices to calculate in are made once.


@njit(cache=True)
def _read(A, Q, H, d, R, inputs, seen, targets, asked, lengths, means, covariances):
    """log p of what is asked of the targets (B, T, C), after the inputs up to each; beliefs (B, ...) move in place.

    This is (3) to (5) step by step; `_covariances` and `_means` do the same for one long series.
    """
    num_rows, num_steps, _ = inputs.shape
    D = len(A)
    At = A.T.copy()
    room, gain, moved = np.empty((D, D)), np.empty(D), np.empty(D)
    mean, covariance = np.empty(D), np.empty((D, D))
    log_densities = np.zeros((num_rows, num_steps))
    for row in range(num_rows):
        m, P = means[row], covariances[row]
        for t in range(lengths[row]):
            _observe(m, P, inputs[row, t], seen[row, t], H, d, R, gain)
            _move(A, m, moved)
            _copy_row(moved, m)
            _spread(A, At, P, Q, room, P)
            _copy_row(m, mean)
            _copy(P, covariance)
            log_densities[row, t] = _observe(mean, covariance, targets[row, t], asked[row, t], H, d, R, gain)
    return log_densities


@njit(cache=True)
def _observe(m, P, row, seen, H, d, R, gain):
    """(4) and (5) for each column of a row that is observed; m and P change in place. Returns log p of them."""
    log_density = 0.0
    for c in range(len(row)):
        if seen[c]:
            error = row[c] - d[c] - _dot(H[c], m)
            scale = _shrink(P, H[c], R[c], gain)
            for i in range(len(m)):
                m[i] += gain[i] * error
            log_density -= 0.5 * (LOG_TWO_PI + np.log(scale) + error * error / scale)
    return log_density


@njit(cache=True)
def _shrink(P, h, r, gain):
    """The part of (4) and (5) that does not depend on what was observed: s, k (into gain), and P in place."""
    D = len(P)
    for i in range(D):
        gain[i] = 0.0
    for i in range(D):
        for j in range(D):
            gain[j] += h[i] * P[i, j]
    scale = r
    for i in range(D):
        scale += gain[i] * h[i]
    for i in range(D):
        gain[i] /= scale
    for i in range(D):
        for j in range(D):
            P[i, j] -= gain[i] * scale * gain[j]
    return scale


@njit(cache=True)
def _covariances(A, Q, H, R, P0, seen):
    """Filtered covariances of x_0 to x_T by (3) and (5), with s and k of each column.

    While the same columns are observed, P converges; from then on steps share one slot: slot (T+1,) says which.
    """
    num_steps, C = seen.shape
    D = len(A)
    At = A.T.copy()
    slot = np.empty(num_steps, dtype=np.int64)
    filtered, gains, scales = np.empty((16, D, D)), np.empty((16, C, D)), np.empty((16, C, 1))
    P, before, room = P0.copy(), np.empty((D, D)), np.empty((D, D))
    last = -1
    is_settled = False
    for t in range(num_steps):
        if t > 0:
            is_same = _is_same(seen[t], seen[t - 1])
            if not (is_settled and is_same):
                _copy(P, before)
                _spread(A, At, filtered[last], Q, room, P)
                is_settled = is_same and _is_alike(P, before)
            if is_settled:
                slot[t] = last
                continue
        last += 1
        if last == len(filtered):
            filtered, gains = _enlarged(filtered, num_steps), _enlarged(gains, num_steps)
            scales = _enlarged(scales, num_steps)
        slot[t] = last
        _copy(P, filtered[last])
        for c in range(C):
            if seen[t, c]:
                scales[last, c, 0] = _shrink(filtered[last], H[c], R[c], gains[last, c])
    return slot, filtered[: last + 1], gains[: last + 1], scales[: last + 1]


@njit(cache=True)
def _means(A, H, d, m0, values, seen, slot, gains, scales):
    """Predicted and filtered means (T+1, D) by (3) and (5), and log p of each row (4)."""
    num_steps, C = values.shape
    D = len(A)
    predicted, filtered = np.empty((num_steps, D)), np.empty((num_steps, D))
    log_likelihoods = np.zeros(num_steps)
    _copy_row(m0, predicted[0])
    for t in range(num_steps):
        if t > 0:
            _move(A, filtered[t - 1], predicted[t])
        m = filtered[t]
        _copy_row(predicted[t], m)
        for c in range(C):
            if seen[t, c]:
                error, scale = values[t, c] - d[c] - _dot(H[c], m), scales[slot[t], c, 0]
                for i in range(D):
                    m[i] += gains[slot[t], c, i] * error
                log_likelihoods[t] -= 0.5 * (LOG_TWO_PI + np.log(scale) + error * error / scale)
    return predicted, filtered, log_likelihoods


@njit(cache=True)
def _smooth(A, Q, slot, filtered, predicted_means, filtered_means, seen, keep):
    """(6) to (9), last step first. Again steps share a slot once V has settled: V_t and the covariance of x_{t+1}, x_t
    are at places[t] of `smoothed` and `crosses`, if they are to be kept; if not, only the last two are there.

    Totals (C+2, D, D): of V_t over the steps at which each column is seen, over all steps, and of the covariances.
    """
    num_steps, D = predicted_means.shape
    C = seen.shape[1]
    At = A.T.copy()
    means, totals = np.empty((num_steps, D)), np.zeros((C + 2, D, D))
    places = np.empty(num_steps, dtype=np.int64)
    smoothed, crosses = np.empty((16, D, D)), np.zeros((16, D, D))
    ahead, AP, root = np.empty((D, D)), np.empty((D, D)), np.zeros((D, D))
    J, Jt, left = np.empty((D, D)), np.empty((D, D)), np.empty((D, D))
    last = 0
    at = -1  # the slot that J belongs to
    is_settled = False
    _copy_row(filtered_means[num_steps - 1], means[num_steps - 1])
    _copy(filtered[slot[num_steps - 1]], smoothed[0])
    places[num_steps - 1] = 0
    for t in range(num_steps - 2, -1, -1):
        _add_seen(smoothed[last], seen[t + 1], totals)
        is_new = slot[t] != at
        if is_new:
            at = slot[t]
            _spread(A, At, filtered[at], Q, AP, ahead)
            _copy(AP, Jt)
            _factor(ahead, root)
            _solve(root, Jt)  # (6), transposed
            _copy(Jt.T, J)
            _times(J, AP, left)
            for i in range(D):
                for j in range(D):
                    left[i, j] = filtered[at, i, j] - left[i, j]
        for i in range(D):
            x = filtered_means[t, i]
            for j in range(D):
                x += J[i, j] * (means[t + 1, j] - predicted_means[t + 1, j])  # (7)
            means[t, i] = x
        if is_new or not is_settled:
            before = last
            last = before + 1 if keep else 1 - before
            if last == len(smoothed):
                smoothed, crosses = _enlarged(smoothed, num_steps), _enlarged(crosses, num_steps)
            _times(smoothed[before], Jt, crosses[last])  # (8)
            _times(J, crosses[last], smoothed[last])
            _add_evenly(smoothed[last], left)  # (9)
            # V may stand still for a moment where J changes: only under one and the same J has it settled
            is_settled = not is_new and _is_alike(smoothed[last], smoothed[before])
        places[t] = last
        _add(crosses[last], totals[C + 1])
    return means, places, smoothed[: last + 1], crosses[: last + 1], totals


@njit(cache=True)
def _add_seen(V, seen, totals):
    """Add V to the totals of the columns that are seen, and to that of all steps."""
    C = len(seen)
    for c in range(C):
        if seen[c]:
            _add(V, totals[c])
    _add(V, totals[C])


@njit(cache=True)
def _add(matrix, total):
    for i in range(len(matrix)):
        for j in range(matrix.shape[1]):
            total[i, j] += matrix[i, j]


@njit(cache=True)
def _dot(a, b):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit(cache=True)
def _move(A, m, out):
    """out = A m."""
    for i in range(len(A)):
        out[i] = _dot(A[i], m)


@njit(cache=True)
def _times(a, b, out):
    """out = a b, which must not be a or b."""
    for i in range(len(a)):
        for j in range(b.shape[1]):
            out[i, j] = 0.0
        for k in range(len(b)):
            x = a[i, k]
            for j in range(b.shape[1]):
                out[i, j] += x * b[k, j]


@njit(cache=True)
def _spread(A, At, P, Q, AP, out):
    """out = A P A' + Q; out may be P. AP is left with A P."""
    _times(A, P, AP)
    _times(AP, At, out)
    _add_evenly(out, Q)


@njit(cache=True)
def _add_evenly(matrix, more):
    """matrix <- matrix + more, both symmetric but for rounding: now to the last bit."""
    for i in range(len(matrix)):
        for j in range(i + 1):
            x = 0.5 * (matrix[i, j] + more[i, j] + matrix[j, i] + more[j, i])
            matrix[i, j] = x
            matrix[j, i] = x


@njit(cache=True)
def _factor(P, root):
    """P = root root', root lower triangular (Cholesky)."""
    for i in range(len(P)):
        for j in range(i + 1):
            x = P[i, j]
            for k in range(j):
                x -= root[i, k] * root[j, k]
            root[i, j] = np.sqrt(x) if i == j else x / root[j, j]


@njit(cache=True)
def _solve(root, b):
    """b <- inverse(root root') b, in place."""
    D = len(root)
    for i in range(D):
        for k in range(i):
            for j in range(D):
                b[i, j] -= root[i, k] * b[k, j]
        for j in range(D):
            b[i, j] /= root[i, i]
    for i in range(D - 1, -1, -1):
        for k in range(i + 1, D):
            for j in range(D):
                b[i, j] -= root[k, i] * b[k, j]
        for j in range(D):
            b[i, j] /= root[i, i]


@njit(cache=True)
def _is_alike(P, before):
    for i in range(len(P)):
        for j in range(i + 1):
            change = P[i, j] - before[i, j]
            if change * change > SETTLED * SETTLED * P[i, i] * P[j, j]:
                return False
    return True


@njit(cache=True)
def _is_same(a, b):
    is_same = True
    for i in range(len(a)):
        is_same &= a[i] == b[i]
    return is_same


@njit(cache=True)
def _copy(matrix, out):
    """out = matrix; written out here and below, as numba takes seconds to compile an assignment to a slice."""
    for i in range(len(matrix)):
        for j in range(matrix.shape[1]):
            out[i, j] = matrix[i, j]


@njit(cache=True)
def _copy_row(row, out):
    for i in range(len(row)):
        out[i] = row[i]


@njit(cache=True)
def _enlarged(store, most):
    """The same with room for as many again, but not for more than will come."""
    more = np.empty((min(2 * len(store), max(most, len(store) + 1)), store.shape[1], store.shape[2]))
    for i in range(len(store)):
        _copy(store[i], more[i])
    return more
