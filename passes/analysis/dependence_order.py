"""An order of the operations of a block in which each comes behind those that it needs."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from mlc.ir.core import Block, Op
from mlc.passes.analysis.free_values import free_values


def restore_dominance(block: Block, early: Callable[[Op], bool] = lambda op: False) -> None:
    """Move operations behind those that compute their operands, and otherwise keep their order.

    early  those that come as soon as they can
    """
    ops = [op for op in block if not op.terminator]
    index = {op: i for i, op in enumerate(ops)}
    users: dict[Op, list[Op]] = {op: [] for op in ops}
    needed: dict[Op, int] = {}
    for op in ops:
        operands = {v.op for v in free_values(op) if v.op in index}
        needed[op] = len(operands)
        for operand in operands:
            assert operand is not None
            users[operand].append(op)
    ready = [(not early(op), index[op]) for op in ops if not needed[op]]
    heapq.heapify(ready)
    while ready:
        _, i = heapq.heappop(ready)
        ops[i].move_before(block.terminator)
        for user in users[ops[i]]:
            needed[user] -= 1
            if not needed[user]:
                heapq.heappush(ready, (not early(user), index[user]))
