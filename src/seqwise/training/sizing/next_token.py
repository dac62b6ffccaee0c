"""Of models of text.

The rules come from runs on 2 CPU cores (docs/lab-notebook.md): in half a minute a narrow network with a short context
learns most; with more time, width, depth and context grow, and dropout comes in where the text is read many times.
"""

from __future__ import annotations

import math
from typing import Any

from ...goals.goal import Facts
from ...models.word2vec import FINAL_RATE, LEARNING_RATE
from .common import DEFAULT_MINUTES

TOKENS_PER_SECOND = 12_000  # about what a small network learns from on 2 cores
MAX_EM_TOKENS = 1_000_000  # more are cut where they would not fit the time
EM_SECONDS = 1e-9  # of an iteration, per token and pair of states
COUNTING_SECONDS = 4e-7  # per token and level
SHORT_TEXT = 100_000  # tokens; below, narrower networks do
MIN_ADAPTIVE_VOCAB = 5000  # from here on the output layer is most of the work, and an adaptive softmax pays


def sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    return RULES[model_name](facts)


def tried_tokens(seconds: float) -> int:
    """As many as thirty iterations of EM with 16 states read in a seventh of the time."""
    return max(1000, int(seconds / 7 / (30 * 16 * 16 * EM_SECONDS)))


def _hmm(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """As many states as half a hundred iterations have time for, and the text has tokens for."""
    seconds = (facts.minutes or DEFAULT_MINUTES) * 60
    read = min(max(1, facts.train_tokens), MAX_EM_TOKENS)
    affordable = math.sqrt(seconds / (50 * EM_SECONDS * read))
    learnable = math.sqrt(facts.train_tokens / 10)
    return {"num_states": int(min(64, max(4, min(affordable, learnable))))}, {"steps": 100, "restarts": 2}


def _ngram(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    if facts.tokenizer == "char":
        order = round(min(9, max(3, math.log10(max(10, facts.train_tokens)) + 1)))  # 1 M characters: 7
    else:
        order = 5
    training: dict[str, Any] = {}
    if facts.minutes is not None:  # so that one count takes a third of the time at most
        limit = int(facts.minutes * 60 / 3 / (COUNTING_SECONDS * order))
        training["train_tokens"] = 0 if facts.train_tokens <= limit else limit
    return {"order": order, "across_lines": facts.tokenizer != "word"}, training


def _window(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    is_long = (facts.minutes or DEFAULT_MINUTES) >= 4
    if facts.tokenizer == "char":
        model: dict[str, Any] = {"window": 16, "embed_dim": 32, "model_dim": 512 if is_long else 256}
    else:
        model = {"window": 5, "embed_dim": 128, "model_dim": 256}
    model["dropout"] = _dropout(facts, 0.1 if is_long else 0.0)
    return model, _small_steps(facts, context=64, rows=32)


def _conv(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    is_long = (facts.minutes or DEFAULT_MINUTES) >= 4
    width = 64 if facts.train_tokens < SHORT_TEXT else 192 if is_long else 128
    model: dict[str, Any] = {"model_dim": width, "num_layers": 6, "kernel_size": 3}
    model["dropout"] = _dropout(facts, 0.1 if is_long else 0.0)
    return model, _small_steps(facts, context=128, rows=16)


def _small_steps(facts: Facts, *, context: int, rows: int) -> dict[str, Any]:
    return {
        "batch_size": _rows(facts, context, rows),
        "context": context,
        "optimizer": "muon",
        "learning_rate": 5e-3,
        "matrix_learning_rate": 0.02,
        "weight_decay": 0.05 if (facts.minutes or DEFAULT_MINUTES) >= 5 else 0.0,
        "schedule": "linear",
        "warmup_steps": 30,
    }


def _recurrent(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two layers of 256 with Muon learn characters faster than one of 384 or 512 (docs/lab-notebook.md)."""
    minutes = facts.minutes or DEFAULT_MINUTES
    if facts.vocab_size >= MIN_ADAPTIVE_VOCAB:
        return _recurrent_words(facts, minutes)
    width = 256 if facts.train_tokens >= SHORT_TEXT else 128
    if minutes < 2:
        model: dict[str, Any] = {"model_dim": width, "num_layers": 1, "dropout": _dropout(facts, 0.0)}
    else:
        model = {"model_dim": width, "num_layers": 2, "dropout": _dropout(facts, 0.1 if minutes < 5 else 0.15)}
    return model, _small_steps(facts, context=64, rows=32)


def _recurrent_words(facts: Facts, minutes: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """As the recipe for Penn Treebank (recipes/ptb-lstm.toml), with less dropout where the text is read less often."""
    dropout = 0.4 if minutes >= 15 else 0.3 if minutes >= 4 else 0.1
    model = {"model_dim": 512, "embed_dim": 256, "num_layers": 1, "dropout": _dropout(facts, dropout)}
    training = {
        "batch_size": _rows(facts, 35, 64),
        "context": 35,
        "optimizer": "muon",
        "learning_rate": 6e-3,
        "matrix_learning_rate": 0.02,
        "weight_decay": 0.1,
        "schedule": "linear",
        "warmup_steps": 50,
    }
    return {**model, "adaptive_softmax": True}, training


def _gpt(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    minutes = facts.minutes or DEFAULT_MINUTES
    if minutes < 1.5 or facts.train_tokens < SHORT_TEXT:
        model: dict[str, Any] = {"num_layers": 3, "model_dim": 96, "num_heads": 3, "feed_forward_dim": 288}
        model |= {"context": 64, "dropout": _dropout(facts, 0.0)}
    elif minutes < 5:
        model = {"num_layers": 4, "model_dim": 128, "num_heads": 4, "feed_forward_dim": 384}
        model |= {"context": 128, "dropout": _dropout(facts, 0.0)}
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
    """More where the text is read so often that a model would overfit, none where it is read but once or twice."""
    if facts.minutes is None:  # who counts in steps knows how often it is read
        return wanted
    passes = facts.minutes * 60 * TOKENS_PER_SECOND / max(1, facts.train_tokens)
    if passes < 2:
        return 0.0
    return wanted if passes < 15 else max(wanted, 0.2 if passes < 60 else 0.3)


def _rows(facts: Facts, context: int, wanted: int) -> int:
    """Fewer rows where the text is so short that a batch would be much of it."""
    return max(1, min(wanted, facts.train_tokens // (4 * context)))


def _elmo(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    is_long = (facts.minutes or DEFAULT_MINUTES) >= 10
    model = {"model_dim": 128, "memory_dim": 512, "num_filters": 16}
    if not is_long:
        model = {"model_dim": 64, "memory_dim": 256, "num_filters": 8}
    return {**model, "dropout": _dropout(facts, 0.1)}, {**_small_steps(facts, context=35, rows=32), "num_samples": 0}


def _word2vec(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rates of models/word2vec.py; validation is by the way, and on little."""
    training = {"learning_rate": LEARNING_RATE, "final_rate": FINAL_RATE, "valid_tokens": 50_000, "num_samples": 0}
    return {}, training


RULES = {
    "ngram": _ngram,
    "hmm": _hmm,
    "window": _window,
    "conv": _conv,
    "rnn": _recurrent,
    "gru": _recurrent,
    "lstm": _recurrent,
    "word2vec": _word2vec,
    "elmo": _elmo,
    "gpt": _gpt,
}
