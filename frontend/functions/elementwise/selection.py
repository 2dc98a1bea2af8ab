"""Selection of elements: by a condition, by size, between limits."""

from __future__ import annotations

import math
import sys

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import binary, compare
from mlc.frontend.functions.elementwise.bits import logical_or
from mlc.frontend.functions.elementwise.comparison import isnan
from mlc.frontend.operands import cast, full, kind, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import ScalarType, bf16, f16, f32, f64

LARGEST: dict[ScalarType, float] = {
    f16: 65504.0, bf16: (2 - 2.0**-7) * 2.0**127, f32: (2 - 2.0**-23) * 2.0**127, f64: sys.float_info.max,
}
"""Largest finite number of each float type."""


@operation()
def nan_to_num(input: Operand, nan: Operand = 0.0, posinf: Operand = None, neginf: Operand = None) -> Tensor:
    """The elements with NaN and infinities replaced by finite numbers.

    Args:
        input: Tensor or number; integers and bools stay as they are, and of complex numbers each part is replaced.
        nan: Number or tensor in place of NaN; 0 if None.
        posinf: That in place of inf; the greatest finite number of the dtype by default.
        neginf: That in place of -inf; the least finite number of the dtype by default.

    Returns:
        Tensor of the shape and dtype of `input`, promoted with tensors that replace.

    Example:
        >>> mlc.nan_to_num(mlc.tensor([1.0, float("nan"), float("inf")]), posinf=9.0)
        tensor([1., 0., 9.], dtype=mlc.float32)
    """
    x = tracer(input)
    if x.type.dtype.is_complex:
        parts = (nan_to_num(emit(part, x), nan, posinf, neginf) for part in (T.Real, T.Imag))
        return emit(T.Complex, *map(tracer, parts))  # type: ignore[no-any-return]
    if not x.type.dtype.is_float:
        return x
    nan = 0.0 if nan is None else nan
    largest = LARGEST[x.type.dtype]
    out = where(isnan(x), nan, x)
    out = where(x == math.inf, largest if posinf is None else posinf, out)
    return where(x == -math.inf, -largest if neginf is None else neginf, out)


@operation()
def maximum(input: Operand, other: Operand) -> Tensor:
    """max(input, other), elementwise; NaN if either is NaN.

    Where both are equal, each gets half of the derivative. +0 is greater than -0, as in IEEE 754-2019.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.maximum(mlc.tensor([1.0, 5.0]), mlc.tensor([3.0, 2.0]))
        tensor([3., 5.], dtype=mlc.float32)
    """
    return binary(T.Maximum, input, other)


@operation()
def minimum(input: Operand, other: Operand) -> Tensor:
    """min(input, other), elementwise; NaN if either is NaN.

    Where both are equal, each gets half of the derivative. -0 is less than +0, as in IEEE 754-2019.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.minimum(mlc.tensor([1.0, 5.0]), mlc.tensor([3.0, 2.0]))
        tensor([1., 2.], dtype=mlc.float32)
    """
    return binary(T.Minimum, input, other)


@operation()
def fmax(input: Operand, other: Operand) -> Tensor:
    """max(input, other), elementwise; a number wins over NaN.

    Where both are equal, the derivative goes to `input`.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; NaN only where both are.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.fmax(mlc.tensor([1.0, float("nan")]), mlc.tensor([3.0, 2.0]))
        tensor([3., 2.], dtype=mlc.float32)
    """
    return _greater(input, other, "ge")


@operation()
def fmin(input: Operand, other: Operand) -> Tensor:
    """min(input, other), elementwise; a number wins over NaN.

    Where both are equal, the derivative goes to `input`.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; NaN only where both are.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.fmin(mlc.tensor([1.0, float("nan")]), mlc.tensor([3.0, 2.0]))
        tensor([1., 2.], dtype=mlc.float32)
    """
    return _greater(input, other, "le")


def _greater(input: Operand, other: Operand, wins: str) -> Tensor:
    """`input` where `input wins other` or `other` is NaN, else `other`; the derivative goes to the selected operand."""
    a, b = together(input, other)
    taken = compare(wins, a, b)
    return where(logical_or(taken, isnan(b)) if b.type.dtype.is_float else taken, a, b)


@operation()
def where(condition: Operand, input: Operand, other: Operand) -> Tensor:
    """input where the condition holds, other elsewhere"""
    a, b = together(input, other)
    c = tracer(condition)
    if not c.type.dtype.is_bool:
        raise UserTypeError(f"the condition is of {c.dtype}, expected mlc.bool", code="MLC0362",
                            hint="compare it: condition != 0")
    return emit(T.Select, c, a, b, weak=a.weak)  # type: ignore[no-any-return]


@operation(stored={"value": "input"})
def masked_fill(input: Operand, mask: Operand, value: Operand) -> Tensor:
    """`value` where the mask holds, `input` elsewhere.

    result = where(mask, value, input). The derivative by `input` is 0 where the mask holds, whatever the element was. A
    mask of attention fills with -inf before `softmax`.

    Args:
        input: Tensor.
        mask: Tensor of bools whose shape broadcasts with that of `input`.
        value: Number or 0-d tensor.

    Returns:
        Tensor of the broadcast shape and the dtype of `input`.

    Raises:
        UserError: `mask` is not of bool (MLC0362), `value` is of a higher kind than `input`, as a float in integers
            (MLC0352), an integer that its dtype does not hold (MLC0348), no number (MLC0364), or the shapes do not
            broadcast (MLC0111).

    Example:
        >>> mlc.masked_fill(mlc.tensor([1.0, 2.0]), mlc.tensor([True, False]), -1)
        tensor([-1.,  2.], dtype=mlc.float32)
    """
    x, v = tracer(input), tracer(value)
    if v.ndim:
        raise UserError(f"the value has {v.ndim} dimensions, expected a number or a 0-d tensor", code="MLC0364",
                        hint="mlc.where(mask, value, x) takes several values")
    if kind(v.type.dtype) > kind(x.type.dtype):
        raise UserTypeError(f"a tensor of {x.dtype} cannot be filled with {v.dtype}", code="MLC0352")
    return where(mask, cast(v, x.type.dtype), x)


@operation(stored={"min": "input", "max": "input"})
def clamp(input: Operand, min: Operand = None, max: Operand = None) -> Tensor:
    """min(max(input, min), max), elementwise.

    NaN stays NaN, and a limit that is NaN gives it. Where `min` is above `max`, the result is `max`. At a limit the
    whole derivative goes to `input`.

    Args:
        input: Tensor or number.
        min: Lower limit, a number or a tensor that broadcasts; None for none.
        max: Upper limit, likewise.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: neither limit is given (MLC0353), an integer limit is beyond the dtype (MLC0348), or the shapes do
            not broadcast (MLC0111).

    Example:
        >>> mlc.clamp(mlc.tensor([-2.0, 0.5, 3.0]), 0, 1)
        tensor([0. , 0.5, 1. ], dtype=mlc.float32)
    """
    if min is None and max is None:
        raise UserError("needs min, max or both", code="MLC0353")
    out = together(input, *(limit for limit in (min, max) if limit is not None))[0]
    if min is not None:
        out = _limited(out, min, "lt")
    return out if max is None else _limited(out, max, "gt")


def _limited(x: Tracer, limit: Operand, loses: str) -> Tracer:
    """`limit` where `x loses limit` or it is NaN, else x; where they are equal, the derivative goes to x alone."""
    a, b = together(x, limit)
    outside = compare(loses, a, b)
    if b.type.dtype.is_float and (isinstance(limit, Tensor) or limit != limit):
        outside = logical_or(outside, isnan(b))
    return tracer(where(outside, b, a))


@operation(stored={"min": "input"})
def clamp_min(input: Operand, min: Operand) -> Tensor:
    """max(input, min), elementwise; `clamp` with a lower limit only.

    Args:
        input: Tensor or number.
        min: Number or tensor that broadcasts.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: `min` is an integer beyond the dtype of `input` (MLC0348), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.clamp_min(mlc.tensor([-2.0, 0.5]), 0)
        tensor([0. , 0.5], dtype=mlc.float32)
    """
    return clamp(input, min)


@operation(stored={"max": "input"})
def clamp_max(input: Operand, max: Operand) -> Tensor:
    """min(input, max), elementwise; `clamp` with an upper limit only.

    Args:
        input: Tensor or number.
        max: Number or tensor that broadcasts.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: `max` is an integer beyond the dtype of `input` (MLC0348), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.clamp_max(mlc.tensor([-2.0, 2.5]), 1)
        tensor([-2.,  1.], dtype=mlc.float32)
    """
    return clamp(input, None, max)


def ones_where(condition: Tensor, like: Tracer) -> Tensor:
    """1 where the condition holds and 0 elsewhere, in the element type of `like`"""
    return where(condition, full(1, like), full(0, like))
