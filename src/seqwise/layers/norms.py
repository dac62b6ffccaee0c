"""Norms: the numbers of each step brought to one scale, so that no layer sees others than it was trained on.

    LayerNorm   y = weight * (x - mean(x)) / sqrt(variance(x) + epsilon) + bias    (1)   Ba et al. 2016
    RMSNorm     y = weight * x / sqrt(mean(x^2) + epsilon)                         (2)   Zhang & Sennrich 2019

RMSNorm leaves out the mean, which costs little quality and saves time; it has no bias.
"""

from __future__ import annotations

from typing import Literal

from torch import nn

Norm = Literal["layer", "rms"]


def build_norm(kind: Norm, width: int, *, bias: bool = False, epsilon: float = 1e-5) -> nn.LayerNorm | nn.RMSNorm:
    """`bias`: of a LayerNorm, whether it has one."""
    if kind == "rms":
        return nn.RMSNorm(width, eps=epsilon)  # (2)
    return nn.LayerNorm(width, eps=epsilon, bias=bias)  # (1)
