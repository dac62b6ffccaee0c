"""Compiled loops that learn word vectors from a text. Equations are numbered as in models/word2vec.py.

A text is ids with a separator behind each line. Words come and go by chance: `keep` holds with what probability each
stays (0 of a word that has no vector). Several threads may learn into the same vectors at once, without locks (Recht
et al. 2011): now and then one overwrites what another has just added, and no vector suffers from it.

Random numbers are splitmix64 (Steele et al. 2014), so that one seed is one result. The logistic function is read from a
table. fastmath lets sums be taken in any order, so that they are taken many at once.

Shapes: N tokens of the text, V vocabulary, E embedding width, K targets of a prediction, L nodes of all paths together.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LONGEST_LINE = 10_000  # words; of longer lines each stretch of so many is a line
MEASURED = 16  # of so many words, the loss of one is measured: logarithms are slow
MAX_LOGIT = 8.0  # beyond, the logistic function is taken as it is there
TABLE_SIZE = 4096
SIGMOID = (1 / (1 + np.exp(MAX_LOGIT - (np.arange(TABLE_SIZE) + 0.5) * 2 * MAX_LOGIT / TABLE_SIZE))).astype(np.float32)

_FAST = {"reassoc", "contract", "nsz", "arcp"}
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_LOW = np.uint64(0xFFFFFFFF)


# -- chance --------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def _draw_bits(random):
    """64 random bits; `random` (1,) is what the generator remembers."""
    random[0] += _STEP
    mixed = random[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


@njit(cache=True, nogil=True, inline="always")
def _draw_below(random, limit):
    """A whole number from 0 to limit - 1."""
    return np.int64(((_draw_bits(random) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


@njit(cache=True)
def alias_table(weights):
    """Weights (V,) -> a table (V, 2) to draw by them with one number each (Walker 1977, Vose 1991).

    A place is drawn evenly; it stands for itself with the probability table[., 0] / 2**32, else for table[., 1].
    """
    V, total = len(weights), 0.0
    for word in range(V):
        total += weights[word]
    share, table = np.empty(V), np.empty((V, 2), dtype=np.uint32)
    waiting, num_small, num_large = np.empty(V, dtype=np.int64), 0, 0  # small from the left, large from the right
    for word in range(V):
        share[word] = weights[word] * (V / total)
        table[word, 0], table[word, 1] = np.uint32(_LOW), word
        if share[word] < 1:
            waiting[num_small] = word
            num_small += 1
        else:
            num_large += 1
            waiting[V - num_large] = word
    while num_small > 0 and num_large > 0:
        num_small -= 1
        small, large = waiting[num_small], waiting[V - num_large]
        table[small, 0], table[small, 1] = np.uint32(share[small] * _LOW), large
        share[large] -= 1 - share[small]
        if share[large] < 1:
            num_large -= 1
            waiting[num_small] = large
            num_small += 1
    return table


@njit(cache=True, nogil=True, inline="always")
def _draw_word(random, table):
    bits = _draw_bits(random)
    place = ((bits >> np.uint64(32)) * np.uint64(len(table))) >> np.uint64(32)
    is_itself = np.uint32(bits & _LOW) <= table[place, 0]
    return np.int32(place) if is_itself else np.int32(table[place, 1])


@njit(cache=True)
def draw_words(table, seed, num):
    """`num` words by an alias table."""
    random, words = np.array([seed], dtype=np.uint64), np.empty(num, dtype=np.int32)
    for place in range(num):
        words[place] = _draw_word(random, table)
    return words


# -- Huffman codes -------------------------------------------------------------------------------------------------


@njit(cache=True)
def huffman_paths(counts):
    """Counts (V,), falling -> where the path of each word begins (V + 1,), its inner nodes (L,), its turns (L,).

    The two rarest are joined until one is left (Huffman 1952); the last inner node to be made, V - 2, is the root. As
    counts fall and those of inner nodes rise, the rarest stand at two ends, and nothing has to be sorted.
    """
    V = len(counts)
    parent, turn = np.zeros(2 * V - 1, dtype=np.int32), np.zeros(2 * V - 1, dtype=np.uint8)
    weight = np.zeros(2 * V - 1)
    for word in range(V):
        weight[word] = counts[word]
    leaf, inner = V - 1, V
    for new in range(V, 2 * V - 1):
        for side in range(2):
            if leaf >= 0 and (inner >= new or weight[leaf] <= weight[inner]):
                rarest, leaf = leaf, leaf - 1
            else:
                rarest, inner = inner, inner + 1
            weight[new] += weight[rarest]
            parent[rarest], turn[rarest] = new, side
    first = np.zeros(V + 1, dtype=np.int64)
    for word in range(V):
        node, length = word, 0
        while node != 2 * V - 2:
            node, length = parent[node], length + 1
        first[word + 1] = first[word] + length
    nodes, turns = np.empty(first[V], dtype=np.int32), np.empty(first[V], dtype=np.uint8)
    for word in range(V):
        node, place = word, first[word + 1]
        while node != 2 * V - 2:
            place -= 1
            nodes[place], turns[place] = parent[node] - V, turn[node]
            node = parent[node]
    return first, nodes, turns


# -- learning ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, fastmath=_FAST, inline="always")
def _predict(hidden, outputs, rows, num, gains):
    """gains[k] = hidden . outputs[rows[k]]. Three rows at once, which spares reading `hidden`."""
    whole = num - num % 3
    for k in range(0, whole, 3):
        a, b, c = outputs[rows[k]], outputs[rows[k + 1]], outputs[rows[k + 2]]
        of_a, of_b, of_c = np.float32(0), np.float32(0), np.float32(0)
        for e in range(len(hidden)):
            of_a += hidden[e] * a[e]
            of_b += hidden[e] * b[e]
            of_c += hidden[e] * c[e]
        gains[k], gains[k + 1], gains[k + 2] = of_a, of_b, of_c
    for k in range(whole, num):
        a, of_a = outputs[rows[k]], np.float32(0)
        for e in range(len(hidden)):
            of_a += hidden[e] * a[e]
        gains[k] = of_a


@njit(cache=True, nogil=True, fastmath=_FAST, inline="always")
def _update(hidden, outputs, rows, num, gains, change):
    """change = sum of gains[k] outputs[rows[k]], and outputs[rows[k]] += gains[k] hidden, each by itself: a row that
    was drawn twice is moved twice."""
    whole = num - num % 3
    for e in range(len(hidden)):
        change[e] = 0
    for k in range(0, whole, 3):
        a, b, c = outputs[rows[k]], outputs[rows[k + 1]], outputs[rows[k + 2]]
        of_a, of_b, of_c = gains[k], gains[k + 1], gains[k + 2]
        for e in range(len(hidden)):
            change[e] += of_a * a[e] + of_b * b[e] + of_c * c[e]
            a[e] += of_a * hidden[e]
            b[e] += of_b * hidden[e]
            c[e] += of_c * hidden[e]
    for k in range(whole, num):
        a, of_a = outputs[rows[k]], gains[k]
        for e in range(len(hidden)):
            change[e] += of_a * a[e]
            a[e] += of_a * hidden[e]


@njit(cache=True, nogil=True, fastmath=_FAST, inline="always")
def learn_targets(hidden, outputs, rows, labels, num, rate, gains, change, is_measured):
    """One step of (5): outputs move, and `change` (E,) is by how much `hidden` should. Returns the loss, if measured.

    The targets are rows of `outputs` that should be near `hidden` where their label is 1, and far where it is 0.
    """
    _predict(hidden, outputs, rows, num, gains)
    loss, limit, scale = 0.0, np.float32(MAX_LOGIT), np.float32(TABLE_SIZE / (2 * MAX_LOGIT))
    for k in range(num):
        logit = gains[k]
        if is_measured:
            signed = logit if labels[k] > 0 else -logit
            loss += np.log1p(np.exp(-abs(signed))) - min(signed, np.float32(0))
        place = TABLE_SIZE - 1 if logit >= limit else 0
        if -limit < logit < limit:  # false of what is no number, which no place in the table belongs to
            place = min(int((logit + limit) * scale), TABLE_SIZE - 1)
        gains[k] = (labels[k] - SIGMOID[place]) * rate
    _update(hidden, outputs, rows, num, gains, change)
    return loss


@njit(cache=True, nogil=True, inline="always")
def _choose_targets(word, negative, table, first, nodes, turns, random, rows, labels):
    """Of `word`: the nodes of its path where there is one (4), else itself and what is drawn beside it (3)."""
    if negative == 0:
        begin, num = first[word], first[word + 1] - first[word]
        for k in range(num):
            rows[k], labels[k] = nodes[begin + k], np.float32(1 - turns[begin + k])
        return num
    rows[0], labels[0], num = word, np.float32(1), 1
    for _ in range(negative):
        drawn = _draw_word(random, table)
        if drawn != word:
            rows[num], labels[num] = drawn, np.float32(0)
            num += 1
    return num


@njit(cache=True, nogil=True, fastmath=_FAST, inline="always")
def _add(change, row):
    for e in range(len(row)):
        row[e] += change[e]


@njit(cache=True, nogil=True, fastmath=_FAST, inline="always")
def _average(vectors, line, begin, place, end, mean):
    """mean = that of the vectors of line[begin:end] without the one at `place`."""
    for e in range(len(mean)):
        mean[e] = 0
    for other in range(begin, end):
        if other != place:
            _add(vectors[line[other]], mean)
    share = np.float32(1) / np.float32(end - begin - 1)
    for e in range(len(mean)):
        mean[e] *= share


@njit(cache=True, nogil=True, fastmath=_FAST)
def learn_text(
    tokens, separator, keep, window, is_cbow, negative, table, first, nodes, turns, vectors, outputs, rates, seed
):
    """Read tokens (N,) once, line by line, moving `vectors` and `outputs`; the rate goes from rates[0] to rates[1].

    `table` is what negatives are drawn by; where `negative` is 0, words are predicted along the paths in `first`,
    `nodes` and `turns`. Returns the loss of the predictions that were measured, and how many they were.
    """
    room = negative + 1  # for the targets of a word
    for word in range(len(first) - 1):
        room = max(room, first[word + 1] - first[word])
    line, random = np.empty(LONGEST_LINE, dtype=np.int32), np.array([seed], dtype=np.uint64)
    rows, labels, gains = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.float32), np.empty(room, np.float32)
    mean, change = np.empty(vectors.shape[1], dtype=np.float32), np.empty(vectors.shape[1], dtype=np.float32)
    length, num_words, loss, num_measured = 0, 0, 0.0, 0
    for n in range(len(tokens)):
        token = tokens[n]
        if token != separator:
            if (_draw_bits(random) >> np.uint64(11)) * 2.0**-53 < keep[token]:
                line[length] = token
                length += 1
            if length < LONGEST_LINE and n < len(tokens) - 1:
                continue
        rate = np.float32(rates[0] + (rates[1] - rates[0]) * n / len(tokens))
        for place in range(length):
            reach = 1 + _draw_below(random, window)
            begin, end = max(0, place - reach), min(length, place + reach + 1)
            num_words += 1
            is_measured = num_words % MEASURED == 1
            if end - begin == 1:  # alone in its line
                continue
            num = _choose_targets(line[place], negative, table, first, nodes, turns, random, rows, labels)
            if is_cbow:
                _average(vectors, line, begin, place, end, mean)
                loss += learn_targets(mean, outputs, rows, labels, num, rate, gains, change, is_measured)
                num_measured += is_measured
                for other in range(begin, end):
                    if other != place:
                        _add(change, vectors[line[other]])
                continue
            for other in range(begin, end):
                if other != place:
                    vector = vectors[line[other]]
                    loss += learn_targets(vector, outputs, rows, labels, num, rate, gains, change, is_measured)
                    num_measured += is_measured
                    _add(change, vector)
        length = 0
    return loss, num_measured
