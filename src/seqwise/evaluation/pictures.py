"""How well a model knows pictures: a bound on what they cost.

    -log p(x) <= reconstruction + kl        nats per picture, each pixel black or white

The model paints a picture from numbers that it chose while it looked at the picture: what they tell (kl) and what is
missing then (reconstruction) is at least what the picture costs. How much more, nobody knows: so this is no likelihood,
and is set beside bounds alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from .. import __version__
from ..data.batch import Batch
from ..data.binarised import scored_batch
from ..data.seen_store import SeenStore
from ..models.contract import Model, device_of, evaluating, noise_for
from ..wording import counted
from .segments import RESAMPLES, Metric, Segments, interval_in_words

ROWS = 256  # scored at once
SEED = 0  # of black and white, in every score


class BoundsPictures(Model, Protocol):
    """A model whose score is a bound, of two parts."""

    def parts(self, batch: Batch, /) -> tuple[Tensor, Tensor]:
        """Reconstruction and kl of each row, (B,) nats."""
        ...


@dataclass(frozen=True)
class PictureScore:
    metric = Metric("bound in nats per picture", "bound, nats", digits=2)

    reconstruction: np.ndarray
    """(N,) nats."""
    kl: np.ndarray
    """(N,) nats."""
    num_pixels: int
    """Of a picture, in all channels."""
    scored: str = ""
    """Of the data, for the signature."""

    @property
    def bound(self) -> float:
        """Nats per picture."""
        return float((self.reconstruction + self.kl).mean())

    @cached_property
    def segments(self) -> Segments:
        """Picture by picture."""
        return Segments.of(self.reconstruction + self.kl, np.ones(len(self.kl)))

    @property
    def signature(self) -> str:
        drawn = f"black and white, seed={SEED}"
        size = f"bootstrap={RESAMPLES}x{len(self.kl)}"
        parts = ["bound, one draw", self.scored, drawn, size, f"seqwise={__version__}"]
        return "|".join(part for part in parts if part)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def _in_words(self) -> str:
        return f"{self.bound:.2f} nats per picture ({interval_in_words(self.segments.interval, 2)})"

    def headline(self) -> str:
        return f"at most {self._in_words()}, over {counted(len(self.kl), 'picture')}; a bound, no likelihood"

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "bound", f"at most {self._in_words()}"
        yield "reconstruction", f"{self.reconstruction.mean():.2f} nats: what is missing when it is painted"
        yield "kl", f"{self.kl.mean():.2f} nats: what it was told to paint"
        yield "per pixel", f"at most {self.bound / self.num_pixels / math.log(2):.4f} bits"
        yield "of", counted(len(self.kl), "picture")
        yield "what it is not", "a likelihood: pictures may cost less than this, and nobody knows by how much"
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        return {
            "bound": self.bound,
            "interval": list(self.segments.interval),
            "is_enough": self.segments.is_enough,
            "reconstruction": float(self.reconstruction.mean()),
            "kl": float(self.kl.mean()),
            "pictures": len(self.kl),
            "pixels": self.num_pixels,
            "signature": self.signature,
        }


@torch.inference_mode()
def evaluate_pictures(model: BoundsPictures, store: SeenStore, *, scored: str = "") -> PictureScore:
    """Every picture of a store, in black and white, by one draw of chance each."""
    device, store = device_of(model), store.with_noise(noise_for(model))
    found: list[tuple[np.ndarray, ...]] = []
    with evaluating(model):
        for first in range(0, len(store), ROWS):
            batch = scored_batch(store, np.arange(first, min(first + ROWS, len(store))), SEED).to(device)
            found.append(tuple(part.double().cpu().numpy() for part in model.parts(batch)))
    reconstruction, kl = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return PictureScore(reconstruction, kl, math.prod(batch.inputs["image"].pixels.shape[1:]), scored)
