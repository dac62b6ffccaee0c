"""Compiled forward-backward over the tags of a linear chain. Equations are numbered as in layers/crf.py.

What a row's alphas have in common is divided out step by step, so sums run over numbers near one and not over logs: a
product of a vector and a matrix a step, and an exponential for each score instead of one for each pair of tags. This
is exact as long as no tag that is possible falls below NEGLIGIBLE beside the others; where one does, `expect` says so.

Shapes: B batch, W words, N tags.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NEGLIGIBLE = 1e-100  # three such factors multiplied are still a number: 230 nats apart
MIN_EVIDENCE = 1e-290

_FAST = {"reassoc", "contract", "nsz"}


@njit(cache=True, fastmath=_FAST)
def _leave_logs(follow, transition):
    """transition[i, j] = exp(follow[i, j] - the largest), which is returned; NaN where some are too far below it."""
    top = -np.inf
    for i in range(len(follow)):
        for j in range(len(follow)):
            top = max(top, follow[i, j])
    if top == -np.inf:
        top = 0.0
    for i in range(len(follow)):
        for j in range(len(follow)):
            transition[i, j] = np.exp(follow[i, j] - top)
            if follow[i, j] != -np.inf and not transition[i, j] > NEGLIGIBLE:
                return np.nan
    return top


@njit(cache=True, fastmath=_FAST)
def _carry(vector, matrix, result):
    """result = vector @ matrix"""
    for j in range(len(result)):
        result[j] = 0.0
    for i in range(len(vector)):
        if vector[i] != 0.0:
            for j in range(len(result)):
                result[j] += vector[i] * matrix[i, j]


@njit(cache=True, fastmath=_FAST)
def _forward(scores, transition, alphas, gains):
    """(3) for one row: alphas (W, N), each step's sum being one, and gains (W, N), what each was multiplied by besides.

    Returns log Z but for the part of it that left `transition`; NaN where the numbers are too far apart.
    """
    W, N = scores.shape
    belief, log_partition = np.ones(N), 0.0
    for t in range(W):
        top = -np.inf
        for j in range(N):
            top = max(top, scores[t, j])
        evidence = 0.0
        for j in range(N):
            gains[t, j] = np.exp(scores[t, j] - top)
            alphas[t, j] = belief[j] * gains[t, j]
            evidence += alphas[t, j]
        if not evidence > MIN_EVIDENCE:
            return np.nan
        share = 1.0 / evidence
        for j in range(N):
            alphas[t, j] *= share
            is_possible = belief[j] > 0.0 and scores[t, j] != -np.inf
            if is_possible and not alphas[t, j] > NEGLIGIBLE:
                return np.nan
            gains[t, j] = gains[t, j] * share if is_possible else 0.0  # so that no beta of the impossible can overflow
        log_partition += np.log(evidence) + top
        _carry(alphas[t], transition, belief)
    return log_partition


@njit(cache=True, fastmath=_FAST)
def _backward(alphas, gains, incoming, marginals):
    """(4) and (5) for one row. gains[t] becomes gain * beta, which (6) wants."""
    beta = np.ones(alphas.shape[1])
    for t in range(len(alphas) - 1, -1, -1):
        for j in range(len(beta)):
            marginals[t, j] = alphas[t, j] * beta[j]
            gains[t, j] *= beta[j]
        _carry(gains[t], incoming, beta)


@njit(cache=True, fastmath=_FAST)
def _add_pairs(alphas, gains, pairs):
    """(6) summed over the words of a row, but for its factor transition. Four words at once, which spares memory."""
    N, num = len(pairs), len(alphas) - 1
    whole = num - num % 4
    for t in range(0, whole, 4):
        for i in range(N):
            a, b, c, d = alphas[t, i], alphas[t + 1, i], alphas[t + 2, i], alphas[t + 3, i]
            for j in range(N):
                pairs[i, j] += a * gains[t + 1, j] + b * gains[t + 2, j] + (c * gains[t + 3, j] + d * gains[t + 4, j])
    for t in range(whole, num):
        for i in range(N):
            for j in range(N):
                pairs[i, j] += alphas[t, i] * gains[t + 1, j]


@njit(cache=True)
def expect(scores, lengths, follow):
    """Whether all of it is exact, log Z (B,), marginals (B, W, N), expected transitions of each row (B, N, N).

    From scores (B, W, N) and follow (N, N) in nats, -inf where something is ruled out. A row without words has log Z
    zero. Where the first answer is False the others mean nothing.
    """
    B, W, N = scores.shape
    transition = np.empty((N, N))
    top = _leave_logs(follow, transition)
    incoming = transition.T.copy()
    alphas, gains = np.empty((W, N)), np.empty((W, N))
    log_partition, marginals, pairs = np.zeros(B), np.zeros((B, W, N)), np.zeros((B, N, N))
    for b in range(B):
        length = lengths[b]
        if length == 0:
            continue
        found = _forward(scores[b, :length], transition, alphas[:length], gains[:length]) + top * (length - 1)
        if np.isnan(found):
            return False, log_partition, marginals, pairs
        log_partition[b] = found
        _backward(alphas[:length], gains[:length], incoming, marginals[b, :length])
        _add_pairs(alphas[:length], gains[:length], pairs[b])
        for i in range(N):
            for j in range(N):
                pairs[b, i, j] *= transition[i, j]
    return True, log_partition, marginals, pairs
