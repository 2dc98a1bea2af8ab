"""Reductions and bounds of lanes: in registers of one thread, or across threads."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import arith, gpu, loop, memref
from mlc.dialects.combining import CombiningKind
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.machine import WARP
from mlc.ir.types import MemRefType, f32, i1, i32
from mlc.passes.loop_to_gpu import scores
from mlc.passes.loop_to_gpu.memory import guarded
from mlc.passes.loop_to_gpu.threads import Threads, rule


@rule(loop.InBounds)
def _in_bounds(low: Threads, op: loop.InBounds) -> None:
    low.define(op.result, lambda p: low.inside(op.dim, p) or arith.constant(True, i1))


@rule(loop.Reduce)
def _reduce(low: Threads, op: loop.Reduce) -> None:
    """Combine the upper half of the lanes with the lower one until one is left: the tree of `lanes<L>`."""
    if op.dim == low.across:
        if isinstance(op.parent_op, loop.For) and low.lanes_across > WARP:
            gpu.Barrier()                                # its buffers may still be read by the iteration before
        points, own = low.points(op.result.type.dims), low.own
        lanes = across_threads(low, [low.part(op.x, (*p[: op.dim], offset, *p[op.dim + 1:]))
                                     for p in points for offset in range(own)], op.kind)
        low.scope.tiles[op.result] = {
            p: _tree(lanes[i * own: (i + 1) * own], op.kind) for i, p in enumerate(points)}
        return
    if op.dim == low.scores:
        low.define(op.result, lambda point: scores.reduced(low, op, point))
        return
    if op.dim != low.along:
        op.fail("the lanes to combine are registers or threads: `vector` is their dimension", code="MLC0171")

    low.define(op.result, lambda point: _tree([low.part(op.x, (*point[: op.dim], offset, *point[op.dim + 1:]))
                                               for offset in range(low.scope.block[op.dim])], op.kind))


def _tree(lanes: Sequence[Value], kind: str) -> Value:
    """Combine lanes of one thread."""
    lanes = list(lanes)
    while half := len(lanes) // 2:
        lanes = [CombiningKind(kind).emit(a, b) for a, b in zip(lanes[:half], lanes[half:])]
    return lanes[0]


def across_threads(low: Threads, parts: Sequence[Value], kind: str) -> list[Value]:
    """Reduce the lanes of all threads of a row, for each of them (all-reduce), for several values at a time.

    Every warp combines the lanes down to those of one warp, and these by shuffles.
    """
    types = [v.type for v in parts]
    parts = [v if v.type != i1 else arith.ExtUI(v, i32).result for v in parts]     # i1 has no memory representation
    combine, lanes = CombiningKind(kind).emit, low.lanes_across
    if lanes > WARP:
        parts = _in_memory(low, parts, kind, lanes)
    width, half = arith.constant(min(WARP, lanes), i32), min(WARP, lanes) // 2
    while half:
        offset = arith.constant(half, i32)
        parts = [combine(x, _exchanged(x, "down", offset, width)) for x in parts]
        half //= 2
    first = arith.constant(0, i32)
    totals = [_exchanged(x, "idx", first, width) for x in parts]
    return [arith.TruncI(v, i1).result if type == i1 else v for v, type in zip(totals, types)]


def _in_memory(low: Threads, parts: Sequence[Value], kind: str, lanes: int) -> list[Value]:
    """The lanes of a warp, in each of them: the tree down to there of what all lanes put into shared memory."""
    buffers = [low.function.share(MemRefType((lanes,), x.type)) for x in parts]
    alone = [low.is_first_group()] if low.kernel.schedule.groups_per_tile > 1 else []
    lane, member = low.number(low.lane), sizes.modulo(low.lane, WARP)

    def store() -> list[Value]:
        for x, buffer in zip(parts, buffers):
            memref.Store(x, buffer, (lane,))
        return []

    guarded(alone, (), store, list, low)
    gpu.Barrier()
    found: list[Value] = []
    for buffer in buffers:
        values: list[Value] = [memref.Load(buffer, (low.number(member + first),)).result
                               for first in range(0, lanes, WARP)]
        found.append(_tree(values, kind))
    return found


def _exchanged(x: Value, mode: str, offset: Value, width: Value) -> Value:
    """Shuffle a value between threads; narrow integers as i32, 16-bit floats as f32."""
    type = x.type
    if type.width >= 32:
        return gpu.Shuffle(x, offset, width, mode=mode).results[0]
    if type.is_float:
        return arith.TruncF(gpu.Shuffle(arith.ExtF(x, f32).result, offset, width, mode=mode).results[0], type).result
    return arith.TruncI(gpu.Shuffle(arith.ExtUI(x, i32).result, offset, width, mode=mode).results[0], type).result
