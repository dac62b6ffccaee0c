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
from seqwise.evaluation.answers import ROWS, LabelScore, LabelSetScore, NumberScore, answers_of, evaluate_answers
from seqwise.evaluation.segments import compare_segments
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
    assert isinstance(score, LabelScore)
    assert score.is_right.tolist() == is_right
    assert score.accuracy == pytest.approx(sum(is_right) / num)
    nats = [-math.log(0.7 if right else 0.15) for right in is_right]
    assert score.nats == pytest.approx(nats, abs=1e-6)
    assert score.nats_per_answer == pytest.approx(sum(nats) / num, abs=1e-6)


@each_size
def test_numbers_are_scored_by_their_squared_error(num: int) -> None:
    score, exact = (evaluate_answers(SaysSum(off), summed(num)) for off in (0.25, 0.0))
    assert isinstance(score, NumberScore)
    assert isinstance(exact, NumberScore)
    assert score.mean_squared_error == pytest.approx(0.0625, abs=1e-5)
    assert score.nats_per_answer == pytest.approx(0.5 * 0.0625 + 0.5 * math.log(2 * math.pi), abs=1e-5)
    assert exact.mean_squared_error == pytest.approx(0, abs=1e-9)
    assert exact.pearson == (None if num == 1 else pytest.approx(1.0))


@each_size
def test_answers_are_those_of_the_model_in_order(num: int) -> None:
    store = labelled(num)
    found = answers_of(SaysFirst(), store)
    assert found.answers.tolist() == store.inputs[:, 0].tolist()
    assert found.log_probs is not None
    assert found.log_probs.argmax(axis=1).tolist() == store.inputs[:, 0].tolist()


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


COMMON = {"answers", "interval", "is_enough", "nats_per_answer", "signature"}
OF_LABELS = {"accuracy", "f1", "macro_f1", "matthews", "auc", "calibration_error", "by_label", "labels", "confusion"}


@pytest.mark.parametrize(
    ("model", "store", "names"),
    [
        (SaysFirst(), labelled(40), COMMON | OF_LABELS | {"reliability"}),
        (SaysSum(0.5), summed(40), COMMON | {"mean_squared_error", "pearson", "spearman"}),
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


#       wanted: a a a b b c and one that training never had; two are taken for others
WANTED, ANSWERS = [0, 0, 0, 1, 1, 2, -1], [0, 0, 1, 1, 0, 2, 2]
SURE = [0.9, 0.8, 0.5, 0.7, 0.6, 0.95, 0.85]


def by_hand(names: tuple[str, ...] = ("a", "b", "c")) -> LabelScore:
    probabilities = np.array([[(1 - sure) / 2] * 3 for sure in SURE])
    probabilities[np.arange(7), ANSWERS] = SURE
    return LabelScore(np.array(WANTED), np.array(ANSWERS), np.log(probabilities), list(names), "accuracy|x")


def test_of_each_label_it_is_told_how_often_it_is_found_and_for_what_it_is_taken() -> None:
    score = by_hand()
    assert score.confusion.tolist() == [[2, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert {name: tuple(one) for name, one in score.by_label.items()} == {
        "a": (2, 3, 3),
        "b": (1, 2, 2),
        "c": (1, 1, 2),
    }
    assert score.by_label["c"].precision == 0.5  # an answer to a label that nobody can know counts against it
    assert score.macro_f1 == pytest.approx((2 / 3 + 1 / 2 + 2 / 3) / 3)
    assert score.most_confused(5) == [("a", "b", 1), ("b", "a", 1)]
    assert score.most_confused(1) == [("a", "b", 1)]
    assert score.accuracy == pytest.approx(4 / 7)
    assert score.to_dict()["by_label"]["b"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5, "count": 2}


def test_who_is_surer_than_right_is_told_by_how_much() -> None:
    score = by_hand()
    assert score.confidences == pytest.approx(SURE)
    assert sum(one.count for one in score.reliability) == 7
    right = [True, True, False, True, False, True, False]
    expected = sum(abs(sure - is_right) for sure, is_right in zip(SURE, right, strict=True)) / 7  # each in its own bin
    assert score.calibration_error == pytest.approx(expected)
    assert score.nats_per_answer == pytest.approx(np.mean([-math.log(p) for p in (0.9, 0.8, 0.25, 0.7, 0.2, 0.95)]))


def test_two_labels_have_an_area_under_the_curve() -> None:
    log_probs = np.log([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.2, 0.8]])
    score = LabelScore(np.array([0, 0, 1, 1]), log_probs.argmax(axis=1), log_probs, ["no", "yes"], "x")
    assert (score.auc, score.accuracy) == (1.0, 0.75)
    assert by_hand().auc is None
    assert by_hand().matthews is not None
    always = LabelScore(np.zeros(4, int), np.zeros(4, int), log_probs, ["no", "yes"], "x")
    assert (always.auc, always.matthews) == (None, None)
    assert "Matthews" not in dict(always.rows())["labels"]


def test_of_no_and_yes_the_f1_is_that_of_yes() -> None:
    wanted, answers = np.array([1, 1, 1, 0, 0]), np.array([1, 1, 0, 1, 0])
    log_probs = np.log(np.where(np.eye(2, dtype=bool)[answers], 0.9, 0.1))

    def scored(*names: str) -> LabelScore:
        return LabelScore(wanted, answers, log_probs, list(names), "x")

    for names in (("no", "yes"), ("0", "1"), ("False", "True")):
        score = scored(*names)
        assert score.f1 == score.to_dict()["f1"] == pytest.approx(2 * 2 / (3 + 3))
        assert dict(score.rows())["labels"].startswith(f"F1 of {names[1]} 66.67 %, macro F1 ")
    assert scored("cat", "dog").f1 is None
    assert "F1 of" not in dict(scored("cat", "dog").rows())["labels"]
    assert by_hand().f1 is None


def test_words_for_the_score_hold_its_numbers() -> None:
    told = dict(by_hand().rows())
    assert told["answers"].startswith("57.14 % right (95 %: ")
    assert told["answers"].endswith(" of 7, 0.6220 nats per answer")
    assert told["labels"].startswith("macro F1 61.11 %, Matthews correlation ")
    assert told["F1 by label"] == "a 66.7 (3), b 50.0 (2), c 66.7 (1)"
    assert told["most confused"] == "a with b (1), b with a (1)"
    assert told["unknown"] == "1 row with a label that training never had, counted as wrong"
    wanted = np.array([1.0, 2.0, 4.0] * 2)
    number = NumberScore(wanted, wanted + [0.1, -0.3, 0.1] * 2, np.ones(6), "squared error|x")
    assert number.headline().startswith("mean squared error 0.03667 (95 %: ")
    assert dict(number.rows())["correlation"].startswith("Pearson 0.9897, Spearman 1.0000")
    flat = NumberScore(wanted, np.ones(6), np.ones(6), "squared error|x")
    assert set(dict(flat.rows())) == {"answers", "signature"}


def test_many_labels_are_not_all_named() -> None:
    names = [f"label-{place:03}" for place in range(300)]
    ids = np.arange(300).repeat(2)
    score = LabelScore(ids, np.roll(ids, 1), np.zeros((600, 300)), names, "x")
    assert dict(score.rows())["F1 by label"].endswith(", and 288 others")
    assert len(score.most_confused(10)) == 10
    assert score.to_dict()["confusion"] is None
    assert len(score.to_dict()["by_label"]) == 300


def sets(num: int, noise: float, seed: int) -> LabelSetScore:
    random = np.random.default_rng(seed)
    wanted = np.random.default_rng(0).random((num, 4)) < 0.4
    answers = wanted ^ (random.random((num, 4)) < noise)
    return LabelSetScore(wanted, answers, np.ones(num), ["a", "b", "c", "d"], "micro F1|x")


def test_sets_of_labels_are_scored_by_f1_over_all_of_them() -> None:
    score = sets(200, 0.1, 1)
    right = int((score.wanted & score.answers).sum())
    assert score.f1 == pytest.approx(2 * right / (score.wanted.sum() + score.answers.sum()))
    assert score.metric.shown(score.segments.value) == pytest.approx(score.f1)
    low, high = score.interval
    assert low < score.f1 < high
    assert score.exact_match == pytest.approx((score.wanted == score.answers).all(axis=1).mean())
    assert score.macro_f1 == pytest.approx(np.mean([one.f1 for one in score.by_label.values()]))
    assert set(json.loads(json.dumps(score.to_dict()))["by_label"]) == {"a", "b", "c", "d"}
    assert score.headline().startswith(f"F1 {100 * score.f1:.2f} % (95 %: ")


def test_of_two_that_answer_sets_the_better_is_told_apart_on_the_same_rows() -> None:
    """Though the number of labels that they answer differs."""
    found = compare_segments(sets(400, 0.05, 1).segments, sets(400, 0.2, 2).segments)
    assert found.is_distinguishable
    assert found.gain == pytest.approx(sets(400, 0.05, 1).f1 - sets(400, 0.2, 2).f1)


def test_a_few_answers_have_no_interval() -> None:
    few = LabelScore(np.zeros(4, int), np.zeros(4, int), np.log([[0.5, 0.5]] * 4), ["a", "b"], "accuracy|x")
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
