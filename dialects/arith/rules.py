"""arith, Python operators on values, and rewrite rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.arith.constant import constant, constant_value
from mlc.dialects.arith.elementwise import (
    AddF,
    AddI,
    DivF,
    DivSI,
    DivUI,
    FloorDivSI,
    IntBinary,
    MulF,
    MulI,
    NegF,
    OrI,
    ShLI,
    ShRSI,
    ShRUI,
    SubF,
    SubI,
    XorI,
)
from mlc.ir.core import OPERATORS, Op, Value
from mlc.ir.rewrite import rewrite
from mlc.ir.types import (
    FloatType,
    element,
)

if TYPE_CHECKING:
    pass


def _as_value(x: Any, like_value: Value) -> Value:
    return x if isinstance(x, Value) else constant(x, like_value.type)


def _binary(float_op: type[Op], int_op: type[Op]) -> Callable[[Any, Any], Value]:
    def build(a: Any, b: Any) -> Value:
        first = a if isinstance(a, Value) else b
        cls = float_op if isinstance(element(first.type), FloatType) else int_op
        return cls(_as_value(a, first), _as_value(b, first)).result
    return build


OPERATORS["arith.add"] = _binary(AddF, AddI)
OPERATORS["arith.sub"] = _binary(SubF, SubI)
OPERATORS["arith.mul"] = _binary(MulF, MulI)
OPERATORS["arith.div"] = _binary(DivF, DivSI)
OPERATORS["arith.neg"] = lambda x: NegF(x).result if isinstance(element(x.type), FloatType) else 0 - x


def _is(value: Value, number: int) -> bool:
    known = constant_value(value)
    return known is not None and bool(np.all(np.asarray(known) == number)) and not isinstance(
        element(value.type), FloatType)


@rewrite(AddI, SubI, ShLI, ShRSI, ShRUI, OrI, XorI)
def zero_on_the_right(op: IntBinary) -> Value | None:
    """x + 0 == x - 0 == x << 0 == x >> 0 == x | 0 == x ^ 0 == x"""
    return op.lhs if _is(op.rhs, 0) else None


@rewrite(AddI, OrI, XorI)
def zero_on_the_left(op: IntBinary) -> Value | None:
    """0 + x == 0 | x == 0 ^ x == x"""
    return op.rhs if _is(op.lhs, 0) else None


@rewrite(MulI)
def multiply_by_one(op: MulI) -> Value | None:
    """x * 1 == 1 * x == x"""
    return op.lhs if _is(op.rhs, 1) else op.rhs if _is(op.lhs, 1) else None


@rewrite(MulI)
def multiply_by_zero(op: MulI) -> Value | None:
    """x * 0 == 0 * x == 0"""
    return op.rhs if _is(op.rhs, 0) else op.lhs if _is(op.lhs, 0) else None


@rewrite(DivSI, FloorDivSI, DivUI)
def divide_by_one(op: IntBinary) -> Value | None:
    """x / 1 == x"""
    return op.lhs if _is(op.rhs, 1) else None
