"""The steps of a contraction's schedule on a GPU. Each changes a kernel in place, records itself and changes no bit."""

from __future__ import annotations

from math import prod

from mlc.dialects import loop
from mlc.dialects.loop import For, Kernel, ScratchType
from mlc.ir.core import Block, Op, Region, Value, at_end, before
from mlc.passes.schedule.transforms import contraction, drop_unused, record


def cta_tile(kernel: Kernel, threads: tuple[int, ...]) -> None:
    """Let so many threads of a CTA lie along each parallel dimension, each of which takes a tile."""
    kernel.reschedule(threads_per_cta=threads, tiles_per_cta=prod(threads))
    record(kernel, "cta_tile", threads=f"{list(threads)}")


def stage(kernel: Kernel, size: int, unroll: int) -> None:
    """Add up `size` terms of every sum, in loops of `unroll` at a time, then the next; sums stay in registers."""
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


def warp(kernel: Kernel, threads: tuple[int, ...]) -> None:
    """Let the threads of a warp lie so in the CTA tile, and multiply together."""
    kernel.reschedule(threads_per_warp=threads)
    record(kernel, "warp", threads=f"{list(threads)}")


def share(kernel: Kernel, side: str, last: int = -1) -> None:
    """Let the threads of a block copy a factor of the contraction, lhs or rhs, for a stage of its sum, and share it.

    The copy lies side by side along dimension `last`, if one is given, else along the last parallel one.
    """
    sum, contract = contraction(kernel)
    factor: Value = getattr(contract, side)
    source, stage = computed_by(factor), sum.parent_op
    assert source is not None and isinstance(stage, For) and stage.body.block.first is not None
    dims = sorted(factor.type.dims, key=lambda d: (d == last, d != contract.dim, d))
    with before(stage.body.block.first, contract.loc):
        room = loop.Scratch(ScratchType(tuple(dims), factor.type.dtype)).result
    inside = Block()
    with before(sum, contract.loc):
        with at_end(inside):
            mapping: dict[Value, Value] = {}
            for op in source:
                op.insert_clone(mapping)
            loop.Yield((mapping[factor],))
        loop.Pack(room, Region(inside))
    with before(contract):
        contract.set_operand(1 if side == "lhs" else 2, loop.Recall(room).result)
    drop_unused(contract)
    record(kernel, "share", side=side, last=f"{last}" if last >= 0 else 0)


def computed_by(value: Value) -> list[Op] | None:
    """Operations that compute a tile from buffers and coordinates, in order; None if loops or the like contribute."""
    found: dict[Op, None] = {}

    def visit(v: Value) -> bool:
        op = v.op
        if op in found or not isinstance(v.type, loop.TileType):
            return True
        if op is None or op.name not in loop.Pack.POINTWISE or not all(map(visit, op.operands)):
            return False
        found[op] = None
        return True

    return list(found) if visit(value) else None


def ahead(kernel: Kernel, stages: int) -> None:
    """Let so many stages of the sum be under way at a time: the next ones are copied while one is computed."""
    sum, _ = contraction(kernel)
    stage = sum.parent_op
    assert isinstance(stage, For)
    stage.stages = stages
    record(kernel, "ahead", stages=stages)
