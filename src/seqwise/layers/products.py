"""Products of matrices, where those of torch do not use all that the processor can do.

    y  = x W^T + b                                          (1)
    dx = g W,   dW = g^T x,   db = sum of g over rows       (2)   g: the gradient of y

On a CPU torch multiplies by MKL, whose widest instructions (AVX-512) are for Intel's processors alone. oneDNN, which
comes with torch too, writes its loops for the processor it finds: on AMD's with AVX-512 it takes half of the time, with
the same 32 bits. Which one is taken follows from the processor and the sizes and not from a clock, so that a run that
is repeated has the same numbers.

Shapes: N rows, D what a matrix reads, F what it gives.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ..machine import cpu_vendor

SMALL = 1 << 22  # multiplications, below which a call costs as much as it saves


@cache
def has_faster() -> bool:
    """Whether oneDNN is faster than what torch takes by itself."""
    is_there = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return is_there and cpu_vendor() == "AuthenticAMD" and torch.backends.cpu.get_cpu_capability() == "AVX512"


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """(1) by oneDNN, without a gradient: (N, D), (F, D), (F,) -> (N, F). Either matrix may be a transposed view."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight), (wants_x, wants_weight, wants_bias) = ctx.saved_tensors, ctx.needs_input_grad  # (2)
        return (
            product(g, weight.mT) if wants_x else None,
            product(g.mT, x.mT) if wants_weight else None,
            g.sum(dim=0) if wants_bias else None,
        )


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """(1), by what is faster: (..., D), (F, D), (F,) -> (..., F)."""
    if not (has_faster() and _suits(x, weight)):
        return functional.linear(x, weight, bias)
    rows = x.reshape(-1, x.shape[-1])  # (N, D)
    found = _Linear.apply(rows, weight, bias) if torch.is_grad_enabled() else product(rows, weight, bias)
    return found.view(*x.shape[:-1], len(weight))


def _suits(x: Tensor, weight: Tensor) -> bool:
    is_large = x.numel() * len(weight) >= SMALL
    is_plain = x.dtype == weight.dtype == torch.float32 and x.device.type == "cpu"
    return is_large and is_plain and not (torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"))


class Linear(nn.Linear):
    """torch's, whose products are `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)
