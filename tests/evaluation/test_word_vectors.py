"""Similarity and analogies: ranks against scipy's, intervals that cover, files as people write them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from seqwise.data.word_vectors import Method, WordVectors
from seqwise.errors import DataError
from seqwise.evaluation.labels import spearman
from seqwise.evaluation.word_vectors import (
    Analogies,
    WordPairs,
    compare_similarities,
    drawn_spearman,
    evaluate_analogies,
    evaluate_similarity,
    on_shared_pairs,
    one_hot_similarity,
    read_analogies,
    read_word_pairs,
)


@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=12),
)
def test_correlations_are_scipys_also_of_rows_that_were_drawn_several_times(rows: list[tuple[int, int, int]]) -> None:
    first, second, drawn = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    for times in (np.ones(len(rows), dtype=np.int64), drawn.astype(np.int64)):
        a, b = np.repeat(first, times), np.repeat(second, times)
        is_known = len(set(a)) > 1 and len(set(b)) > 1
        wanted = spearmanr(a, b).statistic if is_known else 0.0
        assert drawn_spearman(first, second, times[None])[0] == pytest.approx(wanted, abs=1e-12)
    once = drawn_spearman(first, second, np.ones((1, len(rows))))[0]
    assert once == pytest.approx(spearman(first, second) or 0.0, abs=1e-12)


def drawn_pairs(num: int, seed: int) -> tuple[WordPairs, dict[tuple[str, str], float]]:
    """Ratings and similarities that are normally distributed, with a correlation of 0.6."""
    random = np.random.default_rng(seed)
    ratings = random.standard_normal(num)
    similarities = 0.6 * ratings + 0.8 * random.standard_normal(num)
    pairs = [(f"a{k}", f"b{k}") for k in range(num)]
    return WordPairs("drawn", pairs, ratings), dict(zip(pairs, similarities.tolist(), strict=True))


def test_nineteen_of_twenty_intervals_hold_the_truth() -> None:
    truth = 6 / np.pi * np.arcsin(0.6 / 2)  # of Spearman, from Pearson, where both are normally distributed
    held = 0
    for seed in range(100):
        pairs, similarity_of = drawn_pairs(40, seed)
        score = evaluate_similarity(lambda *pair, known=similarity_of: known[pair], pairs)
        low, high = score.interval
        assert low < score.correlation < high
        held += low <= truth <= high
    assert 88 <= held <= 99


def test_words_that_are_not_known_are_left_out_and_counted() -> None:
    pairs, similarity_of = drawn_pairs(50, 0)
    known = {pair: value for pair, value in similarity_of.items() if not pair[0].endswith("7")}
    score = evaluate_similarity(lambda *pair: known.get(pair), pairs, about="test")
    places = [place for place, pair in enumerate(pairs.pairs) if pair in known]
    assert score.share_known == pytest.approx(45 / 50)
    assert score.correlation == pytest.approx(spearmanr(pairs.ratings[places], list(known.values())).statistic)
    assert score.headline().startswith(f"drawn: Spearman {score.correlation:.3f} (95 %: ")
    assert score.headline().endswith("90.0 % of 50 pairs known")
    assert "|test|" in score.signature
    assert score.to_dict()["pairs"] == 50
    assert dict(score.rows())["drawn"] in score.headline()


def test_too_few_pairs_have_no_interval() -> None:
    pairs, similarity_of = drawn_pairs(5, 0)
    score = evaluate_similarity(lambda *pair: similarity_of[pair], pairs)
    assert score.interval == (-np.inf, np.inf)
    assert "too little data" in score.headline()
    nothing = evaluate_similarity(lambda *_: None, pairs)
    assert (nothing.correlation, nothing.share_known, nothing.interval) == (0.0, 0.0, (-np.inf, np.inf))


def test_one_hot_vectors_know_no_order() -> None:
    score = evaluate_similarity(one_hot_similarity, drawn_pairs(30, 0)[0])
    assert (score.correlation, score.interval, score.share_known) == (0.0, (0.0, 0.0), 1.0)
    assert one_hot_similarity("tiger", "tiger") == 1.0


def test_two_are_compared_on_the_pairs_that_both_know() -> None:
    pairs, similarity_of = drawn_pairs(200, 1)
    random = np.random.default_rng(0)
    good = evaluate_similarity(lambda *pair: similarity_of[pair], pairs)
    bad_of = {pair: float(value) for pair, value in zip(pairs.pairs, random.standard_normal(200), strict=True)}
    del bad_of["a0", "b0"]
    bad = evaluate_similarity(lambda *pair: bad_of.get(pair), pairs)
    found = compare_similarities(good, bad)
    assert found.gain == pytest.approx(spearman(pairs.ratings[1:], good.similarities[1:]) - bad.correlation)
    shared = on_shared_pairs(good, bad)
    assert [len(one.ratings) for one in shared] == [len(pairs.pairs) - 1] * 2
    assert found.gain == pytest.approx(shared[0].correlation - shared[1].correlation)
    assert found.interval[0] < found.gain < found.interval[1]
    assert found.is_distinguishable
    assert compare_similarities(bad, good).gain == pytest.approx(-found.gain)
    same = compare_similarities(good, good)
    assert (same.gain, same.interval) == (0.0, (0.0, 0.0))
    assert not same.is_distinguishable
    with pytest.raises(DataError, match="not the same pairs"):
        compare_similarities(good, evaluate_similarity(one_hot_similarity, drawn_pairs(30, 0)[0]))


@pytest.mark.parametrize(
    "text",
    [
        "tiger\tcat\t7.35\r\nnew york\tcity\t9\r\n",
        "\ufefftiger\tcat\t7.35\nnew york\tcity\t9",
        "# two words and a rating\ntiger \t cat\t7.35\n\nnew york\tcity\t9\n",
    ],
)
def test_pairs_are_read_however_they_are_written(tmp_path: Path, text: str) -> None:
    (tmp_path / "EN-TEST.txt").write_text(text, newline="")
    found = read_word_pairs(tmp_path / "EN-TEST.txt")
    assert found.name == "EN-TEST"
    assert found.pairs == [("tiger", "cat"), ("new york", "city")]
    assert found.ratings.tolist() == [7.35, 9.0]


def test_spaces_separate_where_there_are_no_tabs(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("Tiger  cat 7.35\n")
    assert read_word_pairs(tmp_path / "pairs.txt").pairs == [("Tiger", "cat")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a b 1\na b\n", 'line 2: 2 fields in "a b", expected two words and a rating'),
        ("a\tb\t1\na\t\t2\n", "line 2: 3 fields"),
        ("a b high\n", 'line 1: the rating "high" is not a number'),
        ("a b nan\n", "not a finite number"),
        ("\n# nothing\n", "holds no word pairs"),
    ],
)
def test_a_wrong_line_of_pairs_is_told_by_its_number(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "pairs.txt").write_text(text)
    with pytest.raises(DataError, match=told):
        read_word_pairs(tmp_path / "pairs.txt")


def test_analogies_are_read_with_their_groups(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "questions.txt.gz", "wt") as file:
        file.write(": capitals of\nAthens Greece Baghdad Iraq\n\n: plural\r\ncat cats dog dogs\r\n")
    found = read_analogies(tmp_path / "questions.txt.gz")
    assert found.name == "questions"
    assert found.questions == [("Athens", "Greece", "Baghdad", "Iraq"), ("cat", "cats", "dog", "dogs")]
    assert found.groups == ["capitals of", "plural"]


@pytest.mark.parametrize(
    ("text", "told"),
    [("a b c d\na b c\n", "line 2: 3 words in .*expected four"), (": group\n", "holds no analogies")],
)
def test_a_wrong_line_of_analogies_is_told_by_its_number(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "questions.txt").write_text(text)
    with pytest.raises(DataError, match=told):
        read_analogies(tmp_path / "questions.txt")


@pytest.mark.parametrize("method", ["add", "multiply"])
def test_planted_analogies_are_answered(method: Method) -> None:
    """Capitals are their countries and a direction; one country has another capital's vector."""
    random, num, E = np.random.default_rng(0), 8, 50
    countries = random.standard_normal((num, E))
    capitals = countries + 2 * random.standard_normal(E)
    capitals[0] = -capitals[0]
    names = [[f"{kind}{k}" for k in range(num)] for kind in ("country", "Capital")]
    vectors = WordVectors([*names[0], *names[1]], np.concatenate([countries, capitals]).astype(np.float32))
    questions = [
        (names[0][i], names[1][i].upper(), names[0][j], names[1][j])
        for i in range(1, num)
        for j in range(num)
        if i != j
    ]
    unknown = [("country1", "Capital1", "nowhere", "Capital2")] * 7
    groups = ["capitals"] * len(questions) + ["others"] * len(unknown)
    score = evaluate_analogies(vectors, Analogies("planted", questions + unknown, groups), method=method)
    assert score.by_group == {"capitals": (42, 49)}
    assert score.accuracy == 42 / 49
    assert score.share_known == 49 / 56
    assert score.segments.statistics.shape[1] == 7  # first pairs
    assert score.segments.value == pytest.approx(7 / 49)
    assert score.interval == pytest.approx((42 / 49, 42 / 49))  # every first pair has one wrong answer
    assert f"3Cos{'Add' if method == 'add' else 'Mul'}" in score.signature
    assert "85.7 % right" in score.headline()
    assert dict(score.rows())["capitals"] == "85.7 % of 49"
    assert score.to_dict()["groups"] == {"capitals": {"right": 42, "known": 49}}


def test_where_no_question_is_known_nothing_is_right() -> None:
    score = evaluate_analogies(
        WordVectors(["a"], np.ones((1, 2), dtype=np.float32)), Analogies("none", [("b", "c", "d", "e")], [""])
    )
    assert (score.accuracy, score.share_known, score.by_group) == (0.0, 0.0, {})
    assert "too little data" in score.headline()


def test_the_public_files_are_read_whole(shared_data: Path) -> None:
    files = sorted((shared_data / "wordsim").glob("EN-*.txt"))
    sizes = {file.stem: len(read_word_pairs(file).pairs) for file in files}
    assert sizes["EN-WS-353-ALL"] == 353
    assert sizes["EN-MEN-TR-3k"] == 3000
    assert sizes["EN-SimVerb-3500"] == 3500
    questions = read_analogies(shared_data / "analogy" / "questions-words.txt.gz")
    assert (len(questions.questions), len(set(questions.groups))) == (19_544, 14)
