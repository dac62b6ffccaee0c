"""Products tile by tile, against numpy in 64 bits; and each row, each output the same to the bit however it is cut."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from itertools import product as pairs

import numpy as np
import pytest
from numba import int64, njit

from seqwise.kernels.arithmetic import FAST, UNIT, address, mix, product, share
from seqwise.kernels.tiles import highest_at

WIDTHS, OUTPUTS, ROWS = (1, 15, 16, 17, 31, 36, 100), (1, 3, 4, 5, 9), range(1, 10)
EPSILON = float(np.finfo(np.float32).eps)


@njit(fastmath=FAST, error_model="numpy")
def _product(matrix_at, x_at, out_at, B, D, N, first, last, adds):
    product(matrix_at, x_at, out_at, B, D, N, first, last, adds)


@njit(fastmath=FAST, error_model="numpy")
def _mix(weights_at, count, rows_at, out_at, width):
    mix(weights_at, count, rows_at, out_at, width)


@njit(fastmath=FAST, error_model="numpy")
def _share(rank, ranks, num, unit):
    return share(int64(rank), int64(ranks), int64(num), int64(unit))


@njit(fastmath=FAST, error_model="numpy")
def _highest(numbers):
    return highest_at(address(numbers), len(numbers))


class Matrix:
    """Weights of one kind, and what a product of them should be."""

    def __init__(self, N: int, D: int, *, is_int8: bool, has_bias: bool, seed: int = 0):
        random = np.random.default_rng(seed)
        self.weights = random.standard_normal((N, D)).astype(np.float32)
        self.scale = random.uniform(0.001, 0.01, N).astype(np.float32)
        if is_int8:
            self.weights = random.integers(-127, 128, (N, D)).astype(np.int8)
        self.bias = random.standard_normal(N).astype(np.float32)
        self.is_int8, self.has_bias = is_int8, has_bias
        parts = [self.weights.ctypes.data, self.scale.ctypes.data, self.bias.ctypes.data]
        self.addresses = np.array(parts, dtype=np.int64) * [1, is_int8, has_bias]

    def times(
        self, x: np.ndarray, before: np.ndarray | None = None, places: list[tuple[int, int]] | None = None
    ) -> np.ndarray:
        """(B, D) -> (B, N), added to what was there before; `places`: firsts and lasts of the outputs."""
        (N, D), out = self.weights.shape, np.full((len(x), len(self.weights)), 77.0, np.float32)
        if before is not None:
            out[:] = before
        x = np.ascontiguousarray(x)
        for first, last in places or [(0, N)]:
            sizes = len(x), D, N, first, last, int(before is not None)
            _product(self.addresses.ctypes.data, x.ctypes.data, out.ctypes.data, *sizes)
        return out

    def exactly(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """In 64 bits, and how far off 32 bits may be."""
        weights = self.weights.astype(np.float64) * (self.scale.astype(np.float64)[:, None] if self.is_int8 else 1)
        found, size = x.astype(np.float64) @ weights.T, np.abs(x).astype(np.float64) @ np.abs(weights).T
        bias = self.bias if self.has_bias else np.zeros_like(self.bias)
        return found + bias, EPSILON * (0.5 * self.weights.shape[1] ** 0.5 + 4) * (size + np.abs(bias) + 1)


each_kind = pytest.mark.parametrize("is_int8", [False, True], ids=["float32", "int8"])


def draw(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@each_kind
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("D", WIDTHS)
def test_a_product_is_that_of_64_bits(is_int8: bool, has_bias: bool, adds: bool, D: int) -> None:
    for N, B in pairs(OUTPUTS, ROWS):
        matrix, x, before = Matrix(N, D, is_int8=is_int8, has_bias=has_bias), draw(B, D), draw(B, N, seed=2)
        found, (expected, error) = matrix.times(x, before if adds else None), matrix.exactly(x)
        expected = expected + before if adds else expected
        assert (np.abs(found - expected) <= error + EPSILON * 4 * np.abs(before)).all(), (N, B)


@each_kind
@pytest.mark.parametrize("D", WIDTHS)
def test_a_row_alone_is_the_same_row_in_company_to_the_bit(is_int8: bool, D: int) -> None:
    """Wherever it stands: in a tile of several rows, or among those that are left."""
    for N, B in pairs(OUTPUTS, ROWS):
        matrix, x = Matrix(N, D, is_int8=is_int8, has_bias=True), draw(B, D)
        together = matrix.times(x)
        for row in range(B):
            np.testing.assert_array_equal(matrix.times(x[row : row + 1])[0], together[row], f"{N=} {B=} {row=}")


@each_kind
@pytest.mark.parametrize(("N", "D", "B"), [(101, 1030, 13), (9, 5000, 7), (2100, 33, 161)])
def test_a_product_in_panels_and_blocks_is_the_whole_to_the_bit(is_int8: bool, N: int, D: int, B: int) -> None:
    """Of more outputs, inputs and rows than the caches are given at once."""
    matrix, x, before = Matrix(N, D, is_int8=is_int8, has_bias=True), draw(B, D), draw(B, N, seed=2)
    together, (expected, error) = matrix.times(x), matrix.exactly(x)
    assert (np.abs(together - expected) <= error).all()
    added = matrix.times(x, before)
    for row in (0, B // 2, B - 1):
        np.testing.assert_array_equal(matrix.times(x[row : row + 1])[0], together[row])
        np.testing.assert_array_equal(matrix.times(x[row : row + 1], before[row : row + 1])[0], added[row])


@each_kind
@pytest.mark.parametrize("ranks", [2, 3])
def test_outputs_shared_among_ranks_are_the_whole_to_the_bit(is_int8: bool, ranks: int) -> None:
    for N, D, B in pairs((*OUTPUTS, 33), WIDTHS, (1, 3, 4, 6)):
        matrix, x = Matrix(N, D, is_int8=is_int8, has_bias=True), draw(B, D)
        places = [_share(rank, ranks, N, UNIT) for rank in range(ranks)]
        for before in (None, draw(B, N, seed=2)):
            np.testing.assert_array_equal(matrix.times(x, before, places), matrix.times(x, before), f"{N=} {D=} {B=}")


@each_kind
def test_outputs_outside_a_share_are_left_alone(is_int8: bool) -> None:
    matrix, x = Matrix(33, 17, is_int8=is_int8, has_bias=True), draw(5, 17)
    whole = matrix.times(x)
    for first, last in ((4, 13), (32, 33), (0, 4), (8, 8)):
        found = matrix.times(x, places=[(first, last)])
        np.testing.assert_array_equal(found[:, first:last], whole[:, first:last])
        assert (np.delete(found, np.s_[first:last], axis=1) == 77.0).all()


@pytest.mark.parametrize("unit", [1, 4])
def test_each_output_is_that_of_one_rank_in_whole_units(unit: int) -> None:
    for num, ranks in pairs(range(40), range(1, 6)):
        shares = [_share(rank, ranks, num, unit) for rank in range(ranks)]
        assert [place for first, last in shares for place in range(first, last)] == list(range(num))
        assert all(first % unit == 0 for first, last in shares if first < last)
        sizes = [-(-(last - first) // unit) for first, last in shares]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("width", [1, 15, 16, 40, 64, 79, 80, 144])
@pytest.mark.parametrize("count", [0, 1, 2, 37])
def test_a_mixture_is_that_of_64_bits(width: int, count: int) -> None:
    weights, rows = np.random.default_rng(0).random(count).astype(np.float32), draw(count, width)
    out = np.full(width + 8, 77.0, np.float32)
    _mix(weights.ctypes.data, count, rows.ctypes.data, out.ctypes.data, width)
    expected = weights.astype(np.float64) @ rows.astype(np.float64)
    size = weights.astype(np.float64) @ np.abs(rows).astype(np.float64)
    assert (np.abs(out[:width] - expected) <= EPSILON * (count + 1) * (size + 1e-30)).all()
    assert (out[width:] == 77.0).all()  # and nothing behind its end


@pytest.mark.parametrize("count", [1, 15, 63, 64, 65, 200])
@pytest.mark.parametrize("place", [0, 7, -1])
def test_the_highest_of_many_is_found_wherever_it_stands(count: int, place: int) -> None:
    numbers = -np.abs(draw(count)) - 1
    numbers[place % count] = -0.5
    assert _highest(numbers) == np.float32(-0.5)
    assert _highest(np.full(count, -np.inf, np.float32)) == -np.inf


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86 has processors with and without AVX")
def test_a_processor_without_avx_computes_the_same() -> None:
    """The tests above, compiled for the oldest one there is."""
    environment = {**os.environ, "NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", __file__, "-k", "64_bits"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:]
