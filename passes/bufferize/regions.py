"""Bufferization of loops and branches: carried tensors become buffers, scalars are carried as before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlc.dialects import arith, func, memref, scf
from mlc.dialects import tensor as tn
from mlc.ir.core import Block, Op, Region, Value, before
from mlc.ir.types import TensorType, i64

if TYPE_CHECKING:
    from mlc.passes.bufferize.function import Bufferizer


def rewrite_for(b: Bufferizer, op: scf.For) -> None:
    _start(b, op.init, op.carried)
    block = op.block
    b.rewrite_block(block, _buffers(b, op.carried))
    _drop_tensors(block)
    _replace(op, [op.lower, op.upper, op.step, *_scalars(op.init)])


def rewrite_if(b: Bufferizer, op: scf.If) -> None:
    targets = _buffers(b, op.results)
    for region in op.regions:
        for block in region.blocks:
            b.rewrite_block(block, targets)
    _replace(op, [op.condition])


def rewrite_while(b: Bufferizer, op: scf.While) -> None:
    test, after = op.before.block, op.after.block
    asserts = any(isinstance(inner, tn.FailIf) or (isinstance(inner, func.Call) and b.sites.reached[inner.callee])
                  for inner in op.walk())
    _start(b, op.init, test.args)
    forwarded, next_values = [None, *_buffers(b, after.args)], _buffers(b, test.args)
    for block, targets in ((test, forwarded), (after, next_values)):
        b.rewrite_block(block, targets)
        _drop_tensors(block)
    if asserts:
        _stop_at_errors(b, test.terminator)
    _replace(op, _scalars(op.init))


def _stop_at_errors(b: Bufferizer, condition: Op) -> None:
    """Exit a loop once an assertion has failed: termination may depend on it."""
    with before(condition):
        record = memref.Load(b.errors, (b.size(0),)).result
        fine = arith.CmpI("eq", record, arith.constant(-1, i64)).result
        condition.set_operand(0, arith.AndI(condition.operands[0], fine).result)


def _start(b: Bufferizer, init: Sequence[Value], carried: Sequence[Value]) -> None:
    """Copy initial values to the buffers of the loop-carried values."""
    for v, arg in zip(init, carried):
        if isinstance(v.type, TensorType) and b.buffer(v) is not b.buffer(arg):
            b.copy(v.type, b.buffer(v), b.buffer(arg))


def _buffers(b: Bufferizer, values: Sequence[Value]) -> list[Value | None]:
    return [b.buffer(v) if isinstance(v.type, TensorType) else None for v in values]


def _scalars(values: Sequence[Value]) -> list[Value]:
    return [v for v in values if not isinstance(v.type, TensorType)]


def _drop_tensors(block: Block) -> None:
    block.erase_args([arg.index for arg in block.args if isinstance(arg.type, TensorType)])


def _replace(op: Op, operands: Sequence[Value]) -> None:
    """Replace an operation by one on scalars alone that takes its regions; the old one keeps its tensor results."""
    regions: tuple[Region, ...] = op.regions
    op.regions = ()
    for region in regions:
        region.parent = None
    scalars = _scalars(op.results)
    types = None if isinstance(op, scf.For) else [v.type for v in scalars]
    new = type(op).make(operands, dict(op.attrs), types, regions, loc=op.loc)
    assert op.parent is not None
    op.parent.insert(new, op)
    for old, value in zip(scalars, new.results):
        old.replace_by(value)
    if len(scalars) == len(op.results):
        op.erase()
