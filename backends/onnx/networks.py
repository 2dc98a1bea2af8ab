"""Layers of networks that ONNX has as one operation; all others are written as what they are made of."""

from __future__ import annotations

from typing import Any

from mlc.backends.onnx.elementwise import in_floats
from mlc.backends.onnx.moving import padded
from mlc.backends.onnx.writer import Writer, result, row
from mlc.ir.types import f32, f64, i32


def _narrow(op: Any) -> bool:
    """Whether the floats have up to 32 bits; ONNX Runtime has some layers for these only."""
    return bool(op.operands[0].type.dtype != f64)


@row("tensor.relu", kept=lambda op: True)
def relu(w: Writer, op: Any) -> str:
    """max(x, 0)"""
    return w.unary("Relu", w.of(op.x))


@row("tensor.gelu", kept=_narrow)
def gelu(w: Writer, op: Any) -> str:
    """x times the distribution function of x."""
    return w.compute("Gelu", [w.of(op.x)], result(op), approximate=op.approximate)


@row("tensor.softmax", "tensor.log_softmax", kept=lambda op: op.x.type.shape[op.axis] != 0)
def softmax(w: Writer, op: Any) -> str:
    """Exponentials by their sum, or the logarithm of that."""
    name = "Softmax" if op.name == "tensor.softmax" else "LogSoftmax"
    return w.compute(name, [w.of(op.x)], result(op), axis=op.axis)


@row("tensor.layer_norm", kept=lambda op: op.weight is not None and list(op.axes) == list(
    range(op.x.type.rank - len(op.axes), op.x.type.rank)) and len(op.axes) > 0)
def layer_norm(w: Writer, op: Any) -> str:
    """Normalized along the last axes."""
    xs = in_floats(w, op)
    found = w.op("LayerNormalization", xs, w.types[xs[0]], axis=op.axes[0], epsilon=op.eps)
    return w.cast(found, result(op).dtype)


def _integers(*lists: Any) -> bool:
    return all(isinstance(n, int) and n >= 0 for numbers in lists for n in numbers)


@row("tensor.convolution", kept=lambda op: _narrow(op) and op.x.type.rank > 2)
def convolution(w: Writer, op: Any) -> str:
    """A convolution; padding that ONNX has no attribute for comes before it."""
    x, kernel = in_floats(w, op)
    axes = op.axes()
    low, high = [a.low for a in axes], [a.high for a in axes]
    attrs: dict[str, Any] = {"pads": [*low, *high]}
    if not _integers(low, high) or any(a.spread > 1 for a in axes):
        around = [high[i] - (a.spread - 1) for i, a in enumerate(axes)]    # none is behind the last element
        x = padded(w, x, w.like(0, x), [0, 0, *low], [0, 0, *around], [0, 0, *(a.spread - 1 for a in axes)])
        attrs = {}
    name, dtype = ("ConvInteger", i32) if op.is_of_bytes() else ("Conv", f32)
    found = w.op(name, [x, kernel], result(op).with_dtype(dtype), strides=[a.stride for a in axes],
                 dilations=[a.dilation for a in axes], group=op.groups,
                 kernel_shape=list(op.w.type.shape[2:]), **attrs)
    return w.cast(found, result(op).dtype)


def _pools(op: Any) -> bool:
    """Whether the axes are those of images, and no window lies in the padding."""
    axes = op.axes()
    return bool(op.x.type.dtype.is_float and axes and op.x.type.rank == len(axes) + 2 and all(
        isinstance(p, int) and p < k for k, _, low, high, _ in axes for p in (low, high)))


@row("tensor.max_pool", kept=_pools)
def max_pool(w: Writer, op: Any) -> str:
    """The largest elements of windows; ONNX Runtime skips NaN."""
    size, stride, low, high, dilation = (list(numbers) for numbers in zip(*op.axes()))
    return w.compute("MaxPool", [w.of(op.x)], result(op), kernel_shape=size, strides=stride, dilations=dilation,
                     pads=[*low, *high])
