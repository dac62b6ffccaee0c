"""Rows of text that are read and written again: how lines become rows, and rows batches."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqwise.data.row_store import RowStore, build_row_store
from seqwise.text.words import WordTokenizer

WORDS = WordTokenizer(list("abcdefgh"))
B = WORDS.boundary


def store_of(*lines: str, row_tokens: int = 10) -> RowStore:
    return build_row_store(lines, WORDS, row_tokens)


def ids(text: str) -> list[int]:
    return WORDS.encode(text).tolist()


def rows_of(store: RowStore) -> list[list[int]]:
    edges = store.rows.edges.tolist()
    return [store.rows.ids[a:b].tolist() for a, b in pairwise(edges)]


def test_a_row_is_a_line_between_boundaries_and_a_long_line_is_several() -> None:
    store = store_of("a b c", "", "  ", "d e f g h", row_tokens=2)
    wanted = ["a b", "c", "d e", "f g", "h"]
    assert rows_of(store) == [[B, *ids(text), B] for text in wanted]
    assert len(store) == sum(len(text.split()) + 1 for text in wanted)


def by_hand(row: list[int], longest: int) -> tuple[list[int], list[int], list[bool], list[bool]]:
    """Read, wanted, is_token, is_scored."""
    words = row[1:-1]
    read, wanted = [B, *words, B, *words], [*words, B, *words, B]
    padding = longest - len(read)
    scored = [False] * (len(words) + 1) + [True] * (len(words) + 1)
    return (
        [*read, *[0] * padding],
        [*wanted, *[0] * padding],
        [*[True] * len(read), *[False] * padding],
        [*scored, *[False] * padding],
    )


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6), min_size=1, max_size=6), st.data())
def test_a_batch_holds_each_row_twice_and_scores_the_second_copy(lines: list[list[str]], draw: Any) -> None:
    store = store_of(*(" ".join(line) for line in lines))
    chosen = draw.draw(st.permutations(range(len(lines))))[: draw.draw(st.integers(1, len(lines)))]
    batch = store.batch(np.array(chosen))
    tokens, targets = batch.inputs["tokens"], batch.targets["tokens"]
    rows = [rows_of(store)[place] for place in chosen]
    longest = max(2 * len(row) - 2 for row in rows)
    expected = [by_hand(row, longest) for row in rows]
    is_token = np.ones(tokens.shape, dtype=bool) if tokens.is_token is None else tokens.is_token.numpy()
    found = (tokens.ids.numpy(), targets.ids.numpy(), is_token, targets.is_scored.numpy())
    for place, what in enumerate(found):
        assert what.tolist() == [row[place] for row in expected]
    assert targets.is_token is tokens.is_token
    assert batch.counts() == {"tokens": sum(len(row) - 1 for row in rows)}


def test_the_beginning_of_a_store_is_counted_in_tokens_to_write() -> None:
    store = store_of("a b", "c", "d e f")  # 3, 2 and 4 with their ends
    assert [len(store.take(limit).rows) for limit in (1, 3, 4, 5, 8, 9, 100)] == [1, 1, 1, 2, 2, 3, 3]
    assert len(store.take(5)) == 5
    assert store.take(9) is store


@pytest.mark.parametrize("max_tokens", [3, 8, 1000])
def test_every_row_is_scored_once(max_tokens: int) -> None:
    store = store_of("a b c", "d", "e f", "g", "h a b c d e")
    chosen = list(store.in_order_of_length(max_tokens))
    assert sorted(np.concatenate(chosen).tolist()) == list(range(5))
    for some in chosen:
        assert len(some) == 1 or len(some) * store.rows.lengths[some].max() <= max_tokens
