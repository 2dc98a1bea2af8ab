"""Loads, stores and scratch buffers of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, prod

from mlc.dialects import arith, gpu, loop, memref, scf, vector
from mlc.dialects.nvvm import ROW_BYTES, SWIZZLE_PERIOD
from mlc.ir import sizes
from mlc.ir.affine import is_multiple_of, step_along
from mlc.ir.core import Value, at_end
from mlc.ir.diag import BackendError
from mlc.ir.sizes import AffineDim, Dim
from mlc.ir.types import MemRefType, Type, VectorType, index
from mlc.passes.loop_to_gpu.threads import Threads, rule
from mlc.passes.lower_kernel.access import Access
from mlc.passes.lower_kernel.memory import access, address, flatten, scalar_index
from mlc.passes.lower_kernel.nest import Point, zero_of
from mlc.passes.schedule.rows_gpu import exchanged


def guards(low: Threads, access: Access, dims: Sequence[int], point: Point) -> list[Value]:
    """The conditions under which a thread may access memory at a point."""
    found = [low.part(access.mask, point)] if access.mask is not None else []
    if low.scope.by_first_group:
        found.append(low.is_first_group())
    return found + [c for d in dims if (c := low.inside(d, point)) is not None]


def guarded(conditions: Sequence[Value], types: Sequence[Type], emit: Callable[[], list[Value]],
            otherwise: Callable[[], list[Value]], low: Threads) -> list[Value]:
    """The results of `emit` if all conditions hold, else those of `otherwise`."""
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
    """Define a tile by loading its points."""
    dims, dtype = tile.type.dims, access.buffer.type.dtype
    d, count = neighbours(low, access, dims)
    guarding = guarded_dims(low, dims)
    if count > 1:
        low.scope.tiles[tile], type = {}, VectorType((count,), dtype)
        for point in low.points(dims):
            if point[d] % count == 0:
                def several(point: Point = point) -> list[Value]:
                    flat, at = place_of(low, access, point, d, count)
                    return [vector.Load(flat, (at,), type, alignment=count * dtype.itemsize).result]

                whole, = guarded(guards(low, access, guarding, point), [type], several,
                                 lambda: [arith.constant(zero_of(dtype), type)], low)
                for lane in range(count):
                    low.scope.tiles[tile][moved(point, d, lane)] = vector.Extract(whole, (), (lane,)).result
        return

    def one(point: Point) -> Value:
        if low.scope.packing and access.mask is not None and all(access.buffer.type.shape):
            return _first_instead(low, access, point)

        def emit() -> list[Value]:
            at = tuple(scalar_index(low, e, access.tiles, point) for e in access.indices)
            return [memref.Load(access.buffer, at).result]

        conditions = guards(low, access, guarding, point)
        return guarded(conditions, [dtype], emit, lambda: [arith.constant(zero_of(dtype), dtype)], low)[0]

    low.define(tile, one)


def guarded_dims(low: Threads, dims: Sequence[int]) -> list[int]:
    """The dimensions along which loads of out-of-bounds points are guarded instead of clamped.

    A clamped load reads the last point of the domain. If lanes are threads, or in a CTA tile, that point may belong to
    another thread, which may store its result in place. Panels are only read.
    """
    boxed = low.kernel.parallel if low.kernel.schedule.threads_per_cta and not low.scope.packing else 0
    if low.across >= 0:
        boxed = low.kernel.parallel
    return [d for d in dims if (d == low.across and d not in low.scope.spare) or d < boxed]


def _first_instead(low: Threads, access: Access, point: Point) -> Value:
    """Load a masked element without a branch: the buffer's first element is loaded if the mask is false.

    Without branches, loads overlap. The kernel does not write to a buffer that it packs.
    """
    condition, dtype = low.part(access.mask, point), access.buffer.type.dtype  # type: ignore[arg-type]
    first = arith.constant(0, index)
    at = tuple(arith.Select(condition, scalar_index(low, e, access.tiles, point), first).result for e in access.indices)
    return arith.Select(condition, memref.Load(access.buffer, at).result, arith.constant(zero_of(dtype), dtype)).result


def neighbours(low: Threads, access: Access, dims: Sequence[int]) -> tuple[int, int]:
    """The dimension along which an access can be vectorised, and the number of elements; else (-1, 1).

    The extent of the domain is a multiple of that number, so a vector is in bounds as a whole or not at all.
    """
    if access.mask is not None or access.tiles:
        return -1, 1
    place, scope = address(low, access), low.scope
    most = max(1, low.bytes_together // access.buffer.type.dtype.itemsize)
    for d in dims:
        if scope.block.get(d, 1) == 1 or step_along(place, d) != 1:
            continue
        others = sizes.substitute(place, {AffineDim(d): 0})
        size, _ = scope.groups.get(d, (scope.block[d], 0))
        count = gcd(size, most)
        while count > 1 and not (is_multiple_of(others, count) and is_multiple_of(scope.ends.get(d, 0), count) and (
                is_multiple_of(scope.origin[d], count) or scope.multiples.get(d, 1) % count == 0)):
            count //= 2
        if count > 1:
            return d, count
    return -1, 1


def moved(point: Point, d: int, lane: int) -> Point:
    return (*point[:d], point[d] + lane, *point[d + 1:])


def place_of(low: Threads, access: Access, point: Point, d: int, count: int) -> tuple[Value, Value]:
    """The flat buffer and position of `count` elements along `d`, clamped to the last ones in the domain."""
    flat, _ = flatten(low, access.buffer)
    ends = low.scope.ends
    if (end := ends.get(d)) is not None:
        ends[d] = end - (count - 1)
    at = scalar_index(low, address(low, access), (), point)
    if end is not None:
        ends[d] = end
    return flat, at


# -- writing ----------------------------------------------------------------------------------------------------------
@rule(loop.Store)
def _store(low: Threads, op: loop.Store) -> None:
    write(low, op.value, access(low, op))


def alone(low: Threads, dims: Sequence[int]) -> list[Value]:
    """The conditions under which a thread, of those that have the same points, is the one that writes them."""
    found = [low.is_first()] if low.across >= 0 and low.across not in dims else []
    if low.across < 0 and low.kernel.schedule.groups_per_tile > 1 and low.kernel.shared_dim not in dims:
        found = [low.is_first_group()]
    return found + ([low.exists] if low.exists is not None else [])


def write(low: Threads, tile: Value, access: Access) -> None:
    """Store a tile."""
    dims = tuple(sorted({*tile.type.dims, *access.dims}))
    d, count = neighbours(low, access, dims)
    located = dims if access.bounded else ()
    own = alone(low, dims)
    for point in low.points(dims):
        if count > 1 and point[d] % count:
            continue

        def emit(point: Point = point) -> list[Value]:
            if count > 1:
                flat, place = place_of(low, access, point, d, count)
                store_together([low.part(tile, moved(point, d, i)) for i in range(count)], flat, place)
                return []
            at = tuple(scalar_index(low, e, access.tiles, point) for e in access.indices)
            memref.Store(low.part(tile, point), access.buffer, at)
            return []

        guarded([*own, *guards(low, access, located, point)], (), emit, list, low)


def store_together(values: Sequence[Value], flat: Value, at: Value) -> None:
    """Store contiguous elements as one vector, at an aligned position."""
    type = VectorType((len(values),), flat.type.dtype)
    vector.Store(vector.FromElements(tuple(values), type).result, flat, (at,),
                 alignment=len(values) * type.dtype.itemsize)


# -- scratch ----------------------------------------------------------------------------------------------------------
def panel(low: Threads, op: loop.Scratch, copies: int = 1) -> None:
    """Allocate a panel in shared memory, multi-buffered: the CTA tile along parallel dimensions, a block along others.

    Rows are padded by 16 bytes to avoid bank conflicts: if memory is contiguous along another dimension than the
    panel's rows, adjacent threads write to different rows, which would otherwise start in the same bank.
    """
    type: loop.ScratchType = op.result.type
    shape = [low.points_along(d) for d in type.dims]
    if op.swizzle:
        low.function.attrs[gpu.ALIGNED] = SWIZZLE_PERIOD
    else:
        shape[-1] += max(1, low.bytes_together // type.dtype.itemsize) if len(shape) > 1 else 0
    if op.swizzle and (shape[-1] * type.dtype.itemsize) % ROW_BYTES:
        op.fail(f"rows of {shape[-1]} elements are not made of rows of {ROW_BYTES} bytes", code="MLC0171")
    machine = low.machine
    low.take(copies * prod(shape) * type.dtype.itemsize, op,
             machine.shared_bytes_optin if low.kernel.schedule.threads_per_warp else machine.shared_bytes)
    made = low.function.share(MemRefType((copies * prod(shape),), type.dtype))
    flatten(low, made)
    first = {d: low.corner[d] if d < low.kernel.parallel else low.scope.origin[d] for d in type.dims}
    low.scope.scratch_buffers[op.result] = made, first, shape, True


def is_packed(scratch: Value) -> bool:
    """Whether the threads of a block fill a scratch buffer cooperatively."""
    return any(isinstance(user, loop.Pack) for user in scratch.users)


def is_in_registers(scratch: Value) -> bool:
    """Whether a scratch buffer is a row in registers."""
    return isinstance(scratch.op, loop.Scratch) and scratch.op.registers


@rule(loop.Scratch)
def _scratch(low: Threads, op: loop.Scratch) -> None:
    """A row that several threads work on is in shared memory if it fits; else each thread holds its part."""
    if is_packed(op.result):
        panel(low, op)
        return
    if op.registers:
        return                                           # the values that are stored are loaded
    type: loop.ScratchType = op.result.type
    if low.across in type.dims and low.own != 1:
        op.fail("of a row in scratch memory, adjacent lanes are those of different threads", code="MLC0171")
    if beyond := [d for d in type.dims if d in low.scope.ends and low.scope.block[d] > 1]:
        op.fail(f"tiles of {low.kernel.schedule.tile[beyond[0]]} do not divide d{beyond[0]}: a thread with a row in "
                "scratch memory has no points outside of the domain", code="MLC0171")
    shape: list[int] = []
    for d in type.dims:
        whole = d == low.along and op.parent_op is low.kernel
        points = low.kernel.domain[d] if whole else low.scope.block.get(d, low.kernel.domain[d])
        if not isinstance(points, int):
            raise BackendError(f"{type}: local memory must have a static size, but d{d} has {points} points",
                               code="MLC0543", loc=op.loc)
        shape.append(op.extent(d, points))
    count, itemsize = prod(shape), type.dtype.itemsize
    needed = count * itemsize + (exchanged(low.kernel, low.size) if low.across >= 0 else 0)
    share = low.across in type.dims and low.taken + needed <= low.machine.most_shared
    if not share and low.across in type.dims:
        shape[type.dims.index(low.across)] //= low.lanes_across
        count = prod(shape)
    low.taken += count * itemsize if share else 0
    if not share and count * itemsize > low.machine.local_bytes:
        raise BackendError(f"{type}: a thread has at most {low.machine.local_bytes} bytes of local memory, not "
                           f"{count * itemsize}", code="MLC0543", loc=op.loc)
    row = MemRefType((count,), type.dtype)
    buffer = low.function.share(row) if share else memref.Alloca(row, alignment=16).result
    flatten(low, buffer)
    low.scope.scratch_buffers[op.result] = buffer, {d: low.scope.origin.get(d, 0) for d in type.dims}, shape, share


def _access(low: Threads, scratch: Value) -> Access:
    buffer, origin, shape, share = low.scope.scratch_buffers[scratch]
    place: Dim = 0
    for d, n in zip(scratch.type.dims, shape):
        at = loop.coordinate(d) - origin[d]
        if d == low.across and not share:
            at = sizes.divide(at, low.lanes_across)
        place = place * n + at
    return Access(buffer, (place + low.scope.slots.get(scratch, 0),), bounded=False)


@rule(loop.StoreScratch)
def _store_scratch(low: Threads, op: loop.StoreScratch) -> None:
    if is_in_registers(op.scratch):
        points = low.points(op.scratch.type.dims)
        low.rows[op.scratch, low.scope.block_number] = {p: low.part(op.value, p) for p in points}
        return
    write(low, op.value, _access(low, op.scratch))


@rule(loop.LoadScratch)
def _load_scratch(low: Threads, op: loop.LoadScratch) -> None:
    """Load from scratch. A panel also has elements for out-of-bounds points; warps.py loads its fragments."""
    if low.kernel.schedule.threads_per_warp and all(isinstance(user, loop.Mma) for user in op.result.users):
        return
    if is_in_registers(op.scratch):
        low.scope.tiles[op.result] = low.rows[op.scratch, low.scope.block_number]
        return
    with low.scoped():
        if is_packed(op.scratch):
            low.scope.ends = {}
        read(low, op.result, _access(low, op.scratch))
        found = low.scope.tiles[op.result]
    low.scope.tiles[op.result] = found
