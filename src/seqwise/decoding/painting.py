"""Painting: pictures from nothing but chance, with the canvas after each step.

Shapes: N pictures, T steps, C channels, H and W pixels.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ..data.batch import Noise
from ..data.seen_store import noise_of
from ..models.contract import device_of, evaluating

AT_ONCE = 64
PAINTED = 15_485_863  # in the seed of noise: no batch of training is drawn by it


class Painter(Protocol):
    """A model that paints."""

    num_noise: int

    def paint(self, noise: Noise, /) -> Tensor:
        """How white each pixel is after each step, from 0 to 1: (B, T, C, H, W)."""
        ...


@torch.inference_mode()
def paint(model: Painter, num: int, *, seed: int = 0) -> np.ndarray:
    """(N, T, H, W, C) uint8. Each picture has chance of its own: of more pictures the first are the same."""
    rows = [noise_of((1, model.num_noise), (seed, PAINTED, number)).uniform for number in range(num)]
    found = []
    with evaluating(model):
        for first in range(0, num, AT_ONCE):
            noise = Noise(torch.cat(rows[first : first + AT_ONCE]).to(device_of(model)))
            found.append((255 * model.paint(noise)).round().to(torch.uint8).cpu().numpy())
    return np.ascontiguousarray(np.concatenate(found).transpose(0, 1, 3, 4, 2))
