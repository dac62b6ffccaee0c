"""Of networks that read a source and write its target."""

from __future__ import annotations

from typing import Any

from ...goals.goal import Facts
from .common import DEFAULT_MINUTES

MIN_SUBWORD_TOKENS = 1000  # of a target: it is made of pieces of words
PAIR_TOKENS_PER_SECOND = 4000  # of targets, about


def sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Pairs of short strings are learned by small networks in minutes; sentences want width, and dropout by passes.

    Of sentences, a Transformer was at 25 BLEU after three minutes with Muon, at 18 with AdamW (docs/lab-notebook.md).
    """
    minutes = facts.minutes or DEFAULT_MINUTES
    is_small = facts.vocab_size < MIN_SUBWORD_TOKENS
    if model_name == "seq2seq":
        model: dict[str, Any] = {"model_dim": 256 if is_small or minutes < 10 else 320, "num_layers": 1}
    else:
        width = 128 if is_small or minutes < 5 else 192 if minutes < 90 else 256
        model = {"num_layers": 2 if is_small else 3, "model_dim": width, "num_heads": width // 32}
        model["feed_forward_dim"] = 4 * width
        model["context"] = max(256, facts.length)
    passes = minutes * 60 * PAIR_TOKENS_PER_SECOND / max(1, facts.train_tokens)
    model["dropout"] = 0.0 if is_small and passes < 20 else 0.1 if passes < 5 else 0.2 if passes < 20 else 0.3
    model["label_smoothing"] = 0.0 if is_small else 0.1
    training = {
        "batch_tokens": 2048,
        "context": facts.length,
        "optimizer": "adamw" if is_small else "muon",
        "learning_rate": 2e-3,
        "matrix_learning_rate": 0.02,
        "beta2": 0.98,
        "schedule": "linear",
        "warmup_steps": 100,
        "average_over": 0 if is_small else 5,
        "sample_tokens": max(1, min(200, facts.length)),
    }
    return model, training
