"""One token of an RNN, GRU or LSTM for a few rows, from ids to log-probabilities, in one compiled call; of a decoder of
seq2seq too. Equations: layers/rnn.py, gru.py, lstm.py; how layers are joined: layers/recurrent.py; how a source is
looked at: layers/soft_alignment.py.

Shapes: B rows, N sources, S source steps, E embedding width, D width of h, M width of what the gates act on (D, or
wider where h is projected), L layers, V vocabulary.
"""

from __future__ import annotations

import numpy as np
from numba import carray, int64, njit

from .arithmetic import (
    LOOP,
    NONE,
    TANH,
    UNIT,
    activate,
    address,
    bytes_at,
    floats_at,
    hold,
    ints_at,
    look_up,
    mix,
    norm,
    product,
    share,
    sigmoid,
    softmax,
    tanh,
)
from .compiled import FACTORS, FRAME, LOG_PROBS, NUM_ROWS, NUM_SOURCES, PLAN, SCRATCH, STATE, TOKENS
from .team import expect, wait

RNN, GRU, LSTM = range(3)
PLAIN, RESIDUAL, HIGHWAY, DENSE = range(4)
UNALIGNED, DOT, GENERAL, ADDITIVE = range(4)
# the plan: sizes, then matrices of three addresses each (arithmetic.product), first those of the ends
NUM_LAYERS, CELL, CONNECTIONS, EMBED_DIM, HIDDEN_DIM, GATE_DIM, WIDEST, ACTIVATION, VOCAB_SIZE = range(9)
ALIGNMENT, IS_FED = 9, 10
SIZES = 11
EMBEDDING, HEAD, TO_QUERY, WEIGH, COMBINE = range(SIZES, SIZES + 15, 3)
LAYERS = SIZES + 15
NORM, INPUT, HIDDEN, PROJECTION, MIX = range(0, 15, 3)
"""Of each layer; MIX: what decides how much of a highway is new."""
LAYER = 15
H, C, FED, MEMORY, KEYS, IS_SOURCE, SOURCE_STEPS = range(7)
"""Of the state: h (B, L, D), c (B, L, M) of an LSTM, what is fed back (B, D), the source (N, S, D), what it is compared
with, and where it is no padding, bool (N, S); and S."""
STATE_PARTS = 7
EMBEDDING_SCALE, EPSILON = range(2)  # of the factors


def recurrent_step(rank, ranks, meetings, met, frame):
    """Reads a token for each row: log_probs (B, V), and the state, are written. frame: compiled.py."""
    at = carray(ints_at(frame), (FRAME,))
    B, plan = at[NUM_ROWS], carray(ints_at(at[PLAN]), (LAYERS,))
    factors, state = carray(floats_at(at[FACTORS]), (2,)), carray(ints_at(at[STATE]), (STATE_PARTS,))
    E, D, W, V, is_dense = plan[EMBED_DIM], plan[HIDDEN_DIM], plan[WIDEST], plan[VOCAB_SIZE], plan[CONNECTIONS] == DENSE
    # shared by all ranks: x and y (B, W), W what fits the widest, and more room
    x = at[SCRATCH]
    y, room = x + 4 * B * W, x + 8 * B * W
    own = np.empty(B * W, np.float32)

    width = E + D if plan[IS_FED] else E
    if rank == 0:
        _embed(at[TOKENS], at[PLAN] + 8 * EMBEDDING, factors[EMBEDDING_SCALE], state[FED], x, B, E, width)
    met = wait(ranks, meetings, met)
    for layer in range(plan[NUM_LAYERS]):
        met = _run_layer(rank, ranks, meetings, met, frame, layer, width, x, y, room, address(own))
        width = width + D if is_dense else D
    if is_dense and rank == 0:  # what was read is no output
        _drop_first(x, y, B, E, width)
    met = wait(ranks, meetings, met)
    top, width = (y, width - E) if is_dense else (x, width)
    if plan[ALIGNMENT] != UNALIGNED:
        met = _look_at_source(rank, ranks, meetings, met, frame, x, room, y)
    met = expect(rank, ranks, meetings, met, at[PLAN] + 8 * HEAD, top, at[LOG_PROBS], B, width, V)
    hold(own)
    return met


@njit(**LOOP)
def _run_layer(rank, ranks, meetings, met, frame, layer, width, x, y, room, normed):
    """x (B, width) becomes what the next layer reads; h and c of this one go on. y, room and normed are room."""
    at = carray(ints_at(frame), (FRAME,))
    B, plan = at[NUM_ROWS], carray(ints_at(at[PLAN]), (LAYERS,))
    factors, state = carray(floats_at(at[FACTORS]), (2,)), carray(ints_at(at[STATE]), (STATE_PARTS,))
    L, D, M, cell, connections = plan[NUM_LAYERS], plan[HIDDEN_DIM], plan[GATE_DIM], plan[CELL], plan[CONNECTIONS]
    gate_dim = M if cell == RNN else 3 * M if cell == GRU else 4 * M
    sets, adds, unit = int64(0), int64(1), int64(UNIT)
    # before (B, D), memory (B, M), gates and what of them comes from h alone
    before, memory = room, room + 4 * B * D
    gates, from_hidden = memory + 4 * B * M, memory + 4 * B * (M + gate_dim)
    weights = at[PLAN] + 8 * (LAYERS + layer * LAYER)
    matrices, read = carray(ints_at(weights), (LAYER,)), x

    if matrices[NORM] != NONE:
        norm(weights + 8 * NORM, x, normed, B, width, factors[EPSILON], cell < RNN)
        read = normed
    if rank == 0:
        _copy(state[H], before, B, L, layer, D)
    met = wait(ranks, meetings, met)
    first, last = share(rank, ranks, gate_dim, unit)
    product(weights + 8 * INPUT, read, gates, B, width, gate_dim, first, last, sets)
    hidden = from_hidden if cell == GRU else gates
    product(weights + 8 * HIDDEN, before, hidden, B, D, gate_dim, first, last, sets if cell == GRU else adds)
    if connections == HIGHWAY and width == D:
        first, last = share(rank, ranks, D, unit)
        product(weights + 8 * MIX, x, y + 4 * B * D, B, D, D, first, last, sets)
    met = wait(ranks, meetings, met)
    first, last = share(rank, ranks, M, unit)
    is_projected = matrices[PROJECTION] != NONE
    out = memory if is_projected else y
    _turn(cell, plan[ACTIVATION], gates, from_hidden, before, state[C], out, B, L, layer, M, first, last)
    met = wait(ranks, meetings, met)
    if is_projected:
        first, last = share(rank, ranks, D, unit)
        product(weights + 8 * PROJECTION, memory, y, B, M, D, first, last, sets)
        met = wait(ranks, meetings, met)
    if rank == 0:
        _keep(y, state[H], B, L, layer, D)
        _join(connections, x, y, B, width, D)
    return wait(ranks, meetings, met)


@njit(**LOOP)
def _look_at_source(rank, ranks, meetings, met, frame, x, query, y):
    """x (B, D) becomes what the next token is read from; query (B, D) and y (B, 2D) are room."""
    at = carray(ints_at(frame), (FRAME,))
    B, plan, state = at[NUM_ROWS], carray(ints_at(at[PLAN]), (LAYERS,)), carray(ints_at(at[STATE]), (STATE_PARTS,))
    D, sets, one, unit = plan[HIDDEN_DIM], int64(0), int64(1), int64(UNIT)
    if plan[ALIGNMENT] == ADDITIVE:
        first, last = share(rank, ranks, D, unit)
        product(at[PLAN] + 8 * TO_QUERY, x, query, B, D, D, first, last, sets)
        met = wait(ranks, meetings, met)
    first, last = share(rank, ranks, B, one)
    _align(at[PLAN], at[STATE], x, query, y, B, at[NUM_SOURCES], D, first, last)
    met = wait(ranks, meetings, met)
    first, last = share(rank, ranks, D, unit)
    product(at[PLAN] + 8 * COMBINE, y, x, B, 2 * D, D, first, last, sets)
    for b in range(B):
        activate(carray(floats_at(x + 4 * (b * D + first)), (last - first,)), int64(TANH))
    met = wait(ranks, meetings, met)
    if plan[IS_FED] and rank == 0:
        _copy(x, state[FED], B, one, sets, D)
    return wait(ranks, meetings, met)


@njit(**LOOP)
def _embed(tokens_at, table_at, scale, fed_at, x_at, B, E, width):
    """The embeddings, and beside them what is fed back where there is more room: x (B, width)."""
    tokens, x = carray(ints_at(tokens_at), (B,)), carray(floats_at(x_at), (B, width))
    fed = carray(floats_at(fed_at), (B, width - E))
    for b in range(B):
        look_up(table_at, tokens[b], scale, x[b, :E])
        for j in range(E, width):
            x[b, j] = fed[b, j - E]


@njit(**LOOP)
def _align(plan_at, state_at, hidden_at, query_at, out_at, B, N, D, first, last):
    """What rows first to last find in their sources, beside their own: hidden and query (B, D) -> out (B, 2D)."""
    plan, state = carray(ints_at(plan_at), (LAYERS,)), carray(ints_at(state_at), (STATE_PARTS,))
    S, W, sets, one = state[SOURCE_STEPS], B // N, int64(0), int64(1)
    scores, matrix, bent = np.empty(S, np.float32), np.zeros(3, np.int64), np.empty(D, np.float32)
    keys, is_source = carray(floats_at(state[KEYS]), (N, S, D)), carray(bytes_at(state[IS_SOURCE]), (N, S))
    hidden, query = carray(floats_at(hidden_at), (B, D)), carray(floats_at(query_at), (B, D))
    out = carray(floats_at(out_at), (B, 2 * D))
    for b in range(first, last):
        source = b // W
        if plan[ALIGNMENT] == ADDITIVE:
            for s in range(S):
                for j in range(D):
                    bent[j] = tanh(query[b, j] + keys[source, s, j])
                product(plan_at + 8 * WEIGH, address(bent), address(scores) + 4 * s, one, D, one, sets, one, sets)
        else:
            matrix[0] = state[KEYS] + 4 * source * S * D
            product(address(matrix), hidden_at + 4 * b * D, address(scores), one, D, S, sets, S, sets)
        for s in range(S):
            if is_source[source, s] == 0:
                scores[s] = -np.inf
        softmax(scores)
        mix(address(scores), S, state[MEMORY] + 4 * source * S * D, out_at + 8 * b * D, D)
        for j in range(D):
            out[b, D + j] = hidden[b, j]
    hold(scores)
    hold(matrix)
    hold(bent)


@njit(**LOOP)
def _copy(state_at, to, B, L, layer, D):
    """h of a layer, (B, D), out of (B, L, D)."""
    state, before = carray(floats_at(state_at), (B, L, D)), carray(floats_at(to), (B, D))
    for b in range(B):
        for j in range(D):
            before[b, j] = state[b, layer, j]


@njit(**LOOP)
def _keep(y_at, state_at, B, L, layer, D):
    """And back into it."""
    state, y = carray(floats_at(state_at), (B, L, D)), carray(floats_at(y_at), (B, D))
    for b in range(B):
        for j in range(D):
            state[b, layer, j] = y[b, j]


@njit(**LOOP)
def _turn(cell, activation, gates_at, from_hidden_at, before_at, memory_at, out_at, B, L, layer, M, first, last):
    """What gates make of what was before, for numbers first to last of each row: out (B, M)."""
    num_gates = 1 if cell == RNN else 3 if cell == GRU else 4
    gates, out = carray(floats_at(gates_at), (B, num_gates, M)), carray(floats_at(out_at), (B, M))
    from_hidden, before = carray(floats_at(from_hidden_at), (B, 3, M)), carray(floats_at(before_at), (B, M))
    memory = carray(floats_at(memory_at), (B, L, M))
    for b in range(B):
        if cell == RNN:
            activate(gates[b, 0, first:last], activation)
            for j in range(first, last):
                out[b, j] = gates[b, 0, j]
        elif cell == GRU:
            for j in range(first, last):
                reset = sigmoid(gates[b, 0, j] + from_hidden[b, 0, j])
                keep = sigmoid(gates[b, 1, j] + from_hidden[b, 1, j])
                candidate = tanh(gates[b, 2, j] + reset * from_hidden[b, 2, j])
                out[b, j] = keep * before[b, j] + (1 - keep) * candidate
        else:
            for j in range(first, last):
                write, forget, show = sigmoid(gates[b, 0, j]), sigmoid(gates[b, 1, j]), sigmoid(gates[b, 3, j])
                kept = forget * memory[b, layer, j] + write * tanh(gates[b, 2, j])
                memory[b, layer, j] = kept
                out[b, j] = show * tanh(kept)


@njit(**LOOP)
def _join(connections, x_at, y_at, B, width, D):
    """What the next layer reads, to x: (B, D), or wider by D where it reads all below."""
    x, y, joined = carray(floats_at(x_at), (B, width)), carray(floats_at(y_at), (B, D)), carray(floats_at(x_at), (B, D))
    if connections == DENSE:
        wider = carray(floats_at(x_at), (B, width + D))
        for b in range(B - 1, -1, -1):  # from behind: rows move apart
            for j in range(width - 1, -1, -1):
                wider[b, j] = x[b, j]
            for j in range(D):
                wider[b, width + j] = y[b, j]
        return
    mixing = carray(floats_at(y_at + 4 * B * D), (B, D))
    for b in range(B):
        for j in range(D):
            if connections == PLAIN or width != D:
                joined[b, j] = y[b, j]
            elif connections == RESIDUAL:
                joined[b, j] = x[b, j] + y[b, j]
            else:
                new = sigmoid(mixing[b, j])
                joined[b, j] = new * y[b, j] + (1 - new) * x[b, j]


@njit(**LOOP)
def _drop_first(x_at, out_at, B, E, width):
    """x (B, width) -> out (B, width - E)."""
    x, out = carray(floats_at(x_at), (B, width)), carray(floats_at(out_at), (B, width - E))
    for b in range(B):
        for j in range(E, width):
            out[b, j - E] = x[b, j]
