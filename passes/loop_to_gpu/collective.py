"""Reductions and bounds of lanes: in registers of one thread, or across threads."""

from __future__ import annotations

from mlc.dialects import arith, gpu, loop, memref, scf
from mlc.dialects.combining import CombiningKind
from mlc.ir.core import Value, at_end
from mlc.ir.machine import WARP
from mlc.ir.types import MemRefType, f32, i1, i32
from mlc.passes.loop_to_gpu.threads import Threads, rule
from mlc.passes.lower_kernel.nest import Point


@rule(loop.InBounds)
def _in_bounds(low: Threads, op: loop.InBounds) -> None:
    low.define(op.result, lambda p: low.inside(op.dim, p) or arith.constant(True, i1))


@rule(loop.Reduce)
def _reduce(low: Threads, op: loop.Reduce) -> None:
    """Combine the upper half of the lanes with the lower one until one is left: the tree of `lanes<L>`."""
    if op.dim not in (low.across, low.along):
        op.fail("the lanes to combine are registers or threads: `vector` is their dimension", code="MLC0171")

    def tree(point: Point) -> Value:
        parts = [low.part(op.x, (*point[: op.dim], offset, *point[op.dim + 1:]))
                 for offset in range(low.scope.block[op.dim])]
        if op.dim == low.across:
            parts = [across_threads(low, part, op.kind) for part in parts]
        while half := len(parts) // 2:
            parts = [CombiningKind(op.kind).emit(a, b) for a, b in zip(parts[:half], parts[half:])]
        return parts[0]

    low.define(op.result, tree)


def across_threads(low: Threads, x: Value, kind: str) -> Value:
    """Reduce the lanes of all threads of a block, for each of them (all-reduce)."""
    if x.type == i1:                                 # i1 has no memory representation
        return arith.TruncI(across_threads(low, arith.ExtUI(x, i32).result, kind), i1).result
    combine, lanes = CombiningKind(kind).emit, low.lanes_across
    if lanes > WARP:
        x = _in_memory(low, x, kind, lanes)
    width, half = arith.constant(min(WARP, lanes), i32), min(WARP, lanes) // 2
    while half:
        x = combine(x, _exchanged(x, "down", arith.constant(half, i32), width))
        half //= 2
    if lanes <= WARP:
        return _exchanged(x, "idx", arith.constant(0, i32), width)
    buffer = low.function.share(MemRefType((1,), x.type))
    zero, first = low.number(0), scf.branch(low.is_first(), otherwise=False)
    with at_end(first.then_body.block):
        memref.Store(x, buffer, (zero,))
        scf.Yield(())
    gpu.Barrier()
    return memref.Load(buffer, (zero,)).result


def _in_memory(low: Threads, x: Value, kind: str, lanes: int) -> Value:
    """Reduce through shared memory down to one warp: the upper half of the threads stores, the lower half combines."""
    lane = low.number(low.lane)
    while lanes > WARP:
        lanes //= 2
        buffer, half = low.function.share(MemRefType((lanes,), x.type)), low.number(lanes)
        upper = arith.AndI(arith.CmpI("sge", lane, half).result,
                           arith.CmpI("slt", lane, low.number(2 * lanes)).result).result
        branch = scf.branch(upper, otherwise=False)
        with at_end(branch.then_body.block):
            memref.Store(x, buffer, (arith.SubI(lane, half).result,))
            scf.Yield(())
        gpu.Barrier()
        branch = scf.branch(arith.CmpI("slt", lane, half).result, [x.type])
        with at_end(branch.then_body.block):
            scf.Yield((CombiningKind(kind).emit(x, memref.Load(buffer, (lane,)).result),))
        with at_end(branch.else_body.block):
            scf.Yield((x,))
        x = branch.results[0]
    return x


def _exchanged(x: Value, mode: str, offset: Value, width: Value) -> Value:
    """Shuffle a value between threads; narrow integers as i32, 16-bit floats as f32."""
    type = x.type
    if type.width >= 32:
        return gpu.Shuffle(x, offset, width, mode=mode).results[0]
    if type.is_float:
        return arith.TruncF(gpu.Shuffle(arith.ExtF(x, f32).result, offset, width, mode=mode).results[0], type).result
    return arith.TruncI(gpu.Shuffle(arith.ExtUI(x, i32).result, offset, width, mode=mode).results[0], type).result
