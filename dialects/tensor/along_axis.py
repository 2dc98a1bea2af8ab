"""tensor, composites along one axis: softmax, log_softmax, logsumexp and argmax."""

from __future__ import annotations

import math
from typing import Any

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
    reshape,
    rounded,
    select,
)
from mlc.dialects.tensor.composite import Composite, exp, log_softmax, log_sum_exp, softmax, sum_kept, widened
from mlc.dialects.tensor.reduce import ReduceMax
from mlc.dialects.tensor.source import Iota, size
from mlc.ir.core import Value
from mlc.ir.types import TensorType, f64, i64


class AlongAxis(Composite):
    of_elements = True
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


class ArgMax(Composite, name="tensor.argmax"):
    """result = the first j with x[j] = max(x), or with x[j] = NaN, j along axis

        %r = tensor.argmax %x {axis = 1} : (tensor<Bx3xf32>) -> tensor<Bxi64>
    """

    x: Value
    axis: int
    vmap = along_axes

    def infer(self) -> TensorType:
        x, = self.tensors()
        self.check_axis(self.axis, x.rank)
        return TensorType(tuple(d for a, d in enumerate(x.shape) if a != self.axis), i64)

    def decompose(self) -> Value:
        shape = self.x.type.shape
        found = compare("eq", self.x, keep_axes(ReduceMax(self.x, (self.axis,)).result, (self.axis,), shape))
        if kind(self.x.type.dtype) == "float":
            found = tensor.Or(found, tensor.IsNan(self.x).result).result
        positions = Iota(shape, self.axis, i64).result
        return tensor.ReduceMin(select(found, positions, size(shape[self.axis], i64)), (self.axis,)).result

    def ref(self, x: Any) -> Array:
        return np.asarray(np.argmax(rounded(x, f64) if kind(self.x.type.dtype) == "float" else x, self.axis))
