"""tensor, elementwise: operations on corresponding elements of their operands, with numpy's broadcasting.

Operands have one element type; promotion is the frontend's job (promotion.py). A meaning `f` computes in f64 where it
is a transcendental function, else in the element type, 16-bit floats in f32; either way the result is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar

import numpy as np

from mlc.dialects import arith
from mlc.dialects import math as scalar_math
from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import (
    Array,
    TensorOp,
    accumulator,
    broadcast,
    broadcasting,
    kind,
    pointwise_maps,
    rounded,
    splat,
)
from mlc.dialects.tensor.parts import elementwise
from mlc.dialects.tensor.source import Full
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir.core import Op, Value
from mlc.ir.rewrite import rewrite
from mlc.ir.types import ComplexType, IntType, ScalarType, TensorType, c128, f64, i1


class Rounding(Enum):
    """Rounding of the float result of an elementwise operation."""

    NONE = "none"          # exact, or not a float
    ONCE = "once"          # correctly rounded
    STEPS = "steps"        # once per step of its expansion; the reference differs in the last bits
    WIDE = "wide"          # the reference computes in f64 and rounds once; the expansion is close (ACCURACY.md)


class Elementwise(TensorOp):
    """Operands of one element type, broadcast; `f` is the reference on arrays of one element type.

    accepts    kinds of element types it supports: bool, int, float
    rounding   guarantee for float results; has no default
    ulp        maximum error of float results in ulps, unless ACCURACY.md has a row for it
    on_floats, on_integers
               the arith or math operation that computes one element, for either signedness; None if it takes several,
               which tensor_to_loop/scalar.py builds
    """

    f: ClassVar[Callable[..., Any]]
    accepts: ClassVar[tuple[str, ...]] = ("int", "float")
    rounding: ClassVar[Rounding]
    ulp: ClassVar[float] = 0.5
    on_floats: ClassVar[type[Op] | None] = None
    on_integers: ClassVar[type[Op] | None] = None
    iteration = Iteration.POINTWISE
    moves_elements = False
    checked_operand = None
    vmap = broadcasting
    operand_maps = pointwise_maps

    def infer(self) -> TensorType:
        types = self.tensors()
        if len({t.dtype for t in types}) > 1:
            self.refuse(f"element types differ: {' and '.join(str(t.dtype) for t in types)}", "MLC0112",
                        hint="cast the operands to one type first")
        if (found := kind(types[0].dtype)) not in self.accepts and found != "complex":
            self.refuse(f"does not work on {types[0].dtype}, only on {' and '.join(self.accepts)} elements", "MLC0113")
        return TensorType(broadcast(self, types), self.result_dtype(types[0].dtype))

    def result_dtype(self, dtype: ScalarType) -> ScalarType:
        return dtype

    def ref(self, *xs: Any) -> Array:
        dtype = self.operands[0].type.dtype
        if kind(dtype) == "float":
            xs = tuple(rounded(x, f64 if self.rounding is Rounding.WIDE else accumulator(dtype)) for x in xs)
        elif kind(dtype) == "complex":
            xs = tuple(rounded(x, c128) for x in xs)
        with np.errstate(all="ignore"):
            return rounded(type(self).f(*xs), self.results[0].type.dtype)

    @property
    def is_correctly_rounded(self) -> bool:
        """Whether f matches compiled code bit for bit on floats, so that folding is allowed."""
        return self.rounding in (Rounding.NONE, Rounding.ONCE)

    @classmethod
    def has_expansion(cls) -> bool:
        """Whether float results are computed by `expand` and not by one instruction."""
        return cls.rounding in (Rounding.STEPS, Rounding.WIDE)

    @classmethod
    def expand(cls, b: Any, *xs: Any) -> Any:
        """Compute one element of the result in the arithmetic `b` (expansions.Arithmetic), each step of which is exact
        or correctly rounded: by default with the function of the same name in dialects/expansions.
        """
        from mlc.dialects import expansions  # slow to import, and needed only to compile
        return getattr(expansions, cls.name.removeprefix("tensor."))(b, *xs)

    def expansion(self) -> Callable[..., Any]:
        """The function that computes an element of this operation in the arithmetic of its first argument."""
        return self.expand

    @classmethod
    def true_value(cls, mp: Any, *xs: Any) -> Any:
        """The function in mpmath (`mp`), against which `mlc accuracy` measures float64: by default that of the same
        name.
        """
        return getattr(mp, cls.name.removeprefix("tensor."))(*xs)

    def fold(self) -> Value | Array | None:
        if not self.is_correctly_rounded and kind(self.operands[0].type.dtype) in ("float", "complex"):
            return None
        arrays = self.constants()
        return None if arrays is None else np.asarray(self.ref(*arrays))


class Unary(Elementwise):
    x: Value


class UnaryMath(Unary):
    """`partial(ct)` is the cotangent of x, or None if the derivative is zero everywhere."""

    accepts: ClassVar[tuple[str, ...]] = ("float",)

    def partial(self, ct: Value) -> Value | None:
        raise NotImplementedError

    def vjp(self, ct: Value) -> list[Value | None]:
        return [self.partial(ct)]


class Transcendental(UnaryMath):
    """A function that is computed by an expansion."""

    cost = Cost.EXPENSIVE
    rounding = Rounding.WIDE


class Neg(UnaryMath, name="tensor.neg"):
    """result[i] = -x[i]; of an integer modulo 2^width

        %r = tensor.neg %x : tensor<Bx3xf32>
    """

    on_parts = parts.each_part
    accepts = ("int", "float")
    cost = Cost.CHEAP
    rounding = Rounding.NONE
    on_floats = arith.NegF
    f = staticmethod(np.negative)

    def partial(self, ct: Value) -> Value:
        return -ct


class Abs(UnaryMath, name="tensor.abs"):
    """result[i] = |x[i]|; of the smallest integer itself; of a complex number the distance from 0, which is real

        %r = tensor.abs %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.absolute)
    accepts = ("int", "float")
    cost = Cost.CHEAP
    rounding = Rounding.NONE
    on_floats = scalar_math.AbsF
    f = staticmethod(np.abs)

    def result_dtype(self, dtype: ScalarType) -> ScalarType:
        return dtype.part if isinstance(dtype, ComplexType) else dtype

    def partial(self, ct: Value) -> Value:
        return ct * Sign(self.x).result


class Sign(UnaryMath, name="tensor.sign"):
    """result[i] = 1 where x[i] > 0, -1 where x[i] < 0, else 0 (also for NaN)

        %r = tensor.sign %x : tensor<3xf32>
    """

    accepts = ("int", "float")
    cost = Cost.CHEAP
    rounding = Rounding.NONE
    f = staticmethod(lambda x: (x > 0).astype(np.int8) - (x < 0).astype(np.int8))

    def partial(self, ct: Value) -> None:
        return None


class Sqrt(UnaryMath, name="tensor.sqrt"):
    """result[i] = sqrt(x[i])

        %r = tensor.sqrt %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.sqrt)
    cost = Cost.EXPENSIVE
    rounding = Rounding.ONCE
    on_floats = scalar_math.Sqrt
    f = staticmethod(np.sqrt)

    def partial(self, ct: Value) -> Value:
        return ct * 0.5 / self.result


class _Step(UnaryMath):
    """A piecewise constant function, with derivative zero."""

    cost = Cost.EXPENSIVE
    rounding = Rounding.NONE

    def partial(self, ct: Value) -> None:
        return None


class Floor(_Step, name="tensor.floor"):
    """result[i] = the greatest integer <= x[i]

        %r = tensor.floor %x : tensor<3xf32>
    """

    on_floats = scalar_math.Floor
    f = staticmethod(np.floor)


class Ceil(_Step, name="tensor.ceil"):
    """result[i] = the least integer >= x[i]

        %r = tensor.ceil %x : tensor<3xf32>
    """

    on_floats = scalar_math.Ceil
    f = staticmethod(np.ceil)


class Round(_Step, name="tensor.round"):
    """result[i] = the integer nearest to x[i], of two the even one

        %r = tensor.round %x : tensor<3xf32>
    """

    on_floats = scalar_math.RoundEven
    f = staticmethod(np.rint)


class Reciprocal(UnaryMath, name="tensor.reciprocal"):
    """result[i] = 1 / x[i]

        %r = tensor.reciprocal %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.reciprocal)
    cost = Cost.EXPENSIVE
    rounding = Rounding.ONCE
    f = staticmethod(lambda x: np.ones((), x.dtype) / x)

    def partial(self, ct: Value) -> Value:
        return -ct * (self.result * self.result)


class LogicalNot(Unary, name="tensor.logical_not"):
    """result[i] = not x[i]

        %r = tensor.logical_not %x : tensor<3xi1>
    """

    accepts = ("bool",)
    cost = Cost.CHEAP
    rounding = Rounding.NONE
    f = staticmethod(np.logical_not)


class IsNan(Unary, name="tensor.isnan"):
    """result[i] = x[i] is NaN

        %r = tensor.isnan %x : (tensor<3xf32>) -> tensor<3xi1>
    """

    on_parts = elementwise(parts.is_nan)
    accepts = ("float",)
    cost = Cost.EXPENSIVE
    rounding = Rounding.NONE
    f = staticmethod(np.isnan)

    def result_dtype(self, dtype: ScalarType) -> ScalarType:
        return i1


# -- rewrites ---------------------------------------------------------------------------------------------------------
@rewrite(Elementwise)
def elementwise_of_splats(op: Elementwise) -> Value | None:
    """f(full(a), full(b)) == full(f(a, b)), for floats where f is correctly rounded"""
    numbers = [splat(v) for v in op.operands]
    type = op.result.type
    if any(n is None for n in numbers) or (
            not op.is_correctly_rounded and kind(op.operands[0].type.dtype) in ("float", "complex")):
        return None
    number = np.asarray(op.ref(*numbers))
    return None if _is_nan(number) else Full(number.item(), type.shape, type.dtype).result


def _is_nan(x: Array) -> bool:
    return bool(x != x)


@rewrite(Neg, LogicalNot)
def involution(op: Unary) -> Value | None:
    """-(-x) == x;  not not x == x"""
    inner = op.x.op
    return inner.x if isinstance(inner, Unary) and type(inner) is type(op) else None


@rewrite(Abs)
def abs_of_neg(op: Abs) -> Value | None:
    """|-x| == |x|, but for unsigned integers;  ||x|| == |x|"""
    inner, dtype = op.x.op, op.x.type.dtype
    signed = not (isinstance(dtype, IntType) and dtype.unsigned)
    return Abs(inner.x).result if isinstance(inner, Abs) or (isinstance(inner, Neg) and signed) else None


@rewrite(Floor, Ceil, Round)
def rounding_twice(op: Unary) -> Value | None:
    """floor(round(x)) == round(x), and so for every pair of floor, ceil, round"""
    return op.x if isinstance(op.x.op, Floor | Ceil | Round) else None
