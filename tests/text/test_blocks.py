"""Blocks: a text read in pieces has the ids of the whole."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqwise.text import TOKENIZERS, Tokenizer, train_tokenizer, whole_blocks
from seqwise.text.blocks import pieces_of

EXAMPLES = settings(max_examples=50, deadline=None, derandomize=True, database=None)
# letters, digits, marks, contractions and all sorts of white space: where the patterns of the tokenizers join and split
ALPHABET = [
    "a",
    "b",
    "É",
    "1",
    ",",
    "'s",
    "'",
    "Σ",
    " ",
    "  ",
    "\n",
    " \n",
    "\n\n",
    "\t",
    "\r",
    "\x1c",
    "\x85",
    "\u2028",
]

texts = st.lists(st.sampled_from(ALPHABET), max_size=30).map("".join)
each_kind = pytest.mark.parametrize("kind", TOKENIZERS)


@functools.cache
def trained(kind: str) -> Tokenizer:
    """On noise of the same alphabet, so that byte pairs join white space of every sort."""
    noise = "".join(random.Random(0).choices(ALPHABET, k=4000))
    return train_tokenizer(kind, [noise], vocab_size=1000) if kind == "bpe" else train_tokenizer(kind, [noise])


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted({min(place, len(text)) for place in places}), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


@each_kind
@EXAMPLES
@given(text=texts, places=st.lists(st.integers(0, 40), max_size=8))
def test_blocks_have_the_ids_of_the_whole(kind: str, text: str, places: list[int]) -> None:
    tokenizer = trained(kind)
    blocks = list(whole_blocks(cut(text, places)))
    assert "".join(blocks) == text
    assert [i for block in blocks for i in tokenizer.encode(block)] == tokenizer.encode(text).tolist()


@EXAMPLES
@given(text=texts, size=st.integers(1, 12))
def test_pieces_of_one_text_have_the_byte_pairs_of_the_whole(text: str, size: int) -> None:
    pieces = pieces_of(text, size)
    assert "".join(pieces) == text
    encode = trained("bpe").encode
    assert [i for piece in pieces for i in encode(piece)] == encode(text).tolist()


@EXAMPLES
@given(text=texts, places=st.lists(st.integers(0, 40), max_size=8), longest=st.integers(1, 9))
def test_blocks_give_the_text_back_however_short_they_must_be(text: str, places: list[int], longest: int) -> None:
    blocks = list(whole_blocks(cut(text, places), longest=longest))
    assert "".join(blocks) == text
    assert all(blocks)


@each_kind
def test_a_paragraph_break_at_the_end_of_a_block_changes_no_id(kind: str) -> None:
    """The white space before a word is split otherwise than white space at the end of a text."""
    tokenizer = trained(kind)
    for text in ("ab \nab", "ab\n\nab", "ab  \n\n\nab", "ab\t\nab"):
        blocks = list(whole_blocks(list(text)))
        assert [i for block in blocks for i in tokenizer.encode(block)] == tokenizer.encode(text).tolist()
        pieces = pieces_of(text, len(text) - 1)
        assert [i for piece in pieces for i in tokenizer.encode(piece)] == tokenizer.encode(text).tolist()


def test_ordinary_lines_are_handed_on_as_they_come() -> None:
    lines = [f"line {i}\n" for i in range(100)]
    handed_on, read = 0, 0

    def reading() -> Iterator[str]:
        nonlocal read
        for line in lines:
            read += len(line)
            yield line

    for block in whole_blocks(reading()):
        handed_on += len(block)
        assert read - handed_on <= 20


@pytest.mark.parametrize("letter", ["x", "\n", " ", " \n"])
def test_an_endless_line_is_cut_and_never_held_whole(letter: str) -> None:
    read = handed_on = 0

    def reading() -> Iterator[str]:
        nonlocal read
        for _ in range(200):
            read += 1000 * len(letter)
            yield letter * 1000

    for block in whole_blocks(reading(), longest=5000):
        handed_on += len(block)
        assert read - handed_on <= 5000 + 2 * 1000 * len(letter)
        assert len(block) <= 5000 + 1000 * len(letter)
    assert handed_on == read


def test_an_endless_line_is_cut_between_words_where_it_has_spaces() -> None:
    tokenizer = train_tokenizer("word", ["hello wide world\n"])
    line = "hello wide world " * 500
    blocks = list(whole_blocks([line], longest=100))
    assert len(blocks) > 50
    assert [i for block in blocks for i in tokenizer.encode(block)] == tokenizer.encode(line).tolist()


def test_one_huge_block_without_a_newline_is_cut_too() -> None:
    blocks = list(whole_blocks(["x" * 10_000], longest=1000))
    assert max(map(len, blocks)) <= 1000
    assert "".join(blocks) == "x" * 10_000
