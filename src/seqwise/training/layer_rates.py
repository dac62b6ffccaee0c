"""Weights by the layer they belong to: rates that fall from layer to layer, and layers that are unfrozen one by one.

    rate of layer l      = rate of the heads * factor^(L + 1 - l)                  discriminative rates      (1)
    layers that learn    = those from L + 1 - floor(passes / unfreeze_epochs) up   gradual unfreezing        (2)

Howard & Ruder 2018 (ULMFiT): what lies low has learned what is general, and should be changed little and late.
Embeddings are layer 0, the layers of the body 1 to L, heads L + 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

NUMBERED = re.compile(r"\.(\d+)\.")


def layers_of(names: Iterable[str]) -> dict[str, int]:
    """Of weights by name, the layer of each."""
    names = list(names)
    inside = {name: _layer(name) for name in names if name.startswith("body.")}
    top = max([1, *(layer for layer in inside.values() if layer is not None)])
    found = {name: top if layer is None else layer for name, layer in inside.items()}  # the last norm, say
    return {name: found.get(name, top + 1) for name in names}


def _layer(name: str) -> int | None:
    """By the number in its name; None where it has none."""
    if "embedding" in name or "position" in name:
        return 0
    if name.startswith("body.first."):  # of a fixed window, whose further layers are numbered
        return 1
    number = NUMBERED.search(name)
    if number is None:
        return None
    return int(number[1]) + (2 if name.startswith("body.more.") else 1)


def lowest_layer(step: int, top: int, unfreeze_epochs: float, steps_per_epoch: int) -> int:
    """From which layer up weights learn at a step (2)."""
    return max(0, top - int(step / (unfreeze_epochs * steps_per_epoch)))
