"""LoRA: a matrix that has learned already stays as it is, and the product of two thin ones is learned beside it.

Hu et al. 2022. What a task changes in a large matrix has few directions: r of them are enough, and little to keep.

    y = W x + (alpha / r) B A x          (1)   A normal, B zero: at the start nothing is changed
    W <- W + (alpha / r) B A             (2)   merged: the same answers, and nothing more to compute

It is computed as (W + (alpha / r) B A) x, so that whoever reads the matrix itself, as fast paths do, reads the changed
one. Where queries, keys and values stand one above the other in a matrix, each has thin matrices of its own.

Shapes: D what a matrix reads, N rows of the matrix, r rank.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

Parts = Mapping[str, slice]
"""By name, the rows of a matrix that are changed."""


class LowRank(nn.Module):
    """What is added to a matrix, for each of some parts of its rows: torch calls it whenever the matrix is read."""

    def __init__(self, num_inputs: int, parts: Parts, rank: int, alpha: float):
        super().__init__()
        self.rows, self.scale = dict(parts), alpha / rank
        self.down = nn.ParameterDict({name: torch.randn(rank, num_inputs) * num_inputs**-0.5 for name in parts})  # A
        self.up = nn.ParameterDict({name: torch.zeros(rows.stop - rows.start, rank) for name, rows in parts.items()})

    def forward(self, weight: Tensor) -> Tensor:
        """(N, D) -> (N, D)  (1)."""
        found, done = list[Tensor](), 0
        for name, rows in sorted(self.rows.items(), key=lambda part: part[1].start):
            change = torch.addmm(weight[rows], self.up[name], self.down[name], alpha=self.scale)
            found += [weight[done : rows.start], change]
            done = rows.stop
        return torch.cat([*found, weight[done:]])


def add_low_rank(layer: nn.Linear, parts: Parts, *, rank: int, alpha: float) -> LowRank:
    """Let a layer read its matrix with what is learned beside it."""
    added = LowRank(layer.in_features, parts, rank, alpha).to(layer.weight)
    parametrize.register_parametrization(layer, "weight", added)
    return added


@torch.no_grad()
def merge(weight: Tensor, down: Tensor, up: Tensor, rows: slice, scale: float) -> Tensor:
    """(2) for one part of a matrix: a copy of it, changed."""
    found = weight.clone()
    found[rows] += scale * (up @ down).to(weight)
    return found
