"""Of networks that read a picture and a text together.

Two blocks of 64 numbers learn easy_vqa; words are pooled by their mean, from which a network learns in a hundred steps
what it takes a thousand for from the first place alone (docs/lab-notebook.md).
"""

from __future__ import annotations

from typing import Any

from ...data.schema import ImageSpec
from ...goals.goal import Facts

CELLS = 16  # of the first stage of eyes, across; two stages more leave a quarter of them
WIDTHS = [32, 64, 128]
PRETRAINED_ON = 64  # tokens: places that what is started from a run may need more of than its own sentences do


def sizes(facts: Facts, *, pooling: str = "mean", context: int = 3) -> tuple[dict[str, Any], dict[str, Any]]:
    length = max(context, facts.length)
    model = {"num_layers": 2, "model_dim": 64, "num_heads": 4, "context": length, "pooling": pooling}
    if isinstance(facts.picture, ImageSpec):
        side = max(facts.picture.height, facts.picture.width)
        model |= {"widths": WIDTHS, "eye_stride": max(1, min(4, side // CELLS))}
    training = {
        "batch_size": max(1, min(32, facts.train_tokens // 8)),
        "context": length,
        "optimizer": "adamw",
        "learning_rate": 2e-3,
        "weight_decay": 0.01,
        "beta2": 0.99,
        "schedule": "linear",
        "warmup_steps": 100,
        "num_samples": 0,
    }
    return model, training
