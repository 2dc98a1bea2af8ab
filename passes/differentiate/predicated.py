"""differentiate, predicated: lowers predicated regions to ordinary operations.

They are lowered after differentiation: the derivative of the body must be 0 for an inactive element, not 0 times the
body's derivative, which may be infinite. So the selection comes after the derivative.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mlc.dialects import func, tensor
from mlc.dialects.autodiff.attributes import RECOMPUTE
from mlc.dialects.autodiff.predication import Predicated
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.dialects.tensor.base import batch_axis_at, is_splat, reshape, select, zeros
from mlc.dialects.tensor.index import row_of
from mlc.dialects.tensor.shape import transpose
from mlc.ir.core import Op, Symbol, Value, before

if TYPE_CHECKING:
    pass


# -- lowering to ordinary operations ----------------------------------------------------------------------------------
def inline_masks(module: Module) -> None:
    """Replace every `autodiff.predicated` of a module by its body and selections."""
    done: dict[Symbol, Func] = {}
    for function in func.callees_first(module):
        for op in reversed(list(function.inside(Predicated))):       # innermost first
            _inline(op, done)
        done[function.sym_name] = function


def _inline(op: Predicated, functions: Mapping[Symbol, Func]) -> None:
    terminator = op.block.terminator
    for arg, value in zip(op.block.args, op.args):
        arg.replace_by(value)
    moved = [inner for inner in op.block if inner is not terminator]
    for inner in moved:
        inner.move_before(op)
    _open_calls(op.p, moved, functions)
    yielded = list(terminator.operands)
    terminator.erase()
    with before(op):
        results = [_selected(op.p, old, new) for old, new in zip(op.init, yielded)]
    for old, new, result in zip(op.init, yielded, op.results):
        if is_splat(old, 0.0):
            for user in result.users:
                if isinstance(user, tensor.ReduceSum) and user.axes == tuple(range(op.p.type.rank)):
                    _sum_up(op.p, new, user)
    op.replace_by(*results)


def _open_calls(p: Value, ops: Sequence[Op], functions: Mapping[Symbol, Func]) -> None:
    """Inline calls whose arguments are broadcast along the batch.

    The uses of these arguments can then read the operand of the broadcast.
    """
    work = [call for op in ops for call in op.walk() if isinstance(call, func.Call)]
    while work:
        call = work.pop()
        callee = functions.get(call.callee)
        if callee is None or len(callee.body.blocks) != 1 or callee.attrs.get(RECOMPUTE) or not any(
                _is_repeated(p, v) for v in call.args):
            continue
        block, last = call.parent, call.prev
        assert block is not None
        with before(call):
            results = func.splice(callee, call.args)
        new = last.next if last is not None else block.first
        while new is not None and new is not call:
            work += [inner for inner in new.walk() if isinstance(inner, func.Call)]
            new = new.next
        call.replace_by(*results)


def _is_repeated(p: Value, v: Value) -> bool:
    """Whether a value is broadcast along the batch axes."""
    op = v.op
    return isinstance(op, tensor.BroadcastTo) and op.x.type.rank <= v.type.rank - p.type.rank and (
        v.type.shape[: p.type.rank] == p.type.shape)


def _selected(p: Value, old: Value, new: Value) -> Value:
    """select(p, new, old); if `new` updates `old` at the same position for all elements, select only the update."""
    put = new.op
    if new is old:
        return old
    if isinstance(put, tensor.DynamicUpdateSlice) and put.x is old and put.update.type.shape[: p.type.rank] == (
            p.type.shape):
        kept = tensor.DynamicSlice(old, put.starts, put.update.type.shape).result
        return tensor.DynamicUpdateSlice(old, select(beside(p, kept), put.update, kept), put.starts).result
    return select(beside(p, old), new, old)


def beside(p: Value, x: Value) -> Value:
    """The predicate with axes of size 1 added, so that it broadcasts with x."""
    return reshape(p, (*p.type.shape, *[1] * (x.type.rank - p.type.rank)))


# -- cotangents of values that the batch shares -----------------------------------------------------------------------
def _sum_up(p: Value, x: Value, total: tensor.ReduceSum) -> None:
    """Rewrite reduce_sum(select(p, x, 0)) over the batch if x is a product, a scatter, or a sum of these.

    This is the cotangent of a shared weight. The rewrite avoids materialising one matrix or table per batch element.
    """
    parts, work, rewritten = list[Value](), [x], False
    with before(total):
        while work:
            part = work.pop()
            op = part.op
            if isinstance(op, tensor.Add) and len(part.uses) == 1 and all(v.type == part.type for v in op.operands):
                work += op.operands
                continue
            product = _product(p, part) or _scattered(p, part)
            rewritten |= product is not None
            parts.append(product if product is not None else tensor.ReduceSum(
                select(beside(p, part), part, zeros(part)), total.axes, total.order).result)
        if rewritten:
            total.replace_by(functools.reduce(operator.add, reversed(parts)))


def _product(p: Value, x: Value) -> Value | None:
    """The sum over the batch of a batched product, which may be transposed."""
    count, op = p.type.rank, x.op
    if isinstance(op, tensor.Transpose) and list(op.perm[:count]) == list(range(count)):
        inner = _product(p, op.x)
        return None if inner is None else transpose(inner, [q - count for q in op.perm[count:]])
    if not isinstance(op, tensor.DotGeneral) or len(op.batch) < count or len(x.uses) > 1:
        return None
    batch_axes = op.batch[:count]
    sides = []
    for side, operand in enumerate(op.operands):
        axes = [pair[side] for pair in batch_axes]
        if axes != sorted(axes):
            return None
        shape = [d if a in axes else 1 for a, d in enumerate(operand.type.shape)]
        sides.append(select(reshape(p, shape), operand, zeros(operand)))
    return tensor.DotGeneral(sides[0], sides[1], op.batch[count:], (*batch_axes, *op.contract)).result


def _scattered(p: Value, x: Value) -> Value | None:
    """The sum over the batch of batched scatters into zeros, as one scatter into zeros."""
    op = x.op
    if not isinstance(op, tensor.ScatterAlong) or op.kind != "add" or not is_splat(op.x, 0.0) or p.type.rank > 1:
        return None
    axis, row = op.axis - 1, row_of(op.indices, op.axis)
    if axis < 0 or row is None or op.updates.type.shape[1: axis + 1] != x.type.shape[1: axis + 1] or (
            op.updates.type.shape[axis + 2:] != x.type.shape[axis + 2:]):
        return None
    updates = select(beside(p, op.updates), op.updates, zeros(op.updates))
    zero = tensor.Full(0.0, x.type.shape[1:], x.type.dtype).result
    return tensor.Scatter(zero, row, batch_axis_at(updates, axis), axis, "add").result
