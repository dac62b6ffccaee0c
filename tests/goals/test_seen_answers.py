"""Labels of pictures: batched, validated, scored and predicted, by a network that learns to read digits in seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from seqwise.data.schema import LABEL, ImageSpec, LabelSpec, Schema, seen_schema
from seqwise.data.seen import SeenRow
from seqwise.data.seen_store import Pixels, SeenStore
from seqwise.data.text_examples import AnswerColumn
from seqwise.goals import GOALS
from seqwise.models import MODELS
from seqwise.settings import DataConfig, TrainingConfig
from seqwise.training.loop import train
from seqwise.training.sizing import suggest

DIGITS = [str(digit) for digit in range(10)]


def digit_stores() -> tuple[SeenStore, SeenStore]:
    """1,200 digits of 8 x 8 to learn from, and the other 597."""
    found = load_digits()
    pixels = np.round(found.images * 255 / 16).astype(np.uint8)[:, None, None]  # (M, 1, 1, 8, 8)
    rows = [SeenRow((f"{number}.png",), (), str(digit)) for number, digit in enumerate(found.target)]
    answers = {"label": AnswerColumn(found.target.astype(np.int64))}
    store = SeenStore(Pixels(pixels, fingerprint="digits"), np.arange(len(rows)), answers, rows)
    return store.choose(np.arange(1200)), store.choose(np.arange(1200, len(rows)))


def digit_schema() -> Schema:
    return seen_schema(ImageSpec(8, 8, (0.3,), (0.38,)), LabelSpec(DIGITS))


SMALLER: dict[str, dict[str, Any]] = {"conv": {"widths": [8, 16, 32]}, "bert": {"num_layers": 2, "model_dim": 48}}


@pytest.mark.parametrize(("family", "steps", "reached"), [("conv", 60, 0.9), ("bert", 140, 0.7), ("glimpse", 150, 0.8)])
def test_digits_are_learned_in_seconds(family: str, steps: int, reached: float) -> None:
    learned, unseen = digit_stores()
    schema, goal = digit_schema(), GOALS[LABEL]
    sizes, training = suggest(family, LABEL, goal.facts(None, learned, schema, None))
    settings: dict[str, Any] = {**training, "steps": steps, "warmup_steps": 10, "threads": 1}
    config = TrainingConfig(**settings)
    torch.manual_seed(0)
    row = MODELS[family]
    model = row.build(row.config(**{**sizes, **SMALLER.get(family, {})}), schema)
    before = goal.validate(model, unseen, None)
    assert before == pytest.approx(np.log(10), abs=1e-5)
    for _ in train(model, goal.batches(learned, model, config), config):
        pass
    score = goal.score(model, unseen, schema, DataConfig(), scored="digits")
    assert score.accuracy > reached
    assert score.names == DIGITS
    assert goal.validate(model, unseen, None) == pytest.approx(score.nats_per_answer)
    first = next(iter(goal.predict(model, unseen, schema, DataConfig())))
    assert first.split("\t")[0] == DIGITS[score.answers[0]]


class Drawing:
    """A model that answers by chance: the label that its noise tells."""

    num_noise = 3
    context = None

    def predict(self, batch: Any) -> Any:
        from seqwise.models.contract import Prediction

        answers = (batch.inputs["noise"].uniform[:, 0] * 10).long()
        return Prediction(answers, torch.full((len(answers), 10), 0.1).log())

    def score(self, batch: Any, state: None = None) -> Any:
        return -batch.inputs["noise"].uniform[:, :1], None


def test_models_that_draw_get_noise_of_each_row_whoever_else_is_read() -> None:
    _, unseen = digit_stores()
    goal, model = GOALS[LABEL], Drawing()
    whole = goal.score(model, unseen, digit_schema(), DataConfig(), scored="x")
    some = goal.score(model, unseen.take(40), digit_schema(), DataConfig(), scored="x")
    assert np.array_equal(whole.answers[:40], some.answers)
    assert len(set(whole.answers.tolist())) == 10
    source = goal.batches(unseen, model, TrainingConfig(batch_size=8))
    assert source.batch(3).inputs["noise"].uniform.shape == (8, 3)
    again = goal.batches(unseen, model, TrainingConfig(batch_size=8))
    assert torch.equal(source.batch(3).inputs["noise"].uniform, again.batch(3).inputs["noise"].uniform)
