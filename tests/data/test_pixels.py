"""Pixels are decoded once, cached by what they are made from, and written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from seqwise.data.picture_sources import ArrayPictures, DrawnPictures, pictures_in
from seqwise.data.pixels import mean_and_scale, moments, prepare_pixels, told
from seqwise.data.seen import PictureSource
from seqwise.data.specs import ImageSpec
from seqwise.errors import DataError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pixels"


def spec(side: int = 4, channels: int = 1, **others: Any) -> ImageSpec:
    return ImageSpec(side, side, (0.0,) * channels, (1.0,) * channels, **others)


class Counting:
    """Tells how often a picture was read."""

    def __init__(self, source: PictureSource):
        self.source, self.num_read, self.fingerprint = source, 0, source.fingerprint

    def read(self, name: str) -> np.ndarray:
        self.num_read += 1
        return self.source.read(name)


def rows(num: int = 5, side: int = 4) -> ArrayPictures:
    return ArrayPictures(np.random.default_rng(0).integers(0, 256, size=(num, side, side), dtype=np.uint8))


def test_pixels_are_those_of_the_pictures_and_are_read_once(cache: Path) -> None:
    source = Counting(rows())
    clips = [(str(row),) for row in (3, 0, 4)]
    told_of: list[tuple[str, int, int]] = []
    first = prepare_pixels(source, clips, spec(), lambda *what: told_of.append(what))
    assert np.array_equal(first.content[:, 0, 0], rows().pixels[[3, 0, 4], :, :, 0])
    assert first.frames is None
    assert told_of[-1] == ("decoding pictures", 3, 3)
    assert source.num_read == 3
    again = prepare_pixels(source, clips, spec())
    assert source.num_read == 3
    assert isinstance(again.content, np.memmap)
    assert again.fingerprint == first.fingerprint
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("changed", ["source", "names", "size", "fit", "channels", "frames"])
def test_what_is_made_of_something_else_is_made_anew(cache: Path, changed: str) -> None:
    clips = [("0", "1"), ("2", "3")]
    prepare_pixels(rows(), clips, spec(max_frames=2))
    source = ArrayPictures(255 - rows().pixels[..., 0]) if changed == "source" else rows()
    clips = [("0", "1"), ("2", "4")] if changed == "names" else clips
    other = {
        "size": spec(5, max_frames=2),
        "fit": spec(fit="cover", max_frames=2),
        "channels": spec(channels=3, max_frames=2),
        "frames": spec(),
    }.get(changed, spec(max_frames=2))
    prepare_pixels(source, clips, other)
    assert len(list(cache.iterdir())) == 2


def test_clips_have_their_own_lengths() -> None:
    found = prepare_pixels(rows(), [("0", "1", "2"), ("3",)], spec(max_frames=3))
    assert found.content.shape == (2, 3, 1, 4, 4)
    assert found.frames is not None
    assert found.frames.tolist() == [3, 1]
    field = found.field(np.array([0, 1]))
    assert field.is_step is not None
    assert field.is_step.tolist() == [[True, True, True], [True, False, False]]


@pytest.mark.parametrize(
    ("num", "most", "expected"), [(3, 5, [0, 1, 2]), (9, 3, [0, 4, 8]), (5, 2, [0, 4]), (4, 1, [0])]
)
def test_moments_are_evenly_spaced_from_first_to_last(num: int, most: int, expected: list[int]) -> None:
    assert moments(list(range(num)), most) == expected


def test_damaged_pictures_are_told_together_and_nothing_is_left(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(9):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number}.png")
    for number in (2, 5):
        (folder / f"{number}.png").write_bytes((folder / f"{number}.png").read_bytes()[:40])
    source = pictures_in(folder)
    clips = [(name,) for name in source.names]
    with pytest.raises(DataError) as caught:
        prepare_pixels(source, clips, spec())
    lines = str(caught.value).split("\n")
    assert lines[0] == "2 pictures cannot be read:"
    assert str(folder / "2.png") in lines[1]
    assert str(folder / "5.png") in lines[2]
    assert list(cache.iterdir()) == []


def test_of_many_damaged_pictures_the_first_are_named() -> None:
    assert told(["a: cut off."]) == "a: cut off."
    assert "\n4.\nand 3 more\n" in told([f"{n}." for n in range(8)])


def test_nothing_is_left_when_the_work_is_stopped(cache: Path) -> None:
    def draw(name: str) -> np.ndarray:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_pixels(DrawnPictures(draw, "1"), [("0",)], spec())
    assert list(cache.iterdir()) == []


def test_a_full_disk_is_told_before_anything_is_decoded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    source = Counting(rows())
    with pytest.raises(DataError, match=r"No space left on device\. Free some space, or set SEQWISE_CACHE"):
        prepare_pixels(source, [("0",)], spec())
    assert source.num_read == 0
    assert list(cache.iterdir()) == []


def test_mean_and_scale_are_those_of_all_pixels() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, size=(7, 4, 4, 3), dtype=np.uint8)
    mean, scale = mean_and_scale(ArrayPictures(pixels), [str(row) for row in range(7)], spec(channels=3))
    every = pixels.reshape(-1, 3) / 255
    np.testing.assert_allclose(mean, every.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scale, every.std(axis=0), rtol=1e-9)


def test_the_scale_of_a_channel_without_change_is_not_zero() -> None:
    _, (scale,) = mean_and_scale(ArrayPictures(np.full((2, 4, 4), 7, np.uint8)), ["0", "1"], spec())
    assert scale > 0
