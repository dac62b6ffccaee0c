"""Learning by counting: one pass, one report."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from ..models.ngram import Ngram
from .loop import Hooks
from .report import Report


def count(model: Ngram, ids: np.ndarray, hooks: Hooks) -> Iterator[Report]:
    """`ids` (N+1,): the boundary token, then the N tokens of the text."""
    began = time.perf_counter()
    model.fit(ids)
    seconds = time.perf_counter() - began
    if hooks.keep_best:
        hooks.keep_best()
    valid = hooks.validate() if hooks.validate else None
    yield Report(
        step=1,
        steps=1,
        tokens=len(ids) - 1,
        loss=valid if valid is not None else 0.0,
        learning_rate=0.0,
        gradient_norm=0.0,
        clipped=0,
        seconds=seconds,
        tokens_per_second=(len(ids) - 1) / seconds,
        valid=valid,
        is_best=True,
        sample=hooks.sample() if hooks.sample else None,
    )
