"""Weights in eight bits: a quarter of the memory, and of what has to be read for each token.

    W[i, j] ~ scale[i] * q[i, j],   q from -127 to 127                    (1)
    scale[i] = max over j of |W[i, j]| / 127

Symmetric, with a scale for each row (an output of a product, a token of a table). What is computed with stays in 32
bits: torch multiplies the matrix out whenever it is read, compiled steps (kernels/tiles.py) number by number.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from .embeddings import TokenEmbedding
from .recurrent import CellWeights

PRECISIONS = ("float32", "int8")
INT8_PARTS = ("original0", "original1")
"""What torch calls q and scale."""
HIGHEST = 127


class Int8(nn.Module):
    """(1): torch calls it whenever the matrix is read."""

    def forward(self, numbers: Tensor, scale: Tensor) -> Tensor:
        return numbers * scale.unsqueeze(1)  # (N, D) int8, (N,) -> (N, D)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        scale = weight.abs().amax(dim=1) / HIGHEST
        numbers = torch.round(weight / scale.clamp(min=torch.finfo(weight.dtype).tiny).unsqueeze(1))
        return numbers.to(torch.int8), scale


@torch.no_grad()
def to_int8(model: nn.Module) -> None:
    """Every matrix of a network in eight bits; those of 32 are released, one after the other.

    Vectors stay as they are, and so do tables of positions, which are small.
    """
    found = [
        (owner, name, id(weight))
        for owner in model.modules()
        if isinstance(owner, nn.Linear | TokenEmbedding | CellWeights)
        for name, weight in owner._parameters.items()
        if weight is not None and weight.dim() == 2
    ]
    first: dict[int, nn.Module] = {}
    for owner, name, key in found:
        cast(Tensor, owner._parameters[name]).requires_grad_(False)
        parametrize.register_parametrization(owner, name, Int8(), unsafe=True)
        stored = cast(nn.Module, int8_weight(owner, name))
        for part in INT8_PARTS:  # one matrix in two places stays one
            setattr(stored, part, getattr(first.setdefault(key, stored), part))


def int8_weight(owner: nn.Module, name: str) -> nn.Module | None:
    """Where the parts of a matrix in eight bits are; None where it is not."""
    if not parametrize.is_parametrized(owner, name):
        return None
    stored = owner.parametrizations[name]  # type: ignore[index]
    return cast(nn.Module, stored) if len(stored) == 1 and type(stored[0]) is Int8 else None
