"""The feed-forward layer: each token by itself, up to a wider layer, through a nonlinearity, and down again.

    y = W_down f(W_up x)   f: ReLU, GELU (Hendrycks & Gimpel 2016) or the square of ReLU (So et al. 2021)

Shapes: D model width, F feed-forward width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class _SquaredReLU(torch.autograd.Function):
    """relu(x)^2 with its derivative 2 relu(x): one saved tensor and one product less than autograd finds."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        positive = x.relu()
        context.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        (positive,) = context.saved_tensors
        return (gradient * positive).mul_(2.0)


def squared_relu(x: Tensor) -> Tensor:
    if torch.is_grad_enabled():
        return _SquaredReLU.apply(x)
    return x.relu_().square_()  # x is the product just made: nobody else needs it


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "squared_relu": squared_relu,
}


class FeedForward(nn.Module):
    def __init__(self, model_dim: int, hidden_dim: int, activation: str, *, bias: bool = False):
        super().__init__()
        self.up = nn.Linear(model_dim, hidden_dim, bias=bias)
        self.down = nn.Linear(hidden_dim, model_dim, bias=bias)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))  # (..., D) -> (..., F) -> (..., D)
