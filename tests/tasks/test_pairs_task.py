"""What sides of pairs are made of, how they are searched, and what is kept of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqwise.data.pairs import PairData
from seqwise.errors import ConfigError
from seqwise.goals.sequence import search_settings
from seqwise.settings import TokenizerConfig
from seqwise.tasks.pairs import PairsTask

TASK = PairsTask()
RANDOM = np.random.default_rng(0)


def data_of(pairs: list[tuple[str, str]]) -> PairData:
    return PairData("toy", {"train": pairs, "valid": pairs[:3], "test": pairs[:3]}, "ff", "split as given", [])


def learn(pairs: list[tuple[str, str]], **settings: Any) -> Vocab:
    return TASK.learn_vocab(data_of(pairs), TokenizerConfig(**settings), lambda _: None)


def sentences(words: list[str], num: int = 800) -> list[str]:
    return [" ".join(RANDOM.choice(words, size=8)) + "." for _ in range(num)]


ENDINGS = (["ing", "ed", "ly", "er", "or", "an", "us", "um"], ["en", "lich", "ung", "heit", "keit", "te", "ern", "eln"])
STEMS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrs"]
MANY = [[stem + ending for stem in STEMS for ending in endings] for endings in ENDINGS]


def test_sentences_are_made_of_byte_pairs_of_one_vocabulary() -> None:
    vocab = learn(list(zip(sentences(MANY[0]), sentences(MANY[1]), strict=True)))
    assert vocab.is_joint
    assert vocab.tokenizer is not None
    assert vocab.tokenizer.kind == "bpe"
    interface = interface_of(vocab)
    assert (interface.task, interface.is_joint, interface.vocab_size) == ("pairs", True, vocab.tokenizer.vocab_size)


def test_short_strings_are_made_of_characters_and_few_words_that_come_often_of_words() -> None:
    spellings = ["".join(RANDOM.choice(list("abcdefgh"), size=6)) for _ in range(600)]
    sounds = [" ".join(RANDOM.choice(["AH0", "B", "IY1", "K", "S"], size=5)) for _ in range(600)]
    vocab = learn(list(zip(spellings, sounds, strict=True)))
    assert vocab.source_tokenizer is not None
    assert vocab.tokenizer is not None
    assert (vocab.source_tokenizer.kind, vocab.tokenizer.kind, vocab.is_joint) == ("char", "word", False)
    assert vocab.tokenizer.decode(vocab.tokenizer.encode(sounds[0])) == sounds[0]
    turned = learn([(word, word[::-1]) for word in spellings])
    assert (turned.is_joint, turned.tokenizer.kind) == (True, "char")  # type: ignore[union-attr]
    other_letters = learn([(word, word.translate(str.maketrans("abcdefgh", "äöüßéèêç"))) for word in spellings])
    assert not other_letters.is_joint


def test_what_is_asked_for_wins() -> None:
    pairs = [("ab cd", "CD AB"), ("cd", "CD"), ("ab", "AB")]
    assert learn(pairs, kind="word").source_tokenizer.kind == "word"  # type: ignore[union-attr]
    mixed = learn(pairs, kind="word", source_kind="char")
    assert (mixed.source_tokenizer.kind, mixed.tokenizer.kind) == ("char", "word")  # type: ignore[union-attr]
    assert learn(pairs, kind="char", joint=True).is_joint
    assert not learn([("ab", "ba")], kind="char", joint=False).is_joint
    with pytest.raises(ConfigError, match=r"tokenizer\.joint: the source is made of char, the target of word"):
        learn(pairs, kind="word", source_kind="char", joint=True)


@pytest.mark.parametrize("joint", [True, False])
def test_a_vocabulary_is_loaded_as_it_was_saved(tmp_path: Path, joint: bool) -> None:
    vocab = learn([("abc", "cba"), ("äb", "bä")], kind="char", joint=joint)
    vocab.save(tmp_path)
    again = Vocab.load(tmp_path, "pairs")
    assert again.is_joint == joint
    assert interface_of(again) == interface_of(vocab)
    assert again.source_tokenizer.encode("äbc").tolist() == vocab.source_tokenizer.encode("äbc").tolist()  # type: ignore[union-attr]


def test_a_beam_is_five_wide_where_the_vocabulary_is_and_nothing_else_is_asked() -> None:
    vocab = learn([("ab", "ba")], kind="char")
    search = search_settings(vocab)
    assert (search.method, search.beam_width, search.length_form, search.length_penalty) == ("beam", 5, "gnmt", 1.0)
    assert search.stop == vocab.tokenizer.boundary  # type: ignore[union-attr]
    assert search_settings(vocab, beam_width=3, length_penalty=None).beam_width == 3
    assert search_settings(vocab, num_results=8).beam_width == 8
    words = Vocab(*[learn([("a", "b"), ("b", "a")], kind="word").tokenizer] * 2)
    assert search_settings(words).beam_width == words.tokenizer.vocab_size == 4  # type: ignore[union-attr]


def test_how_long_a_target_may_be_is_found_in_the_training_part() -> None:
    pairs = [("ab", "abab")] * 10 + [("abc", "ab")] * 10
    vocab = learn(pairs, kind="char")
    store = TASK.store(data_of(pairs), "train", vocab)
    facts = TASK.facts(data_of(pairs), store, vocab, None)
    assert facts.data["length_ratio"] == pytest.approx(5 / 3, abs=0.01)  # four letters and the end, of two and the end
    assert (facts.train_tokens, facts.length) == (10 * 5 + 10 * 3, 6)
