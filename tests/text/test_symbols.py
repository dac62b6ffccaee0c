"""Symbols: numbers that are tokens already."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqwise.errors import DataError
from seqwise.text import TOKENIZERS, tokenizer_from_dict
from seqwise.text.symbols import SymbolTokenizer


@given(symbols=st.lists(st.integers(0, 299), max_size=30))
def test_symbols_come_back_as_they_were(symbols: list[int]) -> None:
    tokenizer = SymbolTokenizer(300)
    text = " ".join(map(str, symbols))
    ids = tokenizer.encode(text)
    assert ids.dtype == np.int64
    assert ids.tolist() == symbols
    assert tokenizer.decode(ids) == text


@given(symbols=st.lists(st.integers(0, 299), max_size=30))
def test_each_symbol_stands_for_its_characters_and_all_of_them_for_the_text(symbols: list[int]) -> None:
    tokenizer = SymbolTokenizer(300)
    text = " ".join(map(str, symbols))
    measured = tokenizer.measure(text)
    assert measured.ids.tolist() == symbols
    assert measured.lengths.sum() == len(text)
    usual = tokenizer.usual_lengths[measured.ids]
    assert measured.lengths[:-1].tolist() == usual[:-1].tolist()  # the last has no space behind it


def test_any_white_space_stands_between_symbols() -> None:
    tokenizer = SymbolTokenizer(10)
    assert tokenizer.encode(" 1\t2\n\n3 ").tolist() == [1, 2, 3]
    assert tokenizer.encode("").tolist() == []
    assert len(tokenizer.measure("").ids) == 0


def test_a_symbol_is_shown_as_its_number() -> None:
    assert [SymbolTokenizer(12).piece(token) for token in (0, 11)] == ["0", "11"]


def test_symbols_that_are_not_there_are_refused() -> None:
    tokenizer = SymbolTokenizer(4)
    for text in ("0 4", "-1 2"):
        with pytest.raises(DataError) as caught:
            tokenizer.encode(text)
        assert str(caught.value) == f'"{text}": symbols go from 0 to 3.'
    for text in ("1 a", "1.5", "1,2"):
        with pytest.raises(DataError) as caught:
            tokenizer.measure(text)
        assert str(caught.value) == f'"{text}": symbols are whole numbers with spaces between.'


def test_a_long_text_is_named_by_its_beginning() -> None:
    with pytest.raises(DataError, match=r'^"(1 ){20}": symbols are whole numbers'):
        SymbolTokenizer(4).encode("1 " * 1000 + "x")


@pytest.mark.parametrize("boundary", [-1, 4, 5])
def test_the_boundary_is_one_of_the_symbols(boundary: int) -> None:
    with pytest.raises(ValueError, match="the boundary must be one of the symbols"):
        SymbolTokenizer(4, boundary)


def test_saved_and_loaded_it_is_the_same_and_no_text_is_ever_taken_for_symbols() -> None:
    saved = {"kind": "symbol", **SymbolTokenizer(9, 3).to_dict()}
    again = tokenizer_from_dict(json.loads(json.dumps(saved)))
    assert isinstance(again, SymbolTokenizer)
    assert (again.kind, again.vocab_size, again.boundary) == ("symbol", 9, 3)
    assert "symbol" not in TOKENIZERS  # which --tokenizer offers
