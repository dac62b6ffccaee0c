"""Pictures in black and white: each pixel is white with the chance that its grey says, as bounds on MNIST are computed
(Salakhutdinov & Murray 2008).

To be scored, a picture is drawn once: what it becomes follows from the seed and its number, whoever else is in the
batch. In training it is drawn anew each time, by (seed, step). What is drawn is read, and is to be painted again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from .batch import Batch, Images
from .seen_store import SeenBatches, SeenStore

SCORED, TRAINED = 104_651, 104_659  # in seeds, so that no other chance is drawn by the same
IMAGE = "image"


def in_black_and_white(batch: Batch, uniform: np.ndarray) -> Batch:
    """By numbers from 0 to 1 in the shape of the pixels: to be read, and to be painted."""
    seen: Images = batch.inputs[IMAGE]
    is_white = torch.from_numpy(uniform) * 255 < seen.pixels
    drawn = Images(is_white.to(torch.uint8) * 255, seen.is_step)
    return replace(batch, inputs={**batch.inputs, IMAGE: drawn}, targets={IMAGE: drawn})


def scored_batch(store: SeenStore, chosen: np.ndarray, seed: int) -> Batch:
    """Rows as they are scored."""
    batch = store.batch(chosen)
    shape = batch.inputs[IMAGE].pixels.shape[1:]
    numbers = store.picture_of[chosen].tolist()
    each = [np.random.default_rng((seed, SCORED, number)).random(shape, dtype=np.float32) for number in numbers]
    return in_black_and_white(batch, np.stack(each))


class PictureBatches:
    """Batches of pictures to be painted, the batch of any step by itself."""

    def __init__(self, store: SeenStore, *, batch_size: int, seed: int, num_noise: int):
        self.chosen = SeenBatches(store, batch_size=batch_size, seed=seed, num_noise=num_noise)
        self.seed, self.steps_per_epoch = seed, self.chosen.steps_per_epoch

    def batch(self, step: int, model: object = None) -> Batch:
        found = self.chosen.batch(step)
        random = np.random.default_rng((self.seed, TRAINED, step))
        return in_black_and_white(found, random.random(found.inputs[IMAGE].pixels.shape, dtype=np.float32))
