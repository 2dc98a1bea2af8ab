"""Schedule transforms of contractions on a GPU. Each rewrites a kernel in place and preserves every bit."""

from __future__ import annotations

from math import prod

from mlc.dialects import loop
from mlc.dialects.loop import For, Kernel, ScratchType
from mlc.ir.core import Block, Op, Region, Value, at_end, before
from mlc.passes.schedule.transforms import contraction, drop_unused, record


def cta_tile(kernel: Kernel, threads: tuple[int, ...], group_m: int = 0) -> None:
    """Set the CTA tile: the number of threads along each parallel dimension, one tile per thread; with `group_m`, CTAs
    are numbered in groups of rows."""
    kernel.reschedule(threads_per_cta=threads, tiles_per_cta=prod(threads), group_m=group_m)
    record(kernel, "cta_tile", threads=f"{list(threads)}", group_m=group_m)


def tile_epilogue(kernel: Kernel, points: int) -> None:
    """Compute about so many of a thread's points at a time after their sums, whole vectors of them."""
    schedule = kernel.schedule
    if schedule.vector < 0:
        return
    whole = schedule.tile[schedule.vector]
    others = prod(schedule.tile[: kernel.parallel]) // whole
    lanes = schedule.lanes or whole
    most = max(lanes, points // others)
    kernel.reschedule(epilogue_tile=max(n for n in range(lanes, whole + 1, lanes) if whole % n == 0 and n <= most))
    record(kernel, "tile_epilogue", size=kernel.schedule.epilogue_tile)


def stage(kernel: Kernel, size: int, unroll: int) -> None:
    """Split the reduction into stages of `size` terms, unrolled by `unroll`, with accumulators in registers."""
    sum, contract = contraction(kernel)
    start, inside = sum.operands[0], sum.parent_op is not kernel
    outer = Block([start.type])
    with before(sum):
        with at_end(outer, sum.loc):
            inner = sum.insert_clone({start: outer.args[0]})
            assert isinstance(inner, For)
            inner.size = unroll
            loop.Yield(tuple(inner.results))
        made = For((start,), Region(outer), dim=contract.dim, size=size if inside else 0)
    sum.replace_by(*made.results)
    if not inside:
        kernel.reschedule(tile=kernel.schedule.with_tile(contract.dim, size))
    record(kernel, "stage", dim=f"{contract.dim}", size=size, unroll=unroll)


def warp_tile(kernel: Kernel, threads: tuple[int, ...]) -> None:
    """Set the warp tile: the threads of a warp along each parallel dimension, for warp-level matrix multiplication."""
    kernel.reschedule(threads_per_warp=threads)
    record(kernel, "warp_tile", threads=f"{list(threads)}")


def multiply_by_warpgroups(kernel: Kernel) -> None:
    """Multiply by four warps together, which read swizzled panels in shared memory."""
    kernel.reschedule(mma_warps=4)
    record(kernel, "multiply_by_warpgroups")


def promote_to_shared(kernel: Kernel, side: str, last: int = -1, swizzle: int = 0) -> None:
    """Promote a factor of the contraction, lhs or rhs, to shared memory, one stage of the reduction at a time.

    The panel is contiguous along dimension `last`, by default the last parallel one, and swizzled for the products of
    warpgroups on request.
    """
    sum, contract = contraction(kernel)
    stage = sum.parent_op
    assert isinstance(stage, For)
    _promote(contract, side, stage, sum, last, swizzle)
    record(kernel, "promote_to_shared", side=side, last=f"{last}" if last >= 0 else 0, swizzle=swizzle)


def promote_rows(kernel: Kernel, contract: loop.Mma, side: str, around: For, last: int, swizzle: int = 0) -> None:
    """Promote a factor of one of several products to shared memory, for each block of a loop around it."""
    first = next(op for op in around.body.block if not isinstance(op, loop.Scratch | loop.Pack))
    _promote(contract, side, around, first, last, swizzle)
    record(kernel, "promote_rows", side=side, dim=f"{around.dim}", last=f"{last}", swizzle=swizzle)


def _promote(contract: loop.Contract | loop.ContractPairs | loop.Mma, side: str, around: For, reader: Op, last: int,
             swizzle: int) -> None:
    """Fill a panel with a factor, before `reader` in each block of a loop, and load it from there."""
    factor: Value = getattr(contract, side)
    source = computed_by(factor)
    assert source is not None and around.body.block.first is not None
    dims = sorted(factor.type.dims, key=lambda d: (d == last, d != contract.dim, d))
    with before(around.body.block.first, contract.loc):
        buffer = loop.Scratch(ScratchType(tuple(dims), factor.type.dtype), swizzle=swizzle).result
    inside = Block()
    with before(reader, contract.loc):
        with at_end(inside):
            mapping: dict[Value, Value] = {}
            for op in source:
                op.insert_clone(mapping)
            loop.Yield((mapping[factor],))
        loop.Pack(buffer, Region(inside))
    with before(contract):
        contract.set_operand(1 if side == "lhs" else 2, loop.LoadScratch(buffer).result)
    drop_unused(contract)


def computed_by(value: Value) -> list[Op] | None:
    """Backward slice of a tile down to buffers and coordinates, in order; None if it is not pointwise."""
    found: dict[Op, None] = {}

    def visit(v: Value) -> bool:
        op = v.op
        if op in found or not isinstance(v.type, loop.TileType):
            return True
        if not isinstance(op, loop.InKernel) or not op.pointwise or not all(map(visit, op.operands)):
            return False
        found[op] = None
        return True

    return list(found) if visit(value) else None


def pipeline(kernel: Kernel, stages: int) -> None:
    """Pipeline the stages of the reduction: copies of the next stages overlap the computation of the current one."""
    sum, _ = contraction(kernel)
    stage = sum.parent_op
    assert isinstance(stage, For)
    stage.stages = stages
    record(kernel, "pipeline", stages=stages)
