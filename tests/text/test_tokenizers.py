"""str -> ids -> str: what went in comes out, and a saved tokenizer is the same tokenizer."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqwise.data.schema import TokenSpec, damage_named
from seqwise.errors import CheckpointError, ConfigError
from seqwise.settings import TokenizerConfig
from seqwise.text import IN_WORDS, TOKENIZERS, Tokenizer, train_tokenizer
from seqwise.text.bpe import BPETokenizer
from seqwise.text.characters import NUM_DIGITS, CharTokenizer
from seqwise.text.words import BOUNDARY, UNKNOWN, WordTokenizer

EXAMPLES = settings(max_examples=50, deadline=None, derandomize=True, database=None)
POEM = "Shall I compare thee to a summer's day?\nThou art more lovely, and more temperate:\n\n" * 4
# line ends after spaces, tabs and other white space teach the byte pairs to join them
CODE = "def f(x):  \n\treturn x \n \n    # naïve 12 €\nx = 1 \ny = 2 \n" * 8

each_kind = pytest.mark.parametrize("kind", TOKENIZERS)


def save_tokenizer(tokenizer: Tokenizer, path: Path) -> None:
    path.write_text(json.dumps(TokenSpec(tokenizer).to_dict()))


def load_tokenizer(path: Path) -> Tokenizer:
    with damage_named(path) as saved:
        return TokenSpec.from_dict(saved).tokenizer


lone_surrogates = st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF, categories=["Cs"])
any_unicode = st.text(st.characters(codec="utf-8"), max_size=40) | st.text(
    "aeé\n\t \x00\x7f\x85\u2028👩‍🚀'", max_size=40
)


@functools.cache
def trained(kind: str, text: str = POEM + CODE) -> Tokenizer:
    return train_tokenizer(kind, [text])


@settings(EXAMPLES, max_examples=25)  # a vocabulary with a far code point takes a table of megabytes
@given(training=any_unicode, text=st.text(st.characters(codec="utf-8") | lone_surrogates, max_size=30))
def test_characters_give_back_any_text_whatever_they_were_trained_on(training: str, text: str) -> None:
    for tokenizer in (CharTokenizer.train([training]), CharTokenizer.train([text]), CharTokenizer.train([])):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert all(0 <= i < tokenizer.vocab_size for i in ids)


@EXAMPLES
@given(text=any_unicode)
def test_byte_pairs_give_back_any_text(text: str) -> None:
    tokenizer = trained("bpe")
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert all(0 <= i < tokenizer.vocab_size for i in ids)


def test_byte_pairs_write_half_a_surrogate_pair_as_a_question_mark() -> None:
    tokenizer = trained("bpe")
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a?b"
    assert train_tokenizer("bpe", ["a\ud800b\n"]).vocab_size >= 256


def test_an_unseen_character_is_spelled_by_the_hexadecimal_digits_of_its_bytes() -> None:
    tokenizer = CharTokenizer.train(["abc"])
    assert tokenizer.encode("é").tolist() == [0xC, 0x3, 0xA, 0x9]
    assert tokenizer.encode("aéb").tolist() == [tokenizer.encode("a")[0], 0xC, 0x3, 0xA, 0x9, tokenizer.encode("b")[0]]


def test_rare_characters_are_spelled_too() -> None:
    tokenizer = CharTokenizer.train(["aaab", "a\n"], min_count=2)
    assert tokenizer.vocab_size == NUM_DIGITS + 2  # the newline always, and a
    assert len(tokenizer.encode("b")) == 2
    assert tokenizer.decode(tokenizer.encode("abab\n")) == "abab\n"


@EXAMPLES
@given(ids=st.lists(st.integers(0, NUM_DIGITS + 2), max_size=20))
def test_whatever_a_model_writes_in_characters_can_be_shown(ids: list[int]) -> None:
    text = CharTokenizer.train(["ab"]).decode(ids)  # half a byte, bytes that are no character
    assert text.count("a") >= ids.count(NUM_DIGITS + 1)


def test_every_kind_can_be_asked_for_and_has_a_name() -> None:
    imported = {"sentencepiece", "pieces", "marian"}  # brought by models of others, and not learned
    assert set(get_args(get_type_hints(TokenizerConfig)["kind"])) == {"auto", *TOKENIZERS} | imported
    assert set(get_args(get_type_hints(TokenizerConfig)["source_kind"])) == {"auto", *TOKENIZERS}
    assert IN_WORDS.keys() == TOKENIZERS.keys()


@each_kind
def test_the_boundary_is_the_newline(kind: str) -> None:
    tokenizer = trained(kind)
    assert tokenizer.encode("\n").tolist() == [tokenizer.boundary]
    assert tokenizer.decode([tokenizer.boundary]) == "\n"
    assert tokenizer.piece(tokenizer.boundary) == "\n"


@each_kind
def test_ids_are_whole_numbers_below_the_vocabulary_size(kind: str) -> None:
    tokenizer = trained(kind)
    ids = tokenizer.encode(POEM + CODE + "日本語 unseen")
    assert ids.dtype == np.int64
    assert ids.ndim == 1
    assert ids.min() >= 0
    assert ids.max() < tokenizer.vocab_size
    assert [tokenizer.piece(i) for i in range(tokenizer.vocab_size)]


@each_kind
def test_an_empty_text_has_no_tokens(kind: str) -> None:
    tokenizer = trained(kind)
    assert tokenizer.encode("").tolist() == []
    assert tokenizer.decode([]) == ""


def test_byte_pairs_join_what_is_frequent_and_stop_at_the_vocabulary_size() -> None:
    tokenizer = BPETokenizer.train([POEM], vocab_size=280)
    assert tokenizer.vocab_size == 280
    assert len(tokenizer.encode(POEM)) < len(POEM)


def test_a_long_text_has_the_byte_pairs_of_the_text_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (POEM + CODE) * 100  # longer than the pieces that the library gets
    tokenizer = trained("bpe")
    in_pieces = tokenizer.encode(text)
    monkeypatch.setattr("seqwise.text.bpe.pieces_of", lambda text, size: [text])
    assert in_pieces.tolist() == tokenizer.encode(text).tolist()


def test_words_seen_too_seldom_are_unknown() -> None:
    tokenizer = WordTokenizer.train(["a a a b b c\n"], min_count=2)
    assert tokenizer.words == ["a", "b"]
    assert tokenizer.decode(tokenizer.encode("a b c d\n")) == "a b <unk> <unk>\n"


def test_a_vocabulary_size_keeps_the_most_frequent_words() -> None:
    tokenizer = WordTokenizer.train(["c b b a a a\n", "d c\n"], vocab_size=4)
    assert tokenizer.vocab_size == 4
    assert tokenizer.words == ["a", "b"]  # beside <unk> and the boundary; b before c as equals go by name


def test_unk_written_in_the_text_is_the_unknown_word() -> None:
    for text in ("the <unk> sat\n", "The <unk>, it sat.\n"):
        tokenizer = WordTokenizer.train([text] * 3)
        assert UNKNOWN in tokenizer.encode(text)
        assert "<unk>" not in tokenizer.words


def test_contractions_in_two_parts_are_the_words_of_a_tokenised_text() -> None:
    prose = "It's said they don't, can't and won't: O'Brien's, 'so' I'd say. She isn’t rock'n'roll\n"
    apart = "It 's said they do n't , ca n't and wo n't : O'Brien 's , ' so ' I 'd say . She is n’t rock'n'roll\n"
    tokenizer = WordTokenizer.train([prose], split_punctuation=True, split_contractions=True)
    assert tokenizer.split(prose) == [*apart.split(), "\n"]
    assert tokenizer.encode(apart).tolist() == tokenizer.encode(prose).tolist()
    assert tokenizer.decode(tokenizer.encode("they do n't, It 's\n")) == "they don't, It's\n"
    again = WordTokenizer.from_dict(json.loads(json.dumps(tokenizer.to_dict())))
    assert again.encode(apart).tolist() == tokenizer.encode(prose).tolist()
    whole = WordTokenizer.train([prose], split_punctuation=True)
    assert "don't" in whole.words
    assert "split_contractions" not in whole.to_dict()


def test_lower_case_is_a_choice() -> None:
    lower = WordTokenizer.train(["The cat the CAT\n"], lower_case=True)
    assert lower.words == ["cat", "the"]
    assert lower.encode("THE the").tolist() == lower.encode("the The").tolist()
    assert "The" in WordTokenizer.train(["The cat the CAT\n"]).words


def test_prose_is_split_at_its_punctuation_and_comes_back_without_extra_spaces() -> None:
    text = "Well, it's (almost) done; is it? Yes!\n"
    tokenizer = WordTokenizer.train([text])
    assert tokenizer.split_punctuation
    assert {",", "it's", "(", "almost", "Yes", "!"} <= set(tokenizer.words)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_text_that_is_tokenised_already_is_split_at_spaces_only() -> None:
    line = " the cat said , it 's <unk> ; do n't ask-why ( it left ) , and the other cats of N:N did not ask at all .\n"
    text = " mr. brown ," + line + line + line
    tokenizer = WordTokenizer.train([text])
    assert not tokenizer.split_punctuation
    assert {"mr.", "'s", "n't", "ask-why", "N:N"} <= set(tokenizer.words)
    assert len(tokenizer.encode(text)) == len(text.split()) + 3  # and the line ends
    assert UNKNOWN in tokenizer.encode(text)


def test_the_decision_about_punctuation_can_be_given() -> None:
    assert "day?" in WordTokenizer.train([POEM], split_punctuation=False).words
    assert "." in WordTokenizer.train(["a b c.d\n"], split_punctuation=True).words


def test_every_newline_is_a_word_of_its_own() -> None:
    for split_punctuation in (True, False):
        tokenizer = WordTokenizer.train(["a b\n"], split_punctuation=split_punctuation)
        assert tokenizer.encode("a\n\n  b \n").tolist().count(BOUNDARY) == 3


@EXAMPLES
@given(lines=st.lists(st.lists(st.sampled_from(["a", "b,", "c", "(d"]), max_size=4), max_size=5))
def test_words_between_single_spaces_come_back_as_they_were(lines: list[list[str]]) -> None:
    text = "".join(" ".join(words) + "\n" for words in lines)
    tokenizer = WordTokenizer.train(["a b, c (d\n"], split_punctuation=False)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@each_kind
def test_a_saved_tokenizer_gives_the_same_ids(kind: str, tmp_path: Path) -> None:
    tokenizer = trained(kind)
    save_tokenizer(tokenizer, tmp_path / "tokenizer.json")
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    text = POEM + CODE + "日本語 unseen\x00\n"
    assert loaded.encode(text).tolist() == tokenizer.encode(text).tolist()
    assert loaded.decode(loaded.encode(text)) == tokenizer.decode(tokenizer.encode(text))
    assert (loaded.kind, loaded.vocab_size, loaded.boundary) == (kind, tokenizer.vocab_size, tokenizer.boundary)


def test_the_choices_of_a_word_tokenizer_are_saved(tmp_path: Path) -> None:
    tokenizer = WordTokenizer.train(["Well, yes.\n"], lower_case=True)
    save_tokenizer(tokenizer, tmp_path / "tokenizer.json")
    assert load_tokenizer(tmp_path / "tokenizer.json").encode("WELL, no").tolist() == [
        *tokenizer.encode("well"),
        *tokenizer.encode(","),
        UNKNOWN,
    ]


@pytest.mark.parametrize("kind", ["char", "word"])
def test_a_text_with_half_a_surrogate_pair_has_a_tokenizer_that_can_be_saved(kind: str, tmp_path: Path) -> None:
    tokenizer = train_tokenizer(kind, ["a \ud800 b\n"])
    save_tokenizer(tokenizer, tmp_path / "tokenizer.json")
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    assert loaded.encode("a \ud800").tolist() == tokenizer.encode("a \ud800").tolist()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "5",
        "{}",
        '{"kind": "char"}',
        '{"kind": ["char"]}',
        '{"kind": "chars", "characters": ["\\n"]}',
        '{"kind": "char", "characters": ["a", "b"]}',
        '{"kind": "char", "characters": ["\\n", "ab"]}',
        '{"kind": "char", "characters": [10]}',
        '{"kind": "char", "characters": "\\nabc"}',
        '{"kind": "char", "characters": ["\\n", "a", "a"]}',
        '{"kind": "word", "words": 5}',
        '{"kind": "word", "words": [5]}',
        '{"kind": "word", "words": ["a", "b", "a"]}',
        '{"kind": "word", "words": ["<unk>"]}',
        "[" * 100_000,
        '{"kind": "word", "words": ' + "[" * 500 + "]" * 500 + "}",
        json.dumps({"kind": "bpe", "backend": "[" * 100_000}),
        '{"kind": "word", "words": ["a"], "colour": "red"}',
        '{"kind": "bpe", "backend": "not a tokenizer"}',
        '{"kind": "bpe", "backend": 5}',
        b"\xff\xfe",
    ],
)
def test_a_damaged_tokenizer_is_named(content: str | bytes, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CheckpointError) as caught:
        load_tokenizer(path)
    assert str(caught.value) == f"{path}: damaged: not what seqwise wrote. Restore it or train again."


@each_kind
def test_a_tokenizer_file_that_was_cut_off_is_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    save_tokenizer(trained(kind), path)
    whole = json.loads(path.read_text())
    path.write_text(path.read_text()[:-10])
    with pytest.raises(CheckpointError, match="damaged"):
        load_tokenizer(path)
    if kind == "bpe":  # the file of the library inside ours
        path.write_text(json.dumps({"kind": "bpe", "backend": whole["backend"][:-10]}))
        with pytest.raises(CheckpointError, match="damaged"):
            load_tokenizer(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda vocab: vocab.update({max(vocab, key=vocab.get): 100_000}),  # a gap
        lambda vocab: vocab.update({"a": vocab["b"]}),  # two tokens of one id
        lambda vocab: vocab.pop("Ċ"),  # no newline
        lambda vocab: vocab.update({"Ã": len(vocab)}),  # a byte without an id of its own
    ],
)
def test_byte_pairs_with_ids_that_no_model_has_rows_for_are_named(damage: Any, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    save_tokenizer(trained("bpe"), path)
    whole = json.loads(path.read_text())
    backend = json.loads(whole["backend"])
    backend["model"]["merges"] = []
    damage(backend["model"]["vocab"])
    path.write_text(json.dumps({"kind": "bpe", "backend": json.dumps(backend)}))
    with pytest.raises(CheckpointError, match="damaged: not what seqwise wrote"):
        load_tokenizer(path)


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: cannot be read: No such file"):
        load_tokenizer(tmp_path / "tokenizer.json")


def test_an_unknown_tokenizer_gets_the_nearest_name() -> None:
    with pytest.raises(ConfigError) as caught:
        train_tokenizer("chr", ["a"])
    assert str(caught.value) == 'unknown tokenizer "chr". Did you mean "char"?'


WORDS = st.lists(
    st.sampled_from(["a", "b", "ab", "ß", "日本", "<unk>", "\n", "x" * 40, "q\u00a0r", "\u2003", "\x1c", "\t"])
)


@given(st.lists(st.tuples(WORDS, st.sampled_from([" ", "  ", "\n", " \n ", "\r", "\x0b"])), max_size=30))
def test_long_texts_of_words_are_encoded_as_short_ones_are(parts: list[tuple[list[str], str]]) -> None:
    """The compiled index and the pattern agree on any text, rare white space included."""
    tokenizer = WordTokenizer(["a", "b", "ab", "日本", "x" * 40], split_punctuation=False)
    text = "".join(" ".join(words) + space for words, space in parts)
    long = text + " a" * 600
    assert tokenizer.encode(long).tolist() == [*tokenizer._read_plainly(text)[0], *[tokenizer._id_of["a"]] * 600]
