"""How well questions are answered from passages: exact match and F1 over words, by the rules of SQuAD.

Rajpurkar et al. 2016 (1.1), 2018 (2.0). Answers are compared in lower case, without punctuation, without a, an and the,
and with single spaces. F1 of a question is that of the words that an answer and a reference share; of several
references the best one counts. Where some questions have no answer, the rules of 2.0 hold: "none" is right there, and
wrong everywhere else.

    F1 = 2 P R / (P + R)       P, R: share of the answer's, of the reference's words that both have      (1)

Shapes: Q questions.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..wording import counted
from .segments import Metric, Segments, interval_in_words

F1_METRIC = Metric("F1 over words", "F1", digits=4, is_higher_better=True)
MATCH_METRIC = Metric("exact match", "exact", digits=4, is_higher_better=True)
NO_ANSWER = ""
ARTICLES = re.compile(r"\b(a|an|the)\b")
WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalized(text: str) -> str:
    """ "The  Blue Box." -> "blue box"."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(WITHOUT_PUNCTUATION)).split())


def is_match(answer: str, reference: str) -> bool:
    return normalized(answer) == normalized(reference)


def f1_of(answer: str, reference: str, *, may_lack: bool = False) -> float:
    """(1). Where questions may lack an answer, two that have no words are the same."""
    ours, theirs = normalized(answer).split(), normalized(reference).split()
    if may_lack and not (ours and theirs):
        return float(ours == theirs)
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * shared / (len(ours) + len(theirs)) if shared else 0.0


def right_ones(references: Sequence[str], *, may_lack: bool) -> list[str]:
    """What an answer is compared with: "none" where nothing else is right."""
    if not may_lack:
        return list(references) or [NO_ANSWER]
    return [reference for reference in references if normalized(reference)] or [NO_ANSWER]


def judge(answer: str, references: Sequence[str], *, may_lack: bool) -> tuple[float, float]:
    """Exact match and F1 of an answer, by the reference that suits it best."""
    against = right_ones(references, may_lack=may_lack)
    matches = max(float(is_match(answer, reference)) for reference in against)
    return matches, max(f1_of(answer, reference, may_lack=may_lack) for reference in against)


def best_threshold(gaps: np.ndarray, answered: np.ndarray, none: np.ndarray) -> float:
    """From which distance on "none" should be the answer, so that the mean F1 is highest.

    Of each question (Q,): by how much "none" is ahead of the best span, and the F1 of the span and of "none".
    """
    order = np.argsort(gaps, kind="stable")
    ranked = gaps[order]
    gained = np.cumsum(np.append(0.0, (answered - none)[order]))  # where the k lowest are answered by their span
    is_cut = np.append(True, np.append(ranked[1:] > ranked[:-1], True)) if len(ranked) else np.array([True])
    best = int(np.argmax(np.where(is_cut, gained, -np.inf)))
    if len(ranked) == 0:
        return 0.0
    if best == 0:
        return float(ranked[0]) - 1.0
    return float(ranked[-1]) + 1.0 if best == len(ranked) else float(ranked[best - 1] + ranked[best]) / 2


@dataclass(frozen=True)
class SpanScore:
    answers: Sequence[str]
    """Of each question; empty for none."""
    references: Sequence[Sequence[str]]
    """What people answered; nothing where the passage does not say."""
    nats_per_answer: float
    """-log p of where the answer begins and ends, a window."""
    signature: str

    @cached_property
    def may_lack(self) -> bool:
        """Whether some questions have no answer, so that the rules of SQuAD 2.0 hold."""
        return not all(self.references)

    @cached_property
    def _judged(self) -> np.ndarray:
        """(Q, 2): exact match and F1."""
        pairs = zip(self.answers, self.references, strict=True)
        return np.array([judge(answer, some, may_lack=self.may_lack) for answer, some in pairs]).reshape(-1, 2)

    @cached_property
    def is_answerable(self) -> np.ndarray:
        """(Q,) bool."""
        return np.array([bool(some) for some in self.references], dtype=bool)

    @property
    def exact_match(self) -> float:
        return float(self._judged[:, 0].mean())

    @property
    def f1(self) -> float:
        return float(self._judged[:, 1].mean())

    def of_those(self, *, answerable: bool) -> tuple[float, float] | None:
        """Exact match and F1 of the questions with an answer, or of those without; None where there are none."""
        chosen = self._judged[self.is_answerable == answerable]
        return (float(chosen[:, 0].mean()), float(chosen[:, 1].mean())) if len(chosen) else None

    @cached_property
    def segments(self) -> Segments:
        """F1, question by question."""
        return Segments.of(self._judged[:, 1], np.ones(len(self._judged)), "mean")

    @cached_property
    def match_segments(self) -> Segments:
        return Segments.of(self._judged[:, 0], np.ones(len(self._judged)), "mean")

    @property
    def metric(self) -> Metric:
        return F1_METRIC

    @property
    def comparable(self) -> list[tuple[Metric, Segments]]:
        """All by which two models are compared."""
        return [(F1_METRIC, self.segments), (MATCH_METRIC, self.match_segments)]

    @property
    def interval(self) -> tuple[float, float]:
        """Of F1, 95 %, by resampling questions."""
        low, high = self.segments.interval
        return F1_METRIC.shown(high), F1_METRIC.shown(low)

    @property
    def match_interval(self) -> tuple[float, float]:
        """Of exact match."""
        low, high = self.match_segments.interval
        return MATCH_METRIC.shown(high), MATCH_METRIC.shown(low)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        f1, match = (_per_cents(interval) for interval in (self.interval, self.match_interval))
        return (
            f"F1 {100 * self.f1:.2f} % ({f1}), exact match {100 * self.exact_match:.2f} % ({match}) over "
            f"{counted(len(self.answers), 'question')}, {self.nats_per_answer:.4f} nats per answer"
        )

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "answers", self.headline()
        if self.may_lack:
            for name, answerable in (("with an answer", True), ("without an answer", False)):
                found = self.of_those(answerable=answerable)
                if found is not None:
                    num = counted(int((self.is_answerable == answerable).sum()), "question")
                    yield name, f"F1 {100 * found[1]:.2f} %, exact match {100 * found[0]:.2f} % of {num}"
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "questions": len(self.answers),
            "f1": self.f1,
            "interval": list(self.interval),
            "is_enough": self.segments.is_enough,
            "exact_match": self.exact_match,
            "exact_match_interval": list(self.match_interval),
            "nats_per_answer": self.nats_per_answer,
        }
        for name, answerable in (("has_answer", True), ("no_answer", False)):
            split = self.of_those(answerable=answerable) if self.may_lack else None
            if split is not None:
                total = int((self.is_answerable == answerable).sum())
                found[name] = {"exact_match": split[0], "f1": split[1], "questions": total}
        return {**found, "signature": self.signature}


def _per_cents(interval: tuple[float, float]) -> str:
    low, high = interval
    return interval_in_words((100 * low, 100 * high), 2)
