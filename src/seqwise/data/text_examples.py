"""Texts with answers, as ids: rows of different lengths, and what should be answered for each.

A row is the boundary, a text, and the boundary again; a second text follows behind that, with a boundary of its own.

Shapes: N rows, B batch, T steps, W words, K characters of a word, L labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch

from ..text.words import WordTokenizer
from .annotated import LabelledRow, TaggedRow
from .batch import Batch, Labels, LabelSets, Tags, Tokens, Values
from .pair_store import Rows
from .schema import LABEL, LABELS, NUMBER, TAG, LabelSpec, Schema, TokenSpec
from .tag_layouts import TagLayout

POOL = 32  # batches among which rows are put together by length
REPLACED = 0.5  # of words that training has once: read as unknown, so that unknown words are learned too


class Column(Protocol):
    """What should be answered, row by row."""

    def field(self, chosen: np.ndarray) -> Any:
        """Of some rows, as a field of a batch."""
        ...

    def take(self, num: int) -> Column: ...
    def choose(self, chosen: np.ndarray) -> Column: ...


@dataclass(frozen=True)
class AnswerColumn:
    """A label or a number for each row."""

    values: np.ndarray
    """(N,) int64, -1 for a label that is not known; or float32."""

    def field(self, chosen: np.ndarray) -> Labels | Values:
        found = torch.from_numpy(self.values[chosen])
        return Values(found.view(-1, 1, 1)) if found.is_floating_point() else Labels(found)

    def take(self, num: int) -> AnswerColumn:
        return AnswerColumn(self.values[:num])

    def choose(self, chosen: np.ndarray) -> AnswerColumn:
        return AnswerColumn(self.values[chosen])


@dataclass(frozen=True)
class LabelSetColumn:
    """For each row, which labels are right."""

    values: np.ndarray
    """(N, L) bool."""

    def field(self, chosen: np.ndarray) -> LabelSets:
        return LabelSets(torch.from_numpy(self.values[chosen]))

    def take(self, num: int) -> LabelSetColumn:
        return LabelSetColumn(self.values[:num])

    def choose(self, chosen: np.ndarray) -> LabelSetColumn:
        return LabelSetColumn(self.values[chosen])


@dataclass(frozen=True)
class TagColumn:
    """A tag for each word of a row, and the step at which the word begins."""

    ids: Rows
    steps: Rows

    def field(self, chosen: np.ndarray) -> Tags:
        ids = self.ids.padded(chosen)
        return Tags(ids.ids, self.steps.padded(chosen).ids, ids.is_token)

    def take(self, num: int) -> TagColumn:
        return TagColumn(self.ids.take(num), self.steps.take(num))

    def choose(self, chosen: np.ndarray) -> TagColumn:
        return TagColumn(self.ids.at(chosen), self.steps.at(chosen))


@dataclass(frozen=True)
class Spelled:
    """The characters of each token's word; words that differ are spelled once."""

    words: np.ndarray
    """(tokens,) int32: which of the words each token is; 0 is the boundary, which has no characters."""
    table: np.ndarray
    """(words, K) int16."""


@dataclass(frozen=True)
class TextStore:
    tokens: Rows
    targets: Mapping[str, Column]
    """By the name of the target, the main one first."""
    rows: Sequence[LabelledRow] | Sequence[TaggedRow]
    """As they were read."""
    segments: np.ndarray | None = None
    """(tokens,) int8: which of two texts each token belongs to; None where there is one."""
    spelled: Spelled | None = None
    unknown: int | None = None
    """Tags: the token that words are read as which the tokenizer does not know; None where it knows all pieces."""
    layout: TagLayout | None = None
    """Tags: how the file was written, in which answers are written too."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def main(self) -> Any:
        return next(iter(self.targets.values()))

    @property
    def answers(self) -> np.ndarray:
        """Of the main target, a label, a set of them or a number for each row."""
        return self.main.values

    def answers_of(self, target: str) -> np.ndarray:
        """The same of another target."""
        column: Any = self.targets[target]
        return column.values

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row."""
        return self.tokens.lengths

    def take(self, num: int) -> TextStore:
        """So many rows from the beginning, or all."""
        if num >= len(self):
            return self
        targets = {name: column.take(num) for name, column in self.targets.items()}
        return replace(self, tokens=self.tokens.take(num), targets=targets, rows=self.rows[:num])

    def choose(self, chosen: np.ndarray) -> TextStore:
        """These rows, (n,), in this order."""
        targets = {name: column.choose(chosen) for name, column in self.targets.items()}
        places = np.concatenate([np.arange(self.tokens.edges[row], self.tokens.edges[row + 1]) for row in chosen])
        segments = None if self.segments is None else self.segments[places]
        spelled = None if self.spelled is None else replace(self.spelled, words=self.spelled.words[places])
        rows = [self.rows[row] for row in chosen.tolist()]
        return replace(
            self,
            tokens=self.tokens.at(chosen),
            targets=targets,
            rows=rows,
            segments=segments,
            spelled=spelled,
        )

    def sample(self, num: int, seed: int) -> TextStore:
        """So many rows by chance, of each label its share and one at least, in the order of the store."""
        if num >= len(self):
            return self
        answers = self.answers if isinstance(self.main, AnswerColumn) else np.zeros(len(self))
        return self.choose(sample_by_answer(answers, num, seed))

    def batch(self, chosen: np.ndarray | slice) -> Batch:
        chosen = np.arange(len(self))[chosen] if isinstance(chosen, slice) else chosen
        targets = {name: column.field(chosen) for name, column in self.targets.items()}
        return Batch({"tokens": self.tokens_of(chosen)}, targets)

    def tokens_of(self, chosen: np.ndarray) -> Tokens:
        """Of some rows, padded."""
        found = self.tokens.padded(chosen)
        if self.segments is not None or self.spelled is not None:
            places = self._places(chosen)
            segments = None if self.segments is None else torch.from_numpy(self.segments[places].astype(np.int64))
            characters = None
            if self.spelled is not None:
                characters = torch.from_numpy(self.spelled.table[self.spelled.words[places]].astype(np.int64))
            found = replace(found, segments=segments, characters=characters)
        return found

    def _places(self, chosen: np.ndarray) -> np.ndarray:
        """Of the tokens of some rows, (B, T); behind the end of a row, that of its last."""
        starts, lengths = self.tokens.edges[chosen], self.tokens.lengths[chosen]
        return starts[:, None] + np.minimum(np.arange(lengths.max()), lengths[:, None] - 1)

    def in_order_of_length(self, batch_size: int) -> list[np.ndarray]:
        """All rows once, long ones together."""
        order = np.argsort(self.lengths, kind="stable")
        return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def build_label_store(rows: Sequence[LabelledRow], schema: Schema) -> TextStore:
    spec = schema.input("tokens", TokenSpec)
    encoded = [spec.encode_texts(row.texts) for row in rows]
    segments = np.concatenate([found for _, found in encoded]).astype(np.int8) if spec.num_texts > 1 else None
    answers = COLUMNS[schema.kind]([row.answer for row in rows], schema.main_spec)
    tokens = Rows.of(ids for ids, _ in encoded)
    spelled = spell_texts(spec, rows, tokens) if spec.alphabet else None
    return TextStore(tokens, {schema.main: answers}, rows, segments, spelled)


def spell_texts(spec: TokenSpec, rows: Sequence[LabelledRow], tokens: Rows) -> Spelled:
    """A token is a word, as it was written."""
    assert isinstance(spec.tokenizer, WordTokenizer)
    places: dict[str, int] = {}
    words = np.zeros(len(tokens.ids), dtype=np.int32)
    for row, start, end in zip(rows, tokens.edges[:-1].tolist(), (tokens.edges[1:] - 1).tolist(), strict=True):
        place = start + 1
        for text in row.texts:
            found = spec.tokenizer.split(text)[: end - place]  # of a row that was cut, its beginning
            words[place : place + len(found)] = [places.setdefault(word, len(places) + 1) for word in found]
            place += len(found) + 1
    return Spelled(words, np.concatenate([np.zeros_like(spec.spell([""])), spec.spell(list(places))]))


def _of_numbers(answers: Sequence[Any], spec: Any) -> Column:
    return AnswerColumn(spec.encode(answers))


def _of_labels(answers: Sequence[Any], spec: LabelSpec) -> Column:
    return AnswerColumn(spec.encode([str(answer) for answer in answers]))


def _of_label_sets(answers: Sequence[Any], spec: LabelSpec) -> Column:
    is_right = np.zeros((len(answers), spec.size), dtype=bool)
    for row, labels in enumerate(answers):
        known = spec.encode(labels)
        is_right[row, known[known >= 0]] = True
    return LabelSetColumn(is_right)


COLUMNS = {LABEL: _of_labels, LABELS: _of_label_sets, NUMBER: _of_numbers}
"""By the kind of target."""


def build_tag_store(rows: Sequence[TaggedRow], schema: Schema, layout: TagLayout | None = None) -> TextStore:
    spec, targets = schema.input("tokens", TokenSpec), dict[str, Column]()
    encoded = [spec.encode_words(row.words) for row in rows]
    tokens, steps = Rows.of(ids for ids, _ in encoded), Rows.of(places for _, places in encoded)
    for name, target in schema.targets.items():
        answers = schema.target(name, LabelSpec)
        if target.head == TAG:
            targets[name] = TagColumn(Rows.of(answers.encode(row.tags) for row in rows), steps)
        else:
            targets[name] = AnswerColumn(answers.encode([row.label or "" for row in rows]))
    spelled = _spell(spec, rows, tokens, steps) if spec.alphabet else None
    unknown = spec.tokenizer.unknown if isinstance(spec.tokenizer, WordTokenizer) else None
    return TextStore(tokens, targets, rows, spelled=spelled, unknown=unknown, layout=layout)


def _spell(spec: TokenSpec, rows: Sequence[TaggedRow], tokens: Rows, steps: Rows) -> Spelled:
    """All pieces of a word have the characters of the word."""
    places: dict[str, int] = {}
    kinds = [places.setdefault(word, len(places) + 1) for row in rows for word in row.words]
    begins = steps.ids + np.repeat(tokens.edges[:-1], steps.lengths)  # of each word, in all tokens
    words = np.zeros(len(tokens.ids), dtype=np.int32)
    words[begins] = kinds
    is_boundary = np.zeros(len(words), dtype=bool)
    is_boundary[tokens.edges[:-1]] = is_boundary[tokens.edges[1:] - 1] = True
    held = np.maximum.accumulate(np.where(words > 0, np.arange(len(words)), 0))  # the first piece of the same word
    words = np.where(is_boundary, 0, words[held]).astype(np.int32)
    table = np.concatenate([np.zeros_like(spec.spell([""])), spec.spell(list(places))])
    return Spelled(words, table)


class RowBatches:
    """Batches of rows of about the same lengths, in an order that is shuffled anew in each epoch; the batch of any step
    by itself. Some of the words that are rare are read as unknown, drawn from (seed, step)."""

    def __init__(
        self,
        store: TextStore,
        *,
        batch_size: int,
        seed: int = 0,
    ):
        self.store, self.seed = store, seed
        self.batch_size = min(batch_size, len(store))
        self.steps_per_epoch = -(-len(store) // self.batch_size)
        self.rare = None if store.unknown is None else torch.from_numpy(rare_tokens(store))
        """(V,) bool: tokens that are read as unknown half of the time; None where none are."""
        self._epoch = -1

    def batch(self, step: int, model: object = None) -> Batch:
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._batches = shuffled_by_length(self.store.lengths, self.batch_size, (self.seed, epoch))
            self._epoch = epoch
        batch = self.store.batch(self._batches[place])
        return batch if self.rare is None else self._with_unknown(batch, step)

    def _with_unknown(self, batch: Batch, step: int) -> Batch:
        tokens, random = batch.inputs["tokens"], torch.Generator().manual_seed(hash((self.seed, step)) % (1 << 62))
        assert self.rare is not None and self.store.unknown is not None  # noqa: PT018
        is_replaced = self.rare[tokens.ids] & (torch.rand(tokens.shape, generator=random) < REPLACED)
        read: Tokens = replace(tokens, ids=tokens.ids.masked_fill(is_replaced, self.store.unknown))
        return replace(batch, inputs={**batch.inputs, "tokens": read})


def sample_by_answer(answers: np.ndarray, num: int, seed: int) -> np.ndarray:
    """So many rows by chance, in order: of each label its share and one at least; of numbers any. Shape: (num,)."""
    random = np.random.default_rng((seed, num))
    if np.issubdtype(answers.dtype, np.floating):
        answers = np.zeros(len(answers), dtype=np.int64)
    kinds, labels = np.unique(answers, return_inverse=True)
    order = random.permutation(len(answers))
    # rows of each label in turn, those of frequent labels more often: the share of rows of its label before it
    rank = np.empty(len(answers))
    for label in range(len(kinds)):
        of_label = order[labels[order] == label]
        rank[of_label] = (np.arange(len(of_label)) + 0.5 * random.random()) / len(of_label)
        rank[of_label[0]] = -1.0
    return np.sort(np.argsort(rank, kind="stable")[:num])


def shuffled_by_length(lengths: np.ndarray, batch_size: int, seed: tuple[int, int]) -> list[np.ndarray]:
    """Rows in batches, each of rows of about the same lengths, by chance."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(lengths))
    pools = [order[start : start + POOL * batch_size] for start in range(0, len(order), POOL * batch_size)]
    order = np.concatenate([pool[np.argsort(lengths[pool], kind="stable")] for pool in pools])
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    return [batches[place] for place in random.permutation(len(batches))]


def rare_tokens(store: TextStore) -> np.ndarray:
    """(V,) bool: tokens that a store has once."""
    return np.bincount(store.tokens.ids) == 1
