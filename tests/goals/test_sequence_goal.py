"""How targets are searched for, and what is found out about them before anything is learned."""

from __future__ import annotations

import pytest

from seqwise.data.pair_store import build_pair_store
from seqwise.data.pairs import PairData
from seqwise.data.schema import Schema, pair_schema, pair_tokenizers
from seqwise.goals.sequence import SequenceGoal, search_settings
from seqwise.text import train_tokenizer


def schema_of(pairs: list[tuple[str, str]], kind: str) -> Schema:
    """One vocabulary for both sides."""
    both = train_tokenizer(kind, (text + "\n" for pair in pairs for text in pair))
    return pair_schema(both, both)


def test_a_beam_is_five_wide_where_the_vocabulary_is_and_nothing_else_is_asked() -> None:
    schema = schema_of([("ab", "ba")], "char")
    search = search_settings(schema)
    assert (search.method, search.beam_width, search.length_form, search.length_penalty) == ("beam", 5, "gnmt", 1.0)
    assert search.stop == pair_tokenizers(schema)[1].boundary
    assert search_settings(schema, beam_width=3, length_penalty=None).beam_width == 3
    assert search_settings(schema, num_results=8).beam_width == 8
    words = schema_of([("a", "b"), ("b", "a")], "word")
    assert search_settings(words).beam_width == pair_tokenizers(words)[1].vocab_size == 4


def test_how_long_a_target_may_be_is_found_in_the_training_part() -> None:
    pairs = [("ab", "abab")] * 10 + [("abc", "ab")] * 10
    schema = schema_of(pairs, "char")
    data = PairData("toy", {"train": pairs, "valid": pairs[:3], "test": pairs[:3]}, "ff", "split as given", [])
    facts = SequenceGoal().facts(data, build_pair_store(pairs, *pair_tokenizers(schema)), schema, None)
    assert facts.data["length_ratio"] == pytest.approx(5 / 3, abs=0.01)  # four letters and the end, of two and the end
    assert (facts.train_tokens, facts.length) == (10 * 5 + 10 * 3, 6)
