"""Measures of labels, probabilities and numbers: pure functions from what was wanted and what was answered.

    precision = right / answered,  recall = right / wanted,  F1 = 2 right / (wanted + answered)                  (1)
    micro: (1) of the sums over labels;  macro: the mean of (1) over labels                                      (2)
    Matthews = (c n - sum_k w_k a_k) / sqrt((n^2 - sum_k w_k^2) (n^2 - sum_k a_k^2))                             (3)
    AUC = p(a row of the second label has a higher score than one of the first), a tie being half a win          (4)
    calibration error = sum over bins of share of rows * |mean confidence - share right|                         (5)

(3): Matthews 1975, of many labels Gorodkin 2004; c right answers of n, w_k wanted and a_k answers of label k.
(4): from ranks, Mann & Whitney 1947. (5): Naeini et al. 2015, Guo et al. 2017.
What is not defined is None: a correlation with something that never changes, an AUC of one label.

Shapes: N rows, L labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..wording import counted

NUM_BINS = 15  # of confidence, as Guo et al. have it
MAX_TOLD = 12  # labels or types that a line names
NO_AND_YES = {("0", "1"), ("no", "yes"), ("false", "true"), ("neg", "pos"), ("negative", "positive")}


class Counts(NamedTuple):
    """Of one label, of entities of one type, or of all together. A share of nothing is zero."""

    right: int
    wanted: int
    answered: int

    @property
    def precision(self) -> float:
        return self.right / max(1, self.answered)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.wanted)

    @property
    def f1(self) -> float:
        """(1)"""
        return 2 * self.right / max(1, self.wanted + self.answered)

    @property
    def occurs(self) -> bool:
        return self.wanted + self.answered > 0


def sum_of(counts: Iterable[Counts]) -> Counts:
    """Its F1 is the micro F1 of them."""
    sums = [sum(part) for part in zip(*counts, strict=True)]
    return Counts(*sums) if sums else Counts(0, 0, 0)


def mean_f1(counts: Iterable[Counts]) -> float:
    """Macro F1, (2), over what was wanted or answered at all; zero where nothing was."""
    found = [one.f1 for one in counts if one.occurs]
    return sum(found) / len(found) if found else 0.0


def figures_of(counts: Mapping[str, Counts]) -> dict[str, dict[str, float]]:
    """Of each label or type, for programs; `count`: how often it was wanted."""
    return {
        name: {"precision": one.precision, "recall": one.recall, "f1": one.f1, "count": one.wanted}
        for name, one in counts.items()
    }


def by_count(counts: Mapping[str, Counts]) -> list[tuple[str, Counts]]:
    """The most frequent first."""
    return sorted(counts.items(), key=lambda one: -one[1].wanted)


def f1_in_words(counts: Mapping[str, Counts]) -> str:
    """ "good 81.2 (444), bad 79.0 (428)": F1 in per cent, and how often it was wanted, the most frequent first."""
    told = [f"{name or 'entity'} {100 * one.f1:.1f} ({one.wanted:,})" for name, one in by_count(counts)[:MAX_TOLD]]
    rest = len(counts) - len(told)
    return ", ".join(told) + (f", and {counted(rest, 'other')}" if rest else "")


def confusion_matrix(wanted: np.ndarray, answers: np.ndarray, num_labels: int) -> np.ndarray:
    """(L, L) int64: how often each label (row) got each answer (column), from ids (N,)."""
    places = num_labels * np.asarray(wanted, dtype=np.int64) + np.asarray(answers, dtype=np.int64)
    return np.bincount(places, minlength=num_labels**2).reshape(num_labels, num_labels)


def counts_by_label(confusion: np.ndarray) -> list[Counts]:
    rows = zip(np.diag(confusion).tolist(), confusion.sum(axis=1).tolist(), confusion.sum(axis=0).tolist(), strict=True)
    return [Counts(*row) for row in rows]


def is_no_and_yes(names: Sequence[str]) -> bool:
    """Whether two labels say by their names that the second is what is looked for: its F1 is then "the" F1."""
    return tuple(name.lower() for name in names) in NO_AND_YES


def micro_f1(confusion: np.ndarray) -> float:
    """Of rows with one answer each it is the share of right answers."""
    return sum_of(counts_by_label(confusion)).f1


def macro_f1(confusion: np.ndarray) -> float:
    """Over the labels that occur: a label that nobody wanted or answered counts neither for nor against."""
    return mean_f1(counts_by_label(confusion))


def matthews_correlation(confusion: np.ndarray) -> float | None:
    """(3), from -1 to 1, 0 being chance; None where all rows have one label, or one answer."""
    table = confusion.astype(np.float64)
    n, wanted, answered = table.sum(), table.sum(axis=1), table.sum(axis=0)
    spread = (n**2 - wanted @ wanted) * (n**2 - answered @ answered)
    return float((np.trace(table) * n - wanted @ answered) / math.sqrt(spread)) if spread > 0 else None


def ranks(values: np.ndarray) -> np.ndarray:
    """(N,): 1 for the lowest; equal values share the mean of their ranks."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[which]


def auc(is_positive: np.ndarray, scores: np.ndarray) -> float | None:
    """(4), from which rows have the second label (N,) bool, and any score that grows with its probability (N,).

    None where all rows have the same label.
    """
    positive = int(np.sum(is_positive))
    negative = len(is_positive) - positive
    if positive == 0 or negative == 0:
        return None
    wins = ranks(scores)[np.asarray(is_positive, dtype=bool)].sum() - positive * (positive + 1) / 2
    return float(wins / (positive * negative))


@dataclass(frozen=True)
class Bin:
    """Answers whose confidence lies above `low` and is not above `high`; the first bin has zero, too."""

    low: float
    high: float
    count: int
    confidence: float
    """In the mean."""
    share_right: float


def reliability_table(is_right: np.ndarray, confidences: np.ndarray, *, num_bins: int = NUM_BINS) -> list[Bin]:
    """Bins of equal width, the least confident first, without those that are empty.

    Of each answer (N,): whether it is right, and how probable the model thought it.
    """
    edges = np.linspace(0, 1, num_bins + 1)
    which = np.searchsorted(edges[1:-1], confidences)
    table = []
    for place in np.unique(which):
        chosen = which == place
        means = float(np.mean(confidences[chosen])), float(np.mean(is_right[chosen]))
        table.append(Bin(float(edges[place]), float(edges[place + 1]), int(chosen.sum()), *means))
    return table


def expected_calibration_error(is_right: np.ndarray, confidences: np.ndarray, *, num_bins: int = NUM_BINS) -> float:
    """(5), from 0 to 1; 0 where there are no answers."""
    table = reliability_table(is_right, confidences, num_bins=num_bins)
    return sum(one.count * abs(one.confidence - one.share_right) for one in table) / max(1, len(is_right))


def pearson(first: np.ndarray, second: np.ndarray) -> float | None:
    """Correlation of two columns of numbers (N,), from -1 to 1; None where one of them is always the same."""
    columns = []
    for column in (np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)):
        if len(column) == 0 or np.ptp(column) == 0:
            return None
        apart = column - column.mean()
        apart /= np.abs(apart).max()  # so that no square is too large, or too small
        columns.append(apart / math.sqrt(apart @ apart))
    return float(np.clip(columns[0] @ columns[1], -1, 1))


def spearman(first: np.ndarray, second: np.ndarray) -> float | None:
    """Correlation of the ranks, (N,), ties sharing theirs; None where one column is always the same."""
    return pearson(ranks(first), ranks(second))


def label_set_counts(wanted: np.ndarray, answers: np.ndarray) -> list[Counts]:
    """Of each label, where several of a row may be right: (N, L) bool."""
    columns = ((wanted & answers).sum(axis=0), wanted.sum(axis=0), answers.sum(axis=0))
    return [Counts(*map(int, row)) for row in zip(*columns, strict=True)]


def label_sets_above(probabilities: np.ndarray, thresholds: float | Sequence[float] = 0.5) -> np.ndarray:
    """(N, L) bool: the labels that are at least as probable as a threshold, of all or of each its own (L,)."""
    return np.asarray(probabilities) >= np.asarray(thresholds)


def label_set_micro_f1(wanted: np.ndarray, answers: np.ndarray) -> float:
    return sum_of(label_set_counts(wanted, answers)).f1


def label_set_macro_f1(wanted: np.ndarray, answers: np.ndarray) -> float:
    """Over the labels that occur."""
    return mean_f1(label_set_counts(wanted, answers))


def label_set_exact_match(wanted: np.ndarray, answers: np.ndarray) -> float:
    """The share of rows all of whose labels, and no others, were answered; 0 of no rows."""
    return float((wanted == answers).all(axis=1).sum() / max(1, len(wanted)))
