"""autodiff, lanes: values that are replaced where a lane predicate holds. Batched loops and conditions are made of it.

    %r = autodiff.masked %p (%x, %v) carried 1 : (tensor<Lxi1>, tensor<Lx3xf32>, tensor<Lx3xf32>) -> tensor<Lx3xf32> {
    ^bb0(%a: tensor<Lx3xf32>, %b: tensor<Lx3xf32>):
      %0 = tensor.div %a, %b : tensor<Lx3xf32>
      autodiff.yield %0 : tensor<Lx3xf32>
    }

It stands until all derivatives are taken, because the derivative of a lane that keeps its value has to be 0 and not 0
times what the body makes of it, which may be infinite: a derivative selects after the body's own.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects import func, tensor
from mlc.dialects.autodiff.activity import RECOMPUTE
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.dialects.tensor.base import is_splat, lanes_at, reshape, select, zeros
from mlc.dialects.tensor.index import row_of
from mlc.dialects.tensor.shape import transpose
from mlc.ir.core import Block, Op, Region, Symbol, Value, before
from mlc.ir.types import FloatType, TensorType, Type, i1

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Yield(Op, name="autodiff.yield", terminator=True, pure=False):
    """Hand values to the operation around."""

    values: tuple[Value, ...]
    format = "$values attr-dict `:` type($values)"

    def verify_op(self) -> None:
        parent = self.parent_op
        if not isinstance(parent, Masked) or [v.type for v in self.values] != [r.type for r in parent.results]:
            self.fail("ends the body of an autodiff.masked, with values of its result types", code="MLC0136")


class Masked(Op, name="autodiff.masked", pure=False, effects_inside=True, isolated=True):
    """results = select(p, body(args), carries), the carries being the first `carried` args

    The shape of p is that of the first axes of each carry and of each float argument: all that has a derivative belongs
    to one lane. The body computes every lane.
    """

    p: Value
    args: tuple[Value, ...]
    carried: int
    body: Region

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def carries(self) -> Sequence[Value]:
        return self.operands[1: self.carried + 1]

    def infer(self) -> tuple[Type, ...]:
        p = self.p.type
        if not isinstance(p, TensorType) or p.dtype != i1:
            self.fail(f"the predicate is {p}, not a tensor of i1", code="MLC0136")
        if not 1 <= self.carried <= len(self.args):
            self.fail(f"carries {self.carried} of {len(self.args)} arguments", code="MLC0136")
        for i, v in enumerate(self.args):
            bound = i < self.carried or (isinstance(v.type, TensorType) and isinstance(v.type.dtype, FloatType))
            if bound and (not isinstance(v.type, TensorType) or v.type.shape[: p.rank] != p.shape):
                self.fail(f"argument {i} is {v.type}, whose first axes are not those of the predicate, {p}",
                          code="MLC0136")
        return tuple(v.type for v in self.carries)

    def verify_op(self) -> None:
        if [a.type for a in self.block.args] != [v.type for v in self.args]:
            self.fail("the body's arguments are not of the types of the operation's", code="MLC0136")

    def interpret(self, frame: Frame) -> list[Any]:
        p, *args = frame.all(self.operands)
        made = frame.run(self.body, args)
        return [np.where(p.reshape(p.shape + (1,) * (x.ndim - p.ndim)), y, x) for x, y in zip(args, made)]

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("carried", "operandSegmentSizes"))
        p.append(f" {p.name(self.p)} ({p.values(self.args)}) carried {self.carried}{' ' + extra if extra else ''} : "
                 + p.functional_type(self))
        p.braces(self.body)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        refs = [parser.operand()]
        parser.expect("(")
        refs += parser.list_of(parser.operand, ")")
        parser.expect("carried")
        attrs: dict[str, Any] = {"carried": parser.integer()}
        attrs |= parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        inputs, results = parser.functional_type()
        if len(inputs) == 1:
            inputs = inputs * len(refs)
        operands = parser.resolve_all(refs, inputs)
        return parser.build(Masked, operands, attrs, results, [parser.region()])


def masked(p: Value, carries: Sequence[Value], others: Sequence[Value] = ()) -> Masked:
    """An operation whose body takes its arguments and is empty; end it with Yield."""
    args = (*carries, *others)
    return Masked(p, args, len(carries), Region(Block([v.type for v in args])))


def drop_unused(op: Masked) -> None:
    """Take away the arguments that the body does not use, but for the carries."""
    unused = [i for i, arg in enumerate(op.block.args) if i >= op.carried and not arg.uses]
    op.set_operands([op.p, *(v for i, v in enumerate(op.args) if i not in unused)])
    op.block.erase_args(unused)


# -- into ordinary operations -----------------------------------------------------------------------------------------
def inline_masks(module: Module) -> None:
    """Replace every `autodiff.masked` of a module by its body and selections."""
    done: dict[Symbol, Func] = {}
    for function in func.callees_first(module):
        for op in reversed(list(function.inside(Masked))):       # those inside others first
            _inline(op, done)
        done[function.sym_name] = function


def _inline(op: Masked, functions: Mapping[Symbol, Func]) -> None:
    made = op.block.terminator
    for arg, value in zip(op.block.args, op.args):
        arg.replace_by(value)
    moved = [inner for inner in op.block if inner is not made]
    for inner in moved:
        inner.move_before(op)
    _open_calls(op.p, moved, functions)
    yielded = list(made.operands)
    made.erase()
    with before(op):
        results = [_selected(op.p, old, new) for old, new in zip(op.carries, yielded)]
    for old, new, result in zip(op.carries, yielded, op.results):
        if is_splat(old, 0.0):
            for user in result.users:
                if isinstance(user, tensor.ReduceSum) and user.axes == tuple(range(op.p.type.rank)):
                    _sum_up(op.p, new, user)
    op.replace_by(*results)


def _open_calls(p: Value, ops: Sequence[Op], functions: Mapping[Symbol, Func]) -> None:
    """Put the bodies of functions in place of calls that take what is repeated for each lane.

    Where it is used, it is known to be repeated, and need not be made.
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
    """Whether a value is that of all lanes, made one of each."""
    op = v.op
    return isinstance(op, tensor.BroadcastTo) and op.x.type.rank <= v.type.rank - p.type.rank and (
        v.type.shape[: p.type.rank] == p.type.shape)


def _selected(p: Value, old: Value, new: Value) -> Value:
    """select(p, new, old); of an update of `old` at places that lanes share, what is put there is selected."""
    put = new.op
    if new is old:
        return old
    if isinstance(put, tensor.DynamicUpdateSlice) and put.x is old and put.update.type.shape[: p.type.rank] == (
            p.type.shape):
        kept = tensor.DynamicSlice(old, put.starts, put.update.type.shape).result
        return tensor.DynamicUpdateSlice(old, select(beside(p, kept), put.update, kept), put.starts).result
    return select(beside(p, old), new, old)


def beside(p: Value, x: Value) -> Value:
    """A predicate of lanes with axes of size 1, so that it broadcasts with values of the lanes like x."""
    return reshape(p, (*p.type.shape, *[1] * (x.type.rank - p.type.rank)))


# -- cotangents of what lanes share ---------------------------------------------------------------------------------
def _sum_up(p: Value, x: Value, total: tensor.ReduceSum) -> None:
    """Make reduce_sum(select(p, x, 0)) over the lanes of products where x is one, or a sum of them; so of a scatter.

    That is the cotangent of weights that lanes share: x has a matrix or table for each lane, which then nobody needs.
    """
    parts, work, found = list[Value](), [x], False
    with before(total):
        while work:
            part = work.pop()
            op = part.op
            if isinstance(op, tensor.Add) and len(part.uses) == 1 and all(v.type == part.type for v in op.operands):
                work += op.operands
                continue
            product = _product(p, part) or _scattered(p, part)
            found |= product is not None
            parts.append(product if product is not None else tensor.ReduceSum(
                select(beside(p, part), part, zeros(part)), total.axes, total.order).result)
        if found:
            total.replace_by(functools.reduce(operator.add, reversed(parts)))


def _product(p: Value, x: Value) -> Value | None:
    """The sum over lanes of a product, turned or not, that has one for each of them."""
    count, turned = p.type.rank, x.op
    if isinstance(turned, tensor.Transpose) and list(turned.perm[:count]) == list(range(count)):
        inner = _product(p, turned.x)
        return None if inner is None else transpose(inner, [q - count for q in turned.perm[count:]])
    if not isinstance(turned, tensor.DotGeneral) or len(turned.batch) < count or len(x.uses) > 1:
        return None
    of_lanes = turned.batch[:count]
    sides = []
    for side, operand in enumerate(turned.operands):
        axes = [pair[side] for pair in of_lanes]
        if axes != sorted(axes):
            return None
        shape = [d if a in axes else 1 for a, d in enumerate(operand.type.shape)]
        sides.append(select(reshape(p, shape), operand, zeros(operand)))
    return tensor.DotGeneral(sides[0], sides[1], turned.batch[count:], (*of_lanes, *turned.contract)).result


def _scattered(p: Value, x: Value) -> Value | None:
    """The sum over lanes of what each adds to zeros: added to the same zeros."""
    op = x.op
    if not isinstance(op, tensor.ScatterAlong) or op.kind != "add" or not is_splat(op.x, 0.0) or p.type.rank > 1:
        return None
    axis, row = op.axis - 1, row_of(op.indices, op.axis)
    if axis < 0 or row is None or op.updates.type.shape[1: axis + 1] != x.type.shape[1: axis + 1] or (
            op.updates.type.shape[axis + 2:] != x.type.shape[axis + 2:]):
        return None
    updates = select(beside(p, op.updates), op.updates, zeros(op.updates))
    zero = tensor.Full(0.0, x.type.shape[1:], x.type.dtype).result
    return tensor.Scatter(zero, row, lanes_at(updates, axis), axis, "add").result
