"""Eyes: what turns the pictures of a batch into regions, a vector for each place, for every family that looks.

    eyes(Images) -> Regions       cells of a grid, row by row, frame by frame
    eyes(Regions) -> Regions      as they are: what frozen eyes, or somebody else's, made of pictures beforehand

They are a part of the body, `body.eyes`, so that a run stands alone: a new picture is seen as those of training were.

Shapes: B batch, T frames, C channels, H and W pixels, h and w cells, N = T h w regions, F features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, unfold

from ..data.batch import Images, Regions
from ..data.schema import ImageSpec, RegionSpec, Schema
from ..errors import ConfigError
from ..layers.efficient_net import STRIDES, EfficientNetLite
from ..layers.residual_grid import PixelScaling, ResidualGrid
from .build import NeuralConfig

IMAGE = "image"
"""The field that eyes look at."""


class Network(Protocol):
    """Scaled pixels (B, C, H, W) -> a grid of vectors (B, F, h, w): a module."""

    output_dim: int

    def __call__(self, pixels: Tensor, /) -> Tensor: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, saved: dict[str, Any], /) -> Any: ...


def _residual_grid(channels: int, sizes: Sequence[int]) -> ResidualGrid:
    blocks, stride, *widths = sizes
    return ResidualGrid(channels, widths, blocks, stride)


def _efficient_net(channels: int, sizes: Sequence[int]) -> EfficientNetLite:
    stride, has_head = sizes
    return EfficientNetLite(stride=stride, has_head=bool(has_head))


def _transformer(channels: int, sizes: Sequence[int]) -> Network:
    from .bert import PatchEncoder  # a family, which has eyes itself

    return PatchEncoder(channels, sizes)


NETWORKS: dict[str, Callable[[int, Sequence[int]], Network]] = {
    "grid": _residual_grid,
    "efficientnet": _efficient_net,
    "transformer": _transformer,
}
"""What eyes of others are made of, given the channels of a picture and `encoder_sizes`."""
SEEN_AT_ONCE = 32


@dataclass(frozen=True)
class EyesConfig:
    """What eyes can be told."""

    widths: list[int] = field(default_factory=lambda: [24, 64, 128])
    """Eyes: channels of the finest grid of cells, and of each stage behind it, which halves width and height."""
    blocks_per_stage: int = 1
    """Eyes: convolutions with a shortcut in each stage."""
    eye_stride: int = 1
    """Eyes: pixels from one cell of the finest grid to the next."""
    encoder: str = ""
    """Eyes: a run that looks at pictures, or a file of EfficientNet-Lite0, whose eyes this run takes over. Its weights
    are copied into this run."""
    encoder_tuned: bool = False
    """Eyes of others learn on with the rest; else they stay as they are, and see each picture once."""
    encoder_stride: int = 16
    """EfficientNet: pixels from one cell to the next: 8, 16, or 32 as published."""
    encoder_kind: str = ""
    """Of eyes of others: grid, efficientnet or transformer; filled in."""
    encoder_sizes: list[int] = field(default_factory=list)
    """Of eyes of others; filled in."""
    encoder_fingerprint: str = ""
    """sha256 of the weights of eyes of others; filled in."""

    def check_eyes(self) -> None:
        if self.encoder_stride not in STRIDES:
            raise ConfigError(
                f"model.encoder_stride = {self.encoder_stride} is not one of {', '.join(map(str, STRIDES))}."
            )
        if self.encoder_kind and self.encoder_kind not in NETWORKS:
            raise ConfigError(f'model.encoder_kind = "{self.encoder_kind}" is not one of {", ".join(NETWORKS)}.')
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


def grid_sizes(config: EyesConfig) -> list[int]:
    """`encoder_sizes` of a run with eyes of its own."""
    return [config.blocks_per_stage, config.eye_stride, *config.widths]


def eyes_of(model: nn.Module) -> tuple[str, GridEyes] | None:
    """Where in a model its eyes are, by the beginning of the names of their weights; None where it has no such."""
    return next(((f"{name}.", eyes) for name, eyes in model.named_modules() if isinstance(eyes, GridEyes)), None)


class Eyes(Protocol):
    output_dim: int
    """F."""
    is_frozen: bool
    """Whether training leaves them as they are, so that each picture need be seen only once."""

    def __call__(self, seen: Images | Regions) -> Regions: ...


class GridEyes(nn.Module):
    """Pictures as grids."""

    def __init__(self, scaling: PixelScaling, network: Network, *, is_frozen: bool = False):
        super().__init__()
        self.scaling, self.network, self.output_dim = scaling, network, network.output_dim
        self.is_frozen = is_frozen
        if is_frozen:
            self.requires_grad_(False)

    def forward(self, seen: Images | Regions) -> Regions:
        if isinstance(seen, Regions):
            return seen
        pixels = self.scaling(seen)
        if self.is_frozen:  # a few at a time: what is between the layers is large
            grid = torch.cat([self.network(some) for some in pixels.split(SEEN_AT_ONCE)])
        else:
            grid = self.network(pixels)  # (B*T, F, h, w)
        return in_order_of_time(grid.flatten(2), *grid.shape[2:], seen=seen)


class PatchEyes(nn.Module):
    """Pictures as patches, as they are: all pixels of a square are one vector."""

    is_frozen = False

    def __init__(self, scaling: PixelScaling, channels: int, patch_size: int):
        super().__init__()
        self.scaling, self.patch_size, self.output_dim = scaling, patch_size, channels * patch_size**2

    def forward(self, seen: Images | Regions) -> Regions:
        if isinstance(seen, Regions):
            return seen
        return in_order_of_time(*patches_of(self.scaling(seen), self.patch_size), seen=seen)


class RegionEyes(nn.Module):
    """Regions that were found beforehand."""

    is_frozen = True

    def __init__(self, feature_dim: int):
        super().__init__()
        self.output_dim = feature_dim

    def forward(self, seen: Regions) -> Regions:
        return seen


def patches_of(pixels: Tensor, size: int) -> tuple[Tensor, int, int]:
    """Squares of a picture, (B, C, H, W) -> (B, C * size * size, h * w), h and w; those at its edge are filled up with
    the mean, which is zero."""
    height, width = pixels.shape[2:]
    h, w = -(-height // size), -(-width // size)
    return unfold(pad(pixels, (0, w * size - width, 0, h * size - height)), size, stride=size), h, w


def in_order_of_time(cells: Tensor, h: int, w: int, *, seen: Images) -> Regions:
    """Cells of all frames, (B*T, F, h*w), as the regions of each row."""
    B, T = seen.shape
    features = cells.transpose(1, 2).reshape(B, T * h * w, -1)
    boxes = grid_boxes(h, w).to(features).repeat(T, 1).expand(B, -1, -1)
    is_region = None if seen.is_step is None else seen.is_step.repeat_interleave(h * w, dim=1)
    return Regions(features, boxes, is_region)


def with_first_place(regions: Regions) -> Regions:
    """Behind a place that shows nothing: it stands for all of the picture."""
    features = pad(regions.features, (0, 0, 1, 0))
    boxes = None if regions.boxes is None else pad(regions.boxes, (0, 0, 1, 0))
    is_region = None if regions.is_region is None else pad(regions.is_region, (1, 0), value=True)
    return Regions(features, boxes, is_region)


def has_boxes(spec: ImageSpec | RegionSpec) -> bool:
    """Whether regions lie anywhere, and only their boxes tell where."""
    return isinstance(spec, RegionSpec) and spec.has_boxes


@torch.no_grad()
def num_regions(eyes: Eyes, spec: ImageSpec | RegionSpec) -> int:
    """Of the longest row."""
    if isinstance(spec, RegionSpec):
        return spec.max_regions
    return eyes(Images(torch.zeros(1, spec.max_frames, spec.size, spec.height, spec.width))).shape[1]


def grid_boxes(h: int, w: int) -> Tensor:
    """Left, top, right and bottom edge of each cell, row by row: (h*w, 4), as shares of width and height."""
    top, left = torch.meshgrid(torch.arange(h) / h, torch.arange(w) / w, indexing="ij")
    return torch.stack([left, top, left + 1 / w, top + 1 / h], dim=-1).flatten(0, 1)


def eyes_for(config: EyesConfig, schema: Schema, *, patch_size: int = 0) -> GridEyes | PatchEyes | RegionEyes:
    """What looks at the pictures of this schema; patches of this size, where somebody else learns what they show."""
    spec = schema.specs[schema.inputs[IMAGE]]
    if isinstance(spec, RegionSpec):
        return RegionEyes(spec.feature_dim)
    assert isinstance(spec, ImageSpec)
    scaling = PixelScaling(spec.mean, spec.scale)
    if config.encoder_kind:
        network = NETWORKS[config.encoder_kind](spec.size, config.encoder_sizes)
        return GridEyes(scaling, network, is_frozen=not config.encoder_tuned)
    if patch_size:
        return PatchEyes(scaling, spec.size, patch_size)
    return GridEyes(scaling, ResidualGrid(spec.size, config.widths, config.blocks_per_stage, config.eye_stride))
