"""autodiff, batch: a function applied to each element of batched arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects import func
from mlc.dialects.func import Func
from mlc.ir.core import Op, ResultType, Symbol, Value
from mlc.ir.diag import IRError
from mlc.ir.printer import quote
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, Type, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Vmap(Op, name="autodiff.vmap", pure=False, effects_of_callee=True):
    """results[i] = callee(args), with element [i] of the arguments `batched`, for i < batch_size

    The results `common` have no batch axis: they do not depend on batched arguments.

        %y = autodiff.vmap @f(%x, %w) batched [0] size "B" : (tensor<Bx4xf32>, tensor<4xf32>) -> tensor<Bxf32>
    """

    callee: Symbol
    args: tuple[Value, ...]
    batched: tuple[int, ...]
    batch_size: Dim
    types: tuple[ResultType, ...]
    common: tuple[int, ...] = ()

    def verify_op(self) -> None:
        function = func.function_named(self, self.callee)
        if function is not None:
            check(self, function)

    def interpret(self, frame: Frame) -> list[Any]:
        """Runs the batch elements one by one, and stacks the results."""
        args, call = frame.all(self.args), frame.interpreter.call
        found = [call(self.callee, [x[element] if i in self.batched else x for i, x in enumerate(args)])
                 for element in range(frame.size(self.batch_size))]
        common = found[:1]
        if self.common and not found:            # they do not depend on batched arguments
            common = [call(self.callee, [np.zeros(x.shape[1:], x.dtype) if i in self.batched else x
                                         for i, x in enumerate(args)])]
        return [common[0][j] if j in self.common else np.asarray([values[j] for values in found], to_numpy(
            r.type.dtype)).reshape(frame.shape(r.type.shape)) for j, r in enumerate(self.results)]

    def print_form(self, p: Printer) -> None:
        batch_size = str(self.batch_size) if isinstance(self.batch_size, int) else quote(str(self.batch_size))
        extra = p.attr_dict(self, ("callee", "batched", "batch_size", *(() if self.common else ("common",))))
        p.append(f" @{self.callee}({p.values(self.args)}) batched {list(self.batched)} size {batch_size}"
                 f"{' ' + extra if extra else ''} : {p.functional_type(self)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        attrs: dict[str, Any] = {"callee": parser.symbol("a function's name such as @f")}
        parser.expect("(")
        refs = parser.list_of(parser.operand, ")")
        parser.expect("batched")
        attrs["batched"] = parser.attribute()
        parser.expect("size")
        attrs["batch_size"] = parser.attribute() if parser.token.kind == "string" else parser.integer()
        attrs |= parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        inputs, results = parser.functional_type()
        operands = parser.resolve_all(refs, inputs * len(refs) if len(inputs) == 1 else inputs)
        return parser.build(Vmap, operands, attrs, results)


def vmap(function: Func, args: Sequence[Value], batched: Sequence[int], batch_size: Dim,
         common: Sequence[int] = ()) -> Sequence[Value]:
    """The results of `function` for each element of the arguments `batched`; stacked, except for those in `common`."""
    inputs = [element_type(v.type) if i in batched else v.type for i, v in enumerate(args)]
    returned = func.result_types(function, inputs)
    types = [t if j in common else stacked_type(t, batch_size) for j, t in enumerate(returned)]
    return Vmap(function.sym_name, tuple(args), tuple(batched), batch_size, tuple(types), tuple(common)).results


def element_type(type: TensorType) -> TensorType:
    return type.with_shape(type.shape[1:])


def stacked_type(type: Type, batch_size: Dim) -> Type:
    return type.with_shape((batch_size, *type.shape)) if isinstance(type, TensorType) else type


def check(op: Vmap, function: Func) -> None:
    """Raise IRError unless operands and results match the function and the batch size."""
    count = len(op.args)
    if not op.batched or not all(0 <= i < count for i in op.batched) or list(op.batched) != sorted(set(op.batched)):
        op.fail(f"batched = {list(op.batched)} are no arguments of @{op.callee} in ascending order, which has {count}",
                code="MLC0138")
    for i in op.batched:
        type = op.args[i].type
        if not isinstance(type, TensorType) or type.rank == 0 or type.shape[0] != op.batch_size:
            op.fail(f"argument {i} is {type}, whose first axis does not have the batch size {op.batch_size}",
                    code="MLC0138")
    try:
        returned = func.result_types(function, [element_type(v.type) if i in op.batched else v.type
                                                for i, v in enumerate(op.args)])
    except IRError as error:
        raise IRError(f"{op.name} @{op.callee}: {error.message}", code="MLC0120", loc=op.loc) from None
    for j, t in enumerate(returned):
        if not isinstance(t, TensorType):
            op.fail(f"result {j} of @{op.callee} is {t}, not a tensor", code="MLC0138")
    expected = tuple(t if j in op.common else stacked_type(t, op.batch_size) for j, t in enumerate(returned))
    if tuple(r.type for r in op.results) != expected:
        op.fail(f"the results are ({', '.join(map(str, expected))}), not "
                f"({', '.join(str(r.type) for r in op.results)})", code="MLC0138")
