"""What sides of pairs are made of, and what is kept of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqwise.data.pairs import PairData
from seqwise.data.schema import SEQUENCE, Schema, pair_tokenizers
from seqwise.errors import ConfigError
from seqwise.settings import TokenizerConfig
from seqwise.tasks.pairs import PairsTask

TASK = PairsTask()
RANDOM = np.random.default_rng(0)


def data_of(pairs: list[tuple[str, str]]) -> PairData:
    return PairData("toy", {"train": pairs, "valid": pairs[:3], "test": pairs[:3]}, "ff", "split as given", [])


def learn(pairs: list[tuple[str, str]], **settings: Any) -> Schema:
    return TASK.schema(data_of(pairs), TokenizerConfig(**settings), lambda _: None)


def is_joint(schema: Schema) -> bool:
    source, target = pair_tokenizers(schema)
    return source is target


def sentences(words: list[str], num: int = 800) -> list[str]:
    return [" ".join(RANDOM.choice(words, size=8)) + "." for _ in range(num)]


ENDINGS = (["ing", "ed", "ly", "er", "or", "an", "us", "um"], ["en", "lich", "ung", "heit", "keit", "te", "ern", "eln"])
STEMS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrs"]
MANY = [[stem + ending for stem in STEMS for ending in endings] for endings in ENDINGS]


def test_sentences_are_made_of_byte_pairs_of_one_vocabulary() -> None:
    schema = learn(list(zip(sentences(MANY[0]), sentences(MANY[1]), strict=True)))
    source, target = pair_tokenizers(schema)
    assert source is target
    assert target.kind == "bpe"
    assert (schema.kind, list(schema.specs)) == (SEQUENCE, ["tokens"])


def test_short_strings_are_made_of_characters_and_few_words_that_come_often_of_words() -> None:
    spellings = ["".join(RANDOM.choice(list("abcdefgh"), size=6)) for _ in range(600)]
    sounds = [" ".join(RANDOM.choice(["AH0", "B", "IY1", "K", "S"], size=5)) for _ in range(600)]
    schema = learn(list(zip(spellings, sounds, strict=True)))
    source, target = pair_tokenizers(schema)
    assert (source.kind, target.kind) == ("char", "word")
    assert target.decode(target.encode(sounds[0])) == sounds[0]
    turned = learn([(word, word[::-1]) for word in spellings])
    assert is_joint(turned)
    assert pair_tokenizers(turned)[1].kind == "char"
    other_letters = learn([(word, word.translate(str.maketrans("abcdefgh", "äöüßéèêç"))) for word in spellings])
    assert not is_joint(other_letters)


def test_what_is_asked_for_wins() -> None:
    pairs = [("ab cd", "CD AB"), ("cd", "CD"), ("ab", "AB")]
    assert pair_tokenizers(learn(pairs, kind="word"))[0].kind == "word"
    mixed = learn(pairs, kind="word", source_kind="char")
    assert [tokenizer.kind for tokenizer in pair_tokenizers(mixed)] == ["char", "word"]
    assert is_joint(learn(pairs, kind="char", joint=True))
    assert not is_joint(learn([("ab", "ba")], kind="char", joint=False))
    with pytest.raises(ConfigError, match=r"tokenizer\.joint: the source is made of char, the target of word"):
        learn(pairs, kind="word", source_kind="char", joint=True)


@pytest.mark.parametrize("joint", [True, False])
def test_a_vocabulary_is_loaded_as_it_was_saved(tmp_path: Path, joint: bool) -> None:
    schema = learn([("abc", "cba"), ("äb", "bä")], kind="char", joint=joint)
    schema.save(tmp_path)
    again = Schema.load(tmp_path)
    assert is_joint(again) == joint
    assert (again.inputs, again.targets) == (schema.inputs, schema.targets)
    for before, now in zip(pair_tokenizers(schema), pair_tokenizers(again), strict=True):
        assert now.encode("äbc").tolist() == before.encode("äbc").tolist()
