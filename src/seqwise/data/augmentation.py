"""Pictures as they might have been taken too: mirrored, shifted, with a corner covered. Drawn from (seed, step).

Only what is learned from is changed, never what is validated or tested on. All frames of a clip are changed alike.

Shapes: B batch, T frames, C channels, H and W pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from .batch import Images

AUGMENTING = 6997  # in the seed: what else is drawn from (seed, step) is drawn by other numbers


@dataclass(frozen=True)
class Augmentation:
    flip: bool = False
    """Mirror every other picture."""
    shift: int = 0
    """Move each by up to so many pixels to each side; behind the edge, the picture is mirrored (padded crop)."""
    cutout: int = 0
    """Cover a square of so many pixels with the mean of the picture (DeVries & Taylor 2017)."""

    def __bool__(self) -> bool:
        return bool(self.flip or self.shift or self.cutout)

    def __call__(self, images: Images, seed: tuple[int, int]) -> Images:
        """`seed`: that of the run, and the step."""
        random = np.random.default_rng((AUGMENTING, *seed))
        pixels = images.pixels.numpy()
        B, _, _, H, W = pixels.shape
        rows = _shifted(H, random.integers(-self.shift, self.shift + 1, size=(B,)))  # (B, H)
        columns = _shifted(W, random.integers(-self.shift, self.shift + 1, size=(B,)))
        is_flipped = random.random((B,)) < (0.5 if self.flip else 0.0)
        columns = np.where(is_flipped[:, None], columns[:, ::-1], columns)
        found = np.stack(
            [one[..., down[:, None], across] for one, down, across in zip(pixels, rows, columns, strict=True)]
        )
        if self.cutout:
            self._cover(found, random)
        return replace(images, pixels=torch.from_numpy(found))

    def _cover(self, pixels: np.ndarray, random: np.random.Generator) -> None:
        """Squares whose middle lies anywhere in the picture: at its edge, they are cut off."""
        B, _, _, H, W = pixels.shape
        tops, lefts = (random.integers(size, size=(B,)) - self.cutout // 2 for size in (H, W))
        for one, top, left in zip(pixels, tops.tolist(), lefts.tolist(), strict=True):
            square = (..., slice(max(0, top), top + self.cutout), slice(max(0, left), left + self.cutout))
            one[square] = one.mean(axis=(0, 2, 3), keepdims=True)[0].round()


def _shifted(size: int, shifts: np.ndarray) -> np.ndarray:
    """Places along one side, (B, size), moved by `shifts` (B,) and mirrored at the edges."""
    places = np.arange(size) + shifts[:, None]
    period = 2 * max(1, size - 1)
    return (size - 1) - np.abs((places % period) - (size - 1))
