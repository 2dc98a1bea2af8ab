"""How threads read and write memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mlc.dialects import arith, loop, memref, scf, vector
from mlc.ir import sizes
from mlc.ir.core import Value, at_end
from mlc.ir.diag import BackendError
from mlc.ir.sizes import Dim
from mlc.ir.types import MemRefType, Type, VectorType
from mlc.passes.loop_to_gpu.threads import Threads, rule
from mlc.passes.loop_to_scf.memory import Access, access, address, flatten, scalar_index
from mlc.passes.loop_to_scf.nest import Point, zero_of
from mlc.passes.vectorize import stride

SHARED, PRIVATE = 48 << 10, 16 << 10
"""How many bytes of memory a block may share without asking for more, and how many a thread may have of its own."""


def guards(low: Threads, access: Access, dims: Sequence[int], point: Point) -> list[Value]:
    """The conditions under which a thread may touch memory at a point."""
    found = [low.part(access.mask, point)] if access.mask is not None else []
    return found + [c for d in dims if (c := low.inside(d, point)) is not None]


def guarded(conditions: Sequence[Value], types: Sequence[Type], emit: Callable[[], list[Value]],
            otherwise: Callable[[], list[Value]], low: Threads) -> list[Value]:
    """What `emit` gives where all conditions hold, else what `otherwise` does."""
    if not conditions:
        return emit()
    condition = conditions[0]
    for c in conditions[1:]:
        condition = arith.AndI(condition, c).result
    branch = scf.branch(condition, types, otherwise=bool(types))
    with at_end(branch.then_body.block), low.scoped():
        scf.Yield(tuple(emit()))
    if types:
        with at_end(branch.else_body.block):
            scf.Yield(tuple(otherwise()))
    return list(branch.results)


# -- reading ----------------------------------------------------------------------------------------------------------
@rule(loop.Load)
def _load(low: Threads, op: loop.Load) -> None:
    read(low, op.result, access(low, op))


def read(low: Threads, tile: Value, access: Access) -> None:
    """Define a tile by what memory holds at its points."""
    dims, dtype = tile.type.dims, access.buffer.type.dtype
    if (count := neighbours(low, access)) > 1 and low.wide in dims:
        low.scope.tiles[tile] = {}
        for point in low.points(dims):
            if point[low.wide] % count == 0:
                flat, at = _place(low, access, point)
                type = VectorType((count,), dtype)
                whole = vector.Load(flat, (at,), type, alignment=count * dtype.itemsize).result
                for lane in range(count):
                    p = (*point[: low.wide], point[low.wide] + lane, *point[low.wide + 1:])
                    low.scope.tiles[tile][p] = vector.Extract(whole, (), (lane,)).result
        return
    guarding = [d for d in dims if d == low.across]         # elsewhere, points that stick out read their neighbours'

    def one(point: Point) -> Value:
        def emit() -> list[Value]:
            at = tuple(scalar_index(low, e, access.tiles, point) for e in access.map)
            return [memref.Load(access.buffer, at).result]

        conditions = guards(low, access, guarding, point)
        return guarded(conditions, [dtype], emit, lambda: [arith.constant(zero_of(dtype), dtype)], low)[0]

    low.define(tile, one)


def neighbours(low: Threads, access: Access) -> int:
    """How many elements side by side, aligned as one, an access takes at a time."""
    d = low.wide
    if d < 0 or d in low.scope.ends or access.mask is not None or access.tiles:
        return 1
    place, count = address(low, access), low.kernel.tile[d]
    if stride(place, f"d{d}") != 1:
        return 1
    others = sizes.substitute(place, {f"d{d}": 0})
    return count if is_multiple(others, count) else 1


def is_multiple(expr: Dim, n: int) -> bool:
    """Whether an expression certainly is a multiple of `n`."""
    return expr % n == 0 if isinstance(expr, int) else all(c % n == 0 for _, c in expr.terms)


def _place(low: Threads, access: Access, point: Point) -> tuple[Value, Value]:
    flat, _ = flatten(low, access.buffer)
    return flat, scalar_index(low, address(low, access), (), point)


# -- writing ----------------------------------------------------------------------------------------------------------
@rule(loop.Store)
def _store(low: Threads, op: loop.Store) -> None:
    write(low, op.value, access(low, op))


def write(low: Threads, tile: Value, access: Access) -> None:
    """Write a tile to memory."""
    dims = tuple(sorted({*tile.type.dims, *access.dims}))
    count = neighbours(low, access) if low.wide in dims else 1
    located = dims if access.bounded else ()
    alone = [low.is_first()] if low.across >= 0 and low.across not in dims else []
    for point in low.points(dims):
        if count > 1:
            if point[low.wide] % count == 0:
                flat, at = _place(low, access, point)
                parts = [low.part(tile, (*point[: low.wide], point[low.wide] + i, *point[low.wide + 1:]))
                         for i in range(count)]
                type = VectorType((count,), access.buffer.type.dtype)
                vector.Store(vector.FromElements(tuple(parts), type).result, flat, (at,),
                             alignment=count * type.dtype.itemsize)
            continue

        def emit(point: Point = point) -> list[Value]:
            at = tuple(scalar_index(low, e, access.tiles, point) for e in access.map)
            memref.Store(low.part(tile, point), access.buffer, at)
            return []

        guarded([*alone, *guards(low, access, located, point)], (), emit, list, low)


# -- scratch ----------------------------------------------------------------------------------------------------------
@rule(loop.Scratch)
def _scratch(low: Threads, op: loop.Scratch) -> None:
    """A row that many threads work on is shared, if it is short enough; else each has the part that it works on."""
    type: loop.ScratchType = op.result.type
    shape: list[int] = []
    for d in type.dims:
        points = low.scope.block.get(d, low.kernel.domain[d])
        if not isinstance(points, int):
            raise BackendError(f"{type}: a thread has memory of known size only, and d{d} has {points} points",
                               code="MLC0543", loc=op.loc)
        step = max((f.step for f in low.kernel.inside(loop.For) if f.dim == d and not f.is_ranged), default=1)
        shape.append(-(-points // step) * step)
    count, itemsize = math.prod(shape), type.dtype.itemsize
    share = low.across in type.dims and low.taken + count * itemsize <= SHARED
    if not share and low.across in type.dims:
        shape[type.dims.index(low.across)] //= low.lanes_across
        count = math.prod(shape)
    low.taken += count * itemsize if share else 0
    if not share and count * itemsize > PRIVATE:
        raise BackendError(f"{type}: a thread has {PRIVATE} bytes of its own at most, not {count * itemsize}",
                           code="MLC0543", loc=op.loc)
    row = MemRefType((count,), type.dtype)
    room = low.function.share(row) if share else memref.Alloca(row, alignment=16).result
    flatten(low, room)
    low.scope.rooms[op.result] = room, {d: low.scope.origin.get(d, 0) for d in type.dims}, shape, share


def _access(low: Threads, scratch: Value) -> Access:
    room, origin, shape, share = low.scope.rooms[scratch]
    place: Dim = 0
    for d, n in zip(scratch.type.dims, shape):
        at = loop.coordinate(d) - origin[d]
        if d == low.across and not share:
            at = sizes.divide(at, low.lanes_across)
        place = place * n + at
    return Access(room, (place,), bounded=False)


@rule(loop.Keep)
def _keep(low: Threads, op: loop.Keep) -> None:
    write(low, op.value, _access(low, op.scratch))


@rule(loop.Recall)
def _recall(low: Threads, op: loop.Recall) -> None:
    read(low, op.result, _access(low, op.scratch))
