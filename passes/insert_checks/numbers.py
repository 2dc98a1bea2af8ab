"""Constant-folding index arithmetic and conditions for checks."""

from __future__ import annotations

from collections.abc import Iterable

from mlc.dialects import arith, memref
from mlc.ir.core import Value
from mlc.ir.types import i1, index

Number = int | Value
"""A constant index, or a value."""
Condition = bool | Value
"""A constant condition, or a value of type i1."""


def number(value: Value) -> Number:
    """The constant of an index value, or the value if it is not constant."""
    found = arith.constant_value(value)
    return value if found is None else int(found)


def value(n: Number) -> Value:
    return n if isinstance(n, Value) else arith.constant(n, index)


def plus(a: Number, b: Number) -> Number:
    """a + b"""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return a if b == 0 else b if a == 0 else arith.AddI(value(a), value(b)).result


def times(a: Number, b: Number) -> Number:
    """a * b"""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return a if b == 1 else b if a == 1 else arith.MulI(value(a), value(b)).result


def product(numbers: Iterable[Number]) -> Number:
    """The product of all numbers; 1 if there are none."""
    out: Number = 1
    for n in numbers:
        out = times(out, n)
    return out


def least(a: Number, b: Number) -> Condition:
    """a <= b"""
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    return arith.CmpI("sle", value(a), value(b)).result


def below(i: Number, n: Number) -> Condition:
    """0 <= i < n, for a size n"""
    if isinstance(i, int) and isinstance(n, int):
        return 0 <= i < n
    return arith.CmpI("ult", value(i), value(n)).result


def every(conditions: Iterable[Condition]) -> Condition:
    """The conjunction of conditions."""
    unknown = []
    for c in conditions:
        if c is False:
            return False
        if isinstance(c, Value):
            unknown.append(c)
    if not unknown:
        return True
    out = unknown[0]
    for c in unknown[1:]:
        out = arith.AndI(out, c).result
    return out


def truth(condition: Condition) -> Value:
    return condition if isinstance(condition, Value) else arith.constant(condition, i1)


def opposite(condition: Value) -> Value:
    """not condition"""
    return arith.XorI(condition, arith.constant(True, condition.type)).result


def size(memory: Value, axis: int) -> Number:
    """The size of a memref along an axis."""
    static = memory.type.shape[axis]
    return memref.Dim(memory, value(axis)).result if static is None else static


def sizes(memory: Value) -> list[Number]:
    return [size(memory, axis) for axis in range(memory.type.rank)]
