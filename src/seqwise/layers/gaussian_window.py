"""Gaussian window: a grid of N x N soft points on a picture, to be read through or written through.

Gregor et al. 2015, section 3.2. Five numbers say where the grid lies, how far its points are from each other, how soft
they are, and how much they weigh, all of them differentiable:

    mu_i  = centre + (i - (N-1)/2) stride                           of each row, and of each column           (1)
    F_ia  = exp(-(a - mu_i)^2 / 2 sigma^2) / sum over a of the same                                           (2)
    read  = intensity * F_y x F_x'                                  (H, W) -> (N, N)                          (3)
    write = F_y' patch F_x / intensity                              (N, N) -> (H, W)                          (4)

(2) is a softmax over the pixels, so that rows sum to one wherever the grid lies.

Shapes: B pictures, C channels, H and W pixels, N points of a side.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

NUM_NUMBERS = 5
"""Centre x, centre y, log sigma^2, log stride, log intensity."""


class Window(NamedTuple):
    rows: Tensor
    """F_y, (B, N, H)."""
    columns: Tensor
    """F_x, (B, N, W)."""
    intensity: Tensor
    """(B, 1, 1, 1)."""
    numbers: Tensor
    """(B, 5): centre x and y, stride and sigma in pixels, intensity."""

    def read(self, pictures: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C, N, N)."""
        return self.intensity * (self.rows.unsqueeze(1) @ pictures @ self.columns.transpose(1, 2).unsqueeze(1))  # (3)

    @property
    def box(self) -> Tensor:
        """(B, 4): left, top, right and bottom edge of the grid, as shares of width and height."""
        x, y, stride = self.numbers[:, :3].unbind(dim=1)
        half = (stride * (self.rows.shape[1] - 1) + 1) / 2
        width, height = self.columns.shape[2], self.rows.shape[2]
        x, y = x + 0.5, y + 0.5  # from the edge of the first pixel, not from its middle
        return torch.stack([(x - half) / width, (y - half) / height, (x + half) / width, (y + half) / height], dim=1)

    def write(self, patches: Tensor) -> Tensor:
        """(B, C, N, N) -> (B, C, H, W)."""
        return self.rows.transpose(1, 2).unsqueeze(1) @ patches @ self.columns.unsqueeze(1) / self.intensity  # (4)


class GaussianWindow(nn.Module):
    pixels_x: Tensor
    pixels_y: Tensor
    steps: Tensor

    def __init__(self, size: int, height: int, width: int):
        super().__init__()
        self.size, self.height, self.width = size, height, width
        self.longest = (max(height, width) - 1) / max(1, size - 1)  # stride of a grid as large as the picture
        self.register_buffer("pixels_x", torch.arange(float(width)), persistent=False)
        self.register_buffer("pixels_y", torch.arange(float(height)), persistent=False)
        self.register_buffer("steps", torch.arange(float(size)) - (size - 1) / 2, persistent=False)

    def forward(self, told: Tensor) -> Window:
        """(B, 5) as a layer says it: all zero is a grid around the middle, as large as the picture."""
        x, y, log_variance, log_stride, log_intensity = told.unbind(dim=1)
        centre_x, centre_y = ((at + 1) / 2 * (side - 1) for at, side in ((x, self.width), (y, self.height)))
        stride, intensity = log_stride.exp() * self.longest, log_intensity.exp()
        rows = self._filters(centre_y, stride, log_variance, self.pixels_y)
        columns = self._filters(centre_x, stride, log_variance, self.pixels_x)
        numbers = torch.stack([centre_x, centre_y, stride, (log_variance / 2).exp(), intensity], dim=1)
        return Window(rows, columns, intensity.view(-1, 1, 1, 1), numbers)

    def _filters(self, centre: Tensor, stride: Tensor, log_variance: Tensor, pixels: Tensor) -> Tensor:
        """(B,) three times, (A,) -> (B, N, A)."""
        middles = centre.unsqueeze(1) + stride.unsqueeze(1) * self.steps  # (1)
        scale = (-0.5 * (-log_variance).exp()).view(-1, 1, 1)
        return (scale * (pixels - middles.unsqueeze(2)).square()).softmax(dim=-1)  # (2)
