"""What compiled steps of networks are made of: products, norms, nonlinearities, softmax; float32 in, float32 out.

Weights are read where torch keeps them, by address: a network's shape is then an argument and not a type, so that one
compilation does for all of them. Who calls sees to it that the tensors live and lie in memory row by row.

    exp(x) = 2^n e^r,  n = round(x / ln 2),  r = x - n ln 2 by a polynomial     (1)   within 2 units of the last place
    erf(x) by exp(-x^2) and a polynomial of 1 / (1 + p x)                       (2)   Abramowitz & Stegun 7.1.26: 1.5e-7
    int8: W[i, j] = scale[i] * q[i, j]                                          (3)   symmetric, a scale for each row

A step may be taken by a team of threads, each of which runs the same function with its own rank, computes its share of
the outputs of each product, and waits for the others before it reads what they wrote (`wait`): kernels/team.py.

Shapes: B rows, N outputs, D inputs, V vocabulary.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, float32, float64, int32, int64, njit, types
from numba.extending import intrinsic

from .tiles import LANES, highest_at, mixture, multiplication

FAST = {"reassoc", "contract", "nsz", "arcp", "afn"}  # sums in any order; infinities and NaN stay what they are
IN_ORDER: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": False,  # where it is not said, numba takes it from whoever calls
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
LOOP: dict[str, Any] = {**IN_ORDER, "fastmath": FAST}
"""How loops are compiled that other compiled loops alone call."""
NONE = 0  # the address of what a network does not have

LN_2_HIGH, LN_2_LOW, LOG2_E = float32(0.693359375), float32(-2.12194440e-4), float32(1.44269504088896341)
EXP = tuple(float32(1 / math.factorial(n)) for n in range(8))
LOWEST, HIGHEST = float32(-87.0), float32(88.0)
ERF_P = float32(0.3275911)
ERF = tuple(float32(c) for c in (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429))
LN_2_HIGH_64, LN_2_LOW_64 = float64(6.93145751953125e-1), float64(1.42860682030941723e-6)
EXP_64, LOWEST_64 = tuple(float64(1 / math.factorial(n)) for n in range(14)), float64(-700.0)
ROOT_HALF, ROOT_2_OVER_PI, GELU_CUBE = float32(0.5**0.5), float32((2 / math.pi) ** 0.5), float32(0.044715)

OUTPUTS, ROWS = 4, (5, 4, 1)  # of a tile
PANEL, BLOCK = 16_384, 1_024  # numbers of a column of tiles, and of a row, that stay in the caches, in whole tiles
UNIT = OUTPUTS  # outputs of a product are shared among threads in whole tiles
multiply, multiply_int8 = (multiplication(OUTPUTS, ROWS, is_int8=small) for small in (False, True))
multiply_last, multiply_last_int8 = (multiplication(1, (1,), is_int8=small) for small in (False, True))
four_vectors, one_vector, one_number = (mixture(vectors) for vectors in (4, 1, 0))

RELU, GELU, GELU_TANH, SQUARED_RELU, SILU, TANH = range(6)
NAMES = ("relu", "gelu", "gelu_tanh", "squared_relu", "silu", "tanh")
ACTIVATIONS = dict(zip(NAMES, range(6), strict=True))
"""By the names of layers/feed_forward.py."""


def _pointer(kind: types.Type):
    @intrinsic
    def at(typing_context, address):
        signature = types.CPointer(kind)(types.int64)

        def generate(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return signature, generate

    return at


floats_at, bytes_at, ints_at, doubles_at = (
    _pointer(kind) for kind in (types.float32, types.int8, types.int64, types.float64)
)


@intrinsic
def _float_of_bits(typing_context, bits):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@njit(**LOOP)
def exp(x):
    """(1)"""
    x = min(max(x, LOWEST), HIGHEST)
    n = float32(np.floor(x * LOG2_E + float32(0.5)))
    r = x - n * LN_2_HIGH - n * LN_2_LOW
    e = EXP[7]
    e = e * r + EXP[6]
    e = e * r + EXP[5]
    e = e * r + EXP[4]
    e = e * r + EXP[3]
    e = e * r + EXP[2]
    e = e * r + EXP[1]
    e = e * r + EXP[0]
    return e * _float_of_bits(int32((int32(n) + int32(127)) << int32(23)))


@intrinsic
def _double_of_bits(typing_context, bits):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@njit(**LOOP)
def exp_64(x):
    """(1) of float64, for x up to 700; zero below -700."""
    inside = max(x, LOWEST_64)
    n = np.floor(inside * float64(LOG2_E) + 0.5)
    r = inside - n * LN_2_HIGH_64 - n * LN_2_LOW_64
    e = EXP_64[13]
    for place in range(12, -1, -1):
        e = e * r + EXP_64[place]
    found = e * _double_of_bits((int64(n) + int64(1023)) << int64(52))
    return found if x >= LOWEST_64 else 0.0


@njit(**LOOP)
def tanh(x):
    return float32(1) - float32(2) / (exp(float32(2) * x) + float32(1))


@njit(**LOOP)
def sigmoid(x):
    return float32(1) / (float32(1) + exp(-x))


@njit(**LOOP)
def erf(x):
    """(2)"""
    size = abs(x)
    t = float32(1) / (float32(1) + ERF_P * size)
    series = ((((ERF[4] * t + ERF[3]) * t + ERF[2]) * t + ERF[1]) * t + ERF[0]) * t
    found = float32(1) - series * exp(-size * size)
    return found if x >= 0 else -found


@njit(**LOOP)
def activate(x, kind):
    """In place, (D,)."""
    if kind == RELU:
        for i in range(len(x)):
            x[i] = max(x[i], float32(0))
    elif kind == SQUARED_RELU:
        for i in range(len(x)):
            positive = max(x[i], float32(0))
            x[i] = positive * positive
    elif kind == GELU:
        for i in range(len(x)):
            x[i] *= float32(0.5) * (float32(1) + erf(x[i] * ROOT_HALF))
    elif kind == GELU_TANH:
        for i in range(len(x)):
            x[i] *= float32(0.5) * (float32(1) + tanh(ROOT_2_OVER_PI * (x[i] + GELU_CUBE * x[i] * x[i] * x[i])))
    elif kind == SILU:
        for i in range(len(x)):
            x[i] *= sigmoid(x[i])
    else:
        for i in range(len(x)):
            x[i] = tanh(x[i])


@intrinsic
def address(typing_context, array):
    """Of an array's first number."""

    def generate(context, builder, signature, arguments):
        start = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(start, ir.IntType(64))

    return types.int64(array), generate


@intrinsic
def hold(typing_context, array):
    """Here an array is still in use: numba frees it after its last use by name, and addresses are none."""

    def generate(context, builder, signature, arguments):
        return context.get_dummy_value()

    return types.void(array), generate


@njit(**LOOP)
def share(rank, ranks, num, unit):
    """Which of `num` outputs are those of a rank: first and last, in whole units."""
    units = (num + unit - 1) // unit
    return min(num, units * rank // ranks * unit), min(num, units * (rank + 1) // ranks * unit)


@njit(**IN_ORDER)
def product(matrix_at, x_at, out_at, B, D, N, first, last, adds):
    """out[b, i] = W[i] x[b] + bias[i] for i from first to last, or, where it `adds`, that more: x (B, D), W (N, D), out
    (B, N).

    At `matrix_at` stand three addresses: of the weights, of their scales (3) where they are int8, and of the bias.
    """
    matrix, whole = carray(ints_at(matrix_at), (3,)), first + (last - first) // OUTPUTS * OUTPUTS
    weights, scale, bias = matrix[0], matrix[1], matrix[2]
    panel, block = max(PANEL // D, 1) * OUTPUTS, max(BLOCK // D, 1) * ROWS[0]
    for start in range(first, whole, panel):
        end = min(start + panel, whole)
        for b in range(0, B, block):
            x, out, rows = x_at + 4 * b * D, out_at + 4 * b * N, min(block, B - b)
            if scale == NONE:
                multiply(weights, scale, bias, x, out, rows, D, N, start, end, adds)
            else:
                multiply_int8(weights, scale, bias, x, out, rows, D, N, start, end, adds)
    if scale == NONE:
        multiply_last(weights, scale, bias, x_at, out_at, B, D, N, whole, last, adds)
    else:
        multiply_last_int8(weights, scale, bias, x_at, out_at, B, D, N, whole, last, adds)


@njit(**IN_ORDER)
def mix(weights_at, count, rows_at, out_at, width):
    """out (K,) = sum over s of weights[s] rows[s], of so many rows (K,), one after the other."""
    done = 0
    while done < width:
        left, from_at, to_at = width - done, rows_at + 4 * done, out_at + 4 * done
        if left >= 4 * LANES:
            four_vectors(weights_at, from_at, width, count, to_at)
            done += 4 * LANES
        elif left >= LANES:
            one_vector(weights_at, from_at, width, count, to_at)
            done += LANES
        else:
            one_number(weights_at, from_at, width, count, to_at)
            done += 1


@njit(**LOOP)
def look_up(matrix_at, token, factor, out):
    """out (D,) = factor * row `token` of a table, at whose address stands what stands for a matrix."""
    D, matrix = len(out), carray(ints_at(matrix_at), (3,))
    if matrix[1] == NONE:
        row = carray(floats_at(matrix[0] + 4 * token * D), (D,))
        for j in range(D):
            out[j] = factor * row[j]
    else:
        small = carray(bytes_at(matrix[0] + token * D), (D,))
        factor *= carray(floats_at(matrix[1] + 4 * token), (1,))[0]
        for j in range(D):
            out[j] = factor * float32(small[j])


@njit(**LOOP)
def standardise(x, out, epsilon, keeps_mean):
    """(x - mean) / sqrt(variance + epsilon), or with the mean left in (RMSNorm): (D,) -> (D,)."""
    mean = float32(0)
    if not keeps_mean:
        for j in range(len(x)):
            mean += x[j]
        mean /= float32(len(x))
    square = float32(0)
    for j in range(len(x)):
        square += (x[j] - mean) * (x[j] - mean)
    factor = float32(1) / np.sqrt(square / float32(len(x)) + epsilon)
    for j in range(len(x)):
        out[j] = (x[j] - mean) * factor


@njit(**LOOP)
def norm(weights_at, x_at, out_at, B, D, epsilon, keeps_mean):
    """LayerNorm, or RMSNorm: x (B, D) -> out (B, D). Of the three addresses, as of a matrix, the first and the bias."""
    weights = carray(ints_at(weights_at), (3,))
    weight, bias = carray(floats_at(weights[0]), (D,)), carray(floats_at(weights[2]), (D,))
    x, out = carray(floats_at(x_at), (B, D)), carray(floats_at(out_at), (B, D))
    for b in range(B):
        standardise(x[b], out[b], epsilon, keeps_mean)
        for j in range(D):
            out[b, j] *= weight[j]
        if weights[2] != NONE:
            for j in range(D):
                out[b, j] += bias[j]


@njit(**LOOP)
def softmax(x):
    """In place, (D,)."""
    highest = highest_at(address(x), len(x))
    total = float32(0)
    for j in range(len(x)):
        x[j] = exp(x[j] - highest)
        total += x[j]
    factor = float32(1) / total
    for j in range(len(x)):
        x[j] *= factor


@njit(**LOOP)
def log_softmax(x):
    """In place, (V,)."""
    highest = highest_at(address(x), len(x))
    total = float32(0)
    for j in range(len(x)):
        total += exp(x[j] - highest)
    shift = highest + float32(math.log(total))
    for j in range(len(x)):
        x[j] -= shift
