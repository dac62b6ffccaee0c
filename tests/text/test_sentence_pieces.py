"""SentencePiece by scores: against the rule applied as it is written, and back to the text that went in."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqwise.data.schema import TokenSpec
from seqwise.errors import ConfigError
from seqwise.text import train_tokenizer
from seqwise.text.sentence_pieces import FIRST_BYTE, FIRST_PIECE, SentencePieceTokenizer

EXAMPLES = settings(max_examples=80, deadline=None, derandomize=True, database=None)
LETTERS = "abé "
some_pieces = st.lists(st.text(LETTERS, min_size=2, max_size=4), max_size=12, unique=True)
any_text = st.text(LETTERS + "日z\n", max_size=25) | st.text(st.characters(codec="utf-8"), max_size=12)
WORDS = SentencePieceTokenizer([" ", "c", "a", "t", " c", "at", " cat", "é"], [0, -1, -2, -3, -4, -5, -6, -7])


def tokens_by_rule(pieces: list[str], scores: list[float], text: str) -> list[int]:
    """Joined one by one, with a look at all neighbours each time."""
    found: list[tuple[int, str | None]] = []
    for character in f" {text}" if text else "":
        if character in pieces:
            found.append((FIRST_PIECE + pieces.index(character), character))
        else:
            found += [(FIRST_BYTE + byte, None) for byte in character.encode()]
    while True:
        best: tuple[float, int, str] | None = None
        for place, ((_, left), (_, right)) in enumerate(itertools.pairwise(found)):
            if left is not None and right is not None and left + right in pieces:
                score = scores[pieces.index(left + right)]
                if best is None or score > best[0]:
                    best = score, place, left + right
        if best is None:
            return [token for token, _ in found]
        _, place, joint = best
        found[place : place + 2] = [(FIRST_PIECE + pieces.index(joint), joint)]


@EXAMPLES
@given(longer=some_pieces, seed=st.integers(0, 9), text=any_text)
def test_pieces_are_joined_by_the_best_score_the_first_of_equals(longer: list[str], seed: int, text: str) -> None:
    pieces = [" ", "a", "b", *longer]
    scores = np.random.default_rng(seed).integers(-3, 0, size=len(pieces)).astype(float).tolist()  # many are equal
    tokenizer = SentencePieceTokenizer(pieces, scores)
    assert tokenizer.encode(text).tolist() == tokens_by_rule(pieces, scores, text)
    assert tokenizer.encode(text).tolist() == tokens_by_rule(pieces, scores, text)  # words that are known by then


@EXAMPLES
@given(longer=some_pieces, text=any_text)
def test_what_went_in_comes_out_whatever_the_pieces(longer: list[str], text: str) -> None:
    for single in ([" ", "a", "b", "é"], ["a"]):  # without a piece for the space it is a byte
        pieces = [*single, *longer]
        tokenizer = SentencePieceTokenizer(pieces, [-float(n) for n in range(len(pieces))])
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        measured = tokenizer.measure(text)
        assert measured.ids.tolist() == ids.tolist()
        assert measured.lengths.sum() == len(text)
        assert (measured.lengths >= 0).all()


@EXAMPLES
@given(longer=some_pieces, text=any_text)
def test_offsets_cover_the_text_in_order(longer: list[str], text: str) -> None:
    tokenizer = SentencePieceTokenizer([" ", "a", *longer], [-1.0] * (2 + len(longer)))
    ids, spans = tokenizer.encode_with_offsets(text)
    assert ids.tolist() == tokenizer.encode(text).tolist()
    assert (spans[:, 0] < spans[:, 1]).all()
    assert {place for start, end in spans.tolist() for place in range(start, end)} == set(range(len(text)))
    assert (np.diff(spans[:, 0]) >= 0).all()


def test_each_token_stands_where_it_was_written() -> None:
    ids, spans = WORDS.encode_with_offsets("cat日 cat")
    assert [WORDS.piece(token) for token in ids] == [" cat", "<0xE6>", "<0x97>", "<0xA5>", " cat"]
    assert spans.tolist() == [[0, 3], [3, 4], [3, 4], [3, 4], [4, 8]]


def test_the_first_word_stands_without_its_space_also_behind_a_boundary() -> None:
    cat = WORDS.encode("cat").tolist()
    assert cat == [FIRST_PIECE + 6]
    assert WORDS.decode(cat * 2) == "cat cat"
    assert WORDS.decode([WORDS.boundary, *cat, WORDS.boundary, *cat]) == "\ncat\ncat"
    assert WORDS.decode([*WORDS.encode("cat").tolist(), *cat]).removeprefix(WORDS.decode(cat)) == " cat"
    assert WORDS.decode(WORDS.encode(" cat")) == " cat"


def test_marks_and_bytes_that_are_no_character_can_be_shown() -> None:
    assert WORDS.decode([0, 2, FIRST_BYTE + 0xFF, FIRST_BYTE + ord("z")]) == "<unk>�z"
    assert [WORDS.piece(token) for token in (0, 1, 2, FIRST_BYTE + 10, FIRST_BYTE + 0xE9)] == [
        *("<unk>", "\n", "</s>"),
        *("\n", "<0xE9>"),
    ]
    assert WORDS.decode(WORDS.encode("a\ud800b")) == "a?b"
    assert len(WORDS.usual_lengths) == WORDS.vocab_size == FIRST_PIECE + 8


def test_a_piece_may_reach_over_a_space() -> None:
    pieces = {" ": -9.0, "a": -9.0, "b": -9.0, " a": -1.0, " a ": -2.0, " a b": -3.0}
    tokenizer = SentencePieceTokenizer(list(pieces), list(pieces.values()))
    assert [tokenizer.piece(token) for token in tokenizer.encode("a b")] == [" a b"]
    assert [tokenizer.piece(token) for token in tokenizer.encode("b a b")] == [" ", "b", " a b"]


def test_a_long_word_takes_no_quadratic_time() -> None:
    tokens = SentencePieceTokenizer([" ", "a", "aa", "aaaa"], [0, 0, -1, -2]).encode("a" * 100_000)
    assert len(tokens) == 25_001  # the space, and fours


def test_a_saved_tokenizer_is_the_same_tokenizer() -> None:
    saved = json.loads(json.dumps(TokenSpec(WORDS).to_dict()))
    again = TokenSpec.from_dict(saved).tokenizer
    assert isinstance(again, SentencePieceTokenizer)
    assert (again.pieces, again.scores) == (WORDS.pieces, WORDS.scores)


@pytest.mark.parametrize(("pieces", "scores"), [(["a"], []), (["a", ""], [0, 0]), (["a"], [float("nan")]), ([3], [0])])
def test_a_damaged_one_is_refused(pieces: list[str], scores: list[float]) -> None:
    with pytest.raises(ValueError, match="piece"):
        SentencePieceTokenizer.from_dict({"pieces": pieces, "scores": scores})


def test_it_is_not_learned_here() -> None:
    with pytest.raises(ConfigError, match=r'the tokenizer "sentencepiece" is not learned here.*Choose char, word, bpe'):
        train_tokenizer("sentencepiece", ["a text\n"])
