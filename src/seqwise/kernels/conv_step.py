"""One token of a time-delay network for a few rows, from ids to log-probabilities, in one compiled call. Equations:
models/conv.py.

Shapes: B rows, k kernel, D model width, L layers, R ring of a layer, V vocabulary.
"""

from __future__ import annotations

import numpy as np
from numba import carray, int64, njit

from .arithmetic import (
    GELU,
    LOOP,
    UNIT,
    activate,
    address,
    floats_at,
    hold,
    ints_at,
    look_up,
    norm,
    product,
    share,
)
from .compiled import FACTORS, FRAME, LOG_PROBS, NUM_ROWS, PLAN, SCRATCH, STATE, TOKENS
from .team import advance, expect, wait

# the plan: sizes, then matrices of three addresses each (arithmetic.product), first those of the ends
NUM_LAYERS, MODEL_DIM, KERNEL_SIZE, VOCAB_SIZE = range(4)
SIZES = 4
EMBEDDING, FINAL_NORM, HEAD = range(SIZES, SIZES + 9, 3)
LAYERS = SIZES + 9
DILATION, DELAYS, NORM, MIX = 0, 1, 4, 7  # of each layer
LAYER = 10
EMBEDDING_SCALE, EPSILON = range(2)  # of the factors


def conv_step(rank, ranks, meetings, met, frame):
    """Reads a token for each row: log_probs (B, V), and the rings, are written. frame: compiled.py.

    The state: addresses of how many steps each row took (B,), and of the ring of each layer (B, R, D).
    """
    at = carray(ints_at(frame), (FRAME,))
    B, plan = at[NUM_ROWS], carray(ints_at(at[PLAN]), (LAYERS,))
    L, D, k, V = plan[NUM_LAYERS], plan[MODEL_DIM], plan[KERNEL_SIZE], plan[VOCAB_SIZE]
    factors, state = carray(floats_at(at[FACTORS]), (2,)), carray(ints_at(at[STATE]), (1 + L,))
    sets, adds, unit = int64(0), int64(1), int64(UNIT)
    # shared by all ranks: x and y (B, D), taps (B, k D)
    x = at[SCRATCH]
    y, taps = x + 4 * B * D, x + 8 * B * D
    own = np.empty(B * D, np.float32)
    normed = address(own)

    if rank == 0:
        tokens = carray(ints_at(at[TOKENS]), (B,))
        for b in range(B):
            row = carray(floats_at(x + 4 * b * D), (D,))
            look_up(at[PLAN] + 8 * EMBEDDING, tokens[b], factors[EMBEDDING_SCALE], row)
    met = wait(ranks, meetings, met)
    for layer in range(L):
        weights = at[PLAN] + 8 * (LAYERS + layer * LAYER)
        dilation = carray(ints_at(weights), (1,))[0]
        if rank == 0:
            _tap(state[1 + layer], state[0], x, taps, B, k, dilation, D)
        met = wait(ranks, meetings, met)
        first, last = share(rank, ranks, D, unit)
        product(weights + 8 * DELAYS, taps, y, B, k * D, D, first, last, sets)  # (1)
        met = wait(ranks, meetings, met)
        norm(weights + 8 * NORM, y, normed, B, D, factors[EPSILON], plan[NUM_LAYERS] == 0)
        activate(carray(floats_at(normed), (B * D,)), int64(GELU))
        product(weights + 8 * MIX, normed, x, B, D, D, first, last, adds)  # (2)
        met = wait(ranks, meetings, met)
    norm(at[PLAN] + 8 * FINAL_NORM, x, normed, B, D, factors[EPSILON], plan[NUM_LAYERS] == 0)
    met = expect(rank, ranks, meetings, met, at[PLAN] + 8 * HEAD, normed, at[LOG_PROBS], B, D, V)
    if rank == 0:
        advance(state[0], B)
    hold(own)
    return met


@njit(**LOOP)
def _tap(ring_at, lengths_at, x_at, taps_at, B, k, dilation, D):
    """x and what stood k-1 times a dilation before it, oldest first, (B, k, D); x takes the place of the oldest."""
    R, lengths = (k - 1) * dilation, carray(ints_at(lengths_at), (B,))
    ring, x = carray(floats_at(ring_at), (B, R, D)), carray(floats_at(x_at), (B, D))
    taps = carray(floats_at(taps_at), (B, k, D))
    for b in range(B):
        for j in range(k - 1):
            place = (lengths[b] + j * dilation) % R  # (t - (k-1-j) d) mod R
            for i in range(D):
                taps[b, j, i] = ring[b, place, i]
        newest = lengths[b] % R
        for i in range(D):
            taps[b, k - 1, i] = ring[b, newest, i] = x[b, i]
