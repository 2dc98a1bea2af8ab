"""tensor, cumulative: scans along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import arith, tensor
from mlc.dialects.combining import CombiningKind
from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import (
    Array,
    TensorOp,
    accumulator,
    along_axes,
    cast,
    compare,
    full,
    kind,
    reshape,
    rounded,
    select,
    zeros,
)
from mlc.dialects.tensor.composite import Composite, exp, maximum, widened
from mlc.dialects.tensor.control import as_index, from_index, while_loop
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain
from mlc.dialects.tensor.reduce import need_static
from mlc.dialects.tensor.slicing import Slice
from mlc.dialects.tensor.source import Iota
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import FloatType, TensorType, f64, i64

KINDS = ("add", "mul", "max", "min")


class Cumulative(TensorOp, name="tensor.cumulative"):
    """result[a, i, b] = the sum of x[a, j, b] over j <= i along axis, or their product, maximum or minimum (`kind`)

    With `reverse`, over j >= i, from the last. Integer sums wrap modulo 2^width; maximum and minimum propagate NaN, and
    +0 > -0. With `order` chain, which fix_numerics sets, floats are combined sequentially in the accumulator type, and
    each prefix is rounded.

        %r = tensor.cumulative %x {kind = "add", axis = 1} : tensor<Bx3xf32>
    """

    x: Value
    kind: str
    axis: int
    reverse: bool = False
    order: str | None = None
    vmap = along_axes
    cost = Cost.EXPENSIVE
    iteration = Iteration.SCAN
    moves_elements = False
    checked_operand = None

    def on_parts(self, x: parts.Parts) -> parts.Parts:
        return parts.each_part(self, x) if self.kind == "add" else parts.prefix_products(self, x)

    def iteration_domain(self) -> IterationDomain:
        return IterationDomain(self.x.type.shape, (self.axis,))

    def home(self, domain: IterationDomain) -> tuple[Dim, ...]:
        return domain.points

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        """The element of each point."""
        return [at if at == domain.points and domain == self.iteration_domain() else None]

    def infer(self) -> TensorType:
        x, = self.tensors()
        if self.kind not in KINDS:
            self.refuse(f"{self.kind} is not one of {', '.join(KINDS)}", "MLC0116")
        if kind(x.dtype) == "bool":
            self.refuse("does not work on i1, only on int and float elements", "MLC0113")
        if kind(x.dtype) == "complex" and self.kind in ("max", "min"):
            self.refuse("complex numbers have no order", "MLC0785")
        self.check_axis(self.axis, x.rank)
        if self.kind == "mul":
            need_static(self, (self.axis,))
        if self.order not in (None, "chain"):
            self.refuse(f"the order {self.order} is not chain", "MLC0116")
        return x

    @property
    def combining(self) -> CombiningKind:
        return CombiningKind.of(self.kind, self.x.type.dtype)

    def ref(self, x: Any) -> Array:
        x = np.asarray(x)
        if self.reverse:
            x = np.flip(x, self.axis)
        with np.errstate(all="ignore"):
            out = self._prefixes(x)
        return np.flip(out, self.axis) if self.reverse else out

    def _prefixes(self, x: Array) -> Array:
        dtype = self.x.type.dtype
        if self.kind in ("max", "min"):
            return _extremes(x, self.axis, self.combining)
        combine = self.combining.ufunc
        if kind(dtype) != "float":
            return np.asarray(combine.accumulate(x, self.axis, dtype=x.dtype))
        wide = rounded(x, f64 if self.order is None else accumulator(dtype))
        start = self.combining.identity(dtype)                  # before the first element: -0.0 becomes +0.0 in a sum
        return rounded(combine(combine.accumulate(wide, self.axis), wide.dtype.type(start)), dtype)

    def fold(self) -> Value | Array | None:
        arrays = self.constants() if self.combining.is_associative(self.x.type.dtype) else None
        return None if arrays is None else self.ref(*arrays)

    def vjp(self, ct: Value) -> list[Value | None]:
        if self.kind == "add":
            return [self._sum_of_later(ct)]
        if self.kind == "mul":
            return [self._of_product(ct)]
        places = latest(self.x, self.result, self.axis, self.reverse)
        return [tensor.ScatterAlong(zeros(ct), places, ct, self.axis, "add").result]

    def _sum_of_later(self, x: Value) -> Value:
        return Cumulative(x, "add", self.axis, not self.reverse).result

    def _of_product(self, ct: Value) -> Value:
        """dx[j] = the sum over i >= j of ct[i] times the product of x[k] over k <= i other than j

        Before the first zero of x this is the sum of ct * result, divided by x[j]. At the zero it is the same sum with
        1 in place of the zero; after it, that sum divided by x[j] and times the zero, which makes the second derivative
        correct. The second zero is treated like the first, in the remaining elements.
        """
        x, one = self.x, full(1, self.x)
        is_zero = compare("eq", x, full(0, x))
        seen = Cumulative(cast(is_zero, i64), "add", self.axis, self.reverse).result
        first, second = (tensor.And(is_zero, compare("eq", seen, full(n, seen))).result for n in (1, 2))
        without_first = select(first, one, x)
        without_both = select(second, one, without_first)
        at_first, at_second = (self._sum_of_later(ct * Cumulative(v, "mul", self.axis, self.reverse).result)
                               for v in (without_first, without_both))
        zero = tensor.ReduceSum(select(first, x, full(0, x)), (self.axis,)).result
        shape = [1 if a == self.axis else d for a, d in enumerate(x.type.shape)]
        zero = tensor.Reshape(zero, tuple(shape)).result
        nonzero = select(is_zero, one, x)
        after = zero * select(second, at_second, at_first / nonzero)
        before = self._sum_of_later(ct * self.result) / nonzero
        return select(compare("eq", seen, full(0, seen)), before, select(first, at_first, after))


def latest(x: Value, result: Value, axis: int, reverse: bool = False) -> Value:
    """The position of the maximum or minimum of each prefix, as i64: the last one among ties."""
    found = compare("eq", x, result)
    if isinstance(x.type.dtype, FloatType):
        found = tensor.Or(found, tensor.IsNan(x).result).result
    place = Iota(x.type.shape, axis, i64).result
    none = tensor.Size(x.type.shape[axis], i64).result if reverse else full(-1, place)
    return Cumulative(select(found, place, none), "min" if reverse else "max", axis, reverse).result


def _extremes(x: Array, axis: int, kind: CombiningKind) -> Array:
    out = np.moveaxis(x.copy(), axis, 0)
    for i in range(1, len(out)):
        out[i] = kind.combine(out[i - 1], out[i])
    return np.asarray(np.moveaxis(out, 0, axis))


class LogCumSumExp(Composite, name="tensor.logcumsumexp"):
    """result[a, i, b] = log(sum over j <= i of e^x[a, j, b]) along axis; with `reverse`, over j >= i

        %r = tensor.logcumsumexp %x {axis = 1} : tensor<Bx3xf32>
    """

    x: Value
    axis: int
    reverse: bool = False
    vmap = along_axes

    def infer(self) -> TensorType:
        x, = self.floats()
        self.check_axis(self.axis, x.rank)
        return x

    def define(self, x: Array) -> Any:
        x = np.flip(x, self.axis) if self.reverse else x
        out = np.logaddexp.accumulate(x, self.axis) + 0.0      # a first -0.0 is log(e^-0.0) = log 1 = 0.0
        return np.flip(out, self.axis) if self.reverse else out

    def decompose(self) -> Value:
        """Prefixes of 2, 4, 8, ... elements, each from two of half the length (Hillis and Steele); in a loop if the
        length is symbolic, with the same bits.

        A running sum of e^(x - max x) would underflow for prefixes whose elements are all far below the maximum.
        """
        y, n = widened(self.x), self.x.type.shape[self.axis]
        y = y + full(0.0, y)                               # -0.0 is log(e^-0.0) = log 1 = 0.0, also where it is alone
        if not isinstance(n, int):
            return cast(self._doubled(y, n), self.x.type.dtype)
        reach = 1
        while reach < n:
            y = _log_add_exp(y, self._shifted(y, reach))
            reach *= 2
        return cast(y, self.x.type.dtype)

    def _shifted(self, y: Value, by: int) -> Value:
        """y shifted towards its end, or its start with `reverse`, filled with -inf."""
        shape = y.type.shape
        zero = (0,) * len(shape)
        at = tuple(by if a == self.axis else 0 for a in range(len(shape)))
        stops = tuple(n - d for n, d in zip(shape, at))
        kept = Slice(y, at, shape, (1,) * len(shape)) if self.reverse else Slice(y, zero, stops, (1,) * len(shape))
        low, high = (zero, at) if self.reverse else (at, zero)
        return tensor.Pad(kept.result, full(-math.inf, y), low, high, zero).result

    def _doubled(self, y: Value, n: Dim) -> Value:
        def more(reach: Value, y: Value) -> Value:
            return arith.CmpI("slt", reach, as_index(n)).result

        def step(reach: Value, y: Value) -> list[Value]:
            return [arith.AddI(reach, reach).result, _log_add_exp(y, self._shifted_by(y, n, from_index(reach)))]

        return while_loop(more, step, [as_index(1), y])[1]

    def _shifted_by(self, y: Value, n: Dim, by: Value) -> Value:
        """`_shifted` by a run-time value."""
        row: Value = Iota((n,), 0, i64).result
        place = row + by if self.reverse else row - by
        last = tensor.Size(n, i64).result
        inside = tensor.And(compare("ge", place, full(0, place)), compare("lt", place, last)).result
        moved = tensor.Take(y, select(inside, place, full(0, place)), self.axis).result
        shape = (1,) * self.axis + (n,) + (1,) * (y.type.rank - self.axis - 1)
        return select(reshape(inside, shape), moved, full(-math.inf, y))

    def vjp(self, ct: Value) -> list[Value | None]:
        """dx[j] = the sum over i >= j of ct[i] * e^(x[j] - result[i]), for positive and negative ct separately"""
        x = widened(self.x)
        return [cast(self._weighed(widened(ct), -self._finite(), x, not self.reverse), self.x.type.dtype)]

    def jvp(self, tangent: Value) -> list[Value]:
        """tangent of result[i] = the sum over j <= i of tangent[j] * e^(x[j] - result[i])"""
        x = widened(self.x)
        return [cast(self._weighed(widened(tangent), x, -self._finite(), self.reverse), self.x.type.dtype)]

    def _finite(self) -> Value:
        result = widened(self.result)
        return select(compare("eq", result, full(-math.inf, result)), full(0, result), result)

    def _weighed(self, y: Value, inner: Value, outer: Value, reverse: bool) -> Value:
        """e^outer[i] times the sum of y[j] * e^inner[j] over j on one side of i; for each sign of y separately."""
        zero = full(0, y)
        parts = []
        for part in (y, -y):
            positive = tensor.LogicalNot(compare("le", part, zero)).result     # or NaN, which is in both parts
            size = tensor.Log(select(positive, part, full(1, y))).result + inner
            total = LogCumSumExp(select(positive, size, full(-math.inf, y)), self.axis, reverse).result
            parts.append(exp(total + outer))
        return parts[0] - parts[1]


def _log_add_exp(a: Value, b: Value) -> Value:
    """log(e^a + e^b)"""
    top = maximum(a, b)
    infinite = compare("eq", tensor.Abs(top).result, full(math.inf, top))
    return select(infinite, top, top + tensor.Log1p(exp(-tensor.Abs(a - b).result)).result)
