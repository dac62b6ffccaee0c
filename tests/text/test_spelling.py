"""What the letters of a word cost, against the formula written out, and against all words there are."""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest

from seqwise.text.spelling import FLOOR, ORDER, Spelling

WORDS = ["cat", "cats", "car", "dog", "a", "döner", "東京"]


def nats_by_hand(words: list[str], word: str) -> float:
    seen: Counter[tuple[str, ...]] = Counter()
    after: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for known in words:
        signs = [*["start"] * (ORDER - 1), *known, "end"]
        for place in range(ORDER - 1, len(signs)):
            for length in range(ORDER):
                context = tuple(signs[place - length : place])
                seen[context] += 1
                after[context][signs[place]] += 1
    signs, nats = [*["start"] * (ORDER - 1), *word, "end"], 0.0
    for place in range(ORDER - 1, len(signs)):
        probability = FLOOR
        for length in range(ORDER):
            context = tuple(signs[place - length : place])
            if seen[context]:
                followers = len(after[context])
                count = after[context][signs[place]]
                probability = (count + followers * probability) / (seen[context] + followers)
        nats -= math.log(probability)
    return nats


@pytest.mark.parametrize("words", [WORDS, ["aa"], []], ids=["words", "one word", "none"])
def test_letters_cost_what_the_formula_says(words: list[str]) -> None:
    asked = ["cat", "catfish", "", "dogs", "ä", "€uro", "\ud800", "東", "c" * 300]
    found = Spelling(words).nats(asked)
    assert found.tolist() == pytest.approx([nats_by_hand(words, word) for word in asked])
    assert np.isfinite(found).all()


def test_words_of_all_lengths_have_the_probability_one_together() -> None:
    """Of two letters that are known and x, which stands for all that are not: words up to a length."""
    spelling, num_unknown = Spelling(["a", "ab", "b", "ba"]), sys.maxunicode + 1 - 2
    words = ["".join(letters) for length in range(10) for letters in product("abx", repeat=length)]
    alike = num_unknown ** np.array([word.count("x") for word in words], dtype=np.float64)
    total = (alike * np.exp(-spelling.nats(words))).sum()
    assert total == pytest.approx(1.0, abs=0.01)
    assert total < 1.0


def test_a_word_like_those_known_is_cheaper_than_one_that_is_not() -> None:
    like, unlike = Spelling(["walking", "talking", "sinking", "waking"]).nats(["linking", "gniknil"])
    assert like < unlike


def test_no_words_cost_nothing() -> None:
    assert Spelling(WORDS).nats([]).tolist() == []
