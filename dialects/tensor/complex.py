"""tensor, complex: complex tensors of real and imaginary parts, and back; in memory the two are adjacent."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.base import Array, TensorOp, shape_text
from mlc.dialects.tensor.parts import Parts
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir.core import Value
from mlc.ir.types import ComplexType, FloatType, TensorType, to_numpy


class ComplexOp(TensorOp):
    """An operation that decompose_complex replaces, whatever its operands are."""

    cost = Cost.CHEAP
    iteration = Iteration.INDEXED
    moves_elements = False
    checked_operand = None

    def complex_operand(self) -> tuple[TensorType, ComplexType]:
        """The type of the operand and of its elements; IRError if these are not complex."""
        x, = self.tensors()
        if not isinstance(x.dtype, ComplexType):
            self.refuse(f"does not work on {x.dtype}, only on complex elements", "MLC0113")
        return x, x.dtype


class Complex(ComplexOp, name="tensor.complex"):
    """result[i] = re[i] + im[i] * the imaginary unit

        %r = tensor.complex %x, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xcomplex<f32>>
    """

    re: Value
    im: Value

    def infer(self) -> TensorType:
        re, im = self.tensors()
        if re != im:
            self.refuse(f"the parts differ: {re} and {im}", "MLC0112")
        if not isinstance(re.dtype, FloatType) or re.dtype.width < 32:
            self.refuse(f"does not work on {re.dtype}, only on f32 and f64 elements", "MLC0113")
        return re.with_dtype(ComplexType(re.dtype))

    def ref(self, re: Any, im: Any) -> Array:
        out = np.empty(re.shape, to_numpy(self.result.type.dtype))
        out.real, out.imag = re, im
        return out

    def on_parts(self, re: Value, im: Value) -> Parts:
        return Parts(re, im)


class _Part(ComplexOp):
    x: Value
    part: ClassVar[str]

    def infer(self) -> TensorType:
        x, dtype = self.complex_operand()
        return x.with_dtype(dtype.part)

    def ref(self, x: Any) -> Array:
        return np.asarray(getattr(x, self.part))

    def on_parts(self, x: Parts) -> Value:
        return getattr(x, self.part)  # type: ignore[no-any-return]


class Real(_Part, name="tensor.real"):
    """result[i] = the real part of x[i]

        %r = tensor.real %x : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    """

    part = "real"


class Imag(_Part, name="tensor.imag"):
    """result[i] = the imaginary part of x[i]

        %r = tensor.imag %x : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    """

    part = "imag"


class ViewAsReal(ComplexOp, name="tensor.view_as_real"):
    """result[i, 0] = the real part of x[i], result[i, 1] = the imaginary part

        %r = tensor.view_as_real %x : (tensor<3xcomplex<f32>>) -> tensor<3x2xf32>
    """

    x: Value

    def infer(self) -> TensorType:
        x, dtype = self.complex_operand()
        return TensorType((*x.shape, 2), dtype.part)

    def ref(self, x: Any) -> Array:
        return np.asarray(x)[..., None].view(x.real.dtype)

    def on_parts(self, x: Parts) -> Value:
        return joined(x)


class ViewAsComplex(ComplexOp, name="tensor.view_as_complex"):
    """result[i] = x[i, 0] + x[i, 1] * the imaginary unit

        %r = tensor.view_as_complex %x : (tensor<3x2xf32>) -> tensor<3xcomplex<f32>>
    """

    x: Value

    def infer(self) -> TensorType:
        x, = self.tensors()
        if not isinstance(x.dtype, FloatType) or x.dtype.width < 32:
            self.refuse(f"does not work on {x.dtype}, only on f32 and f64 elements", "MLC0113")
        if not x.shape or x.shape[-1] != 2:
            self.refuse(f"the last axis of {shape_text(x.shape)} must have size 2, for real and imaginary parts",
                        "MLC0115")
        return TensorType(x.shape[:-1], ComplexType(x.dtype))

    def ref(self, x: Any) -> Array:
        dtype = to_numpy(self.result.type.dtype)
        x = np.asarray(x)
        if x.strides[-1] != x.itemsize:
            x = np.ascontiguousarray(x)
        return np.asarray(x.view(dtype)[..., 0])

    def on_parts(self, x: Value) -> Parts:
        return split(x)


def joined(x: Parts) -> Value:
    """One tensor of both parts, side by side along a new last axis."""
    shape = x.real.type.shape
    parts = tuple(tensor.Reshape(v, (*shape, 1)).result for v in x)
    return tensor.Concat(parts, len(shape)).result


def split(x: Value) -> Parts:
    """The parts that lie side by side along the last axis."""
    *shape, _ = x.type.shape
    zeros, ones = (0,) * len(shape), (1,) * (len(shape) + 1)
    pieces = (tensor.Slice(x, (*zeros, i), (*shape, i + 1), ones).result for i in range(2))
    return Parts(*(tensor.Reshape(v, tuple(shape)).result for v in pieces))
