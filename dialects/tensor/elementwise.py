"""tensor, elementwise: one element of the result from one element of each operand, with numpy's broadcasting.

Operands have one element type; promotion is the frontend's job (promotion.py). A meaning `f` computes in f64 where it
is a transcendental function, else in the element type, 16-bit floats in f32; either way the result is rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.arith import MaximumF, MinimumF
from mlc.dialects.tensor.base import (
    Array,
    TensorOp,
    accumulator,
    broadcast,
    compare,
    full,
    is_splat,
    kind,
    rounded,
    select,
    splat,
    unbroadcast,
    zeros,
)
from mlc.dialects.tensor.source import Full, binary_operator, int_range
from mlc.ir.core import OPERATORS, Value
from mlc.ir.rewrite import rewrite
from mlc.ir.types import ScalarType, TensorType, f64, i1


class Elementwise(TensorOp):
    """Operands of one element type, broadcast; `f` is the meaning on arrays of one element type.

    accepts   the kinds of element type it works on: bool, int, float
    exact     f is correctly rounded for floats, so that folding it is allowed
    wide      f is computed in f64 and then rounded
    """

    f: ClassVar[Callable[..., Any]]
    accepts: ClassVar[tuple[str, ...]] = ("int", "float")
    exact: ClassVar[bool] = False
    wide: ClassVar[bool] = False

    def infer(self) -> TensorType:
        types = self.tensors()
        if len({t.dtype for t in types}) > 1:
            self.refuse(f"element types differ: {' and '.join(str(t.dtype) for t in types)}", "MLC0112",
                        hint="cast the operands to one type first")
        if kind(types[0].dtype) not in self.accepts:
            self.refuse(f"does not work on {types[0].dtype}, only on {' and '.join(self.accepts)} elements", "MLC0113")
        return TensorType(broadcast(self, types), self.result_dtype(types[0].dtype))

    def result_dtype(self, dtype: ScalarType) -> ScalarType:
        return dtype

    def ref(self, *xs: Any) -> Array:
        dtype = self.operands[0].type.dtype
        if kind(dtype) == "float":
            xs = tuple(rounded(x, f64 if self.wide else accumulator(dtype)) for x in xs)
        with np.errstate(all="ignore"):
            return rounded(type(self).f(*xs), self.results[0].type.dtype)

    def fold(self) -> Value | Array | None:
        if not self.exact and kind(self.operands[0].type.dtype) == "float":
            return None
        arrays = self.constants()
        return None if arrays is None else np.asarray(self.ref(*arrays))


class Unary(Elementwise):
    x: Value


class UnaryMath(Unary):
    """`partial(ct)` is the cotangent of x, None where the derivative is zero everywhere."""

    accepts: ClassVar[tuple[str, ...]] = ("float",)

    def partial(self, ct: Value) -> Value | None:
        raise NotImplementedError

    def vjp(self, ct: Value) -> list[Value | None]:
        return [self.partial(ct)]


class Binary(Elementwise):
    lhs: Value
    rhs: Value
    format = "$lhs `,` $rhs attr-dict `:` functional-type"


class BinaryMath(Binary):
    """`partials(ct)` are the cotangents of lhs and rhs before the sums that undo broadcasting."""

    def partials(self, ct: Value) -> tuple[Value | None, Value | None]:
        raise NotImplementedError

    def vjp(self, ct: Value) -> list[Value | None]:
        return [None if d is None else unbroadcast(d, v) for d, v in zip(self.partials(ct), self.operands)]


class Bitwise(Binary):
    accepts = ("bool", "int")


# -- one operand ------------------------------------------------------------------------------------------------------
class Neg(UnaryMath, name="tensor.neg"):
    """result[i] = -x[i]; of an integer modulo 2^width

        %r = tensor.neg %x : tensor<Bx3xf32>
    """

    accepts = ("int", "float")
    exact = True
    f = staticmethod(np.negative)

    def partial(self, ct: Value) -> Value:
        return -ct


class Abs(UnaryMath, name="tensor.abs"):
    """result[i] = |x[i]|; of the smallest integer itself

        %r = tensor.abs %x : tensor<3xf32>
    """

    accepts = ("int", "float")
    exact = True
    f = staticmethod(np.abs)

    def partial(self, ct: Value) -> Value:
        return ct * Sign(self.x).result


class Sign(UnaryMath, name="tensor.sign"):
    """result[i] = 1 where x[i] > 0, -1 where x[i] < 0, else 0 (also for NaN)

        %r = tensor.sign %x : tensor<3xf32>
    """

    accepts = ("int", "float")
    exact = True
    f = staticmethod(lambda x: (x > 0).astype(np.int8) - (x < 0).astype(np.int8))

    def partial(self, ct: Value) -> None:
        return None


class Exp(UnaryMath, name="tensor.exp"):
    """result[i] = e^x[i]

        %r = tensor.exp %x : tensor<3xf32>
    """

    wide = True
    f = staticmethod(np.exp)

    def partial(self, ct: Value) -> Value:
        return ct * self.result


class Exp2(UnaryMath, name="tensor.exp2"):
    """result[i] = 2^x[i]

        %r = tensor.exp2 %x : tensor<3xf32>
    """

    wide = True
    f = staticmethod(np.exp2)

    def partial(self, ct: Value) -> Value:
        return ct * (self.result * math.log(2))


class Expm1(UnaryMath, name="tensor.expm1"):
    """result[i] = e^x[i] - 1

        %r = tensor.expm1 %x : tensor<3xf32>
    """

    wide = True
    f = staticmethod(np.expm1)

    def partial(self, ct: Value) -> Value:
        return ct * (self.result + 1)


class Log(UnaryMath, name="tensor.log"):
    """result[i] = log_e(x[i])

        %r = tensor.log %x : tensor<3xf32>
    """

    wide = True
    f = staticmethod(np.log)

    def partial(self, ct: Value) -> Value:
        return ct / self.x


class Log2(UnaryMath, name="tensor.log2"):
    """result[i] = log_2(x[i])

        %r = tensor.log2 %x : tensor<3xf32>
    """

    wide = True
    f = staticmethod(np.log2)

    def partial(self, ct: Value) -> Value:
        return ct / (self.x * math.log(2))


class Log1p(UnaryMath, name="tensor.log1p"):
    """result[i] = log_e(1 + x[i])

        %r = tensor.log1p %x : tensor<3xf32>
    """

    wide = True
    f = staticmethod(np.log1p)

    def partial(self, ct: Value) -> Value:
        return ct / (self.x + 1)


class Sqrt(UnaryMath, name="tensor.sqrt"):
    """result[i] = sqrt(x[i])

        %r = tensor.sqrt %x : tensor<3xf32>
    """

    exact = True
    f = staticmethod(np.sqrt)

    def partial(self, ct: Value) -> Value:
        return ct * 0.5 / self.result


class Rsqrt(UnaryMath, name="tensor.rsqrt"):
    """result[i] = 1 / sqrt(x[i])

        %r = tensor.rsqrt %x : tensor<3xf32>
    """

    wide = True
    f = staticmethod(lambda x: 1 / np.sqrt(x))

    def partial(self, ct: Value) -> Value:
        return ct * -0.5 * (self.result * self.result * self.result)


class Sin(UnaryMath, name="tensor.sin"):
    """result[i] = sin(x[i])

        %r = tensor.sin %x : tensor<3xf32>
    """

    wide = True
    f = staticmethod(np.sin)

    def partial(self, ct: Value) -> Value:
        return ct * Cos(self.x).result


class Cos(UnaryMath, name="tensor.cos"):
    """result[i] = cos(x[i])

        %r = tensor.cos %x : tensor<3xf32>
    """

    wide = True
    f = staticmethod(np.cos)

    def partial(self, ct: Value) -> Value:
        return -(ct * Sin(self.x).result)


class Tanh(UnaryMath, name="tensor.tanh"):
    """result[i] = tanh(x[i])

        %r = tensor.tanh %x : tensor<3xf32>
    """

    wide = True
    f = staticmethod(np.tanh)

    def partial(self, ct: Value) -> Value:
        return ct * (1 - self.result * self.result)


def _sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x), from e^-|x| so that nothing overflows."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


class Sigmoid(UnaryMath, name="tensor.sigmoid"):
    """result[i] = 1 / (1 + e^-x[i])

        %r = tensor.sigmoid %x : tensor<3xf32>
    """

    wide = True
    f = staticmethod(_sigmoid)

    def partial(self, ct: Value) -> Value:
        return ct * (self.result * (1 - self.result))


class Erf(UnaryMath, name="tensor.erf"):
    """result[i] = 2/sqrt(pi) * integral from 0 to x[i] of e^(-t^2) dt

        %r = tensor.erf %x : tensor<3xf32>
    """

    wide = True
    f = staticmethod(np.vectorize(math.erf, otypes=[np.float64]))

    def partial(self, ct: Value) -> Value:
        return ct * (Exp(-(self.x * self.x)).result * (2 / math.sqrt(math.pi)))


class _Step(UnaryMath):
    """A function that is constant between jumps, and its derivative zero."""

    exact = True

    def partial(self, ct: Value) -> None:
        return None


class Floor(_Step, name="tensor.floor"):
    """result[i] = the greatest integer <= x[i]

        %r = tensor.floor %x : tensor<3xf32>
    """

    f = staticmethod(np.floor)


class Ceil(_Step, name="tensor.ceil"):
    """result[i] = the least integer >= x[i]

        %r = tensor.ceil %x : tensor<3xf32>
    """

    f = staticmethod(np.ceil)


class Round(_Step, name="tensor.round"):
    """result[i] = the integer nearest to x[i], of two the even one

        %r = tensor.round %x : tensor<3xf32>
    """

    f = staticmethod(np.rint)


class Reciprocal(UnaryMath, name="tensor.reciprocal"):
    """result[i] = 1 / x[i]

        %r = tensor.reciprocal %x : tensor<3xf32>
    """

    exact = True
    f = staticmethod(lambda x: np.ones((), x.dtype) / x)

    def partial(self, ct: Value) -> Value:
        return -ct * (self.result * self.result)


class LogicalNot(Unary, name="tensor.logical_not"):
    """result[i] = not x[i]

        %r = tensor.logical_not %x : tensor<3xi1>
    """

    accepts = ("bool",)
    f = staticmethod(np.logical_not)


class IsNan(Unary, name="tensor.isnan"):
    """result[i] = x[i] is NaN

        %r = tensor.isnan %x : (tensor<3xf32>) -> tensor<3xi1>
    """

    accepts = ("float",)
    exact = True
    f = staticmethod(np.isnan)

    def result_dtype(self, dtype: ScalarType) -> ScalarType:
        return i1


# -- two operands -----------------------------------------------------------------------------------------------------
class Add(BinaryMath, name="tensor.add", commutative=True):
    """result[i] = lhs[i] + rhs[i]; of integers modulo 2^width

        %r = tensor.add %x, %y : (tensor<Bx3xf32>, tensor<3xf32>) -> tensor<Bx3xf32>
    """

    exact = True
    f = staticmethod(np.add)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        return ct, ct


class Sub(BinaryMath, name="tensor.sub"):
    """result[i] = lhs[i] - rhs[i]; of integers modulo 2^width

        %r = tensor.sub %x, %y : tensor<3xf32>
    """

    exact = True
    f = staticmethod(np.subtract)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        return ct, -unbroadcast(ct, self.rhs)


class Mul(BinaryMath, name="tensor.mul", commutative=True):
    """result[i] = lhs[i] * rhs[i]; of integers modulo 2^width

        %r = tensor.mul %x, %y : tensor<3xf32>
    """

    exact = True
    f = staticmethod(np.multiply)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        return ct * self.rhs, ct * self.lhs


class Div(BinaryMath, name="tensor.div"):
    """result[i] = lhs[i] / rhs[i]

        %r = tensor.div %x, %y : tensor<3xf32>
    """

    accepts = ("float",)
    exact = True
    f = staticmethod(np.divide)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        quotient = ct / self.rhs
        return quotient, -(quotient * self.result)


class FloorDiv(BinaryMath, name="tensor.floordiv"):
    """result[i] = floor(lhs[i] / rhs[i]); of integers 0 where rhs[i] = 0

    Of floats by way of the exact remainder, as Python's `//`.

        %r = tensor.floordiv %x, %y : tensor<3xi32>
    """

    f = staticmethod(np.floor_divide)

    def partials(self, ct: Value) -> tuple[None, None]:
        return None, None


class Rem(BinaryMath, name="tensor.rem"):
    """result[i] = lhs[i] - rhs[i] * floor(lhs[i] / rhs[i]), with the sign of rhs[i]; of integers 0 where rhs[i] = 0

        %r = tensor.rem %x, %y : tensor<3xi32>
    """

    f = staticmethod(np.remainder)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        return ct, -(ct * FloorDiv(self.lhs, self.rhs).result)


def _power(x: Any, y: Any) -> Any:
    """x^y; of integers modulo 2^width, and of a negative y the integer part of 1 / x^-y (0 where x = 0)."""
    if x.dtype.kind == "f":
        return np.power(x, y)
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

    wide = True
    f = staticmethod(_power)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        # What is not selected must be finite, and so must its derivative: hence the ones put where x^y is constant.
        base, exponent, zero, one = self.lhs, self.rhs, full(0, ct), full(1, ct)
        constant = compare("eq", exponent, zero)
        slope = exponent * Pow(base, select(constant, one, exponent - 1)).result
        flat = tensor.And(compare("eq", base, zero), compare("ge", exponent, zero)).result
        log = Log(select(flat, one, base)).result
        return select(constant, zero, ct * slope), select(flat, zero, ct * (self.result * log))


class _Extremum(BinaryMath):
    """The greater or the smaller of two; where they are equal, each gets half of the cotangent."""

    accepts = ("bool", "int", "float")
    exact = True
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
    f = staticmethod(lambda a, b: MaximumF.f(a, b) if a.dtype.kind == "f" else np.maximum(a, b))


class Minimum(_Extremum, name="tensor.minimum", commutative=True):
    """result[i] = min(lhs[i], rhs[i]); NaN if either is NaN; -0 < +0

        %r = tensor.minimum %x, %y : tensor<3xf32>
    """

    loses = "gt"
    f = staticmethod(lambda a, b: MinimumF.f(a, b) if a.dtype.kind == "f" else np.minimum(a, b))


class And(Bitwise, name="tensor.and", commutative=True):
    """result[i] = lhs[i] & rhs[i], bit by bit

        %r = tensor.and %x, %y : tensor<3xi1>
    """

    f = staticmethod(np.bitwise_and)


class Or(Bitwise, name="tensor.or", commutative=True):
    """result[i] = lhs[i] | rhs[i], bit by bit

        %r = tensor.or %x, %y : tensor<3xi32>
    """

    f = staticmethod(np.bitwise_or)


class Xor(Bitwise, name="tensor.xor", commutative=True):
    """result[i] = lhs[i] ^ rhs[i], bit by bit

        %r = tensor.xor %x, %y : tensor<3xi32>
    """

    f = staticmethod(np.bitwise_xor)


class Shl(Binary, name="tensor.shl"):
    """result[i] = lhs[i] * 2^rhs[i] modulo 2^width; 0 where rhs[i] is negative or not below the width

        %r = tensor.shl %x, %y : tensor<3xi32>
    """

    accepts = ("int",)
    f = staticmethod(np.left_shift)


class Shr(Binary, name="tensor.shr"):
    """result[i] = floor(lhs[i] / 2^rhs[i]); a negative rhs[i], or one not below the width, shifts out all digits

        %r = tensor.shr %x, %y : tensor<3xi32>
    """

    accepts = ("int",)
    f = staticmethod(np.right_shift)


for _name, _class in (("add", Add), ("sub", Sub), ("mul", Mul), ("div", Div)):
    binary_operator(_name, _class)
OPERATORS["tensor.neg"] = lambda x: Neg(x).result


# -- rewrites ---------------------------------------------------------------------------------------------------------
def _same(op: Binary, value: Value) -> Value | None:
    """`value` if it can stand for the result of `op`; its shape may be smaller, where the other operand is wider."""
    return value if value.type == op.result.type else None


@rewrite(Elementwise)
def elementwise_of_splats(op: Elementwise) -> Value | None:
    """f(full(a), full(b)) == full(f(a, b)), for floats where f is correctly rounded"""
    numbers = [splat(v) for v in op.operands]
    type = op.result.type
    if any(n is None for n in numbers) or (not op.exact and kind(op.operands[0].type.dtype) == "float"):
        return None
    number = np.asarray(op.ref(*numbers))
    return None if _is_nan(number) else Full(number.item(), type.shape, type.dtype).result


def _is_nan(x: Array) -> bool:
    return bool(x != x)


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


@rewrite(Neg, LogicalNot)
def involution(op: Unary) -> Value | None:
    """-(-x) == x;  not not x == x"""
    inner = op.x.op
    return inner.x if isinstance(inner, Unary) and type(inner) is type(op) else None


@rewrite(Abs)
def abs_of_neg(op: Abs) -> Value | None:
    """|-x| == ||x|| == |x|"""
    return Abs(op.x.op.x).result if isinstance(op.x.op, Neg | Abs) else None


@rewrite(Floor, Ceil, Round)
def rounding_twice(op: Unary) -> Value | None:
    """floor(round(x)) == round(x), and so for every pair of floor, ceil, round"""
    return op.x if isinstance(op.x.op, Floor | Ceil | Round) else None


@rewrite(Add)
def add_of_neg(op: Add) -> Value | None:
    """x + -y == x - y"""
    return Sub(op.lhs, op.rhs.op.x).result if isinstance(op.rhs.op, Neg) else None


@rewrite(Sub)
def sub_of_neg(op: Sub) -> Value | None:
    """x - -y == x + y"""
    return Add(op.lhs, op.rhs.op.x).result if isinstance(op.rhs.op, Neg) else None
