"""Running text: predict the next token."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..data.batch import Batch, Tokens
from ..data.batches import Streams, Windows
from ..data.source import TextData, check_learnable, open_text, open_whole
from ..data.store import TokenStore, build_store
from ..data.vocab import Vocab
from ..decoding import DecodingConfig, generate
from ..errors import ConfigError, DataError
from ..evaluation.likelihood import Score, evaluate
from ..models.contract import evaluating
from ..settings import DataConfig, TokenizerConfig, TrainingConfig
from ..text import UNKNOWN_WORD, Tokenizer, train_tokenizer, whole_blocks
from ..wording import counted
from .task import Advance, BatchSource, Facts, Tell

BPE_CHARACTERS = 50_000_000  # as many are enough to choose byte pairs by
BPE_FROM_CHARACTERS = 30_000_000  # from here on byte pairs: more text per step than one can read in characters


class TextTask:
    name = "text"
    title = "running text"
    unit = "tokens"
    metrics = ("nats_per_token", "perplexity", "bits_per_char")
    score_options: tuple[str, ...] = ("view", "context", "stride")
    reads_lines = False
    writes_table = False

    def open(self, config: DataConfig) -> TextData:
        if config.columns:
            raise ConfigError("--columns goes with numbers; this is read as text. Add --task numbers, or drop it.")
        sources = config.source
        return open_text(
            sources if len(sources) > 1 else sources[0], valid=config.valid, test=config.test, split=config.split
        )

    def open_other(self, source: str, split: str | None, vocab: Vocab, config: DataConfig) -> tuple[TextData, str]:
        text = open_whole(source) if split is None and Path(source).exists() else open_text(source)
        return text, split or ("test" if "test" in text.parts else "valid" if "valid" in text.parts else "whole")

    def learn_vocab(self, data: TextData, config: TokenizerConfig, tell: Tell) -> Vocab:
        check_learnable(data)
        return Vocab(_make_tokenizer(config, data, tell))

    def stores(self, data: TextData, vocab: Vocab, advance: Advance = lambda *_: None) -> dict[str, TokenStore]:
        """The parts of the data as token stores, from the cache where they are known."""
        stores = {}
        for part in data.parts:
            done = 0

            def progress(num_chars: int, part: str = part) -> None:
                nonlocal done
                done += num_chars
                advance(f"encoding {part}", done, data.characters[part])

            stores[part] = build_store(data, part, _tokenizer(vocab), progress=progress)
        for part, store in stores.items():
            if store.num_tokens < 2:
                raise DataError(
                    f"{data.name}: the {part} part has {counted(store.num_tokens, 'token')}; give more text."
                )
        return stores

    def store(self, data: TextData, part: str, vocab: Vocab) -> TokenStore:
        return build_store(data, part, _tokenizer(vocab))

    def facts(self, data: TextData, train: TokenStore, vocab: Vocab, minutes: float | None) -> Facts:
        tokenizer = _tokenizer(vocab)
        return Facts(len(train), tokenizer.vocab_size, tokenizer.kind, minutes)

    def batches(self, store: TokenStore, model: Any, config: TrainingConfig) -> BatchSource:
        common = {"context": config.context, "batch_size": config.batch_size, "seed": config.seed}
        if model.carries_state:
            return Streams(store, **common)
        return Windows(store, stride=config.stride, **common)

    def sequences(self, store: TokenStore, model: Any) -> list[Any]:
        return [np.asarray(store.ids, dtype=np.int64)]

    def beginning(self, store: TokenStore, most: int) -> TokenStore:
        return store.first(most)

    def validated(self, store: TokenStore, most: int | None) -> TokenStore:
        return store.first(most)

    def validate(self, model: Any, store: TokenStore, most: int | None) -> float:
        return evaluate(model, self.validated(store, most)).nats_per_token

    def loss_as_value(self, score: Any) -> Callable[[float], float]:
        bits_per_nat = score.tokens / score.characters / math.log(2)  # per character, per token
        return lambda nats: (nats + score.letters_per_token) * bits_per_nat

    def score(
        self,
        model: Any,
        store: TokenStore,
        vocab: Vocab,
        config: DataConfig,
        *,
        scored: str,
        advance: Advance = lambda *_: None,
        **options: Any,
    ) -> Score:
        tokenizer = _tokenizer(vocab)
        about = f"{scored}|tokenizer={tokenizer.kind}:{tokenizer.vocab_size}"
        about += ",lower case" if getattr(tokenizer, "lower_case", False) else ""
        return evaluate(model, store, about=about, **options)

    def sample(self, model: Any, store: Any, vocab: Vocab, config: TrainingConfig) -> str | None:
        decoding = DecodingConfig(max_tokens=config.sample_tokens, seed=config.seed, temperature=0.8)
        with evaluating(model):
            tokens = generate(model, [[_tokenizer(vocab).boundary]], decoding)[0][0].tokens
        return _tokenizer(vocab).decode(tokens)

    def predict(
        self, model: Any, data: TextData, part: str, vocab: Vocab, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """Each line of the text with the most probable hidden state behind each token."""
        if not hasattr(model, "predict"):
            raise ConfigError(
                f"a {type(model).__name__} continues text and has no answers to give; use: seqwise generate."
            )
        store, tokenizer = self.store(data, part, vocab), _tokenizer(vocab)
        tokens = torch.from_numpy(np.asarray(store.ids, dtype=np.int64)).unsqueeze(0)
        states = model.predict(Batch({"tokens": Tokens(tokens)}, {})).answers[0, 1:].tolist()
        line: list[str] = []
        for token, state in zip(store.ids[1:].tolist(), states, strict=True):
            if token == tokenizer.boundary:
                yield " ".join(line)
                line = []
            else:
                line.append(f"{tokenizer.piece(token)}/{state}")
        if line:
            yield " ".join(line)

    def next_command(self, path: str) -> str:
        return f'seqwise generate {path} --prompt "…"'


def _tokenizer(vocab: Vocab) -> Tokenizer:
    assert vocab.tokenizer is not None
    return vocab.tokenizer


def choose_tokenizer(characters: int, *, has_unknown_words: bool) -> tuple[str, str]:
    """A tokenizer for a text, by its size and by whether rare words were taken out of it already, and the reason."""
    if has_unknown_words:
        return "word", "rare words are already <unk>, so this is a text for word models"
    if characters >= BPE_FROM_CHARACTERS:
        return "bpe", f"{characters:,} characters are enough to learn from pieces of words"
    return "char", f"{counted(characters, 'character')}: small models learn most from single characters"


def _make_tokenizer(config: TokenizerConfig, data: TextData, tell: Tell) -> Tokenizer:
    train_part = data.parts["train"]
    kind: str = config.kind
    why = "as asked"
    if kind == "auto":
        beginning = next(iter(train_part.blocks()))
        kind, why = choose_tokenizer(data.characters["train"], has_unknown_words=UNKNOWN_WORD in beginning)
    options: dict[str, Any] = {"min_count": config.min_count} if config.min_count is not None else {}
    if kind in ("word", "bpe") and config.vocab_size is not None:
        options["vocab_size"] = config.vocab_size
    if kind == "word":
        options["lower_case"] = config.lower_case
    blocks: Iterator[str] = whole_blocks(train_part.blocks())
    if kind == "bpe":  # pairs of bytes are learned from a part of a long text, taken evenly
        blocks = islice(blocks, 0, None, -(-data.characters["train"] // BPE_CHARACTERS))
    made = train_tokenizer(kind, blocks, **options)
    names = {"char": "characters", "word": "words", "bpe": "byte pairs"}
    tell(f"tokenizer: {names[kind]}, {made.vocab_size:,} tokens ({why})")
    return made
