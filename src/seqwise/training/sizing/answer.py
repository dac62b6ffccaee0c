"""Of networks that answer a whole sequence.

Sizes for texts come from runs on sst2, ag_news and imdb with 2 CPU cores (docs/lab-notebook.md): wide embeddings, one
layer from both ends, the highest of each number over all steps, and half of the values dropped.
"""

from __future__ import annotations

import math
from typing import Any

from ...data.schema import ImageSpec
from ...goals.goal import Facts
from . import pictures_and_words

LABEL_SIZES: dict[str, dict[str, Any]] = {
    "window": {"window": 8, "embed_dim": 16, "model_dim": 128, "pooling": "mean"},
    "conv": {"model_dim": 64},
    "rnn": {"model_dim": 128},
    "gru": {"model_dim": 128},
    "lstm": {"model_dim": 128},
    "gpt": {"num_layers": 2, "model_dim": 64, "num_heads": 2},
    "bert": {"num_layers": 2, "model_dim": 64, "num_heads": 2, "pooling": "mean"},
}
TEXT_SIZES: dict[str, dict[str, Any]] = {
    "window": {"window": 3, "embed_dim": 128, "model_dim": 256},
    "conv": {"model_dim": 128, "num_layers": 3},
    "rnn": {"embed_dim": 128, "model_dim": 128, "bidirectional": True},
    "gru": {"embed_dim": 128, "model_dim": 128, "bidirectional": True},
    "lstm": {"embed_dim": 128, "model_dim": 128, "bidirectional": True},
    "gpt": {"num_layers": 2, "model_dim": 128, "num_heads": 4},
    "bert": {"num_layers": 2, "model_dim": 128, "num_heads": 4},
}
PICTURE_SIZES: dict[str, dict[str, Any]] = {
    "conv": {"widths": [24, 64, 128], "pooling": "max"},
    "bert": {"num_layers": 4, "model_dim": 128, "num_heads": 4, "pooling": "mean"},
}
PATCHES = 8  # along a side of a picture
FINE_CELLS = 32  # along a side: larger pictures are read at wider steps
HAVE_A_CONTEXT = ("gpt", "bert")  # a longest row that they can read
MAX_GLIMPSE, SEEN_DIMLY = 12, 0.8  # pixels of a patch; share of a picture that the widest patch covers
MAX_STEPS = 400  # of a text that a network reads; what stands in the middle of longer ones is left out
SMALL_TEXT = 2_000_000  # tokens: networks see them often, and more is dropped
TEXT_EPOCHS = 12


MAX_CHOSEN = 500_000  # tokens, of which counting tries several orders; of more, one that is good by rule
COUNTED_ORDERS = {"char": 5}
WORD_ORDER = 3


def sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    if model_name == "hmm":  # a model for each label, of short sequences
        return {"num_states": 8, "smoothing": 0.1}, {"steps": 30, "restarts": 1}
    if model_name == "ngram":
        by_rule = COUNTED_ORDERS.get(facts.tokenizer, WORD_ORDER)
        return {"order": 0 if facts.tokens <= MAX_CHOSEN else by_rule}, {}
    if facts.picture is not None and facts.tokens:
        return pictures_and_words.sizes(facts)
    if facts.picture is not None:
        return _picture_sizes(model_name, facts)
    return (_text_sizes if facts.tokens else _sequence_sizes)(model_name, facts)


def _text_sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    is_words = facts.tokenizer != "char"
    model: dict[str, Any] = {**TEXT_SIZES[model_name], "pooling": "max"}
    model["dropout"] = 0.5 if is_words and facts.tokens < SMALL_TEXT else 0.2 if is_words else 0.1
    steps = min(MAX_STEPS, max(2, facts.length))
    model["max_steps"] = steps
    if model_name in HAVE_A_CONTEXT:
        model |= {"context": max(3, steps), "pooling": "mean"}
    training = {
        "batch_size": max(1, min(32, facts.train_tokens // 8)),
        "context": steps,
        "optimizer": "adamw",
        "learning_rate": 2e-3,
        "weight_decay": 0.01,
        "schedule": "linear",
        "warmup_steps": 50,
        "max_epochs": TEXT_EPOCHS if is_words else 4 * TEXT_EPOCHS,
        "num_samples": 0,
    }
    return model, training


def _picture_sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Muon turns filters of convolutions as it does other matrices (docs/lab-notebook.md)."""
    training = {
        "batch_size": max(1, min(128, facts.train_tokens // 16)),
        "optimizer": "muon",
        "learning_rate": 3e-3,
        "matrix_learning_rate": 0.05,
        "weight_decay": 0.05,
        "schedule": "linear",
        "warmup_share": 0.1,
        "clip_norm": 0.0,
        "max_epochs": 30,
        "num_samples": 0,
    }
    if not isinstance(facts.picture, ImageSpec):
        return dict(PICTURE_SIZES[model_name]), training
    side = max(facts.picture.height, facts.picture.width)
    if model_name == "glimpse":
        return _glimpse_sizes(side), training | _glimpse_training(facts)
    own = {"conv": {"eye_stride": max(1, side // FINE_CELLS)}, "bert": {"patch_size": max(2, round(side / PATCHES))}}
    return {**PICTURE_SIZES[model_name], **own[model_name]}, training


def _glimpse_sizes(side: int) -> dict[str, Any]:
    """Patches of about a quarter of the picture, and as many scales as it takes to see most of it dimly."""
    size = min(MAX_GLIMPSE, max(3, round(side / 3.5)))
    scales = 1 + max(0, math.ceil(math.log2(SEEN_DIMLY * side / size)))
    return {"model_dim": 256, "glimpse_size": size, "num_scales": scales}


def _glimpse_training(facts: Facts) -> dict[str, Any]:
    return {
        "batch_size": max(1, min(128, facts.train_tokens // 8)),
        "optimizer": "adamw",
        "learning_rate": 5e-3,
        "weight_decay": 0.0,
        "warmup_share": 0.0,
        "warmup_steps": 50,
        "clip_norm": 1.0,
        "max_epochs": 60.0,
    }


def _sequence_sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    model = dict(LABEL_SIZES[model_name])
    if model_name == "conv":
        model["num_layers"] = max(2, math.ceil(math.log2(facts.length + 1)) - 1)  # so that the last step sees the first
    if model_name in HAVE_A_CONTEXT:
        model["context"] = max(3, facts.length)
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
