"""Pairs of sequences: read a source, write its target. Translation, spelling to sound, dialogue, summaries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..data.pair_store import PairStore, build_pair_store
from ..data.pairs import PairData, as_trained, open_pairs, open_whole_pairs
from ..data.schema import SEQUENCE, Schema, pair_schema, pair_tokenizers
from ..errors import ConfigError, DataError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig
from ..text import Tokenizer, train_tokenizer

MAX_DISTINCT_WORDS = 300  # so many at most, each often: words (phonemes, number words) are the letters of this side
OFTEN = 20
SENTENCE_CHARACTERS, MIN_SENTENCE_VOCAB = 25, 1000  # from here on a side is made of sentences
MAX_VOCAB, CHARACTERS_PER_PAIR = 8000, 750  # byte pairs; text for each


class PairsTask:
    name = "pairs"
    title = "pairs of sequences"
    kinds = (SEQUENCE,)
    goal = None
    options: tuple[str, ...] = ()

    def open(self, config: DataConfig) -> PairData:
        return open_pairs(
            config.source, valid=config.valid, test=config.test, split=config.split, columns=config.columns
        )

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[PairData, str]:
        """A file, two files with a comma between, a folder, or the name of a set."""
        named = [source] if Path(source).exists() else source.split(",")
        names, columns = as_trained(named, config.source, config.columns)
        if split is None and all(Path(name).is_file() for name in names):
            return open_whole_pairs(names, columns), "whole"
        return open_pairs(names, columns=columns), split or "test"

    def schema(self, data: PairData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        if base is not None and base.kind == SEQUENCE:
            return base
        sides = [[pair[side] for pair in data.parts["train"]] for side in range(2)]
        kinds = [_kind_of(side) for side in sides]
        asked = [config.source_kind if config.source_kind != "auto" else config.kind, config.kind]
        kinds = [kind if wish == "auto" else wish for kind, wish in zip(kinds, asked, strict=True)]
        is_joint = config.joint if config.joint is not None else _share_letters(kinds, sides)
        if is_joint and kinds[0] != kinds[1]:
            raise ConfigError(f"tokenizer.joint: the source is made of {kinds[0]}, the target of {kinds[1]}; drop one.")
        target = _learn(kinds[1], [*sides[0], *sides[1]] if is_joint else sides[1], config)
        source = target if is_joint else _learn(kinds[0], sides[0], config)
        how = f"{kinds[0]}, {source.vocab_size:,} tokens"
        tell(f"tokens: {how}, for both sides" if is_joint else f"tokens: {how}; {kinds[1]}, {target.vocab_size:,}")
        return pair_schema(source, target)

    def stores(self, data: PairData, schema: Schema, on_progress: OnProgress = lambda *_: None) -> dict[str, PairStore]:
        return {part: self.store(data, part, schema) for part in data.parts}

    def store(self, data: PairData, part: str, schema: Schema) -> PairStore:
        source, target = pair_tokenizers(schema)
        return build_pair_store(data.parts[part], source, target)


def _kind_of(side: Sequence[str]) -> str:
    """What a side is made of: few words that come often, sentences, or short strings."""
    words = [word for text in side for word in text.split()]
    distinct = len(set(words))
    if distinct <= MAX_DISTINCT_WORDS and len(words) >= OFTEN * distinct and len(words) >= 2 * len(side):
        return "word"
    characters = sum(map(len, side)) / len(side)
    has_words = len(words) >= 4 * len(side) and distinct >= MIN_SENTENCE_VOCAB
    return "bpe" if has_words and characters >= SENTENCE_CHARACTERS else "char"


def _share_letters(kinds: list[str], sides: list[list[str]]) -> bool:
    """Whether one vocabulary would serve both sides: more than half of the characters of the smaller one are common."""
    if kinds[0] != kinds[1] or kinds[0] == "word":
        return False
    letters = [set("".join(side)) for side in sides]
    return 2 * len(letters[0] & letters[1]) > min(map(len, letters))


def _learn(kind: str, texts: Sequence[str], config: TokenizerConfig) -> Tokenizer:
    options: dict[str, Any] = {"min_count": config.min_count} if config.min_count is not None else {}
    if kind in ("bpe", "wordpiece"):
        by_text = max(500, sum(map(len, texts)) // CHARACTERS_PER_PAIR)
        options["vocab_size"] = config.vocab_size or min(MAX_VOCAB, by_text)
    elif kind == "word" and config.vocab_size is not None:
        options["vocab_size"] = config.vocab_size
    if kind in ("word", "wordpiece"):
        options["lower_case"] = bool(config.lower_case)
    if not texts:
        raise DataError("there is no text to learn tokens from.")
    return train_tokenizer(kind, (text + "\n" for text in texts), **options)
