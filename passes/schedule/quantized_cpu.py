"""The default schedules of products of integers with quantised rows."""

from __future__ import annotations

from mlc.dialects import loop
from mlc.dialects.loop import Kernel
from mlc.ir.machine import LINE, Cpu
from mlc.passes.schedule.contraction_cpu import AHEAD, FEW, LANES, ROWS
from mlc.passes.schedule.extents import even, guess, lanes_for
from mlc.passes.schedule.transforms import pack_blocks, prefetch_blocks, strip_mine, tile


def schedule_pairs(kernel: Kernel, machine: Cpu) -> None:
    """Schedule a product of pairs of integers: a tile of rows and columns, each with a sum in registers."""
    n, k = kernel.parallel - 1, len(kernel.domain) - 1
    lanes = min(LANES, machine.vector_bits // 32)
    kernel.reschedule(lanes=lanes if lanes < kernel.schedule.tile[k] else 0)
    m = next((d for d in reversed(range(n)) if kernel.domain[d] != 1), None)
    vectors = max(1, kernel.schedule.tile[k] // lanes)
    rows = 1 if m is None else min(FEW if vectors <= 2 else 2, guess(kernel.domain[m]))
    tile(kernel, n, min(guess(kernel.domain[n]), max(1, min(4 if rows < FEW else 2, 16 // (vectors * rows)))))
    if m is not None:
        tile(kernel, m, even(kernel.domain[m], rows, 1))


def schedule_groups(kernel: Kernel, machine: Cpu) -> None:
    """Schedule a product of groups of integers: a vector of columns, each a row of blocks, for a tile of rows.

    Columns that many rows use are unpacked once for a panel of them. Else they are as they are multiplied, with all
    groups of a block at a time: groups have bytes and scales in common.
    """
    n, dot = kernel.parallel - 1, next(iter(kernel.inside(loop.DotQuads)))
    lanes = lanes_for(kernel.domain[n], machine.vector_bits // 32)
    dot.instruction = "quads" if machine.byte_dot else "pairs" if machine.byte_pairs else "none"
    dot.widest = machine.vector_bits // 8
    m = next((d for d in reversed(range(n)) if kernel.domain[d] != 1), None)
    rows, most = 1 if m is None else guess(kernel.domain[m]), machine.vector_registers // 4
    blocks = next(iter(kernel.inside(loop.UnpackQuads))).layout
    groups = blocks.elements // blocks.group
    tile(kernel, n, lanes, vector=True)
    inner = dot.parent_op
    assert isinstance(inner, loop.For)
    sum = inner.parent_op
    assert isinstance(sum, loop.For)
    if rows <= most:
        if m is not None:
            tile(kernel, m, rows)
        if groups > 1:
            sum.unroll = groups
        prefetch_blocks(kernel, sum, LINE, AHEAD)
        return
    assert m is not None
    tile(kernel, m, even(kernel.domain[m], ROWS, most))
    strip_mine(kernel, m, most)
    pack_blocks(kernel, groups)
    filling = next(op for op in kernel.inside(loop.For) if op.dim == kernel.parallel)
    prefetch_blocks(kernel, filling, LINE, AHEAD)
