"""Phrases: scores by brute force, in parts as at once, and lines with their phrases joined."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqwise.text import phrases
from seqwise.text.phrases import find_phrases, join_phrases, score_bigrams


@given(
    lines=st.lists(st.lists(st.integers(1, 4), max_size=8), min_size=1, max_size=8),
    min_count=st.integers(1, 3),
    at_once=st.integers(1, 20),
)
def test_scores_are_those_of_the_equation(lines: list[list[int]], min_count: int, at_once: int) -> None:
    """0 ends a line, and 4 is not known."""
    ids = np.array([token for line in lines for token in [*line, 0]])
    words = Counter(token for line in lines for token in line if token != 4)
    bigrams = Counter(pair for line in lines for pair in pairwise(line) if 4 not in pair)
    wanted = {
        pair: (num - 0.5) / (words[pair[0]] * words[pair[1]]) * words.total()
        for pair, num in bigrams.items()
        if num >= min_count
    }
    before, phrases.READ_AT_ONCE = phrases.READ_AT_ONCE, at_once
    try:
        found, scores = score_bigrams(ids, 5, apart=[0, 4], discount=0.5, min_count=min_count)
    finally:
        phrases.READ_AT_ONCE = before
    assert {(a, b): pytest.approx(score) for (a, b), score in zip(found.tolist(), scores, strict=True)} == wanted
    assert (np.diff(scores) <= 0).all()


def test_words_that_stand_together_are_found_and_chance_is_not() -> None:
    random = np.random.default_rng(0)
    lines = [[f"w{k}" for k in random.integers(50, size=20)] for _ in range(200)]
    for line in lines[::4]:
        line[3:5] = ["new", "york"]
    found = find_phrases(lines, threshold=20.0)
    assert list(found) == [("new", "york")]
    assert found["new", "york"] == pytest.approx((50 - 5) / 50**2 * 4000)
    assert find_phrases(lines, threshold=20.0, never=["york"]) == {}
    assert find_phrases([]) == {}


@pytest.mark.parametrize(
    ("line", "joined"),
    [
        ("in new york city", "in new_york city"),
        ("new york", "new_york"),
        ("york new", "york new"),
        ("new new york new york", "new new_york new_york"),
        ("a b c", "a_b c"),  # of two that overlap, the first
        ("", ""),
        ("new", "new"),
    ],
)
def test_phrases_are_joined_from_left_to_right(line: str, joined: str) -> None:
    known = {("new", "york"): 1.0, ("a", "b"): 1.0, ("b", "c"): 2.0}
    assert join_phrases(line.split(), known) == joined.split()


def test_a_second_pass_finds_longer_phrases() -> None:
    lines = [["the", "new", "york", "times", f"w{k}"] for k in range(20)] + [[f"x{k}", f"y{k}"] for k in range(300)]
    once = [join_phrases(line, find_phrases(lines, threshold=10.0, never=["the"])) for line in lines]
    twice = join_phrases(once[0], find_phrases(once, threshold=10.0, never=["the"]), joint="~")
    assert once[0] == ["the", "new_york", "times", "w0"]
    assert twice == ["the", "new_york~times", "w0"]
