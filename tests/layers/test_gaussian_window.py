"""Windows of Gaussian points, against loops over pixels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from seqwise.layers.gaussian_window import GaussianWindow

HEIGHT, WIDTH = 7, 5
TOLD = torch.tensor(
    [[0.0, 0.0, 0.0, 0.0, 0.0], [0.4, -0.7, -1.0, -0.6, 0.5], [-1.3, 1.2, 1.5, 0.3, -2.0]], dtype=torch.float64
)


def filters_by_hand(centre: float, stride: float, sigma: float, size: int, length: int) -> np.ndarray:
    found = np.zeros((size, length))
    for point in range(size):
        middle = centre + (point - (size - 1) / 2) * stride
        for pixel in range(length):
            found[point, pixel] = math.exp(-((pixel - middle) ** 2) / (2 * sigma**2))
        found[point] /= found[point].sum()
    return found


@pytest.mark.parametrize("size", [1, 2, 4])
def test_filters_and_what_they_read_and_write_are_those_of_a_loop(size: int) -> None:
    window = GaussianWindow(size, HEIGHT, WIDTH).double()
    random = np.random.default_rng(0)
    pictures, patches = random.random((3, 2, HEIGHT, WIDTH)), random.random((3, 2, size, size))
    found = window(TOLD)
    read, written = found.read(torch.from_numpy(pictures)), found.write(torch.from_numpy(patches))
    for row, (x, y, log_variance, log_stride, log_intensity) in enumerate(TOLD.tolist()):
        centre_x, centre_y = (x + 1) / 2 * (WIDTH - 1), (y + 1) / 2 * (HEIGHT - 1)
        stride, sigma = math.exp(log_stride) * (HEIGHT - 1) / max(1, size - 1), math.exp(log_variance / 2)
        across = filters_by_hand(centre_x, stride, sigma, size, WIDTH)
        down = filters_by_hand(centre_y, stride, sigma, size, HEIGHT)
        np.testing.assert_allclose(found.columns[row], across, atol=1e-12)
        np.testing.assert_allclose(found.rows[row], down, atol=1e-12)
        told = [centre_x, centre_y, stride, sigma, math.exp(log_intensity)]
        np.testing.assert_allclose(found.numbers[row], told, rtol=1e-12)
        for channel in range(2):
            for i in range(size):
                for j in range(size):
                    weights = np.outer(down[i], across[j])
                    wanted = math.exp(log_intensity) * (weights * pictures[row, channel]).sum()
                    assert float(read[row, channel, i, j]) == pytest.approx(wanted)
            painted = sum(
                patches[row, channel, i, j] * np.outer(down[i], across[j]) for i in range(size) for j in range(size)
            )
            np.testing.assert_allclose(written[row, channel], painted / math.exp(log_intensity), atol=1e-12)


def test_rows_sum_to_one_wherever_the_window_lies() -> None:
    told = torch.randn(200, 5, generator=torch.Generator().manual_seed(0)) * torch.tensor([30.0, 30.0, 3.0, 2.0, 1.0])
    found = GaussianWindow(4, HEIGHT, WIDTH)(told)
    for filters in (found.rows, found.columns):
        torch.testing.assert_close(filters.sum(dim=-1), torch.ones(200, 4))


def test_a_window_that_nobody_moved_lies_around_the_middle_and_is_as_large_as_the_picture() -> None:
    found = GaussianWindow(3, 9, 9)(torch.zeros(1, 5))
    assert found.numbers[0].tolist() == [4.0, 4.0, 4.0, 1.0, 1.0]
    assert found.rows[0].argmax(dim=-1).tolist() == [0, 4, 8]
