"""Texts written in one compiled loop: choose a token, take a step, and so on, with no Python in between.

The step is that of any family (gpt_step.py, ...), called by the address of its machine code. What is chosen is what
decoding/sampling.py chooses: the same seed gives the same text.

    greedy     argmax of log p                                                                   (1)
    sample     the first token at which the running sum of p^(1/temperature) passes u            (2)
               of the k most probable tokens, and of the fewest that have p together             (3)

Rows stand side by side, each with its own way to choose, and with as many tokens as it has.

Shapes: R rows, n of them for each prompt, S samples, V vocabulary, T tokens of a text.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic

from .arithmetic import IN_ORDER, doubles_at, exp_64, floats_at, ints_at
from .compiled import FRAME, LOG_PROBS, NUM_ROWS, TOKENS
from .team import wait

STEP, STEP_FRAME, SHARED, SETTINGS, FACTORS, UNIFORM, HISTORY, LOG_HISTORY, FOUND = range(9)
WRITING = 9
"""Of the frame of `write`: addresses."""
SAMPLES, VOCAB_SIZE, NUM_STEPS, LENGTH, NUM_CHANCES = range(5)
"""Of what rows share, int64. NUM_STEPS: go on for so many; LENGTH, NUM_CHANCES: places of history and of `uniform`."""
STOP, NEVER, MIN_TOKENS, IS_SAMPLED, TOP_K, SAMPLE, DONE, LIMIT = range(8)
ROW = 8
"""Of the settings of each row, int64; -1 where there is none. SAMPLE: whose chances it takes; DONE: tokens that it has;
LIMIT: how many it may have."""
TEMPERATURE, TOP_P, PENALTY = range(3)
"""Of the factors of each row, float64; 1 where they change nothing."""
NUM_WRITTEN, IS_READ, GOES_ON = range(3)
"""Of what is found, int64: how many tokens were added to each row; whether the last ones are read."""


@intrinsic
def call(typing_context, address, rank, ranks, meetings, met, frame):
    """The function at this address."""

    def generate(context, builder, signature, arguments):
        kind = ir.IntType(64)
        function = builder.inttoptr(arguments[0], ir.FunctionType(kind, [kind] * 5).as_pointer())
        return builder.call(function, arguments[1:])

    return types.int64(*[types.int64] * 6), generate


def write(rank, ranks, meetings, met, frame):
    """Add tokens to `history` (R, T), and their log p to `log_history`, until there are as many as wanted or a prompt
    is done. `log_probs` (R, V) of the step's frame are those of the token that comes next; `uniform` (S, T) has a
    number for each sample and token."""
    at = carray(ints_at(frame), (WRITING,))
    shared, found = carray(ints_at(at[SHARED]), (NUM_CHANCES + 1,)), carray(ints_at(at[FOUND]), (3,))
    step = carray(ints_at(at[STEP_FRAME]), (FRAME,))
    R, n, V, T = step[NUM_ROWS], shared[SAMPLES], shared[VOCAB_SIZE], shared[LENGTH]
    settings, factors = carray(ints_at(at[SETTINGS]), (R, ROW)), carray(doubles_at(at[FACTORS]), (R, 3))
    tokens, log_probs = carray(ints_at(step[TOKENS]), (R,)), carray(floats_at(step[LOG_PROBS]), (R, V))
    history, log_history = carray(ints_at(at[HISTORY]), (R, T)), carray(doubles_at(at[LOG_HISTORY]), (R, T))
    is_over, allowed = np.zeros(R, np.bool_), np.empty(V, np.float64)
    for b in range(R):
        for t in range(settings[b, DONE]):
            is_over[b] |= history[b, t] == settings[b, STOP] or t + 1 >= settings[b, LIMIT]
    for more in range(shared[NUM_STEPS]):
        if rank == 0:
            for b in range(R):
                t = settings[b, DONE] + more
                chance = 0.0
                if settings[b, IS_SAMPLED]:
                    place = at[UNIFORM] + 8 * (settings[b, SAMPLE] * shared[NUM_CHANCES] + t)
                    chance = carray(doubles_at(place), (1,))[0]
                token = choose(log_probs[b], history[b, :t], settings[b], factors[b], chance, allowed)
                tokens[b] = history[b, t] = token
                log_history[b, t] = log_probs[b, token]
                is_over[b] |= token == settings[b, STOP] or t + 1 >= settings[b, LIMIT]
            goes_on = True
            for first in range(0, R, n):
                goes_on &= not is_over[first : first + n].all()
            found[NUM_WRITTEN], found[IS_READ], found[GOES_ON] = more + 1, 0, goes_on
        met = wait(ranks, meetings, met)
        if not found[GOES_ON]:
            return met
        met = call(at[STEP], rank, ranks, meetings, met, at[STEP_FRAME])
        if rank == 0:
            found[IS_READ] = 1
    return met


@njit(**IN_ORDER)
def choose(log_probs, before, settings, factors, chance, allowed):
    """The next token after those `before` (T,), given log p (V,), in which what may not be chosen is marked; `allowed`
    (V,) is room to compute in."""
    if settings[NEVER] >= 0:
        log_probs[settings[NEVER]] = -np.inf
    if settings[STOP] >= 0 and len(before) + 1 < settings[MIN_TOKENS]:
        log_probs[settings[STOP]] = -np.inf
    if settings[IS_SAMPLED] == 0 and factors[PENALTY] == 1.0:
        return np.argmax(log_probs)
    for token in range(len(log_probs)):
        allowed[token] = log_probs[token]
    if factors[PENALTY] != 1.0:
        for token in before:
            allowed[token] = log_probs[token] * np.float32(factors[PENALTY])
    return draw(allowed, settings[TOP_K], factors, chance) if settings[IS_SAMPLED] else np.argmax(allowed)


@njit(**IN_ORDER)
def draw(probs, top_k, factors, chance):
    """(2) and (3), from log p (V,), which is overwritten."""
    V, total = len(probs), _to_probs(probs, probs.max(), factors[TEMPERATURE])
    if 0 < top_k < V or factors[TOP_P] < 1.0:
        total = _keep_best(probs, top_k if 0 < top_k < V else V, factors[TOP_P], total)
    threshold, reached, last = chance * total, 0.0, V - 1
    for token in range(V):
        reached += probs[token]
        if reached > threshold:
            return token
        if probs[token] > 0.0:
            last = token
    return last  # sums in another order may end below the threshold


@njit(**{**IN_ORDER, "fastmath": {"reassoc", "contract"}})  # but a small temperature has no reciprocal
def _to_probs(log_probs, highest, temperature):
    """p^(1/temperature) in the place of log p, the highest of them one. Returns their sum."""
    total = 0.0
    for token in range(len(log_probs)):
        log_probs[token] = exp_64((log_probs[token] - highest) / temperature)
        total += log_probs[token]
    return total


@njit(**IN_ORDER)
def _keep_best(probs, k, share, total):
    """All but the k highest become zero and, of these, all but the fewest that have this share of their sum. Of equals
    the lower token is the higher. Returns what is left of the sum."""
    heap = np.arange(len(probs))
    for place in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, place, len(heap), probs)
    best, values, size = np.empty(k, np.int64), np.empty(k, np.float64), len(heap)
    num, reached, wanted = 0, 0.0, share * total
    while num < k and (k < len(probs) or reached < wanted):  # where k cuts, the share is of what k leaves
        best[num], values[num] = heap[0], probs[heap[0]]
        reached += values[num]
        num, size = num + 1, size - 1
        heap[0] = heap[size]
        _sink(heap, 0, size, probs)
    probs[:] = 0.0
    wanted, reached = min(wanted, share * reached) if k < len(probs) else wanted, 0.0
    for place in range(num):
        if reached >= wanted and place > 0:
            break
        probs[best[place]] = values[place]
        reached += values[place]
    return reached


@njit(**IN_ORDER)
def _sink(heap, place, size, values):
    """Let what stands at a place of the heap of tokens go down to where it belongs."""
    while True:
        highest = place
        for child in (2 * place + 1, 2 * place + 2):
            if child < size:
                ours, theirs = values[heap[highest]], values[heap[child]]
                if theirs > ours or (theirs == ours and heap[child] < heap[highest]):
                    highest = child
        if highest == place:
            return
        heap[place], heap[highest] = heap[highest], heap[place]
        place = highest
