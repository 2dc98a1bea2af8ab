"""Lifetimes of values, and legality of writing a result over an operand.

Operations are numbered in program order, including those in regions. An operation with regions has two numbers: its
start, when its operands are read, and its end. A value defined outside a loop is live to the end of the loop.
"""

from __future__ import annotations

from mlc.dialects import func, scf
from mlc.dialects import tensor as tn
from mlc.dialects.func import Func
from mlc.dialects.tensor.kernel import Kernel
from mlc.ir.changes import allowed
from mlc.ir.core import Block, BlockArg, Op, Value
from mlc.ir.types import TensorType
from mlc.passes.analysis.kernel_boundary import REGIONS

Overwrites = frozenset[tuple[int, int]]
"""(argument, result) of a function: a caller may pass one buffer for both."""


class Lifetimes:
    """Lifetimes of the values of one function, given the `overwrites` of its callees."""

    def __init__(self, function: Func, overwrites: dict[str, Overwrites]) -> None:
        self.overwrites = overwrites
        self.start: dict[Op, int] = {}
        self.end: dict[Op, int] = {}
        self.depth: dict[Block, int] = {}
        self.last: dict[Value, int] = {}
        self.order = self.number(function.block)
        for op in reversed(self.order):
            for v in op.operands:
                self.last[v] = max(self.last.get(v, -1), self.read_until(op, v))
            if isinstance(op, tn.Reshape):
                self.last[op.x] = max(self.last[op.x], self.last.get(op.result, -1))

    def number(self, block: Block) -> list[Op]:
        """Number the operations; returns them in order."""
        out: list[Op] = []
        step = 0
        self.depth[block] = 0
        work: list[Block | Op] = [block]
        while work:
            item = work.pop()
            if isinstance(item, Block):
                work += reversed(item.ops)
                continue
            if item in self.start:                       # all regions are numbered
                self.end[item] = step
            else:
                self.start[item] = self.end[item] = step
                out.append(item)
                if isinstance(item, REGIONS):
                    assert item.parent is not None
                    inner = [b for region in item.regions for b in region.blocks]
                    self.depth |= dict.fromkeys(inner, self.depth[item.parent] + 1)
                    work += [item, *reversed(inner)]
            step += 1
        return out

    def read_until(self, op: Op, value: Value) -> int:
        """Last step at which `op` reads `value`: the end of the outermost loop that is inside the scope of `value`."""
        owner = value.block if isinstance(value, BlockArg) else value.op.parent  # type: ignore[union-attr]
        assert owner is not None and op.parent is not None
        until, current = self.start[op], op.parent
        while self.depth[current] > self.depth[owner]:
            around = current.parent_op
            assert around is not None and around.parent is not None
            if isinstance(around, scf.For | scf.While):
                until = self.end[around]
            current = around.parent
        return until

    def dies_in(self, value: Value, op: Op) -> bool:
        """Whether `value` is dead once `op` has started."""
        return self.last.get(value, -1) <= self.start[op] and not is_viewed(value)

    def fits_in_place(self, op: Op, result: Value, operand: Value) -> bool:
        """Whether `result` may be written over `operand` and the change is not suppressed (ir/changes.py)."""
        return self.could_be_over(op, result, operand) and allowed("in place", op, result, operand)

    def could_be_over(self, op: Op, result: Value, operand: Value) -> bool:
        """Whether writing `result` over `operand` is legal: same size, dead afterwards, read elementwise."""
        if not self.dies_in(operand, op):
            return False
        a, b = result.type, operand.type
        if not isinstance(b, TensorType) or a.shape != b.shape or a.dtype.itemsize != b.dtype.itemsize:
            return False
        if operand not in op.operands:
            return self.last.get(operand, -1) < self.start[op]
        if op.operands.count(operand) != 1:
            return False
        if isinstance(op, Kernel):
            return op.may_overwrite(op.ins.index(operand), op.results.index(result))
        at = op.results.index(result)
        if isinstance(op, func.Call):
            return (op.args.index(operand), at) in self.overwrites[op.callee]
        return carried(op, at) is operand


def carried(op: Op, result: int) -> Value | None:
    """Initial value of a loop that shares the buffer of a result; None if there is none."""
    if isinstance(op, scf.For):
        return op.init[result]
    if isinstance(op, scf.While):
        i = forwarded(op, result)
        return op.init[i] if i is not None else None
    return None


def forwarded(op: scf.While, result: int) -> int | None:
    """Index of the `before` argument that a `while` forwards unchanged to its `after` region and as a result."""
    values = op.before.block.terminator.operands[1:]
    v = values[result]
    return op.before.block.args.index(v) if v in op.before.block.args and values.index(v) == result else None


def is_viewed(value: Value) -> bool:
    """Whether a value shares its buffer with a reshape."""
    return isinstance(value.op, tn.Reshape) or any(isinstance(u, tn.Reshape) for u in value.users)
