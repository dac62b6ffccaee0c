"""Compiled loops of a linear dynamical system: filter and smoother. Equations are numbered as in models/kalman.py.

Products are written out: D is small, and numba's own would need scipy. Matrices to calculate in are made once.

Shapes: B batch, T steps, C columns, D state width.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LOG_TWO_PI = float(np.log(2 * np.pi))
SETTLED = 1e-13  # a covariance that changes by less, relative to its own scale, has converged


@njit(cache=True)
def filter_batch(A, Q, H, d, R, inputs, seen, targets, asked, lengths, means, covariances):
    """log p of what is asked of the targets (B, T, C), after the inputs up to each; beliefs (B, ...) move in place.

    This is (3) to (5) step by step; `filter_covariances` and `filter_means` do the same for one long series.
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
def filter_covariances(A, Q, H, R, P0, seen):
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
def filter_means(A, H, d, m0, values, seen, slot, gains, scales):
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
def smooth(A, Q, slot, filtered, predicted_means, filtered_means, seen, keep):
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
