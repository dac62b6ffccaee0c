"""Of networks that find answers in passages: a window holds almost every passage with its question, or 384 tokens
(Devlin et al. 2019)."""

from __future__ import annotations

import math
from typing import Any

from ...goals.goal import Facts
from .answer import HAVE_A_CONTEXT

SPAN_SIZES: dict[str, dict[str, Any]] = {
    "conv": {"model_dim": 128},
    "rnn": {"embed_dim": 128, "model_dim": 128, "bidirectional": True},
    "gru": {"embed_dim": 128, "model_dim": 128, "bidirectional": True},
    "lstm": {"embed_dim": 128, "model_dim": 128, "bidirectional": True},
    "gpt": {"num_layers": 2, "model_dim": 128, "num_heads": 2},
    "bert": {"num_layers": 3, "model_dim": 128, "num_heads": 2},
}
RATES = {"rnn": 3e-3, "gru": 5e-3, "lstm": 5e-3, "gpt": 2e-3}
MAX_WINDOW = 384  # tokens
SHORT_WINDOW = 128  # tokens, of which twice as many rows are read at once
MIN_WINDOW = 16
EPOCHS = 20


def sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    window = max(MIN_WINDOW, min(MAX_WINDOW, facts.length))
    model: dict[str, Any] = {**SPAN_SIZES[model_name], "max_steps": window, "max_answer": max(1, facts.answer_length)}
    model["dropout"] = 0.1
    if model_name == "conv":
        model["num_layers"] = max(2, math.ceil(math.log2(window + 1)) - 1)  # so that the last step sees the question
    if model_name in HAVE_A_CONTEXT:
        model["context"] = window
    training = {
        "batch_size": max(1, min(32 if window <= SHORT_WINDOW else 16, facts.train_tokens // 8)),
        "context": window,
        "optimizer": "adamw",
        "learning_rate": RATES.get(model_name, 1e-3),
        "weight_decay": 0.01,
        "schedule": "linear",
        "warmup_steps": 100,
        "max_epochs": EPOCHS,
        "num_samples": 0,
    }
    return model, training
