"""Counted grams, and what smoothing makes of counts. Equations are numbered as in models/ngram.py.

Shapes: N_k number of k-grams.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

KATZ_LIMIT = 5  # higher counts are reliable and not discounted


@dataclass
class Grams:
    """The distinct k-grams of a text while they are counted and estimated."""

    num_contexts: int  # grams in the level below
    parent: np.ndarray  # (N_k,) the first k-1 tokens, as a place in the level below; rising
    words: np.ndarray  # (N_k,) the last token; rising among those of one parent
    counts: np.ndarray  # (N_k,) in the text
    suffix: np.ndarray  # (N_k,) the last k-1 tokens, as a place in the level below
    begins: np.ndarray  # (N_k,) how often the gram begins a text
    is_kept: np.ndarray  # (N_k,)
    prob: np.ndarray = field(default_factory=lambda: np.empty(0))  # (N_k,) of the last token after the others, (1)
    backoff: np.ndarray = field(default_factory=lambda: np.empty(0))  # (N_k,) of the gram as a context

    def sums(self, numbers: np.ndarray) -> np.ndarray:
        """One number per gram -> their sum for each context."""
        return np.bincount(self.parent, weights=numbers, minlength=self.num_contexts)


def interpolate(
    level: Grams, lower: np.ndarray, counts: np.ndarray, discounts: tuple[float, float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """p of each gram, and backoff of each context. A gram that is not kept gives all of its count away."""
    discount = np.where(level.is_kept, np.array([0.0, *discounts])[np.minimum(counts, 3)], counts)
    total = level.sums(counts)
    backoff = divide(level.sums(discount), total, otherwise=1.0)  # (9)
    prob = divide(counts - discount, total[level.parent], otherwise=0.0) + backoff[level.parent] * lower  # (8)
    return prob, backoff


def divide(a: np.ndarray, b: np.ndarray, *, otherwise: float) -> np.ndarray:
    """a / b, and `otherwise` where b is zero."""
    return np.divide(a, b, out=np.full(len(a), otherwise), where=b > 0)


def estimate_discounts(counts: np.ndarray) -> tuple[float, float, float]:
    """(11), for counts of 1, 2, and 3 or more. Where a small text has no counts of counts: 0.5, 1 and 1.5."""
    n1, n2, n3, n4 = (int((counts == c).sum()) for c in (1, 2, 3, 4))
    if min(n1, n2, n3) > 0:
        y = n1 / (n1 + 2 * n2)
        found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
        if all(0 < d <= c for c, d in enumerate(found, start=1)):
            return found
    return 0.5, 1.0, 1.5


def estimate_discount(counts: np.ndarray) -> float:
    """(10). Where a small text has no counts of counts: 0.5."""
    n1, n2 = (int((counts == c).sum()) for c in (1, 2))
    return n1 / (n1 + 2 * n2) if min(n1, n2) > 0 else 0.5


def estimate_ratios(counts: np.ndarray) -> list[float]:
    """d of (6), for counts from 1 to 5. Where counts of counts give none between 0 and 1: half a count less."""
    n = [int((counts == c).sum()) for c in range(KATZ_LIMIT + 2)]
    cs = range(1, KATZ_LIMIT + 1)
    if min(n[1:-1]) > 0 and (KATZ_LIMIT + 1) * n[-1] < n[1]:
        a = (KATZ_LIMIT + 1) * n[-1] / n[1]
        found = [((c + 1) * n[c + 1] / (c * n[c]) - a) / (1 - a) for c in cs]
        if all(0 < d <= 1 for d in found):
            return found
    return [(c - 0.5) / c for c in cs]
