"""Products of numbers that DequantizeLinear makes, by their integers of 8 bits.

With two scales, the product of (x - zero) * scale and w * scale is that of x and w, less zero times the sums of w, by
both scales. The integers are added exactly, where ONNX's own definition of a quantised model adds floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from mlc.frontend.functions import quantized
from mlc.frontend.onnx.values import Steps, StepsOf, Stored, axis_of, known, tensor
from mlc.frontend.tensor import OPERATIONS as O


def convolution(x: Any, w: Any, bias: Any, strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int],
                group: int, steps: StepsOf) -> Any:
    """The convolution, if both are made of bytes and each output has several input channels; else None."""
    image, filters = _activations(steps.of(x)), _weights(steps.of(w), 0)
    if image is None or filters is None or w.shape[1] == 1 or not _fits(w.shape[1:]):
        return None
    total = quantized.conv_integer(image[0], filters[0], image[1], tuple(strides), tuple(pads), tuple(dilations), group)
    sums = O["sum"](O["cast"](filters[0], "int32"), tuple(range(1, w.ndim)), dtype="int32")
    return _scaled(total, sums, image, filters[1], bias, (-1, *(1,) * (w.ndim - 2)))


def product(x: Any, w: Any, bias: Any, steps: StepsOf, transposed: bool = False) -> Any:
    """x @ w + bias, or x @ w.T + bias, if both are made of bytes, and w is a matrix; else None."""
    rows, columns = _activations(steps.of(x)), _weights(steps.of(w), 0 if transposed else 1)
    if rows is None or columns is None or w.ndim != 2 or x.ndim < 2 or not _fits(x.shape[-1:]):
        return None
    matrix = columns[0] if transposed else O["transpose"](columns[0], 0, 1)
    total = quantized.linear_integer(rows[0], matrix)
    sums = O["sum"](O["cast"](matrix, "int32"), (1,), dtype="int32")
    return _scaled(total, sums, rows, columns[1], bias, (-1,))


def _fits(shape: Sequence[Any]) -> bool:
    """Whether the sum of so many products surely fits in int32, as it does in float32."""
    return all(isinstance(n, int) for n in shape) and prod(shape) <= quantized.MOST_TERMS


def _activations(found: Steps | None) -> tuple[Any, Any, Any] | None:
    """Steps as uint8, their zero point, and their scale; None if they are no bytes of one scale."""
    if found is None or found.x.dtype.name not in ("uint8", "int8") or found.scale.ndim > 1 or (
            found.scale.ndim == 1 and found.scale.shape[0] != 1):
        return None
    zero = O["zeros"]((), dtype=found.x.dtype) if found.zero is None else O["reshape"](tensor(found.zero), ())
    x = found.x
    if x.dtype.name == "int8":                             # the other byte of an instruction is the one with a sign
        x, zero = (O["cast"](O["cast"](v, "int32") + 128, "uint8") for v in (x, zero))
    return x, zero, O["reshape"](found.scale, ())


def _weights(found: Steps | None, axis: int) -> tuple[Any, Any] | None:
    """Weights of int8 and their scales, of all or along an axis; None if a zero point may be another number than 0."""
    if found is None or found.x.dtype.name != "int8":
        return None
    if found.zero is not None and not (isinstance(found.zero, Stored | np.ndarray)
                                       and not known(found.zero, "a zero point").any()):
        return None
    if found.scale.ndim == 1 and found.scale.shape[0] != 1 and axis_of(found.axis, found.x.ndim) != axis:
        return None
    return (found.x, found.scale) if found.scale.ndim <= 1 else None


def _scaled(total: Any, sums: Any, x: tuple[Any, Any, Any], scale: Any, bias: Any, outputs: tuple[int, ...]) -> Any:
    """Numbers of integers, with an entry of `sums`, of a scale and of the bias for each output."""
    offset = O["reshape"](sums, outputs) * O["cast"](x[1], "int32")
    factor = x[2] * (O["reshape"](scale, outputs) if scale.ndim else scale)
    out = O["cast"](total - offset, "float32") * factor
    return out if bias is None else out + O["reshape"](bias, outputs if bias.ndim == 1 else bias.shape)
