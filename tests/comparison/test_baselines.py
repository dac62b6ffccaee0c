"""What one gets without learning, computed once more by hand."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from seqwise.comparison import baselines
from seqwise.comparison.baselines import (
    Baseline,
    bag_of_words,
    most_frequent_answer,
    most_frequent_tag,
    most_frequent_target,
    naive_forecast,
    question_alone,
    token_frequencies,
)
from seqwise.data.annotated import LabelledRow, TaggedRow
from seqwise.data.examples import ExampleStore
from seqwise.data.numbers import NumberStore
from seqwise.data.pair_store import Rows, build_pair_store
from seqwise.data.schema import (
    ImageSpec,
    LabelSpec,
    Schema,
    TagSpec,
    TokenSpec,
    ValueSpec,
    answer_schema,
    seen_schema,
    tag_schema,
)
from seqwise.data.seen import SeenRow
from seqwise.data.seen_store import Pixels, SeenStore
from seqwise.data.text_examples import AnswerColumn, LabelSetColumn, TextStore, build_label_store, build_tag_store
from seqwise.settings import DataConfig, TokenizerConfig
from seqwise.tasks import goal_of, task_named
from seqwise.text import train_tokenizer
from seqwise.text.words import WordTokenizer


def test_frequencies_of_tokens_cost_their_entropy(tmp_path: Path) -> None:
    """Of characters that are as frequent in both parts: sum of -p log2 p, but for smoothing and line ends."""
    (tmp_path / "a.txt").write_text("aab c\n" * 3000)
    task, config = task_named("text"), DataConfig(source=[str(tmp_path / "a.txt")])
    data = task.open(config)
    schema = task.schema(data, TokenizerConfig(), lambda _: None)
    stores = task.stores(data, schema)
    found = token_frequencies(goal_of(task, schema), stores["train"], stores["valid"], schema, config)
    counts = np.array(list(Counter("aab c\n").values())) / 6
    assert found.segments.value == pytest.approx(-(counts * np.log2(counts)).sum(), rel=0.01)


def series(values: np.ndarray, first: int, *, missing: tuple[int, ...] = ()) -> NumberStore:
    rows = np.concatenate([[[0.0]], values[:, None]])
    is_observed = np.ones_like(rows, dtype=bool)
    is_observed[[0, *missing]] = False
    return NumberStore(np.where(is_observed, rows, 0.0), is_observed, first)


def density(error: np.ndarray, spread: float) -> float:
    return float((0.5 * (error / spread) ** 2 + math.log(spread) + 0.5 * math.log(2 * math.pi)).mean())


def test_of_a_walk_the_last_number_goes_on() -> None:
    walk = np.cumsum(np.random.default_rng(0).normal(size=400))
    scaling = ValueSpec(["x"], np.array([0.0]), np.array([3.0]))
    found = naive_forecast(series(walk[:300], 1), series(walk, 301), scaling, season=1)
    spread = math.sqrt(float((np.diff(walk[:300], prepend=0.0) ** 2).mean()))
    assert found.name == "the last number"
    expected = density(np.diff(walk)[299:], spread) + math.log(3.0)  # in the data's own units
    assert found.segments.value == pytest.approx(expected)


def test_of_noise_it_is_the_mean_and_of_seasons_the_last_one() -> None:
    random = np.random.default_rng(0)
    scaling = ValueSpec(["x"], np.array([0.0]), np.array([1.0]))
    noise = random.normal(size=400)
    assert naive_forecast(series(noise[:300], 1), series(noise, 301), scaling, season=1).name == "the mean"
    seasons = np.tile(random.normal(size=12), 40) + 0.1 * random.normal(size=480)
    found = naive_forecast(series(seasons[:360], 1), series(seasons, 361), scaling, season=12)
    assert found.name == "the number 12 steps before"


def test_what_is_missing_costs_nothing() -> None:
    values = np.random.default_rng(1).normal(size=60)
    scaling = ValueSpec(["x"], np.array([0.0]), np.array([1.0]))
    train = series(values[:40], 1, missing=(5, 6))
    found = naive_forecast(train, series(values, 41, missing=(50, 51)), scaling, season=1)
    assert found.segments.statistics[0, :, 1].sum() == 18  # of 20 steps
    assert math.isfinite(found.segments.value)


def test_the_most_frequent_label_is_wrong_as_often_as_others_come() -> None:
    inputs = np.zeros((6, 3), dtype=np.int64)
    train = ExampleStore(inputs, np.array([2, 0, 2, 1, 2, 0]))
    valid = ExampleStore(inputs[:4], np.array([2, 2, 0, 2]))
    assert most_frequent_answer(train, valid).segments.value == pytest.approx(0.25)
    numbers = ExampleStore(inputs[:2], np.array([1.0, 3.0], dtype=np.float32))
    found = most_frequent_answer(numbers, ExampleStore(inputs[:1], np.array([5.0], dtype=np.float32)))
    assert (found.name, found.segments.value) == ("the mean", pytest.approx(9.0))


def test_labels_that_most_rows_have_are_the_answer_where_several_are_right() -> None:
    def rows(*is_right: list[int]) -> TextStore:
        schema = of_texts("a", ["x", "y", "z"])
        texts = build_label_store([LabelledRow(("a",), "x")] * len(is_right), schema)
        return TextStore(texts.tokens, {"label": LabelSetColumn(np.array(is_right, dtype=bool))}, texts.rows)

    found = most_frequent_answer(rows([1, 0, 1], [1, 0, 0], [1, 1, 0]), rows([1, 0, 0], [1, 1, 1]))
    assert found.name == "the labels that most rows have"
    assert -found.segments.value == pytest.approx(2 * 2 / (4 + 2))  # x twice, of four that were wanted


def of_texts(words: str, labels: list[str]) -> Schema:
    return answer_schema(TokenSpec(WordTokenizer(words.split())), LabelSpec(labels))


def labelled(num: int, seed: int) -> list[LabelledRow]:
    """What is good has a "fine" in it nine times out of ten, what is bad never."""
    random, rows = np.random.default_rng(seed), []
    for _ in range(num):
        is_good = random.random() < 0.6
        words = ["the", "film", "was", *(["fine"] if is_good and random.random() < 0.9 else ["long"])]
        rows.append(LabelledRow((" ".join(random.permutation(words)),), "good" if is_good else "bad"))
    return rows


def test_a_bag_of_words_knows_what_each_word_says_and_is_told_beside_the_most_frequent_label(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = of_texts("the film was fine long", ["bad", "good"])
    train, valid = (build_label_store(labelled(400, seed), schema) for seed in (0, 1))
    found = bag_of_words(train, valid, schema)
    assert found is not None
    assert found.name == "a bag of words"
    wrong = [("fine" in row.texts[0]) != (row.answer == "good") for row in valid.rows]
    assert found.segments.value == pytest.approx(np.mean(wrong))
    assert most_frequent_answer(train, valid).segments.value > 3 * found.segments.value
    both = Baseline("nothing", found.segments, found)
    read = Baseline.from_dict(both.to_dict())
    assert (read.name, read.simple is not None and read.simple.name) == ("nothing", "a bag of words")
    assert Baseline.from_dict({"name": "x", "segments": found.segments.to_dict()}).simple is None
    monkeypatch.setattr(baselines, "MAX_BAG_ROWS", 399)
    assert bag_of_words(train, valid, schema) is None


def test_a_bag_does_not_see_labels_that_training_never_had() -> None:
    schema = of_texts("a b", ["x", "y"])
    train = build_label_store(
        [*[LabelledRow(("a",), "x"), LabelledRow(("b",), "y")] * 5, LabelledRow(("a",), "z")], schema
    )
    found = bag_of_words(train, build_label_store([LabelledRow(("a",), "x"), LabelledRow(("b",), "z")], schema), schema)
    assert found is not None
    assert found.segments.value == 0.5


def test_each_word_has_its_most_frequent_tag_and_a_new_one_that_of_most() -> None:
    rows = [TaggedRow(("a", "b"), ("X", "Y")), TaggedRow(("a", "b"), ("X", "X")), TaggedRow(("b",), ("Y",))]
    schema = tag_schema(TokenSpec(WordTokenizer(["a", "b"])), TagSpec(["X", "Y"]))
    valid = build_tag_store([TaggedRow(("a", "b", "new"), ("X", "X", "X"))], schema)
    found = most_frequent_tag(rows, valid, schema.target("tags", TagSpec))
    assert found.segments.value == pytest.approx(1 / 3)  # b is Y; new is X


def test_the_most_frequent_target_answers_every_source() -> None:
    pairs = [("a", "ja"), ("b", "nein"), ("c", "ja")]
    tokenizer = train_tokenizer("char", ["abcjaneinß\n"])
    found = most_frequent_target([target for _, target in pairs], build_pair_store(pairs, tokenizer, tokenizer))
    always_right = most_frequent_target(["ja"], build_pair_store([("a", "ja")] * 3, tokenizer, tokenizer))
    assert always_right.segments.value == pytest.approx(-100.0)
    assert -100 < found.segments.value < 0


def test_of_questions_about_pictures_the_words_of_the_question_are_a_simple_model() -> None:
    """Colours go with one answer, shapes with another, and nobody looks."""
    rows = [
        SeenRow((f"{n}.png",), (f"what {('colour', 'shape')[n % 2]} is it",), ("red", "round")[n % 2])
        for n in range(40)
    ]
    tokenizer = WordTokenizer(["what", "colour", "shape", "is", "it"])
    spec, labels = TokenSpec(tokenizer), LabelSpec(["red", "round"], [20, 20])
    schema = seen_schema(ImageSpec(2, 2, (0.5,), (0.5,)), labels, spec)
    tokens = Rows.of(spec.encode_texts(row.texts)[0] for row in rows)
    answers = {"label": AnswerColumn(np.arange(40) % 2)}
    pictures = Pixels(np.zeros((40, 1, 1, 2, 2), dtype=np.uint8))
    store = SeenStore(pictures, np.arange(40), answers, rows, tokens)
    found = question_alone(store.choose(np.arange(30)), store.choose(np.arange(30, 40)), schema)
    assert found is not None
    assert found.name == "a bag of words of the question, without the picture"
    assert found.segments.value == 0
    without = SeenStore(pictures, np.arange(40), answers, rows)
    assert question_alone(without, without, schema) is None
