"""Patches around a place, against loops over pixels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from seqwise.layers.retina import Retina

HEIGHT, WIDTH = 9, 7


def pixel(picture: np.ndarray, y: int, x: int) -> float:
    inside = 0 <= y < picture.shape[0] and 0 <= x < picture.shape[1]
    return float(picture[y, x]) if inside else 0.0


def between(picture: np.ndarray, y: float, x: float) -> float:
    """Bilinear: of the four pixels around."""
    top, left = math.floor(y), math.floor(x)
    return sum(
        (1 - abs(y - row)) * (1 - abs(x - column)) * pixel(picture, row, column)
        for row in (top, top + 1)
        for column in (left, left + 1)
    )


def patch_by_hand(picture: np.ndarray, place: tuple[float, float], size: int, scale: int) -> np.ndarray:
    """The mean of k x k points, one pixel apart, for each pixel of the patch."""
    k, found = 2**scale, np.zeros((size, size))
    middle_x, middle_y = ((at + 1) / 2 * (length - 1) for at, length in zip(place, (WIDTH, HEIGHT), strict=True))
    for row in range(size):
        for column in range(size):
            y, x = (middle + (at - (size - 1) / 2) * k for middle, at in ((middle_y, row), (middle_x, column)))
            steps = [step - (k - 1) / 2 for step in range(k)]
            found[row, column] = np.mean([between(picture, y + down, x + right) for down in steps for right in steps])
    return found


@pytest.mark.parametrize(("size", "num_scales"), [(1, 1), (3, 1), (4, 3), (5, 2)])
def test_patches_are_those_of_a_loop_over_pixels(size: int, num_scales: int) -> None:
    random = np.random.default_rng(0)
    pictures = random.random((3, 2, HEIGHT, WIDTH))
    places = np.array([[0.0, 0.0], [-1.0, 0.9], [0.37, -0.81]])
    retina = Retina(size, num_scales)
    found = retina(retina.blurred(torch.from_numpy(pictures)), torch.from_numpy(places))
    assert found.shape == (3, num_scales, 2, size, size)
    for row, place in enumerate(places):
        for scale in range(num_scales):
            for channel in range(2):
                wanted = patch_by_hand(pictures[row, channel], tuple(place), size, scale)
                np.testing.assert_allclose(found[row, scale, channel].numpy(), wanted, atol=1e-9)


def test_a_patch_as_large_as_the_picture_at_its_middle_is_the_picture() -> None:
    pictures = torch.rand(2, 1, 6, 6)
    retina = Retina(6, 1)
    found = retina(retina.blurred(pictures), torch.zeros(2, 2))
    torch.testing.assert_close(found[:, 0], pictures)


def test_what_lies_outside_is_black() -> None:
    pictures = torch.ones(1, 1, 4, 4)
    retina = Retina(4, 2)
    found = retina(retina.blurred(pictures), torch.tensor([[1.0, 1.0]]))[0, :, 0]
    assert found[0, -1, -1] == 0
    assert found[1, -1].abs().max() == 0
    assert found[1, 0, 0] == 0.75**2  # half of the way into the picture, half of its first points
