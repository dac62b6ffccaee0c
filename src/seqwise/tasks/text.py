"""Running text: predict the next token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from ..data.label_files import looks_labelled
from ..data.labelled import has_roles
from ..data.labelled_text import open_labelled_text
from ..data.schema import NEXT_TOKEN, Schema, TokenSpec, text_schema
from ..data.several_texts import join_texts
from ..data.source import TextData, check_learnable, open_text, open_whole
from ..data.store import TokenStore, build_store
from ..errors import ConfigError, DataError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig
from ..text import IN_WORDS, UNKNOWN_WORD, Tokenizer, train_tokenizer, whole_blocks
from ..wording import counted

BPE_CHARACTERS = 50_000_000  # as many are enough to choose byte pairs by
BPE_FROM_CHARACTERS = 30_000_000  # from here on byte pairs: more text per step than one can read in characters


class TextTask:
    name = "text"
    title = "running text"
    kinds = (NEXT_TOKEN,)
    goal = None
    options = ("tokenizers",)

    def open(self, config: DataConfig) -> TextData:
        if len(config.source) > 1 and not all(Path(source).exists() for source in config.source):
            if config.valid or config.test or config.split:
                raise ConfigError("several data sets bring their own parts; drop --valid, --test and --split-at.")
            return join_texts([self.open(replace(config, source=[source])) for source in config.source])
        if has_roles(config.columns) or looks_labelled(config.source):
            given = {"valid": config.valid, "test": config.test, "split": config.split}
            return open_labelled_text(config.source, columns=config.columns, **given)
        if config.columns:
            raise ConfigError("--columns goes with numbers and pairs; this is read as text. Add --task, or drop it.")
        sources = config.source
        return open_text(
            sources if len(sources) > 1 else sources[0], valid=config.valid, test=config.test, split=config.split
        )

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[TextData, str]:
        text = open_whole(source) if split is None and Path(source).exists() else open_text(source)
        return text, split or ("test" if "test" in text.parts else "valid" if "valid" in text.parts else "whole")

    def schema(self, data: TextData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        check_learnable(data)
        if base is not None and base.kind == NEXT_TOKEN:
            return base
        if base is not None and "tokens" in base.inputs:
            return text_schema(base.input("tokens", TokenSpec).tokenizer)
        return text_schema(make_tokenizer(config, data, tell))

    def stores(
        self, data: TextData, schema: Schema, on_progress: OnProgress = lambda *_: None
    ) -> dict[str, TokenStore]:
        """The parts of the data as token stores, from the cache where they are known."""
        stores = {}
        for part in data.parts:
            done = 0

            def count(num_chars: int, part: str = part) -> None:
                nonlocal done
                done += num_chars
                on_progress(f"encoding {part}", done, data.characters[part])

            stores[part] = build_store(data, part, _tokenizer(schema), on_progress=count)
        for part, store in stores.items():
            if store.num_tokens < 2:
                raise DataError(
                    f"{data.name}: the {part} part has {counted(store.num_tokens, 'token')}; give more text."
                )
        return stores

    def store(self, data: TextData, part: str, schema: Schema) -> TokenStore:
        return build_store(data, part, _tokenizer(schema))


def _tokenizer(schema: Schema) -> Tokenizer:
    return schema.input("tokens", TokenSpec).tokenizer


def choose_tokenizer(characters: int, *, has_unknown_words: bool) -> tuple[str, str]:
    """A tokenizer for a text, by its size and by whether rare words were taken out of it already, and the reason."""
    if has_unknown_words:
        return "word", "rare words are already <unk>, so this is a text for word models"
    if characters >= BPE_FROM_CHARACTERS:
        return "bpe", f"{characters:,} characters are enough to learn from pieces of words"
    return "char", f"{counted(characters, 'character')}: small models learn most from single characters"


def make_tokenizer(config: TokenizerConfig, data: TextData, tell: Tell) -> Tokenizer:
    train_part = data.parts["train"]
    kind: str = config.kind
    why = "as asked"
    if kind == "auto":
        beginning = next(iter(train_part.blocks()))
        kind, why = choose_tokenizer(data.characters["train"], has_unknown_words=UNKNOWN_WORD in beginning)
    options: dict[str, Any] = {"min_count": config.min_count} if config.min_count is not None else {}
    if kind != "char" and config.vocab_size is not None:
        options["vocab_size"] = config.vocab_size
    if kind in ("word", "wordpiece"):
        options["lower_case"] = bool(config.lower_case)
    if kind == "word":
        options["split_contractions"] = config.split_contractions
    blocks: Iterator[str] = whole_blocks(train_part.blocks())
    if kind in ("bpe", "wordpiece"):  # pairs are learned from a part of a long text, taken evenly
        blocks = islice(blocks, 0, None, -(-data.characters["train"] // BPE_CHARACTERS))
    made = train_tokenizer(kind, blocks, **options)
    tell(f"tokenizer: {IN_WORDS[kind]}, {made.vocab_size:,} tokens ({why})")
    return made
