"""Pictures that are learned from are mirrored, shifted and covered; the same way for the same step."""

from __future__ import annotations

import numpy as np
import torch

from seqwise.data.augmentation import Augmentation
from seqwise.data.batch import Images

RANDOM = np.random.default_rng(0)
PIXELS = torch.from_numpy(RANDOM.integers(0, 256, (40, 2, 3, 6, 5), dtype=np.uint8))


def test_every_other_picture_is_mirrored_whole() -> None:
    found = Augmentation(flip=True)(Images(PIXELS), (0, 3)).pixels
    is_flipped = [bool((one == before.flip(-1)).all()) for one, before in zip(found, PIXELS, strict=True)]
    is_kept = [bool((one == before).all()) for one, before in zip(found, PIXELS, strict=True)]
    assert [a != b for a, b in zip(is_flipped, is_kept, strict=True)] == [True] * 40
    assert 8 < sum(is_flipped) < 32


def by_hand(picture: np.ndarray, down: int, across: int, room: int) -> np.ndarray:
    """A crop of the picture, padded by its mirror image."""
    wide = np.pad(picture, [(0, 0), (0, 0), (room, room), (room, room)], mode="reflect")
    return wide[..., room + down : room + down + 6, room + across : room + across + 5]


def test_a_shift_is_a_crop_of_the_padded_picture() -> None:
    found = Augmentation(shift=2)(Images(PIXELS), (0, 3)).pixels.numpy()
    moves = [(down, across) for down in range(-2, 3) for across in range(-2, 3)]
    seen = set()
    for one, before in zip(found, PIXELS.numpy(), strict=True):
        fitting = [move for move in moves if np.array_equal(one, by_hand(before, *move, 2))]
        assert len(fitting) == 1
        seen.update(fitting)
    assert len(seen) > 15


def test_a_square_is_covered_with_the_mean() -> None:
    found = Augmentation(cutout=3)(Images(PIXELS), (0, 3)).pixels
    is_changed = (found != PIXELS).any(dim=2)  # (B, T, H, W)
    assert torch.equal(is_changed[:, 0] | is_changed[:, 1], (found != PIXELS).flatten(1, 2).any(dim=1))
    sizes = is_changed[:, 0].flatten(1).sum(dim=1)
    assert int(sizes.max()) <= 9
    assert int(sizes.min()) >= 1
    assert (found - PIXELS.float().mean(dim=(1, 3, 4), keepdim=True)).abs()[
        is_changed.unsqueeze(2).expand_as(found)
    ].max() <= 0.5


def test_the_same_step_is_changed_alike_and_another_one_otherwise() -> None:
    change = Augmentation(flip=True, shift=1, cutout=2)
    one, again, other = (change(Images(PIXELS), (0, step)).pixels for step in (3, 3, 4))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert change
    assert not Augmentation()
