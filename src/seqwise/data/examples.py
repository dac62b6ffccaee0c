"""Sequences with one answer each: a label, or a number. What a model is given to label, and what it should say."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import torch

from ..text.symbols import SymbolTokenizer
from ..wording import counted
from .batch import Batch, Labels, Tokens, Values
from .schema import LabelSpec, NumberSpec, Schema, TokenSpec, ValueSpec, answer_schema


@dataclass(frozen=True)
class ExampleStore:
    """Examples side by side, all of one length."""

    inputs: np.ndarray
    """(N, T) tokens, int64, or (N, T, C) numbers, float32."""
    answers: np.ndarray
    """(N,) labels, int64, or numbers, float32."""

    def __len__(self) -> int:
        return len(self.inputs)

    def answers_of(self, target: str) -> np.ndarray:
        """Of its only target."""
        return self.answers

    @property
    def lengths(self) -> np.ndarray:
        """Steps of each example."""
        return np.full(len(self), self.inputs.shape[1])

    def take(self, num: int) -> ExampleStore:
        """So many examples from the beginning, or all."""
        return self if num >= len(self) else ExampleStore(self.inputs[:num], self.answers[:num])

    def in_order_of_length(self, batch_size: int) -> list[np.ndarray]:
        """All examples once: they are of one length."""
        return [np.arange(start, min(start + batch_size, len(self))) for start in range(0, len(self), batch_size)]

    def batch(self, chosen: np.ndarray | slice) -> Batch:
        inputs, answers = torch.from_numpy(self.inputs[chosen]), torch.from_numpy(self.answers[chosen])
        fields = {"values": Values(inputs.float())} if inputs.dim() == 3 else {"tokens": Tokens(inputs.long())}
        if answers.dtype.is_floating_point:
            return Batch(fields, {"number": Values(answers.float().view(-1, 1, 1))})
        return Batch(fields, {"label": Labels(answers.long())})


@dataclass(frozen=True)
class ExampleData:
    name: str
    parts: dict[str, ExampleStore]
    labels: list[str]
    """The names of the labels; none where the answer is a number."""
    vocab_size: int = 0
    """Tokens that inputs are made of; 0 where they are numbers."""
    notes: list[str] = field(default_factory=list)
    """A sentence for each thing that was found or left out."""

    @property
    def schema(self) -> Schema:
        answer = LabelSpec(self.labels) if self.labels else NumberSpec()
        if self.vocab_size:
            return answer_schema(TokenSpec(SymbolTokenizer(self.vocab_size)), answer)
        return answer_schema(ValueSpec.unscaled([f"column {n}" for n in range(self.num_columns)]), answer)

    @property
    def num_columns(self) -> int:
        inputs = next(iter(self.parts.values())).inputs
        return inputs.shape[2] if inputs.ndim == 3 else 0

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for store in self.parts.values():
            digest.update(np.ascontiguousarray(store.inputs).tobytes() + np.ascontiguousarray(store.answers).tobytes())
        return digest.hexdigest()

    @property
    def description(self) -> str:
        inputs = next(iter(self.parts.values())).inputs
        what = (
            f"{counted(inputs.shape[1], 'step')} of {counted(inputs.shape[2], 'number')}"
            if inputs.ndim == 3
            else counted(inputs.shape[1], "token")
        )
        answer = f"one of {counted(len(self.labels), 'label')}" if self.labels else "a number"
        parts = ", ".join(f"{part} {len(store):,}" for part, store in self.parts.items())
        return f"{self.name}: sequences of {what}, each with {answer} as its answer ({parts})"


class Examples:
    """Batches of examples in an order that is shuffled anew in each epoch; the batch of any step by itself."""

    def __init__(self, store: ExampleStore, *, batch_size: int, seed: int = 0):
        self.store, self.seed = store, seed
        self.batch_size = min(batch_size, len(store))
        self.steps_per_epoch = len(store) // self.batch_size
        self._epoch = -1

    def batch(self, step: int, model: object = None) -> Batch:
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._order = np.random.default_rng((self.seed, epoch)).permutation(len(self.store))
            self._epoch = epoch
        return self.store.batch(self._order[place * self.batch_size : (place + 1) * self.batch_size])
