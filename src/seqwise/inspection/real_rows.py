"""A few rows of a run's own data, of different lengths: each alone, and all of them padded side by side. CUTS is the
table.

Shapes: B batch, T steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch

from ..data.batch import Batch, Images, Regions, Tags, Tokens, Values
from ..data.binarised import scored_batch
from ..data.choices import ChoiceStore
from ..data.examples import ExampleStore
from ..data.masking import MaskedStore, Masking
from ..data.numbers import NumberStore
from ..data.pair_store import PairStore
from ..data.row_store import RowStore
from ..data.schema import (
    CAPTION,
    CHOICE,
    LABEL,
    LABELS,
    MASKED_TOKEN,
    NEXT_TOKEN,
    NEXT_VALUES,
    NUMBER,
    PICTURE,
    RECONSTRUCTION,
    SEQUENCE,
    SPAN,
    TAG,
    VECTOR,
)
from ..data.seen_store import SeenStore
from ..data.span_store import SpanStore
from ..data.store import TokenStore
from ..data.text_examples import TextStore

NUM_ROWS = 6
MAX_STEPS = 32  # of a row; a model is stepped through each of them
PADDING = 3  # steps behind the longest row, so that every row is padded
MASKS = {Tokens: "is_token", Values: "is_step", Tags: "is_word", Images: "is_step", Regions: "is_region"}
"""Where each kind of field keeps which of its places are padding; what has no steps has none."""


def real_rows(kind: str, store: Any, context: int | None) -> list[Batch]:
    """Rows of a part, each a batch without padding, that fit into the context with some padding behind them."""
    longest = MAX_STEPS if context is None else max(1, min(MAX_STEPS, context - PADDING))
    return list(CUTS[kind](store, longest))


def _lengths(longest: int) -> list[int]:
    """From the longest down to about a sixth of it."""
    return [max(1, round(longest * (NUM_ROWS - row) / NUM_ROWS)) for row in range(NUM_ROWS)]


def _of_series(store: TokenStore | NumberStore, first: int, longest: int) -> Iterator[Batch]:
    """Segments that begin at places spread over all from `first` on; each is read up to its last but one step."""
    longest = min(longest, len(store) - first)
    starts = np.linspace(first, len(store) - longest, NUM_ROWS).astype(int)
    for start, length in zip(starts, _lengths(longest), strict=True):
        yield store.batch(np.arange(start, start + length + 1)[None])


def _of_text(store: TokenStore, longest: int) -> Iterator[Batch]:
    return _of_series(store, 0, longest)


def _of_numbers(store: NumberStore, longest: int) -> Iterator[Batch]:
    """Of the part; the step before it is read, and not asked for."""
    return _of_series(store, store.first - 1, longest)


def _of_tagged(store: TextStore, longest: int) -> Iterator[Batch]:
    """Rows of different lengths that have words and fit; the shortest of these where none fits."""
    order = np.argsort(store.lengths, kind="stable")
    order = order[store.main.ids.lengths[order] > 0]
    fitting = order[: max(1, int((store.lengths[order] <= longest).sum()))]
    for place in np.unique(np.linspace(0, len(fitting) - 1, NUM_ROWS).astype(int)):
        yield store.batch(fitting[place : place + 1])


def _of_captions(store: SeenStore, longest: int) -> Iterator[Batch]:
    """Pictures with captions, from the shortest to the longest that fits."""
    order = np.argsort(store.lengths, kind="stable")
    fitting = order[: max(1, int((store.lengths[order] <= longest).sum()))]
    for place in np.unique(np.linspace(0, len(fitting) - 1, NUM_ROWS).astype(int)):
        yield store.batch(fitting[place : place + 1])


def _of_examples(store: ExampleStore | TextStore | SeenStore, longest: int) -> Iterator[Batch]:
    """Beginnings of examples, with the answers of the whole; pictures as they are."""
    chosen = np.unique(np.linspace(0, len(store) - 1, NUM_ROWS).astype(int))
    if isinstance(store, SeenStore):
        yield from (store.batch(np.array([row])) for row in chosen)
        return
    lengths = _lengths(min(longest, int(store.lengths.max())))
    for example, length in zip(chosen, lengths, strict=False):
        batch = store.batch(np.array([example]))
        yield Batch({name: _cut(field, length) for name, field in batch.inputs.items()}, batch.targets)


def _of_pictures(store: SeenStore, longest: int) -> Iterator[Batch]:
    """In black and white, as they are scored."""
    for row in np.unique(np.linspace(0, len(store) - 1, NUM_ROWS).astype(int)):
        yield scored_batch(store, np.array([row]), seed=0)


def _of_choices(store: ChoiceStore, longest: int) -> Iterator[Batch]:
    """Beginnings of the rows of a question, each as long as the others."""
    chosen = np.unique(np.linspace(0, len(store) - 1, NUM_ROWS).astype(int))
    for question, length in zip(chosen, _lengths(longest), strict=False):
        batch = store.batch(np.array([question]))
        shortest = min(length, int(batch.inputs["tokens"].lengths.min()))
        inputs = {name: _cut(field, shortest) for name, field in batch.inputs.items()}
        yield replace(batch, inputs={name: replace(field, is_token=None) for name, field in inputs.items()})


def _of_pairs(store: PairStore, longest: int) -> Iterator[Batch]:
    """From the shortest pair to the longest that fits; the shortest of all where none does."""
    longer = np.maximum(store.source.lengths, store.target.lengths - 1)
    order = np.argsort(longer, kind="stable")
    fitting = order[: max(1, int((longer <= longest).sum()))]
    for place in np.unique(np.linspace(0, len(fitting) - 1, NUM_ROWS).astype(int)):
        yield store.batch(fitting[place : place + 1])


def _of_rows(store: RowStore, longest: int) -> Iterator[Batch]:
    """From the shortest row to the longest that fits, both copies of it; the shortest of all where none does."""
    order = np.argsort(store.rows.lengths, kind="stable")
    fitting = order[: max(1, int((2 * store.rows.lengths - 2 <= longest).sum()))]
    for place in np.unique(np.linspace(0, len(fitting) - 1, NUM_ROWS).astype(int)):
        yield store.batch(fitting[place : place + 1])


def _of_masked(store: MaskedStore, longest: int) -> Iterator[Batch]:
    """Rows with words hidden, each of another length."""
    for row, length in enumerate(_lengths(max(5, longest))):
        rows = store.rows(max(5, length))
        yield rows.batch(np.array([row % len(rows)]), Masking(share=0.5, is_static=True), (0, row))


def _of_questions(store: SpanStore, longest: int) -> Iterator[Batch]:
    """Windows with the question before them, each of another length."""
    for question, length in enumerate(_lengths(longest)):
        windows = store.windows(max(store.num_special + 4, length))
        yield windows.batch(np.array([question * (len(windows) - 1) // NUM_ROWS]))


CUTS: dict[str, Callable[[Any, int], Iterator[Batch]]] = {
    NEXT_TOKEN: _of_text,
    NEXT_VALUES: _of_numbers,
    LABEL: _of_examples,
    LABELS: _of_examples,
    NUMBER: _of_examples,
    TAG: _of_tagged,
    SEQUENCE: _of_pairs,
    RECONSTRUCTION: _of_rows,
    MASKED_TOKEN: _of_masked,
    VECTOR: _of_examples,
    SPAN: _of_questions,
    CHOICE: _of_choices,
    CAPTION: _of_captions,
    PICTURE: _of_pictures,
}
"""By the kind of the main target: how rows of at most so many steps are cut from a store."""


def padded_together(rows: Sequence[Batch], context: int | None, *, pads_targets: bool) -> Batch:
    """The rows as one batch, every one of them padded; targets too, where there is one for each step."""
    inputs = {name: _padded([row.inputs[name] for row in rows], context) for name in rows[0].inputs}
    targets = {}
    for name, first in rows[0].targets.items():
        found = [row.targets[name] for row in rows]
        has_steps = pads_targets or isinstance(first, Tags | Tokens)
        targets[name] = _padded(found, None if isinstance(first, Tags) else context) if has_steps else _joined(found)
    groups = None if rows[0].groups is None else torch.cat([row.groups for row in rows if row.groups is not None])
    return Batch(inputs, targets, groups=groups)


def _cut(field: Any, length: int) -> Any:
    """The first steps of a field."""
    return field.map(lambda tensor: tensor[:, :length])


def _padded(rows: Sequence[Any], context: int | None) -> Any:
    """Fields of one row each as one field. Behind the end of a row its beginning stands again: what padding holds is
    like anything else, and should not be looked at."""
    longest = max(row.shape[1] for row in rows)
    is_still = isinstance(rows[0], Images) and longest == 1
    if is_still or type(rows[0]) not in MASKS:
        return _joined(rows)
    width = longest + PADDING if context is None else max(longest, min(context, longest + PADDING))
    return _joined([_with_padding(row, width) for row in rows])


def _with_padding(row: Any, width: int) -> Any:
    length = row.shape[1]
    steps = torch.arange(width)
    repeated = row.map(lambda tensor: tensor[:, steps % length])
    is_there = (steps < length).expand(row.shape[0], -1)
    if isinstance(repeated, Tokens) and repeated.is_scored is not None:
        repeated = replace(repeated, is_scored=repeated.is_scored & is_there)
    return replace(repeated, **{MASKS[type(row)]: is_there})


def _joined(rows: Sequence[Any]) -> Any:
    """Fields of one width below each other."""
    columns = {part.name: [getattr(row, part.name) for row in rows] for part in fields(rows[0])}
    return type(rows[0])(**{name: None if found[0] is None else torch.cat(found) for name, found in columns.items()})
