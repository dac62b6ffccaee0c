"""F1 over entities against seqeval, on tags of every kind and broken ones; intervals and paired tests by rows."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from seqwise.data.tag_schemes import SCHEMES, entities_of, to_scheme
from seqwise.evaluation.answers import LabelScore
from seqwise.evaluation.entities import F1_METRIC, TagScore, entity_counts
from seqwise.evaluation.labels import Counts, mean_f1, sum_of
from seqwise.evaluation.segments import Segments, compare_segments, joined, same_data

TAGS = ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("PER", "LOC", "A-B"))]
any_rows = st.lists(
    st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), min_size=1, max_size=9), min_size=1, max_size=6
)


def score_of(wanted: list[list[str]], answers: list[list[str]], scheme: str = "IOB2", **more: Any) -> TagScore:
    return TagScore(wanted, answers, 0.25, scheme, "F1 over entities|test", **more)


def apart(rows: list[list[tuple[str, str]]]) -> tuple[list[list[str]], list[list[str]]]:
    return [[a for a, _ in row] for row in rows], [[b for _, b in row] for row in rows]


@how(max_examples=300)
@given(any_rows)
def test_entities_and_scores_are_those_of_seqeval(rows: list[list[tuple[str, str]]]) -> None:
    theirs = pytest.importorskip("seqeval.metrics", reason="needs seqeval: pip install seqeval")
    from seqeval.metrics.sequence_labeling import get_entities

    wanted, answers = apart(rows)
    for tags in wanted:
        assert [(one.type, one.begin, one.end - 1) for one in entities_of(tags)] == get_entities(tags)
    score = score_of(wanted, answers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert score.f1 == pytest.approx(theirs.f1_score(wanted, answers), abs=1e-12)
        assert -score.segments.value == pytest.approx(theirs.f1_score(wanted, answers), abs=1e-12)
        assert score.all_types.precision == pytest.approx(theirs.precision_score(wanted, answers), abs=1e-12)
        assert score.all_types.recall == pytest.approx(theirs.recall_score(wanted, answers), abs=1e-12)
        assert score.accuracy == pytest.approx(theirs.accuracy_score(wanted, answers), abs=1e-12)
        if not score.by_type:
            return  # seqeval has no report without entities
        report = theirs.classification_report(wanted, answers, output_dict=True)
    assert score.macro_f1 == pytest.approx(report["macro avg"]["f1-score"], abs=1e-12)
    assert set(score.by_type) == set(report) - {"micro avg", "macro avg", "weighted avg"}
    for name, one in score.by_type.items():
        expected = [report[name][key] for key in ("precision", "recall", "f1-score", "support")]
        assert [one.precision, one.recall, one.f1, one.wanted] == pytest.approx(expected, abs=1e-12)


def test_an_entity_counts_only_where_type_begin_and_end_are_right() -> None:
    wanted = [["B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "O", "O", "O"]]
    answers = [["B-PER", "I-PER", "O", "B-PER"], ["B-PER", "I-PER", "O", "O"]]
    assert entity_counts(wanted, answers) == {"LOC": Counts(0, 1, 0), "PER": Counts(1, 2, 3)}
    score = score_of(wanted, answers)
    assert (score.all_types, score.f1) == (Counts(1, 3, 3), pytest.approx(1 / 3))
    assert score.macro_f1 == pytest.approx((0 + 0.4) / 2)
    assert score.entity_segments.statistics.tolist() == [[[1, 2, 2], [0, 1, 1]]]
    assert score.accuracy == 6 / 8


@given(any_rows, st.sampled_from(list(SCHEMES)))
def test_the_scheme_changes_no_score(rows: list[list[tuple[str, str]]], scheme: str) -> None:
    wanted, answers = apart(rows)
    converted = [[to_scheme(row, scheme) for row in side] for side in (wanted, answers)]
    assert entity_counts(*converted) == entity_counts(wanted, answers)


def noisy(rows: list[list[str]], share: float, seed: int) -> list[list[str]]:
    random = np.random.default_rng(seed)
    return [[str(random.choice(TAGS)) if random.random() < share else tag for tag in row] for row in rows]


def many_rows(num: int = 300) -> list[list[str]]:
    random = np.random.default_rng(7)
    drawn = [[str(random.choice(["O", "O", "O", *TAGS])) for _ in range(n)] for n in random.integers(3, 25, size=num)]
    return [to_scheme(row, "IOB2") for row in drawn]


def test_the_better_of_two_taggers_is_told_apart_and_equals_hardly_ever_are() -> None:
    wanted = many_rows()
    good, bad = (score_of(wanted, noisy(wanted, share, seed)) for share, seed in ((0.1, 1), (0.2, 2)))
    equals = [score_of(wanted, noisy(wanted, 0.1, seed)) for seed in range(3, 13)]
    for number in range(2):
        (metric, first), (_, second) = (one.comparable[number] for one in (good, bad))
        better = compare_segments(first, second)
        assert better.is_distinguishable
        assert abs(better.gain) == pytest.approx(abs(metric.shown(first.value) - metric.shown(second.value)))
        assert better.gain > 0
        assert sum(compare_segments(first, one.comparable[number][1]).is_distinguishable for one in equals) <= 3
    low, high = good.interval
    assert low < good.f1 < high
    assert good.f1 == pytest.approx(F1_METRIC.shown(good.segments.value))


def test_the_interval_is_that_of_drawing_rows_anew() -> None:
    wanted = many_rows(120)
    score, random = score_of(wanted, noisy(wanted, 0.2, 1)), np.random.default_rng(0)
    drawn = []
    for _ in range(200):
        rows = random.integers(len(wanted), size=len(wanted))
        pairs = [wanted[row] for row in rows], [score.answers[row] for row in rows]
        drawn.append(sum_of(entity_counts(*pairs).values()).f1)
    low, high = score.interval
    assert high - low == pytest.approx(np.quantile(drawn, 0.975) - np.quantile(drawn, 0.025), rel=0.2)


def test_an_interval_ends_at_none_and_at_all() -> None:
    wanted = [["B-PER", "O"]] * 8
    assert score_of([*wanted[:7], ["O", "B-PER"]], wanted).interval[1] == 1.0
    assert score_of([*[["O", "B-PER"]] * 7, wanted[7]], wanted).interval[0] == 0.0


def test_models_are_compared_on_the_same_entities_only() -> None:
    first = score_of([["B-PER", "O"]], [["O", "O"]])
    assert same_data(first.segments, score_of([["B-PER", "O"]], [["B-PER", "B-PER"]]).segments)
    assert not same_data(first.segments, score_of([["B-PER", "B-PER"]], [["O", "O"]]).segments)


def test_seeds_together_are_the_mean_of_their_values_and_are_kept() -> None:
    wanted = many_rows(50)
    parts = [score_of(wanted, noisy(wanted, 0.2, seed)).segments for seed in (1, 2)]
    both = joined(parts)
    assert both.value == pytest.approx(sum(one.value for one in parts) / 2)
    assert Segments.from_dict(both.to_dict()).value == both.value


def test_plain_tags_are_scored_by_their_words() -> None:
    wanted, answers = [["DET", "NOUN"], ["VERB"]] * 4, [["DET", "VERB"], ["VERB"]] * 4
    is_seen = [np.array([False, False]), np.array([False])] * 3 + [np.array([True, False]), np.array([True])]
    score = score_of(wanted, answers, "", is_seen=is_seen)
    assert (score.accuracy, score.unseen_accuracy) == (pytest.approx(2 / 3), 0.6)
    assert score.metric.name == "share of wrong tags"
    assert score.segments.statistics[0, :2].tolist() == [[1, 2], [0, 1]]
    low, high = score.interval
    assert low < 2 / 3 < high
    assert score.headline().startswith("66.67 % of 12 words right (95 %: ")
    assert dict(score.rows())["words not in training"] == "60.00 % of 10 words right"
    assert "f1" not in score.to_dict()


def test_words_that_all_stand_in_the_training_part_have_no_share_of_their_own() -> None:
    known = score_of([["DET"]], [["DET"]], "", is_seen=[np.array([True])])
    assert known.unseen_accuracy is None
    assert score_of([["DET"]], [["DET"]], "").unseen_accuracy is None
    assert set(dict(known.rows())) == {"tags", "F1 by tag", "signature"}


def test_words_and_numbers_of_a_score() -> None:
    wanted, answers = [["B-PER", "O", "B-LOC"]] * 8, [["B-PER", "O", "O"]] * 8
    label = LabelScore(np.zeros(8, int), np.zeros(8, int), np.log([[0.75, 0.25]] * 8), ["flight", "fare"], "accuracy")
    score = score_of(wanted, answers, others={"label": label})
    assert score.headline() == (
        "F1 66.67 % (95 %: 66.67 to 66.67) over 16 entities, precision 100.00 %, recall 50.00 %, 0.2500 nats per word"
    )
    assert dict(score.rows()) == {
        "entities": score.headline(),
        "F1 by type": "LOC 0.0 (8), PER 100.0 (8)",
        "words": "66.67 % of 24 tags right",
        "label": label.headline(),
        "signature": "`F1 over entities|test`",
    }
    assert repr(score) == f"<TagScore: {score.headline()}>"
    found = json.loads(json.dumps(score.to_dict(), allow_nan=False))
    assert found["by_type"]["PER"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "count": 8}
    assert (found["rows"], found["words"], found["entities"]) == (8, 24, 16)
    assert found["others"]["label"]["accuracy"] == 1.0
    assert found["f1"] == found["interval"][0] == pytest.approx(2 / 3)
    assert found["macro_f1"] == mean_f1(score.by_type.values()) == 0.5
    assert (found["precision"], found["recall"], found["is_enough"]) == (1.0, 0.5, True)


def test_many_types_are_named_by_their_number() -> None:
    rows = [[f"B-{kind:02}" for kind in range(15)], ["B-14"]]
    told = dict(score_of(rows, rows).rows())["F1 by type"]
    assert told.startswith("14 100.0 (2), 00 100.0 (1), ")
    assert told.endswith("10 100.0 (1), and 3 others")
    assert dict(score_of([["B", "I"]], [["B", "I"]]).rows())["F1 by type"] == "entity 100.0 (1)"


def test_nothing_to_find_and_nothing_found_is_zero_and_not_minus_zero() -> None:
    score = score_of([["O"]] * 8, [["O"]] * 8)
    assert (score.f1, score.macro_f1, score.interval, score.accuracy) == (0.0, 0.0, (0.0, 0.0), 1.0)
    assert "-0.0" not in score.headline() + json.dumps(score.to_dict())


def test_answers_of_another_length_are_our_own_mistake() -> None:
    with pytest.raises(ValueError):
        _ = score_of([["O", "O"]], [["O"]]).accuracy
    with pytest.raises(ValueError):
        _ = score_of([["O", "O"]], []).f1
