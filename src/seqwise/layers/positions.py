"""Where a token stands: learned vectors, sines of many wavelengths, or a rotation of queries and keys.

    learned      p_t is a row of a table                                          Gehring et al. 2017, GPT
    sinusoidal   p_t[2i] = sin(t / 10000^(2i/D)), p_t[2i+1] = cos(the same)  (1)  Vaswani et al. 2017, 3.5
    rotary       q_t and k_s are turned by angles t*w_i and s*w_i, so that   (2)  Su et al. 2021
                 their product depends on t - s alone

Shapes: B batch, H heads, T steps, D model width, K head width.
"""

from __future__ import annotations

import torch
from torch import Tensor


def sinusoidal_table(length: int, model_dim: int) -> Tensor:
    """(length, D) by (1)."""
    angles = _angles(length, model_dim, 10_000.0)
    table = torch.zeros(length, model_dim)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : model_dim // 2]
    return table


def rotary_table(length: int, head_dim: int, *, base: float = 10_000.0) -> Tensor:
    """Complex numbers of length one, at the angles t * base^(-2i/K): (length, K/2)."""
    angles = _angles(length, head_dim, base)
    return torch.polar(torch.ones_like(angles), angles).to(torch.complex64)


def _angles(length: int, width: int, base: float) -> Tensor:
    """t * base^(-2i/width), (length, width/2), in 64 bits: far from the start, 32 leave few digits behind the point."""
    frequency = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.arange(length, dtype=torch.float64).unsqueeze(1) * frequency


def rotate(x: Tensor, turn: Tensor) -> Tensor:
    """Turn each pair (x[2i], x[2i+1]), read as a complex number, by its angle (2). x (..., K), turn (..., K/2)."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn).flatten(-2)
