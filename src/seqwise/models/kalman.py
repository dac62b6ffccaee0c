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
from torch import Tensor
from torch.distributions import MultivariateNormal

from ..data.batch import Batch, Values
from ..data.schema import Schema, ValueSpec
from ..errors import CheckpointError, ConfigError, DataError
from ..kernels.linear_gaussian import filter_batch, filter_covariances, filter_means, smooth
from ..layers.gaussian_moments import Moments, above, is_covariance, within
from ..layers.notes import is_recorded, note
from ..layers.series_structure import bridge_gaps, find_parts, predictive_states, regression
from .contract import State

Series = tuple[np.ndarray, np.ndarray | None]
"""Values (T, C) and is_observed (T, C), which is None where nothing is missing; no unobserved row stands first."""

GROWTH = 0.3  # no eigenvalue of A grows by more than exp(0.3), a third, over the longest series
MAX_VALUE = 1e150  # numbers beyond this could not be squared
PARAMETERS = ("A", "Q", "H", "d", "R", "m0", "P0")
EXPECTED = {"R": "variances should be above 0"} | dict.fromkeys(("Q", "P0"), "it should be a covariance")


@dataclass(frozen=True)
class KalmanConfig:
    state_dim: int = 16
    """D: numbers in the hidden state. A trend takes two, each tone of a season two, and the rest is learned freely."""
    season: int = 0
    """Steps after which the series repeats itself, for the start of learning; 0 where it does not."""
    init: Literal["subspace", "random"] = "subspace"
    """Where EM starts: from trend, season and what else of the past foretells the future, or from random dynamics."""
    noise_floor: float = 1e-6
    """Smallest variance of any noise, in a state or a column; times that of the column where it is above 1."""

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
    carries_state = continues = True
    score_tracks = 1
    """Each step waits for the one before: reading several segments side by side gains nothing."""

    def __init__(self, config: KalmanConfig, schema: Schema):
        if not isinstance(schema.only_input(), ValueSpec):
            raise ConfigError("a Kalman filter reads columns of numbers, and this data has none; choose another model.")
        self.config, self.num_columns = config, schema.only_input().size
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
        filled = [bridge_gaps(values, seen) for values, seen in series]
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

    def _moments(self, values: np.ndarray, seen: np.ndarray) -> Moments:
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
        return Moments(
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

    def _maximise(self, moments: Moments) -> None:
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
        self.P0 = above(moments.start_square / moments.num_series - np.outer(self.m0, self.m0), floor)  # (14)

    def _start_from_structure(self, filled: list[np.ndarray]) -> None:
        """Parts whose course is known in advance (trend, tones), and predictive states of what they leave over."""
        D, C, floor = self.config.state_dim, self.num_columns, self.config.noise_floor
        rows = np.concatenate(filled)  # (N, C)
        parts = find_parts(rows, [len(one) for one in filled], self.config.season, max_states=D - max(1, D // 4))
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
        states, seen_by = predictive_states(np.split(rest, ends), self.config.season, max_states=D - k)
        if states:
            now = np.concatenate(states)
            here = slice(k, k + now.shape[1])
            before, after = (np.concatenate([x[a:b] for x in states]) for a, b in ((0, -1), (1, None)))
            A = within(regression(before, after), limit=1.0)
            noise = after - before @ A.T
            self.A[here, here], self.Q[here, here] = A, above(noise.T @ noise / len(noise), floor)
            target = np.concatenate(seen_by)
            self.H[:, here] = regression(now, target)
            rest = target - now @ self.H[:, here].T
        # half of what is unexplained is taken for noise of the columns, half is left to that of the states
        self.R = np.maximum((rest**2).mean(axis=0) / 2, max(1e-3, floor) * np.maximum(1.0, rows.var(axis=0)))
        self.Q, self.P0 = above(self.Q, floor), above(self.P0, floor)

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
        slot, covariances, gains, scales = filter_covariances(A, Q, H, R, P0, seen)
        return _Forward(seen, slot, covariances, *filter_means(A, H, d, m0, values, seen, slot, gains, scales))

    def _backward(self, forward: _Forward, *, keep: bool) -> _Backward:
        """Smooth one series. To `keep` each covariance takes room; EM needs but their sums."""
        A, Q, *_ = self._arrays
        beliefs = (forward.slot, forward.covariances, forward.predicted_means, forward.means)
        means, slot, covariances, crosses, totals = smooth(A, Q, *beliefs, forward.seen, keep)
        first, last = covariances[slot[0]], forward.covariances[forward.slot[-1]]
        return _Backward(means, first, last, totals[-2], totals[-1], totals[:-2], slot, covariances, crosses)

    # -- the verbs -----------------------------------------------------------------------------------------------

    def initial_state(self, batch_size: int) -> State:
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
        mean, covariance = (state.per_row[name].cpu().numpy() for name in ("mean", "covariance"))
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
        mean = state.per_row["mean"] @ H.T + torch.from_numpy(self.d)
        return MultivariateNormal(mean, covariance_matrix=H @ state.per_row["covariance"] @ H.T + noise)

    def _read(self, inputs: Values, targets: Values | None, state: State | None) -> tuple[Tensor, State]:
        """log density of each target (B, T) after the inputs up to it, and the belief behind each row's last input."""
        state = state or self.initial_state(inputs.shape[0])
        mean, covariance = (state.per_row[name].double().cpu().numpy().copy() for name in ("mean", "covariance"))
        values, seen = self._arrays_of(inputs)
        if targets is None:
            wanted, asked = values, np.zeros_like(seen)
        else:
            wanted, asked = self._arrays_of(targets)
        lengths = inputs.lengths.cpu().numpy()
        if is_recorded():
            self._show_beliefs(values, seen, mean, covariance)
        log_densities = filter_batch(*self._arrays[:5], values, seen, wanted, asked, lengths, mean, covariance)
        return torch.from_numpy(log_densities), State(
            {"mean": torch.from_numpy(mean), "covariance": torch.from_numpy(covariance)}
        )

    def _show_beliefs(self, values: np.ndarray, seen: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> None:
        """What is expected of the hidden point once each step is read: its mean, and how far off that may be."""
        mean, covariance, one = mean.copy(), covariance.copy(), np.ones(len(mean), dtype=np.int64)
        for t in range(values.shape[1]):
            row, there = (np.ascontiguousarray(array[:, t : t + 1]) for array in (values, seen))
            filter_batch(*self._arrays[:5], row, there, row, np.zeros_like(there), one, mean, covariance)
            note(self, "mean", torch.from_numpy(mean.copy()))
            note(self, "spread", torch.from_numpy(np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))))

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
        is_bad = seen & ~(np.abs(values) <= MAX_VALUE)
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
        arrays = {name: saved[name].double().cpu().numpy().copy() for name in PARAMETERS}
        for name, array in arrays.items():
            is_sound = np.isfinite(array).all()
            if name == "R":
                is_sound = is_sound and (array > 0).all()
            if name in ("Q", "P0"):
                is_sound = is_sound and is_covariance(array)
            if not is_sound:
                raise CheckpointError(f'"{name}" of the Kalman filter is damaged: {EXPECTED.get(name, "not numbers")}.')
        for name, array in arrays.items():
            setattr(self, name, array)


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


def _idle(D: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A, Q, m0 and P0 of states that wander about zero with variance 1."""
    return 0.9 * np.eye(D), 0.19 * np.eye(D), np.zeros(D), np.eye(D)
