"""Quantised operators: numbers that stand for (number - zero point) * scale."""

from __future__ import annotations

from typing import Any

from mlc.frontend.element_types import iinfo
from mlc.frontend.onnx.networks import conv
from mlc.frontend.onnx.table import row
from mlc.frontend.onnx.values import Steps, StepsOf, axis_of, dtype_of, refuse, tensor
from mlc.frontend.tensor import OPERATIONS as O


def spread(v: Any, x: Any, axis: int, block: int) -> Any:
    """A scale or zero point, of the whole tensor, of an axis, or of blocks along it, to be broadcast with x."""
    if v.ndim == 0 or (v.ndim == 1 and v.shape[0] == 1):
        return O["reshape"](v, ())
    axis = axis_of(axis, x.ndim)
    if block:
        return O["repeat_interleave"](v, block, axis)[(slice(None),) * axis + (slice(0, x.shape[axis]),)]
    if v.ndim != 1:
        refuse(f"a scale of {v.ndim} axes without blocks")
    return O["reshape"](v, tuple(-1 if k == axis else 1 for k in range(x.ndim)))


def saturated(x: Any, dtype: Any) -> Any:
    """Whole numbers of floats as integers of a type, at most its limits."""
    limits = iinfo(dtype)
    return O["cast"](O["clamp"](x, limits.min, limits.max), dtype)


@row("QuantizeLinear")
def quantize(x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0,
             precision: int = 0, saturate: int = 1) -> Any:
    dtype = zero.dtype if zero is not None else dtype_of(output_dtype or 2)
    if dtype.is_floating_point:
        refuse(f"numbers are quantised to {dtype.name}")
    wide = O["cast"](x, "float32") if not x.dtype.is_floating_point else x
    whole = O["round"](wide / O["cast"](spread(scale, x, axis, block_size), wide.dtype))
    if zero is not None:
        whole = O["cast"](whole, "float32") + O["cast"](spread(zero, x, axis, block_size), "float32")
    return saturated(O["cast"](whole, "float32"), dtype)


@row("DequantizeLinear", values=("zero",))
def dequantize(x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0,
               output_dtype: int = 0, steps_of: StepsOf) -> Any:
    wide = O["cast"](x, "int32")
    if zero is not None:
        wide = wide - O["cast"](spread(tensor(zero), x, axis, block_size), "int32")
    dtype = dtype_of(output_dtype) if output_dtype else scale.dtype
    out = O["cast"](O["cast"](wide, "float32") * O["cast"](spread(scale, x, axis, block_size), "float32"), dtype)
    if dtype.name == "float32" and not block_size:
        steps_of.note(out, Steps(x, scale, zero, axis))
    return out


def _around(x: Any, zero: Any, axis: int) -> Any:
    """The numbers that x stands for but for the scale, in int32; a zero point per row or column is along `axis`."""
    wide = O["cast"](x, "int32")
    if zero is None:
        return wide
    zero = O["cast"](zero, "int32")
    if zero.ndim == 1 and zero.shape[0] != 1:
        zero = O["reshape"](zero, tuple(-1 if k == axis_of(axis, x.ndim) else 1 for k in range(x.ndim)))
    return wide - (O["reshape"](zero, ()) if zero.ndim == 1 else zero)


@row("MatMulInteger")
def matmul_integer(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    return O["matmul"](_around(a, a_zero, -2), _around(b, b_zero, -1))


@row("QLinearMatMul")
def matmul_quantized(a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, y_scale: Any,
                     y_zero: Any) -> Any:
    product = O["cast"](O["matmul"](_around(a, a_zero, -2), _around(b, b_zero, -1)), "float32")
    rows = O["reshape"](a_scale, (-1, 1)) if a_scale.ndim == 1 else a_scale
    scale = O["cast"](rows, "float32") * O["cast"](b_scale, "float32") / O["cast"](y_scale, "float32")
    return saturated(O["round"](product * scale) + O["cast"](y_zero, "float32"), y_zero.dtype)


def _convolved(x: Any, w: Any, settings: dict[str, Any]) -> Any:
    """The convolution of integers, whose sums float64 has exactly."""
    return conv(O["cast"](x, "float64"), O["cast"](w, "float64"), **settings)


@row("ConvInteger")
def conv_integer(x: Any, w: Any, x_zero: Any = None, w_zero: Any = None, *, auto_pad: str = "NOTSET",
                 dilations: Any = None, group: int = 1, kernel_shape: Any = None, pads: Any = None,
                 strides: Any = None) -> Any:
    settings = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "pads": pads, "strides": strides}
    return O["cast"](_convolved(_around(x, x_zero, 1), _around(w, w_zero, 0), settings), "int32")


@row("QLinearConv")
def conv_quantized(x: Any, x_scale: Any, x_zero: Any, w: Any, w_scale: Any, w_zero: Any, y_scale: Any, y_zero: Any,
                   bias: Any = None, *, auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
                   kernel_shape: Any = None, pads: Any = None, strides: Any = None) -> Any:
    settings = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "pads": pads, "strides": strides}
    sums = _convolved(_around(x, x_zero, 1), _around(w, w_zero, 0), settings)
    channels = (1, -1, *(1,) * (x.ndim - 2))
    if bias is not None:
        sums = sums + O["reshape"](O["cast"](bias, "float64"), channels)
    scale = O["reshape"](w_scale, channels) if w_scale.ndim == 1 else w_scale
    scale = O["cast"](x_scale * scale / y_scale, "float32")
    return saturated(O["round"](O["cast"](sums, "float32") * scale) + O["cast"](y_zero, "float32"), y_zero.dtype)
