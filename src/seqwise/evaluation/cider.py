"""CIDEr: how much a caption has in common with those of people, rare words counting more (Vedantam et al. 2015).

    g_n(c)_w = count of the n-gram w in c * log(pictures / pictures whose captions hold w)               (1)
    CIDEr_n(c, r) = sum over w of min(g_n(c)_w, g_n(r)_w) g_n(r)_w / (|g_n(c)| |g_n(r)|) * penalty       (2)
    penalty  = exp(-(length of c - length of r)^2 / (2 * 6^2))                                           (3)
    CIDEr    = 10 * mean over n = 1 .. 4, and over the references r of the picture                       (4)

This is the form with clipping and penalty (CIDEr-D), which people report; (3) counts lengths in pairs of words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

ORDERS = 4
SIGMA = 6.0
SCALE = 10.0

Gram = tuple[str, ...]


def cider(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
    """Of each picture, (N,): its caption beside those of people, words being what stands between spaces.

    >>> cider(["a dog runs", "a cat"], [["a dog runs"], ["a bird"]])
    """
    counted = [[_grams(text) for text in texts] for texts in references]
    pictures = Counter(gram for texts in counted for gram in set().union(*texts))
    log_total = math.log(len(references)) if references else 0.0

    def weighed(grams: Counter[Gram]) -> _Weighed:
        weights: list[dict[Gram, float]] = [{} for _ in range(ORDERS)]
        for gram, count in grams.items():
            weights[len(gram) - 1][gram] = count * (log_total - math.log(max(1, pictures[gram])))  # (1)
        norms = [math.sqrt(sum(weight**2 for weight in of_order.values())) for of_order in weights]
        return _Weighed(weights, norms, sum(count for gram, count in grams.items() if len(gram) == 2))

    found = np.zeros(len(hypotheses))
    for place, (text, texts) in enumerate(zip(hypotheses, counted, strict=True)):
        mine = weighed(_grams(text))
        found[place] = sum(_similarity(mine, weighed(theirs)) for theirs in texts) / max(1, len(texts))
    return SCALE * found / ORDERS  # (4)


class _Weighed(NamedTuple):
    weights: list[dict[Gram, float]]
    """By order: g_n."""
    norms: list[float]
    length: int


def _grams(text: str) -> Counter[Gram]:
    words = text.split()
    return Counter(tuple(words[at : at + n]) for n in range(1, ORDERS + 1) for at in range(len(words) - n + 1))


def _similarity(mine: _Weighed, theirs: _Weighed) -> float:
    """(2), summed over the orders."""
    total = 0.0
    for ours, others, norm, other_norm in zip(mine.weights, theirs.weights, mine.norms, theirs.norms, strict=True):
        if norm and other_norm:
            common = sum(min(weight, others[gram]) * others[gram] for gram, weight in ours.items() if gram in others)
            total += common / (norm * other_norm)
    return total * math.exp(-((mine.length - theirs.length) ** 2) / (2 * SIGMA**2))  # (3)
