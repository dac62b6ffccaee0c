"""Of networks that look at a picture or a clip and write a sentence about it."""

from __future__ import annotations

from typing import Any

from ...data.schema import ImageSpec
from ...goals.goal import Facts
from .common import DEFAULT_MINUTES

MIN_WORDS = 1000  # of a vocabulary: people wrote the captions; below, a grammar did
CAPTION_TOKENS_PER_SECOND = 2000  # about, eyes being frozen
LARGE_SIDE = 32  # pixels: of such pictures, and larger ones, eyes begin with every second
GRID_CELLS = 100  # that they leave of a picture; for each of them a comparison before each word
FRAME_CELLS = 20  # and of a frame of a clip


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
        # a grammar has words that need no look, and one place for others
        "doubly_stochastic": 0.0 if is_small else 1.0,
    }
    if isinstance(facts.picture, ImageSpec):
        model |= eyes(facts.picture)
    training = {
        "batch_size": 64,
        "learning_rate": 2e-3,
        "matrix_learning_rate": 0.02,
        "optimizer": "muon",  # of grammars too, the loss fell sooner than with AdamW (docs/lab-notebook.md)
        "beta2": 0.98,
        "schedule": "linear",
        "warmup_steps": 20 if is_small else 100,
        "average_over": 0 if is_small else 5,
        "sample_tokens": facts.length,
    }
    return model, training


def eyes(picture: ImageSpec) -> dict[str, Any]:
    """Stages that each halve the grid, until so few cells are left that a decoder can look at each."""
    stride = 2 if max(picture.height, picture.width) >= LARGE_SIDE else 1
    widths, cells = [16], picture.height * picture.width // stride**2
    while cells > (GRID_CELLS if picture.max_frames == 1 else FRAME_CELLS) and len(widths) < 6:
        widths.append(min(128, 2 * widths[-1]))
        cells //= 4
    return {"widths": widths, "eye_stride": stride}
