"""Steps of a beam search in one compiled loop, while nothing ends: what does is decided in decoding/beam.py.

    total of a candidate = total of its hypothesis + log p                       (1)
    of the W k candidates of a prompt the 2W best; of these the W best go on     (2)

Of equally good candidates those of the hypothesis that stood before come first, then the lower token: as there, to the
bit. The loop returns before a step at which a hypothesis of the beam ends, too few could go on, or a prompt is done.
What was kept of a hypothesis is copied where another takes its place, and else left alone.

Shapes: N prompts, W beam width, R = N * W rows, V vocabulary, T places of tokens, k = min(2W, V), P parts of the state.
"""

from __future__ import annotations

import numpy as np
from numba import carray, int64, njit

from .arithmetic import IN_ORDER, address, doubles_at, floats_at, hold, ints_at, share
from .best_tokens import best_of_row
from .compiled import FRAME, LOG_PROBS, NUM_ROWS, TOKENS
from .team import wait
from .writing import call

STEP, STEP_FRAME, SETTINGS, HISTORY, TOTALS, WORST, NORMS, VALUES, BEST, PARTS, MOVES, FOUND = range(12)
SEARCHING = 12
"""Of the frame of `search`: addresses. HISTORY int64 (R, T); TOTALS float64 (N, W); WORST and NORMS float64 (N,), of
decoding/beam.py; VALUES float32 and BEST int64 (R, k), room for the best tokens; PARTS int64 (P, 2), of each part of
the state the address, and how many times 4 bytes a row has; MOVES int64 (2R, 2), room."""
WIDTH, STOP, NEVER, MIN_TOKENS, VOCAB_SIZE, NUM_PARTS, DONE, UNTIL = range(8)
"""Of the settings, int64; -1 where there is none. DONE: tokens of each row; UNTIL: go on to so many, which is T."""
NUM_WRITTEN, GOES_ON = range(2)
"""Of what is found, int64."""


def search(rank, ranks, meetings, met, frame):
    """Add tokens to `history`, and log p to `totals`, both in the order of the beam, until something ends or there are
    as many as wanted. `log_probs` (R, V) of the step's frame are those of the tokens that come next."""
    at, one = carray(ints_at(frame), (SEARCHING,)), int64(1)
    settings, found = carray(ints_at(at[SETTINGS]), (UNTIL + 1,)), carray(ints_at(at[FOUND]), (GOES_ON + 1,))
    step, W, V, T = carray(ints_at(at[STEP_FRAME]), (FRAME,)), settings[WIDTH], settings[VOCAB_SIZE], settings[UNTIL]
    R, P = step[NUM_ROWS], settings[NUM_PARTS]
    N, k = R // W, min(2 * W, V)
    log_probs, read = carray(floats_at(step[LOG_PROBS]), (R, V)), carray(ints_at(step[TOKENS]), (R,))
    history, totals = carray(ints_at(at[HISTORY]), (R, T)), carray(doubles_at(at[TOTALS]), (N, W))
    worst, norms = carray(doubles_at(at[WORST]), (N,)), carray(doubles_at(at[NORMS]), (N,))
    values, best = carray(floats_at(at[VALUES]), (R, k)), carray(ints_at(at[BEST]), (R, k))
    parts, moves = carray(ints_at(at[PARTS]), (P, 2)), carray(ints_at(at[MOVES]), (2 * R, 2))
    parents, chosen, reached = np.empty(R, np.int64), np.empty(R, np.int64), np.empty((N, W))
    first, last = share(rank, ranks, R, one)
    for t in range(settings[DONE], settings[UNTIL]):
        for row in range(first, last):
            if settings[NEVER] >= 0:
                log_probs[row, settings[NEVER]] = -np.inf
            if settings[STOP] >= 0 and t + 1 < settings[MIN_TOKENS]:
                log_probs[row, settings[STOP]] = -np.inf
            best_of_row(log_probs[row], values[row], best[row])
        met = wait(ranks, meetings, met)
        if rank == 0:
            goes_on = True
            for n in range(N):
                goes_on &= advance(n, W, totals[n], values, best, settings[STOP], parents, chosen, reached[n])
                goes_on &= not worst[n] >= reached[n, 0] / norms[n]
            found[GOES_ON] = goes_on
            if goes_on:
                num = plan_moves(parents, moves)
                move(at[HISTORY], 2 * T, R, moves, num)
                for part in range(P):
                    move(parts[part, 0], parts[part, 1], R, moves, num)
                for row in range(R):
                    history[row, t] = read[row] = chosen[row]
                totals[:] = reached
                found[NUM_WRITTEN] = t + 1
        met = wait(ranks, meetings, met)
        if not found[GOES_ON]:
            return met
        met = call(at[STEP], rank, ranks, meetings, met, at[STEP_FRAME])
    return met


@njit(**IN_ORDER)
def advance(n, W, totals, values, best, stop, parents, chosen, reached):
    """(1) and (2) of prompt n: where the W that go on come from, (R,), their tokens, (R,), and totals, (W,). Whether
    all is as it should be: none of the beam ends, and there are W."""
    k = values.shape[1]
    most = min(2 * W, W * k)
    highest, places, num = np.empty(most), np.empty(most, np.int64), 0
    for w in range(W):
        for i in range(k):
            total = totals[w] + values[n * W + w, i]
            if num == most and not total > highest[num - 1]:
                break  # those behind it are no higher
            place = min(num, most - 1)
            while place > 0 and total > highest[place - 1]:
                highest[place], places[place] = highest[place - 1], places[place - 1]
                place -= 1
            highest[place], places[place] = total, w * k + i
            num = min(num + 1, most)
    kept = 0
    for c in range(num):
        row = n * W + places[c] // k
        token = best[row, places[c] % k]
        if kept == W:
            break
        if token == stop or highest[c] == -np.inf:
            return False
        parents[n * W + kept], chosen[n * W + kept], reached[kept] = row, token, highest[c]
        kept += 1
    return kept == W


@njit(**IN_ORDER)
def plan_moves(parents, moves):
    """Copies (from, to) after which each row i is what row parents[i] (R,) was: a row is written when no other is still
    to be made of it. Where rows change places in a circle, one waits in place R. Returns how many."""
    R, num, num_free = len(parents), 0, 0
    readers, is_done, free = np.zeros(R, np.int64), np.zeros(R, np.bool_), np.empty(R, np.int64)
    for row in range(R):
        is_done[row] = parents[row] == row
        if not is_done[row]:
            readers[parents[row]] += 1
    for row in range(R):
        if not is_done[row] and readers[row] == 0:
            free[num_free] = row
            num_free += 1
    while num_free:
        num_free -= 1
        row = free[num_free]
        parent = parents[row]
        moves[num, 0], moves[num, 1], is_done[row] = parent, row, True
        num += 1
        readers[parent] -= 1
        if readers[parent] == 0 and not is_done[parent]:
            free[num_free] = parent
            num_free += 1
    for row in range(R):
        if is_done[row]:
            continue
        moves[num, 0], moves[num, 1] = row, R
        num, to = num + 1, row
        while not is_done[to]:
            is_done[to] = True
            moves[num, 0], moves[num, 1] = R if parents[to] == row else parents[to], to
            num, to = num + 1, parents[to]
    return num


@njit(**IN_ORDER)
def move(rows_at, width, R, moves, num):
    """Copy rows (R, width) of 4 bytes each."""
    waiting = np.empty(width, np.float32)
    for n in range(num):
        before, to = moves[n, 0], moves[n, 1]
        source = carray(floats_at(address(waiting) if before == R else rows_at + 4 * before * width), (width,))
        target = carray(floats_at(address(waiting) if to == R else rows_at + 4 * to * width), (width,))
        for j in range(width):
            target[j] = source[j]
    hold(waiting)
