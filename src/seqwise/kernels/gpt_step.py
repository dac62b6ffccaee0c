"""One token of a GPT for a few rows, from ids to log-probabilities, in one compiled call. Equations: models/gpt.py.

Shapes: B rows, C context, D model width, F feed-forward width, H heads, G heads of keys and values, K head width,
L layers, V vocabulary.
"""

from __future__ import annotations

import numpy as np
from numba import carray, float32, int64, njit

from .arithmetic import (
    LOOP,
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
    standardise,
)
from .compiled import FACTORS, FRAME, LOG_PROBS, NUM_ROWS, PLAN, SCRATCH, STATE, TOKENS
from .team import advance, expect, wait

# the plan: sizes, then matrices of three addresses each (arithmetic.product), first those of the ends, then those of
# each layer
NUM_LAYERS, MODEL_DIM, NUM_HEADS, KV_HEADS, FEED_DIM, CONTEXT, VOCAB_SIZE, ACTIVATION = range(8)
KEEPS_MEAN, IS_ROTARY, IS_GATED, NORMALISES = range(8, 12)
SIZES = 12
EMBEDDING, POSITIONS, FINAL_NORM, HEAD = range(SIZES, SIZES + 12, 3)
LAYERS = SIZES + 12
ATTENTION_NORM, QKV, OUTPUT, FEED_NORM, GATE, UP, DOWN = range(0, 21, 3)
LAYER = 21
EPSILON, EMBEDDING_SCALE = range(2)  # of the factors
UNIT_EPSILON = float32(1e-5)  # of the norm of queries and keys


def gpt_step(rank, ranks, meetings, met, frame):
    """Reads a token for each row: log_probs (B, V), and what was read, are written. frame: compiled.py.

    The state: addresses of how many tokens were read (B,), of these (B, C, D), and of the keys and values of each layer
    (B, G, C, K).
    """
    at = carray(ints_at(frame), (FRAME,))
    B, plan = at[NUM_ROWS], carray(ints_at(at[PLAN]), (LAYERS,))
    factors, state = carray(floats_at(at[FACTORS]), (2,)), carray(ints_at(at[STATE]), (2 + 2 * plan[NUM_LAYERS],))
    D, F, V, G = plan[MODEL_DIM], plan[FEED_DIM], plan[VOCAB_SIZE], plan[KV_HEADS]
    qkv_dim = D + 2 * G * (D // plan[NUM_HEADS])
    epsilon, keeps_mean = factors[EPSILON], plan[KEEPS_MEAN] == 1
    # shared by all ranks: x and looked (B, D), qkv (B, D + 2GK), hidden and opened (B, F)
    x = at[SCRATCH]
    looked = x + 4 * B * D
    qkv = looked + 4 * B * D
    hidden = qkv + 4 * B * qkv_dim
    opened = hidden + 4 * B * F
    sets, adds, one, unit = (
        int64(0),
        int64(1),
        int64(1),
        int64(UNIT),
    )  # variables: a constant would be a type of its own, and compiled anew
    # of each its own
    own = np.empty(B * D, np.float32)
    normed = address(own)

    if rank == 0:
        _embed(at[TOKENS], at[PLAN], factors[EMBEDDING_SCALE], state[0], state[1], x, B)  # (1)
    met = wait(ranks, meetings, met)
    for layer in range(plan[NUM_LAYERS]):
        weights = at[PLAN] + 8 * (LAYERS + layer * LAYER)
        norm(weights + 8 * ATTENTION_NORM, x, normed, B, D, epsilon, keeps_mean)
        first, last = share(rank, ranks, qkv_dim, unit)
        product(weights + 8 * QKV, normed, qkv, B, D, qkv_dim, first, last, sets)
        met = wait(ranks, meetings, met)
        first, last = share(rank, ranks, G, one)
        _attend(qkv, state[0], at[PLAN], state[2 + 2 * layer], state[3 + 2 * layer], looked, B, first, last)
        met = wait(ranks, meetings, met)
        first, last = share(rank, ranks, D, unit)
        product(weights + 8 * OUTPUT, looked, x, B, D, D, first, last, adds)  # (2)
        met = wait(ranks, meetings, met)
        norm(weights + 8 * FEED_NORM, x, normed, B, D, epsilon, keeps_mean)
        first, last = share(rank, ranks, F, unit)
        product(weights + 8 * UP, normed, hidden, B, D, F, first, last, sets)
        if plan[IS_GATED]:
            product(weights + 8 * GATE, normed, opened, B, D, F, first, last, sets)
        _open(hidden, opened, B, F, first, last, plan[IS_GATED], plan[ACTIVATION])
        met = wait(ranks, meetings, met)
        first, last = share(rank, ranks, D, unit)
        product(weights + 8 * DOWN, hidden, x, B, F, D, first, last, adds)  # (3)
        met = wait(ranks, meetings, met)
    norm(at[PLAN] + 8 * FINAL_NORM, x, normed, B, D, epsilon, keeps_mean)
    met = expect(rank, ranks, meetings, met, at[PLAN] + 8 * HEAD, normed, at[LOG_PROBS], B, D, V)
    if rank == 0:
        advance(state[0], B)
    hold(own)
    return met


@njit(**LOOP)
def _embed(tokens_at, plan_at, scale, lengths_at, inputs_at, x_at, B):
    """(1) to x (B, D); what is read before a place is added stays in inputs (B, C, D), for when the oldest is
    forgotten."""
    plan, tokens, lengths = (
        carray(ints_at(plan_at), (LAYERS,)),
        carray(ints_at(tokens_at), (B,)),
        carray(ints_at(lengths_at), (B,)),
    )
    D, C = plan[MODEL_DIM], plan[CONTEXT]
    x, inputs = carray(floats_at(x_at), (B, D)), carray(floats_at(inputs_at), (B, C, D))
    positions = carray(floats_at(plan[POSITIONS]), (C, D))
    for b in range(B):
        look_up(plan_at + 8 * EMBEDDING, tokens[b], scale, x[b])
        for j in range(D):
            inputs[b, lengths[b], j] = x[b, j]
            if not plan[IS_ROTARY]:
                x[b, j] += positions[lengths[b], j]


@njit(**LOOP)
def _open(hidden_at, gate_at, B, F, first, last, is_gated, activation):
    """What W_down is given, in place, (B, F): the nonlinearity of what W_up gave, or that times the one of the gate."""
    for b in range(B):
        place = 4 * (b * F + first)
        hidden = carray(floats_at(hidden_at + place), (last - first,))
        gate = carray(floats_at(gate_at + place), (last - first,))
        activate(gate if is_gated else hidden, activation)
        if is_gated:
            for j in range(len(hidden)):
                hidden[j] *= gate[j]


@njit(**LOOP)
def _attend(qkv_at, lengths_at, plan_at, keys_at, values_at, looked_at, B, first, last):
    """Queries, keys and values (B, D + 2GK) of one token per row: keys and values of heads first to last go to their
    place in the cache, what the heads that share them found to looked (B, D)."""
    plan, lengths = carray(ints_at(plan_at), (LAYERS,)), carray(ints_at(lengths_at), (B,))
    D, H, G, C = plan[MODEL_DIM], plan[NUM_HEADS], plan[KV_HEADS], plan[CONTEXT]
    K, sharing = D // H, H // G
    factor, width = float32(1) / np.sqrt(float32(K)), D + 2 * G * K
    sets = none = int64(0)
    matrix, scores = np.zeros(3, np.int64), np.empty(sharing * C, np.float32)
    for b in range(B):
        place, row = lengths[b], qkv_at + 4 * b * width
        for source in range(first, last):
            before = 4 * (b * G + source) * C * K  # bytes
            key = carray(floats_at(row + 4 * (D + source * K)), (K,))
            value = carray(floats_at(row + 4 * (D + (G + source) * K)), (K,))
            kept_key = carray(floats_at(keys_at + before + 4 * place * K), (K,))
            kept_value = carray(floats_at(values_at + before + 4 * place * K), (K,))
            _place_head(key, plan, place)
            for i in range(K):
                kept_key[i], kept_value[i] = key[i], value[i]
            queries = row + 4 * source * sharing * K
            for head in range(sharing):
                query = carray(floats_at(queries + 4 * head * K), (K,))
                _place_head(query, plan, place)
                for i in range(K):
                    query[i] *= factor
            matrix[0] = keys_at + before
            product(address(matrix), queries, address(scores), sharing, K, C, none, place + 1, sets)
            for head in range(sharing):
                weights = address(scores) + 4 * head * C
                softmax(carray(floats_at(weights), (place + 1,)))
                found = looked_at + 4 * (b * D + (source * sharing + head) * K)
                mix(weights, place + 1, values_at + before, found, K)
    hold(matrix)
    hold(scores)


@njit(**LOOP)
def _place_head(row, plan, place):
    """A query or key (K,), brought to unit length and turned by its place, where the network does so; in place."""
    if plan[NORMALISES]:
        standardise(row, row, UNIT_EPSILON, plan[NORMALISES] == 0)
    if plan[IS_ROTARY]:
        K = len(row)
        turn = carray(floats_at(plan[POSITIONS]), (plan[CONTEXT], K))[place]  # cosine and sine, side by side
        for i in range(0, K, 2):
            even, odd = row[i], row[i + 1]
            row[i] = even * turn[i] - odd * turn[i + 1]
            row[i + 1] = even * turn[i + 1] + odd * turn[i]
