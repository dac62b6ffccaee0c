"""Of networks that paint, on a CPU: through windows, as a step then costs less the larger the picture."""

from __future__ import annotations

from typing import Any

from ...data.schema import ImageSpec
from ...goals.goal import Facts

SMALL = 12  # pixels: below, a window is about as large as the picture


def sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    assert isinstance(facts.picture, ImageSpec)
    model: dict[str, Any] = {"model_dim": 256}
    model["attention"] = max(facts.picture.height, facts.picture.width) > SMALL
    training = {
        "batch_size": max(1, min(128, facts.train_tokens // 8)),
        "optimizer": "adamw",
        "learning_rate": 2e-3,
        "beta2": 0.99,
        "clip_norm": 10.0,
        "schedule": "linear",
        "warmup_steps": 100,
        "max_epochs": 1000.0,
        "num_samples": 0,
    }
    return model, training
