"""Pictures in black and white, and pictures somewhere on larger ones: the same whenever they are read."""

from __future__ import annotations

import numpy as np
import torch

from seqwise.data.binarised import PictureBatches, scored_batch
from seqwise.data.picture_sources import ArrayPictures
from seqwise.data.placed_pictures import PlacedPictures
from seqwise.data.seen import SeenRow
from seqwise.data.seen_store import Pixels, SeenStore

SHARES = np.array([0, 64, 128, 255], dtype=np.uint8)


def store(num: int = 400) -> SeenStore:
    """Four pixels each: never white, in a quarter of pictures, in half of them, and always."""
    pixels = np.broadcast_to(SHARES.reshape(2, 2), (num, 1, 1, 2, 2)).copy()
    return SeenStore(Pixels(pixels), np.arange(num)[::-1].copy(), {}, [SeenRow((str(n),), ()) for n in range(num)])


def test_pixels_are_white_as_often_as_they_are_grey() -> None:
    batch = scored_batch(store(), np.arange(400), seed=0)
    seen = batch.inputs["image"].pixels
    assert set(seen.unique().tolist()) == {0, 255}
    shares = (seen / 255).mean(dim=(0, 1, 2)).flatten()
    np.testing.assert_allclose(shares, SHARES / 255, atol=0.08)
    assert shares[0] == 0
    assert shares[3] == 1


def test_what_a_picture_becomes_follows_from_the_seed_and_its_number_alone() -> None:
    whole = scored_batch(store(), np.arange(400), seed=0).targets["image"].pixels
    some = scored_batch(store().choose(np.array([7, 3, 90])), np.array([2, 0]), seed=0)
    assert torch.equal(some.targets["image"].pixels, whole[[90, 7]])
    assert torch.equal(some.inputs["image"].pixels, some.targets["image"].pixels)
    assert not torch.equal(scored_batch(store(), np.arange(400), seed=1).targets["image"].pixels, whole)


def test_batches_of_training_are_drawn_anew_and_can_be_repeated() -> None:
    batches = PictureBatches(store(40), batch_size=40, seed=3, num_noise=5)
    first, second = (batches.batch(step) for step in (0, 1))
    again = PictureBatches(store(40), batch_size=40, seed=3, num_noise=5).batch(0)
    assert first.inputs["noise"].uniform.shape == (40, 5)
    for name in ("image", "noise"):
        for a, b in zip(vars(first.inputs[name]).values(), vars(again.inputs[name]).values(), strict=True):
            assert a is b is None or torch.equal(a, b)
    assert torch.equal(first.inputs["image"].pixels, first.targets["image"].pixels)
    assert not torch.equal(first.inputs["image"].pixels, second.inputs["image"].pixels)


def test_a_placed_picture_lies_where_its_name_says_and_nothing_is_cut_off() -> None:
    random = np.random.default_rng(0)
    source = ArrayPictures(random.integers(1, 256, size=(60, 3, 4), dtype=np.uint8))
    placed, corners = PlacedPictures(source, 8), set()
    for name in map(str, range(60)):
        found = placed.read(name)
        assert found.shape == (8, 8, 1)
        rows, columns = np.nonzero(found[..., 0])
        assert (rows.max() - rows.min(), columns.max() - columns.min()) == (2, 3)
        kept = found[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        np.testing.assert_array_equal(kept, source.read(name))
        np.testing.assert_array_equal(found, PlacedPictures(source, 8).read(name))
        corners.add((rows.min(), columns.min()))
    assert {top for top, _ in corners} == set(range(6))
    assert {left for _, left in corners} == set(range(5))
    assert placed.fingerprint not in (source.fingerprint, PlacedPictures(source, 9).fingerprint)
