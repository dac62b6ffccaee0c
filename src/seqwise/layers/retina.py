"""Retina: patches of a picture around a place, all of the same few pixels, each as wide as two of the one before.

Mnih et al. 2014, section 3.1.1. With k = 2^s, scale s has pixels that are k wide:

    patch_s[j] = mean of k x k points, one pixel apart, around place + (j - (g-1)/2) k     (1)
    a point between pixels is weighed by how near it is to each of the four around it      (2)   bilinear
    what lies outside of the picture is black                                              (3)

The mean of bilinear points is a bilinear point of means, so each picture is blurred once, for all glimpses, and (1) is
one call for all rows and scales.

Shapes: B pictures, C channels, H and W pixels, S scales, g pixels of a patch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Retina(nn.Module):
    offsets: Tensor

    def __init__(self, size: int, num_scales: int):
        super().__init__()
        self.size, self.num_scales = size, num_scales
        self.margin = 2 ** (num_scales - 1) - 1  # of blurred pictures: pixels of which a part lies outside
        widths = 2.0 ** torch.arange(num_scales).unsqueeze(1)  # (S, 1)
        middles = (torch.arange(size) - (size - 1) / 2) * widths
        # of the first of the points that a pixel is the mean of
        self.register_buffer("offsets", middles - (widths - 1) / 2, persistent=False)  # (S, g)

    def blurred(self, pictures: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, S, C, H + margin, W + margin): means of squares, by their first corner."""
        high, wide = (side + self.margin for side in pictures.shape[2:])
        level = functional.pad(pictures, [self.margin] * 4)  # (3)
        scales = [level[..., :high, :wide]]
        for scale in range(self.num_scales - 1):  # of two means the mean: some times as fast as a pooling
            step = 2**scale
            level = (level[..., step:, :] + level[..., :-step, :]) / 2
            level = (level[..., step:] + level[..., :-step]) / 2
            scales.append(level[..., :high, :wide])
        return torch.stack(scales, dim=1)

    def forward(self, blurred: Tensor, places: Tensor) -> Tensor:
        """Around places (B, 2), x and y from -1 to 1, the middles of the outermost pixels -> (B, S, C, g, g)."""
        B, S, C, high, wide = blurred.shape
        axes = []
        for axis, length in ((0, wide), (1, high)):
            middle = (places[:, axis] + 1) / 2 * (length - 1 - self.margin)  # (B,) in pixels
            point = middle.view(B, 1, 1) + self.offsets + self.margin  # (B, S, g)
            axes.append(2 * point / max(1, length - 1) - 1)
        x = axes[0].unsqueeze(2).expand(B, S, self.size, self.size)
        y = axes[1].unsqueeze(3).expand(B, S, self.size, self.size)
        grid = torch.stack([x, y], dim=-1).flatten(0, 1)  # (B*S, g, g, 2)
        found = functional.grid_sample(
            blurred.flatten(0, 1), grid, mode="bilinear", padding_mode="zeros", align_corners=True
        )  # (1) (2)
        return found.view(B, S, C, self.size, self.size)
