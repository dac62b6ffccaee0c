"""Compiled loops over the grams of a text. Equations are numbered as in models/ngram.py.

All levels stand end to end: gram i of all N has its last token in words[i], log_prob and log_backoff in values[i], and
its continuations from first[i] up to first[i+1]. The first V grams are the tokens. Arrays are never handed from one
compiled function to another: counting who holds them would cost more than the work.

Shapes: B batch, T steps, V vocabulary, N grams of all levels.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NOTHING = -1  # in a context: no token there; as a gram: the empty one, or none
MAX_SCANNED = 4  # continuations of a gram that are looked at one by one; where there are more, an index has them
NO_GRAM, EMPTY = np.uint32(2**32 - 1), np.uint64(2**64 - 1)  # NOTHING, unsigned
HALF, ONE, MIX = np.uint64(32), np.uint64(1), np.uint64(0x9E3779B97F4A7C15)  # of a key; Knuth's multiplier, 2^64 / phi


@njit(cache=True)
def sort_by_key(places, keys, num_keys):
    """Places by their keys[place], which are below num_keys; equal ones stay in order. One pass counts, one places."""
    begin = np.zeros(num_keys + 1, dtype=np.int64)
    for place in places:
        begin[keys[place] + 1] += 1
    for key in range(num_keys):
        begin[key + 1] += begin[key]
    result = np.empty_like(places)
    for place in places:
        result[begin[keys[place]]] = place
        begin[keys[place]] += 1
    return result


@njit(cache=True)
def count_grams(places, context, words):
    """Number the grams (context, word) at places (sorted by both): gram of each place in the text, and per gram parent,
    last token, count, and a place where it ends."""
    num_grams = 0
    gram = np.full(len(words), NOTHING, dtype=np.int32)
    for i in range(len(places)):
        place, before = places[i], places[i - 1]
        if i == 0 or context[place] != context[before] or words[place] != words[before]:
            num_grams += 1
        gram[place] = num_grams - 1
    seen_at = np.empty(num_grams, dtype=np.int32)
    counts = np.zeros(num_grams, dtype=np.int32)
    for place in places:
        seen_at[gram[place]] = place
        counts[gram[place]] += 1
    return gram, context[seen_at], words[seen_at], counts, seen_at


@njit(cache=True)
def fill_index(index, words, first):
    """For each gram with more than MAX_SCANNED continuations, these and their last tokens, in one number.

    It stands in the slot that the gram and the token name, or the next one that was empty.
    """
    mask, shift = np.uint64(len(index) - 1), np.uint64(64 - int(np.log2(len(index)) + 0.5))
    for gram in range(len(words)):
        if first[gram + 1] - first[gram] > MAX_SCANNED:
            for longer in range(first[gram], first[gram + 1]):
                slot = (np.uint64(gram) << HALF | np.uint64(words[longer])) * MIX >> shift
                while index[slot] != EMPTY:
                    slot = slot + ONE & mask
                index[slot] = np.uint64(longer) << HALF | np.uint64(words[longer])


@njit(cache=True, nogil=True)
def read_grams(given, targets, num_contexts, resets, words, first, values, index):
    """Read given (B, ...), where NOTHING may stand, and then targets (B, T).

    Returns log p of the targets by (1), how long the context was that each was seen after, both (B, T), and in the end
    the grams that are the last 1, 2, ... tokens, (B, num_contexts).
    """
    num_rows, num_given = given.shape
    mask, shift = np.uint64(len(index) - 1), np.uint64(64 - int(np.log2(len(index)) + 0.5))
    log_probs, depths = np.empty(targets.shape), np.empty(targets.shape, dtype=np.uint8)
    result = np.full((num_rows, num_contexts), NOTHING)
    contexts = np.empty(num_contexts + 1, dtype=np.uint32)  # unsigned: an index that needs no check of its sign
    for row in range(num_rows):
        num_known = 0
        for place in range(-num_given, targets.shape[1]):
            token = targets[row, place] if place >= 0 else given[row, num_given + place]
            if token == NOTHING:
                num_known = 0
                continue
            word = np.uint32(token)
            log_prob = values[word, 0]
            longer, num_found = word, 1
            for i in range(num_known):  # from short to long
                gram = contexts[i]
                contexts[i] = longer
                longer = NO_GRAM
                if gram == NO_GRAM:  # this context is not in the trie, but a longer one is
                    continue
                begin = np.uint32(first[gram])
                num_next = np.uint32(first[gram + 1]) - begin
                if num_next > MAX_SCANNED:
                    slot = (np.uint64(gram) << HALF | np.uint64(word)) * MIX >> shift
                    while index[slot] != EMPTY:
                        found = np.uint32(index[slot] >> HALF)
                        if np.uint32(index[slot]) == word and np.uint32(found - begin) < num_next:
                            longer = found
                            break
                        slot = slot + ONE & mask
                else:
                    for place_of_next in range(begin, begin + num_next):
                        if words[place_of_next] == word:
                            longer = np.uint32(place_of_next)
                if longer == NO_GRAM:
                    log_prob += values[gram, 1]
                else:
                    log_prob = values[longer, 0]
                    num_found = i + 2
            contexts[num_known] = longer
            num_known = min(num_found, num_contexts)
            if word == resets:
                contexts[0], num_known = word, min(1, num_contexts)
            if place >= 0:
                log_probs[row, place] = log_prob
                depths[row, place] = num_found - 1
        for i in range(num_known):
            result[row, i] = contexts[i] if contexts[i] != NO_GRAM else NOTHING
    return log_probs, depths, result


@njit(cache=True)
def distributions(contexts, vocab_size, words, first, values):
    """log p of every token after contexts (B, levels - 1): (B, V)."""
    result = np.empty((len(contexts), vocab_size))
    for row in range(len(contexts)):
        result[row] = values[:vocab_size, 0]
        for gram in contexts[row]:  # from short to long
            if gram != NOTHING:
                result[row] += values[gram, 1]
                for longer in range(first[gram], first[gram + 1]):
                    result[row, words[longer]] = values[longer, 0]
    return result
