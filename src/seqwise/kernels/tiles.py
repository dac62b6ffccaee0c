"""Sums of products in vectors of fixed width, written out for LLVM: the innermost loops of every compiled step.

A product is computed tile by tile, a few outputs times a few rows:

    sum[r, i] = sum over j of W[i, j] x[r, j]                                           (1)
    out[r, i] = scale[i] sum[r, i] + bias[i], and more by what was there, where it adds (2)

What is loaded of W serves all rows of a tile, what is loaded of x all outputs, and the sums do not wait for each other.
Each sum is added up in the same order whatever tile it is part of (LANES running sums, then their halves, then what is
left of the width), so that a row is the same to the bit alone and in company. Left to itself, LLVM would choose an
order per loop.

Shapes: N outputs, B rows, D width, S rows that are mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16  # one register of AVX-512, two of AVX2
AHEAD = 8192  # bytes: so early weights in 32 bits are asked for; rows are too short for the processor to foresee them
RUNNING = 4  # vectors that wait for no other
FLOAT, BYTE, INT, WORD = ir.FloatType(), ir.IntType(8), ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(FLOAT, LANES)


def multiplication(outputs: int, rows: Sequence[int], *, is_int8: bool) -> Callable[..., None]:
    """A function of (weights, scale, bias, x, out, B, D, N, first, last, adds): (2) for outputs `first` to `last`, of
    whole tiles. All but sizes are addresses, zero where there is no bias. `rows`: those of a tile, the last is
    1."""

    def generate(context, builder, signature, arguments):
        weights, scale, bias, x, out, B, D, N, first, last, adds = arguments
        unit = WORD(outputs)
        size = 1 if is_int8 else 4
        with cgutils.for_range_slice(builder, first, last, unit, intp=WORD) as (i, _):
            start = builder.add(weights, builder.mul(builder.mul(i, D), WORD(size)))
            factor = _vector_at(builder, scale, i, outputs) if is_int8 else None
            done: Any = WORD(0)
            for num in rows:
                end = builder.add(done, builder.mul(builder.sdiv(builder.sub(B, done), WORD(num)), WORD(num)))
                with cgutils.for_range_slice(builder, done, end, WORD(num), intp=WORD) as (b, _):
                    row = builder.add(x, builder.mul(builder.mul(b, D), WORD(4)))
                    sums = _tile(builder, start, row, D, outputs, num, is_int8)
                    for r in range(num):
                        to = builder.add(builder.mul(builder.add(b, WORD(r)), N), i)
                        _put(builder, sums[r], factor, bias, out, i, to, adds, outputs)
                done = end
        return context.get_dummy_value()

    @intrinsic
    def compute(typing_context, weights, scale, bias, x, out, B, D, N, first, last, adds):
        return types.void(*[types.int64] * 11), generate

    return compute


def _tile(builder, weights_at, x_at, D, outputs, rows, is_int8):
    """(1): for each row a vector of its outputs."""
    kind, size = (BYTE, 1) if is_int8 else (FLOAT, 4)
    places = [(r, i) for r in range(rows) for i in range(outputs)]
    weights = [_pointer(builder, weights_at, builder.mul(D, WORD(size * i)), kind) for i in range(outputs)]
    xs = [_pointer(builder, x_at, builder.mul(D, WORD(4 * r)), FLOAT) for r in range(rows)]
    running = {place: cgutils.alloca_once(builder, VECTOR) for place in places}
    rest = {place: cgutils.alloca_once(builder, FLOAT) for place in places}
    for place in places:
        builder.store(ir.Constant(VECTOR, None), running[place])
        builder.store(FLOAT(0.0), rest[place])
    add_product = _multiply_add(builder, VECTOR, f"v{LANES}f32")
    whole = builder.and_(D, WORD(-LANES))
    with cgutils.for_range_slice(builder, WORD(0), whole, WORD(LANES), intp=WORD) as (j, _):
        read = [_load(builder, x, j, FLOAT) for x in xs]
        for i in range(outputs):
            weight = _load(builder, weights[i], j, kind)
            if kind is FLOAT:
                _fetch(builder, builder.gep(weights[i], [builder.add(j, WORD(AHEAD // size))]))
            for r in range(rows):
                total = builder.call(add_product, [weight, read[r], builder.load(running[r, i])])
                builder.store(total, running[r, i])
    with cgutils.for_range_slice(builder, whole, D, WORD(1), intp=WORD) as (j, _):
        read = [builder.load(builder.gep(x, [j])) for x in xs]
        for i in range(outputs):
            weight = builder.load(builder.gep(weights[i], [j]))
            weight = builder.sitofp(weight, FLOAT) if is_int8 else weight
            for r in range(rows):
                builder.store(builder.fadd(builder.load(rest[r, i]), builder.fmul(weight, read[r])), rest[r, i])
    return [
        builder.fadd(
            _add_up(builder, [builder.load(running[r, i]) for i in range(outputs)]),
            _together(builder, [builder.load(rest[r, i]) for i in range(outputs)]),
        )
        for r in range(rows)
    ]


def _put(builder, sums, factor, bias, out, i, to, adds, outputs):
    """(2) of one row, (outputs,), to its place."""
    found = sums if factor is None else builder.fmul(sums, factor)
    kind = found.type
    place = cgutils.alloca_once(builder, kind)
    builder.store(found, place)
    with builder.if_then(builder.icmp_signed("!=", bias, WORD(0))):
        builder.store(builder.fadd(builder.load(place), _vector_at(builder, bias, i, outputs)), place)
    with builder.if_then(builder.icmp_signed("!=", adds, WORD(0))):
        builder.store(builder.fadd(builder.load(place), _vector_at(builder, out, to, outputs)), place)
    target = builder.inttoptr(builder.add(out, builder.mul(to, WORD(4))), kind.as_pointer())
    builder.store(builder.load(place), target, align=4)


def _vector_at(builder, start, i, num):
    """The floats from number i on."""
    place = builder.add(start, builder.mul(i, WORD(4)))
    return builder.load(builder.inttoptr(place, ir.VectorType(FLOAT, num).as_pointer()), align=4)


def _together(builder, numbers):
    """One vector of these numbers."""
    found = ir.Constant(ir.VectorType(FLOAT, len(numbers)), ir.Undefined)
    for place, number in enumerate(numbers):
        found = builder.insert_element(found, number, INT(place))
    return found


def _pointer(builder, address, offset, kind):
    return builder.inttoptr(builder.add(address, offset), kind.as_pointer())


def _load(builder, start, j, kind):
    """LANES numbers from place j on, as floats."""
    vector = ir.VectorType(kind, LANES)
    place = builder.bitcast(builder.gep(start, [j]), vector.as_pointer())
    found = builder.load(place, align=4 if kind is FLOAT else 1)
    return found if kind is FLOAT else builder.sitofp(builder.sext(found, ir.VectorType(INT, LANES)), VECTOR)


def _fetch(builder, place):
    """Ask for what stands here: then it is in the cache when its turn comes. Behind the last row this is harmless."""
    kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), INT, INT, INT])
    fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(fetch, [builder.bitcast(place, BYTE.as_pointer()), INT(0), INT(3), INT(1)])


def _multiply_add(builder, kind, suffix):
    """a * b + c, in one instruction where there is one."""
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fmuladd.{suffix}")


def _add_up(builder, vectors):
    """The sums of the numbers of one vector or of four, as a vector: halves are added until one number is left. At last
    four vectors are halved together; each sum is the same as alone."""
    for width in (LANES >> n for n in range(1, 20) if LANES >> n >= 4):
        vectors = [_halves(builder, vector, vector, range(width), range(width, 2 * width)) for vector in vectors]
    if len(vectors) == 1:
        (vector,) = vectors
        pair = _halves(builder, vector, vector, range(2), range(2, 4))
        return _halves(builder, pair, pair, [0], [1])
    a, b, c, d = vectors
    first, second = (_halves(builder, x, y, [0, 1, 4, 5], [2, 3, 6, 7]) for x, y in ((a, b), (c, d)))
    return _halves(builder, first, second, [0, 2, 4, 6], [1, 3, 5, 7])


def _halves(builder, a, b, low, high):
    """The sum of two choices of the numbers of a and b."""
    return builder.fadd(_some(builder, a, b, low), _some(builder, a, b, high))


def _some(builder, a, b, places):
    """These numbers of a and b, which are counted on."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT, len(places)), list(places)))


def mixture(vectors: int) -> Callable[..., None]:
    """A function of addresses: weights (S,), rows (S, ...), numbers from one row to the next, S, and where to: the
    weighted sum of so many vectors' worth of columns, out[k] = sum over s of weights[s] rows[s, k]."""

    def generate(context, builder, signature, arguments):
        weights_at, rows_at, stride, count, out_at = arguments
        weights, rows, out = (builder.inttoptr(at, FLOAT.as_pointer()) for at in (weights_at, rows_at, out_at))
        kind = VECTOR if vectors else FLOAT
        num = vectors or 1
        running = [cgutils.alloca_once_value(builder, ir.Constant(kind, None if vectors else 0.0)) for _ in range(num)]
        add_product = _multiply_add(builder, kind, f"v{LANES}f32" if vectors else "f32")
        with cgutils.for_range(builder, count, intp=WORD) as loop:
            weight = builder.load(builder.gep(weights, [loop.index]))
            weight = _spread(builder, weight) if vectors else weight
            row = builder.gep(rows, [builder.mul(loop.index, stride)])
            for v in range(num):
                read = _load(builder, row, WORD(v * LANES), FLOAT) if vectors else builder.load(row)
                builder.store(builder.call(add_product, [weight, read, builder.load(running[v])]), running[v])
        for v in range(num):
            place = builder.bitcast(builder.gep(out, [WORD(v * LANES)]), kind.as_pointer())
            builder.store(builder.load(running[v]), place, align=4)
        return context.get_dummy_value()

    @intrinsic
    def compute(typing_context, weights_at, rows_at, stride, count, out_at):
        return types.void(*[types.int64] * 5), generate

    return compute


def _spread(builder, number):
    """The same number in every lane."""
    unknown = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(unknown, number, INT(0))
    return builder.shuffle_vector(first, unknown, ir.Constant(ir.VectorType(INT, LANES), [0] * LANES))


@intrinsic
def highest_at(typing_context, start, count):
    """The highest of so many floats from an address on, -inf of none. LLVM leaves a loop of comparisons as it is, one
    after the other."""

    def generate(context, builder, signature, arguments):
        numbers, count = builder.inttoptr(arguments[0], FLOAT.as_pointer()), arguments[1]
        unit, lowest = RUNNING * LANES, FLOAT(float("-inf"))
        running = [cgutils.alloca_once_value(builder, ir.Constant(VECTOR, [lowest] * LANES)) for _ in range(RUNNING)]
        found = cgutils.alloca_once_value(builder, lowest)
        whole = builder.and_(count, WORD(-unit))
        with cgutils.for_range_slice(builder, WORD(0), whole, WORD(unit), intp=WORD) as (j, _):
            for place, highest in enumerate(running):
                read = _load(builder, numbers, builder.add(j, WORD(place * LANES)), FLOAT)
                builder.store(_higher(builder, read, builder.load(highest)), highest)
        with cgutils.for_range_slice(builder, whole, count, WORD(1), intp=WORD) as (j, _):
            read = builder.load(builder.gep(numbers, [j]))
            builder.store(_higher(builder, read, builder.load(found)), found)
        highest = builder.load(running[0])
        for other in running[1:]:
            highest = _higher(builder, builder.load(other), highest)
        for width in (8, 4, 2, 1):
            low, high = (_some(builder, highest, highest, range(first, first + width)) for first in (0, width))
            highest = _higher(builder, low, high)
        return _higher(builder, builder.extract_element(highest, INT(0)), builder.load(found))

    return types.float32(types.int64, types.int64), generate


def _higher(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)
