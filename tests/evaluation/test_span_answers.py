"""Answers over all windows of a question, against a model that says known things of every token."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from seqwise.data.questions import Question, Reference
from seqwise.data.schema import SpanSpec, TokenSpec, span_schema
from seqwise.data.span_store import SpanStore, build_span_store
from seqwise.evaluation.span_answers import nats_of, spans_of, window_steps
from seqwise.models import MODELS
from seqwise.text.words import WordTokenizer

WORDS = [f"w{n}" for n in range(40)]
PASSAGES = [" ".join(WORDS[:30]), " ".join(WORDS[5:12]), " ".join(WORDS[::-1])]


def schema_of(may_lack: bool) -> Any:
    return span_schema(TokenSpec(WordTokenizer([*WORDS, "why"]), num_texts=2), SpanSpec(may_lack))


def store_of(may_lack: bool = False, stride: int | None = None) -> SpanStore:
    rows = [
        Question(f"{n}", f"why {WORDS[n]}", passage, (Reference(passage.split()[3], passage.find(passage.split()[3])),))
        for n, passage in enumerate(PASSAGES)
    ]
    return build_span_store(rows, schema_of(may_lack), stride)


def model_of(may_lack: bool = False, max_answer: int = 3, max_steps: int = 14, threshold: float | None = None) -> Any:
    torch.manual_seed(1)
    config = MODELS["bert"].config(
        context=16, num_layers=1, model_dim=16, num_heads=2, max_answer=max_answer, max_steps=max_steps,
        none_threshold=threshold,
    )  # fmt: skip
    model = MODELS["bert"].build(config, schema_of(may_lack))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.6)
    return model.eval()


@torch.no_grad()
def by_hand(model: Any, store: SpanStore, question: int) -> tuple[dict[tuple[int, int], float], float]:
    """Score of each span of the passage, in tokens of it, and of none: window by window, each alone."""
    windows = store.windows(14)
    scores: dict[tuple[int, int], float] = {}
    none = math.inf
    for number, (asked, first, _) in enumerate(windows.cuts.tolist()):
        if asked != question:
            continue
        batch = windows.batch(np.array([number]))
        log_probs = model.predict(batch).log_probs[0]
        a, b = batch.targets["span"].passages[0].tolist()
        none = min(none, float(log_probs[0, 0] + log_probs[1, 0]))
        for s in range(a, b + 1):
            for e in range(s, min(b, s + 2) + 1):
                span, score = (s - a + first, e - a + first), float(log_probs[0, s] + log_probs[1, e])
                scores[span] = max(score, scores.get(span, -math.inf))
    return scores, none


@pytest.mark.parametrize("stride", [None, 2, 9])
def test_the_best_span_of_all_windows_is_the_answer(stride: int | None) -> None:
    model, store = model_of(), store_of(stride=stride)
    assert len(store.windows(14)) > 5
    found = spans_of(model, store)
    for question, passage in enumerate(PASSAGES):
        scores, none = by_hand(model, store, question)
        first, last = max(scores, key=lambda span: scores[span])
        best = found.spans[question][0]
        assert best.text == " ".join(passage.split()[first : last + 1])
        assert passage[best.start : best.end] == best.text
        assert best.log_prob == pytest.approx(scores[first, last], abs=1e-5)
        assert found.none[question] == pytest.approx(none, abs=1e-5)


def test_several_answers_are_the_best_that_do_not_overlap() -> None:
    model, store = model_of(), store_of()
    found = spans_of(model, store, num=3)
    for question, passage in enumerate(PASSAGES):
        scores, _ = by_hand(model, store, question)
        chosen: list[tuple[int, int]] = []
        for span in sorted(scores, key=lambda span: -scores[span]):
            if all(span[1] < other[0] or other[1] < span[0] for other in chosen):
                chosen.append(span)
        texts = [" ".join(passage.split()[a : b + 1]) for a, b in chosen[:3]]
        assert [span.text for span in found.spans[question]][:2] == texts[:2]


def test_none_is_chosen_by_the_threshold_and_is_ranked() -> None:
    store = store_of(may_lack=True)
    gaps = spans_of(model_of(may_lack=True), store).gaps
    cut = float(np.sort(gaps)[:2].mean())
    model = model_of(may_lack=True, threshold=cut)
    found = spans_of(model, store, num=2)
    said = found.chosen(model.main_head)
    assert [text == "" for text in said] == (gaps > cut).tolist()
    assert 0 < sum(text == "" for text in said) < 3
    for question, text in enumerate(said):
        ranked = list(found.ranked(question, model.main_head))
        assert ranked[0].text == text
        assert sum(span.is_none for span in ranked) == 1
    never = model_of(may_lack=False)
    assert all(spans_of(never, store_of()).chosen(never.main_head))


@torch.no_grad()
def test_the_loss_is_that_of_all_windows() -> None:
    model, store = model_of(), store_of()
    windows = store.windows(14)
    alone = [float(model.score(windows.batch(np.array([n])))[0]) for n in range(len(windows))]
    assert nats_of(model, store) == pytest.approx(-np.mean(alone), abs=1e-5)
    assert spans_of(model, store).nats_per_answer == pytest.approx(-np.mean(alone), abs=1e-5)


@pytest.mark.parametrize(
    ("max_steps", "context", "steps"), [(0, None, 384), (100, None, 100), (100, 60, 60), (0, 512, 384)]
)
def test_windows_fit_into_what_a_model_reads(max_steps: int, context: int | None, steps: int) -> None:
    model: Any = SimpleNamespace(max_steps=max_steps, context=context)
    assert window_steps(model) == steps
