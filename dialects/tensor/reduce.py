"""tensor, reduce: reductions along axes, which are dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.combining import CombiningKind
from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import (
    Array,
    TensorOp,
    accumulator,
    along_axes,
    broadcast_to,
    cast,
    compare,
    full,
    keep_axes,
    kind,
    reshape,
    rounded,
    select,
    zeros,
)
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain
from mlc.dialects.tensor.orders import lanes, order_of, reduce_in_order
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir import sizes
from mlc.ir.core import Op, Value
from mlc.ir.exact import fma
from mlc.ir.rewrite import rewrite
from mlc.ir.sizes import Dim, product
from mlc.ir.types import ComplexType, FloatType, TensorType, f64, to_numpy

RUN = 32
"""Elements of a lane that are added sequentially."""
LANES_ACROSS = 16
"""Lanes of a reduction that fit into registers as a vector each."""
FEW = 4
"""Length up to which slices of an order-independent reduction are chains: a tree of lanes costs more."""


class Reduce(TensorOp):
    """Reduction along `axes`; the result is the identity element if there are no elements.

    `order` is the order in which floats are combined (orders.py); fix_numerics sets it if it matters.
    """

    combines: ClassVar[str]                  # the name of the combining kind, for any element type
    accepts: ClassVar[tuple[str, ...]] = ("int", "float")
    vmap = along_axes
    cost = Cost.EXPENSIVE
    iteration = Iteration.REDUCE
    moves_elements = False
    checked_operand = None

    @property
    def x(self) -> Value:
        """The operand, or the first of several of the same type."""
        return self.operands[0]

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that are reduced."""
        return self.attrs["axes"]  # type: ignore[no-any-return]

    @property
    def order(self) -> str | None:
        """The order of floats."""
        return self.attrs["order"]  # type: ignore[no-any-return]

    def iteration_domain(self) -> IterationDomain:
        return IterationDomain(self.x.type.shape, self.axes)

    def combining_name(self) -> str:
        return self.combines

    def home(self, domain: IterationDomain) -> tuple[Dim, ...]:
        return tuple(domain.points[d] for d in domain.parallel)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        """All points of the slice."""
        return [domain.points if domain == self.iteration_domain() else None] * len(self.operands)

    def default_order(self, across: bool = True) -> str:
        """`lanes<L>` if the last, contiguous axis is reduced, else `chain`; long float sums in runs.

        A few elements are a chain, too, whose vectors lie across the slices: two, of which a chain and a tree are
        equal bit for bit, or more if the result does not depend on the order. With `across`, several axes, as those of
        an image, have so few lanes that each can be a vector across the slices, if the channels turn out to be last in
        memory.
        """
        type = self.x.type
        length = product(type.shape[a] for a in self.axes)
        few = isinstance(length, int) and length <= (FEW if self.is_order_independent else 2)
        lanes = 1
        if type.rank - 1 in self.axes and not few:
            several = across and sum(type.shape[a] != 1 for a in self.axes) > 1
            short = isinstance(length, int) and length <= 2 * LANES_ACROSS
            lanes = LANES_ACROSS if short or several else 64 if type.dtype.width <= 32 else 32
        if isinstance(type.dtype, FloatType) and isinstance(self, ReduceSum) and not (
                isinstance(length, int) and length <= lanes * RUN):
            return f"lanes<{lanes}, {RUN}>"
        return "chain" if lanes == 1 else f"lanes<{lanes}>"

    @property
    def combining(self) -> CombiningKind:
        return CombiningKind.of(self.combines, self.x.type.dtype)

    @property
    def is_order_independent(self) -> bool:
        """Whether the result does not depend on the order."""
        return self.combining.is_associative(self.x.type.dtype)

    def identity(self) -> float | int | bool:
        """The identity element of the reduction."""
        return self.combining.identity(self.x.type.dtype)

    def spread(self, v: Value) -> Value:
        """A value of the shape of the result, broadcast along the axes to the shape of x."""
        shape = self.x.type.shape
        return broadcast_to(keep_axes(v, self.axes, shape), shape)

    def fold(self) -> Value | Array | None:
        arrays = self.constants() if self.is_order_independent else None
        return None if arrays is None else np.asarray(self.ref(*arrays))


class ReduceOne(Reduce):
    """Reduction of one operand."""

    x: Value
    axes: tuple[int, ...]
    order: str | None = None

    def infer(self) -> TensorType:
        source, = self.tensors()
        if (found := kind(source.dtype)) not in self.accepts and found != "complex":
            self.refuse(f"does not work on {source.dtype}, only on {' and '.join(self.accepts)} elements", "MLC0113")
        self.check_axes(self.axes, source.rank)
        if self.order is not None:
            lanes(self.order)
        return source.with_shape(d for i, d in enumerate(source.shape) if i not in self.axes)


def reduction_orders(ops: Iterable[Op]) -> set[str]:
    """The orders of the order-dependent reductions among `ops`."""
    return {order_of(op) for op in ops if isinstance(op, Reduce) and not op.is_order_independent}


class _ReduceArithmetic(ReduceOne):
    """A sum or a product, which depends on the order."""

    def ref(self, x: Any) -> Array:
        dtype, ufunc = self.x.type.dtype, self.combining.ufunc
        with np.errstate(all="ignore"):
            if kind(dtype) != "float":
                return np.asarray(ufunc.reduce(x, self.axes, dtype=to_numpy(dtype)))
            if self.order is None:
                wide = ufunc.reduce(np.asarray(rounded(x, f64), order="C"), self.axes, initial=self.identity())
                return rounded(wide, dtype)
            wide = rounded(x, accumulator(dtype))
            return rounded(reduce_in_order(wide, self.axes, self.order, ufunc, self.identity()), dtype)


class ReduceSum(_ReduceArithmetic, name="tensor.reduce_sum"):
    """result[i] = the sum of x[i, j] over j, the indices along axes; integers wrap modulo 2^width

        %r = tensor.reduce_sum %x {axes = [1]} : (tensor<Bx3xf32>) -> tensor<Bxf32>
    """

    on_parts = parts.each_part
    combines = "add"

    def vjp(self, ct: Value) -> list[Value | None]:
        return [self.spread(ct)]


class ReduceFma(Reduce, name="tensor.reduce_fma"):
    """result[i] = the sum of x[i, j] * y[i, j] over j, the indices along axes, one fused multiply-add after the other

    Floats are added in ascending order, each product without a rounding of its own; integers wrap modulo 2^width. It is
    for sums of few products whose factors are computed where they are read, such as those of a window; dot_general has
    the orders, the blocks and the packed operands of longer ones.

        %r = tensor.reduce_fma %x, %y {axes = [1]} : (tensor<Bx3xf32>, tensor<Bx3xf32>) -> tensor<Bxf32>
    """

    x: Value
    y: Value
    axes: tuple[int, ...]
    order: str = "chain"
    combines = "add"

    def default_order(self, across: bool = True) -> str:
        return "chain"

    def infer(self) -> TensorType:
        x, y = self.tensors()
        if x != y:
            self.refuse(f"x is a {x}, y a {y}", "MLC0111")
        if self.order != "chain":
            self.refuse(f"order {self.order!r} is not chain, the only one of fused multiply-adds", "MLC0116")
        if kind(x.dtype) not in self.accepts:
            self.refuse(f"does not work on {x.dtype}, only on {' and '.join(self.accepts)} elements", "MLC0113")
        self.check_axes(self.axes, x.rank)
        return x.with_shape(d for i, d in enumerate(x.shape) if i not in self.axes)

    def ref(self, x: Any, y: Any) -> Array:
        dtype = self.x.type.dtype
        if kind(dtype) != "float":
            return np.asarray(np.add.reduce(np.asarray(x) * np.asarray(y), self.axes, dtype=to_numpy(dtype)))
        wide = accumulator(dtype)
        last = range(x.ndim - len(self.axes), x.ndim)
        kept = [d for i, d in enumerate(x.shape) if i not in self.axes]
        length = prod(x.shape[a] for a in self.axes)
        factors = [np.moveaxis(rounded(v, wide), self.axes, [*last]).reshape([*kept, length]) for v in (x, y)]
        total: Array = np.full(kept, self.identity(), to_numpy(wide))
        for k in range(length):
            total = fma(factors[0][..., k], factors[1][..., k], total)
        return rounded(total, dtype)

    def vjp(self, ct: Value) -> list[Value | None]:
        return [self.spread(ct) * self.y, self.spread(ct) * self.x]


def need_static(op: TensorOp, axes: Iterable[int]) -> None:
    """Refuse a product of complex numbers along an axis of a symbolic size: its rule multiplies halves."""
    source = op.operands[0].type
    if isinstance(source.dtype, ComplexType) and (sized := [a for a in axes if not isinstance(source.shape[a], int)]):
        op.refuse(f"size {source.shape[sized[0]]} of axis {sized[0]} is not static, as a product of complex numbers "
                  "needs it to be", "MLC0688", symbols=sizes.symbols(source.shape[sized[0]]))


class ReduceProd(_ReduceArithmetic, name="tensor.reduce_prod"):
    """result[i] = the product of x[i, j] over j, the indices along axes; integers wrap modulo 2^width

        %r = tensor.reduce_prod %x {axes = [1]} : (tensor<Bx3xf32>) -> tensor<Bxf32>
    """

    on_parts = parts.product
    combines = "mul"

    def infer(self) -> TensorType:
        out = super().infer()
        need_static(self, self.axes)
        return out

    def vjp(self, ct: Value) -> list[Value | None]:
        """The product of the other elements: result / x, and if x = 0, depending on the number of zeros:

        one     the product p of the nonzero elements
        two     p times the other zero, which makes the second derivative correct
        more    zero
        """
        x, one, zero = self.x, full(1, self.x), full(0, self.x)
        is_zero = compare("eq", x, zero)
        p = ReduceProd(select(is_zero, one, x), self.axes).result
        count = self.spread(ReduceSum(cast(is_zero, x.type.dtype), self.axes).result)
        sum_of_zeros = ReduceSum(select(is_zero, x, zero), self.axes).result
        several = select(compare("eq", count, full(2, x)), self.spread(p) * (self.spread(sum_of_zeros) - x), zero)
        at_zero = select(compare("eq", count, one), self.spread(p), several)
        others = select(is_zero, at_zero, self.spread(self.result) / select(is_zero, one, x))
        return [self.spread(ct) * others]


class _ReduceExtremum(ReduceOne):
    """Maximum or minimum, in any order. The cotangent is divided evenly among ties."""

    accepts = ("bool", "int", "float")
    wins: ClassVar[bool]                     # whether -0.0 is the result if both zeros occur

    def ref(self, x: Any) -> Array:
        x = np.asarray(x)
        with np.errstate(all="ignore"):
            result = np.asarray(self.combining.ufunc.reduce(x, self.axes, initial=np.array(self.identity(), x.dtype)))
            if kind(self.x.type.dtype) == "float":
                signs = np.where(x == 0, np.signbit(x), not self.wins)
                pick = np.logical_or if self.wins else np.logical_and
                negative = pick.reduce(signs, self.axes, initial=not self.wins)
                result = np.where(result == 0, np.where(negative, -0.0, 0.0).astype(x.dtype), result)
        return result.astype(x.dtype)

    def vjp(self, ct: Value) -> list[Value | None]:
        ties = compare("eq", self.x, self.spread(self.result))
        count = ReduceSum(cast(ties, ct.type.dtype), self.axes).result
        return [select(ties, self.spread(ct / count), full(0, ct))]


class ReduceMax(_ReduceExtremum, name="tensor.reduce_max"):
    """result[i] = the maximum of x[i, j] over j, the indices along axes; NaN if one is NaN; +0 > -0

        %r = tensor.reduce_max %x {axes = [1]} : (tensor<Bx3xf32>) -> tensor<Bxf32>
    """

    combines = "max"
    wins = False


class ReduceMin(_ReduceExtremum, name="tensor.reduce_min"):
    """result[i] = the minimum of x[i, j] over j, the indices along axes; NaN if one is NaN; -0 < +0

        %r = tensor.reduce_min %x {axes = [1]} : (tensor<Bx3xf32>) -> tensor<Bxf32>
    """

    combines = "min"
    wins = True


class _ReduceBool(ReduceOne):
    accepts = ("bool",)
    def ref(self, x: Any) -> Array:
        return np.asarray(self.combining.ufunc.reduce(x, self.axes))


class ReduceAny(_ReduceBool, name="tensor.reduce_any"):
    """result[i] = whether some x[i, j] is true, j the indices along axes

        %r = tensor.reduce_any %x {axes = [1]} : (tensor<Bx3xi1>) -> tensor<Bxi1>
    """

    combines = "or"


class ReduceAll(_ReduceBool, name="tensor.reduce_all"):
    """result[i] = whether every x[i, j] is true, j the indices along axes

        %r = tensor.reduce_all %x {axes = [1]} : (tensor<Bx3xi1>) -> tensor<Bxi1>
    """

    combines = "and"


# -- rewrites ---------------------------------------------------------------------------------------------------------
@rewrite(ReduceProd, ReduceMax, ReduceMin, ReduceAny, ReduceAll)
def reduce_single(op: Reduce) -> Value | None:
    """reduce(x, axes) == reshape(x), if x has size 1 along all of them (a sum would turn -0.0 into +0.0)"""
    return reshape(op.x, op.result.type.shape) if all(op.x.type.shape[a] == 1 for a in op.axes) else None


@rewrite(Reduce)
def reduce_nothing(op: Reduce) -> Value | None:
    """reduce(x, axes) == full(identity), if x has size 0 along one of them"""
    if any(op.x.type.shape[a] == 0 for a in op.axes):
        return full(op.identity(), op.result, op.result.type.shape)
    return None


@rewrite(ReduceSum)
def sum_of_zeros(op: ReduceSum) -> Value | None:
    """reduce_sum(full(0)) == full(0)"""
    from_zeros = isinstance(op.x.op, tensor.Full) and op.x.op.value == 0
    return zeros(op.result) if from_zeros else None


@rewrite(ReduceMax, ReduceMin, ReduceAny, ReduceAll)
def reduce_twice(op: Reduce) -> Value | None:
    """max(max(x, a), b) == max(x, a and b), and so for min, any, all"""
    inner = op.x.op
    if not isinstance(inner, ReduceOne) or type(inner) is not type(op) or len(op.x.uses) > 1:
        return None
    kept = [a for a in range(inner.x.type.rank) if a not in inner.axes]
    return type(op)(inner.x, tuple(sorted((*inner.axes, *(kept[a] for a in op.axes))))).result
