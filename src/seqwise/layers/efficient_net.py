"""EfficientNet-Lite0: a network for photos that is small for what it knows, as a grid of vectors.

Tan & Le 2019; Sandler et al. 2018 for (2). The Lite form (Liu 2020) has no gates, and relu6 in all places, which is
min(max(x, 0), 6).

    x = relu6(conv3x3(pixels))                                             (1)   half as wide and high
    x = [x +] project(relu6(depthwise(relu6(expand(x)))))                  (2)   16 blocks; + where nothing changes size
    x = relu6(conv1x1(x))                                                  (3)   where the head is wanted, as published
    x = (x - mean) / deviation                                             (4)   else: of each cell, for who reads it

Norms are part of the filters and of what is added behind them: they were learned, and stay as they are
(models/efficient_net_weights.py). Padding is that of TensorFlow: where it is odd, one more below and to the right.

The published network ends with cells 32 pixels wide: of a picture of 128 pixels, 4 x 4. Where finer cells are asked
for, the last strides are left out, and the filters behind them look at every second place instead (Yu & Koltun 2016):
each vector still sees what it did, and there are four or sixteen times as many.

Shapes: B pictures, C channels, h and w cells, F channels at the top.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, pad, relu6

from .notes import tap


class _Kind(NamedTuple):
    """Of blocks that stand one behind the other; only the first of them has the stride."""

    number: int
    kernel: int
    stride: int
    expansion: int
    output_dim: int


KINDS = (
    _Kind(1, 3, 1, 1, 16),
    _Kind(2, 3, 2, 6, 24),
    _Kind(2, 5, 2, 6, 40),
    _Kind(3, 3, 2, 6, 80),
    _Kind(3, 5, 1, 6, 112),
    _Kind(4, 5, 2, 6, 192),
    _Kind(1, 3, 1, 6, 320),
)
STEM_DIM, HEAD_DIM = 32, 1280
STRIDES = (8, 16, 32)


class SamePadding(nn.Conv2d):
    """A convolution with ceil(size / stride) places along each side."""

    def __init__(self, in_dim: int, out_dim: int, kernel: int, *, stride: int = 1, dilation: int = 1, groups: int = 1):
        super().__init__(in_dim, out_dim, kernel, stride=stride, dilation=dilation, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        down, across = (self._missing(size, side) for side, size in enumerate(x.shape[2:]))
        if down or across:
            x = pad(x, (across // 2, across - across // 2, down // 2, down - down // 2))
        return super().forward(x)

    def _missing(self, size: int, side: int) -> int:
        places, reach = -(-size // self.stride[side]), self.dilation[side] * (self.kernel_size[side] - 1) + 1
        return max(0, (places - 1) * self.stride[side] + reach - size)


class InvertedBlock(nn.Module):
    def __init__(self, in_dim: int, out_dim: int, kernel: int, *, stride: int, dilation: int, expansion: int):
        super().__init__()
        wide = in_dim * expansion
        self.expand = SamePadding(in_dim, wide, 1) if expansion > 1 else None
        self.depthwise = SamePadding(wide, wide, kernel, stride=stride, dilation=dilation, groups=wide)
        self.project = SamePadding(wide, out_dim, 1)

    def forward(self, x: Tensor, *, is_added: bool) -> Tensor:
        """(B, F, h, w) -> (B, F', h', w'); `is_added`: to what came in."""
        y = x if self.expand is None else relu6(self.expand(x))
        y = self.project(relu6(self.depthwise(y)))
        return tap(self, "grid", x + y if is_added else y)  # (2)


class EfficientNetLite(nn.Module):
    def __init__(self, *, stride: int = 16, has_head: bool = False):
        """`stride`: pixels from one cell to the next; `has_head`: with the last layer, which labels are read from."""
        super().__init__()
        self.stem = SamePadding(3, STEM_DIM, 3, stride=2)
        blocks, self.is_added, width, step, dilation = [], list[bool](), STEM_DIM, 2, 1
        for kind in KINDS:
            for number in range(kind.number):
                wanted = kind.stride if number == 0 else 1
                taken = wanted if step * wanted <= stride else 1
                blocks.append(
                    InvertedBlock(
                        width,
                        kind.output_dim,
                        kind.kernel,
                        stride=taken,
                        dilation=dilation,
                        expansion=kind.expansion,
                    )
                )
                self.is_added.append(number > 0)
                step, dilation = step * taken, dilation * (wanted // taken)
                width = kind.output_dim
        self.blocks = nn.ModuleList(blocks)
        self.head = SamePadding(width, HEAD_DIM, 1) if has_head else None
        self.output_dim = HEAD_DIM if has_head else width

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, 3, H, W) -> (B, F, h, w)."""
        x = relu6(self.stem(pixels))  # (1)
        for block, is_added in zip(self.blocks, self.is_added, strict=True):
            x = block(x, is_added=is_added)
        if self.head is not None:
            return relu6(self.head(x))  # (3)
        return layer_norm(x.movedim(1, -1), (x.shape[1],)).movedim(-1, 1)  # (4)


@torch.no_grad()
def folded(filters: Tensor, norm: dict[str, Tensor], epsilon: float) -> tuple[Tensor, Tensor]:
    """Filters and what is added behind them, which together do what a convolution and its learned norm do:
    (F x - mean) g / sqrt(variance + epsilon) + b."""
    share = norm["weight"].double() / (norm["running_var"].double() + epsilon).sqrt()  # (F,)
    added = norm["bias"].double() - norm["running_mean"].double() * share
    return (filters.double() * share.view(-1, 1, 1, 1)).float(), added.float()
