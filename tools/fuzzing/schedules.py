"""Random schedules for the kernels of a module, all of which must give the same bits."""

from __future__ import annotations

import math
import random

from mlc.dialects import loop
from mlc.dialects.builtin import Module
from mlc.dialects.loop import Kernel
from mlc.ir.core import Value
from mlc.passes.schedule import transforms

LARGEST = 1 << 9
"""Points of a tile. All are unrolled, and some functions take a hundred instructions for each."""


def reschedule(module: Module, rng: random.Random) -> None:
    """Random tile sizes and vector dimensions for the kernels of a loop-level module.

    In a reduction by lanes or in runs, the dimension and the size of its blocks are the order of summation, and stay.
    So do blocks that add several products to a sum, one after the other, and those of one point that are unrolled.
    """
    for kernel in module.inside(Kernel):
        lanes = {op.dim for op in kernel.inside(loop.Reduce)}
        lanes |= {op.dim for op in kernel.inside(loop.For) if op.outer() is not None or op.run}
        fixed = lanes | {op.dim for op in kernel.inside(loop.For) if op.unroll}
        fixed |= in_order(kernel)
        tile = [t if d in fixed else rng.choice((1, 2, 3, 4, 5, 8, 16, 24)) if d < kernel.parallel
                else rng.choice((1, 2, 3, 4)) for d, t in enumerate(kernel.schedule.tile)]
        for d in sorted({*range(len(tile))} - fixed, key=tile.__getitem__, reverse=True):
            if math.prod(tile) > LARGEST:
                tile[d] = 1
        kernel.reschedule(tile=tuple(tile))
        if not lanes:
            kernel.reschedule(vector=rng.choice((-1, *range(kernel.parallel))), lanes=rng.choice((0, 0, 2, 4)))


def pack_panels(module: Module, rng: random.Random) -> None:
    """A random schedule with panels, sums in parts and packed factors for the contractions of a module.

    Those that add in lanes have the lanes as a dimension of their tiles, and keep their schedule. Sums to which several
    contractions add are not unrolled.
    """
    for kernel in module.inside(Kernel):
        if next(kernel.inside(loop.Contract), None) is None or not kernel.parallel:
            continue
        _, contract = transforms.contraction(kernel)
        if isinstance(contract, loop.Contract) and contract.in_lanes:
            continue
        n, k = rng.randrange(kernel.parallel), contract.dim
        lanes, width = rng.choice(((4, 4), (4, 8), (8, 8), (2, 6), (0, 5)))
        transforms.tile(kernel, n, width, vector=True, lanes=lanes)
        if isinstance(transforms.contraction(kernel)[0].parent_op, loop.For):
            transforms.spill_accumulator(kernel)
        if rng.random() < 0.7 or not isinstance(kernel.domain[k], int):
            transforms.split_k(kernel, rng.choice((4, 8, 16)))
        for m in rng.sample(range(kernel.parallel), rng.randint(0, kernel.parallel)):
            size = width if m == n else rng.choice((1, 2, 3, 4))
            transforms.tile(kernel, m, size * rng.choice((1, 2, 4)), vector=m == n, lanes=lanes if m == n else 0)
            transforms.strip_mine(kernel, m, size)
        _, contract = transforms.contraction(kernel)
        for side in ("lhs", "rhs"):
            factor: Value = getattr(contract, side)
            dims: tuple[int, ...] = factor.type.dims
            around = transforms.enclosing_loops(contract)
            target = next((op for op in around if op.dim not in dims), None)
            if target is None or rng.random() < 0.3:
                continue
            outside, inside = around[: around.index(target)], around[around.index(target):]
            blocks = dict(enumerate(kernel.schedule.tile[: kernel.parallel])) | {op.dim: op.step for op in outside}
            free = [d for d in dims if may_lie_in_lanes(factor, d)]
            own = [d for d in {op.dim for op in inside} & {*free} if n not in dims and blocks.get(d, 2) % 2 == 0]
            transforms.pack(kernel, side, rng.choice(own) if own else n if n in dims or not free else free[-1],
                            2 if own else rng.choice((0, 2)) if n in dims else 0)
        if rng.random() < 0.3 and k not in in_order(kernel):
            transforms.unroll(kernel, k, 2)


def in_order(kernel: Kernel) -> set[int]:
    """The dimensions along which several contractions add to one sum: the size of their blocks is its order."""
    return {op.dim for op in kernel.inside(loop.Contract) if isinstance(op.acc.op, loop.Contract)}


def may_lie_in_lanes(factor: Value, d: int) -> bool:
    """Whether vectors along a dimension may hold a factor. Those of what groups of numbers have in common may not lie
    within rows of blocks: each lane has a row of its own.
    """
    read = (op for root in transforms.slice_of(factor) for op in root.walk() if isinstance(op, loop.LoadEncoded))
    return not any(op.numbers > 2 and op.is_within_rows(d) for op in read)
