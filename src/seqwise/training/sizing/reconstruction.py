"""Of networks that read a row of text and write it again: wide states, as all of a row must fit into one."""

from __future__ import annotations

from typing import Any

from ...goals.goal import Facts
from .next_token import MIN_ADAPTIVE_VOCAB, SHORT_TEXT

MAX_EPOCHS = 30


def sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    width = 128 if facts.train_tokens < SHORT_TEXT else 256 if facts.tokenizer == "char" else 512
    model = {"model_dim": width, "embed_dim": min(width, 256), "num_layers": 1, "dropout": 0.0}
    model["adaptive_softmax"] = facts.vocab_size >= MIN_ADAPTIVE_VOCAB
    training = {
        "batch_tokens": 2048,
        "context": 2 * facts.length - 2,
        "optimizer": "adamw",
        "learning_rate": 2e-3,
        "schedule": "linear",
        "warmup_steps": 50,
        "max_epochs": MAX_EPOCHS,
    }
    return model, training
