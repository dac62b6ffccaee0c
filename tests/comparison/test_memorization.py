"""The longest segment of the samples that stands in the training text, against trying every segment."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from seqwise.comparison.memorization import Automaton, longest_match
from seqwise.comparison.results import Match

no_hurry = how(max_examples=60, deadline=None)  # the first example waits for the compiler


def segments(text: str) -> Iterator[str]:
    """All of them, the empty one too."""
    yield ""
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            yield text[start:end]


def longest_by_trying(texts: Sequence[str], training: str) -> int:
    """In characters."""
    return max((len(s) for text in texts for s in segments(text) if s in training), default=0)


def check(texts: Sequence[str], blocks: Sequence[str]) -> None:
    found, training = longest_match(texts, blocks), "".join(blocks)
    assert found.length == len(found.text) == longest_by_trying(texts, training)
    assert found.text in training
    assert not found.text or any(found.text in text for text in texts)


def texts_over(letters: str, longest: int) -> st.SearchStrategy[str]:
    return st.text(alphabet=letters, max_size=longest)


@given(st.lists(texts_over("ab", 12), max_size=4), st.lists(texts_over("ab", 15), max_size=4))
@no_hurry
def test_it_is_the_longest_of_all_segments_of_two_letters(texts: list[str], blocks: list[str]) -> None:
    """Two letters repeat so much that most states of the automaton are split."""
    check(texts, blocks)


@given(st.lists(texts_over("abcd", 20), max_size=3), st.lists(texts_over("abcd", 30), max_size=3))
@no_hurry
def test_it_is_the_longest_of_all_segments_of_four_letters(texts: list[str], blocks: list[str]) -> None:
    check(texts, blocks)


@given(st.lists(texts_over("äßéø", 10), max_size=3), st.lists(texts_over("äßéø", 12), max_size=3))
@no_hurry
def test_characters_of_two_bytes_that_share_one_are_not_matched_by_half(texts: list[str], blocks: list[str]) -> None:
    """They all begin with the byte 0xc3: half a character is none."""
    check(texts, blocks)


@given(st.lists(texts_over("aé日😀", 10), max_size=3), st.lists(texts_over("aé日😀", 12), max_size=3))
@no_hurry
def test_the_longest_is_counted_in_characters_where_some_take_more_bytes_than_others(
    texts: list[str], blocks: list[str]
) -> None:
    check(texts, blocks)


def test_five_letters_are_longer_than_two_ideographs() -> None:
    """Though they are fewer bytes."""
    assert longest_match(["日本 abcde"], ["abcde", "|", "日本"]) == Match(5, "abcde")


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_character_that_is_cut_between_two_blocks_of_bytes_is_whole_again(size: int) -> None:
    training = "vor 日本語 und 😀 nach".encode()
    blocks = [training[start : start + size] for start in range(0, len(training), size)]
    assert Automaton("x日本語 und 😀!".encode()).longest_match(blocks) == "日本語 und 😀".encode()


def test_a_segment_goes_on_over_the_borders_of_blocks() -> None:
    assert longest_match(["the cat sat"], ["so the ", "c", "", "at sa", "w"]) == Match(10, "the cat sa")


@pytest.mark.parametrize(
    ("texts", "blocks"),
    [([], ["abc"]), ([""], ["abc"]), (["", ""], ["abc"]), (["abc"], []), (["abc"], [""]), ([], []), (["abc"], ["xyz"])],
)
def test_where_there_is_nothing_in_common_the_match_is_empty(texts: list[str], blocks: list[str]) -> None:
    assert longest_match(texts, blocks) == Match(0, "")


def test_a_segment_does_not_go_on_from_one_sample_to_the_next() -> None:
    assert longest_match(["one ca", "t two"], ["a cat and a"]) == Match(3, " ca")


@pytest.mark.parametrize("separator", ["\n", "\x00", "ÿ", "\ufffd", "?"])
def test_no_text_can_hold_what_stands_between_the_samples(separator: str) -> None:
    """Were samples joined by a character, a training text that has it would match across them."""
    assert longest_match(["abc", "def"], [f"abc{separator}def"]).length == 3


def test_half_a_surrogate_is_no_reason_to_fail() -> None:
    assert longest_match(["ab\ud800c"], ["xab", "\udfffc"]).text.startswith("ab")


def test_the_whole_sample_can_be_found() -> None:
    assert longest_match(["once"], ["twice and once and thrice"]) == Match(4, "once")


def test_a_long_training_text_is_read_block_by_block_in_one_pass() -> None:
    """A planted segment lies across the border of two blocks, a shorter one further ahead."""
    random = np.random.default_rng(0)

    def noise(length: int) -> str:
        return "".join(map(chr, random.integers(97, 123, size=length)))

    planted = noise(60)
    sample, blocks = noise(500) + planted + noise(500), [noise(10_000) for _ in range(300)]
    blocks[40] = blocks[40][:-20] + planted[:20]
    blocks[41] = planted[20:] + blocks[41][40:]
    blocks[7] = planted[:50] + blocks[7][50:]
    longest_match([sample], ["compiled"])
    read: list[int] = []

    def reading() -> Iterator[str]:
        for number, block in enumerate(blocks):
            read.append(number)
            yield block

    began = time.process_time()
    found = longest_match([sample], reading())
    assert found.text in sample
    assert planted in found.text  # a letter more may agree by chance
    assert found.length <= 64
    assert read == list(range(300))
    assert time.process_time() - began < 5.0  # 3 million characters; linear, not characters x sample
