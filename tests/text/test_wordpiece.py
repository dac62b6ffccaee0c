"""WordPiece: words are cut as BERT cuts them, unknown ones are paid for, newlines are [SEP]."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqwise.text import special_of, train_tokenizer
from seqwise.text.wordpiece import GOES_ON, LONGEST_WORD, SPECIAL, WordPieceTokenizer

EXAMPLES = settings(max_examples=60, deadline=None, derandomize=True, database=None)
PIECES = [*SPECIAL, "un", "##aff", "##able", "able", "a", "##a", "##b", "##ff", "the", ".", "cafe", "日", "本"]
BY_HAND = WordPieceTokenizer.of_pieces(PIECES, lower_case=True)
POEM = "Shall I compare thee to a summer's day?\nThou art more lovely, and more temperate:\n\n" * 4
LEARNED = train_tokenizer("wordpiece", [POEM])


def pieces_of(text: str, tokenizer: WordPieceTokenizer = BY_HAND) -> list[str]:
    return [tokenizer.piece(token) for token in tokenizer.encode(text)]


def longest_first(word: str, pieces: set[str]) -> list[str]:
    """The rule in its plainest form."""
    found, start = [], 0
    while start < len(word):
        ends = (end for end in range(len(word), start, -1) if GOES_ON * (start > 0) + word[start:end] in pieces)
        end = next(ends, None)
        if end is None:
            return ["[UNK]"]
        found.append(GOES_ON * (start > 0) + word[start:end])
        start = end
    return found


@EXAMPLES
@given(word=st.text("abnufflet", min_size=1, max_size=12))
def test_a_word_is_cut_into_the_longest_pieces_from_its_beginning(word: str) -> None:
    assert pieces_of(word) == longest_first(word, set(PIECES))
    assert pieces_of(word, LEARNED) == longest_first(word, set(LEARNED._pieces))


def test_text_is_read_as_bert_reads_it() -> None:
    assert pieces_of("Unaffable  THE.") == ["un", "##aff", "##able", "the", "."]
    assert pieces_of("CAFÉ") == ["cafe"]
    assert pieces_of("日本\t\x00the\r") == ["日", "本", "the"]
    assert pieces_of("a" * (LONGEST_WORD + 1)) == ["[UNK]"]
    assert len(pieces_of("a" * LONGEST_WORD)) == LONGEST_WORD
    with_case = WordPieceTokenizer.of_pieces(PIECES, lower_case=False)
    assert pieces_of("THE the café", with_case) == ["[UNK]", "the", "[UNK]"]
    assert pieces_of("café", WordPieceTokenizer.of_pieces(PIECES, strip_accents=True)) == ["cafe"]
    together = WordPieceTokenizer.of_pieces([*PIECES, "##本"], split_chinese=False)
    assert pieces_of("日本", together) == ["日", "##本"]


def test_special_tokens_are_read_where_a_text_has_them() -> None:
    assert pieces_of("the [MASK].") == ["the", "[MASK]", "."]
    assert pieces_of("a [SEP] a\na") == ["a", "\n", "a", "\n", "a"]
    assert special_of(BY_HAND) == {"padding": 0, "unknown": 1, "begin": 2, "separator": 3, "mask": 4}
    assert special_of(train_tokenizer("word", [POEM])) == {}


def test_words_begin_where_a_piece_does_not_go_on() -> None:
    starts = [BY_HAND.starts_word(token) for token in BY_HAND.encode("unaffable the.\n[MASK] ab")]
    assert starts == [True, False, False, True, True, True, True, True, False]


def test_lines_come_back_with_marks_at_their_words() -> None:
    text = "the unaffable.\n\nthe a"
    assert BY_HAND.decode(BY_HAND.encode(text)) == text
    assert BY_HAND.decode(BY_HAND.encode("x the")) == "[UNK] the"


def test_unknown_words_are_told_with_their_letters_and_all_characters_belong_to_a_piece() -> None:
    text = "  The zebra\nun [UNK]affable É "
    found = BY_HAND.measure(text)
    assert found.lengths.tolist() == [5, 6, 1, 2, 6, 1, 2, 4, 3]  # " É ": what is behind the last belongs to it
    assert found.lengths.sum() == len(text)


def test_the_letters_of_unknown_words_cost_more_the_more_there_are() -> None:
    found = BY_HAND.measure("the thez thezthez [UNK] THÉZ\n")
    assert [BY_HAND.piece(token) for token in found.ids] == ["the", *["[UNK]"] * 4, "\n"]
    assert found.unknown.tolist() == [1, 2, 4]  # a written [UNK] is paid for as the token that it is
    assert found.spelling[1] > found.spelling[0] > 0
    assert found.spelling[2] == pytest.approx(found.spelling[0])  # read in small letters
    assert BY_HAND.measure("the").unknown.tolist() == []


@EXAMPLES
@given(text=st.text(st.sampled_from("aÉß İ日\n\t ,.ǅzﬁ\u0301\x00[]SEP"), max_size=25) | st.text(max_size=25))
def test_lengths_add_up_to_the_text(text: str) -> None:
    for tokenizer in (BY_HAND, LEARNED):
        found = tokenizer.measure(text)
        assert found.ids.tolist() == tokenizer.encode(text).tolist()
        assert not len(found.ids) or found.lengths.sum() == len(text)
        assert (found.lengths >= 0).all()


def test_a_learned_vocabulary_joins_what_is_frequent_and_keeps_its_size() -> None:
    assert {*SPECIAL} == set(LEARNED._pieces[: len(SPECIAL)])
    assert "more" in LEARNED._pieces
    small = train_tokenizer("wordpiece", [POEM], vocab_size=60)
    assert small.vocab_size == 60
    assert len(small.encode(POEM)) > len(LEARNED.encode(POEM))
    assert "rare" not in train_tokenizer("wordpiece", ["rare and and\n"])._pieces  # seen once
    assert "rare" in train_tokenizer("wordpiece", ["rare and and\n"], min_count=1)._pieces


def test_a_vocabulary_too_small_for_the_alphabet_keeps_the_frequent_characters() -> None:
    tokenizer = train_tokenizer("wordpiece", ["aa bb aa aa bb cc dd\n"], vocab_size=9)
    assert tokenizer.vocab_size == 9
    assert pieces_of("ab c", tokenizer) == ["a", "##b", "[UNK]"]


def test_lower_case_is_a_choice() -> None:
    lower = train_tokenizer("wordpiece", [POEM], lower_case=True)
    assert lower.encode("THOU ärt").tolist() == lower.encode("thou art").tolist()
    assert "thou" in lower._pieces
    assert "Thou" in LEARNED._pieces


def test_learning_again_gives_the_same_ids() -> None:
    """The trainer of the library counts in an order of its own, another one in each process."""
    code = "import sys; from seqwise.text import train_tokenizer; "
    code += "print(train_tokenizer('wordpiece', [sys.argv[1]])._pieces)"
    found = [
        subprocess.run([sys.executable, "-c", code, POEM], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert found[0] == found[1] == f"{LEARNED._pieces}\n"


def test_a_text_of_no_words_has_a_tokenizer() -> None:
    tokenizer = train_tokenizer("wordpiece", ["\n \n"])
    assert tokenizer.encode("a\n").tolist() == [tokenizer.unknown, tokenizer.boundary]
    assert np.isfinite(tokenizer.measure("a\n").spelling).all()


def test_half_a_surrogate_pair_is_a_question_mark() -> None:
    tokenizer = train_tokenizer("wordpiece", ["a\ud800b a? ?\n"])
    assert pieces_of("\ud800", tokenizer) == ["?"]


@pytest.mark.parametrize(
    ("pieces", "sentence"),
    [
        (["[UNK]", "a"], r"the vocabulary has no \[SEP\]"),
        (["[SEP]", "a"], r"the vocabulary has no \[UNK\]"),
        ([*SPECIAL, "a", "b", "a"], "each piece must have one id; a is there twice"),
    ],
)
def test_a_vocabulary_that_lacks_something_is_told(pieces: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        WordPieceTokenizer.of_pieces(pieces)


def test_what_is_saved_is_refused_where_it_is_something_else() -> None:
    saved = LEARNED.to_dict()
    other = train_tokenizer("bpe", [POEM]).to_dict()
    for damage in ({"separator": "[END]"}, {"backend": saved["backend"][:-9]}, other):
        with pytest.raises(ValueError, match=r".+"):
            WordPieceTokenizer.from_dict({**saved, **damage})
    again = WordPieceTokenizer.from_dict(json.loads(json.dumps(saved)))
    assert again.encode(POEM).tolist() == LEARNED.encode(POEM).tolist()
