"""Of networks that tag words.

After Ma & Hovy 2016 and Lample et al. 2016: a layer from both ends over words and their characters, half of the values
dropped; a CRF on top where tags mark entities.
"""

from __future__ import annotations

from typing import Any

from ...goals.goal import Facts
from .answer import HAVE_A_CONTEXT

TAG_SIZES: dict[str, dict[str, Any]] = {
    "window": {"window": 5, "embed_dim": 160, "model_dim": 256},
    "conv": {"model_dim": 160, "num_layers": 3},
    "rnn": {"embed_dim": 160, "model_dim": 192, "bidirectional": True},
    "gru": {"embed_dim": 160, "model_dim": 192, "bidirectional": True},
    "lstm": {"embed_dim": 160, "model_dim": 192, "bidirectional": True},
    "gpt": {"num_layers": 2, "model_dim": 160, "num_heads": 4},
    "bert": {"num_layers": 2, "model_dim": 160, "num_heads": 4},
}
TAG_EPOCHS = 25


def sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    if model_name == "hmm":
        return {"order": 3}, {}
    model: dict[str, Any] = {**TAG_SIZES[model_name], "dropout": 0.5 if facts.tokenizer == "word" else 0.2}
    model |= {"crf": facts.is_structured} | (
        {} if model_name == "bert" else {"characters": "conv", "character_dim": 32}
    )
    if model_name in HAVE_A_CONTEXT:
        model |= {"context": max(3, facts.length), "dropout": 0.3}
    training = {
        "batch_size": max(1, min(32, facts.train_tokens // 8)),
        "context": facts.length,
        "optimizer": "adamw",
        "learning_rate": 3e-3,
        "weight_decay": 0.01,
        "schedule": "linear",
        "warmup_steps": 100,
        "max_epochs": TAG_EPOCHS,
        "num_samples": 0,
    }
    return model, training
