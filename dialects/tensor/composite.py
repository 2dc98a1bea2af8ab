"""tensor, composites: named functions with a decomposition into primitive operations.

A pass may decompose one (`decompose`), or a target may implement it directly. A composite has its own `vjp` if that is
better than the derivative of the decomposition. The reference is the definition, computed in float64 and rounded once:
an oracle for the decomposition, not a copy of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import (
    Array,
    TensorOp,
    accumulator,
    cast,
    compare,
    full,
    keep_axes,
    kind,
    leading,
    rounded,
    select,
)
from mlc.dialects.tensor.source import size
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.types import TensorType


class Composite(TensorOp):
    """An operation that can be decomposed into others.

    of_elements  whether these are elementwise operations, reductions, and such composites alone
    """

    cost = Cost.EXPENSIVE
    iteration = Iteration.COMPOSITE
    moves_elements = False
    checked_operand: ClassVar[int | None] = None
    of_elements: ClassVar[bool] = False

    @property
    def needs_finite(self) -> bool:
        """Whether it is defined for finite numbers only: what it makes of infinities and NaN, if not finite itself,
        differs from one formula to the next."""
        return False

    def decompose(self) -> Value | tuple[Value, ...]:
        """Build the result or results from primitive operations, at the insertion point."""
        raise NotImplementedError

    def floats(self) -> list[TensorType]:
        """The types of the operands: tensors of one floating-point element type."""
        types = self.tensors()
        for t in types:
            if kind(t.dtype) not in ("float", "complex"):
                self.refuse(f"does not work on {t.dtype}, only on float elements", "MLC0113",
                            hint="cast the operand to a float type first")
            if t.dtype != types[0].dtype:
                self.refuse(f"element types differ: {types[0].dtype} and {t.dtype}", "MLC0112")
        return types

    def ref(self, *xs: Any) -> Array:
        """`define` in float64, rounded to the element type of the result."""
        with np.errstate(all="ignore"):
            return rounded(self.define(*(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
                                         for x in map(np.asarray, xs))), self.results[0].type.dtype)

    def define(self, *xs: Any) -> Any:
        raise NotImplementedError


class StopGradient(Composite, name="tensor.stop_gradient", blocks_gradient=True):
    """result[i] = x[i], and the cotangent of x is zero

        %r = tensor.stop_gradient %x : tensor<3xf32>
    """

    on_parts = parts.each_part
    of_elements = True
    x: Value
    vmap = leading

    def infer(self) -> TensorType:
        return self.tensors()[0]

    def ref(self, x: Any) -> Array:
        return np.asarray(x)

    def decompose(self) -> Value:
        return self.x

    def vjp(self, ct: Value) -> list[Value | None]:
        return [None]


# -- building blocks of decompositions --------------------------------------------------------------------------------
def exp(x: Value) -> Value:
    return tensor.Exp(x).result


def maximum(a: Value, b: Value) -> Value:
    return tensor.Maximum(a, b).result


def sum_kept(x: Value, axes: Sequence[int]) -> Value:
    """The sum over axes, which are kept with size 1."""
    return keep_axes(tensor.ReduceSum(x, tuple(axes)).result, axes, x.type.shape)


def max_kept(x: Value, axes: Sequence[int]) -> Value:
    """The maximum over axes, which are kept with size 1."""
    return keep_axes(tensor.ReduceMax(x, tuple(axes)).result, axes, x.type.shape)


def mean_kept(x: Value, axes: Sequence[int]) -> Value:
    """The mean over axes, which are kept with size 1."""
    return sum_kept(x, axes) / size(sizes.product(x.type.shape[a] for a in axes), x.type.dtype)


def widened(x: Value) -> Value:
    """x in its accumulator type, so that sums do not overflow the 16-bit floats."""
    return cast(x, accumulator(x.type.dtype))


def log_softmax(x: Value, axis: int) -> Value:
    """x - max - log(sum(e^(x - max)))"""
    x = x - max_kept(x, (axis,))
    return x - tensor.Log(sum_kept(exp(x), (axis,))).result


def softmax(x: Value, axis: int) -> Value:
    """e^(x - max) / sum(e^(x - max))"""
    e = exp(x - max_kept(x, (axis,)))
    return e / sum_kept(e, (axis,))


def log_sum_exp(x: Value, axis: int) -> Value:
    """log(sum(e^(x - max))) + max along an axis, which is kept with size 1"""
    top = max_kept(x, (axis,))
    infinite = compare("eq", tensor.Abs(top).result, full(math.inf, top))
    shift = select(infinite, full(0, top), top)                        # inf - inf would be NaN
    return tensor.Log(sum_kept(exp(x - shift), (axis,))).result + shift


def softplus(x: Value) -> Value:
    """log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)"""
    return maximum(x, full(0, x)) + tensor.Log1p(exp(-tensor.Abs(x).result)).result
