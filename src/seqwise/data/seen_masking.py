"""Pictures with sentences about them, parts of which are hidden: what a model of both is pretrained by.

    read      a [MASK] dog runs  + regions of its picture, or of another
    wanted    -  brown  -   -    + features and classes of regions that are hidden  + match or not

Half of the rows have another picture.

Of each row either words or regions are hidden (Chen et al. 2020: what is hidden is told from the side that is whole),
15 % of them: words as BERT hides them (masking.py), regions by features of zero. What is hidden is asked of rows whose
picture is the right one; in others as much is hidden, which else would tell that they match. Pixels have no features
that stand still to be told: of pictures that are no regions, words alone are hidden.

Shapes: N rows, B batch, T tokens, R regions, F features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from .batch import Batch, Labels, Regions, Tokens
from .masking import HIDDEN, ORDER, SECOND, Hider, Masking
from .schema import TokenSpec
from .seen_store import SeenStore

MATCHES = 1
"""The label of words and a picture that belong together; 0 of a picture that was drawn."""


@dataclass(frozen=True)
class SeenMaskedStore:
    """A part of pictures with sentences, to be read with words and regions hidden."""

    seen: SeenStore
    spec: TokenSpec
    targets: tuple[str, ...]
    """Which of these are asked for: tokens, match, image (features), shown (classes), alignment."""

    def __len__(self) -> int:
        return len(self.seen)

    def take(self, num: int) -> SeenMaskedStore:
        return replace(self, seen=self.seen.take(num))

    def sample(self, num: int, seed: int) -> SeenMaskedStore:
        return replace(self, seen=self.seen.sample(num, seed))

    def batch(self, chosen: np.ndarray, masking: Masking, seed: tuple[int, ...]) -> Batch:
        """Rows by their numbers (B,). What is drawn for one follows from the seed and its number."""
        seen = self.seen
        assert seen.tokens is not None
        draws = [np.random.default_rng((*seed, HIDDEN, int(number))) for number in chosen]
        matches, pictures = self._pictures(chosen, np.random.default_rng((*seed, SECOND)))
        image, tokens = seen.pictures.field(pictures), seen.tokens.padded(chosen)
        can_hide = isinstance(image, Regions) and "image" in self.targets
        hides_regions = np.array([can_hide and draw.random() < 0.5 for draw in draws])
        words, wanted = self._words(tokens, ~hides_regions, matches, draws, masking)
        targets: dict[str, Any] = {"tokens": wanted, "match": Labels(torch.from_numpy(matches.astype(np.int64)))}
        inputs: dict[str, Any] = {"image": image, "tokens": words}
        if can_hide and isinstance(image, Regions):
            inputs["image"], asked = _regions(image, hides_regions, matches, draws, masking)
            targets |= {"image": asked, "shown": _known(asked)}
        targets["alignment"] = targets["match"]
        return Batch(inputs, {name: targets[name] for name in self.targets})

    def _pictures(self, chosen: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """(B,) which rows have their own picture, and the picture of each."""
        own, matches = self.seen.picture_of[chosen], random.random(len(chosen)) < 0.5
        other = (own + random.integers(1, max(2, len(self.seen.pictures)), size=len(own))) % len(self.seen.pictures)
        return matches, np.where(matches, own, other)

    def _words(
        self, tokens: Tokens, hides: np.ndarray, matches: np.ndarray, draws: Sequence[Any], masking: Masking
    ) -> tuple[Tokens, Tokens]:
        """As they are read, and what is asked of them."""
        hider, ids, lengths = Hider.of(self.spec), tokens.ids.numpy(), tokens.lengths.tolist()
        hidden = np.stack(
            [
                hider.hidden(row, length if hide else 0, masking, draw)
                for row, length, hide, draw in zip(ids, lengths, hides, draws, strict=True)
            ]
        )
        read = np.stack([hider.as_read(row, here, draw) for row, here, draw in zip(ids, hidden, draws, strict=True)])
        scored = torch.from_numpy(hidden & matches[:, None])
        return replace(tokens, ids=torch.from_numpy(read)), replace(tokens, is_scored=scored)


def _regions(
    image: Regions, hides: np.ndarray, matches: np.ndarray, draws: Sequence[np.random.Generator], masking: Masking
) -> tuple[Regions, Regions]:
    """As they are read, and what is asked of them; where regions are hidden, one at least."""
    hidden = np.zeros(image.shape, dtype=bool)
    for row, (length, draw) in enumerate(zip(image.lengths.tolist(), draws, strict=True)):
        if hides[row]:
            hidden[row, :length] = draw.random(length) < masking.share
            hidden[row, draw.integers(length)] = True
    is_hidden = torch.from_numpy(hidden)
    read = replace(image, features=image.features.masked_fill(is_hidden.unsqueeze(-1), 0.0), labels=None)
    return read, replace(image, is_scored=is_hidden & torch.from_numpy(matches).unsqueeze(1))


def _known(asked: Regions) -> Regions:
    """The same, where somebody has said what a region shows."""
    if asked.labels is None or asked.is_scored is None:
        return asked
    return replace(asked, is_scored=asked.is_scored & (asked.labels >= 0))


class SeenMaskedBatches:
    """All rows in an order that is drawn anew for each epoch; the batch of any step by itself."""

    def __init__(self, store: SeenMaskedStore, *, batch_size: int, masking: Masking, seed: int):
        self.store, self.masking, self.seed = store, masking, seed
        self.batch_size = min(batch_size, len(store))
        self.steps_per_epoch = max(1, len(store) // self.batch_size)

    def batch(self, step: int, model: object = None) -> Batch:
        epoch, place = divmod(step, self.steps_per_epoch)
        order = np.random.default_rng((self.seed, ORDER, epoch)).permutation(len(self.store))
        chosen = order[place * self.batch_size : (place + 1) * self.batch_size]
        return self.store.batch(chosen, self.masking, (self.seed, step))
