"""The next token of running text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch

from ..data.batch import Batch, Tokens
from ..data.batches import Streams, Windows
from ..data.schema import Schema, TokenSpec
from ..data.source import TextData
from ..data.store import TokenStore
from ..decoding import DecodingConfig, generate
from ..errors import ConfigError
from ..evaluation.likelihood import Score, evaluate
from ..models.contract import Answerer, LanguageModel, evaluating
from ..settings import DataConfig, TrainingConfig
from ..text import Tokenizer
from .goal import BatchSource, Facts, OnProgress


class NextTokenGoal:
    unit = "tokens"
    metrics = ("nats_per_token", "perplexity", "bits_per_char")
    score_options: tuple[str, ...] = ("view", "context", "stride")
    reads_lines = False
    writes_table = False

    def facts(self, data: TextData, train: TokenStore, schema: Schema, minutes: float | None) -> Facts:
        tokenizer = _tokenizer(schema)
        return Facts(len(train), tokenizer.vocab_size, tokenizer.kind, minutes)

    def batches(self, store: TokenStore, model: LanguageModel, config: TrainingConfig) -> BatchSource:
        common = {"context": config.context, "batch_size": config.batch_size, "seed": config.seed}
        if model.carries_state:
            return Streams(store, **common)
        return Windows(store, stride=config.stride, **common)

    def sequences(self, store: TokenStore, model: LanguageModel) -> list[Any]:
        return [np.asarray(store.ids, dtype=np.int64)]

    def take(self, store: TokenStore, limit: int) -> TokenStore:
        return store.take(limit)

    def validated(self, store: TokenStore, limit: int | None) -> TokenStore:
        return store.take(limit)

    def validate(self, model: LanguageModel, store: TokenStore, limit: int | None) -> float:
        return evaluate(model, self.validated(store, limit)).nats_per_token

    def loss_as_value(self, score: Any) -> Callable[[float], float]:
        bits_per_nat = score.tokens / score.characters / math.log(2)  # per character, per token
        return lambda nats: (nats + score.letters_per_token) * bits_per_nat

    def score(
        self,
        model: LanguageModel,
        store: TokenStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> Score:
        tokenizer = _tokenizer(schema)
        scored = f"{scored}|tokenizer={tokenizer.kind}:{tokenizer.vocab_size}"
        scored += ",lower case" if getattr(tokenizer, "lower_case", False) else ""
        return evaluate(model, store, scored=scored, **options)

    def beginning_of_text(self, data: TextData, part: str, num_chars: int) -> str:
        return "".join(islice(data.parts[part].blocks(), 8))[:num_chars]

    def sample(self, model: LanguageModel, store: TokenStore, schema: Schema, config: TrainingConfig) -> str | None:
        decoding = DecodingConfig(max_tokens=config.sample_tokens, seed=config.seed, temperature=0.8)
        with evaluating(model):
            tokens = generate(model, [[_tokenizer(schema).boundary]], decoding)[0][0].tokens
        return _tokenizer(schema).decode(tokens)

    def predicted(self, parts: Sequence[str], part: str) -> str:
        return part

    def predict(
        self, model: LanguageModel, store: TokenStore, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """Each line of the text with the most probable hidden state behind each token."""
        if not isinstance(model, Answerer):
            raise ConfigError(
                f"a {type(model).__name__} continues text and has no answers to give; use: seqwise generate."
            )
        tokenizer = _tokenizer(schema)
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


def _tokenizer(schema: Schema) -> Tokenizer:
    return schema.target("tokens", TokenSpec).tokenizer
