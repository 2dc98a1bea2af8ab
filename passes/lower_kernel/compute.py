"""Lowering of computations in kernels: pointwise operations, and reductions and scans along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.dialects import arith, loop, math, vector
from mlc.dialects.combining import CombiningKind
from mlc.ir.affine import dim, step_along
from mlc.ir.core import Op, Value, builder, located
from mlc.ir.sizes import AffineDim, Dim, modulo, substitute
from mlc.ir.types import FloatType, Type, VectorType, element, f32, f64, i1, i32
from mlc.passes.lower_kernel.memory import lane_index, scalar_index
from mlc.passes.lower_kernel.nest import Lowering, Point, rule


@rule(loop.Full)
def _full(low: Lowering, op: loop.Full) -> None:
    tile: loop.TileType = op.result.type
    type = VectorType((low.lanes,), tile.dtype) if low.in_lanes(tile.dims) else tile.dtype
    value = arith.constant(op.value, type)
    low.define(op.result, lambda p: value)


@rule(loop.Index)
def _index(low: Lowering, op: loop.Index) -> None:
    number = lane_index if low.in_lanes(op.result.type.dims) else scalar_index
    low.define(op.result, lambda p: number(low, op.map.result, op.tiles, p))


@rule(loop.InBounds)
def _in_bounds(low: Lowering, op: loop.InBounds) -> None:
    if op.dim == low.scope.vector:
        inside = arith.constant(True, i1)
        low.define(op.result, lambda p: low.mask(p) or inside)
    else:
        low.define(op.result, lambda p: low.valid(op.dim, p[op.dim]))


@rule(loop.Map)
def lower_map(low: Lowering, op: loop.Map) -> None:
    for r in op.results:
        low.scope.tiles[r] = {}
    made: dict[tuple[Any, ...], Sequence[Value]] = {}        # points may share operands, such as those of a row
    alike = compared_alike(low, op)
    for point in low.points(loop.union(op.operands)):
        parts = [scalar_index(low, e, (), point) for e in alike] or [low.part(v, point) for v in op.operands]
        values: dict[Value, Value] = dict(zip(op.body.block.args, parts))
        for inner in op.body.block:
            if inner.terminator:
                continue
            operands = [values[v] for v in inner.operands]
            key = inner, *operands
            if key not in made or not inner.pure:
                with located(inner.loc.through("loop_to_scf")):
                    made[key] = _apply(low, inner, operands)
            values.update(zip(inner.results, made[key]))
        for r, v in zip(op.results, op.body.block.terminator.operands):
            low.scope.tiles[r][point] = values[v]


def compared_alike(low: Lowering, op: loop.Map) -> list[Dim]:
    """The indices that an operation compares, and does nothing else, if what it finds for the first lane of a vector
    holds for all of them; else none.

    Either the indices are the same in all lanes, or they follow each other, and a vector of them begins at a multiple
    of the lanes, as does what they are compared with: the parts of a concatenation of images whose channels fill
    vectors.
    """
    compare, *others = op.body.block
    indices = [v.op for v in op.operands if isinstance(v.op, loop.Index)]
    d, lanes = low.scope.vector, low.lanes
    if (not isinstance(compare, arith.CmpI) or compare.operands != op.body.block.args or len(others) != 1
            or len(indices) < 2 or any(i.tiles for i in indices) or not low.in_lanes(op.results[0].type.dims)
            or low.alignment(d, lanes) != lanes):
        return []
    exprs = [i.map.result for i in indices]
    steps = [step_along(e, d, lanes) for e in exprs]
    first = [modulo(substitute(e, {AffineDim(d): dim(d) * lanes}), lanes) for e in exprs]
    in_order = steps == [1, 0] and compare.predicate in ("slt", "sge") and first == [0, 0]
    return exprs if steps == [0, 0] or in_order else []


def _apply(low: Lowering, op: Op, operands: Sequence[Value]) -> Sequence[Value]:
    """Lower one scalar operation of a map's body, on vectors if an operand is one; a condition may stay scalar."""
    types: list[Type] = [r.type for r in op.results]
    if any(isinstance(v.type, VectorType) for v in operands):
        keep = isinstance(op, arith.Select) and not isinstance(operands[0].type, VectorType)
        operands = [v if keep and i == 0 else low.spread(v) for i, v in enumerate(operands)]
        types = [VectorType((low.lanes,), r.type) for r in op.results]
    copy = type(op).make(operands, dict(op.attrs), types, loc=op.loc)
    assert builder.block is not None
    builder.block.insert(copy, builder.before)
    return copy.results


# -- along a dimension ------------------------------------------------------------------------------------------------
@rule(loop.Reduce)
def _reduce(low: Lowering, op: loop.Reduce) -> None:
    combine = CombiningKind(op.kind).emit
    offsets = sorted({p[op.dim] for p in low.points(op.x.type.dims)})
    vectors = low.in_lanes(op.x.type.dims)

    def tree(point: Point) -> Value:
        parts = [low.part(op.x, _moved(point, op.dim, offset)) for offset in offsets]
        if vectors:
            parts = [low.spread(part) for part in parts]
        while (half := len(parts) // 2):
            parts = [combine(a, b) for a, b in zip(parts[:half], parts[half:])]
        v, n = parts[0], low.lanes
        if op.dim != low.scope.vector:
            return v
        while n > 1:
            lower = vector.Shuffle(v, v, tuple(range(n // 2))).result
            upper = vector.Shuffle(v, v, tuple(range(n // 2, n))).result
            v, n = combine(lower, upper), n // 2
        return vector.Extract(v, (), (0,)).result

    low.define(op.result, tree)


def _moved(point: Point, d: int, offset: int) -> Point:
    return (*point[:d], offset, *point[d + 1:])


@rule(loop.Fold)
def _fold(low: Lowering, op: loop.Fold) -> None:
    if op.dim == low.scope.vector:
        op.fail("an ordered sum cannot lie in vector registers along its own dimension", code="MLC0171")

    def chain(point: Point) -> Value:
        acc = low.part(op.acc, point)
        for k in range(low.scope.block[op.dim]):
            x = low.part(op.x, _moved(point, op.dim, k))
            if low.in_lanes(op.result.type.dims):
                acc, x = low.spread(acc), low.spread(x)
            acc = CombiningKind(op.kind).emit(acc, x)
        return acc

    low.define(op.result, chain)


@rule(loop.Scan)
def _scan(low: Lowering, op: loop.Scan) -> None:
    if op.dim == low.scope.vector:
        op.fail("an ordered sum cannot lie in vector registers along its own dimension", code="MLC0171")
    steps: dict[Point, Value] = {}

    def step(point: Point) -> Value:
        k = point[op.dim]
        acc, x = steps[_moved(point, op.dim, k - 1)] if k else low.part(op.acc, point), low.part(op.x, point)
        if low.in_lanes(op.result.type.dims):
            acc, x = low.spread(acc), low.spread(x)
        steps[point] = CombiningKind(op.kind).emit(acc, x)
        return steps[point]

    low.define(op.result, step)


def _multiply_add(low: Lowering, op: loop.MultiplyAdd, point: Point) -> Value:
    """The sum of a point, with the products of the block one after the other."""
    if op.dim == low.scope.vector:
        op.fail("the dimension of a contraction cannot lie in vector registers: its sum is one chain", code="MLC0171")
    acc = low.part(op.acc, point)
    for k in range(low.scope.block[op.dim]):
        at = _moved(point, op.dim, k)
        lhs, rhs = low.part(op.lhs, at), low.part(op.rhs, at)
        if low.in_lanes(op.result.type.dims):
            acc, lhs, rhs = low.spread(acc), low.spread(lhs), low.spread(rhs)
        if isinstance(element(acc.type), FloatType):
            acc = math.Fma(lhs, rhs, acc).result
        else:
            acc = arith.AddI(acc, arith.MulI(lhs, rhs).result).result
    return acc


@rule(loop.FoldFma)
def _fold_fma(low: Lowering, op: loop.FoldFma) -> None:
    low.define(op.result, lambda p: _multiply_add(low, op, p))


@rule(loop.Contract)
def _contract(low: Lowering, op: loop.Contract) -> None:
    if op.in_lanes:
        operands = (op.lhs, op.rhs, op.acc)
        low.define(op.result, lambda p: math.Fma(*[low.spread(low.part(v, p)) for v in operands]).result)
        return
    # an element that is broadcast meets all of its vectors before the next one takes its register
    vector = low.scope.vector
    points = sorted(low.points(op.result.type.dims), key=lambda p: (*p[:vector], *p[vector + 1:], p[vector]))
    low.scope.tiles[op.result] = {p: _multiply_add(low, op, p) for p in points}


@rule(loop.Mma)
def sum_in_f64(low: Lowering, op: loop.Mma) -> None:
    """Add one block of terms sequentially, as the order of the sum requires."""
    if op.dim == low.scope.vector:
        op.fail("the dimension of a contraction cannot lie in vector registers: its sum is one chain",
                code="MLC0171")

    def block(point: Point) -> Value:
        lanes = low.in_lanes(op.result.type.dims)
        wide = VectorType((low.lanes,), f64) if lanes else f64

        def widened(tile: Value, at: Point) -> Value:
            part = low.part(tile, at)
            if tile is not op.acc and tile.type.dtype == f32:
                part = _tf32(part)
            return arith.ExtF(low.spread(part) if lanes else part, wide).result

        total: Value = arith.constant(0.0, wide)
        for k in range(low.scope.block[op.dim]):
            at = _moved(point, op.dim, k)
            total = arith.AddF(total, arith.MulF(widened(op.lhs, at), widened(op.rhs, at)).result).result
        narrow = VectorType((low.lanes,), f32) if lanes else f32
        return arith.TruncF(arith.AddF(widened(op.acc, point), total).result, narrow).result

    low.define(op.result, block)


def _tf32(x: Value) -> Value:
    """Truncate f32 to tf32: clear the last 13 bits."""
    type = VectorType(x.type.shape, i32) if isinstance(x.type, VectorType) else i32
    bits = arith.AndI(arith.Bitcast(x, type).result, arith.constant(-(1 << 13), type)).result
    return arith.Bitcast(bits, x.type).result
