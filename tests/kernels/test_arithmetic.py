"""Compiled functions of one number and of one row, against torch and numpy in 64 bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numba import float32, float64, int64, njit
from torch.nn import functional

from seqwise.kernels.arithmetic import (
    ACTIVATIONS,
    FAST,
    activate,
    erf,
    exp,
    exp_64,
    log_softmax,
    look_up,
    norm,
    sigmoid,
    softmax,
    standardise,
    tanh,
)

EPSILON = float(np.finfo(np.float32).eps)
EXTREME = np.array([0.0, -0.0, 100.0, -100.0, 1e4, -1e4, 3e38, -3e38, 1e-30, np.inf, -np.inf], dtype=np.float32)
like_a_step = njit(fastmath=FAST, error_model="numpy")  # who calls has a say in how numba compiles what is called


@like_a_step
def _each(x, exps, tanhs, sigmoids, erfs):
    for place in range(len(x)):
        number = float32(x[place])
        exps[place], tanhs[place], sigmoids[place], erfs[place] = (
            exp(number),
            tanh(number),
            sigmoid(number),
            erf(number),
        )


@like_a_step
def _exp_64(x):
    for place in range(len(x)):
        x[place] = exp_64(float64(x[place]))


@like_a_step
def _activate(x, kind):
    activate(x, int64(kind))


@like_a_step
def _softmax(x):
    softmax(x)


@like_a_step
def _log_softmax(x):
    log_softmax(x)


@like_a_step
def _norm(weights_at, x_at, out_at, B, D, epsilon, keeps_mean):
    norm(weights_at, x_at, out_at, B, D, float32(epsilon), keeps_mean)


@like_a_step
def _standardise(x, out, epsilon, keeps_mean):
    standardise(x, out, float32(epsilon), keeps_mean)


@like_a_step
def _look_up(matrix_at, token, factor, out):
    look_up(matrix_at, token, float32(factor), out)


def each(x: np.ndarray) -> dict[str, np.ndarray]:
    found = np.empty((4, len(x)), np.float32)
    _each(x, *found)
    return dict(zip(("exp", "tanh", "sigmoid", "erf"), found, strict=True))


def numbers() -> np.ndarray:
    """Dense around zero, and as far as exp has something to say."""
    random = np.random.default_rng(0)
    parts = [np.linspace(-85, 85, 20_001), np.linspace(-2, 2, 4001), random.standard_normal(4000) * 1e-4]
    return np.concatenate(parts).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "absolute", "relative"),
    [
        ("exp", 0.0, 2.5 * EPSILON),  # two units of the last place, and x itself is read as it is
        ("tanh", 3 * EPSILON, 0.0),
        ("sigmoid", 0.0, 4 * EPSILON),
        ("erf", 1.5e-7 + 3 * EPSILON, 0.0),  # Abramowitz & Stegun 7.1.26
    ],
)
def test_functions_of_one_number_are_those_of_64_bits(name: str, absolute: float, relative: float) -> None:
    x = numbers()
    expected = getattr(torch, name)(torch.from_numpy(x).double()).numpy()
    np.testing.assert_allclose(each(x)[name].astype(np.float64), expected, atol=absolute, rtol=relative)


def test_functions_of_extreme_numbers_are_their_limits() -> None:
    found = each(EXTREME)
    up, down = EXTREME > 50, EXTREME < -50
    assert all(not np.isnan(values).any() for values in found.values())
    assert (found["exp"][down] < 1e-37).all()
    assert (found["exp"][up] > 1e38).all()
    assert np.isfinite(found["exp"]).all()  # the highest is 88, and an infinity would make NaN of a product with zero
    for name, low in (("tanh", -1.0), ("sigmoid", 0.0), ("erf", -1.0)):
        np.testing.assert_allclose(found[name][up], 1.0, atol=1e-7)
        np.testing.assert_allclose(found[name][down], low, atol=1e-7)
    assert (found["exp"][~up & ~down] == 1.0).all()


def test_exp_of_64_bits_is_that_of_numpy() -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([np.linspace(-700, 700, 40_001), random.standard_normal(4000), [0.0, -0.0, -1e-300]])
    found = x.copy()
    _exp_64(found)
    np.testing.assert_allclose(found, np.exp(x), rtol=5e-14)
    near = np.abs(x) < 40
    np.testing.assert_allclose(found[near], np.exp(x[near]), rtol=5e-15)
    far = np.array([-700.1, -1e4, -1e308, -np.inf])
    _exp_64(far)
    assert (far == 0.0).all()


REFERENCE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "squared_relu": lambda x: functional.relu(x).square(),
    "silu": functional.silu,
    "tanh": torch.tanh,
}


def test_every_activation_has_a_reference() -> None:
    assert set(REFERENCE) == set(ACTIVATIONS)
    assert sorted(ACTIVATIONS.values()) == list(range(len(ACTIVATIONS)))


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize("width", [1, 7, 16, 33, 5001])
def test_activations_are_those_of_torch(name: str, width: int) -> None:
    x = np.linspace(-30, 30, width, dtype=np.float32) if width > 1 else np.array([0.7], np.float32)
    expected = REFERENCE[name](torch.from_numpy(x).double()).numpy()
    found = np.append(x, np.float32(77))
    _activate(found[:-1], ACTIVATIONS[name])
    np.testing.assert_allclose(found[:-1], expected, atol=4e-7, rtol=1e-6)
    assert found[-1] == 77  # and nothing behind its end


@pytest.mark.parametrize("name", REFERENCE)
def test_activations_of_extreme_numbers_are_no_nan(name: str) -> None:
    x = np.array([100, -100, 1e4, -1e4, 0.0], dtype=np.float32)
    expected = REFERENCE[name](torch.from_numpy(x).double()).numpy()
    _activate(x, ACTIVATIONS[name])
    np.testing.assert_allclose(x, expected, atol=1e-6, rtol=1e-6)


WIDTHS = [1, 2, 15, 16, 17, 100, 3001]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("spread", [0.1, 3.0, 40.0])
def test_softmax_is_that_of_torch(width: int, spread: float) -> None:
    x = (np.random.default_rng(width).standard_normal(width) * spread).astype(np.float32)
    expected = torch.from_numpy(x).double()
    shares, logs = x.copy(), x.copy()
    _softmax(shares)
    _log_softmax(logs)
    np.testing.assert_allclose(shares, expected.softmax(0).numpy(), atol=1e-9, rtol=width**0.5 * 4e-7)
    size = np.abs(x).max() + 10
    np.testing.assert_allclose(logs, expected.log_softmax(0).numpy(), atol=3 * EPSILON * size)
    assert shares.sum(dtype=np.float64) == pytest.approx(1.0, abs=2e-6)


@pytest.mark.parametrize("width", [3, 16, 40])
@pytest.mark.parametrize("shift", [1e4, -1e4, 100.0, -100.0])
def test_softmax_of_large_numbers_is_the_same_as_of_small_ones(width: int, shift: float) -> None:
    x = np.random.default_rng(0).integers(-4, 5, width).astype(np.float32)
    for compute in (_softmax, _log_softmax):
        near, far = x.copy(), x + np.float32(shift)
        compute(near)
        compute(far)
        np.testing.assert_allclose(far, near, atol=2 * EPSILON * abs(shift))


@pytest.mark.parametrize("width", [2, 16, 33])
@pytest.mark.parametrize("first", [0, 1])
def test_what_is_closed_has_no_share(width: int, first: int) -> None:
    """Minus infinity, in the first place too; and numbers so far below the highest that they vanish."""
    x = np.random.default_rng(0).standard_normal(width).astype(np.float32)
    x[first::2] = -np.inf
    expected = torch.from_numpy(x).double().softmax(0).numpy()
    _softmax(x)
    assert (x[first::2] <= 1e-37).all()
    np.testing.assert_allclose(x, expected, atol=1e-7)
    far = np.full(width, -1e4, dtype=np.float32)
    far[first] = 1e4
    _softmax(far)
    np.testing.assert_allclose(far, np.arange(width) == first, atol=1e-7)


def test_a_log_probability_of_what_is_closed_is_minus_infinity() -> None:
    x = np.array([0.0, -np.inf, 0.0, -1e4], dtype=np.float32)
    _log_softmax(x)
    np.testing.assert_allclose(x[[0, 2, 3]], [-np.log(2), -np.log(2), -1e4 - np.log(2)], rtol=1e-6)
    assert x[1] == -np.inf


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["layer", "layer without bias", "rms"])
@pytest.mark.parametrize("epsilon", [1e-5, 0.1])
def test_norms_are_those_of_torch(width: int, kind: str, epsilon: float) -> None:
    random, B = np.random.default_rng(width), 3
    x = (random.standard_normal((B, width)) * 2 + 1).astype(np.float32)
    weight, bias = random.standard_normal((2, width)).astype(np.float32)
    out = np.full((B + 1, width), 77, np.float32)
    addresses = np.array([weight.ctypes.data, 0, bias.ctypes.data if kind == "layer" else 0], dtype=np.int64)
    _norm(addresses.ctypes.data, x.ctypes.data, out.ctypes.data, B, width, epsilon, kind == "rms")
    exact, scale = torch.from_numpy(x).double(), torch.from_numpy(weight).double()
    if kind == "rms":
        expected = functional.rms_norm(exact, (width,), scale, eps=epsilon)
    else:
        shift = torch.from_numpy(bias).double() if kind == "layer" else None
        expected = functional.layer_norm(exact, (width,), scale, shift, eps=epsilon)
    np.testing.assert_allclose(out[:B], expected.numpy(), atol=3e-5 if width == 2 else 5e-6, rtol=5e-6)
    assert (out[B] == 77).all()
    in_place = x.copy()
    _norm(addresses.ctypes.data, in_place.ctypes.data, in_place.ctypes.data, B, width, epsilon, kind == "rms")
    np.testing.assert_array_equal(in_place, out[:B])


@pytest.mark.parametrize("keeps_mean", [False, True])
@pytest.mark.parametrize("size", [0.0, 1e-20, 1e4, 1e15])
def test_a_norm_of_extreme_rows_is_finite(keeps_mean: bool, size: float) -> None:
    x = (np.arange(-8, 9) * size).astype(np.float32)
    out = np.empty_like(x)
    _standardise(x, out, 1e-5, keeps_mean)
    assert np.isfinite(out).all()
    exact = torch.from_numpy(x).double()
    expected = exact / (exact.square().mean() + 1e-5).sqrt()  # their mean is zero
    np.testing.assert_allclose(out, expected.numpy(), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("is_int8", [False, True], ids=["float32", "int8"])
@pytest.mark.parametrize("width", [1, 16, 35])
def test_a_row_is_looked_up_and_scaled(is_int8: bool, width: int) -> None:
    random, num = np.random.default_rng(0), 5
    table = random.integers(-127, 128, (num, width)).astype(np.int8 if is_int8 else np.float32)
    scale = random.uniform(0.1, 1, num).astype(np.float32)
    addresses = np.array([table.ctypes.data, scale.ctypes.data if is_int8 else 0, 0], dtype=np.int64)
    for token in range(num):
        out = np.empty(width, np.float32)
        _look_up(addresses.ctypes.data, token, 2.5, out)
        expected = 2.5 * table[token].astype(np.float64) * (scale[token] if is_int8 else 1)
        np.testing.assert_allclose(out, expected, rtol=3 * EPSILON)
