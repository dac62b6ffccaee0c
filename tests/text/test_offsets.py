"""Which characters each token stands for: what tags, spans and colouring need."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqwise.text import Tokenizer, train_tokenizer
from seqwise.text.symbols import SymbolTokenizer

POEM = "Shall I compare thee to a summer's day?\nThou art more lovely, and more temperate:\n\n" * 4
KINDS = ["char", "word", "bpe", "wordpiece"]
TOKENIZERS = {kind: train_tokenizer(kind, [POEM]) for kind in KINDS}
LOWER = train_tokenizer("word", [POEM], lower_case=True)
LOWER_PIECES = train_tokenizer("wordpiece", [POEM], lower_case=True)
any_text = st.text(st.characters(codec="utf-8"), max_size=30) | st.text(st.sampled_from("aß İé日\n ,Sh"), max_size=20)


def check(tokenizer: Tokenizer, text: str) -> np.ndarray:
    ids, spans = tokenizer.encode_with_offsets(text)
    assert ids.tolist() == tokenizer.encode(text).tolist()
    assert spans.shape == (len(ids), 2)
    assert (spans[:, 0] < spans[:, 1]).all()
    assert (np.diff(spans[:, 0]) >= 0).all()
    assert not len(spans) or (spans.min() >= 0 and spans.max() <= len(text))
    return spans


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@pytest.mark.parametrize("kind", KINDS)
@given(text=any_text)
def test_offsets_belong_to_the_ids_and_stay_inside_the_text(kind: str, text: str) -> None:
    spans = check(TOKENIZERS[kind], text)
    if kind not in ("word", "wordpiece"):  # words leave white space out
        covered = {place for start, end in spans.tolist() for place in range(start, end)}
        assert covered == set(range(len(text)))


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(text=any_text)
def test_lower_case_words_stand_where_they_were_written(text: str) -> None:
    """Some small letters are longer than their capitals."""
    spans = check(LOWER, text)
    for start, end in spans.tolist():
        written = text[start:end]
        assert written == "\n" or (written.strip() and not any(map(str.isspace, written)))


def test_each_word_is_found_where_it_stands() -> None:
    text = "Thou ART more  lovely"
    for tokenizer in (TOKENIZERS["word"], LOWER):
        _, spans = tokenizer.encode_with_offsets(text)
        assert [text[start:end] for start, end in spans.tolist()] == text.split()


def test_a_capital_whose_small_letter_is_two_moves_nothing_behind_it() -> None:
    text = "art İ lovely"
    _, spans = LOWER.encode_with_offsets(text)
    assert [text[start:end] for start, end in spans.tolist()] == ["art", "İ", "İ", "lovely"]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(text=any_text)
def test_lower_case_pieces_stand_where_they_were_written(text: str) -> None:
    check(LOWER_PIECES, text)


def test_pieces_stand_where_they_were_written_whatever_capitals_and_accents_become() -> None:
    text = "THÖU ärt\n\nİ more-LOVELY"
    ids, spans = LOWER_PIECES.encode_with_offsets(text)
    words: list[str] = []
    for token, (start, end) in zip(ids.tolist(), spans.tolist(), strict=True):
        if LOWER_PIECES.starts_word(token):
            words.append(text[start:end])
        else:
            words[-1] += text[start:end]
    assert words == ["THÖU", "ärt", "\n", "\n", "İ", "more", "-", "LOVELY"]


def test_a_character_that_is_spelled_belongs_to_all_its_tokens() -> None:
    ids, spans = TOKENIZERS["char"].encode_with_offsets("ay€s")
    assert len(ids) == 3 + 6
    assert spans.tolist() == [[0, 1], [1, 2], *[[2, 3]] * 6, [3, 4]]
    _, spans = TOKENIZERS["bpe"].encode_with_offsets("€")
    assert {tuple(span) for span in spans.tolist()} == {(0, 1)}


def test_long_texts_are_cut_into_pieces_without_losing_places() -> None:
    text = "Thou art lovely\n" * 5000
    ids, spans = TOKENIZERS["bpe"].encode_with_offsets(text)
    assert "".join(text[start:end] for start, end in spans.tolist()) == text
    assert ids.tolist() == TOKENIZERS["bpe"].encode(text).tolist()


def test_symbols() -> None:
    ids, spans = SymbolTokenizer(20).encode_with_offsets("3  14 1")
    assert (ids.tolist(), spans.tolist()) == ([3, 14, 1], [[0, 1], [3, 5], [6, 7]])
