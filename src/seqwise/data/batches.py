"""Token store or series of numbers -> batches. Each source gives the batch of any step by itself, so that a run
resumes at the exact place.

Windows    windows in random order, each read from nothing: GPT and all that train in parallel
Streams    B texts side by side, read chunk by chunk: the state of one chunk starts the next (truncated
           backpropagation through time)
score_windows, score_streams    every token once, for evaluation
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch

from .batch import Batch, Tokens
from .store import TokenStore


class Store(Protocol):
    """A text as tokens, or a series of numbers: what stands at any places of it."""

    def __len__(self) -> int: ...
    def batch(self, places: np.ndarray) -> Batch: ...


class Windows:
    """Windows of `context` targets that begin `stride` tokens apart, shuffled anew, and shifted, in each epoch."""

    def __init__(self, store: Store, *, context: int, batch_size: int, stride: int | None = None, seed: int = 0):
        self.store, self.seed = store, seed
        self.context = min(context, len(store))
        self.stride = min(stride or self.context, self.context)
        shift_room = min(self.stride, len(store) - self.context + 1)
        self._num_windows = (len(store) - self.context - (shift_room - 1)) // self.stride + 1
        self._shift_room = len(store) - self.context - (self._num_windows - 1) * self.stride + 1
        self.batch_size = min(batch_size, self._num_windows)
        self.steps_per_epoch = self._num_windows // self.batch_size
        self._epoch = -1

    def batch(self, step: int, model: object = None) -> Batch:
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            order = np.random.default_rng((self.seed, epoch))
            self._shift = int(order.integers(self._shift_room))
            self._order = order.permutation(self._num_windows)
            self._epoch = epoch
        chosen = self._order[place * self.batch_size : (place + 1) * self.batch_size]
        return _rows(self.store, chosen * self.stride + self._shift, self.context)


class Streams:
    """The text cut into `batch_size` tracks that are read side by side, `context` tokens a step.

    Now and then a row starts anew, else a model that has always been reading would be lost at the start of a text.
    """

    ANEW_EVERY = 16  # chunks; the rows take turns

    def __init__(self, store: Store, *, context: int, batch_size: int, seed: int = 0):
        self.store, self.seed = store, seed
        self.batch_size = min(batch_size, max(1, len(store) // 2))
        self._track = len(store) // self.batch_size
        self.context = min(context, self._track)
        self.steps_per_epoch = max(1, (self._track - 1) // self.context)

    def batch(self, step: int, model: object = None) -> Batch:
        epoch, place = divmod(step, self.steps_per_epoch)
        room = self._track - self.steps_per_epoch * self.context  # each epoch cuts its chunks elsewhere
        shift = int(np.random.default_rng((self.seed, epoch)).integers(room + 1))
        rows = np.arange(self.batch_size)
        batch = _rows(self.store, rows * self._track + place * self.context + shift, self.context)
        resets = (place == 0) | ((place + rows) % self.ANEW_EVERY == 0)
        return replace(batch, resets=torch.from_numpy(resets))


def score_windows(
    store: TokenStore, *, context: int, stride: int | None = None, batch_size: int = 64
) -> Iterator[Batch]:
    """Every token exactly once. With `stride` < context, windows overlap and each scores only what is new in it."""
    context = min(context, len(store))
    stride = min(stride or context, context)
    starts = [0]
    while starts[-1] + context < len(store):
        starts.append(starts[-1] + stride)
    for first in range(0, len(starts), batch_size):
        some = np.array(starts[first : first + batch_size])
        places = some[:, None] + np.arange(context + 1)
        is_token = places <= len(store)  # (B, T+1); the last window may be short
        batch = store.batch(np.minimum(places, len(store)), is_token)
        if stride < context:
            is_new = is_token[:, 1:].copy()
            is_new[some > 0, : context - stride] = False
            batch = replace(batch, targets={"tokens": Tokens(batch.targets["tokens"].ids, torch.from_numpy(is_new))})
        yield replace(batch, places=torch.from_numpy(some))


def score_streams(store: TokenStore, *, chunk: int, tracks: int) -> Iterator[Batch]:
    """Every token exactly once, in `tracks` segments read side by side, so that state can be carried along each."""
    tracks = min(tracks, len(store))
    length = -(-len(store) // tracks)
    starts = np.arange(tracks) * length
    ends = np.minimum(starts + length, len(store))
    for offset in range(0, length, chunk):
        places = starts[:, None] + offset + np.arange(min(chunk, length - offset) + 1)
        is_token = places <= ends[:, None]
        batch = store.batch(np.minimum(places, len(store)), None if is_token.all() else is_token)
        yield replace(batch, places=torch.from_numpy(starts + offset))


def _rows(store: Store, starts: np.ndarray, context: int) -> Batch:
    return store.batch(starts[:, None] + np.arange(context + 1))  # (B, T+1)
