"""Dropout: values left out at random in training, so that no unit can rely on another (Srivastava et al. 2014).

    y = x * kept / (1 - share),   kept ~ Bernoulli(1 - share), drawn for each value                          (1)
    variational: drawn once for all steps of a row, so that what is missing stays missing    Gal & Ghahramani 2016

torch draws one random number a value and on one thread, which takes a fifth of a training step on a CPU. Here a draw of
64 bits decides four values: shares are exact to 1 / 65,536.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

LEVELS = 1 << 16


class Dropout(nn.Module):
    def __init__(self, share: float, *, is_variational: bool = False):
        super().__init__()
        self.share, self.is_variational = share, is_variational

    def forward(self, x: Tensor) -> Tensor:
        """Any shape; variational: (B, T, D)."""
        if not self.share or not self.training:
            return x
        if self.is_variational:
            return x * dropped_out(torch.ones_like(x[:, :1]), self.share)
        return dropped_out(x, self.share)


def dropped_out(x: Tensor, share: float) -> Tensor:
    """(1)"""
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(x, share)
    draws = torch.empty(math.ceil(x.numel() / 4), dtype=torch.int64).random_(-(1 << 63), None)
    levels = draws.view(torch.int16)[: x.numel()].view(x.shape)
    kept = levels >= min(round(share * LEVELS), LEVELS - 1) - LEVELS // 2
    return x * kept.to(x.dtype).mul_(1 / (1 - share))
