"""How well words are tagged: F1 over entities where tags mark them, else the share of words with the right tag.

An entity is right where its type, its first and its last word are. Tags are read leniently (data/tag_schemes.py), as
conlleval and seqeval read them, so broken tags of a model still count for what they say. F1 is a ratio of sums over
rows: intervals and paired tests resample rows (segments.py).

Shapes: N rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..data.tag_schemes import entities_of
from ..wording import counted
from .answers import LabelScore
from .labels import Counts, f1_in_words, figures_of, mean_f1, sum_of
from .segments import Metric, Segments, interval_in_words

F1_METRIC = Metric("F1 over entities", "F1", digits=4, is_higher_better=True)
WRONG_METRIC = Metric("share of wrong tags", "wrong", digits=4, complement="accuracy")
Rows = Sequence[Sequence[str]]


def entity_counts(wanted: Rows, answers: Rows) -> dict[str, Counts]:
    """Of entities of each type, in the order of the alphabet: from the tags of each row."""
    right, in_truth, in_answers = Counter[str](), Counter[str](), Counter[str]()
    for truth, answer in zip(wanted, answers, strict=True):
        both = set(entities_of(truth)), set(entities_of(answer))
        right.update(entity.type for entity in both[0] & both[1])
        in_truth.update(entity.type for entity in both[0])
        in_answers.update(entity.type for entity in both[1])
    return {name: Counts(right[name], in_truth[name], in_answers[name]) for name in sorted(in_truth | in_answers)}


def word_counts(wanted: Rows, answers: Rows) -> dict[str, Counts]:
    """Of words with each tag, in the order of the alphabet."""
    right, in_truth, in_answers = Counter[str](), Counter[str](), Counter[str]()
    for truth, answer in zip(wanted, answers, strict=True):
        right.update(tag for tag, other in zip(truth, answer, strict=True) if tag == other)
        in_truth.update(truth)
        in_answers.update(answer)
    return {name: Counts(right[name], in_truth[name], in_answers[name]) for name in sorted(in_truth | in_answers)}


@dataclass(frozen=True)
class TagScore:
    wanted: Rows
    """Tags of each row."""
    answers: Rows
    """As many."""
    nats_per_word: float
    """-log p of the tags that were wanted."""
    scheme: str
    """How tags mark entities; empty where each word has a tag of its own kind."""
    signature: str
    others: Mapping[str, LabelScore] = field(default_factory=dict)
    """Scores of what else is answered for a row, by name: the label of a whole utterance beside its slots."""
    is_seen: Sequence[np.ndarray] | None = None
    """Of each row, (W,) bool: words that stand in the training part; None where that is not known."""

    @cached_property
    def entity_segments(self) -> Segments:
        """Entities that are right, wanted, and answered, row by row."""
        sums = np.zeros((1, len(self.wanted), 3))
        for row, (truth, answer) in enumerate(zip(self.wanted, self.answers, strict=True)):
            both = set(entities_of(truth)), set(entities_of(answer))
            sums[0, row] = len(both[0] & both[1]), len(both[0]), len(both[1])
        return Segments(sums, "f1")

    @cached_property
    def word_segments(self) -> Segments:
        """Wrong tags, and words, row by row."""
        wrong = np.array([int((~is_right).sum()) for is_right in self._is_right])
        return Segments.of(wrong, np.array([len(row) for row in self.wanted]))

    @property
    def segments(self) -> Segments:
        return self.entity_segments if self.scheme else self.word_segments

    @property
    def metric(self) -> Metric:
        return F1_METRIC if self.scheme else WRONG_METRIC

    @property
    def comparable(self) -> list[tuple[Metric, Segments]]:
        """All by which two models are compared."""
        words = (WRONG_METRIC, self.word_segments)
        return [(F1_METRIC, self.entity_segments), words] if self.scheme else [words]

    @cached_property
    def by_type(self) -> dict[str, Counts]:
        """Of entities; where tags mark none, of words with each tag."""
        return (entity_counts if self.scheme else word_counts)(self.wanted, self.answers)

    @property
    def all_types(self) -> Counts:
        """Of all entities together: micro precision, recall and F1. Of plain tags all three are the accuracy."""
        return sum_of(self.by_type.values())

    @property
    def f1(self) -> float:
        return self.all_types.f1

    @property
    def macro_f1(self) -> float:
        """The mean over types."""
        return mean_f1(self.by_type.values())

    @property
    def accuracy(self) -> float:
        """The share of words with the right tag."""
        return 1 - self.word_segments.value

    @property
    def unseen_accuracy(self) -> float | None:
        """Of words that the training part does not have; None where there are none, or nobody knows."""
        right, num = self._unseen
        return right / num if num else None

    @property
    def interval(self) -> tuple[float, float]:
        """Of F1, or of accuracy, 95 %, by resampling rows."""
        low, high = self.segments.interval
        return (self.metric.shown(high), self.metric.shown(low)) if self.scheme else (1 - high, 1 - low)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        low, high = self.interval
        interval = interval_in_words((100 * low, 100 * high), 2)
        if not self.scheme:
            share = f"{100 * self.accuracy:.2f} % of {counted(self._num_words, 'word')} right ({interval})"
            return f"{share}, {self.nats_per_word:.4f} nats per word"
        found = self.all_types
        return (
            f"F1 {100 * found.f1:.2f} % ({interval}) over {counted(found.wanted, 'entity', 'entities')}, "
            f"precision {100 * found.precision:.2f} %, recall {100 * found.recall:.2f} %, "
            f"{self.nats_per_word:.4f} nats per word"
        )

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "entities" if self.scheme else "tags", self.headline()
        yield f"F1 by {'type' if self.scheme else 'tag'}", f1_in_words(self.by_type)
        if self.scheme:
            yield "words", f"{100 * self.accuracy:.2f} % of {counted(self._num_words, 'tag')} right"
        if self.unseen_accuracy is not None:
            num = counted(self._unseen[1], "word")
            yield "words not in training", f"{100 * self.unseen_accuracy:.2f} % of {num} right"
        for name, score in self.others.items():
            yield name, score.headline()
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "rows": len(self.wanted),
            "words": self._num_words,
            "interval": list(self.interval),
            "is_enough": self.segments.is_enough,
            "accuracy": self.accuracy,
            "unseen_accuracy": self.unseen_accuracy,
            "nats_per_word": self.nats_per_word,
        }
        if self.scheme:
            found |= {"f1": self.f1, "precision": self.all_types.precision, "recall": self.all_types.recall}
            found["entities"] = self.all_types.wanted
        found |= {"macro_f1": self.macro_f1, "by_type": figures_of(self.by_type)}
        others = {name: score.to_dict() for name, score in self.others.items()}
        return {**found, **({"others": others} if others else {}), "signature": self.signature}

    @property
    def _num_words(self) -> int:
        return sum(len(row) for row in self.wanted)

    @cached_property
    def _is_right(self) -> list[np.ndarray]:
        """Of each row, (W,) bool."""
        rows = zip(self.wanted, self.answers, strict=True)
        return [np.array([a == b for a, b in zip(*row, strict=True)], dtype=bool) for row in rows]

    @cached_property
    def _unseen(self) -> tuple[int, int]:
        """Right, and all, of the words that the training part does not have."""
        if self.is_seen is None:
            return 0, 0
        rows = list(zip(self._is_right, self.is_seen, strict=True))
        right = sum(int((is_right & ~is_seen).sum()) for is_right, is_seen in rows)
        return right, sum(int((~is_seen).sum()) for _, is_seen in rows)
