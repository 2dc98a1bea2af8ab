"""Arithmetic: sums, products, quotients and remainders."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.dtypes import as_ir
from mlc.frontend.functions.elementwise.apply import binary, numeric, unary
from mlc.frontend.functions.elementwise.bits import logical_and, logical_or
from mlc.frontend.functions.elementwise.rounding import trunc
from mlc.frontend.functions.elementwise.selection import where
from mlc.frontend.operands import (
    cast,
    floating,
    number,
    rounded_once,
    signed,
    together,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir.diag import UserError
from mlc.ir.types import i64


@operation(name="cast")
def cast_to(input: Operand, dtype: DTypeLike) -> Tensor:
    """input in another element type; floats are cut toward zero on the way to integers."""
    return cast(tracer(input), as_ir(dtype))


@operation()
def positive(input: Operand) -> Tensor:
    """input"""
    return numeric(input, "positive")


@operation()
def neg(input: Operand) -> Tensor:
    """-input"""
    return unary(T.Neg, numeric(input, "neg"))


@operation()
def square(input: Operand) -> Tensor:
    """input * input; bools become int64"""
    x = tracer(input)
    x = cast(x, i64) if x.type.dtype.is_bool else x
    return mul(x, x)


@operation()
def reciprocal(input: Operand) -> Tensor:
    """1 / input"""
    return unary(T.Reciprocal, floating(input))


@operation()
def detach(input: Operand) -> Tensor:
    """input, through which no derivative passes"""
    return unary(T.StopGradient, tracer(input))


def _weighted(input: Operand, other: Operand, alpha: Operand) -> list[Tracer]:
    """input and alpha * other; the product is of the type of both, in which it may fit where it does not in other's."""
    a, b = together(input, other)
    if isinstance(alpha, int):
        return [a, b if alpha == 1 else cast(tracer(mul(b, alpha)), a.type.dtype)]
    return together(a, mul(b, alpha))


@operation(literal=("alpha",))
def add(input: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """input + alpha * other"""
    a, b = _weighted(input, other, alpha)
    return logical_or(a, b) if a.type.dtype.is_bool else binary(T.Add, a, b)


@operation(literal=("alpha",))
def sub(input: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """input - alpha * other"""
    a, b = _weighted(input, other, alpha)
    numeric(a, "sub")
    return binary(T.Sub, a, b)


@operation()
def mul(input: Operand, other: Operand) -> Tensor:
    """input * other"""
    a, b = together(input, other)
    return logical_and(a, b) if a.type.dtype.is_bool else binary(T.Mul, a, b)


@operation()
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """input / other; rounding_mode "floor" or "trunc" makes it an integer"""
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode is None:
        return binary(T.Div, input, other, floating=True)
    if rounding_mode != "trunc":
        raise UserError(f"rounding_mode = {rounding_mode!r}", code="MLC0360", hint='use None, "floor" or "trunc"')
    a, b = together(input, other)
    if a.type.dtype.is_float:
        return trunc(binary(T.Div, a, b))
    quotient = floor_divide(a, b)
    inexact = logical_and(quotient < 0, quotient * b != a) if signed(a) else None
    return quotient if inexact is None else quotient + cast(tracer(inexact), a.type.dtype)


@operation()
def floor_divide(input: Operand, other: Operand) -> Tensor:
    """floor(input / other)"""
    a, b = together(input, other)
    numeric(a, "floor_divide")
    return binary(T.FloorDiv, a, b)


@operation()
def remainder(input: Operand, other: Operand) -> Tensor:
    """input - other * floor(input / other), with the sign of other"""
    a, b = together(input, other)
    numeric(a, "remainder")
    return binary(T.Rem, a, b)


@operation()
def fmod(input: Operand, other: Operand) -> Tensor:
    """input - other * trunc(input / other), with the sign of input"""
    a, b = together(input, other)
    numeric(a, "fmod")
    return binary(T.Fmod, a, b)


@operation()
def lerp(input: Operand, end: Operand, weight: Operand) -> Tensor:
    """input + weight * (end - input)"""
    return rounded_once(
        lambda a, b, t: where(abs(t) < 0.5, a + t * (b - a), b - (1 - t) * (b - a)),    # exact at both ends
        *together(input, end, weight, floating=True))


@operation()
def addcmul(input: Operand, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """input + value * tensor1 * tensor2"""
    return rounded_once(lambda x, a, b: add(x, mul(mul(a, b), value)), *together(input, tensor1, tensor2))


@operation()
def addcdiv(input: Operand, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """input + value * tensor1 / tensor2"""
    return rounded_once(lambda x, a, b: add(x, mul(div(a, b), value)),
                        *together(input, tensor1, tensor2, floating=True))


def count(n: Any, like: Tracer) -> Tracer:
    """A number of elements, in the element type of `like`."""
    if isinstance(n, int):
        return number(n, like.type.dtype)
    return cast(emit(T.Size, n, i64), like.type.dtype)
