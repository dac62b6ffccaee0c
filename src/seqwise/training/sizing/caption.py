"""Of networks that look at a picture or a clip and write a sentence about it."""

from __future__ import annotations

from typing import Any

from ...data.schema import ImageSpec
from ...goals.goal import Facts
from .common import DEFAULT_MINUTES

MIN_WORDS = 1000  # of a vocabulary: people wrote the captions; below, a grammar did
CAPTION_TOKENS_PER_SECOND = 2000  # about, eyes being frozen
GRID_CELLS = 100  # that the eyes leave of a picture, at most: for each of them a comparison before each word


def sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Grammars are learned by small networks; captions of people want width, and dropout by passes."""
    minutes = facts.minutes or DEFAULT_MINUTES
    is_small = facts.vocab_size < MIN_WORDS
    width = 128 if is_small else 256
    passes = minutes * 60 * CAPTION_TOKENS_PER_SECOND / max(1, facts.tokens)
    model: dict[str, Any] = {
        "model_dim": width,
        "num_heads": width // 32,
        "num_looks": facts.length,
        "dropout": 0.1 if is_small or passes < 2 else 0.3 if passes < 8 else 0.5,
        "label_smoothing": 0.0 if is_small else 0.1,
    }
    if isinstance(facts.picture, ImageSpec):
        model["widths"] = widths(facts.picture)
        if facts.picture.max_frames > 1:
            model["places"] = "lstm"
    training = {
        "batch_size": 64,
        "learning_rate": 2e-3,
        "matrix_learning_rate": 0.01,
        "optimizer": "adamw" if is_small else "muon",
        "beta2": 0.98,
        "schedule": "linear",
        "warmup_steps": 100,
        "average_over": 0 if is_small else 5,
        "sample_tokens": facts.length,
    }
    return model, training


def widths(picture: ImageSpec) -> list[int]:
    """Channels of the stages of the eyes: one more for each time that the grid has to be halved again."""
    found, cells = [16], picture.height * picture.width
    while cells > GRID_CELLS and len(found) < 6:
        found.append(min(128, 2 * found[-1]))
        cells //= 4
    return found
