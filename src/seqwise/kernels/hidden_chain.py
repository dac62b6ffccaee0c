"""Compiled loops over a chain of hidden states. Equations are numbered as in models/hmm.py.

`table` holds p(x | j); step t finds its own in row rows[t]. Where `is_log`, it holds logs, each row serves one step,
and reading replaces it. `incoming` is the transition matrix turned round, so that loops run along rows. fastmath lets
sums be taken in any order; infinities keep their meaning.

Shapes: B batch, T steps, Z hidden states, C columns, N steps of all sequences together.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NEGLIGIBLE = 1e-150  # a belief below this counts as zero, so that no quotient of beliefs can overflow
LOG_NEGLIGIBLE = float(np.log(NEGLIGIBLE))
MAX_VALUE = 1e150  # numbers beyond this could not be squared

_FAST = {"reassoc", "contract", "nsz"}


def plain_expectations(
    initial: np.ndarray, transition: np.ndarray, likelihood: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """(1) to (5) as they stand, for one sequence: log p(x) in nats, posteriors (T, Z), expected transitions (Z, Z).

    `likelihood` (T, Z) holds p(x_t | j). The compiled `expect` does the same for many sequences.
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
def expect(rows, offsets, table, is_log, initial, transition, incoming, max_steps):
    """log p, the first sequence that is impossible (or -1), and the expected counts of (4) and (5).

    At most `max_steps` steps are kept. A longer sequence is read twice: once for the belief at the start of each
    segment of that length, and then segment by segment from the last to the first.
    """
    Z = len(initial)
    longest = 1
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    size = min(max_steps, longest)
    alphas, gains = np.zeros((size + 1, Z)), np.empty((size, Z))
    starts = np.empty(((longest + size - 1) // size, 2, Z))  # belief and the alpha before it
    belief, beta = np.empty(Z), np.empty(Z)
    first, pairs, visits = np.zeros(Z), np.zeros((Z, Z)), np.zeros(table.shape)
    log_likelihood = 0.0
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        if begin == end:
            continue
        segments = (end - begin + size - 1) // size
        _copy(initial, belief)
        for j in range(Z):
            alphas[0, j] = 0.0  # nothing leads to the first step
        for k in range(segments):
            a, b = begin + k * size, min(end, begin + (k + 1) * size)
            _copy(belief, starts[k, 0])
            _copy(alphas[0], starts[k, 1])
            found = _forward(rows[a:b], table, is_log, incoming, belief, alphas, gains)
            if found == -np.inf:
                return found, s, first, pairs, visits
            log_likelihood += found
            if k < segments - 1:
                _copy(alphas[b - a], alphas[0])
        for j in range(Z):
            beta[j] = 1.0
        for k in range(segments - 1, -1, -1):
            a, b = begin + k * size, min(end, begin + (k + 1) * size)
            if k < segments - 1:
                _carry(gains[0], transition, 1.0, beta)  # (3), from the first step of the segment behind
                _copy(starts[k, 0], belief)
                _copy(starts[k, 1], alphas[0])
                _forward(rows[a:b], table, False, incoming, belief, alphas, gains)  # logs were left before
            _backward(rows[a:b], transition, beta, alphas, gains, visits)
            _add_pairs(alphas, gains, b - a, pairs)
        for j in range(Z):
            first[j] += alphas[1, j] * beta[j]
    return log_likelihood, -1, first, pairs, visits


@njit(cache=True, fastmath=_FAST)
def log_likelihood_of(rows, offsets, table, is_log, initial, incoming):
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
def score_batch(belief, lengths, rows, table, target_rows, target_table, is_log, incoming):
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
def log_normal(values, is_observed, mean, scale):
    """(8) in logs, (N, Z). Distances are cut at 1e150 scales, so that their squares are finite."""
    result = np.zeros((len(values), len(mean)))
    constant = -np.log(scale) - 0.5 * np.log(2 * np.pi)  # (Z, C)
    for n in range(len(values)):
        for c in range(values.shape[1]):
            if is_observed[n, c]:
                for j in range(len(mean)):
                    distance = min(abs(values[n, c] - mean[j, c]) / scale[j, c], MAX_VALUE)
                    result[n, j] += constant[j, c] - 0.5 * distance * distance
    return result


@njit(cache=True, fastmath=_FAST)
def weighted_squares(values, is_observed, visits, mean, spread):
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
def best_path(rows, log_table, log_initial, log_incoming):
    """(6), and the path found by going back from its end. Of equally good states the lowest is taken, at the end and
    at each step back."""
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
def walk(initial, transition, uniforms):
    """Hidden states (T,) from cumulative probabilities and a number in [0, 1) for each step."""
    states = np.empty(len(uniforms), dtype=np.int64)
    for t in range(len(uniforms)):
        states[t] = _draw(initial if t == 0 else transition[states[t - 1]], uniforms[t])
    return states


@njit(cache=True)
def draw_each(cumulative, which, uniforms):
    """One draw for each step, from the row that `which` names."""
    drawn = np.empty(len(uniforms), dtype=np.int64)
    for t in range(len(uniforms)):
        drawn[t] = _draw(cumulative[which[t]], uniforms[t])
    return drawn
