"""tensor, compare: comparison, selection and conversion of element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import (
    Array,
    CopyOp,
    TypedOp,
    broadcast,
    broadcasting,
    cast,
    full,
    is_splat,
    kind,
    leading,
    pointwise_maps,
    rounded,
    select,
    splat,
    unbroadcast,
)
from mlc.dialects.tensor.elementwise import Elementwise, LogicalNot, Rounding
from mlc.dialects.tensor.source import Full, check_dtype
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir.core import Value
from mlc.ir.rewrite import rewrite
from mlc.ir.types import FloatType, IntType, ScalarType, TensorType, i1, int_range, to_numpy

PREDICATES = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
              "ge": np.greater_equal}


class Compare(Elementwise, name="tensor.compare"):
    """result[i] = predicate(lhs[i], rhs[i]), one of eq ne lt le gt ge; with NaN only ne is true

        %r = tensor.compare lt, %x, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    """

    on_parts = parts.compared
    predicate: str
    lhs: Value
    rhs: Value
    accepts = ("bool", "int", "float")
    cost = Cost.CHEAP
    rounding = Rounding.NONE
    enums = {"predicate": tuple(PREDICATES)}
    format = "$predicate `,` $lhs `,` $rhs attr-dict `:` functional-type"

    def infer(self) -> TensorType:
        if self.predicate not in PREDICATES:
            self.refuse(f"no predicate {self.predicate!r}", "MLC0116", hint=f"it is one of {', '.join(PREDICATES)}")
        if self.predicate not in ("eq", "ne") and kind(self.lhs.type.dtype) == "complex":
            self.refuse(f"complex numbers have no order, so that {self.predicate} is not defined", "MLC0785",
                        hint="compare absolute values or parts")
        return super().infer()

    def result_dtype(self, dtype: ScalarType) -> ScalarType:
        return i1

    def ref(self, *xs: Any) -> Array:
        return np.asarray(PREDICATES[self.predicate](*xs))


class Select(CopyOp, name="tensor.select"):
    """result[i] = condition[i] ? a[i] : b[i]

        %r = tensor.select %c, %x, %y : (tensor<3xi1>, tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    """

    on_parts = parts.each_part
    condition: Value
    a: Value
    b: Value
    format = "$condition `,` $a `,` $b attr-dict `:` functional-type"
    vmap = broadcasting
    cost = Cost.CHEAP
    iteration = Iteration.POINTWISE
    moves_elements = False
    operand_maps = pointwise_maps

    def infer(self) -> TensorType:
        types = condition, a, b = self.tensors()
        if condition.dtype != i1:
            self.refuse(f"the condition has {condition.dtype} elements, not i1", "MLC0113",
                        hint="compare it with zero")
        if a.dtype != b.dtype:
            self.refuse(f"element types differ: {a.dtype} and {b.dtype}", "MLC0112",
                        hint="cast the operands to one type first")
        return TensorType(broadcast(self, types), a.dtype)

    def ref(self, c: Any, a: Any, b: Any) -> Array:
        return np.asarray(np.where(c, a, b))

    def vjp(self, ct: Value) -> list[Value | None]:
        zero = full(0, ct)
        return [None, unbroadcast(select(self.condition, ct, zero), self.a),
                unbroadcast(select(self.condition, zero, ct), self.b)]


class Cast(TypedOp, CopyOp, name="tensor.cast"):
    """result[i] = x[i] in element type dtype

    Conversion to float rounds once, to nearest even. Float to integer truncates and saturates, and NaN becomes 0.
    Integer to integer wraps modulo 2^width. Conversion to bool is x != 0.

        %r = tensor.cast %x : tensor<Bx3xf32> to tensor<Bx3xi32>
    """

    on_parts = parts.converted
    x: Value
    dtype: ScalarType
    spelled = ("dtype",)
    vmap = leading
    cost = Cost.CHEAP
    iteration = Iteration.POINTWISE
    moves_elements = True
    operand_maps = pointwise_maps

    def infer(self) -> TensorType:
        source, = self.tensors()
        check_dtype(self, self.dtype)
        return source.with_dtype(self.dtype)

    def ref(self, x: Any) -> Array:
        if self.dtype == i1:
            return np.asarray(x != 0)
        if kind(self.x.type.dtype) == "float" and kind(self.dtype) == "int":
            return _saturated(np.asarray(x).astype(np.float64), self.dtype)
        return rounded(x, self.dtype)

    def vjp(self, ct: Value) -> list[Value | None]:
        source = self.x.type.dtype
        return [cast(ct, source) if kind(source) == "float" and kind(self.dtype) == "float" else None]


class Bitcast(TypedOp, CopyOp, name="tensor.bitcast"):
    """result[i] = the bits of x[i] as an element of type dtype, of the same width

        %r = tensor.bitcast %x : tensor<Bx3xf32> to tensor<Bx3xi32>
    """

    x: Value
    dtype: ScalarType
    spelled = ("dtype",)
    vmap = leading
    cost = Cost.CHEAP
    iteration = Iteration.POINTWISE
    moves_elements = True
    operand_maps = pointwise_maps

    def infer(self) -> TensorType:
        source, = self.tensors()
        check_dtype(self, self.dtype)
        for dtype in (source.dtype, self.dtype):
            if kind(dtype) not in ("int", "float") or dtype.width != self.dtype.width:
                self.refuse(f"the bits of {source.dtype} are none of {self.dtype}", "MLC0113",
                            hint="take integers and floats of the same width")
        return source.with_dtype(self.dtype)

    def ref(self, x: Any) -> Array:
        array = np.ascontiguousarray(x, to_numpy(self.x.type.dtype))
        return np.asarray(array.view(to_numpy(self.dtype)).reshape(np.shape(x)))

    def vjp(self, ct: Value) -> list[Value | None]:
        """None, but for the cast of a float to its own type"""
        same = self.x.type.dtype == self.dtype and kind(self.dtype) == "float"
        return [ct if same else None]


def _saturated(x: Array, dtype: ScalarType) -> Array:
    """Truncate and saturate floats to an integer type. The limits of the type as floats are exact or one too large."""
    low, high = int_range(dtype)
    above, below = x >= float(high), x <= float(low)
    with np.errstate(all="ignore"):
        whole = np.where(np.isnan(x) | above | below, 0, x).astype(to_numpy(dtype))
    return np.where(above, np.array(high, whole.dtype), np.where(below, np.array(low, whole.dtype), whole))


def embeds(source: ScalarType, target: ScalarType) -> bool:
    """Whether `target` represents every value of `source` exactly."""
    if source == target or source == i1:
        return True
    if isinstance(source, FloatType) and isinstance(target, FloatType):
        return source.width < target.width
    if isinstance(source, IntType) and isinstance(target, IntType):
        low, high = int_range(target)
        return target != i1 and low <= int_range(source)[0] and int_range(source)[1] <= high
    digits = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
    return isinstance(target, FloatType) and isinstance(source, IntType) and (
        source.width - (not source.unsigned) <= digits[target.name])


@rewrite(Cast)
def cast_to_same(op: Cast) -> Value | None:
    """cast(x, type of x) == x"""
    return op.x if op.x.type == op.result.type else None


@rewrite(Cast)
def cast_of_exact_cast(op: Cast) -> Value | None:
    """cast(cast(x, b), c) == cast(x, c), if b represents every x exactly"""
    inner = op.x.op
    if not isinstance(inner, Cast) or not embeds(inner.x.type.dtype, inner.dtype):
        return None
    if [kind(t) for t in (inner.x.type.dtype, inner.dtype, op.dtype)] == ["int", "float", "int"]:
        return None                                # float to int saturates, int to int wraps
    return cast(inner.x, op.dtype)


@rewrite(Cast)
def cast_of_splat(op: Cast) -> Value | None:
    """cast(full(c), t) == full(cast(c, t))"""
    number = splat(op.x)
    if number is None or number != number:
        return None
    return Full(op.ref(number).item(), op.result.type.shape, op.dtype).result


@rewrite(Select)
def select_known(op: Select) -> Value | None:
    """select(true, a, b) == a;  select(false, a, b) == b;  select(c, a, a) == a"""
    chosen = op.a if op.a is op.b or is_splat(op.condition, 1) else op.b if is_splat(op.condition, 0) else None
    return chosen if chosen is not None and chosen.type == op.result.type else None


@rewrite(Select)
def select_of_not(op: Select) -> Value | None:
    """select(not c, a, b) == select(c, b, a)"""
    inner = op.condition.op
    return select(inner.x, op.b, op.a) if isinstance(inner, LogicalNot) else None


@rewrite(LogicalNot)
def not_of_compare(op: LogicalNot) -> Value | None:
    """not (a == b) == (a != b);  not (a < b) == (a >= b) and so on, for integers"""
    inner = op.x.op
    opposite = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
    if isinstance(inner, Compare) and (inner.predicate in ("eq", "ne") or kind(inner.lhs.type.dtype) != "float"):
        return Compare(opposite[inner.predicate], inner.lhs, inner.rhs).result
    return None
