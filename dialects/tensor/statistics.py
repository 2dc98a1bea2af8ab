"""tensor, composites over axes: mean, variance, and normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import Array, again, along_axes, cast, full, reshape, shape_text
from mlc.dialects.tensor.composite import Composite, maximum, mean_kept, sum_kept, widened
from mlc.dialects.tensor.source import size
from mlc.ir import sizes
from mlc.ir.core import BatchResult, Value
from mlc.ir.sizes import Dim
from mlc.ir.types import ComplexType, ScalarType, TensorType


class _OverAxes(Composite):
    of_elements = True
    x: Value
    axes: tuple[int, ...]
    vmap = along_axes

    def infer(self) -> TensorType:
        x, = self.floats()
        self.check_axes(self.axes, x.rank)
        return x.with_shape(d for a, d in enumerate(x.shape) if a not in self.axes)

    def narrowed(self, x: Value) -> Value:
        """A value with kept axes, reshaped and cast to the type of the result."""
        return cast(reshape(x, self.result.type.shape), self.x.type.dtype)


class Mean(_OverAxes, name="tensor.mean"):
    """result = the sum over j of x[j] / n, over the n indices j along axes

        %r = tensor.mean %x {axes = [1]} : (tensor<Bx3xf32>) -> tensor<Bxf32>
    """

    on_parts = parts.each_part
    def define(self, x: Array) -> Any:
        return x.sum(self.axes) / np.float64(math.prod(x.shape[a] for a in self.axes))

    def decompose(self) -> Value:
        return self.narrowed(mean_kept(widened(self.x), self.axes))


class Var(_OverAxes, name="tensor.var"):
    """result = the sum over j of (x[j] - mean(x))^2 / max(0, n - correction), over the n indices j along axes

        %r = tensor.var %x {axes = [1]} : (tensor<Bx3xf32>) -> tensor<Bxf32>
    """

    x: Value
    axes: tuple[int, ...]
    correction: float = 1

    def on_parts(self, x: parts.Parts) -> Value:
        """The sum of the variances of the parts."""
        real, imag = parts.each_part(self, x)
        return real + imag

    def infer(self) -> TensorType:
        out = super().infer()
        return out.with_dtype(out.dtype.part) if isinstance(out.dtype, ComplexType) else out

    def define(self, x: Array) -> Any:
        n = math.prod(x.shape[a] for a in self.axes)
        mean = x.sum(self.axes, keepdims=True) / np.float64(n)
        return np.square(np.abs(x - mean)).sum(self.axes) / np.float64(max(0, n - self.correction))

    def decompose(self) -> Value:
        x = widened(self.x)
        centred = x - mean_kept(x, self.axes)
        return self.narrowed(sum_kept(centred * centred, self.axes) / self._divisor(x.type.dtype))

    def _divisor(self, dtype: ScalarType) -> Value:
        """max(0, n - correction)"""
        n, whole = sizes.product(self.x.type.shape[a] for a in self.axes), math.floor(self.correction)
        if isinstance(n, int):
            return tensor.Full(max(0, n - self.correction), (), dtype).result
        count = size(n - whole, dtype)
        if self.correction != whole:
            count = count - (self.correction - whole)
        return maximum(count, full(0, count))


class Standardize(_OverAxes, name="tensor.standardize"):
    """result = (x - mean(x)) / sqrt(var(x) + eps), mean and variance over axes

        %r = tensor.standardize %x {axes = [0]} : tensor<Bx3xf32>
    """

    x: Value
    axes: tuple[int, ...]
    eps: float = 1e-5

    def infer(self) -> TensorType:
        super().infer()
        return self.x.type  # type: ignore[no-any-return]

    def define(self, x: Array) -> Any:
        centred = x - x.mean(self.axes, keepdims=True)
        return centred / np.sqrt(np.square(centred).mean(self.axes, keepdims=True) + self.eps)

    def decompose(self) -> Value:
        centred, inverse = self._parts()
        return cast(centred * inverse, self.x.type.dtype)

    def _parts(self) -> tuple[Value, Value]:
        """x - mean(x), and 1 / sqrt(var(x) + eps)"""
        x = widened(self.x)
        centred = x - mean_kept(x, self.axes)
        return centred, tensor.Rsqrt(mean_kept(centred * centred, self.axes) + self.eps).result

    def vjp(self, ct: Value) -> list[Value | None]:
        """dx = (ct - mean(ct) - result * mean(ct * result)) / sqrt(var(x) + eps): both means in one pass over ct"""
        ct, (centred, inverse) = widened(ct), self._parts()
        result = centred * inverse
        slope = mean_kept(ct * result, self.axes)
        return [cast((ct - mean_kept(ct, self.axes) - result * slope) * inverse, self.x.type.dtype)]


class _Norm(Composite):
    """Normalisation over `axes`; weight and bias have the sizes of these axes."""

    of_elements = True

    def check_parameters(self, x: TensorType, axes: Sequence[int], parameters: Sequence[TensorType]) -> TensorType:
        self.check_axes(axes, x.rank)
        shape = tuple(x.shape[a] for a in axes)
        for p in parameters:
            if p.shape != shape:
                self.refuse(f"weight or bias of shape {shape_text(p.shape)} does not fit the normalised axes "
                            f"{shape_text(shape)}", "MLC0115", symbols=sizes.differing(p.shape, shape))
        return x

    def lifted(self, parameter: Value, x: Value, axes: Sequence[int]) -> Value:
        """weight or bias with size 1 along the other axes of x, in the type of x."""
        shape = [d if a in axes else 1 for a, d in enumerate(x.type.shape)]
        return cast(reshape(parameter, shape), x.type.dtype)

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> BatchResult:
        """With batched weight or bias there is no rule, and the operation is decomposed."""
        return None if any(batched[1:]) else again(self, operands, axes=tuple(a + 1 for a in self.attrs["axes"]))


class LayerNorm(_Norm, name="tensor.layer_norm"):
    """result = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, mean and variance over axes

        %r = tensor.layer_norm %x, %w, %b {axes = [0], operandSegmentSizes = [1, 1, 1]} : tensor<3xf32>
    """

    x: Value
    weight: Value | None
    bias: Value | None
    axes: tuple[int, ...]
    eps: float = 1e-5

    def infer(self) -> TensorType:
        x, *parameters = self.floats()
        return self.check_parameters(x, self.axes, parameters)

    def define(self, x: Array, *parameters: Array) -> Any:
        centred = x - x.mean(self.axes, keepdims=True)
        out = centred / np.sqrt(np.square(centred).mean(self.axes, keepdims=True) + self.eps)
        shape = [d if a in self.axes else 1 for a, d in enumerate(x.shape)]
        remaining = list(parameters)
        if self.weight is not None:
            out = out * remaining.pop(0).reshape(shape)
        return out + remaining.pop(0).reshape(shape) if remaining else out

    def decompose(self) -> Value:
        x = widened(self.x)
        centred = x - mean_kept(x, self.axes)
        out = centred * tensor.Rsqrt(mean_kept(centred * centred, self.axes) + self.eps).result
        if self.weight is not None:
            out = out * self.lifted(self.weight, x, self.axes)
        if self.bias is not None:
            out = out + self.lifted(self.bias, x, self.axes)
        return cast(out, self.x.type.dtype)
