"""Pixels -> a grid of vectors: convolutions with shortcuts around them, in stages that halve the grid.

He et al. 2016, in the form that puts norms and nonlinearities before each convolution. Norms are over groups of
channels (Wu & He 2018): what is seen in one picture does not depend on who else is in the batch.

    x = conv(pixels)                                                  (1)   3x3, or larger and with a stride
    x = shortcut(x) + conv3x3(relu(norm(conv3x3(relu(norm(x))))))     (2)   each stage begins with stride 2

Shapes: B pictures, C channels, H and W pixels, h and w cells, F channels at the top.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

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
        """All frames of all rows, (B*T, C, H, W)."""
        return (images.pixels.flatten(0, 1).to(self.mean.dtype) / 255 - self.mean) / self.scale


class ResidualBlock(nn.Module):
    def __init__(self, in_dim: int, out_dim: int, stride: int):
        super().__init__()
        self.first_norm = nn.GroupNorm(min(NORM_GROUPS, in_dim), in_dim)
        self.first = nn.Conv2d(in_dim, out_dim, 3, stride=stride, padding=1, bias=False)
        self.second_norm = nn.GroupNorm(min(NORM_GROUPS, out_dim), out_dim)
        self.second = nn.Conv2d(out_dim, out_dim, 3, padding=1, bias=False)
        is_same = stride == 1 and in_dim == out_dim
        self.shortcut = None if is_same else nn.Conv2d(in_dim, out_dim, 1, stride=stride, bias=False)
        nn.init.zeros_(self.second.weight)  # each block begins as its shortcut

    def forward(self, x: Tensor) -> Tensor:
        """(B, F, h, w) -> the same, or half as wide and high."""
        y = relu(self.first_norm(x))
        kept = x if self.shortcut is None else self.shortcut(y)
        return tap(self, "grid", kept + self.second(relu(self.second_norm(self.first(y)))))  # (2)


class ResidualGrid(nn.Module):
    """`widths` of the stages; the first has a cell for each pixel, or for each `stem_stride` of them."""

    def __init__(self, channels: int, widths: Sequence[int], blocks_per_stage: int = 1, stem_stride: int = 1):
        super().__init__()
        self.stem = nn.Conv2d(channels, widths[0], stem_stride + 2, stride=stem_stride, padding=1, bias=False)
        blocks, width = [], widths[0]
        for stage, wide in enumerate(widths):
            for number in range(blocks_per_stage):
                blocks.append(ResidualBlock(width, wide, stride=2 if stage and not number else 1))
                width = wide
        self.blocks = nn.Sequential(*blocks)
        self.norm, self.output_dim = nn.GroupNorm(min(NORM_GROUPS, width), width), width

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, F, h, w)."""
        return relu(self.norm(self.blocks(self.stem(pixels))))  # (1)
