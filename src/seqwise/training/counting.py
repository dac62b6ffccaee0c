"""Learning by counting: one pass, one report."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from ..data.text_examples import TextStore
from ..models.contract import LearnsFromExamples
from ..models.ngram import Ngram
from .loop import Hooks
from .report import Report


def count(model: Ngram, ids: np.ndarray, hooks: Hooks) -> Iterator[Report]:
    """`ids` (N+1,): the boundary token, then the N tokens of the text."""
    began = time.perf_counter()
    model.fit(ids)
    yield _report(len(ids) - 1, time.perf_counter() - began, hooks)


def count_examples(
    model: LearnsFromExamples, train: TextStore, valid: TextStore, hooks: Hooks, *, seed: int
) -> Iterator[Report]:
    """Texts with answers, in one go."""
    began = time.perf_counter()
    model.learn(train, valid, seed=seed)
    yield _report(len(train.tokens.ids), time.perf_counter() - began, hooks)


def _report(tokens: int, seconds: float, hooks: Hooks) -> Report:
    if hooks.keep_best:
        hooks.keep_best()
    valid = hooks.validate() if hooks.validate else None
    return Report(
        step=1,
        steps=1,
        tokens=tokens,
        loss=valid if valid is not None else 0.0,
        learning_rate=0.0,
        gradient_norm=0.0,
        clipped=0,
        seconds=seconds,
        tokens_per_second=tokens / seconds,
        valid=valid,
        is_best=True,
        sample=hooks.sample() if hooks.sample else None,
    )
