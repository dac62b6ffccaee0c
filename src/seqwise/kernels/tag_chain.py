"""Compiled loops of a tagger. Equations are numbered as in models/hmm_tagger.py.

Shapes: W words, K characters of a word, L traits of a word, Z tags, S trigrams that were seen, R rows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ONE, GOLDEN = np.uint64(1), np.uint64(0x9E3779B97F4A7C15)  # 2^64 / phi
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # of splitmix64 (Steele et al. 2014)
SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
OTHER, SMALL, CAPITAL, DIGIT = 0, 1, 2, 3  # kinds of characters
NO_TRAIT = np.uint64(0)
MAX_SUFFIX = 10
SHAPE, FIRST_SUFFIX, FOLDED, WHOLE = 0, 1, MAX_SUFFIX + 1, MAX_SUFFIX + 2  # which trait stands where
NUM_TRAITS = WHOLE + 1


@njit(cache=True, inline="always")
def _mix(key, number):
    """One more number behind those that `key` stands for."""
    key = key + (number + ONE) * GOLDEN
    key = (key ^ key >> SHIFT_1) * MIX_1
    key = (key ^ key >> SHIFT_2) * MIX_2
    return key ^ key >> SHIFT_3


@njit(cache=True, nogil=True)
def word_traits(ids, characters, is_first, folded, kinds):
    """What each word has in common with others, as keys (W, L): its shape, its last 1, 2, ... characters, all of them
    without regard to capitals, and all of them as they are; NO_TRAIT where it has none of these.

    `folded` has the small letter of each character, `kinds` what it is. Where words are not spelled (K = 0), the whole
    word is its id, and it has no other trait.
    """
    num_words, most = characters.shape
    keys = np.full((num_words, NUM_TRAITS), NO_TRAIT)
    for w in range(num_words):
        length, shape = 0, 0
        whole = _mix(np.uint64(WHOLE), np.uint64(ids[w])) if most == 0 else np.uint64(WHOLE)
        while length < most and characters[w, length] > 0:
            character = characters[w, length]
            whole = _mix(whole, np.uint64(character))
            shape |= 1 << (kinds[character] if character < len(kinds) else OTHER)
            length += 1
        keys[w, WHOLE] = whole
        if length == 0:
            continue
        has_capital = characters[w, 0] < len(kinds) and kinds[characters[w, 0]] == CAPITAL
        capital = (2 if is_first[w] else 1) if has_capital else 0
        keys[w, SHAPE] = _mix(_mix(np.uint64(SHAPE), np.uint64(shape)), np.uint64(capital))
        backwards = _mix(np.uint64(FIRST_SUFFIX), np.uint64(has_capital))
        for place in range(1, length + 1):
            character = characters[w, length - place]
            backwards = _mix(backwards, np.uint64(folded[character] if character < len(folded) else character))
            if place <= MAX_SUFFIX:
                keys[w, FIRST_SUFFIX + place - 1] = backwards
        whole = np.uint64(FOLDED)
        for place in range(length):
            character = characters[w, place]
            whole = _mix(whole, np.uint64(folded[character] if character < len(folded) else character))
        keys[w, FOLDED] = whole
    return keys


@njit(cache=True, nogil=True)
def tag_shares(traits, root, strengths, keys, edges, tags, counts):
    """(4): p(tag | word) of words with these traits (W, L), from the tags of all words to those of the word itself.

    Trait keys[i] was seen with tags[edges[i] : edges[i+1]], so often as `counts` say. strengths (L,) are the kappa.
    """
    num_words, num_traits = traits.shape
    result = np.empty((num_words, len(root)))
    for w in range(num_words):
        for tag in range(len(root)):
            result[w, tag] = root[tag]
        for trait in range(num_traits):
            key = traits[w, trait]
            place, above = 0, len(keys)
            while place < above:  # the first that is not below
                middle = (place + above) // 2
                if keys[middle] < key:
                    place = middle + 1
                else:
                    above = middle
            if key == NO_TRAIT or place == len(keys) or keys[place] != key:
                continue
            total = 0.0
            for i in range(edges[place], edges[place + 1]):
                total += counts[i]
            given = strengths[trait]
            for tag in range(len(root)):
                result[w, tag] *= given / (total + given)
            for i in range(edges[place], edges[place + 1]):
                result[w, tags[i]] += counts[i] / (total + given)
    return result


@njit(cache=True, nogil=True)
def _fill(array, number):
    """array[:] = number, which takes long to compile."""
    for place in range(len(array)):
        array[place] = number


@njit(cache=True, nogil=True)
def _normalise(some, others):
    """Divide both by their sum, which is returned."""
    total = 0.0
    for q in range(len(some)):
        total += some[q]
    for k in range(len(others)):
        total += others[k]
    for q in range(len(some)):
        some[q] /= total
    for k in range(len(others)):
        others[k] /= total
    return total


@njit(cache=True, nogil=True)
def _see(evidence, begin, length, t, here):
    """What step t of a row, from 1, says of each tag: a word, or the boundary behind the last."""
    Z = len(here) - 1
    for k in range(Z):
        here[k] = evidence[begin + t - 1, k] if t <= length else 0.0
    here[Z] = 0.0 if t <= length else 1.0


@njit(cache=True, nogil=True)
def _longest(edges):
    longest = 0
    for r in range(len(edges) - 1):
        longest = max(longest, edges[r + 1] - edges[r])
    return longest


@njit(cache=True, nogil=True)
def tag_posteriors(evidence, edges, chain):
    """(6): p(tag | all words of its row), (W, Z), and the log-likelihood of each row (R,), in nats.

    evidence (W, Z) are the factors of (5) that a word gives to its tags. The boundary, before and behind a row, is tag
    Z. chain = pairs, pair_probs, loose, kept, trigrams, seen:  a pair of tags that was seen is a place in pairs (P, 2),
    the last of them the two boundaries before a row, and pair_probs (P,) has (2) of its second tag behind its first;
    loose (Z + 1, Z + 1) has (2) of pairs that were not seen, else 0; kept is 1 - lambda_3, trigrams (S, 2) lead from
    pair to pair, and seen (S,) is lambda_3 P(k | i, j) of each.

    So alpha(j, k) is a number for each pair that was seen. Of all others together it is one for each k, `aside`, and
    beta(j, k) is the same whatever j is, `alone`.
    """
    Z, pairs, longest = evidence.shape[1], chain[0], _longest(edges)
    alphas, asides = np.empty((longest + 2, len(pairs))), np.empty((longest + 2, Z + 1))
    beta, beta_after = np.empty((2, len(pairs)))
    alone, alone_after, arrived, here = np.empty((4, Z + 1))
    posteriors, log_likelihoods = np.empty((len(evidence), Z)), np.zeros(len(edges) - 1)
    for r in range(len(edges) - 1):
        begin, length = edges[r], edges[r + 1] - edges[r]
        _fill(alphas[0], 0.0)
        _fill(asides[0], 0.0)
        alphas[0, len(pairs) - 1] = 1.0
        for t in range(1, length + 2):
            _see(evidence, begin, length, t, here)
            _forward(alphas[t - 1], asides[t - 1], here, chain, arrived, alphas[t], asides[t])
            log_likelihoods[r] += np.log(_normalise(alphas[t], asides[t]))
        _fill(beta_after, 1.0)
        _fill(alone_after, 1.0)
        for t in range(length, 0, -1):
            _see(evidence, begin, length, t + 1, here)
            _backward(beta_after, alone_after, here, chain, beta, alone)
            _normalise(beta, alone)
            total = 0.0
            for k in range(Z):
                arrived[k] = asides[t, k] * alone[k]
            for q in range(len(pairs)):
                arrived[pairs[q, 1]] += alphas[t, q] * beta[q]
            for k in range(Z):
                total += arrived[k]
            for k in range(Z):
                posteriors[begin + t - 1, k] = arrived[k] / total
            beta, beta_after, alone, alone_after = beta_after, beta, alone_after, alone
    return posteriors, log_likelihoods


@njit(cache=True, nogil=True)
def _forward(before, aside, here, chain, arrived, after, aside_after):
    """One step of alpha: of each pair (j, k) that was seen, and summed over the others."""
    pairs, pair_probs, loose, kept, trigrams, seen = chain
    for j in range(len(here)):
        arrived[j], aside_after[j] = aside[j], 0.0
    for q in range(len(pairs)):
        arrived[pairs[q, 1]] += kept * before[q]  # at j, whose own context speaks
    for j in range(len(here)):
        for k in range(len(here)):
            aside_after[k] += arrived[j] * loose[j, k]
    for k in range(len(here)):
        aside_after[k] *= here[k]
    for q in range(len(pairs)):
        after[q] = arrived[pairs[q, 0]] * pair_probs[q]
    for s in range(len(seen)):
        after[trigrams[s, 1]] += before[trigrams[s, 0]] * seen[s]
    for q in range(len(pairs)):
        after[q] *= here[pairs[q, 1]]


@njit(cache=True, nogil=True)
def _backward(after, alone_after, here, chain, beta, alone):
    """One step of beta: of each pair (j, k) that was seen, and of k behind any other j."""
    pairs, pair_probs, loose, kept, trigrams, seen = chain
    for j in range(len(here)):
        total = 0.0
        for k in range(len(here)):
            total += loose[j, k] * here[k] * alone_after[k]
        alone[j] = total
    for q in range(len(pairs)):
        alone[pairs[q, 0]] += pair_probs[q] * here[pairs[q, 1]] * after[q]
    for q in range(len(pairs)):
        beta[q] = kept * alone[pairs[q, 1]]
    for s in range(len(seen)):
        beta[trigrams[s, 0]] += seen[s] * here[pairs[trigrams[s, 1], 1]] * after[trigrams[s, 1]]


@njit(cache=True, nogil=True)
def best_tags(evidence, edges, chain):
    """(7): the likeliest tags of each row, (W,), and the log of (5) with these, (R,), in nats.

    Arguments as above. Here `aside` has the best of the pairs (j, k) that were not seen, for each k.
    """
    Z, pairs, longest = evidence.shape[1], chain[0], _longest(edges)
    place = np.full((Z + 1, Z + 1), -1, dtype=np.int32)
    for q in range(len(pairs)):
        place[pairs[q, 0], pairs[q, 1]] = q
    from_pair = np.zeros((longest + 2, len(pairs)), dtype=np.int32)  # the best i before (j, k), where that was seen,
    from_tag = np.zeros((longest + 2, Z + 1), dtype=np.int32)  # and the best before j, whatever k is, where it was not
    from_aside = np.zeros(Z + 1, dtype=np.int32)  # the j of aside
    best, after = np.empty((2, len(pairs)))
    aside, aside_after, arrived, here = np.empty((4, Z + 1))
    result, log_joints = np.empty(len(evidence), dtype=np.int64), np.zeros(len(edges) - 1)
    for r in range(len(edges) - 1):
        begin, length = edges[r], edges[r + 1] - edges[r]
        _fill(best, 0.0)
        _fill(aside, 0.0)
        best[len(pairs) - 1] = 1.0
        for t in range(1, length + 2):
            _see(evidence, begin, length, t, here)
            _step(best, aside, here, chain, from_pair[t], from_tag[t], from_aside, arrived, after, aside_after)
            log_joints[r] += np.log(_normalise(after, aside_after))
            best, after, aside, aside_after = after, best, aside_after, aside
        j, k, top = from_aside[Z], Z, aside[Z]
        for q in range(len(pairs)):
            if pairs[q, 1] == Z and best[q] > top:
                j, top = pairs[q, 0], best[q]
        log_joints[r] += np.log(top)
        for t in range(length + 1, 1, -1):
            result[begin + t - 2] = j
            before = from_pair[t, place[j, k]] if place[j, k] >= 0 else from_tag[t, j]
            j, k = before, j
    return result, log_joints


@njit(cache=True, nogil=True)
def _step(best, aside, here, chain, from_pair, from_tag, from_aside, arrived, after, aside_after):
    """One step of (7). `from_aside` is that of the step before, then of this one."""
    pairs, pair_probs, loose, kept, trigrams, seen = chain
    for j in range(len(here)):
        arrived[j], from_tag[j] = aside[j], from_aside[j]
    for q in range(len(pairs)):
        j = pairs[q, 1]
        if kept * best[q] > arrived[j]:
            arrived[j], from_tag[j] = kept * best[q], pairs[q, 0]
    for q in range(len(pairs)):
        after[q], from_pair[q] = arrived[pairs[q, 0]] * pair_probs[q], from_tag[pairs[q, 0]]
    for s in range(len(seen)):
        source, q = trigrams[s, 0], trigrams[s, 1]
        through = best[source] * (kept * pair_probs[q] + seen[s])
        if through > after[q]:
            after[q], from_pair[q] = through, pairs[source, 0]
    for q in range(len(pairs)):
        after[q] *= here[pairs[q, 1]]
    _fill(aside_after, 0.0)
    for j in range(len(here)):
        for k in range(len(here)):
            through = arrived[j] * loose[j, k] * here[k]
            if through > aside_after[k]:
                aside_after[k], from_aside[k] = through, j
