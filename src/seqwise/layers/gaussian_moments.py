"""What EM needs to know of a linear dynamical system, and matrices within limits. Equations as in models/kalman.py.

Shapes: T steps, C columns, D state width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Moments:
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

    def plus(self, other: Moments) -> Moments:
        sums = {name: mine + getattr(other, name) for name, mine in vars(self).items()}
        return Moments(**{**sums, "longest": max(self.longest, other.longest)})

    def best_dynamics(self, old: np.ndarray, *, limit: float, floor: float) -> tuple[np.ndarray, np.ndarray]:
        """A and Q by (10) and (11), within the limits. Towards (10) the expected log-likelihood only rises, so from the
        old A a part of the way is always a gain; lowering the eigenvalues of (10) often gains more."""
        best = np.linalg.solve(self.before, self.cross.T).T
        if _radius(best) <= limit:
            return best, self._noise(best, floor)[1]
        least, A = self._noise(old, floor)[0], old
        for candidate in (within(best, limit), *(old + share * (best - old) for share in 0.5 ** np.arange(1, 12))):
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


def is_covariance(matrix: np.ndarray) -> bool:
    """Whether it is symmetric and has no negative eigenvalue, but for rounding."""
    slack = 1e-9 * float(np.abs(matrix).max())
    return bool(np.abs(matrix - matrix.T).max() <= slack and np.linalg.eigvalsh(matrix).min() >= -slack)


def above(matrix: np.ndarray, floor: float) -> np.ndarray:
    """The symmetric matrix with eigenvalues below the floor raised to it."""
    found, directions = np.linalg.eigh((matrix + matrix.T) / 2)
    return _composed(directions, np.maximum(found, floor))


def _composed(directions: np.ndarray, eigenvalues: np.ndarray) -> np.ndarray:
    matrix = (directions * eigenvalues) @ directions.T
    return (matrix + matrix.T) / 2


def _radius(A: np.ndarray) -> float:
    """By how much the fastest mode of A grows in a step."""
    return float(np.abs(np.linalg.eigvals(A)).max())


def within(A: np.ndarray, limit: float) -> np.ndarray:
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
