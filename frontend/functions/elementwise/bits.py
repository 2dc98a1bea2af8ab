"""Bitwise and logical functions."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import binary, unary
from mlc.frontend.operands import (
    boolean,
    number,
    together,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserTypeError


def _bits(cls: Any, a: Operand, b: Operand, name: str) -> Tensor:
    a, b = together(a, b)
    if a.type.dtype.is_float:
        raise UserTypeError(f"{name} is not defined on {a.dtype}", code="MLC0359")
    return binary(cls, a, b)


@operation()
def bitwise_and(input: Operand, other: Operand) -> Tensor:
    """input & other"""
    return _bits(T.And, input, other, "bitwise_and")


@operation()
def bitwise_or(input: Operand, other: Operand) -> Tensor:
    """input | other"""
    return _bits(T.Or, input, other, "bitwise_or")


@operation()
def bitwise_xor(input: Operand, other: Operand) -> Tensor:
    """input ^ other"""
    return _bits(T.Xor, input, other, "bitwise_xor")


@operation()
def bitwise_not(input: Operand) -> Tensor:
    """~input"""
    x = tracer(input)
    if x.type.dtype.is_bool:
        return unary(T.LogicalNot, x)
    return _bits(T.Xor, x, number(-1, x.type.dtype), "bitwise_not")


@operation()
def bitwise_left_shift(input: Operand, other: Operand) -> Tensor:
    """input << other"""
    return _bits(T.Shl, input, other, "bitwise_left_shift")


@operation()
def bitwise_right_shift(input: Operand, other: Operand) -> Tensor:
    """input >> other, keeping the sign"""
    return _bits(T.Shr, input, other, "bitwise_right_shift")


@operation()
def logical_not(input: Operand) -> Tensor:
    """input == 0"""
    return unary(T.LogicalNot, boolean(input))


@operation()
def logical_and(input: Operand, other: Operand) -> Tensor:
    """input != 0 and other != 0"""
    return binary(T.And, boolean(input), boolean(other))


@operation()
def logical_or(input: Operand, other: Operand) -> Tensor:
    """input != 0 or other != 0"""
    return binary(T.Or, boolean(input), boolean(other))


@operation()
def logical_xor(input: Operand, other: Operand) -> Tensor:
    """(input != 0) != (other != 0)"""
    return binary(T.Xor, boolean(input), boolean(other))
