"""Spans by brute force: every pair of steps that is allowed, and nothing else."""

from __future__ import annotations

import math

import pytest
import torch

from seqwise.data.batch import Spans
from seqwise.layers.span_head import SpanHead, best_spans
from seqwise.layers.stream import Stream

T, D = 9, 5


def example(passages: list[list[int]], **settings: object) -> tuple[SpanHead, Stream, Spans]:
    torch.manual_seed(3)
    head = SpanHead(D, **{"max_answer": 3, **settings})  # type: ignore[arg-type]
    torch.nn.init.normal_(head.output.weight)
    B = len(passages)
    return head, Stream(torch.randn(B, T, D)), Spans(torch.zeros(B, 2, dtype=torch.long), torch.tensor(passages))


def probabilities(head: SpanHead, stream: Stream, row: int, side: int, passage: list[int]) -> dict[int, float]:
    """Of the first step and those of the passage, one by one."""
    places = [0, *range(passage[0], passage[1] + 1)]
    logits = {place: float(head.output(stream.hidden[row, place])[side]) for place in places}
    total = sum(math.exp(value) for value in logits.values())
    return {place: math.exp(value) / total for place, value in logits.items()}


PASSAGES = [[3, 7], [4, 4], [2, 8], [5, 6]]


@torch.no_grad()
def test_scores_are_products_of_two_softmaxes_over_the_passage() -> None:
    head, stream, spans = example(PASSAGES)
    places = torch.tensor([[3, 5], [4, 4], [0, 0], [5, 6]])
    score = head.score(stream, Spans(places, spans.passages))
    assert score.shape == (4, 1)
    for row, passage in enumerate(PASSAGES):
        begins, ends = (probabilities(head, stream, row, side, passage) for side in (0, 1))
        wanted = begins[int(places[row, 0])] * ends[int(places[row, 1])]
        assert float(score[row]) == pytest.approx(math.log(wanted), abs=1e-5)
    log_probs = head.log_probs(stream, spans)
    torch.testing.assert_close(log_probs.exp().sum(dim=-1), torch.ones(4, 2))
    assert int(torch.isfinite(log_probs).sum()) == 2 * sum(1 + b - a + 1 for a, b in PASSAGES)


@pytest.mark.parametrize("max_answer", [1, 2, 3, 20])
@torch.no_grad()
def test_the_best_spans_are_the_best_of_all(max_answer: int) -> None:
    head, stream, spans = example(PASSAGES, max_answer=max_answer)
    log_probs = head.log_probs(stream, spans)
    found = best_spans(log_probs, spans.passages, max_answer=max_answer, num=4)
    for row, (a, b) in enumerate(PASSAGES):
        every = {
            (s, e): float(log_probs[row, 0, s] + log_probs[row, 1, e])
            for s in range(a, b + 1)
            for e in range(s, min(b, s + max_answer - 1) + 1)
        }
        ranked = sorted(every, key=lambda span: -every[span])[:4]
        kept = [
            tuple(span)
            for span, score in zip(found.places[row].tolist(), found.scores[row], strict=True)
            if score > -math.inf
        ]
        assert kept == ranked
        assert found.scores[row, 0].item() == pytest.approx(every[ranked[0]])


@torch.no_grad()
def test_none_is_the_answer_where_it_is_ahead_by_the_threshold() -> None:
    head, stream, spans = example(PASSAGES, may_lack=True)
    log_probs = head.log_probs(stream, spans)
    best = best_spans(log_probs, spans.passages, max_answer=3)
    gaps = log_probs[:, :, 0].sum(dim=1) - best.scores[:, 0]
    middle = float(gaps.sort().values[1:3].mean())
    head.threshold = middle
    answers = head.predict(stream, spans).answers
    assert answers.tolist() == [
        [0, 0] if gap > middle else place for gap, place in zip(gaps.tolist(), best.places[:, 0].tolist(), strict=True)
    ]
    assert int((answers.sum(dim=1) == 0).sum()) == 2
    head.may_lack = False
    assert torch.equal(head.predict(stream, spans).answers, best.places[:, 0])


@torch.no_grad()
def test_a_window_without_a_passage_has_no_answer() -> None:
    head, stream, spans = example([[4, 3]])
    assert head.predict(stream, spans).answers.tolist() == [[0, 0]]
    assert float(head.score(stream, spans)) == pytest.approx(0.0)


@torch.no_grad()
def test_wanted_answers_are_not_looked_at() -> None:
    head, stream, spans = example(PASSAGES)
    other = Spans(torch.tensor([[3, 4], [4, 4], [2, 2], [5, 5]]), spans.passages)
    assert torch.equal(head.predict(stream, spans).answers, head.predict(stream, other).answers)
