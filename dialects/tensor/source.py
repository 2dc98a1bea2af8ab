"""tensor, sources: operations without tensor operands: constants, fills, iotas, sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.tensor.base import Array, SizedOp, TensorOp, TypedOp, cast, kind, rounded
from mlc.dialects.tensor.sharding_rule import ShardingRule, labelled
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir.core import OPERATORS, Op, Value
from mlc.ir.literals import decode_numbers
from mlc.ir.printer import complex_text, float_text, quote
from mlc.ir.rewrite import rewrite
from mlc.ir.sizes import Dim
from mlc.ir.types import ComplexType, ScalarType, TensorType, from_numpy, i64, index, int_range, to_numpy

if TYPE_CHECKING:
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Constant(TensorOp, name="tensor.constant"):
    """result[i] = value[i]

        %r = tensor.constant dense<[1.0, 2.0]> : tensor<2xf32>
    """

    value: Array
    format = "$value attr-dict"
    iteration = Iteration.VIEW
    moves_elements = False
    checked_operand = None

    def infer(self) -> TensorType:
        return TensorType(self.value.shape, from_numpy(self.value.dtype))

    @property
    def cost(self) -> Cost:  # type: ignore[override]
        """A single number is an immediate of the code that reads it; larger constants are data of the program."""
        return Cost.CHEAP if self.result.type.shape else Cost.FREE

    def ref(self) -> Array:
        return np.asarray(self.value)


class Full(SizedOp, name="tensor.full"):
    """result[i] = value, rounded to the element type

        %r = tensor.full 1.0 : tensor<Bx3xf32>
    """

    value: int | float | bool | complex
    shape: tuple[Dim, ...]
    dtype: ScalarType
    cost = Cost.FREE
    iteration = Iteration.INDEXED
    moves_elements = False
    checked_operand = None

    def infer(self) -> TensorType:
        check_shape(self, self.shape)
        check_dtype(self, self.dtype)
        if not fits(self.value, self.dtype):
            self.refuse(f"{self.value} is not a value of {self.dtype}", "MLC0116")
        return TensorType(self.shape, self.dtype)

    def sharding_rule(self) -> ShardingRule:
        return labelled(self, [], range(len(self.shape)))

    def on_shard(self, operands: Sequence[Value], shape: tuple[Dim, ...]) -> Op:
        return self.with_operands(operands, shape=shape)

    def scalar(self) -> Array:
        """The value as a 0-d array."""
        if kind(self.dtype) == "complex":
            return np.array(self.value, to_numpy(self.dtype))
        exact = float(self.value) if kind(self.dtype) == "float" else int(self.value)  # type: ignore[arg-type]
        with np.errstate(all="ignore"):
            return rounded(np.array(exact, np.float64 if isinstance(exact, float) else to_numpy(self.dtype)),
                           self.dtype)

    def compute(self, size: Any) -> Array:
        return np.full([size(d) for d in self.shape], self.scalar())

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        if name != "value":
            return super().attr_text(name, value, generic)
        return ("true" if value else "false") if kind(self.dtype) == "bool" else f"{self._number()} : {self.dtype}"

    def _number(self) -> str:
        if isinstance(self.dtype, ComplexType):
            return complex_text(self.value, self.dtype)
        if kind(self.dtype) == "float":
            return float_text(self.value, self.dtype)  # type: ignore[arg-type]
        return str(int(self.value))  # type: ignore[arg-type]

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("value", "shape", "dtype"))
        p.append(f" {extra + ' ' if extra else ''}{self._number()} : {p.type(self.result.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        extra = parser.attr_dict() if parser.at("{") else {}
        body = parser.elements() if parser.at("(") else None
        token = parser.take() if body is None else None
        parser.expect(":")
        type = parser.type()
        if not isinstance(type, TensorType):
            parser.fail("a full needs a tensor type, as in 1.0 : tensor<3xf32>", "MLC0206")
        if body is not None and not isinstance(type.dtype, ComplexType):
            parser.fail(f"a complex number is no {type.dtype}", "MLC0207")
        value = decode_numbers(body, type.dtype) if token is None else parser.number_of(token, type.dtype)
        return parser.build(Full, [], {"value": value, "shape": type.shape, "dtype": type.dtype, **extra}, [type])


class Iota(SizedOp, TypedOp, name="tensor.iota"):
    """result[i] = i[axis]

        %r = tensor.iota {axis = 0} : tensor<Bx3xi64>
    """

    shape: tuple[Dim, ...]
    axis: int
    dtype: ScalarType
    spelled = ("shape", "dtype")
    cost = Cost.FREE
    iteration = Iteration.INDEXED
    moves_elements = False
    checked_operand = None

    def infer(self) -> TensorType:
        check_shape(self, self.shape)
        check_dtype(self, self.dtype, "int", "float")
        self.check_axis(self.axis, len(self.shape))
        return TensorType(self.shape, self.dtype)

    def sharding_rule(self) -> ShardingRule:
        """Along its axis a shard would have to know its position."""
        return labelled(self, [], [None if axis == self.axis else axis for axis in range(len(self.shape))])

    def on_shard(self, operands: Sequence[Value], shape: tuple[Dim, ...]) -> Op:
        return self.with_operands(operands, shape=shape)

    def compute(self, size: Any) -> Array:
        shape = [size(d) for d in self.shape]
        count = rounded(np.arange(shape[self.axis]), self.dtype)
        return np.broadcast_to(count.reshape([-1] + [1] * (len(shape) - self.axis - 1)), shape)


class Size(SizedOp, name="tensor.size"):
    """result[] = value, a size as a 0-d tensor

        %r = tensor.size "2*B + 1" : tensor<i64>
    """

    value: Dim
    dtype: ScalarType
    cost = Cost.FREE
    iteration = Iteration.INDEXED
    moves_elements = False
    checked_operand = None

    def infer(self) -> TensorType:
        check_dtype(self, self.dtype, "int")
        return TensorType((), self.dtype)

    def compute(self, size: Any) -> Array:
        return np.asarray(size(self.value)).astype(to_numpy(self.dtype))

    def fold(self) -> Array | None:
        return np.asarray(self.ref()) if isinstance(self.value, int) else None

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("value", "dtype"))
        p.append(f" {quote(str(self.value))}{' ' + extra if extra else ''} : {p.type(self.result.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        value = parser.attribute()
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        type = parser.type()
        if not isinstance(type, TensorType):
            parser.fail(f"expected a tensor type, found {type}", "MLC0206")
        return parser.build(Size, [], {"value": value, "dtype": type.dtype, **extra}, [type])


def check_shape(op: TensorOp, shape: tuple[Dim, ...]) -> None:
    """Refuse negative sizes."""
    for d in shape:
        if isinstance(d, int) and d < 0:
            op.refuse(f"{d!r} is not a size", "MLC0116")


def check_dtype(op: TensorOp, dtype: ScalarType, *kinds: str) -> None:
    """Refuse a type that is not an element type of tensors, or not of one of the `kinds`, if any are given."""
    if dtype == index or (kinds and kind(dtype) not in kinds):
        op.refuse(f"does not support element type {dtype}", "MLC0113")


def fits(number: int | float | bool | complex, dtype: ScalarType) -> bool:
    """Whether a number is an integer in the range of an integer type, or can be rounded to a float type."""
    if kind(dtype) in ("float", "complex"):
        return not isinstance(number, int) or abs(number) < 1 << 1023
    if isinstance(number, complex):
        return False
    low, high = int_range(dtype)
    return (isinstance(number, int) or number.is_integer()) and low <= number <= high


def size(value: Dim, dtype: ScalarType) -> Value:
    """A size as a 0-d tensor of an integer or float type."""
    if isinstance(value, int):
        return Full(value, (), dtype).result
    if kind(dtype) == "float":
        return cast(Size(value, i64).result, dtype)
    return Size(value, dtype).result


@rewrite(Constant)
def constant_of_equal_elements(op: Constant) -> Value | None:
    """constant([c, c, ...]) == full(c)"""
    flat = op.value.reshape(-1)
    if flat.size == 0:
        return Full(0, op.value.shape, op.result.type.dtype).result
    bits = np.ascontiguousarray(flat).view(np.uint8).reshape(flat.size, -1)
    if (bits != bits[0]).any() or (
            kind(op.result.type.dtype) in ("float", "complex") and bool(flat[0] != flat[0])):
        return None
    return Full(flat[0].item(), op.value.shape, op.result.type.dtype).result


def as_tensor(x: Any, like: Value) -> Value:
    """A value unchanged; a Python number as a 0-d tensor of the element type of `like`."""
    return x if isinstance(x, Value) else Full(x, (), like.type.dtype).result


def binary_operator(name: str, cls: type[Op]) -> None:
    """Make the Python operator `name` on tensors build `cls`."""
    def build(a: Any, b: Any) -> Value:
        like = a if isinstance(a, Value) else b
        return cls(as_tensor(a, like), as_tensor(b, like)).result
    OPERATORS[f"tensor.{name}"] = build
