"""What holds whatever is asked for: memory, heads that divide a width, narrower networks."""

from __future__ import annotations

from typing import Any

from ...settings import TrainingConfig

DEFAULT_MINUTES = 2.0


def min_training_bytes(num_weights: int, model: Any, training: TrainingConfig, train_tokens: int) -> int:
    """What training by gradients cannot do without: weights and gradients, what the optimiser remembers of each and a
    copy to go back to, and of each step of a batch about four activations a layer."""
    copies = 2 if training.optimizer == "sgd" else 3
    places = training.batch_tokens or training.batch_size * min(training.context, train_tokens)
    width = getattr(model, "num_layers", 1) * getattr(model, "model_dim", 1)
    return 4 * (num_weights * (1 + 2 * copies) + 4 * width * places // training.micro_batches)


def fitting_heads(suggested: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The suggestion with as many heads as divide the width that was given: at most as many, each of an even width."""
    if "num_heads" not in suggested or "num_heads" in given or not isinstance(given.get("model_dim"), int):
        return suggested
    width, most = given["model_dim"], suggested["num_heads"]
    dividing = [number for number in range(most, 0, -1) if width % number == 0]
    even = [number for number in dividing if width // number % 2 == 0]  # rotary positions turn pairs of its numbers
    return {**suggested, "num_heads": (even or dividing)[0]}


def narrowed(model: dict[str, Any]) -> dict[str, Any] | None:
    """The settings of a network about a quarter narrower; None where it cannot get narrower."""
    unit = 2 * model.get("num_heads", 1)  # rotary positions turn pairs of a head's numbers, directions have halves
    width = int(0.75 * model["model_dim"]) // unit * unit
    if width < max(8, unit):
        return None
    narrower = {**model, "model_dim": width}
    for name in ("embed_dim", "feed_forward_dim"):
        if model.get(name):
            narrower[name] = max(8, int(0.75 * model[name]))
    if "widths" in model:
        narrower["widths"] = [max(4, int(0.75 * width)) for width in model["widths"]]
    if "memory_dim" in model:  # which is projected to the width, and most of what there is
        narrower["memory_dim"] = max(int(0.6 * model["memory_dim"]), width + 1)
    if "num_filters" in model:
        narrower["num_filters"] = max(1, int(0.75 * model["num_filters"]))
    if "character_dim" in model:  # a part of the embeddings, half of it for each direction
        narrower["character_dim"] = max(2, int(0.75 * model["character_dim"]) // 2 * 2)
    return narrower
