"""Before the first process is forked: load and compile what each trial would otherwise load at the cost of its share.

Families that count or iterate have compiled loops, which the least that they can learn from makes ready: TINY is the
table of that, by the kind of target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..data.annotated import LabelledRow, TaggedRow
from ..data.batch import Batch, next_token_batch, next_value_batch
from ..data.schema import (
    LABEL,
    NEXT_TOKEN,
    NEXT_VALUES,
    TAG,
    LabelSpec,
    Schema,
    TagSpec,
    TokenSpec,
    ValueSpec,
    answer_schema,
    series_schema,
    tag_schema,
    text_schema,
)
from ..data.text_examples import TextStore, build_label_store, build_tag_store
from ..goals import GOALS
from ..models.contract import LearnsFromExamples
from ..text.symbols import SymbolTokenizer
from ..text.words import WordTokenizer
from .entrants import Entrant
from .workspace import Workspace

SIZES = {"order": 5, "num_states": 16}  # of a family that would choose its own


def with_sizes(config: Any) -> Any:
    """The settings of a model, with sizes where a family would choose its own by validation."""
    return replace(config, **{name: size for name, size in SIZES.items() if vars(config).get(name) == 0})


def warm_up(folder: Path) -> None:
    """Called before the first fork: nothing here may start threads of torch, which a child would wait for in vain."""
    settings, threads = Workspace(folder).settings, torch.get_num_threads()
    torch.set_num_threads(1)
    for name in settings.models:
        entrant = settings.entrant(name)
        if entrant.learns_by == "gradients":
            weight = torch.zeros(1, requires_grad=True)
            weight.grad = torch.zeros(1)
            torch.optim.AdamW([weight]).step()  # imports most of torch's compiler
            continue
        for kind in entrant.kinds:
            _compile(entrant, TINY[kind]())
    torch.set_num_threads(threads)


@dataclass(frozen=True)
class Tiny:
    """The least that a family which counts or iterates can learn from, so that its loops are compiled."""

    schema: Schema
    data: Any
    """A sequence; of texts with answers, all of them as a task stores them."""
    batch: Batch


def _tiny_text() -> Tiny:
    ids = np.array([0, 1, 2, 1])
    return Tiny(text_schema(SymbolTokenizer(3)), ids, next_token_batch(torch.from_numpy(ids)[None]))


def _tiny_series() -> Tiny:
    values = np.zeros((8, 1))
    batch = next_value_batch(torch.from_numpy(values)[None])
    return Tiny(series_schema(ValueSpec.unscaled(["x"])), (values, None), batch)


def _tiny_labels() -> Tiny:
    schema = answer_schema(TokenSpec(WordTokenizer(["a", "b"])), LabelSpec(["x", "y"]))
    store = build_label_store([LabelledRow(("a b",), "x"), LabelledRow(("b a a",), "y")] * 2, schema)
    return Tiny(schema, store, store.batch(slice(0, 2)))


def _tiny_tags() -> Tiny:
    schema = tag_schema(TokenSpec(WordTokenizer(["a", "b"]), alphabet="ab"), TagSpec(["x", "y"]))
    store = build_tag_store([TaggedRow(("a", "b"), ("x", "y")), TaggedRow(("b",), ("y",))] * 2, schema)
    return Tiny(schema, store, store.batch(slice(0, 2)))


TINY: dict[str, Callable[[], Tiny]] = {
    NEXT_TOKEN: _tiny_text,
    NEXT_VALUES: _tiny_series,
    LABEL: _tiny_labels,
    TAG: _tiny_tags,
}


def _compile(entrant: Entrant, tiny: Tiny) -> None:
    model = entrant.row.build(with_sizes(entrant.row.config(**entrant.settings)), tiny.schema)
    if isinstance(model, LearnsFromExamples):
        model.learn(tiny.data, tiny.data, seed=0)
    elif entrant.learns_by == "counting":
        model.fit(tiny.data)
    else:
        is_store = isinstance(tiny.data, TextStore)
        sequences = GOALS[tiny.schema.kind].sequences(tiny.data, model) if is_store else [tiny.data]
        model.initialise(sequences, 0)
        model.em_step(sequences)
    model.score(tiny.batch)
