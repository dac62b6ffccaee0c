"""The best few tokens of each row, in one compiled pass: what a beam search looks at after each step.

Shapes: R rows, V vocabulary.
"""

from __future__ import annotations

from numba import carray, njit

from .arithmetic import IN_ORDER, address, floats_at, ints_at
from .tiles import highest_at

NUM_ROWS, VOCAB_SIZE, NUM_BEST, LOG_PROBS, VALUES, TOKENS = range(6)
"""Of the frame: sizes, and addresses of log p (R, V), and of what is found, (R, k) each."""
FRAME = 6
BLOCK = 64  # tokens whose best is found at once: most blocks have none that counts


def best_tokens(rank, ranks, meetings, met, frame):
    """The k highest of each row and their tokens, highest first; of equals the lower token."""
    at = carray(ints_at(frame), (FRAME,))
    R, V, k = at[NUM_ROWS], at[VOCAB_SIZE], at[NUM_BEST]
    log_probs, values = carray(floats_at(at[LOG_PROBS]), (R, V)), carray(floats_at(at[VALUES]), (R, k))
    tokens = carray(ints_at(at[TOKENS]), (R, k))
    for row in range(R):
        best_of_row(log_probs[row], values[row], tokens[row])
    return met


@njit(**IN_ORDER)
def best_of_row(log_probs, values, tokens):
    """The k highest of one row (V,), and their tokens."""
    num, k, V = 0, len(values), len(log_probs)
    for start in range(0, V, BLOCK):
        end = min(start + BLOCK, V)
        if num < k or highest_at(address(log_probs) + 4 * start, end - start) > values[k - 1]:
            num = _insert(log_probs, start, end, values, tokens, num)


@njit(**IN_ORDER)
def _insert(numbers, start, end, values, tokens, num):
    """Put those of a block that are among the best where they belong. Returns how many there are."""
    k = len(values)
    for token in range(start, end):
        value = numbers[token]
        if num == k and not value > values[k - 1]:
            continue
        place = min(num, k - 1)
        while place > 0 and value > values[place - 1]:
            values[place], tokens[place] = values[place - 1], tokens[place - 1]
            place -= 1
        values[place], tokens[place] = value, token
        num = min(num + 1, k)
    return num
