"""One token of a Transformer's decoder for a few rows, from ids to log-probabilities, in one compiled call. Equations:
models/transformer.py.

Shapes: B rows, N sources, W = B / N rows of each, S source steps, C places for what is kept, D model width, F
feed-forward width, H heads, K head width, L layers, V vocabulary.
"""

from __future__ import annotations

import numpy as np
from numba import carray, float32, int64, njit

from .arithmetic import (
    LOOP,
    NONE,
    UNIT,
    activate,
    address,
    floats_at,
    hold,
    ints_at,
    look_up,
    mix,
    norm,
    product,
    share,
    softmax,
)
from .compiled import FACTORS, FRAME, LOG_PROBS, NUM_ROWS, NUM_SOURCES, PLAN, SCRATCH, STATE, TOKENS
from .team import advance, expect, wait

# the plan: sizes, then matrices of three addresses each (arithmetic.product), first those of the ends
NUM_LAYERS, MODEL_DIM, NUM_HEADS, FEED_DIM, VOCAB_SIZE, ACTIVATION, IS_PRE = range(7)
SIZES = 7
EMBEDDING, FINAL_NORM, HEAD = range(SIZES, SIZES + 9, 3)
LAYERS = SIZES + 9
SELF_NORM, QKV, SELF_OUTPUT, CROSS_NORM, QUERY, CROSS_OUTPUT, FEED_NORM, UP, DOWN = range(0, 27, 3)
LAYER = 27
EMBEDDING_SCALE, EPSILON = range(2)  # of the factors
LENGTH, CAPACITY, SOURCE_STEPS, MASK, POSITIONS, KEPT = range(6)
"""Of the state: how many steps each row took (B,), C and S, what is added to scores of the source (N, S), the table of
positions, and for each layer what was kept (B, 2, H, C, K), and keys and values of the source (N, H, S, K)."""


def transformer_step(rank, ranks, meetings, met, frame):
    """Reads a token for each row: log_probs (B, V), and what is kept, are written. frame: compiled.py."""
    at = carray(ints_at(frame), (FRAME,))
    B, N, plan = at[NUM_ROWS], at[NUM_SOURCES], carray(ints_at(at[PLAN]), (LAYERS,))
    L, D, F, V, H = plan[NUM_LAYERS], plan[MODEL_DIM], plan[FEED_DIM], plan[VOCAB_SIZE], plan[NUM_HEADS]
    factors, state = carray(floats_at(at[FACTORS]), (2,)), carray(ints_at(at[STATE]), (KEPT + 3 * L,))
    sets, one, unit = int64(0), int64(1), int64(UNIT)
    is_pre = plan[IS_PRE]
    # shared by all ranks: x, read, looked, added (B, D), qkv (B, 3D), hidden (B, F)
    x = at[SCRATCH]
    read, looked, added = x + 4 * B * D, x + 8 * B * D, x + 12 * B * D
    qkv, hidden = x + 16 * B * D, x + 28 * B * D

    if rank == 0:
        _embed(at[TOKENS], at[PLAN] + 8 * EMBEDDING, factors[EMBEDDING_SCALE], state[POSITIONS], state[LENGTH], x, B, D)
        _enter(at[PLAN] + 8 * (LAYERS + SELF_NORM), x, read, B, D, factors[EPSILON], is_pre)
    met = wait(ranks, meetings, met)
    for layer in range(L):
        weights = at[PLAN] + 8 * (LAYERS + layer * LAYER)
        kept, keys, values = state[KEPT + 3 * layer], state[KEPT + 3 * layer + 1], state[KEPT + 3 * layer + 2]
        first, last = share(rank, ranks, 3 * D, unit)
        product(weights + 8 * QKV, read, qkv, B, D, 3 * D, first, last, sets)
        met = wait(ranks, meetings, met)
        first, last = share(rank, ranks, B * H, one)
        _look_back(qkv, kept, state[LENGTH], looked, B, H, state[CAPACITY], D, first, last)
        met = wait(ranks, meetings, met)
        first, last = share(rank, ranks, D, unit)
        product(weights + 8 * SELF_OUTPUT, looked, added, B, D, D, first, last, sets)
        met = wait(ranks, meetings, met)
        if rank == 0:
            _leave(weights + 8 * SELF_NORM, weights + 8 * CROSS_NORM, x, added, read, B, D, factors[EPSILON], is_pre)
        met = wait(ranks, meetings, met)
        product(weights + 8 * QUERY, read, qkv, B, D, D, first, last, sets)
        met = wait(ranks, meetings, met)
        first, last = share(rank, ranks, N * H, one)
        _look_at_source(qkv, keys, values, state[MASK], looked, B, N, H, state[SOURCE_STEPS], D, first, last)
        met = wait(ranks, meetings, met)
        first, last = share(rank, ranks, D, unit)
        product(weights + 8 * CROSS_OUTPUT, looked, added, B, D, D, first, last, sets)
        met = wait(ranks, meetings, met)
        if rank == 0:
            _leave(weights + 8 * CROSS_NORM, weights + 8 * FEED_NORM, x, added, read, B, D, factors[EPSILON], is_pre)
        met = wait(ranks, meetings, met)
        first, last = share(rank, ranks, F, unit)
        product(weights + 8 * UP, read, hidden, B, D, F, first, last, sets)
        for b in range(B):
            activate(carray(floats_at(hidden + 4 * (b * F + first)), (last - first,)), plan[ACTIVATION])
        met = wait(ranks, meetings, met)
        first, last = share(rank, ranks, D, unit)
        product(weights + 8 * DOWN, hidden, added, B, F, D, first, last, sets)
        met = wait(ranks, meetings, met)
        if rank == 0:
            following = weights + 8 * (LAYER + SELF_NORM) if layer + 1 < L else at[PLAN] + 8 * FINAL_NORM
            _leave(weights + 8 * FEED_NORM, following, x, added, read, B, D, factors[EPSILON], is_pre)
        met = wait(ranks, meetings, met)
    met = expect(rank, ranks, meetings, met, at[PLAN] + 8 * HEAD, read, at[LOG_PROBS], B, D, V)
    if rank == 0:
        advance(state[LENGTH], B)
    return met


@njit(**LOOP)
def _embed(tokens_at, table_at, scale, positions_at, lengths_at, x_at, B, D):
    """(1) to x (B, D)."""
    tokens, lengths = carray(ints_at(tokens_at), (B,)), carray(ints_at(lengths_at), (B,))
    for b in range(B):
        x = carray(floats_at(x_at + 4 * b * D), (D,))
        position = carray(floats_at(positions_at + 4 * lengths[b] * D), (D,))
        look_up(table_at, tokens[b], scale, x)
        for j in range(D):
            x[j] += position[j]


@njit(**LOOP)
def _enter(norm_at, x_at, read_at, B, D, epsilon, is_pre):
    """What the next part reads of x (B, D)."""
    x, read = carray(floats_at(x_at), (B * D,)), carray(floats_at(read_at), (B * D,))
    if is_pre:
        norm(norm_at, x_at, read_at, B, D, epsilon, is_pre == 0)
    else:
        for j in range(B * D):
            read[j] = x[j]


@njit(**LOOP)
def _leave(norm_at, next_norm_at, x_at, added_at, read_at, B, D, epsilon, is_pre):
    """x + what a part found, normalised where norms come behind; and what the next part reads of it."""
    x, added = carray(floats_at(x_at), (B * D,)), carray(floats_at(added_at), (B * D,))
    for j in range(B * D):
        x[j] += added[j]
    if not is_pre:
        norm(norm_at, x_at, x_at, B, D, epsilon, is_pre != 0)
    _enter(next_norm_at, x_at, read_at, B, D, epsilon, is_pre)


@njit(**LOOP)
def _look_back(qkv_at, kept_at, lengths_at, looked_at, B, H, C, D, first, last):
    """Each head of each row, first to last of them all, over what the row has read: looked (B, D)."""
    K, sets, one = D // H, int64(0), int64(1)
    factor, lengths = float32(1) / np.sqrt(float32(K)), carray(ints_at(lengths_at), (B,))
    matrix, scores = np.zeros(3, np.int64), np.empty(C, np.float32)
    for number in range(first, last):
        b, head = number // H, number % H
        row, place = qkv_at + 4 * (b * 3 * D + head * K), lengths[b]
        keys_at, values_at = kept_at + 4 * (b * 2 * H + head) * C * K, kept_at + 4 * (b * 2 * H + H + head) * C * K
        query, key, value = (
            carray(floats_at(row), (K,)),
            carray(floats_at(row + 4 * D), (K,)),
            carray(floats_at(row + 8 * D), (K,)),
        )
        kept_key = carray(floats_at(keys_at + 4 * place * K), (K,))
        kept_value = carray(floats_at(values_at + 4 * place * K), (K,))
        for i in range(K):
            query[i] *= factor
            kept_key[i], kept_value[i] = key[i], value[i]
        matrix[0] = keys_at
        product(address(matrix), row, address(scores), one, K, C, sets, place + 1, sets)
        softmax(scores[: place + 1])
        mix(address(scores), place + 1, values_at, looked_at + 4 * (b * D + head * K), K)
    hold(matrix)
    hold(scores)


@njit(**LOOP)
def _look_at_source(query_at, keys_at, values_at, mask_at, looked_at, B, N, H, S, D, first, last):
    """Each head of each source, first to last of them all: its rows look at it together. looked (B, D)."""
    K, W, sets = D // H, B // N, int64(0)
    factor, mask = float32(1) / np.sqrt(float32(K)), carray(floats_at(mask_at), (N, S))
    matrix, scores, queries = np.zeros(3, np.int64), np.empty(W * S, np.float32), np.empty((W, K), np.float32)
    asked = carray(floats_at(query_at), (B, D))
    for number in range(first, last):
        source, head = number // H, number % H
        for w in range(W):
            for i in range(K):
                queries[w, i] = factor * asked[source * W + w, head * K + i]
        matrix[0] = keys_at + 4 * number * S * K
        product(address(matrix), address(queries), address(scores), W, K, S, sets, S, sets)
        for w in range(W):
            start = address(scores) + 4 * w * S
            found = carray(floats_at(start), (S,))
            if mask_at != NONE:
                for s in range(S):
                    found[s] += mask[source, s]
            softmax(found)
            mix(start, S, values_at + 4 * number * S * K, looked_at + 4 * ((source * W + w) * D + head * K), K)
    hold(matrix)
    hold(scores)
    hold(queries)
