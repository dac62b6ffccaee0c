"""Pictures somewhere on a larger, black one: digits that first have to be found (Mnih et al. 2014, "translated MNIST").

Where a picture lies follows from its name, so that it lies there whenever it is read.
"""

from __future__ import annotations

import hashlib
import zlib

import numpy as np

from .seen import PictureSource

SEED = 0
VERSION = 1  # of how places are drawn


class PlacedPictures:
    def __init__(self, source: PictureSource, side: int):
        self.source, self.side = source, side

    def read(self, name: str) -> np.ndarray:
        """(side, side, C)."""
        found = self.source.read(name)
        height, width, channels = found.shape
        random = np.random.default_rng((SEED, zlib.crc32(name.encode())))
        top, left = random.integers(self.side - height + 1), random.integers(self.side - width + 1)
        placed = np.zeros((self.side, self.side, channels), dtype=np.uint8)
        placed[top : top + height, left : left + width] = found
        return placed

    @property
    def fingerprint(self) -> str:
        told = f"{self.source.fingerprint} on {self.side}, version {VERSION}"
        return hashlib.sha256(told.encode()).hexdigest()
