"""Of networks that answer a whole sequence."""

from __future__ import annotations

import math
from typing import Any

from ...goals.goal import Facts

LABEL_SIZES: dict[str, dict[str, Any]] = {
    "window": {"window": 8, "embed_dim": 16, "model_dim": 128, "pooling": "mean"},
    "conv": {"model_dim": 64},
    "rnn": {"model_dim": 128},
    "gru": {"model_dim": 128},
    "lstm": {"model_dim": 128},
    "gpt": {"num_layers": 2, "model_dim": 64, "num_heads": 2},
}


def sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    model = dict(LABEL_SIZES[model_name])
    if model_name == "conv":
        model["num_layers"] = max(2, math.ceil(math.log2(facts.length + 1)) - 1)  # so that the last step sees the first
    if model_name == "gpt":
        model["context"] = max(2, facts.length)
    if model_name == "lstm":  # forgets about as slowly as the sequence is long (Tallec & Ollivier 2018)
        model["forget_bias"] = round(max(1.0, math.log(max(1, facts.length))), 1)
    training = {
        "batch_size": max(1, min(64, facts.train_tokens // 4)),
        "context": facts.length,
        "optimizer": "adamw",
        "learning_rate": 2e-3,
        "schedule": "linear",
        "warmup_steps": 50,
        "num_samples": 0,
    }
    return model, training
