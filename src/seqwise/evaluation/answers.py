"""How well a model answers for whole sequences: labels, sets of labels, or numbers, with intervals.

LabelScore       share of right answers; F1 of each label, confusion, calibration (labels.py)
LabelSetScore    F1 over all labels of all rows (micro), rows that are right as a whole
NumberScore      squared error, and correlation with what was wanted

Shapes: N rows, L labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
import torch

from .. import __version__
from ..data.batch import Batch
from ..models.contract import Answerer, AnswersSeveral, device_of, evaluating
from ..wording import counted
from . import labels as measures
from .labels import Bin, Counts, f1_in_words, figures_of
from .segments import Metric, Segments, interval_in_words

ROWS = 256  # scored at once
MAX_LABELS_WRITTEN = 200  # of which all pairs are written out, for programs


class AnswerStore(Protocol):
    """Rows with an answer each."""

    @property
    def answers(self) -> np.ndarray:
        """(N,) labels, int64, or numbers; (N, L) bool, the labels that are right."""
        ...

    def __len__(self) -> int: ...
    def answers_of(self, target: str) -> np.ndarray:
        """Of another target than the main one."""
        ...

    def batch(self, chosen: np.ndarray | slice) -> Batch: ...
    def in_order_of_length(self, batch_size: int) -> list[np.ndarray]: ...


@dataclass(frozen=True)
class LabelScore:
    wanted: np.ndarray
    """(N,) int64; -1 where training never had the label: whatever was answered is wrong."""
    answers: np.ndarray
    """(N,) int64."""
    log_probs: np.ndarray
    """(N, L), nats."""
    names: list[str]
    signature: str

    @property
    def is_right(self) -> np.ndarray:
        return self.wanted == self.answers

    @property
    def is_known(self) -> np.ndarray:
        """Rows whose label training had."""
        return self.wanted >= 0

    @property
    def nats(self) -> np.ndarray:
        """-log p of the label of each row that training had."""
        known = self.is_known
        return -self.log_probs[known, self.wanted[known]].astype(np.float64)

    @property
    def nats_per_answer(self) -> float:
        return float(self.nats.mean()) if self.is_known.any() else float("inf")

    @property
    def accuracy(self) -> float:
        return float(self.is_right.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Of accuracy, 95 %, by resampling examples."""
        low, high = self.segments.interval
        return 1 - high, 1 - low

    @property
    def metric(self) -> Metric:
        return Metric("share of wrong answers", "wrong", digits=4, complement="accuracy")

    @property
    def segments(self) -> Segments:
        """Wrong answers, example by example."""
        return Segments.of(~self.is_right, np.ones(len(self.wanted)))

    @cached_property
    def confusion(self) -> np.ndarray:
        """(L, L): how often each label (row) was answered by each (column); of labels that training had."""
        return measures.confusion_matrix(self.wanted[self.is_known], self.answers[self.is_known], len(self.names))

    def most_confused(self, num: int) -> list[tuple[str, str, int]]:
        """(label, what was answered instead, how often), the most frequent first."""
        wrong = self.confusion - np.diag(np.diag(self.confusion))
        order = np.argsort(-wrong, axis=None, kind="stable")[:num]
        pairs = zip(*np.unravel_index(order[wrong.flat[order] > 0], wrong.shape), strict=True)
        return [(self.names[label], self.names[answer], int(wrong[label, answer])) for label, answer in pairs]

    @property
    def probabilities(self) -> np.ndarray:
        return np.exp(self.log_probs.astype(np.float64))

    @cached_property
    def by_label(self) -> dict[str, Counts]:
        """What was answered to a label that training never had counts against the answer."""
        answered = np.bincount(self.answers, minlength=len(self.names)).tolist()
        found = measures.counts_by_label(self.confusion)
        return {name: one._replace(answered=num) for name, one, num in zip(self.names, found, answered, strict=True)}

    @property
    def macro_f1(self) -> float:
        return measures.mean_f1(self.by_label.values())

    @property
    def f1(self) -> float | None:
        """Of two labels named like no and yes: that of "yes", as published of paraphrases; else None."""
        return self.by_label[self.names[1]].f1 if measures.is_no_and_yes(self.names) else None

    @property
    def matthews(self) -> float | None:
        """Correlation of answers and labels; None where either is always the same."""
        return measures.matthews_correlation(self.confusion)

    @property
    def auc(self) -> float | None:
        """Of two labels: how often a row of the second is found more probable to be so than one of the first."""
        if len(self.names) != 2:
            return None
        known = self.is_known
        return measures.auc(self.wanted[known] == 1, self.log_probs[known, 1])

    @property
    def confidences(self) -> np.ndarray:
        """How probable the model thought each of its answers, (N,)."""
        return self.probabilities[np.arange(len(self.answers)), self.answers]

    @property
    def calibration_error(self) -> float:
        """By how much the probability of the answer and the share of right answers differ, in the mean."""
        return measures.expected_calibration_error(self.is_right, self.confidences)

    @property
    def reliability(self) -> list[Bin]:
        """By confidence: how often answers are right."""
        return measures.reliability_table(self.is_right, self.confidences)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        low, high = self.interval
        share = f"{100 * self.accuracy:.2f} % right ({interval_in_words((100 * low, 100 * high), 2)})"
        return f"{share} of {len(self.wanted):,}, {self.nats_per_answer:.4f} nats per answer"

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "answers", self.headline()
        told = [] if self.f1 is None else [f"F1 of {self.names[1]} {100 * self.f1:.2f} %"]
        told += [f"macro F1 {100 * self.macro_f1:.2f} %"]
        told += [] if self.matthews is None else [f"Matthews correlation {self.matthews:.3f}"]
        told += [] if self.auc is None else [f"AUC {self.auc:.4f}"]
        yield "labels", ", ".join([*told, f"calibration error {100 * self.calibration_error:.2f} %"])
        yield "F1 by label", f1_in_words(self.by_label)
        if confused := self.most_confused(3):
            yield "most confused", ", ".join(f"{label} with {answer} ({num:,})" for label, answer, num in confused)
        if unknown := int((~self.is_known).sum()):
            yield "unknown", f"{counted(unknown, 'row')} with a label that training never had, counted as wrong"
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        return {
            "answers": len(self.wanted),
            "interval": list(self.interval),
            "is_enough": self.segments.is_enough,
            "accuracy": self.accuracy,
            "nats_per_answer": self.nats_per_answer,
            "f1": self.f1,
            "macro_f1": self.macro_f1,
            "matthews": self.matthews,
            "auc": self.auc,
            "calibration_error": self.calibration_error,
            "by_label": figures_of(self.by_label),
            "labels": self.names,
            "confusion": self.confusion.tolist() if len(self.names) <= MAX_LABELS_WRITTEN else None,
            "reliability": [vars(one) for one in self.reliability],
            "signature": self.signature,
        }


@dataclass(frozen=True)
class LabelSetScore:
    wanted: np.ndarray
    """(N, L) bool."""
    answers: np.ndarray
    """(N, L) bool."""
    nats: np.ndarray
    """-log p of all that is right and wrong in each row, (N,)."""
    names: list[str]
    signature: str

    @property
    def nats_per_answer(self) -> float:
        return float(self.nats.mean())

    @property
    def f1(self) -> float:
        """Micro: over all labels of all rows together."""
        return measures.label_set_micro_f1(self.wanted, self.answers)

    @property
    def exact_match(self) -> float:
        return measures.label_set_exact_match(self.wanted, self.answers)

    @cached_property
    def by_label(self) -> dict[str, Counts]:
        return dict(zip(self.names, measures.label_set_counts(self.wanted, self.answers), strict=True))

    @property
    def macro_f1(self) -> float:
        return measures.label_set_macro_f1(self.wanted, self.answers)

    @property
    def interval(self) -> tuple[float, float]:
        """Of F1, 95 %, by resampling rows."""
        low, high = self.segments.interval
        return self.metric.shown(high), self.metric.shown(low)

    @property
    def metric(self) -> Metric:
        return Metric("F1 over labels", "F1", digits=4, is_higher_better=True)

    @property
    def segments(self) -> Segments:
        """Labels that are right, wanted, and answered, row by row."""
        sums = [(self.wanted & self.answers).sum(axis=1), self.wanted.sum(axis=1), self.answers.sum(axis=1)]
        return Segments(np.stack(sums, axis=-1)[None].astype(np.float64), "f1")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        low, high = self.interval
        found = f"F1 {100 * self.f1:.2f} % ({interval_in_words((100 * low, 100 * high), 2)})"
        return f"{found} over {len(self.wanted):,} rows, {100 * self.exact_match:.2f} % of them right as a whole"

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "answers", self.headline()
        yield "labels", f"macro F1 {100 * self.macro_f1:.2f} %, {self.nats_per_answer:.4f} nats per row"
        yield "F1 by label", f1_in_words(self.by_label)
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        return {
            "answers": len(self.wanted),
            "interval": list(self.interval),
            "is_enough": self.segments.is_enough,
            "f1": self.f1,
            "macro_f1": self.macro_f1,
            "exact_match": self.exact_match,
            "nats_per_answer": self.nats_per_answer,
            "by_label": figures_of(self.by_label),
            "signature": self.signature,
        }


@dataclass(frozen=True)
class NumberScore:
    wanted: np.ndarray
    """(N,)."""
    answers: np.ndarray
    nats: np.ndarray
    """-log density of each, (N,)."""
    signature: str

    @property
    def nats_per_answer(self) -> float:
        return float(self.nats.mean())

    @property
    def mean_squared_error(self) -> float:
        return float(((self.wanted - self.answers) ** 2).mean())

    @property
    def pearson(self) -> float | None:
        return measures.pearson(self.wanted, self.answers)

    @property
    def spearman(self) -> float | None:
        return measures.spearman(self.wanted, self.answers)

    @property
    def interval(self) -> tuple[float, float]:
        """Of the mean squared error, 95 %, by resampling examples."""
        return self.segments.interval

    @property
    def metric(self) -> Metric:
        return Metric("mean squared error", "squared error", digits=5)

    @property
    def segments(self) -> Segments:
        """Squared errors, example by example."""
        return Segments.of((self.wanted - self.answers) ** 2, np.ones(len(self.wanted)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        error = f"{self.mean_squared_error:.5f} ({interval_in_words(self.interval, 5)})"
        return f"mean squared error {error} over {len(self.wanted):,}"

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "answers", self.headline()
        if self.pearson is not None and self.spearman is not None:
            yield "correlation", f"Pearson {self.pearson:.4f}, Spearman {self.spearman:.4f}"
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        return {
            "answers": len(self.wanted),
            "interval": list(self.interval),
            "is_enough": self.segments.is_enough,
            "mean_squared_error": self.mean_squared_error,
            "pearson": self.pearson,
            "spearman": self.spearman,
            "nats_per_answer": self.nats_per_answer,
            "signature": self.signature,
        }


AnswerScore = LabelScore | LabelSetScore | NumberScore


@dataclass(frozen=True)
class Answers:
    """What a model says of every row of a store, in the order of the rows."""

    answers: np.ndarray
    """(N,) labels or numbers, (N, L) bool."""
    nats: np.ndarray
    """-log p of what was wanted, (N,)."""
    log_probs: np.ndarray | None
    """(N, L)."""


@torch.inference_mode()
def answers_of(model: Answerer, store: AnswerStore, target: str | None = None) -> Answers:
    """Of the main target, or another one."""
    device, order = device_of(model), store.in_order_of_length(ROWS)
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []
    with evaluating(model):
        for chosen in order:
            batch = store.batch(chosen).to(device)
            prediction = model.predict(batch) if target is None else cast(AnswersSeveral, model).predict(batch, target)
            wanted = batch if target is None else Batch(batch.inputs, {target: batch.targets[target]})
            log_probs = None if prediction.log_probs is None else prediction.log_probs.cpu().numpy()
            nats = -model.score(wanted)[0][:, 0].double().cpu().numpy()
            found.append((prediction.answers.cpu().numpy(), nats, log_probs))
    back = np.argsort(np.concatenate(order), kind="stable")
    answers, nats = (np.concatenate([one[part] for one in found])[back] for part in range(2))
    if found[0][2] is None:
        return Answers(answers, nats, None)
    return Answers(answers, nats, np.concatenate([one[2] for one in found if one[2] is not None])[back])


def evaluate_answers(
    model: Answerer,
    store: AnswerStore,
    names: Sequence[str] = (),
    *,
    target: str | None = None,
    scored: str = "",
    scale: float = 1.0,
) -> AnswerScore:
    """Answer every example of a part, for the main target or another one.

    `names` of the labels; `scale`: what one of a number stands for.
    """
    found, wanted = answers_of(model, store, target), store.answers if target is None else store.answers_of(target)
    signature = "|".join([*([scored] if scored else []), f"bootstrap=1000x{len(store)}", f"seqwise={__version__}"])
    if found.log_probs is None:
        numbers, answers = wanted.astype(np.float64) * scale, found.answers.astype(np.float64) * scale
        return NumberScore(numbers, answers, found.nats + np.log(scale), f"squared error|{signature}")
    names = list(names) or [str(label) for label in range(found.log_probs.shape[1])]
    if wanted.ndim == 2:
        return LabelSetScore(wanted, found.answers, found.nats, names, f"micro F1|{signature}")
    return LabelScore(wanted, found.answers, found.log_probs, names, f"accuracy|{signature}")
