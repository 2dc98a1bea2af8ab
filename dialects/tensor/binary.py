"""tensor, binary: elementwise operations on two operands, and the Python operators that build them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mlc.dialects import arith, tensor
from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import compare, full, is_splat, kind, select, splat, unbroadcast, zeros
from mlc.dialects.tensor.elementwise import Elementwise, Neg, Rounding
from mlc.dialects.tensor.parts import elementwise
from mlc.dialects.tensor.source import binary_operator
from mlc.dialects.tensor.traits import Cost
from mlc.dialects.tensor.transcendental import Log
from mlc.ir.core import OPERATORS, Value
from mlc.ir.rewrite import rewrite
from mlc.ir.types import int_range


class Binary(Elementwise):
    lhs: Value
    rhs: Value
    format = "$lhs `,` $rhs attr-dict `:` functional-type"


class BinaryMath(Binary):
    """`partials(ct)` are the cotangents of lhs and rhs before they are summed over broadcast axes."""

    def partials(self, ct: Value) -> tuple[Value | None, Value | None]:
        raise NotImplementedError

    def vjp(self, ct: Value) -> list[Value | None]:
        return [None if d is None else unbroadcast(d, v) for d, v in zip(self.partials(ct), self.operands)]


class Bitwise(Binary):
    accepts = ("bool", "int")
    cost = Cost.CHEAP
    rounding = Rounding.NONE


class Add(BinaryMath, name="tensor.add", commutative=True):
    """result[i] = lhs[i] + rhs[i]; of integers modulo 2^width

        %r = tensor.add %x, %y : (tensor<Bx3xf32>, tensor<3xf32>) -> tensor<Bx3xf32>
    """

    on_parts = parts.each_part
    cost = Cost.CHEAP
    rounding = Rounding.ONCE
    on_floats = arith.AddF
    on_integers = arith.AddI
    f = staticmethod(np.add)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        return ct, ct


class Sub(BinaryMath, name="tensor.sub"):
    """result[i] = lhs[i] - rhs[i]; of integers modulo 2^width

        %r = tensor.sub %x, %y : tensor<3xf32>
    """

    on_parts = parts.each_part
    cost = Cost.CHEAP
    rounding = Rounding.ONCE
    on_floats = arith.SubF
    on_integers = arith.SubI
    f = staticmethod(np.subtract)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        return ct, -unbroadcast(ct, self.rhs)


def _product(x: Any, y: Any) -> Any:
    """x * y, of complex numbers by four products that are rounded: numpy fuses two of them with the sums where the
    processor can, and its (a + a * 1j)**2 has a real part other than 0."""
    if not np.iscomplexobj(x):
        return np.multiply(x, y)
    real, imag = x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real
    out = np.empty(np.shape(real), x.dtype)
    out.real, out.imag = real, imag
    return out


class Mul(BinaryMath, name="tensor.mul", commutative=True):
    """result[i] = lhs[i] * rhs[i]; of integers modulo 2^width

        %r = tensor.mul %x, %y : tensor<3xf32>
    """

    on_parts = elementwise(parts.mul)
    cost = Cost.CHEAP
    rounding = Rounding.ONCE
    on_floats = arith.MulF
    on_integers = arith.MulI
    f = staticmethod(_product)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        return ct * self.rhs, ct * self.lhs


class Div(BinaryMath, name="tensor.div"):
    """result[i] = lhs[i] / rhs[i]

        %r = tensor.div %x, %y : tensor<3xf32>
    """

    on_parts = elementwise(parts.div)
    accepts = ("float",)
    cost = Cost.EXPENSIVE
    rounding = Rounding.ONCE
    on_floats = arith.DivF
    f = staticmethod(np.divide)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        quotient = ct / self.rhs
        return quotient, -(quotient * self.result)


class FloorDiv(BinaryMath, name="tensor.floordiv"):
    """result[i] = floor(lhs[i] / rhs[i]); of integers 0 where rhs[i] = 0

    Of floats by way of the exact remainder, as Python's `//`.

        %r = tensor.floordiv %x, %y : tensor<3xi32>
    """

    cost = Cost.EXPENSIVE
    rounding = Rounding.STEPS
    f = staticmethod(np.floor_divide)

    def partials(self, ct: Value) -> tuple[None, None]:
        return None, None


class Rem(BinaryMath, name="tensor.rem"):
    """result[i] = lhs[i] - rhs[i] * floor(lhs[i] / rhs[i]), with the sign of rhs[i]; of integers 0 where rhs[i] = 0

        %r = tensor.rem %x, %y : tensor<3xi32>
    """

    cost = Cost.EXPENSIVE
    rounding = Rounding.STEPS
    f = staticmethod(np.remainder)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        return ct, -(ct * FloorDiv(self.lhs, self.rhs).result)


class Fmod(BinaryMath, name="tensor.fmod"):
    """result[i] = lhs[i] - rhs[i] * trunc(lhs[i] / rhs[i]), with the sign of lhs[i]; of integers 0 where rhs[i] = 0

        %r = tensor.fmod %x, %y : tensor<3xi32>
    """

    cost = Cost.EXPENSIVE
    rounding = Rounding.STEPS
    f = staticmethod(np.fmod)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        return ct, -(ct * tensor.Round((self.lhs - self.result) / self.rhs).result)


class Hypot(BinaryMath, name="tensor.hypot", commutative=True):
    """result[i] = sqrt(lhs[i]^2 + rhs[i]^2), without intermediate overflow; inf if either is infinite

        %r = tensor.hypot %x, %y : tensor<3xf32>
    """

    accepts = ("float",)
    cost = Cost.EXPENSIVE
    rounding = Rounding.WIDE
    f = staticmethod(np.hypot)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        distance = one_at_zero(self.result)
        return ct * (self.lhs / distance), ct * (self.rhs / distance)


def one_at_zero(x: Value) -> Value:
    """x with 1 in place of 0: a divisor such that 0 / 0 gives 0."""
    return select(compare("eq", x, full(0, x)), full(1, x), x)


def _power(x: Any, y: Any) -> Any:
    """x^y; of integers modulo 2^width, and of a negative y the integer part of 1 / x^-y (0 where x = 0)."""
    if x.dtype.kind == "c":
        return np.power(x, y)
    if x.dtype.kind == "f":
        # Where the exponent is a single 0.5, numpy takes the square root, which is another number at -0 and -inf.
        root = (y == 0.5) & ((x == 0) | np.isinf(x))
        return np.power(np.where(root, np.abs(x), x), y)
    x, y = np.broadcast_arrays(x, y)
    result, square, left = np.ones_like(x), x.copy(), np.where(y < 0, 0, y)
    while left.any():
        result = np.where(left & 1 != 0, result * square, result)
        square, left = square * square, left >> 1
    odd = np.where(y & 1 != 0, x, np.ones_like(x))
    return np.where(y < 0, np.where((x == 1) | (x + 1 == 0) & (x < 0), odd, 0), result)


class Pow(BinaryMath, name="tensor.pow"):
    """result[i] = lhs[i]^rhs[i]; of integers modulo 2^width, rounded towards zero where rhs[i] < 0

        %r = tensor.pow %x, %y : tensor<3xf32>
    """

    on_parts = elementwise(parts.power)
    cost = Cost.EXPENSIVE
    rounding = Rounding.WIDE
    f = staticmethod(_power)

    @classmethod
    def true_value(cls, mp: Any, x: Any, y: Any) -> Any:
        return mp.power(x, y)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        # Elements that are not selected must be finite, with finite derivatives: hence the ones where x^y is constant.
        base, exponent, zero, one = self.lhs, self.rhs, full(0, ct), full(1, ct)
        constant = compare("eq", exponent, zero)
        slope = exponent * Pow(base, select(constant, one, exponent - 1)).result
        flat = tensor.And(compare("eq", base, zero), compare("ge", exponent, zero)).result
        log = Log(select(flat, one, base)).result
        return select(constant, zero, ct * slope), select(flat, zero, ct * (self.result * log))


class _Extremum(BinaryMath):
    """Maximum or minimum of two; operands that tie get half of the cotangent each."""

    accepts = ("bool", "int", "float")
    cost = Cost.CHEAP
    rounding = Rounding.NONE
    loses: ClassVar[str]                     # lhs is not the result where `lhs loses rhs`

    def partials(self, ct: Value) -> tuple[Value, Value]:
        half, zero, tie = ct * 0.5, full(0, ct), compare("eq", self.lhs, self.rhs)
        return (select(tie, half, select(compare(self.loses, self.lhs, self.rhs), zero, ct)),
                select(tie, half, select(compare(self.loses, self.rhs, self.lhs), zero, ct)))


class Maximum(_Extremum, name="tensor.maximum", commutative=True):
    """result[i] = max(lhs[i], rhs[i]); NaN if either is NaN; +0 > -0

        %r = tensor.maximum %x, %y : tensor<3xf32>
    """

    loses = "lt"
    on_floats = arith.MaximumF
    f = staticmethod(lambda a, b: arith.MaximumF.f(a, b) if a.dtype.kind == "f" else np.maximum(a, b))


class Minimum(_Extremum, name="tensor.minimum", commutative=True):
    """result[i] = min(lhs[i], rhs[i]); NaN if either is NaN; -0 < +0

        %r = tensor.minimum %x, %y : tensor<3xf32>
    """

    loses = "gt"
    on_floats = arith.MinimumF
    f = staticmethod(lambda a, b: arith.MinimumF.f(a, b) if a.dtype.kind == "f" else np.minimum(a, b))


class And(Bitwise, name="tensor.and", commutative=True):
    """result[i] = lhs[i] & rhs[i], bitwise

        %r = tensor.and %x, %y : tensor<3xi1>
    """

    on_integers = arith.AndI
    f = staticmethod(np.bitwise_and)


class Or(Bitwise, name="tensor.or", commutative=True):
    """result[i] = lhs[i] | rhs[i], bitwise

        %r = tensor.or %x, %y : tensor<3xi32>
    """

    on_integers = arith.OrI
    f = staticmethod(np.bitwise_or)


class Xor(Bitwise, name="tensor.xor", commutative=True):
    """result[i] = lhs[i] ^ rhs[i], bitwise

        %r = tensor.xor %x, %y : tensor<3xi32>
    """

    on_integers = arith.XorI
    f = staticmethod(np.bitwise_xor)


class Shl(Binary, name="tensor.shl"):
    """result[i] = lhs[i] * 2^rhs[i] modulo 2^width; 0 where rhs[i] is negative or not below the width

        %r = tensor.shl %x, %y : tensor<3xi32>
    """

    accepts = ("int",)
    cost = Cost.CHEAP
    rounding = Rounding.NONE
    f = staticmethod(np.left_shift)


class Shr(Binary, name="tensor.shr"):
    """result[i] = floor(lhs[i] / 2^rhs[i]); a negative rhs[i], or one not below the width, shifts out all digits

        %r = tensor.shr %x, %y : tensor<3xi32>
    """

    accepts = ("int",)
    cost = Cost.CHEAP
    rounding = Rounding.NONE
    f = staticmethod(np.right_shift)


for _name, _class in (("add", Add), ("sub", Sub), ("mul", Mul), ("div", Div)):
    binary_operator(_name, _class)
OPERATORS["tensor.neg"] = lambda x: Neg(x).result


# -- rewrites ---------------------------------------------------------------------------------------------------------
def _same(op: Binary, value: Value) -> Value | None:
    """`value` if it has the type of the result of `op`; its shape differs if the operands broadcast."""
    return value if value.type == op.result.type else None


@rewrite(Binary)
def splat_to_the_right(op: Binary) -> Value | None:
    """full(a) ∘ x == x ∘ full(a), for a commutative ∘"""
    if op.commutative and splat(op.lhs) is not None and splat(op.rhs) is None:
        return type(op)(op.rhs, op.lhs).result
    return None


@rewrite(Add)
def add_zero(op: Add) -> Value | None:
    """x + -0.0 == x for floats, x + 0 == x for integers"""
    return _same(op, op.lhs) if is_splat(op.rhs, -0.0 if kind(op.rhs.type.dtype) == "float" else 0) else None


@rewrite(Sub)
def sub_zero(op: Sub) -> Value | None:
    """x - +0 == x"""
    return _same(op, op.lhs) if is_splat(op.rhs, 0) else None


@rewrite(Mul, Div, FloorDiv, Pow)
def one_on_the_right(op: Binary) -> Value | None:
    """x * 1 == x / 1 == x ** 1 == x, and x // 1 == x for integers"""
    if isinstance(op, FloorDiv) and kind(op.lhs.type.dtype) == "float":
        return None
    return _same(op, op.lhs) if is_splat(op.rhs, 1) else None


@rewrite(Mul)
def int_times_zero(op: Mul) -> Value | None:
    """x * 0 == 0 for integers"""
    if kind(op.rhs.type.dtype) == "int" and is_splat(op.rhs, 0):
        return zeros(op.result)
    return None


@rewrite(Pow)
def square(op: Pow) -> Value | None:
    """x ** 2 == x * x"""
    return Mul(op.lhs, op.lhs).result if is_splat(op.rhs, 2) and op.lhs.type == op.result.type else None


@rewrite(And, Or, Xor)
def bits_with_constant(op: Bitwise) -> Value | None:
    """x & ~0 == x | 0 == x ^ 0 == x;  x & 0 == 0"""
    dtype = op.rhs.type.dtype
    ones = 1 if kind(dtype) == "bool" else int_range(dtype)[1] if dtype.unsigned else -1
    if is_splat(op.rhs, ones if isinstance(op, And) else 0):
        return _same(op, op.lhs)
    if isinstance(op, And) and is_splat(op.rhs, 0):
        return zeros(op.result)
    return None


@rewrite(And, Or)
def idempotent(op: Bitwise) -> Value | None:
    """x & x == x | x == x"""
    return op.lhs if op.lhs is op.rhs else None


@rewrite(Add)
def add_of_neg(op: Add) -> Value | None:
    """x + -y == x - y"""
    return Sub(op.lhs, op.rhs.op.x).result if isinstance(op.rhs.op, Neg) else None


@rewrite(Sub)
def sub_of_neg(op: Sub) -> Value | None:
    """x - -y == x + y"""
    return Add(op.lhs, op.rhs.op.x).result if isinstance(op.rhs.op, Neg) else None
