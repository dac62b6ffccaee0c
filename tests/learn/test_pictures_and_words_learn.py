"""Each shape learns to find in a picture what a question asks for; who reads one side alone cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from seqwise.data.pair_store import Rows
from seqwise.data.schema import LabelSpec, RegionSpec, TokenSpec, seen_schema
from seqwise.data.seen import SeenRow
from seqwise.data.seen_store import SeenBatches, SeenStore, Views
from seqwise.data.text_examples import AnswerColumn
from seqwise.models import MODELS
from seqwise.text.symbols import SymbolTokenizer

STEPS, SHAPES, COLORS, THINGS = 250, 5, 6, 3


def things(num: int, seed: int) -> SeenStore:
    """Three things of different shapes in some colours, and a question: what colour has this shape?"""
    random = np.random.default_rng(seed)
    shapes = np.stack([random.permutation(SHAPES)[:THINGS] for _ in range(num)])  # (num, 3)
    colors = random.integers(COLORS, size=(num, THINGS))
    features = np.concatenate([np.eye(SHAPES)[shapes], np.eye(COLORS)[colors]], axis=-1).astype(np.float32)
    asked = random.integers(THINGS, size=num)
    rows, answers = np.arange(num), AnswerColumn(colors[np.arange(num), asked])
    tokens = Rows.of(np.array([0, 1 + shape, 0]) for shape in shapes[rows, asked])
    return SeenStore(Views(features), rows, {"label": answers}, [SeenRow((str(row),), ()) for row in rows], tokens)


@pytest.fixture(scope="module")
def colors() -> tuple[Any, SeenStore, SeenStore]:
    words, answers = TokenSpec(SymbolTokenizer(1 + SHAPES)), LabelSpec([f"color {n}" for n in range(COLORS)])
    schema = seen_schema(RegionSpec(SHAPES + COLORS, [], False, THINGS), answers, words)
    return schema, things(4000, 0), things(400, 1)


def accuracy(schema: Any, train: SeenStore, valid: SeenStore, **settings: Any) -> float:
    torch.manual_seed(0)
    row = MODELS["crossmodal"]
    sizes = {"context": 12, "num_layers": 1, "cross_layers": 1, "model_dim": 64, "num_heads": 4, "pooling": "mean"}
    model = row.build(row.config(**{**sizes, **settings}), schema)
    batches = SeenBatches(train, batch_size=32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=STEPS)
    for step in range(STEPS):
        batch = batches.batch(step)
        optimizer.zero_grad()
        model.loss(batch).over(batch.counts()).backward()
        optimizer.step()
        schedule.step()
    model.eval()
    batch = valid.batch(slice(0, len(valid)))
    with torch.no_grad():
        return float((model.predict(batch).answers == batch.targets["label"].ids).float().mean())


@pytest.mark.parametrize("shape", ["two-streams", "three-encoders", "one-stream"])
def test_each_shape_finds_the_colour_of_what_is_named(colors: Any, shape: str) -> None:
    assert accuracy(*colors, shape=shape) >= 0.9


@pytest.mark.parametrize(("reads", "most"), [("words", 0.25), ("picture", 0.55)])
def test_one_side_alone_does_not_tell(colors: Any, reads: str, most: float) -> None:
    """Six colours, and three of them in each picture."""
    assert accuracy(*colors, reads=reads) <= most
