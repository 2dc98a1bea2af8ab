"""tensor, control: conversions between tensors and scalars, and builders of scf loops and conditionals on tensors.

Counters, bounds and conditions are scalars (`index`, `i1`), loop-carried values are tensors. The builders at the end
create the regions, so a decomposition reads

    for_loop(0, n, [x], lambda i, x: [dynamic_update(x, from_index(i), ...)])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects import arith, scf
from mlc.dialects.tensor.base import Array, SizedOp, TensorOp, TypedOp, cast, constant_array, kind, reshape
from mlc.dialects.tensor.kernel import stored
from mlc.dialects.tensor.source import check_dtype
from mlc.dialects.tensor.traits import HostOp
from mlc.ir.core import Block, Op, Region, Value, at_end, builder
from mlc.ir.printer import quote
from mlc.ir.sizes import Dim, Size, is_natural, symbol_name, symbols
from mlc.ir.types import IndexType, IntType, ScalarType, TensorType, Type, i1, i64, index, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Item(HostOp, TensorOp, name="tensor.item"):
    """result = x[0, ..., 0], the only element of x, as a scalar

        %r = tensor.item %x : (tensor<i64>) -> i64

    An unsigned integer becomes the signless one of the same bits. Floats are not supported: compare them first.
    """

    x: Value

    def infer(self) -> Type:
        type, = self.tensors()
        if any(d != 1 for d in type.shape):
            self.refuse(f"x is {type}, not a tensor of one element", "MLC0115")
        check_dtype(self, type.dtype, "bool", "int")
        return stored(type.dtype) if type.dtype != i1 else i1

    def ref(self, x: Any) -> Any:
        return arith.store(int(np.asarray(x).reshape(())), self.results[0].type)

    def fold(self) -> Value | Array | None:
        op = self.x.op
        if isinstance(op, FromScalar) and op.x.type == self.result.type:
            return op.x
        constant = constant_array(self.x)
        return None if constant is None else self.ref(constant)

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        """A batched scalar is a tensor, whose integers are signed."""
        return cast(reshape(operands[0], (batch_size,)), scalar_dtype(self.result.type))


class FromScalar(HostOp, TypedOp, TensorOp, name="tensor.from_scalar"):
    """result[] = x, an integer, index or i1 as a 0-d tensor

        %r = tensor.from_scalar %i : index to tensor<i64>
    """

    x: Value
    dtype: ScalarType
    spelled = ("dtype",)

    def infer(self) -> TensorType:
        source = self.x.type
        fits = self.dtype == i64 if source == index else self.dtype == i1 if source == i1 else (
            isinstance(source, ScalarType) and kind(self.dtype) == "int" and stored(self.dtype) == source)
        if not fits:
            self.refuse(f"{source} cannot become a tensor of {self.dtype}", "MLC0113",
                        hint="index becomes i64, an integer one of its width, i1 itself")
        return TensorType((), self.dtype)

    def ref(self, x: Any) -> Array:
        if self.dtype == i1:
            return np.asarray(x, np.bool_)
        return np.asarray(x, to_numpy(stored(self.dtype))).view(to_numpy(self.dtype))

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        return cast(operands[0], self.dtype)


class Extent(HostOp, name="tensor.extent", pure=True):
    """result = value, a size as an index

        %r = tensor.extent "2*B + 1" : index
    """

    value: Dim

    def infer(self) -> Type:
        return index

    def interpret(self, frame: Frame) -> Any:
        return frame.size(self.value)

    def fold(self) -> Any:
        return self.value if isinstance(self.value, int) else None

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("value",))
        p.append(f" {quote(str(self.value))}{' ' + extra if extra else ''} : {p.type(index)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        value = parser.attribute()
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        return parser.build(Extent, [], {"value": value, **extra}, [parser.type()])


class BindSize(HostOp, SizedOp, name="tensor.bind_size", binds_size=True):
    """result has min(max(0, n), bound) rows of 0 elements: its type binds a data-dependent size

        %w = tensor.bind_size %n {size = "rows", bound = "B"} : (tensor<i64>) -> tensor<rowsx0xi1>

    With a bound, all later operations of the block may use the size: memory is planned for the bound. Values of that
    size cannot leave the block; pad them to the bound and yield n with them.

    Without a bound, only a function that is called with the result may use the size, which its argument binds. Such a
    function allocates memory of its own while it runs.
    """

    n: Value
    size: Dim
    bound: Dim | None = None

    @property
    def pure(self) -> bool:  # type: ignore[override]
        """Not pure with a bound: it must be kept even if unused, as operations that mention the size depend on it."""
        return self.bound is None

    def infer(self) -> TensorType:
        type, = self.tensors()
        if type != TensorType((), i64):
            self.refuse(f"n is {type}, not tensor<i64>", "MLC0113")
        if symbol_name(self.size) is None:
            self.refuse(f"{self.size} is not a size symbol", "MLC0116")
        if self.bound is not None and symbol_name(self.size) in symbols(self.bound):
            self.refuse(f"the bound {self.bound} of {self.size} depends on it", "MLC0116")
        return TensorType((self.size, 0), i1)

    def compute(self, size: Any, n: Any) -> Array:
        rows = max(0, int(n))
        return np.zeros((rows if self.bound is None else min(rows, size(self.bound)), 0), np.bool_)

    def interpret(self, frame: Frame) -> Any:
        out = self.compute(frame.size, frame[self.n])
        frame.sizes[str(self.size)] = len(out)
        return out

    def vjp(self, ct: Value) -> list[Value | None]:
        return [None]


def bounds_in(function: Op) -> dict[str, Dim]:
    """The data-dependent sizes of a function and their upper bounds, which may depend on earlier ones."""
    return {str(op.size): op.bound for op in function.inside(BindSize) if op.bound is not None}


def scalar_dtype(type: IntType | IndexType) -> IntType:
    """The tensor element type of a scalar type: i64 for an index."""
    return i64 if isinstance(type, IndexType) else type


# -- builders ---------------------------------------------------------------------------------------------------------
def as_index(x: Dim | Value) -> Value:
    """An index from a number, a size, a scalar or an integer tensor of one element."""
    if isinstance(x, int):
        return arith.constant(x, index)
    if isinstance(x, Size):
        return Extent(x).result
    if isinstance(x.type, TensorType):
        unsigned = getattr(x.type.dtype, "unsigned", False)
        x = Item(x).result
        return (arith.IndexCastUI if unsigned else arith.IndexCast)(x, index).result
    return x if x.type == index else arith.IndexCast(x, index).result


def from_index(i: Value) -> Value:
    """An index as a 0-d tensor<i64>."""
    return FromScalar(i, i64).result


def from_scalar(x: Value) -> Value:
    """A scalar as a 0-d tensor."""
    return FromScalar(x, scalar_dtype(x.type)).result


def trip_count(loop: scf.For) -> Dim | None:
    """The trip count of a loop, if it is static or a size."""
    lower, upper, step = (_known(v) for v in (loop.lower, loop.upper, loop.step))
    if lower is None or upper is None or not isinstance(step, int) or step <= 0:
        return None
    span = upper - lower
    if isinstance(span, int):
        return max(0, -(-span // step))
    return (span + (step - 1)) // step if is_natural(span) else None


def _known(bound: Value) -> Dim | None:
    """The bound of a loop as a number or size, if it is static or a size."""
    if isinstance(bound.op, Extent):
        return bound.op.value
    value = arith.constant_value(bound)
    return None if value is None else int(value)


def as_condition(x: Value) -> Value:
    """An i1 from one, or from a bool tensor of one element."""
    return Item(x).result if isinstance(x.type, TensorType) else x


def for_loop(lower: Dim | Value, upper: Dim | Value, init: Sequence[Value],
             body: Callable[..., Sequence[Value]], step: Dim | Value = 1) -> Sequence[Value]:
    """x = init; for i in range(lower, upper, step): x = body(i, *x); the last x. `i` is an index."""
    lower, upper, step = as_index(lower), as_index(upper), as_index(step)
    loop = scf.loop(lower, upper, step, init)
    with at_end(loop.block, builder.loc):
        scf.Yield(tuple(body(loop.counter, *loop.carried)))
    return loop.results


def while_loop(condition: Callable[..., Value], body: Callable[..., Sequence[Value]],
               init: Sequence[Value]) -> Sequence[Value]:
    """x = init; while condition(*x): x = body(*x); the last x"""
    types = [v.type for v in init]
    before, after = Block(types), Block(types)
    with at_end(before, builder.loc):
        scf.Condition(as_condition(condition(*before.args)), tuple(before.args))
    with at_end(after, builder.loc):
        scf.Yield(tuple(body(*after.args)))
    return scf.While(tuple(init), Region(before), Region(after), tuple(types)).results


def cond(condition: Value, then: Callable[[], Sequence[Value]],
         otherwise: Callable[[], Sequence[Value]]) -> Sequence[Value]:
    """condition ? then() : otherwise(); only the selected branch runs"""
    condition = as_condition(condition)
    blocks = Block(), Block()
    for block, branch in zip(blocks, (then, otherwise)):
        with at_end(block, builder.loc):
            scf.Yield(tuple(branch()))
    types = tuple(v.type for v in blocks[0].terminator.operands)
    return scf.If(condition, Region(blocks[0]), Region(blocks[1]), types).results
