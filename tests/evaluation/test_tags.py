"""Which words of a row training had, told by their tokens."""

from __future__ import annotations

import numpy as np

from seqwise.data.annotated import TaggedRow
from seqwise.data.schema import TagSpec, TokenSpec, tag_schema
from seqwise.data.text_examples import build_tag_store
from seqwise.evaluation.tags import is_seen
from seqwise.text.characters import CharTokenizer
from seqwise.text.words import WordTokenizer

ROWS = [TaggedRow(("a", "new", "b"), ("X",) * 3), TaggedRow(("newer",), ("X",)), TaggedRow(("b", "a"), ("X",) * 2)]


def test_words_that_the_vocabulary_lacks_are_told_row_by_row() -> None:
    schema = tag_schema(TokenSpec(WordTokenizer(["a", "b"])), TagSpec(["X"]))
    store = build_tag_store(ROWS, schema)
    found = is_seen(store)
    assert found is not None
    assert [row.tolist() for row in found] == [[True, False, True], [False], [True, True]]
    some = is_seen(store.take(2))
    assert some is not None
    assert np.concatenate(some).tolist() == [True, False, True, False]


def test_of_pieces_of_words_none_is_unknown() -> None:
    schema = tag_schema(TokenSpec(CharTokenizer(["\n", *"abenwr"])), TagSpec(["X"]))
    assert is_seen(build_tag_store(ROWS, schema)) is None
