"""Of networks that read a row of text and write it again: wide states, as all of a row must fit into one."""

from __future__ import annotations

from typing import Any

from ...goals.goal import Facts
from .next_token import MIN_ADAPTIVE_VOCAB, SHORT_TEXT

MAX_EPOCHS = 30
MAX_EMBED_DIM = 256


def sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Muon learned to write ten words again to 0.8 nats in the steps in which AdamW came to 1.8
    (docs/lab-notebook.md)."""
    width = 128 if facts.train_tokens < SHORT_TEXT else 256 if facts.tokenizer == "char" else 512
    model: dict[str, Any] = {"model_dim": width, "num_layers": 1, "dropout": 0.0}
    if width > MAX_EMBED_DIM:
        model["embed_dim"] = MAX_EMBED_DIM
    model["adaptive_softmax"] = facts.vocab_size >= MIN_ADAPTIVE_VOCAB
    training = {
        "batch_tokens": 2048,
        "context": 2 * facts.length - 2,
        "optimizer": "muon",
        "learning_rate": 1e-2,
        "matrix_learning_rate": 0.02,
        "schedule": "linear",
        "warmup_steps": 50,
        "max_epochs": MAX_EPOCHS,
    }
    return model, training
