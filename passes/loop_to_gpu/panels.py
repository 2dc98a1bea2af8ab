"""Cooperative copies to shared memory: the packed panels of a contraction's operands."""

from __future__ import annotations

from functools import partial
from math import gcd, prod

from mlc.dialects import arith, gpu, loop, memref, nvvm
from mlc.dialects.nvvm import ROW_BYTES
from mlc.ir import sizes
from mlc.ir.affine import is_multiple_of, step_along
from mlc.ir.core import Value
from mlc.ir.sizes import AffineDim, Dim
from mlc.passes.loop_to_gpu import memory
from mlc.passes.loop_to_gpu.threads import Threads, rule
from mlc.passes.lower_kernel.memory import access, address

Element = tuple[list[Value], Dim, list[Value]]
"""Adjacent elements that a thread computes, their position in the panel, and the conditions of the store."""


@rule(loop.Pack)
def _pack(low: Threads, op: loop.Pack) -> None:
    """Adjacent packs are filled together: loads precede the barrier, so that they overlap with computation."""
    if isinstance(op.prev, loop.Pack):
        return
    packs = [op]
    while isinstance(packs[-1].next, loop.Pack):
        packs.append(packs[-1].next)
    filled = [(pack, *elements(low, pack)) for pack in packs]
    gpu.Barrier()
    for pack, stride, items in filled:
        buffer = low.scope.scratch_buffers[pack.scratch][0]
        for values, place, conditions in items:
            memory.guarded(conditions, (), partial(_write, low, buffer, values, place, stride), list, low)
    if any(is_swizzled(pack.scratch) for pack in packs):
        nvvm.FenceProxy(kind="async.shared", space="cta")    # products of warpgroups read them
    gpu.Barrier()


def elements(low: Threads, op: loop.Pack) -> tuple[int, list[Element]]:
    """The stride between adjacent elements in a panel, and the elements that one thread computes."""
    plan = CopyPlan(low, op)
    items: list[Element] = []
    for unit in plan.units():
        with low.scoped() as scope:
            place = plan.enter(unit)
            for inner in op.body.block:
                low.lower(inner)
            value = op.body.block.terminator.operands[0]
            values = [low.part(value, p) for p in low.points((plan.along,))]
        low.scope.numbers.symbols |= scope.numbers.symbols
        items.append((values, place, plan.exists(unit)))
    return plan.strides[plan.along], items


class CopyPlan:
    """Assignment of the elements of a panel to threads, so that accesses are coalesced."""

    def __init__(self, low: Threads, op: loop.Pack) -> None:
        self.low, dims = low, op.scratch.type.dims
        _, self.corner, shape, _ = low.scope.scratch_buffers[op.scratch]
        self.extents = {d: low.points_along(d) for d in dims}
        self.along, self.count = direction(low, op, self.extents)
        self.strides = dict(zip(dims, (prod(shape[i + 1:]) for i in range(len(dims)))))
        self.order = [*(d for d in dims if d != self.along), self.along]
        self.total, self.start = prod(self.extents.values()) // self.count, low.scope.slots.get(op.scratch, 0)
        self.swizzled, self.dtype = is_swizzled(op.scratch), op.scratch.type.dtype
        self.first: dict[int, Dim] = {}                  # coordinates of the unit, which may lie beyond the last one

    def units(self) -> list[Dim]:
        """The numbers of the units (groups of adjacent elements) that a thread takes."""
        return [self.low.thread + first for first in range(0, self.total, self.low.kernel.schedule.tiles_per_cta)]

    def is_whole(self, unit: Dim) -> bool:
        """Whether this unit exists for every thread."""
        first = unit - self.low.thread
        return isinstance(first, int) and first + self.low.kernel.schedule.tiles_per_cta <= self.total

    def exists(self, unit: Dim) -> list[Value]:
        """The condition under which a unit exists, if it does not always."""
        low = self.low
        return [] if self.is_whole(unit) else [
            arith.CmpI("slt", low.number(unit), low.number(self.total)).result]

    def enter(self, unit: Dim) -> Dim:
        """Set the coordinates to those of a unit, clamped to the last one; returns its position in the panel."""
        low, number, inside = self.low, unit, dict[int, Dim]()
        if not self.is_whole(unit):
            number = low.least(unit, self.total - 1)
        low.scope.packing = True
        for d in reversed(self.order):
            width, extent = self.count if d == self.along else 1, self.extents[d]
            at = sizes.modulo(number, extent // width) if d != self.order[0] else number
            number = sizes.divide(number, extent // width)
            at = low.named("at", low.number(at)) * width
            inside[d], start, end = at, self.corner[d] + at, low.kernel.domain[d]
            self.first[d] = start
            low.enter(d, low.least(start, end - width) if sizes.modulo(end, extent) != 0 else start, width)
            low.scope.multiples[d] = width
        if self.swizzled:
            return self.start + self.swizzle(inside)
        place: Dim = self.start
        for d, at in inside.items():
            place = place + at * self.strides[d]
        return place

    def swizzle(self, inside: dict[int, Dim]) -> Dim:
        """The position of an element in a swizzled panel: rows of 128 bytes, one after the other; longer rows are cut
        into parts, and all first parts come before all second ones. Of a row's eight pieces of 16 bytes, the piece in
        place p of row r is piece p ^ (r % 8)."""
        low, (*outer, last) = self.low, self.strides
        width, piece = ROW_BYTES // self.dtype.itemsize, 16 // self.dtype.itemsize
        row: Dim = 0
        rows = 1
        for d in reversed(outer):
            row, rows = row + inside[d] * rows, rows * self.extents[d]
        short = self.extents[last] == width                  # an element's number is not known to be below it
        part, within = (0, inside[last]) if short else (
            sizes.divide(inside[last], width), sizes.modulo(inside[last], width))
        moved = arith.XorI(low.number(sizes.divide(within, piece)), low.number(sizes.modulo(row, 8))).result
        place: Dim = (part * rows + row) * width + low.named("piece", moved) * piece + sizes.modulo(within, piece)
        return place


def is_swizzled(scratch: Value) -> bool:
    """Whether a panel has the layout that products of warpgroups read."""
    assert isinstance(scratch.op, loop.Scratch)
    return bool(scratch.op.swizzle)


def _write(low: Threads, buffer: Value, values: list[Value], place: Dim, step: int) -> list[Value]:
    if step == 1 and len(values) > 1:
        memory.store_together(values, buffer, low.number(place))
        return []
    for i, v in enumerate(values):
        memref.Store(v, buffer, (low.number(place + i * step),))
    return []


def direction(low: Threads, op: loop.Pack, extents: dict[int, int]) -> tuple[int, int]:
    """The dimension along which memory is contiguous, and the number of elements that a thread loads at once."""
    best = (op.scratch.type.dims[-1], 1)
    for load in op.body.block:
        if not isinstance(load, loop.Load) or load.tiles:
            continue
        source = access(low, load)
        place = address(low, source)
        for d in op.scratch.type.dims:
            if step_along(place, d) != 1:
                continue
            others = sizes.substitute(place, {AffineDim(d): 0})
            count = gcd(extents[d], low.bytes_together // max(load.buffer.type.dtype.itemsize,
                                                             op.scratch.type.dtype.itemsize))
            while count > 1 and not (source.mask is None and is_multiple_of(others, count)
                                     and is_multiple_of(low.kernel.domain[d], count)):
                count //= 2
            if count > best[1] or best == (op.scratch.type.dims[-1], 1):
                best = d, count
    return best
