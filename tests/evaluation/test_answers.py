"""Scores of answers to whole sequences, with models whose answers are known."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from torch import Tensor

from seqwise.data.batch import Batch
from seqwise.data.examples import ExampleStore
from seqwise.evaluation.answers import ROWS, AnswerScore, evaluate_answers, predict_answers
from seqwise.models import MODELS
from seqwise.models.contract import Prediction, State


class SaysFirst:
    """Of three labels: the first token of the row, with probability 0.7."""

    def predict(self, batch: Batch) -> Prediction:
        first = batch.inputs["tokens"].ids[:, 0]
        log_probs = torch.full((len(batch), 3), math.log(0.15))
        log_probs[torch.arange(len(batch)), first] = math.log(0.7)
        return Prediction(first, log_probs)

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State | None]:
        log_probs = self.predict(batch).log_probs
        assert log_probs is not None
        return log_probs.gather(1, batch.targets["label"].ids.unsqueeze(1)), None


class SaysSum:
    """A number: the sum of all in the row, off by a little."""

    def __init__(self, off: float = 0.0):
        self.off = off

    def predict(self, batch: Batch) -> Prediction:
        return Prediction(batch.inputs["values"].values.sum(dim=(1, 2)) + self.off)

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State | None]:
        error = self.predict(batch).answers - batch.targets["number"].values[:, 0, 0]
        return (-0.5 * error**2 - 0.5 * math.log(2 * math.pi)).unsqueeze(1), None


def labelled(num: int, *, share_right: float = 0.6) -> ExampleStore:
    random = np.random.default_rng(num)
    tokens = random.integers(3, size=(num, 4))
    is_right = random.random(num) < share_right
    return ExampleStore(tokens, np.where(is_right, tokens[:, 0], (tokens[:, 0] + 1) % 3))


def summed(num: int) -> ExampleStore:
    numbers = np.random.default_rng(num).random((num, 5, 2), dtype=np.float32)
    return ExampleStore(numbers, numbers.sum(axis=(1, 2)))


each_size = pytest.mark.parametrize("num", [1, 7, ROWS, ROWS + 1, 3 * ROWS - 5])


@each_size
def test_accuracy_is_the_share_of_right_answers(num: int) -> None:
    store = labelled(num)
    is_right = [row[0] == answer for row, answer in zip(store.inputs, store.answers, strict=True)]
    score = evaluate_answers(SaysFirst(), store)
    assert score.is_right is not None
    assert score.is_right.tolist() == is_right
    assert score.accuracy == pytest.approx(sum(is_right) / num)
    nats = [-math.log(0.7 if right else 0.15) for right in is_right]
    assert score.nats == pytest.approx(nats, abs=1e-6)
    assert score.nats_per_answer == pytest.approx(sum(nats) / num, abs=1e-6)


@each_size
def test_numbers_are_scored_by_their_squared_error(num: int) -> None:
    score = evaluate_answers(SaysSum(off=0.25), summed(num))
    assert score.is_right is None
    assert score.squared_errors == pytest.approx(np.full(num, 0.0625), abs=1e-5)
    assert score.mean_squared_error == pytest.approx(0.0625, abs=1e-5)
    assert score.nats_per_answer == pytest.approx(0.5 * 0.0625 + 0.5 * math.log(2 * math.pi), abs=1e-5)
    assert evaluate_answers(SaysSum(), summed(num)).mean_squared_error == pytest.approx(0, abs=1e-9)


@each_size
def test_answers_are_those_of_the_model_in_order(num: int) -> None:
    store = labelled(num)
    assert predict_answers(SaysFirst(), store.batch(slice(0, num))) == store.inputs[:, 0].tolist()


def test_the_interval_holds_the_accuracy_and_narrows_with_more_examples() -> None:
    widths = []
    for num in (50, 5000):
        score = evaluate_answers(SaysFirst(), labelled(num))
        low, high = score.interval
        assert low < score.accuracy < high
        widths.append(high - low)
        expected = 2 * 1.96 * math.sqrt(score.accuracy * (1 - score.accuracy) / num)
        assert high - low == pytest.approx(expected, rel=0.15)
    assert widths[1] < widths[0] / 5


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_all_right_or_all_wrong_leaves_no_doubt(share: float) -> None:
    score = evaluate_answers(SaysFirst(), labelled(300, share_right=share))
    assert score.accuracy == share
    assert score.interval == (share, share)


@pytest.mark.parametrize(
    ("model", "store", "names"),
    [
        (SaysFirst(), labelled(40), {"answers", "interval", "is_enough", "accuracy", "nats_per_answer", "signature"}),
        (SaysSum(0.5), summed(40), {"answers", "interval", "is_enough", "mean_squared_error", "signature"}),
    ],
    ids=["labels", "numbers"],
)
def test_the_score_as_a_dictionary_has_finite_numbers_and_can_be_sent(
    model: Any, store: ExampleStore, names: set[str]
) -> None:
    score = evaluate_answers(model, store, scored="test:abc")
    found = json.loads(json.dumps(score.to_dict(), allow_nan=False))
    assert set(found) == names
    assert found["answers"] == 40
    assert found["signature"] == score.signature
    assert "|test:abc|bootstrap=1000x40|seqwise=" in score.signature


def test_words_for_the_score_hold_its_numbers() -> None:
    right = np.array([True, False, True, True] * 2)
    label = AnswerScore(np.array([0.5, 1.5, 0.5, 0.5] * 2), right, None, "accuracy|x")
    assert label.headline().startswith("75.00 % right (95 %: ")
    assert label.headline().endswith(" of 8, 0.7500 nats per answer")
    number = AnswerScore(np.ones(6), None, np.array([0.1, 0.3] * 3), "squared error|x")
    assert number.headline().startswith("mean squared error 0.20000 (95 %: ")
    assert dict(number.rows()) == {"answers": number.headline(), "signature": "`squared error|x`"}


def test_a_few_answers_have_no_interval() -> None:
    few = AnswerScore(np.ones(4), np.array([True, True, True, True]), None, "accuracy|x")
    assert few.headline().startswith("100.00 % right (too little data for an interval) of 4")
    assert few.to_dict()["is_enough"] is False


@pytest.mark.parametrize("name", ["rnn", "gpt"])
@pytest.mark.parametrize("num_labels", [3, 0])
def test_a_real_model_is_scored_without_dropout_and_goes_on_training(name: str, num_labels: int) -> None:
    settings: dict[str, Any] = {"model_dim": 8, "num_layers": 2, "dropout": 0.5}
    settings |= {"num_heads": 2, "context": 8} if name == "gpt" else {}
    inputs = {"vocab_size": 3} if num_labels else {"num_columns": 2}
    row, store = MODELS[name], labelled(30) if num_labels else summed(30)
    model = row.build(row.config(**settings), schemas.of_answers(num_labels, **inputs))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    model.train()
    one, other = (evaluate_answers(model, store).to_dict() for _ in range(2))
    assert model.training
    assert one == other
    model.eval()
    assert evaluate_answers(model, store).to_dict() == one
    assert not model.training
