"""tensor, composites: named functions with a decomposition into primitive operations.

A pass may take one apart (`decompose`) or a target may claim it whole. Where a derivative is better than that of the
decomposition, the composite has its own `vjp`. The meaning is the definition, computed in float64 and rounded once:
an oracle for the decomposition and not a copy of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.base import (
    Array,
    TensorOp,
    accumulator,
    broadcast,
    broadcast_to,
    cast,
    compare,
    full,
    keep_axes,
    kind,
    reshape,
    rounded,
    select,
    shape_text,
    unbroadcast,
)
from mlc.dialects.tensor.elementwise import Erf
from mlc.dialects.tensor.index import positions
from mlc.dialects.tensor.reduce import ReduceMax, ReduceMin
from mlc.dialects.tensor.source import Iota, check_dtype, size
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import ScalarType, TensorType, f64, i64, to_numpy


class Composite(TensorOp):
    """An operation that others can stand for."""

    def decompose(self) -> Value:
        """The result made of primitive operations, at the insertion point."""
        raise NotImplementedError

    def floats(self) -> list[TensorType]:
        """The operands' types: tensors of one floating-point element type."""
        types = self.tensors()
        for t in types:
            if kind(t.dtype) != "float":
                self.refuse(f"does not work on {t.dtype}, only on float elements", "MLC0113",
                            hint="cast the operand to a float type first")
            if t.dtype != types[0].dtype:
                self.refuse(f"element types differ: {types[0].dtype} and {t.dtype}", "MLC0112")
        return types

    def ref(self, *xs: Any) -> Array:
        """`define` of the operands in float64, rounded to the result's element type."""
        with np.errstate(all="ignore"):
            return rounded(self.define(*(np.asarray(x).astype(np.float64) for x in xs)), self.results[0].type.dtype)

    def define(self, *xs: Any) -> Any:
        raise NotImplementedError


# -- what decompositions are made of ----------------------------------------------------------------------------------
def exp(x: Value) -> Value:
    return tensor.Exp(x).result


def maximum(a: Value, b: Value) -> Value:
    return tensor.Maximum(a, b).result


def sum_kept(x: Value, axes: Sequence[int]) -> Value:
    """The sum over axes that stay, with size 1."""
    return keep_axes(tensor.ReduceSum(x, tuple(axes)).result, axes, x.type.shape)


def max_kept(x: Value, axes: Sequence[int]) -> Value:
    """The maximum over axes that stay, with size 1."""
    return keep_axes(tensor.ReduceMax(x, tuple(axes)).result, axes, x.type.shape)


def mean_kept(x: Value, axes: Sequence[int]) -> Value:
    """The mean over axes that stay, with size 1."""
    return sum_kept(x, axes) / size(sizes.product(x.type.shape[a] for a in axes), x.type.dtype)


def widened(x: Value) -> Value:
    """x in the type that sums of it accumulate in, so that they do not overflow the 16-bit floats."""
    return cast(x, accumulator(x.type.dtype))


def log_softmax(x: Value, axis: int) -> Value:
    """x - max - log(sum(e^(x - max)))"""
    x = x - max_kept(x, (axis,))
    return x - tensor.Log(sum_kept(exp(x), (axis,))).result


def softmax(x: Value, axis: int) -> Value:
    """e^(x - max) / sum(e^(x - max))"""
    e = exp(x - max_kept(x, (axis,)))
    return e / sum_kept(e, (axis,))


# -- one axis ---------------------------------------------------------------------------------------------------------
class _AlongAxis(Composite):
    x: Value
    axis: int

    def infer(self) -> TensorType:
        x, = self.floats()
        self.check_axis(self.axis, x.rank)
        return x


class Softmax(_AlongAxis, name="tensor.softmax"):
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


class LogSoftmax(_AlongAxis, name="tensor.log_softmax"):
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


class LogSumExp(_AlongAxis, name="tensor.logsumexp"):
    """result = log(sum over j of e^x[j]), j along axis

        %r = tensor.logsumexp %x {axis = 1} : (tensor<Bx3xf32>) -> tensor<Bxf32>
    """

    def infer(self) -> TensorType:
        x = super().infer()
        return x.with_shape(d for a, d in enumerate(x.shape) if a != self.axis)

    def define(self, x: Array) -> Any:
        return np.logaddexp.reduce(x, self.axis, initial=-np.inf)

    def decompose(self) -> Value:
        x = widened(self.x)
        top = max_kept(x, (self.axis,))
        infinite = compare("eq", tensor.Abs(top).result, full(math.inf, top))
        shift = select(infinite, full(0, top), top)                    # inf - inf would be NaN
        total = tensor.Log(sum_kept(exp(x - shift), (self.axis,))).result + shift
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

    def infer(self) -> TensorType:
        x, = self.tensors()
        if kind(x.dtype) != "int":
            self.refuse(f"the positions have {x.dtype} elements, not integers", "MLC0113")
        check_dtype(self, self.dtype)
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


# -- statistics -------------------------------------------------------------------------------------------------------
class _OverAxes(Composite):
    x: Value
    axes: tuple[int, ...]

    def infer(self) -> TensorType:
        x, = self.floats()
        self.check_axes(self.axes, x.rank)
        return x.with_shape(d for a, d in enumerate(x.shape) if a not in self.axes)

    def narrowed(self, x: Value) -> Value:
        """A value with the axes kept, without them and in the result's element type."""
        return cast(reshape(x, self.result.type.shape), self.x.type.dtype)


class Mean(_OverAxes, name="tensor.mean"):
    """result = the sum over j of x[j] / n, over the n indices j along axes

        %r = tensor.mean %x {axes = [1]} : (tensor<Bx3xf32>) -> tensor<Bxf32>
    """

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
    correction: int = 1

    def define(self, x: Array) -> Any:
        n = math.prod(x.shape[a] for a in self.axes)
        mean = x.sum(self.axes, keepdims=True) / np.float64(n)
        return np.square(x - mean).sum(self.axes) / np.float64(max(0, n - self.correction))

    def decompose(self) -> Value:
        x = widened(self.x)
        centred = x - mean_kept(x, self.axes)
        count = sizes.product(x.type.shape[a] for a in self.axes) - self.correction
        divisor = size(max(0, count) if isinstance(count, int) else count, x.type.dtype)
        if not isinstance(count, int):
            divisor = maximum(divisor, full(0, divisor))
        return self.narrowed(sum_kept(centred * centred, self.axes) / divisor)


class _Norm(Composite):
    """x scaled over its axes `axes`, which weight and bias have the sizes of."""

    def check_parameters(self, x: TensorType, axes: Sequence[int], parameters: Sequence[TensorType]) -> TensorType:
        self.check_axes(axes, x.rank)
        shape = tuple(x.shape[a] for a in axes)
        for p in parameters:
            if p.shape != shape:
                self.refuse(f"weight or bias of shape {shape_text(p.shape)} does not fit the normalised axes "
                            f"{shape_text(shape)}", "MLC0115")
        return x

    def lifted(self, parameter: Value, x: Value, axes: Sequence[int]) -> Value:
        """weight or bias with size 1 along the other axes of x, in the type of x."""
        shape = [d if a in axes else 1 for a, d in enumerate(x.type.shape)]
        return cast(reshape(parameter, shape), x.type.dtype)


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
        given = list(parameters)
        if self.weight is not None:
            out = out * given.pop(0).reshape(shape)
        return out + given.pop(0).reshape(shape) if given else out

    def decompose(self) -> Value:
        x = widened(self.x)
        centred = x - mean_kept(x, self.axes)
        out = centred * tensor.Rsqrt(mean_kept(centred * centred, self.axes) + self.eps).result
        if self.weight is not None:
            out = out * self.lifted(self.weight, x, self.axes)
        if self.bias is not None:
            out = out + self.lifted(self.bias, x, self.axes)
        return cast(out, self.x.type.dtype)


class RmsNorm(_Norm, name="tensor.rms_norm"):
    """result = x / sqrt(mean(x^2) + eps) * weight, the mean over axes

        %r = tensor.rms_norm %x, %w {axes = [1]} : (tensor<Bx3xf32>, tensor<3xf32>) -> tensor<Bx3xf32>
    """

    x: Value
    weight: Value | None
    axes: tuple[int, ...]
    eps: float = 1e-6

    def infer(self) -> TensorType:
        x, *parameters = self.floats()
        return self.check_parameters(x, self.axes, parameters)

    def define(self, x: Array, *parameters: Array) -> Any:
        out = x / np.sqrt(np.square(x).mean(self.axes, keepdims=True) + self.eps)
        shape = [d if a in self.axes else 1 for a, d in enumerate(x.shape)]
        return out * parameters[0].reshape(shape) if parameters else out

    def decompose(self) -> Value:
        x = widened(self.x)
        out = x * tensor.Rsqrt(mean_kept(x * x, self.axes) + self.eps).result
        if self.weight is not None:
            out = out * self.lifted(self.weight, x, self.axes)
        return cast(out, self.x.type.dtype)


# -- activations ------------------------------------------------------------------------------------------------------
class _Activation(Composite):
    """A function of single elements; `emit` and `slope`, its derivative, work in the accumulator's type."""

    x: Value

    def infer(self) -> TensorType:
        return self.floats()[0]

    def emit(self, x: Value) -> Value:
        raise NotImplementedError

    def decompose(self) -> Value:
        return cast(self.emit(widened(self.x)), self.x.type.dtype)


class _SmoothActivation(_Activation):
    def slope(self, x: Value) -> Value:
        raise NotImplementedError

    def vjp(self, ct: Value) -> list[Value | None]:
        return [cast(widened(ct) * self.slope(widened(self.x)), self.x.type.dtype)]


class Relu(_Activation, name="tensor.relu"):
    """result[i] = max(x[i], 0), with derivative 0 at 0

        %r = tensor.relu %x : tensor<3xf32>
    """

    def define(self, x: Array) -> Any:
        return np.maximum(x, 0)

    def decompose(self) -> Value:
        zero = full(0, self.x)
        return select(compare("le", self.x, zero), zero, self.x)       # a NaN stays

    def vjp(self, ct: Value) -> list[Value | None]:
        zero = full(0, ct)
        return [select(compare("le", self.x, zero), zero, ct)]


class LeakyRelu(_Activation, name="tensor.leaky_relu"):
    """result[i] = x[i] > 0 ? x[i] : slope * x[i]

        %r = tensor.leaky_relu %x : tensor<3xf32>
    """

    x: Value
    slope: float = 0.01

    def define(self, x: Array) -> Any:
        return np.where(x > 0, x, self.slope * x)

    def emit(self, x: Value) -> Value:
        return select(compare("gt", x, full(0, x)), x, x * self.slope)


class Elu(_Activation, name="tensor.elu"):
    """result[i] = x[i] > 0 ? x[i] : alpha * (e^x[i] - 1)

        %r = tensor.elu %x : tensor<3xf32>
    """

    x: Value
    alpha: float = 1.0

    def define(self, x: Array) -> Any:
        return np.where(x > 0, x, self.alpha * np.expm1(x))

    def emit(self, x: Value) -> Value:
        positive, zero = compare("gt", x, full(0, x)), full(0, x)
        low = tensor.Expm1(select(positive, zero, x)).result           # no overflow where it is not selected
        return select(positive, x, low * self.alpha)


class Gelu(_SmoothActivation, name="tensor.gelu"):
    """result[i] = x[i] * (1 + erf(x[i] / sqrt(2))) / 2; or by tanh(sqrt(2/pi) * (x + 0.044715 x^3))

        %r = tensor.gelu %x {approximate = "tanh"} : tensor<3xf32>
    """

    x: Value
    approximate: str = "none"

    def infer(self) -> TensorType:
        if self.approximate not in ("none", "tanh"):
            self.refuse(f"approximate is {self.approximate!r}, neither 'none' nor 'tanh'", "MLC0116")
        return super().infer()

    def define(self, x: Array) -> Any:
        if self.approximate == "tanh":
            return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return 0.5 * x * (1 + Erf.f(x / math.sqrt(2)))

    def _twice_cdf(self, x: Value) -> Value:
        """1 + erf(x / sqrt(2)), or its approximation by tanh."""
        if self.approximate == "tanh":
            inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
            return tensor.Tanh(inner).result + 1
        return tensor.Erf(x * math.sqrt(0.5)).result + 1

    def emit(self, x: Value) -> Value:
        return x * 0.5 * self._twice_cdf(x)

    def slope(self, x: Value) -> Value:
        """cdf(x) + x * cdf'(x)"""
        twice = self._twice_cdf(x)
        if self.approximate == "tanh":
            inner = (x * x * (3 * 0.044715) + 1) * (0.5 * math.sqrt(2 / math.pi))
            density = inner * (twice * (2 - twice))                    # 1 - tanh^2 = (1 + tanh) (1 - tanh)
        else:
            density = exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
        return twice * 0.5 + x * density


class Silu(_SmoothActivation, name="tensor.silu"):
    """result[i] = x[i] / (1 + e^-x[i])

        %r = tensor.silu %x : tensor<3xf32>
    """

    def define(self, x: Array) -> Any:
        return x * tensor.Sigmoid.f(x)

    def emit(self, x: Value) -> Value:
        return x * tensor.Sigmoid(x).result

    def slope(self, x: Value) -> Value:
        s = tensor.Sigmoid(x).result
        return s * (x * (1 - s) + 1)


def softplus(x: Value) -> Value:
    """log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)"""
    return maximum(x, full(0, x)) + tensor.Log1p(exp(-tensor.Abs(x).result)).result


class Softplus(_SmoothActivation, name="tensor.softplus"):
    """result[i] = log(1 + e^x[i])

        %r = tensor.softplus %x : tensor<3xf32>
    """

    def define(self, x: Array) -> Any:
        return np.logaddexp(0, x)

    def emit(self, x: Value) -> Value:
        return softplus(x)

    def slope(self, x: Value) -> Value:
        return tensor.Sigmoid(x).result


class LogSigmoid(_SmoothActivation, name="tensor.log_sigmoid"):
    """result[i] = -log(1 + e^-x[i])

        %r = tensor.log_sigmoid %x : tensor<3xf32>
    """

    def define(self, x: Array) -> Any:
        return -np.logaddexp(0, -x)

    def emit(self, x: Value) -> Value:
        return -softplus(-x)

    def slope(self, x: Value) -> Value:
        return tensor.Sigmoid(-x).result


class StopGradient(Composite, name="tensor.stop_gradient", blocks_gradient=True):
    """result[i] = x[i], and the cotangent of x is zero

        %r = tensor.stop_gradient %x : tensor<3xf32>
    """

    x: Value

    def infer(self) -> TensorType:
        return self.tensors()[0]

    def ref(self, x: Any) -> Array:
        return np.asarray(x)

    def decompose(self) -> Value:
        return self.x

    def vjp(self, ct: Value) -> list[Value | None]:
        return [None]


# -- losses -----------------------------------------------------------------------------------------------------------
class _Loss(Composite):
    """Losses of single elements, and what `reduction` makes of them: `none`, their `mean` or their `sum`."""

    def reduced(self, type: TensorType, reduction: str) -> TensorType:
        if reduction not in ("none", "mean", "sum"):
            self.refuse(f"reduction is {reduction!r}, not 'none', 'mean' or 'sum'", "MLC0116")
        return type if reduction == "none" else type.with_shape(())

    def reduce(self, x: Value, reduction: str) -> Value:
        if reduction == "none":
            return x
        total = tensor.ReduceSum(x, tuple(range(x.type.rank))).result
        return total if reduction == "sum" else total / size(x.type.size, x.type.dtype)

    def define_reduced(self, x: Array, reduction: str) -> Any:
        return x if reduction == "none" else x.sum() if reduction == "sum" else x.sum() / np.float64(x.size)

    def spread(self, ct: Value, shape: Sequence[Dim], reduction: str) -> Value:
        """The cotangent of each single loss, to be broadcast."""
        return ct / size(sizes.product(shape), ct.type.dtype) if reduction == "mean" else ct


class CrossEntropy(_Loss, name="tensor.cross_entropy"):
    """result[i] = -log_softmax(x[i])[labels[i]], the classes along axis, and the reduction of that

        %r = tensor.cross_entropy %x, %y {axis = 1} : (tensor<Bx10xf32>, tensor<Bxi64>) -> tensor<f32>
    """

    logits: Value
    labels: Value
    axis: int
    reduction: str = "mean"
    format = "$logits `,` $labels attr-dict `:` functional-type"

    def infer(self) -> TensorType:
        x, labels = self.tensors()
        if kind(x.dtype) != "float":
            self.refuse(f"the logits have {x.dtype} elements, not floats", "MLC0113")
        if kind(labels.dtype) != "int":
            self.refuse(f"the labels have {labels.dtype} elements, not integers", "MLC0113")
        self.check_axis(self.axis, x.rank)
        shape = tuple(d for a, d in enumerate(x.shape) if a != self.axis)
        if labels.shape != shape:
            self.refuse(f"labels of shape {shape_text(labels.shape)} do not fit logits of shape "
                        f"{shape_text(x.shape)} without axis {self.axis}", "MLC0115")
        return self.reduced(x.with_shape(shape), self.reduction)

    def ref(self, x: Any, labels: Any) -> Array:
        x = np.asarray(x).astype(np.float64)
        with np.errstate(all="ignore"):
            shifted = x - x.max(self.axis, keepdims=True, initial=-np.inf)
            losses = np.log(np.exp(shifted).sum(self.axis)) - np.squeeze(
                np.take_along_axis(shifted, self._positions(x, labels), self.axis), self.axis)
            return rounded(self.define_reduced(losses, self.reduction), self.logits.type.dtype)

    def _positions(self, x: Array, labels: Array) -> Array:
        """The labels with the class axis put back; a label out of range is the user's error."""
        return positions(self, x, np.expand_dims(np.asarray(labels), self.axis), self.axis)

    def _lifted(self) -> Value:
        return keep_axes(self.labels, (self.axis,), self.logits.type.shape)

    def decompose(self) -> Value:
        picked = tensor.TakeAlong(log_softmax(widened(self.logits), self.axis), self._lifted(), self.axis).result
        losses = -reshape(picked, self.labels.type.shape)
        return cast(self.reduce(losses, self.reduction), self.logits.type.dtype)

    def vjp(self, ct: Value) -> list[Value | None]:
        shape = self.logits.type.shape
        rows = tuple(d if a == self.axis else 1 for a, d in enumerate(shape))
        hit = compare("eq", Iota(rows, self.axis, i64).result, cast(self._lifted(), i64))
        probabilities = softmax(widened(self.logits), self.axis)
        slope = probabilities - select(hit, full(1, probabilities), full(0, probabilities))
        each = self.spread(cast(ct, probabilities.type.dtype), self.labels.type.shape, self.reduction)
        if self.reduction == "none":
            each = keep_axes(each, (self.axis,), shape)
        return [cast(slope * each, self.logits.type.dtype), None]


class _PairLoss(_Loss):
    """A loss of the elements of x and y, which broadcast."""

    x: Value
    y: Value
    reduction: str = "mean"
    format = "$x `,` $y attr-dict `:` functional-type"

    def infer(self) -> TensorType:
        types = self.floats()
        return self.reduced(types[0].with_shape(broadcast(self, types)), self.reduction)

    def define(self, x: Array, y: Array) -> Any:
        return self.define_reduced(np.asarray(self.single(x, y)), self.reduction)

    def single(self, x: Array, y: Array) -> Any:
        raise NotImplementedError

    def emit(self, x: Value, y: Value) -> Value:
        raise NotImplementedError

    def decompose(self) -> Value:
        losses = self.emit(widened(self.x), widened(self.y))
        return cast(self.reduce(losses, self.reduction), self.x.type.dtype)


class MseLoss(_PairLoss, name="tensor.mse_loss"):
    """result[i] = (x[i] - y[i])^2, and the reduction of that

        %r = tensor.mse_loss %x, %y : (tensor<Bx3xf32>, tensor<Bx3xf32>) -> tensor<f32>
    """

    def single(self, x: Array, y: Array) -> Any:
        return np.square(x - y)

    def emit(self, x: Value, y: Value) -> Value:
        difference = x - y
        return difference * difference


class L1Loss(_PairLoss, name="tensor.l1_loss"):
    """result[i] = |x[i] - y[i]|, and the reduction of that

        %r = tensor.l1_loss %x, %y : (tensor<Bx3xf32>, tensor<Bx3xf32>) -> tensor<f32>
    """

    def single(self, x: Array, y: Array) -> Any:
        return np.abs(x - y)

    def emit(self, x: Value, y: Value) -> Value:
        return tensor.Abs(x - y).result


class BinaryCrossEntropy(_PairLoss, name="tensor.binary_cross_entropy_with_logits"):
    """result[i] = log(1 + e^x[i]) - x[i] * y[i], and the reduction of that

        %r = tensor.binary_cross_entropy_with_logits %x, %y : (tensor<Bxf32>, tensor<Bxf32>) -> tensor<f32>
    """

    def single(self, x: Array, y: Array) -> Any:
        return np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))

    def emit(self, x: Value, y: Value) -> Value:
        return maximum(x, full(0, x)) - x * y + tensor.Log1p(exp(-tensor.Abs(x).result)).result

    def vjp(self, ct: Value) -> list[Value | None]:
        """dx = sigmoid(x) - y, dy = -x"""
        x, y = widened(self.x), widened(self.y)
        difference = tensor.Sigmoid(x).result - y
        ct = self.spread(cast(ct, x.type.dtype), difference.type.shape, self.reduction)
        dx, dy = ct * difference, broadcast_to(-(ct * x), difference.type.shape)
        return [cast(unbroadcast(dx, self.x), self.x.type.dtype), cast(unbroadcast(dy, self.y), self.y.type.dtype)]
