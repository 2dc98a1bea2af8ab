"""tensor, composites along one axis: softmax and its relatives, positions of extrema, one-hot rows."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.base import (
    Array,
    along_axes,
    cast,
    compare,
    full,
    keep_axes,
    kind,
    leading,
    reshape,
    rounded,
    select,
)
from mlc.dialects.tensor.composite import Composite, exp, log_softmax, log_sum_exp, softmax, sum_kept, widened
from mlc.dialects.tensor.reduce import ReduceMax, ReduceMin
from mlc.dialects.tensor.source import Iota, check_dtype, check_shape, size
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import ScalarType, TensorType, f64, i64, to_numpy


class AlongAxis(Composite):
    x: Value
    axis: int
    vmap = along_axes

    def infer(self) -> TensorType:
        x, = self.floats()
        self.check_axis(self.axis, x.rank)
        return x


class Softmax(AlongAxis, name="tensor.softmax"):
    """result[i] = e^x[i] / sum over j of e^x[j], j along axis

        %r = tensor.softmax %x {axis = 1} : tensor<Bx3xf32>
    """

    def define(self, x: Array) -> Any:
        e = np.exp(x - x.max(self.axis, keepdims=True, initial=-np.inf))
        return e / e.sum(self.axis, keepdims=True)

    def decompose(self) -> Value:
        return cast(softmax(widened(self.x), self.axis), self.x.type.dtype)

    def vjp(self, ct: Value) -> list[Value | None]:
        result = widened(self.result)
        product = widened(ct) * result
        return [cast(product - result * sum_kept(product, (self.axis,)), self.x.type.dtype)]


class LogSoftmax(AlongAxis, name="tensor.log_softmax"):
    """result[i] = x[i] - log(sum over j of e^x[j]), j along axis

        %r = tensor.log_softmax %x {axis = 1} : tensor<Bx3xf32>
    """

    def define(self, x: Array) -> Any:
        shifted = x - x.max(self.axis, keepdims=True, initial=-np.inf)
        return shifted - np.log(np.exp(shifted).sum(self.axis, keepdims=True))

    def decompose(self) -> Value:
        return cast(log_softmax(widened(self.x), self.axis), self.x.type.dtype)

    def vjp(self, ct: Value) -> list[Value | None]:
        ct = widened(ct)
        return [cast(ct - exp(widened(self.result)) * sum_kept(ct, (self.axis,)), self.x.type.dtype)]


class LogSumExp(AlongAxis, name="tensor.logsumexp"):
    """result = log(sum over j of e^x[j]), j along axis

        %r = tensor.logsumexp %x {axis = 1} : (tensor<Bx3xf32>) -> tensor<Bxf32>
    """

    def infer(self) -> TensorType:
        x = super().infer()
        return x.with_shape(d for a, d in enumerate(x.shape) if a != self.axis)

    def define(self, x: Array) -> Any:
        return np.logaddexp.reduce(x, self.axis, initial=-np.inf)

    def decompose(self) -> Value:
        total = log_sum_exp(widened(self.x), self.axis)
        return cast(reshape(total, self.result.type.shape), self.x.type.dtype)

    def vjp(self, ct: Value) -> list[Value | None]:
        x, shape = widened(self.x), self.x.type.shape
        result = keep_axes(widened(self.result), (self.axis,), shape)
        finite = select(compare("eq", result, full(-math.inf, result)), full(0, result), result)
        return [cast(keep_axes(widened(ct), (self.axis,), shape) * exp(x - finite), self.x.type.dtype)]


class _Arg(Composite):
    """The first position of an extremum, or of NaN, along an axis."""

    x: Value
    axis: int
    best: ClassVar[type[ReduceMax] | type[ReduceMin]]
    vmap = along_axes

    def infer(self) -> TensorType:
        x, = self.tensors()
        self.check_axis(self.axis, x.rank)
        return TensorType(tuple(d for a, d in enumerate(x.shape) if a != self.axis), i64)

    def decompose(self) -> Value:
        shape = self.x.type.shape
        found = compare("eq", self.x, keep_axes(self.best(self.x, (self.axis,)).result, (self.axis,), shape))
        if kind(self.x.type.dtype) == "float":
            found = tensor.Or(found, tensor.IsNan(self.x).result).result
        positions = Iota(shape, self.axis, i64).result
        return tensor.ReduceMin(select(found, positions, size(shape[self.axis], i64)), (self.axis,)).result


class ArgMax(_Arg, name="tensor.argmax"):
    """result = the first j with x[j] = max(x), or with x[j] = NaN, j along axis

        %r = tensor.argmax %x {axis = 1} : (tensor<Bx3xf32>) -> tensor<Bxi64>
    """

    best = ReduceMax

    def ref(self, x: Any) -> Array:
        return np.asarray(np.argmax(rounded(x, f64) if kind(self.x.type.dtype) == "float" else x, self.axis))


class ArgMin(_Arg, name="tensor.argmin"):
    """result = the first j with x[j] = min(x), or with x[j] = NaN, j along axis

        %r = tensor.argmin %x {axis = 1} : (tensor<Bx3xf32>) -> tensor<Bxi64>
    """

    best = ReduceMin

    def ref(self, x: Any) -> Array:
        return np.asarray(np.argmin(rounded(x, f64) if kind(self.x.type.dtype) == "float" else x, self.axis))


class OneHot(Composite, name="tensor.one_hot"):
    """result[i, j] = 1 where x[i] = j, else 0, for j < size

        %r = tensor.one_hot %x {size = 10, dtype = f32} : (tensor<Bxi64>) -> tensor<Bx10xf32>
    """

    x: Value
    size: Dim
    dtype: ScalarType
    format = "$x attr-dict `:` functional-type"
    vmap = leading

    def infer(self) -> TensorType:
        x, = self.tensors()
        if kind(x.dtype) != "int":
            self.refuse(f"the positions have {x.dtype} elements, not integers", "MLC0113")
        check_dtype(self, self.dtype)
        check_shape(self, (self.size,))
        return TensorType((*x.shape, self.size), self.dtype)

    def decompose(self) -> Value:
        shape = self.result.type.shape
        positions = Iota((*[1] * (len(shape) - 1), self.size), len(shape) - 1, i64).result
        hit = compare("eq", reshape(cast(self.x, i64), (*shape[:-1], 1)), positions)
        return cast(hit, self.dtype)

    def interpret(self, frame: Any) -> Array:
        return self._hits(frame[self.x], frame.size(self.size))

    def ref(self, x: Any) -> Array:
        assert isinstance(self.size, int)
        return self._hits(x, self.size)

    def _hits(self, x: Array, count: int) -> Array:
        return np.asarray(x.astype(np.int64)[..., None] == np.arange(count), to_numpy(self.dtype))
