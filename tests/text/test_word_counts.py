"""Counting words in compiled loops: what a Counter finds, however the text is cut and whatever white space it has."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqwise.text.word_counts import count_words
from seqwise.text.words import WordTokenizer

WORD = st.text(alphabet="ab ßé日\n\t\u00a0\u2003\x1c😀\ud800", max_size=12)


@given(blocks=st.lists(WORD, max_size=12), min_count=st.integers(1, 3))
def test_words_are_those_of_a_dictionary(blocks: list[str], min_count: int) -> None:
    counts = Counter(word for block in blocks for word in block.split())
    kept = {word: num for word, num in counts.items() if num >= min_count}
    words, found = count_words(blocks, min_count=min_count)
    assert words == sorted(kept, key=lambda word: (-kept[word], word))
    assert found.tolist() == [kept[word] for word in words]


@pytest.mark.parametrize("length", [1, 9, 40_000])
def test_tables_grow_with_the_text(length: int) -> None:
    random = np.random.default_rng(0)
    words = [f"w{k}" + "x" * int(length * (k % 1000 == 7)) for k in random.integers(9000, size=30_000)]
    blocks = [" ".join(words[start : start + 500]) for start in range(0, len(words), 500)]
    assert dict(zip(*count_words(blocks), strict=True)) == Counter(words)


def test_a_vocabulary_is_that_of_the_tokenizer() -> None:
    text = "the cat , the dog\nthe end , the cat\n"
    assert count_words([text], min_count=2)[0] == WordTokenizer.train([text], min_count=2).words
    assert count_words([])[0] == []
