"""Pixels -> a grid of vectors: convolutions with shortcuts around them, in stages that halve the grid.

He et al. 2016, in the form that puts norms and nonlinearities before each convolution, made for few cores: few channels
while the grid is fine, and one convolution inside of each shortcut. Norms are over groups of channels (Wu & He 2018):
what is seen in one picture does not depend on who else is in the batch.

    x = conv(pixels)                               (1)   few channels; large pictures are read at wider steps
    x = pool(conv3x3(relu(norm(x))))               (2)   each stage: more channels, the highest of each 2 x 2 cells
    x = x + conv3x3(relu(norm(x)))                 (3)   `blocks_per_stage` times

Shapes: B pictures, C channels, H and W pixels, h and w cells, F channels at the top.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, relu

from ..data.batch import Images
from .notes import tap

NORM_GROUPS = 8


class PixelScaling(nn.Module):
    """Bytes -> numbers: each channel of mean zero and variance one in the training part."""

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Sequence[float], scale: Sequence[float]):
        super().__init__()
        # of the schema, not learned: not among the weights
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("scale", torch.tensor(scale).view(-1, 1, 1), persistent=False)

    def forward(self, images: Images) -> Tensor:
        """All frames of all rows, (B*T, C, H, W), with the channels of a pixel side by side in memory."""
        scaled = (images.pixels.flatten(0, 1).to(self.mean.dtype) / 255 - self.mean) / self.scale
        return scaled.contiguous(memory_format=torch.channels_last)  # a third faster on CPUs


class Convolution(nn.Module):
    """conv3x3(relu(norm(x)))."""

    def __init__(self, in_dim: int, out_dim: int):
        super().__init__()
        self.norm = _norm(in_dim)
        self.filters = nn.Conv2d(in_dim, out_dim, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.filters(relu(self.norm(x)))


class Stage(nn.Module):
    def __init__(self, in_dim: int, out_dim: int, num_blocks: int):
        super().__init__()
        self.widen = Convolution(in_dim, out_dim)
        self.blocks = nn.ModuleList(Convolution(out_dim, out_dim) for _ in range(num_blocks))
        for block in self.blocks:
            nn.init.zeros_(block.filters.weight)  # type: ignore[union-attr,arg-type]  # each begins as its shortcut

    def forward(self, x: Tensor) -> Tensor:
        """(B, F, h, w) -> half as wide and high; what is left of an odd number is a cell of its own."""
        x = max_pool2d(self.widen(x), 2, ceil_mode=True)  # (2)
        for block in self.blocks:
            x = x + block(x)  # (3)
        return tap(self, "grid", x)


class ResidualGrid(nn.Module):
    """`widths`: channels of the finest grid, and of each stage behind it, which halves it; `stride`: pixels from one
    cell of the finest grid to the next."""

    def __init__(self, channels: int, widths: Sequence[int], blocks_per_stage: int = 1, stride: int = 1):
        super().__init__()
        size = 3 if stride == 1 else 2 * stride
        self.stem = nn.Conv2d(channels, widths[0], size, stride=stride, padding=(size - stride + 1) // 2, bias=False)
        self.stages = nn.Sequential(*(Stage(*pair, blocks_per_stage) for pair in pairwise(widths)))
        self.norm, self.output_dim = _norm(widths[-1]), widths[-1]

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, F, h, w)."""
        return relu(self.norm(self.stages(self.stem(pixels))))  # (1)


def _norm(channels: int) -> nn.GroupNorm:
    groups = next(number for number in range(NORM_GROUPS, 0, -1) if channels % number == 0)
    return nn.GroupNorm(groups, channels)
