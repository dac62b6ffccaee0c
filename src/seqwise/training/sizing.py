"""Sizes by rule: what model and batch suit this much text and this much time. Every choice can be set by hand.

The rules come from runs on 2 CPU cores (docs/lab-notebook.md): in half a minute a narrow network with a short context
learns most; with more time, width, depth and context grow, and dropout comes in where the text is read many times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

DEFAULT_MINUTES = 2.0
BPE_FROM_CHARACTERS = 30_000_000  # from here on byte pairs: more text per step than one can read in characters


@dataclass(frozen=True)
class Facts:
    """What sizes follow from."""

    train_tokens: int
    vocab_size: int
    tokenizer: str
    minutes: float | None
    """None where the budget is in steps or epochs."""


def choose_tokenizer(characters: int, *, has_unknown_words: bool) -> tuple[str, str]:
    """A tokenizer for a text, by its size and by whether rare words were taken out of it already, and the reason."""
    if has_unknown_words:
        return "word", "rare words are already <unk>, so this is a text for word models"
    if characters >= BPE_FROM_CHARACTERS:
        return "bpe", f"{characters:,} characters are enough to learn from pieces of words"
    return "char", f"{characters:,} characters: small models learn most from single characters"


def suggest(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings for the sections model and training."""
    return {"ngram": _ngram, "lstm": _lstm, "gpt": _gpt}[model_name](facts)


def _ngram(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    if facts.tokenizer == "char":
        order = round(min(9, max(3, math.log10(max(10, facts.train_tokens)) + 1)))  # 1 M characters: 7
    else:
        order = 5
    return {"order": order, "across_lines": facts.tokenizer != "word"}, {}


def _lstm(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    minutes = facts.minutes or DEFAULT_MINUTES
    if minutes < 4:
        model, rate = {"model_dim": 256, "num_layers": 1, "dropout": 0.0}, 1e-2
    else:
        model, rate = {"model_dim": 512, "num_layers": 2, "dropout": _dropout(facts, 0.2)}, 4e-3
    training = {
        "batch_size": _rows(facts, 64, 32),
        "context": 64,
        "optimizer": "adamw",
        "learning_rate": rate,
        "schedule": "linear",
        "warmup_steps": 20,
    }
    return model, training


def _gpt(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    minutes = facts.minutes or DEFAULT_MINUTES
    if minutes < 1.5:
        model: dict[str, Any] = {"num_layers": 3, "model_dim": 96, "num_heads": 3, "feed_forward_dim": 288}
        model |= {"context": 64, "dropout": 0.0}
    elif minutes < 5:
        model = {"num_layers": 4, "model_dim": 128, "num_heads": 4, "feed_forward_dim": 384}
        model |= {"context": 128, "dropout": 0.0}
    else:
        model = {"num_layers": 4, "model_dim": 160, "num_heads": 5, "feed_forward_dim": 480}
        model |= {"context": 128, "dropout": _dropout(facts, 0.05)}
    training = {
        "batch_size": _rows(facts, model["context"], 24),
        "context": model["context"],
        "optimizer": "muon",
        "learning_rate": 6e-3 if minutes < 5 else 5e-3,
        "matrix_learning_rate": 0.02,
        "weight_decay": 0.05 if minutes >= 5 else 0.0,
        "schedule": "linear",
        "warmup_steps": 30 if minutes < 5 else 50,
        "clip_norm": 0.0,
    }
    return model, training


def _dropout(facts: Facts, wanted: float) -> float:
    """None where the text is so long that it is hardly read twice."""
    return wanted if facts.train_tokens < 20_000_000 else 0.0


def _rows(facts: Facts, context: int, wanted: int) -> int:
    """Fewer rows where the text is so short that a batch would be much of it."""
    return max(1, min(wanted, facts.train_tokens // (4 * context)))
