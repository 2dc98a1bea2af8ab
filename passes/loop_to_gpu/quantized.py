"""Quantised loads of threads, and products of pairs of their integers: each point is unpacked as a scalar."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from mlc.dialects import arith, loop
from mlc.ir.affine import dims_of, is_multiple_of
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import i16, i32
from mlc.passes.loop_to_gpu.memory import guarded, guarded_dims, guards
from mlc.passes.loop_to_gpu.threads import Threads, rule
from mlc.passes.lower_kernel.access import Access
from mlc.passes.lower_kernel.blocks import HALF, NUMBERS, SCALES, Block
from mlc.passes.lower_kernel.memory import address, flatten, scalar_index
from mlc.passes.lower_kernel.nest import Point, zero_of
from mlc.passes.lower_kernel.pairs import PAIRS, as_numbers


@rule(loop.Dequantize)
def _dequantize(low: Threads, op: loop.Dequantize) -> None:
    _read(low, op, NUMBERS[op.encoding])


@rule(loop.UnpackPairs)
def _unpack_pairs(low: Threads, op: loop.UnpackPairs) -> None:
    _read(low, op, PAIRS[op.encoding])


@rule(loop.BlockScales)
@rule(loop.BlockMinima)
def _block_scales(low: Threads, op: loop.BlockScales) -> None:
    def part(block: Block) -> Value:
        found = SCALES[op.encoding](as_numbers(block))[op.part - 1]
        assert found is not None, "an encoding without minima has no loop.block_minima"
        return found

    _read(low, op, part)


def _read(low: Threads, op: loop.LoadEncoded, unpack: Callable[[Block], Value]) -> None:
    """Define a tile by unpacking its points. Device memory is aligned, and so are blocks."""
    *row, place = op.map.results
    rows = Access(op.buffer, (*row, 0), op.tiles, op.mask)
    dims, dtype = op.result.type.dims, op.result.type.dtype
    guarding = guarded_dims(low, dims)

    def one(point: Point) -> Value:
        def emit() -> list[Value]:
            start, at = (scalar_index(low, e, op.tiles, point) for e in (address(low, rows), place))
            flat, _ = flatten(low, op.buffer)
            return [unpack(Block.around(flat, start, at, 0, op.layout, op.numbers, low.bytes_together,
                                        divisor(low, place, point)))]

        conditions = guards(low, rows, guarding, point)
        return guarded(conditions, [dtype], emit, lambda: [arith.constant(zero_of(dtype), dtype)], low)[0]

    low.define(op.result, one)


def divisor(low: Threads, place: Dim, point: Point) -> int:
    """A power of two that divides a place in a row, where that is a coordinate that is not clamped."""
    for d in dims_of(place):
        if place == loop.coordinate(d) and (d == low.across or d not in low.scope.ends):
            origin = low.scope.origin[d]
            known = next(n for n in (HALF, 8, 4, 2, 1) if is_multiple_of(origin, n)
                         or low.scope.multiples.get(d, 1) % n == 0)
            offset = low.place(d, point[d]) - origin
            return gcd(known, offset) if isinstance(offset, int) else 1
    return 1


@rule(loop.DotPairs)
def _dot_pairs(low: Threads, op: loop.DotPairs) -> None:
    def halves(x: Value) -> list[Value]:
        high = arith.ShRSI(x, arith.constant(16, i32)).result
        return [arith.ExtSI(arith.TruncI(x, i16).result, i32).result, high]

    def dot(point: Point) -> Value:
        (a, b), (c, d) = (halves(low.part(v, point)) for v in (op.lhs, op.rhs))
        return arith.AddI(arith.MulI(a, c).result, arith.MulI(b, d).result).result

    low.define(op.result, dot)
