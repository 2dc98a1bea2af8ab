"""autodiff, predication: a region whose results take effect where a predicate holds.

    %r = autodiff.predicated %p (%x, %v) carried 1 : (tensor<Bxi1>, tensor<Bx3xf32>, tensor<Bx3xf32>)
      -> tensor<Bx3xf32> {
    ^bb0(%a: tensor<Bx3xf32>, %b: tensor<Bx3xf32>):
      %0 = tensor.div %a, %b : tensor<Bx3xf32>
      autodiff.yield %0 : tensor<Bx3xf32>
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.ir.core import Block, Op, Region, Value
from mlc.ir.types import FloatType, TensorType, Type, i1

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Yield(Op, name="autodiff.yield", terminator=True, pure=False):
    """Terminates the body of autodiff.predicated with its results."""

    values: tuple[Value, ...]
    format = "$values attr-dict `:` type($values)"

    def verify_op(self) -> None:
        parent = self.parent_op
        if not isinstance(parent, Predicated) or [v.type for v in self.values] != [r.type for r in parent.results]:
            self.fail("must end the body of an autodiff.predicated, with values of its result types", code="MLC0136")


class Predicated(Op, name="autodiff.predicated", pure=False, effects_inside=True, isolated=True):
    """results = select(p, body(args), init), where init are the first `carried` args

    The leading axes of each carried value and of each float argument have the shape of p: every differentiable value
    belongs to one batch element. The body computes all batch elements.
    """

    p: Value
    args: tuple[Value, ...]
    carried: int
    body: Region

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def init(self) -> Sequence[Value]:
        return self.operands[1: self.carried + 1]

    def infer(self) -> tuple[Type, ...]:
        p = self.p.type
        if not isinstance(p, TensorType) or p.dtype != i1:
            self.fail(f"the predicate is {p}, not a tensor of i1", code="MLC0136")
        if not 0 <= self.carried <= len(self.args):
            self.fail(f"carries {self.carried} of {len(self.args)} arguments", code="MLC0136")
        for i, v in enumerate(self.args):
            bound = i < self.carried or (isinstance(v.type, TensorType) and isinstance(v.type.dtype, FloatType))
            if bound and (not isinstance(v.type, TensorType) or v.type.shape[: p.rank] != p.shape):
                self.fail(f"argument {i} is {v.type}, whose first axes are not those of the predicate, {p}",
                          code="MLC0136")
        return tuple(v.type for v in self.init)

    def verify_op(self) -> None:
        if [a.type for a in self.block.args] != [v.type for v in self.args]:
            self.fail("the body's arguments are not of the types of the operation's", code="MLC0136")

    def interpret(self, frame: Frame) -> list[Any]:
        p, *args = frame.all(self.operands)
        results = frame.run(self.body, args)
        return [np.where(p.reshape(p.shape + (1,) * (x.ndim - p.ndim)), y, x) for x, y in zip(args, results)]

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
        return parser.build(Predicated, operands, attrs, results, [parser.region()])


def predicated(p: Value, init: Sequence[Value], others: Sequence[Value] = ()) -> Predicated:
    """An operation whose body has its arguments but no operations; end it with Yield."""
    args = (*init, *others)
    return Predicated(p, args, len(init), Region(Block([v.type for v in args])))


def drop_unused(op: Predicated) -> None:
    """Remove the arguments that the body does not use, except carried ones."""
    unused = [i for i, arg in enumerate(op.block.args) if i >= op.carried and not arg.uses]
    op.set_operands([op.p, *(v for i, v in enumerate(op.args) if i not in unused)])
    op.block.erase_args(unused)
