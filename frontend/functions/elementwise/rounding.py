"""Rounding to integers, and what is left of it."""

from __future__ import annotations

import builtins
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import unary
from mlc.frontend.functions.elementwise.selection import where
from mlc.frontend.operands import (
    floating,
    plain_int,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserTypeError


def _rounding(cls: Any, input: Operand) -> Tensor:
    x = tracer(input)
    return unary(cls, x) if x.type.dtype.is_float else x


@operation()
def floor(input: Operand) -> Tensor:
    """The greatest integer that is not above."""
    return _rounding(T.Floor, input)


@operation()
def ceil(input: Operand) -> Tensor:
    """The smallest integer that is not below."""
    return _rounding(T.Ceil, input)


@operation()
def round(input: Operand, *, decimals: int = 0) -> Tensor:
    """The nearest integer, or number with so many decimals; halves go to the even one."""
    places = plain_int(decimals, "decimals")
    if not places:
        return _rounding(T.Round, input)
    x = tracer(input)
    if not x.type.dtype.is_float:
        raise UserTypeError(f"decimals = {places} need floats, found {x.dtype}", code="MLC0359")
    scale = 10.0 ** builtins.abs(places)
    return round(x * scale) / scale if places > 0 else round(x / scale) * scale


@operation()
def trunc(input: Operand) -> Tensor:
    """The integer toward zero."""
    x = tracer(input)
    return where(x < 0, ceil(x), floor(x)) if x.type.dtype.is_float else x


@operation()
def frac(input: Operand) -> Tensor:
    """input - trunc(input)"""
    x = floating(input)
    return x - trunc(x)
