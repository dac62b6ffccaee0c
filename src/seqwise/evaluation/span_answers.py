"""What a model answers to questions on passages: the best spans over all windows of each question.

A span's score is log p(begins) + log p(ends) in its window (layers/span_head.py); one that stands in several windows
has the best of its scores. "None" is as probable as in the window that thinks it least so: one window that holds an
answer is enough.

Shapes: Q questions, N windows, K spans of a window.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..data.span_store import SpanStore, SpanWindows
from ..layers.span_head import SpanHead, best_spans
from ..models.contract import device_of, evaluating
from ..models.headed import HeadedModel

MAX_TOKENS = 8192  # places of a batch
KEPT = 20  # spans of a window, where several of a question are asked for
DEFAULT_WINDOW = 384  # steps, of a model that would read rows of any length


@dataclass(frozen=True)
class FoundSpan:
    """An answer, or that there is none."""

    text: str
    """As it stands in the passage; empty for none."""
    start: int
    """Characters of the passage before it; -1 for none."""
    log_prob: float
    """Of where it begins and where it ends, in its window."""

    @property
    def probability(self) -> float:
        return math.exp(self.log_prob)

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def is_none(self) -> bool:
        return not self.text


@dataclass(frozen=True)
class SpanAnswers:
    """In the order of the questions."""

    spans: list[list[FoundSpan]]
    """Of each question the best ones, best first, none of which overlap."""
    none: np.ndarray
    """(Q,) nats: log p that the passage does not hold the answer."""
    nats: np.ndarray
    """(Q,): -log p of where the answer begins and ends, summed over the windows of a question."""
    num_windows: np.ndarray
    """(Q,)."""

    @property
    def gaps(self) -> np.ndarray:
        """(Q,): by how many nats "none" is ahead of the best span."""
        best = np.array([some[0].log_prob if some else -np.inf for some in self.spans])
        return self.none - best

    @property
    def nats_per_answer(self) -> float:
        return float(self.nats.sum() / max(1, int(self.num_windows.sum())))

    def chosen(self, head: SpanHead) -> list[str]:
        """One answer to each question; empty where it is none."""
        return [next(iter(self.ranked(question, head))).text for question in range(len(self.spans))]

    def ranked(self, question: int, head: SpanHead) -> Iterator[FoundSpan]:
        """The answer to a question, and what it might have been instead."""
        spans, none = self.spans[question], FoundSpan("", -1, float(self.none[question]))
        best = spans[0].log_prob if spans else -math.inf
        is_none = bool(head.is_none(torch.tensor(none.log_prob), torch.tensor(best)))
        yield from [none, *spans] if is_none else spans[:1]
        if not is_none:
            yield from sorted([*spans[1:], *([none] if head.may_lack else [])], key=lambda span: -span.log_prob)


def head_of(model: HeadedModel) -> SpanHead:
    head = model.main_head
    assert isinstance(head, SpanHead)
    return head


def window_steps(model: HeadedModel) -> int:
    """Steps of the rows that a model reads, at most."""
    return min(steps for steps in (model.max_steps or DEFAULT_WINDOW, model.context) if steps is not None)


@torch.inference_mode()
def nats_of(model: HeadedModel, store: SpanStore) -> float:
    """-log p of where answers begin and end, a window."""
    windows, total = store.windows(window_steps(model)), 0.0
    with evaluating(model):
        for chosen in windows.in_order_of_length(MAX_TOKENS):
            total -= float(model.score(windows.batch(chosen).to(device_of(model)))[0].double().sum())
    return total / max(1, len(windows))


@torch.inference_mode()
def spans_of(model: HeadedModel, store: SpanStore, *, num: int = 1) -> SpanAnswers:
    """The `num` best answers to each question."""
    head, windows, device = head_of(model), store.windows(window_steps(model)), device_of(model)
    none, nats = np.full(len(store), np.inf), np.zeros(len(store))
    found: list[dict[tuple[int, int], float]] = [{} for _ in range(len(store))]
    with evaluating(model):
        for chosen in windows.in_order_of_length(MAX_TOKENS):
            batch = windows.batch(chosen).to(device)
            log_probs = model.predict(batch).log_probs  # (B, 2, T)
            wanted = batch.targets[model.main]
            assert log_probs is not None and batch.groups is not None  # noqa: PT018
            questions = batch.groups.cpu().numpy()
            np.minimum.at(none, questions, log_probs[:, :, 0].sum(dim=1).double().cpu().numpy())
            at = log_probs.gather(2, wanted.places.unsqueeze(2)).double().sum(dim=(1, 2))
            np.subtract.at(nats, questions, at.cpu().numpy())
            best = best_spans(log_probs, wanted.passages, max_answer=head.max_answer, num=1 if num == 1 else KEPT)
            _keep(found, windows, np.sort(chosen), best.scores, best.places)
    spans = [_distinct(store, question, kept, num) for question, kept in enumerate(found)]
    return SpanAnswers(spans, none, nats, np.bincount(windows.question_of, minlength=len(store)))


def _keep(
    found: list[dict[tuple[int, int], float]], windows: SpanWindows, chosen: np.ndarray, scores: Tensor, places: Tensor
) -> None:
    """Spans of windows, as tokens of their passages with their scores."""
    questions, shifts = windows.question_of[chosen], windows.cuts[chosen, 1] - windows.begins[chosen]
    tokens = places.cpu().numpy() + shifts[:, None, None]  # (B, K, 2)
    for question, values, spans in zip(questions.tolist(), scores.tolist(), tokens.tolist(), strict=True):
        for value, (first, last) in zip(values, spans, strict=True):
            if math.isfinite(value):
                found[question][first, last] = max(value, found[question].get((first, last), -math.inf))


def _distinct(store: SpanStore, question: int, kept: dict[tuple[int, int], float], num: int) -> list[FoundSpan]:
    """The best spans that do not overlap, as they stand in the passage without the white space around them."""
    passage, chosen, taken = store.rows[question].passage, list[FoundSpan](), list[tuple[int, int]]()
    for (first, last), log_prob in sorted(kept.items(), key=lambda item: -item[1]):
        if any(first <= other[1] and other[0] <= last for other in taken):
            continue
        begin, end = store.characters(question, first, last)
        text = passage[begin:end]
        if text.strip():
            taken.append((first, last))
            start = begin + len(text) - len(text.lstrip())
            chosen.append(FoundSpan(text.strip(), start, log_prob))
        if len(chosen) == num:
            break
    return chosen
