"""Compiled loops over bags of grams. Equations are numbered as in models/bag_of_ngrams.py.

A gram is known by a 64-bit mix of its tokens. Rows stand end to end: row i of ids is ids[edges[i]] to ids[edges[i+1]],
and its distinct grams stand likewise in keys or, as places in the vocabulary, in columns.

Shapes: M rows, F grams in the vocabulary, N labels, G grams of one row.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ONE, GOLDEN = np.uint64(1), np.uint64(0x9E3779B97F4A7C15)  # 2^64 / phi: the ids of neighbours lie far apart
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # of splitmix64 (Steele et al. 2014)
SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
NO_TOKENS = np.uint64(0)
SHARED = np.uint64(3)  # as the texts that a gram stands in: no gram at all, but how many grams two texts share
TENTHS = 10
FREE = -1
INNER_STEPS, NARROW = 30, 1e-3  # of the search along a line, which need not be exact: the next visit goes on


@njit(cache=True, inline="always")
def _mix(key, number):
    """One more number behind those that `key` stands for."""
    key = key + (number + ONE) * GOLDEN
    key = (key ^ key >> SHIFT_1) * MIX_1
    key = (key ^ key >> SHIFT_2) * MIX_2
    return key ^ key >> SHIFT_3


@njit(cache=True, nogil=True)
def row_grams(row, order, separator, num_texts, starts, lengths, texts, keys):
    """Every occurrence of a gram in one row: where it begins, its tokens, which text it is in, its key. Returns G.

    A separator may begin a gram or end it: no gram reaches across one. Alone it says nothing.
    """
    num_grams, text = 0, 0
    for start in range(len(row)):
        if start > 0 and row[start] == separator and text < num_texts - 1:
            text += 1
        key = NO_TOKENS
        for length in range(1, min(order, len(row) - start) + 1):
            token = row[start + length - 1]
            key = _mix(key, np.uint64(token))
            if length == 1 and token == separator:
                continue
            starts[num_grams], lengths[num_grams], texts[num_grams], keys[num_grams] = start, length, text, key
            num_grams += 1
            if token == separator:
                break
    return num_grams


@njit(cache=True, nogil=True)
def distinct_grams(ids, edges, order, separator, num_texts):
    """The distinct grams of each row, in the order in which they come: keys, and where each row begins, (M+1,).

    Of two texts a gram has another key where it is in the first, in the second, or in both (1). Behind the grams come
    those of the tenths of all grams that are in both.
    """
    longest = 0
    for i in range(len(edges) - 1):
        longest = max(longest, edges[i + 1] - edges[i])
    most = longest * order
    num_slots = 4
    while num_slots < 2 * most:
        num_slots *= 2
    mask = np.uint64(num_slots - 1)
    starts, lengths, texts = np.empty((3, most), dtype=np.int64)
    raw, of_texts = np.empty(most, dtype=np.uint64), np.empty(most, dtype=np.uint64)
    slots, slot_row = np.empty(num_slots, dtype=np.int64), np.full(num_slots, FREE)
    shared = np.zeros((order + 1, 4), dtype=np.int64)
    extra = 2 * TENTHS * order if num_texts > 1 else 0
    keys = np.empty(len(ids) * order + extra * (len(edges) - 1), dtype=np.uint64)
    places = np.zeros(len(edges), dtype=np.int64)
    for i in range(len(edges) - 1):
        num_grams = row_grams(ids[edges[i] : edges[i + 1]], order, separator, num_texts, starts, lengths, texts, raw)
        begin, num_found = places[i], 0
        for j in range(num_grams):
            slot = raw[j] & mask
            while slot_row[slot] == i and keys[begin + slots[slot]] != raw[j]:
                slot = slot + ONE & mask
            if slot_row[slot] != i:
                slot_row[slot], slots[slot] = i, num_found
                keys[begin + num_found], of_texts[num_found], lengths[num_found] = raw[j], np.uint64(0), lengths[j]
                num_found += 1
            of_texts[slots[slot]] |= ONE << np.uint64(texts[j])
        if num_texts > 1:
            shared[:] = 0
            for j in range(num_found):
                keys[begin + j] = _mix(keys[begin + j], of_texts[j])  # (1)
                shared[lengths[j], of_texts[j]] += 1
            num_found = _add_tenths(shared, keys, begin, num_found)
        places[i + 1] = begin + num_found
    return keys[: places[-1]].copy(), places


@njit(cache=True, nogil=True)
def _add_tenths(shared, keys, begin, num_found):
    """For grams of each length and for each text: all tenths of its grams that the other has too."""
    for length in range(1, len(shared)):
        both = shared[length, 3]
        for text in range(1, 3):
            total = both + shared[length, text]
            for tenth in range(1, TENTHS + 1):
                if total > 0 and both * TENTHS >= tenth * total:
                    number = np.uint64((length * 3 + text) * (TENTHS + 1) + tenth)
                    keys[begin + num_found] = _mix(_mix(NO_TOKENS, number), SHARED)
                    num_found += 1
    return num_found


@njit(cache=True)
def fill_index(index, vocabulary):
    """The place of each key into the slot that it names, or the next that is free. Keys are mixed well already."""
    mask = np.uint64(len(index) - 1)
    for place in range(len(vocabulary)):
        slot = vocabulary[place] & mask
        while index[slot] != FREE:
            slot = slot + ONE & mask
        index[slot] = place


@njit(cache=True, nogil=True)
def find_grams(keys, edges, vocabulary, index):
    """Places in the vocabulary of the keys that it has, and where each row begins among them, (M+1,)."""
    mask = np.uint64(len(index) - 1)
    columns, places, num_found = np.empty(len(keys), dtype=np.int32), np.zeros(len(edges), dtype=np.int64), 0
    for i in range(len(edges) - 1):
        for j in range(edges[i], edges[i + 1]):
            slot = keys[j] & mask
            while index[slot] != FREE:
                if vocabulary[index[slot]] == keys[j]:
                    columns[num_found] = index[slot]
                    num_found += 1
                    break
                slot = slot + ONE & mask
        places[i + 1] = num_found
    return columns[:num_found].copy(), places


@njit(cache=True)
def count_by_label(columns, edges, labels, counts):
    """counts (F, N): rows of each label that have each gram."""
    for i in range(len(labels)):
        for j in range(edges[i], edges[i + 1]):
            counts[columns[j], labels[i]] += 1


@njit(cache=True, nogil=True)
def sum_weights(columns, edges, weights, logits):
    """Add the weights (F, N) of the grams of each row to its logits (M, N)."""
    for i in range(len(edges) - 1):
        for j in range(edges[i], edges[i + 1]):
            for k in range(weights.shape[1]):
                logits[i, k] += weights[columns[j], k]


@njit(cache=True, nogil=True)
def ascend(visits, columns, edges, costs, strength, offset, table, bias, shares):
    """One pass of dual coordinate ascent (6), rows in the order of `visits`. Returns the duality gap (7), the part of
    each row taken when it was visited.

    table (F, N, 2) holds weight and squared ratio of each gram side by side, as they are needed together; bias (N,) is
    the weight of the gram that every row has, offset (N,) the constant part of logits, shares (M, N) the a of (6).
    """
    N = len(bias)
    logits, squares, change, aim = np.empty(N), np.empty(N), np.empty(N), np.empty(N)
    gap = 0.0
    for i in visits:
        for k in range(N):
            logits[k], squares[k] = offset[k] + bias[k], 1.0
        for j in range(edges[i], edges[i + 1]):
            column = columns[j]
            for k in range(N):
                logits[k] += table[column, k, 0]
                squares[k] += table[column, k, 1]
        scale = costs[i] / strength
        gap += costs[i] * _divergence(logits, shares[i], aim)
        step = _line_search(logits, squares, scale, shares[i], aim)
        for k in range(N):
            moved = step * (aim[k] - shares[i, k])
            shares[i, k] += moved
            change[k] = -scale * moved
            bias[k] += change[k]
        for j in range(edges[i], edges[i + 1]):
            column = columns[j]
            for k in range(N):
                table[column, k, 0] += change[k] * table[column, k, 1]
    return gap


@njit(cache=True, nogil=True)
def _divergence(logits, shares, aim):
    """aim = softmax(logits); returns the divergence KL(shares || aim), in nats."""
    top = logits.max()
    total = 0.0
    for k in range(len(logits)):
        aim[k] = np.exp(logits[k] - top)
        total += aim[k]
    log_total, divergence = np.log(total), 0.0
    for k in range(len(logits)):
        aim[k] /= total
        if shares[k] > 0.0:
            divergence += shares[k] * (np.log(shares[k]) - (logits[k] - top - log_total))
    return max(0.0, divergence)


@njit(cache=True, nogil=True)
def _line_search(logits, squares, scale, shares, aim):
    """How far from shares to aim the dual objective of one row is highest: where its slope is zero, in (0, 1].

    slope(s) = sum over k of d_k (logits_k - log(shares_k + s d_k) - scale s d_k squares_k),  d = aim - shares,
    which falls. Newton's method, and halves where that would leave the interval.
    """
    low, high, curvature = 0.0, 1.0, 0.0
    for k in range(len(logits)):
        curvature = max(curvature, scale * squares[k])
    place = 1.0 / (1.0 + curvature)
    for _ in range(INNER_STEPS):
        slope, bend = 0.0, 0.0
        for k in range(len(logits)):
            d = aim[k] - shares[k]
            if d != 0.0:
                here = shares[k] + place * d
                slope += d * (logits[k] - np.log(here) - scale * place * d * squares[k])
                bend += d * d * (1.0 / here + scale * squares[k])
        if bend == 0.0:
            return 0.0
        if slope > 0.0:
            low = place
        else:
            high = place
        found = place + slope / bend
        if not low < found < high:
            found = 0.5 * (low + high)
        if abs(found - place) <= NARROW * found:
            return found
        place = found
    return place
