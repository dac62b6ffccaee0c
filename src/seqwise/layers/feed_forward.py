"""The feed-forward layer: each token by itself, up to a wider layer, through a nonlinearity, and down again.

    y = W_down f(W_up x)                     (1)   f: ReLU, GELU (Hendrycks & Gimpel 2016), the square of ReLU
                                                   (So et al. 2021) or SiLU, x * sigmoid(x) (Ramachandran et al. 2017)
    y = W_down (silu(W_gate x) * W_up x)     (2)   SwiGLU (Shazeer 2020): one product opens or closes the other

GELU is x * the probability that a normal variable lies below x; GPT-2 has a tanh that comes near it.

Shapes: D model width, F feed-forward width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .products import Linear, linear


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
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "squared_relu": squared_relu,
    "silu": functional.silu,
}


SWIGLU = "swiglu"
WIDTH_UNIT = 32  # a gated layer is as wide as a multiple of it


class FeedForward(nn.Module):
    """(1)."""

    def __init__(self, model_dim: int, hidden_dim: int, activation: str, *, bias: bool = False):
        super().__init__()
        self.up = Linear(model_dim, hidden_dim, bias=bias)
        self.down = Linear(hidden_dim, model_dim, bias=bias)
        self.activation = ACTIVATIONS[activation]

    def hidden(self, x: Tensor) -> Tensor:
        """What W_down is given, by plain functions, without the calls of modules: (..., D) -> (..., F)."""
        return self.activation(linear(x, self.up.weight, self.up.bias))

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))  # (..., D) -> (..., F) -> (..., D)


class GatedFeedForward(nn.Module):
    """(2)."""

    def __init__(self, model_dim: int, hidden_dim: int, *, bias: bool = False):
        super().__init__()
        self.gate = Linear(model_dim, hidden_dim, bias=bias)
        self.up = Linear(model_dim, hidden_dim, bias=bias)
        self.down = Linear(hidden_dim, model_dim, bias=bias)

    def hidden(self, x: Tensor) -> Tensor:
        """As that of FeedForward."""
        gate = linear(x, self.gate.weight, self.gate.bias)
        return functional.silu(gate) * linear(x, self.up.weight, self.up.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))  # (..., D) -> (..., F) -> (..., D)


def build_feed_forward(
    model_dim: int, hidden_dim: int | None, activation: str, *, bias: bool = False
) -> FeedForward | GatedFeedForward:
    """`hidden_dim` is four times `model_dim` where not set; that of a gated layer, which has three matrices instead of
    two, two thirds of that."""
    if activation != SWIGLU:
        return FeedForward(model_dim, hidden_dim or 4 * model_dim, activation, bias=bias)
    return GatedFeedForward(model_dim, hidden_dim or gated_width(model_dim), bias=bias)


def gated_width(model_dim: int) -> int:
    """Two thirds of four times `model_dim`, up to the next multiple of 32."""
    return -(-8 * model_dim // (3 * WIDTH_UNIT)) * WIDTH_UNIT
