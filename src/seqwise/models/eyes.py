"""Eyes: what turns the pictures of a batch into regions, a vector for each place, for every family that looks.

    eyes(Images) -> Regions       cells of a grid, row by row, frame by frame
    eyes(Regions) -> Regions      as they are: what frozen eyes, or somebody else's, made of pictures beforehand

They are a part of the body, `body.eyes`, so that a run stands alone: a new picture is seen as those of training were.

Shapes: B batch, T frames, C channels, H and W pixels, h and w cells, N = T h w regions, F features.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from ..data.batch import Images, Regions
from ..data.schema import ImageSpec, RegionSpec, Schema
from ..errors import ConfigError
from ..layers.residual_grid import PixelScaling, ResidualGrid
from .build import NeuralConfig

IMAGE = "image"
"""The field that eyes look at."""


@dataclass(frozen=True)
class EyesConfig:
    """What eyes can be told."""

    widths: list[int] = field(default_factory=lambda: [24, 64, 128])
    """Eyes: channels of the finest grid of cells, and of each stage behind it, which halves width and height."""
    blocks_per_stage: int = 1
    """Eyes: convolutions with a shortcut in each stage."""
    eye_stride: int = 1
    """Eyes: pixels from one cell of the finest grid to the next."""

    def check_eyes(self) -> None:
        if not self.widths or min(self.widths) < 1:
            raise ConfigError(f"model.widths = {self.widths} should be numbers of channels, each at least 1.")
        if self.blocks_per_stage < 0 or self.eye_stride < 1:
            raise ConfigError(
                f"model.blocks_per_stage = {self.blocks_per_stage} should not be negative, and model.eye_stride = "
                f"{self.eye_stride} should be at least 1."
            )


@dataclass(frozen=True)
class SeeingConfig(EyesConfig, NeuralConfig):
    """What every family that looks at pictures can be told; each adds its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_eyes()


class Eyes(Protocol):
    output_dim: int
    """F."""
    is_frozen: bool
    """Whether training leaves them as they are, so that each picture need be seen only once."""

    def __call__(self, seen: Images | Regions) -> Regions: ...


class GridEyes(nn.Module):
    """Pictures as grids."""

    is_frozen = False

    def __init__(self, scaling: PixelScaling, network: ResidualGrid):
        super().__init__()
        self.scaling, self.network, self.output_dim = scaling, network, network.output_dim

    def forward(self, seen: Images | Regions) -> Regions:
        if isinstance(seen, Regions):
            return seen
        grid = self.network(self.scaling(seen))  # (B*T, F, h, w)
        h, w = grid.shape[2:]
        features = grid.flatten(2).transpose(1, 2)  # (B*T, h*w, F)
        B, T = seen.shape
        boxes = grid_boxes(h, w).to(features).repeat(T, 1).expand(B, -1, -1)
        is_region = None if seen.is_step is None else seen.is_step.repeat_interleave(h * w, dim=1)
        return Regions(features.reshape(B, T * h * w, -1), boxes, is_region)


class RegionEyes(nn.Module):
    """Regions that were found beforehand."""

    is_frozen = True

    def __init__(self, feature_dim: int):
        super().__init__()
        self.output_dim = feature_dim

    def forward(self, seen: Regions) -> Regions:
        return seen


def grid_boxes(h: int, w: int) -> Tensor:
    """Left, top, right and bottom edge of each cell, row by row: (h*w, 4), as shares of width and height."""
    top, left = torch.meshgrid(torch.arange(h) / h, torch.arange(w) / w, indexing="ij")
    return torch.stack([left, top, left + 1 / w, top + 1 / h], dim=-1).flatten(0, 1)


def eyes_for(config: EyesConfig, schema: Schema) -> GridEyes | RegionEyes:
    """What looks at the pictures of this schema."""
    spec = schema.specs[schema.inputs[IMAGE]]
    if isinstance(spec, RegionSpec):
        return RegionEyes(spec.feature_dim)
    assert isinstance(spec, ImageSpec)
    scaling = PixelScaling(spec.mean, spec.scale)
    return GridEyes(scaling, ResidualGrid(spec.size, config.widths, config.blocks_per_stage, config.eye_stride))
