"""arith, elementwise arithmetic: sums, products, quotients, bitwise operations, minima and maxima."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlc.dialects.arith.constant import Constant, constant_value
from mlc.dialects.arith.representation import store, unsigned
from mlc.ir.core import Op, Value
from mlc.ir.types import (
    FloatType,
    IndexType,
    IntType,
    ScalarType,
    Type,
    element,
    i1,
    to_numpy,
)

if TYPE_CHECKING:
    pass


class Elementwise(Op, pure=True):
    """Operands and result have one type; `f` is the reference on elements, in numpy."""

    f: ClassVar[Callable[..., Any]]
    accepts: ClassVar[tuple[type[ScalarType], ...]] = ()

    def infer(self) -> Type:
        first: Type = self.operands[0].type
        for v in self.operands[1:]:
            if v.type != first:
                self.fail(f"operand types differ: {first} and {v.type}", code="MLC0109")
        if not isinstance(element(first), self.accepts):
            self.fail(f"does not work on {first}", code="MLC0109")
        return first

    def ref(self, *xs: Any) -> Any:
        return store(type(self).f(*xs), self.results[0].type)

    def fold(self) -> Any:
        if isinstance(self.result.type, FloatType | IntType | IndexType) and all(
                isinstance(v.op, Constant) for v in self.operands):
            return self.ref(*(constant_value(v) for v in self.operands))
        return None


def one_bit(x: Any) -> Any:
    """A bool as a signed number of one bit: 0 or -1."""
    return -np.asarray(x).astype(np.int8)


def wrapped(x: Any) -> Any:
    """An index, which is a Python int, modulo 2^64; numpy integers wrap by themselves."""
    return (x + (1 << 63)) % (1 << 64) - (1 << 63) if isinstance(x, int) and not -1 << 63 <= x < 1 << 63 else x


class FloatBinary(Elementwise):
    lhs: Value
    rhs: Value
    accepts = (FloatType,)
    format = "$lhs `,` $rhs attr-dict `:` type(result)"


class IntBinary(Elementwise):
    lhs: Value
    rhs: Value
    accepts = (IntType, IndexType)
    format = "$lhs `,` $rhs attr-dict `:` type(result)"

    def ref(self, *xs: Any) -> Any:
        if element(self.lhs.type) == i1:                 # numpy's bool is not a one-bit integer
            return store(np.asarray(type(self).f(*map(one_bit, xs))) & 1, self.result.type)
        return store(wrapped(type(self).f(*xs)), self.result.type)


class UnsignedBinary(IntBinary):
    """As IntBinary, with `f` on both operands interpreted as unsigned."""

    def ref(self, *xs: Any) -> Any:
        if element(self.lhs.type) == i1:
            return store(type(self).f(*(np.asarray(x).astype(np.uint8) for x in xs)), self.result.type)
        out = type(self).f(*(unsigned(x, self.lhs.type) for x in xs))
        return store(np.asarray(out).view(to_numpy(element(self.lhs.type))), self.result.type)


def _maximum(a: Any, b: Any) -> Any:
    """IEEE 754-2019 maximum: NaN if either is, and +0 > -0."""
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), b, a), np.maximum(a, b))


def _minimum(a: Any, b: Any) -> Any:
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), a, b), np.minimum(a, b))


def _truncated_division(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    quotient = np.floor_divide(a, b)
    return np.where((np.remainder(a, b) != 0) & ((a < 0) != (b < 0)), quotient + 1, quotient)


def _floor_division(a: Any, b: Any) -> Any:
    return 0 if isinstance(b, int) and b == 0 else a // b


def _shift(by: Any) -> Any:
    """The amount of a shift: undefined from the width on, but the Python int of an index must stay bounded."""
    return by & 63 if isinstance(by, int) else by


class AddF(FloatBinary, name="arith.addf", commutative=True):
    """result = lhs + rhs"""

    f = staticmethod(np.add)


class SubF(FloatBinary, name="arith.subf"):
    """result = lhs - rhs"""

    f = staticmethod(np.subtract)


class MulF(FloatBinary, name="arith.mulf", commutative=True):
    """result = lhs * rhs"""

    f = staticmethod(np.multiply)


class DivF(FloatBinary, name="arith.divf"):
    """result = lhs / rhs"""

    f = staticmethod(np.divide)


class RemF(FloatBinary, name="arith.remf"):
    """result = lhs - rhs * trunc(lhs / rhs), exactly, with the sign of lhs"""

    f = staticmethod(np.fmod)


class MaximumF(FloatBinary, name="arith.maximumf", commutative=True):
    """result = max(lhs, rhs); NaN if either is NaN; +0 > -0"""

    f = staticmethod(_maximum)


class MinimumF(FloatBinary, name="arith.minimumf", commutative=True):
    """result = min(lhs, rhs); NaN if either is NaN; -0 < +0"""

    f = staticmethod(_minimum)


class NegF(Elementwise, name="arith.negf"):
    """result = -x, also for NaN and zero"""

    x: Value
    f = staticmethod(np.negative)
    accepts = (FloatType,)
    format = "$x attr-dict `:` type(result)"


class AddI(IntBinary, name="arith.addi", commutative=True):
    """result = lhs + rhs modulo 2^width"""

    f = staticmethod(lambda a, b: a + b)


class SubI(IntBinary, name="arith.subi"):
    """result = lhs - rhs modulo 2^width"""

    f = staticmethod(lambda a, b: a - b)


class MulI(IntBinary, name="arith.muli", commutative=True):
    """result = lhs * rhs modulo 2^width"""

    f = staticmethod(lambda a, b: a * b)


class DivSI(IntBinary, name="arith.divsi"):
    """result = trunc(lhs / rhs), signed; undefined for rhs = 0 and for overflow"""

    f = staticmethod(_truncated_division)


class RemSI(IntBinary, name="arith.remsi"):
    """result = lhs - rhs * trunc(lhs / rhs), signed"""

    f = staticmethod(lambda a, b: a - b * _truncated_division(a, b))


class FloorDivSI(IntBinary, name="arith.floordivsi"):
    """result = floor(lhs / rhs), signed; undefined for rhs = 0 and for overflow"""

    f = staticmethod(_floor_division)


class DivUI(UnsignedBinary, name="arith.divui"):
    """result = floor(lhs / rhs), unsigned"""

    f = staticmethod(np.floor_divide)


class RemUI(UnsignedBinary, name="arith.remui"):
    """result = lhs mod rhs, unsigned"""

    f = staticmethod(np.remainder)


class AndI(IntBinary, name="arith.andi", commutative=True):
    """result = lhs & rhs"""

    f = staticmethod(lambda a, b: a & b)


class OrI(IntBinary, name="arith.ori", commutative=True):
    """result = lhs | rhs"""

    f = staticmethod(lambda a, b: a | b)


class XorI(IntBinary, name="arith.xori", commutative=True):
    """result = lhs ^ rhs"""

    f = staticmethod(lambda a, b: a ^ b)


class ShLI(IntBinary, name="arith.shli"):
    """result = lhs * 2^rhs modulo 2^width; undefined for rhs >= width"""

    f = staticmethod(lambda a, b: a << _shift(b))


class ShRSI(IntBinary, name="arith.shrsi"):
    """result = floor(lhs / 2^rhs), signed; undefined for rhs >= width"""

    f = staticmethod(lambda a, b: a >> _shift(b))


class ShRUI(UnsignedBinary, name="arith.shrui"):
    """result = floor(lhs / 2^rhs), unsigned; undefined for rhs >= width"""

    f = staticmethod(np.right_shift)


class MaxSI(IntBinary, name="arith.maxsi", commutative=True):
    """result = max(lhs, rhs), signed"""

    f = staticmethod(np.maximum)


class MinSI(IntBinary, name="arith.minsi", commutative=True):
    """result = min(lhs, rhs), signed"""

    f = staticmethod(np.minimum)


class MaxUI(UnsignedBinary, name="arith.maxui", commutative=True):
    """result = max(lhs, rhs), unsigned"""

    f = staticmethod(np.maximum)


class MinUI(UnsignedBinary, name="arith.minui", commutative=True):
    """result = min(lhs, rhs), unsigned"""

    f = staticmethod(np.minimum)
