"""Learning by counting: one pass, one report."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ..data.store import TokenStore
from ..models.ngram import Ngram
from .loop import Hooks
from .report import Report


def count(model: Ngram, store: TokenStore, hooks: Hooks) -> Iterator[Report]:
    began = time.perf_counter()
    model.fit(store.ids)
    seconds = time.perf_counter() - began
    if hooks.keep_best:
        hooks.keep_best()
    valid = hooks.validate() if hooks.validate else None
    yield Report(
        step=1,
        steps=1,
        tokens=store.num_tokens,
        loss=valid if valid is not None else 0.0,
        learning_rate=0.0,
        gradient_norm=0.0,
        clipped=0,
        seconds=seconds,
        tokens_per_second=store.num_tokens / seconds,
        valid=valid,
        is_best=True,
        sample=hooks.sample() if hooks.sample else None,
    )
