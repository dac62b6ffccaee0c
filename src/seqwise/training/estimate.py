"""What training on a text would cost: measured on a few steps of the default model, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..data.batches import Windows
from ..data.check import CheckResult
from ..data.schema import NEXT_TOKEN, text_schema
from ..data.store import TokenStore
from ..goals.goal import Facts
from ..models import family, num_parameters
from ..models.ngram import counting_bytes
from ..settings import TrainingConfig
from ..tasks.text import choose_tokenizer
from ..text import IN_WORDS
from ..text.symbols import SymbolTokenizer
from .sizing import DEFAULT_MINUTES, suggest
from .timing import seconds_per_step

CHARS_PER_BYTE_PAIR = 3.5  # English, vocabulary of a few thousand


@dataclass(frozen=True)
class Estimate:
    tokenizer: str
    tokens: int
    """Of the training part; byte pairs are guessed at 3.5 characters each."""
    store_bytes: int
    parameters: int
    training_bytes: int
    """Weights, gradients, the optimiser's memory, and roughly the activations of a batch."""
    seconds_per_epoch: float
    counting_bytes: int
    """What an n-gram of the default order needs while it counts, at most."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def sentences(self) -> Iterator[str]:
        minutes = self.seconds_per_epoch / 60
        passes = DEFAULT_MINUTES / max(1e-9, minutes)
        yield f"tokens: about {self.tokens:,} in train ({self.tokenizer}), {self.store_bytes / 1e6:,.1f} MB on disk"
        yield (
            f"time: one pass with the default gpt ({self.parameters:,} weights) takes about {minutes:,.1f} minutes "
            f"here, so the default {DEFAULT_MINUTES:g} minutes read the text {passes:.2g} times"
        )
        yield (
            f"memory: about {self.training_bytes / 1e6:,.0f} MB for the gpt; "
            f"up to {self.counting_bytes / 1e6:,.0f} MB while an n-gram is counted"
        )


def estimate(result: CheckResult) -> Estimate:
    train = result.parts["train"]
    kind, _ = choose_tokenizer(train.characters, has_unknown_words=result.has_unknown_words)
    per_token = {"char": 1.0, "word": train.characters / max(1, train.words + train.lines), "bpe": CHARS_PER_BYTE_PAIR}
    vocab_size = {"char": result.distinct_characters + 17, "word": result.distinct_words + 2, "bpe": 4096}[kind]
    tokens = max(2, round(train.characters / per_token[kind]))
    facts = Facts(tokens, vocab_size, kind, DEFAULT_MINUTES)
    model_settings, training_settings = suggest("gpt", NEXT_TOKEN, facts)
    row = family("gpt")
    model = row.build(row.config(**model_settings), text_schema(SymbolTokenizer(vocab_size)))
    config = TrainingConfig(steps=1, **training_settings)
    few = min(tokens, 64 * config.batch_size * config.context)
    store = TokenStore(np.random.default_rng(0).integers(vocab_size, size=few + 1), few)
    windows = Windows(store, context=config.context, batch_size=config.batch_size)
    per_step = seconds_per_step(model, windows, config, max_seconds=1.0).each
    weights = num_parameters(model)
    activations = (
        4
        * windows.batch_size
        * windows.context
        * (20 * model.body.config.num_layers * model.body.config.model_dim + 3 * vocab_size)
    )
    order = suggest("ngram", NEXT_TOKEN, facts)[0]["order"]
    return Estimate(
        tokenizer=IN_WORDS[kind],
        tokens=tokens,
        store_bytes=tokens * (2 if vocab_size <= 1 << 16 else 4),
        parameters=weights,
        training_bytes=16 * weights + activations,
        seconds_per_epoch=per_step * tokens / (windows.batch_size * windows.context),
        counting_bytes=counting_bytes(tokens, order),
    )
