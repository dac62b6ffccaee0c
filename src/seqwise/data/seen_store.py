"""Rows that look at pictures, as batches: pictures once each, and which of them every row looks at.

    pixels   (M, frames, C, H, W) uint8, memory-mapped: pictures are decoded and brought to one size once (pixels.py)
    views    (M, N, F) float32, memory-mapped: what frozen eyes made of each picture, computed once (models/eyes.py)

Where there are views, they stand in the batch in the place of the pictures.

Shapes: N rows, M pictures, B batch, T frames, C channels, F features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from .augmentation import Augmentation
from .batch import Batch, Images, Noise, Regions, Tokens, next_token_batch
from .pair_store import Rows
from .seen import SeenRow
from .text_examples import AnswerColumn, Column, sample_by_answer, shuffled_by_length

READING = 7919  # in the seed of noise for reading, which no batch of training is drawn by


@dataclass(frozen=True)
class Pixels:
    """Pictures of one size, or clips of them."""

    content: np.ndarray
    """(M, T, C, H, W) uint8; behind the last frame of a clip anything."""
    frames: np.ndarray | None = None
    """(M,) how many frames each clip has; None where all have as many."""
    fingerprint: str = ""
    """Of the content: what is computed of it is cached by that name."""

    def __len__(self) -> int:
        return len(self.content)

    def field(self, chosen: np.ndarray) -> Images:
        """Of some pictures, (B,)."""
        if self.frames is None:
            return Images(torch.from_numpy(self.content[chosen]))
        lengths = self.frames[chosen]
        is_step = np.arange(lengths.max()) < lengths[:, None]  # (B, longest)
        pixels = torch.from_numpy(self.content[chosen, : lengths.max()])
        return Images(pixels, None if is_step.all() else torch.from_numpy(is_step))


@dataclass(frozen=True)
class Views:
    """What was seen in each picture, once for all."""

    features: np.ndarray
    """(M, N, F) float32."""
    boxes: np.ndarray | None = None
    """(M, N, 4) float32, or (N, 4) where those of all pictures are the same; None where that is not known."""
    regions: np.ndarray | None = None
    """(M,) how many regions each picture has; None where all have as many."""
    labels: np.ndarray | None = None
    """(M, N) what each region shows; None where nobody said."""

    def __len__(self) -> int:
        return len(self.features)

    def field(self, chosen: np.ndarray) -> Regions:
        """Of some pictures, (B,)."""
        N = self.features.shape[1] if self.regions is None else int(self.regions[chosen].max())
        features = torch.from_numpy(self.features[chosen, :N])
        boxes = labels = is_region = None
        if self.boxes is not None:
            rows = self.boxes[chosen, :N] if self.boxes.ndim == 3 else self.boxes[None].repeat(len(chosen), axis=0)
            boxes = torch.from_numpy(rows)
        if self.labels is not None:
            labels = torch.from_numpy(self.labels[chosen, :N].astype(np.int64))
        if self.regions is not None and int(self.regions[chosen].min()) < N:
            is_region = torch.from_numpy(np.arange(N) < self.regions[chosen][:, None])
        return Regions(features, boxes, is_region, labels)


@dataclass(frozen=True)
class NoiseColumn:
    """Numbers of chance for each row: the same whenever it is read, whoever else is."""

    numbers: np.ndarray
    """(N,) what the noise of each row is drawn from."""
    size: int
    """Numbers of each row."""

    def field(self, chosen: np.ndarray) -> Noise:
        rows = [noise_of((1, self.size), (READING, number)).uniform for number in self.numbers[chosen].tolist()]
        return Noise(torch.cat(rows))

    def choose(self, chosen: np.ndarray) -> NoiseColumn:
        return NoiseColumn(self.numbers[chosen], self.size)


@dataclass(frozen=True)
class SeenStore:
    """Rows with a picture each, and what else they hold: words, an answer."""

    pictures: Pixels | Views
    picture_of: np.ndarray
    """(N,) which picture each row looks at."""
    targets: Mapping[str, Column]
    """By the name of the target, the main one first; of captions, which are their own target, none."""
    rows: Sequence[SeenRow]
    """As they were read."""
    tokens: Rows | None = None
    """Of a question or a caption for each row; None where rows have no words."""
    noise: NoiseColumn | None = None
    """For models that draw; None where batches bring their own, or need none."""

    def __len__(self) -> int:
        return len(self.picture_of)

    @property
    def main(self) -> Column:
        return next(iter(self.targets.values()))

    @property
    def answers(self) -> np.ndarray:
        """(N,) of the main target."""
        assert isinstance(self.main, AnswerColumn)
        return self.main.values

    def answers_of(self, target: str) -> np.ndarray:
        """The same of another target."""
        column = self.targets[target]
        assert isinstance(column, AnswerColumn)
        return column.values

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row, or 1."""
        return np.ones(len(self), dtype=np.int64) if self.tokens is None else self.tokens.lengths

    def take(self, num: int) -> SeenStore:
        """So many rows from the beginning, or all."""
        return self if num >= len(self) else self.choose(np.arange(num))

    def choose(self, chosen: np.ndarray) -> SeenStore:
        """These rows, (n,), in this order; pictures stay where they are."""
        return replace(
            self,
            picture_of=self.picture_of[chosen],
            targets={name: column.choose(chosen) for name, column in self.targets.items()},
            rows=[self.rows[row] for row in chosen.tolist()],
            tokens=None if self.tokens is None else self.tokens.at(chosen),
            noise=None if self.noise is None else self.noise.choose(chosen),
        )

    def sample(self, num: int, seed: int) -> SeenStore:
        """So many rows by chance, of each label its share and one at least, in the order of the store."""
        if num >= len(self):
            return self
        return self.choose(sample_by_answer(self.answers if self.targets else np.zeros(len(self)), num, seed))

    def seen_as(self, views: Views) -> SeenStore:
        """The same rows with what was made of their pictures."""
        return replace(self, pictures=views)

    def with_noise(self, size: int) -> SeenStore:
        """The same rows with so many numbers of chance each, for models that draw when they are scored too."""
        return replace(self, noise=NoiseColumn(np.arange(len(self)), size)) if size else self

    def batch(self, chosen: np.ndarray | slice) -> Batch:
        chosen = np.arange(len(self))[chosen] if isinstance(chosen, slice) else chosen
        inputs: dict[str, Images | Regions | Tokens | Noise] = {"image": self.pictures.field(self.picture_of[chosen])}
        if self.noise is not None:
            inputs["noise"] = self.noise.field(chosen)
        if self.tokens is None:
            return Batch(inputs, {name: column.field(chosen) for name, column in self.targets.items()})
        words = self.tokens.padded(chosen)
        if not self.targets:  # a caption is its own target, one step ahead
            caption = next_token_batch(words.ids, words.is_token)
            return Batch({**inputs, **caption.inputs}, caption.targets)
        inputs["tokens"] = words
        return Batch(inputs, {name: column.field(chosen) for name, column in self.targets.items()})

    def in_order_of_length(self, batch_size: int) -> list[np.ndarray]:
        """All rows once, long ones together."""
        order = np.argsort(self.lengths, kind="stable")
        return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def noise_of(shape: tuple[int, int], seed: tuple[int, ...]) -> Noise:
    """Numbers between 0 and 1, neither of them, the same for the same seed."""
    drawn = np.random.default_rng(seed).random(shape, dtype=np.float32)
    return Noise(torch.from_numpy(np.clip(drawn, 1e-7, 1 - 1e-7)))


class SeenBatches:
    """Batches of rows of about the same lengths, in an order that is shuffled anew in each epoch; the batch of any step
    by itself. `num_noise` numbers of chance are drawn for each row from (seed, step), where a model asks for such; so
    is how pictures are changed by an `augmentation`."""

    def __init__(
        self,
        store: SeenStore,
        *,
        batch_size: int,
        seed: int = 0,
        num_noise: int = 0,
        augmentation: Augmentation | None = None,
    ):
        self.store, self.seed, self.num_noise, self.augmentation = store, seed, num_noise, augmentation
        self.batch_size = min(batch_size, len(store))
        self.steps_per_epoch = -(-len(store) // self.batch_size)
        self._epoch = -1

    def batch(self, step: int, model: object = None) -> Batch:
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._batches = shuffled_by_length(self.store.lengths, self.batch_size, (self.seed, epoch))
            self._epoch = epoch
        found = self.store.batch(self._batches[place])
        inputs, seen = dict(found.inputs), found.inputs["image"]
        if self.augmentation and isinstance(seen, Images):  # what frozen eyes saw is seen once for all
            inputs["image"] = self.augmentation(seen, (self.seed, step))
        if self.num_noise:
            inputs["noise"] = noise_of((len(found), self.num_noise), (self.seed, step))
        return replace(found, inputs=inputs)
