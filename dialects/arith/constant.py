"""arith, constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.arith.representation import store
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import (
    FloatType,
    IndexType,
    IntType,
    ScalarType,
    ShapedType,
    Type,
    i1,
    to_numpy,
)

if TYPE_CHECKING:
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Constant(Op, name="arith.constant", pure=True):
    """result = value

    The value is a number, or an array for a vector; an array of one element fills the whole vector.
    """

    value: bool | float | np.ndarray[Any, Any]
    type: ResultType

    def infer(self) -> Type:
        type = self.results[0].type
        dtype, shape = getattr(type, "dtype", type), getattr(type, "shape", ())
        given = () if isinstance(self.value, int | float) else np.shape(self.value)  # numpy takes 2 us for a number
        if not isinstance(dtype, ScalarType) or None in shape or given not in ((), (1,) * len(shape), shape):
            self.fail(f"the value does not fit {type}", code="MLC0109")
        if isinstance(dtype, IntType | IndexType) and not given and (
                self.value % 1 != 0 or not -(1 << dtype.width - 1) <= self.value < 1 << dtype.width):
            self.fail(f"{self.value} is not a value of {dtype}", code="MLC0109")
        return type  # type: ignore[no-any-return]

    def ref(self) -> Any:
        if isinstance(self.type, ShapedType):
            return _elements(self.value, self.type)
        return store(self.value, self.type)

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return constant_text(value, self.type, generic) if name == "value" else super().attr_text(name, value, generic)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("value",))
        p.append(f" {extra + ' ' if extra else ''}{self.attr_text('value', self.value, False)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        extra = parser.attr_dict() if parser.at("{") else {}
        value, type = parse_constant(parser)
        return Constant.make([], {"value": value, **extra}, [type])


def constant_text(value: Any, type: Type, generic: bool) -> str:
    """`1.0 : f32`, `true`, `dense<[1, 2]> : vector<2xi32>`"""
    from mlc.ir.printer import elements_text, float_text
    if isinstance(type, ShapedType):
        return elements_text(_elements(value, type), type.text(generic))
    if type == i1:
        return "true" if value else "false"
    number = float_text(value, type) if isinstance(type, FloatType) else str(int(value))
    return f"{number} : {type}"


def _elements(value: Any, type: ShapedType) -> np.ndarray[Any, Any]:
    """The elements of a vector constant. A number beyond the largest one of the type is infinite, as a scalar is."""
    with np.errstate(over="ignore"):
        return np.broadcast_to(np.asarray(value, to_numpy(type.dtype)), type.shape)


def parse_constant(parser: Parser) -> tuple[Any, Type]:
    """Parse the output of `constant_text`; a splat vector gives one number."""
    if parser.at("dense"):
        array, type = parser.dense()
        first = array.reshape(-1)[:1]
        same = bool(array.size) and array.tobytes() == first.tobytes() * array.size        # 0 and -0 are not the same
        return (first[0].item() if same else array), type
    if parser.at("true") or parser.at("false"):
        return parser.take().text == "true", i1
    value, scalar = parser.typed_number()
    if scalar is None:
        parser.fail("a constant needs a type, as in 1.0 : f32")
    return value, scalar


def constant(value: Any, type: Type) -> Value:
    """A constant of a scalar type, or a splat of a shaped one."""
    return Constant(value, type).result


def constant_value(value: Value) -> Any:
    """The constant value of `value`, or None if it is not known at compile time."""
    return value.op.ref() if isinstance(value.op, Constant) else None
