"""math: functions on floats (and absi on integers) that are exact or correctly rounded, with upstream's semantics.

The dialect has only such functions, as their results are fully determined. Others (exp, log, tanh ...) are expanded
into arithmetic before this level; exp2 is here for kernels whose products on tensor cores are not exact either.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.dialects.arith import Elementwise, store
from mlc.ir import exact
from mlc.ir.core import Value
from mlc.ir.types import FloatType, IntType, Type, element, f32


class Unary(Elementwise):
    """A function of one float."""

    x: Value
    accepts = (FloatType,)
    format = "$x attr-dict `:` type(result)"


class AbsF(Unary, name="math.absf"):
    """result = |x|: the sign bit cleared, also of NaN"""

    f = staticmethod(np.abs)


class Sqrt(Unary, name="math.sqrt"):
    """result = the float nearest to the square root of x; NaN below zero, -0 for -0"""

    f = staticmethod(np.sqrt)


class Exp2(Unary, name="math.exp2"):
    """result = 2^x of an f32, the nearest float

    GPUs have an instruction for it, which differs in the last two bits and takes denormals for zeros. There is no code
    for CPUs: where bits matter, 2^x is expanded into arithmetic instead.
    """

    def infer(self) -> Type:
        if element(self.x.type) != f32:
            self.fail(f"does not work on {self.x.type}, only on f32", code="MLC0109")
        return super().infer()

    @staticmethod
    def f(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.exp2(np.asarray(x, np.float64)).astype(np.float32)


class Floor(Unary, name="math.floor"):
    """result = the largest integer <= x, with the sign of x where it is zero"""

    f = staticmethod(np.floor)


class Ceil(Unary, name="math.ceil"):
    """result = the smallest integer >= x, with the sign of x where it is zero"""

    f = staticmethod(np.ceil)


class RoundEven(Unary, name="math.roundeven"):
    """result = the integer nearest to x, ties to even, with the sign of x"""

    f = staticmethod(np.rint)


class Trunc(Unary, name="math.trunc"):
    """result = the integer nearest to x towards zero, with the sign of x"""

    f = staticmethod(np.trunc)


class AbsI(Elementwise, name="math.absi"):
    """result = |x|, signed, modulo 2^width: the minimum is mapped to itself"""

    x: Value
    f = staticmethod(np.abs)
    accepts = (IntType,)
    format = "$x attr-dict `:` type(result)"


class CopySign(Elementwise, name="math.copysign"):
    """result = the magnitude of lhs with the sign bit of rhs"""

    lhs: Value
    rhs: Value
    f = staticmethod(np.copysign)
    accepts = (FloatType,)
    format = "$lhs `,` $rhs attr-dict `:` type(result)"


class Fma(Elementwise, name="math.fma"):
    """result = a * b + c, rounded once"""

    a: Value
    b: Value
    c: Value
    accepts = (FloatType,)
    format = "$a `,` $b `,` $c attr-dict `:` type(result)"

    def ref(self, a: Any, b: Any, c: Any) -> Any:
        if element(self.a.type).width >= 32:
            return store(exact.fma(a, b, c), self.result.type)
        product = np.asarray(a).astype(np.float64) * np.asarray(b).astype(np.float64)        # exact
        total = exact.sum_to_odd(product, np.asarray(c).astype(np.float64))
        return store(total, self.result.type)
