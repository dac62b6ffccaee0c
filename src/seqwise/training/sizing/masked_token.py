"""Of networks that fill in hidden words: as many layers as the time has use for, and rows of a hundred tokens or so."""

from __future__ import annotations

from typing import Any

from ...goals.goal import Facts
from . import pictures_and_words
from .common import DEFAULT_MINUTES
from .next_token import SHORT_TEXT

LONG_MINUTES = 20.0


def sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    if facts.picture is not None:
        return pictures_and_words.sizes(facts, pooling="first", context=pictures_and_words.PRETRAINED_ON)
    minutes = facts.minutes or DEFAULT_MINUTES
    context = 128 if facts.tokenizer != "char" else 256
    if facts.train_tokens < SHORT_TEXT:
        model: dict[str, Any] = {"num_layers": 2, "model_dim": 96, "num_heads": 4, "context": min(64, context)}
    elif minutes < LONG_MINUTES:
        model = {"num_layers": 3, "model_dim": 160, "num_heads": 4, "context": context}
    else:
        model = {"num_layers": 4, "model_dim": 256, "num_heads": 4, "context": context}
    training = {
        "batch_size": max(1, min(32, facts.train_tokens // (4 * model["context"]))),
        "context": model["context"],
        "optimizer": "adamw",
        "learning_rate": 1e-3,
        "weight_decay": 0.01,
        "beta2": 0.98,
        "schedule": "linear",
        "warmup_steps": 100,
        "num_samples": 0,
    }
    return {**model, "pooling": "first", "dropout": 0.1 if minutes >= LONG_MINUTES else 0.0}, training
