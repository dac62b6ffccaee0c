"""Questions and passages as ids, and the windows in which a model reads them: [CLS] question [SEP] window [SEP].

The tokens of a passage are kept once, however many questions are asked on it and however many windows it takes; rows
are put together when a batch is. A passage that does not fit is read in windows that overlap, each with the question
before it. Where the answer does not stand in a window as a whole, that window's answer is its first step: none.

Shapes: Q questions, N windows, B batch, T steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from .batch import Batch, Spans, Tokens
from .pair_store import Rows, cuts_by_length
from .questions import NOWHERE, Question, distinct_passages
from .schema import Schema, TokenSpec
from .text_examples import shuffled_by_length

DEFAULT_STRIDE = 128  # tokens
QUESTION_SHARE = 2  # a question takes half of a window at most


@dataclass(frozen=True)
class SpanStore:
    rows: Sequence[Question]
    spec: TokenSpec
    questions: Rows
    passages: Rows
    """Each passage once."""
    offsets: np.ndarray
    """(tokens of all passages, 2) int32: the characters of its passage that each token stands for, from and to."""
    passage_of: np.ndarray
    """(Q,) int32."""
    answers: np.ndarray
    """(Q, 2) int32: the first and the last token of the answer in its passage, that most people gave; -1 for none."""
    stride: int | None = None

    def __len__(self) -> int:
        """Questions."""
        return len(self.rows)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each question and its passage with what stands around them, if they were one row, (Q,)."""
        return self.questions.lengths + self.passages.lengths[self.passage_of] + self.num_special

    @property
    def num_special(self) -> int:
        """Tokens of a row that belong to neither."""
        return 1 + len(self.spec.behind(is_last=False)) + len(self.spec.behind(is_last=True))

    @property
    def answer_lengths(self) -> np.ndarray:
        """Tokens of each answer that there is."""
        there = self.answers[self.answers[:, 0] != NOWHERE]
        return there[:, 1] - there[:, 0] + 1

    def take(self, num: int) -> SpanStore:
        """So many questions from the beginning, or all."""
        return self if num >= len(self) else self.choose(np.arange(num))

    def choose(self, chosen: np.ndarray) -> SpanStore:
        """These questions, (n,), in this order."""
        return replace(
            self,
            rows=[self.rows[row] for row in chosen.tolist()],
            questions=self.questions.at(chosen),
            passage_of=self.passage_of[chosen],
            answers=self.answers[chosen],
        )

    def sample(self, num: int, seed: int) -> SpanStore:
        """So many questions by chance, in the order of the store."""
        if num >= len(self):
            return self
        return self.choose(np.sort(np.random.default_rng((seed, num)).permutation(len(self))[:num]))

    def windows(self, max_steps: int) -> SpanWindows:
        """As rows of at most so many steps."""
        question_room = max(1, (max_steps - self.num_special) // QUESTION_SHARE)
        read = np.minimum(self.questions.lengths, question_room)
        lengths = self.passages.lengths[self.passage_of]
        found: list[tuple[int, int, int]] = []
        for question, (asked, length) in enumerate(zip(read.tolist(), lengths.tolist(), strict=True)):
            room = max(1, max_steps - self.num_special - asked)
            found += [(question, first, last) for first, last in windows_of(length, room, self.stride)]
        return SpanWindows(self, read, np.array(found, dtype=np.int32).reshape(-1, 3))

    def characters(self, question: int, first: int, last: int) -> tuple[int, int]:
        """Of these tokens of the question's passage: from and to."""
        start = int(self.passages.edges[self.passage_of[question]])
        return int(self.offsets[start + first, 0]), int(self.offsets[start + last, 1])


def windows_of(length: int, room: int, stride: int | None = None) -> Iterator[tuple[int, int]]:
    """Where the windows of a passage of so many tokens begin and end; the last one reaches its end."""
    step = max(1, min(DEFAULT_STRIDE, room // 2) if stride is None else min(stride, room))
    first = 0
    while first + room < length:
        yield first, first + room
        first += step
    yield first, length


@dataclass(frozen=True)
class SpanWindows:
    """The rows of a store, in which its questions stand one behind the other."""

    store: SpanStore
    question_steps: np.ndarray
    """(Q,): tokens of each question that are read."""
    cuts: np.ndarray
    """(N, 3) int32: the question, and from which token of its passage to which the window reaches."""

    def __len__(self) -> int:
        return len(self.cuts)

    @property
    def question_of(self) -> np.ndarray:
        """(N,)."""
        return self.cuts[:, 0]

    @cached_property
    def lengths(self) -> np.ndarray:
        """Steps of each row, (N,)."""
        return self.question_steps[self.question_of] + self.cuts[:, 2] - self.cuts[:, 1] + self.store.num_special

    @cached_property
    def begins(self) -> np.ndarray:
        """The step at which the window begins in each row, (N,)."""
        return 1 + self.question_steps[self.question_of] + len(self.store.spec.behind(is_last=False))

    @cached_property
    def places(self) -> np.ndarray:
        """(N, 2): the first and the last step of the answer; both 0 where the window does not hold it."""
        answers = self.store.answers[self.question_of]  # (N, 2)
        is_here = (answers[:, 0] >= self.cuts[:, 1]) & (answers[:, 1] < self.cuts[:, 2]) & (answers[:, 0] != NOWHERE)
        return np.where(is_here[:, None], answers - self.cuts[:, 1:2] + self.begins[:, None], 0)

    def batch(self, chosen: np.ndarray | slice) -> Batch:
        """Some windows side by side; those of one question are a group."""
        chosen = np.arange(len(self))[chosen] if isinstance(chosen, slice) else np.sort(chosen)
        spec, lengths = self.store.spec, self.lengths[chosen]
        steps = np.arange(lengths.max())
        ids = np.zeros((len(chosen), len(steps)), dtype=np.int64)
        for row, window in enumerate(chosen.tolist()):
            ids[row, : lengths[row]] = self._row(window)
        begins, is_token = self.begins[chosen], steps < lengths[:, None]
        segments = ((steps >= begins[:, None]) & is_token).astype(np.int64)
        ends = lengths - len(spec.behind(is_last=True)) - 1
        tokens = Tokens(
            torch.from_numpy(ids),
            None if is_token.all() else torch.from_numpy(is_token),
            segments=torch.from_numpy(segments),
        )
        spans = Spans(torch.from_numpy(self.places[chosen]), torch.from_numpy(np.stack([begins, ends], axis=1)))
        groups = torch.from_numpy(self.question_of[chosen].astype(np.int64))
        return Batch({"tokens": tokens}, {"span": spans}, groups=groups)

    def _row(self, window: int) -> np.ndarray:
        store, (question, first, last) = self.store, self.cuts[window].tolist()
        begin, start = store.questions.edges[question], store.passages.edges[store.passage_of[question]]
        return np.concatenate(
            [
                [store.spec.begin],
                store.questions.ids[begin : begin + self.question_steps[question]],
                store.spec.behind(is_last=False),
                store.passages.ids[start + first : start + last],
                store.spec.behind(is_last=True),
            ]
        )

    def in_order_of_length(self, max_tokens: int) -> Iterator[np.ndarray]:
        """All windows once, long ones together, in batches of at most so many places."""
        order = np.argsort(self.lengths, kind="stable")
        for a, b in cuts_by_length(self.lengths[order], max_tokens):
            yield order[a:b]


def build_span_store(questions: Sequence[Question], schema: Schema, stride: int | None = None) -> SpanStore:
    spec = schema.input("tokens", TokenSpec)
    passages = distinct_passages(questions)
    number_of = {passage: number for number, passage in enumerate(passages)}
    encoded = [spec.tokenizer.encode_with_offsets(on_one_line(passage)) for passage in passages]
    offsets = [found.astype(np.int32) for _, found in encoded]
    passage_of = np.array([number_of[question.passage] for question in questions], dtype=np.int32)
    answers = [
        _answer_tokens(question, offsets[number]) for question, number in zip(questions, passage_of, strict=True)
    ]
    return SpanStore(
        questions,
        spec,
        Rows.of(spec.encode(on_one_line(question.text)) for question in questions),
        Rows.of(ids for ids, _ in encoded),
        np.concatenate([np.zeros((0, 2), dtype=np.int32), *offsets]),
        passage_of,
        np.array(answers, dtype=np.int32).reshape(-1, 2),
        stride,
    )


def on_one_line(text: str) -> str:
    """Characters keep their places: a newline would be read as the end of a text."""
    return text.replace("\n", " ")


def _answer_tokens(question: Question, offsets: np.ndarray) -> tuple[int, int]:
    """The first and the last token of the answer that most people gave, of several the first."""
    placed = [reference for reference in question.references if reference.start != NOWHERE]
    if not placed:
        return NOWHERE, NOWHERE
    text, start = max(placed, key=placed.count)
    is_inside = (offsets[:, 1] > start) & (offsets[:, 0] < start + len(text))
    inside = np.flatnonzero(is_inside)
    return (int(inside[0]), int(inside[-1])) if len(inside) else (NOWHERE, NOWHERE)


class WindowBatches:
    """Batches of windows of about the same lengths, in an order that is shuffled anew in each epoch; the batch of any
    step by itself."""

    def __init__(self, windows: SpanWindows, *, batch_size: int, seed: int = 0):
        self.windows, self.seed = windows, seed
        self.batch_size = min(batch_size, len(windows))
        self.steps_per_epoch = -(-len(windows) // self.batch_size)
        self._epoch = -1

    def batch(self, step: int, model: object = None) -> Batch:
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._batches = shuffled_by_length(self.windows.lengths, self.batch_size, (self.seed, epoch))
            self._epoch = epoch
        return self.windows.batch(self._batches[place])
