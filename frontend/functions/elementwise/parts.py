"""The parts of numbers: real and imaginary ones, of which real tensors have the first, mantissa and exponent."""

from __future__ import annotations

import math
from typing import NamedTuple

from mlc.frontend.functions.elementwise.arithmetic import detach
from mlc.frontend.functions.elementwise.comparison import isfinite, isnan
from mlc.frontend.functions.elementwise.exponential import ldexp, log2
from mlc.frontend.functions.elementwise.rounding import floor
from mlc.frontend.functions.elementwise.selection import maximum, where
from mlc.frontend.functions.elementwise.sign import abs, sign
from mlc.frontend.operands import cast, full, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserTypeError
from mlc.ir.types import FloatType, bf16, f16, f32, f64, i32, i64

PRECISION = {f64: (53, -1074), f32: (24, -149), f16: (11, -24), bf16: (8, -133)}
"""Of each float type the bits of the significand, and the exponent of the least positive number."""


class Frexp(NamedTuple):
    """Result of `frexp`."""

    mantissa: Tensor
    exponent: Tensor


def _exponent(x: Tracer) -> Tensor:
    """The e of |x| = m * 2 ** e with 1/2 <= m < 1, as float64; 0 where x is 0, infinite or NaN."""
    size = abs(cast(x, f64))
    ordinary = isfinite(size) & (size > 0)
    size = where(ordinary, size, 0.5)
    e = floor(log2(size)) + 1.0                            # may be off by one, where the logarithm is rounded
    m = ldexp(size, cast(tracer(-e), i64))
    return where(ordinary, where(m >= 1.0, e + 1.0, where(m < 0.5, e - 1.0, e)), 0.0)


@operation()
def frexp(input: Operand) -> Frexp:
    """Mantissa and exponent of each element: input = mantissa * 2 ** exponent with 1/2 <= |mantissa| < 1.

    Of 0, infinities and NaN the mantissa is the number itself, and the exponent 0.

    Args:
        input: Tensor of floats.

    Returns:
        Named tuple of `mantissa`, of the dtype of `input`, and `exponent`, int32.

    Raises:
        UserTypeError: `input` holds no floats (MLC0359).

    Example:
        >>> mlc.frexp(mlc.tensor([6.0, -0.5]))
        Frexp(mantissa=tensor([ 0.75, -0.5 ], dtype=mlc.float32), exponent=tensor([3, 0], dtype=mlc.int32))
    """
    x = tracer(input)
    if not x.type.dtype.is_float:
        raise UserTypeError("frexp is only defined on floats", code="MLC0359", hint="cast it first: x.float()")
    e = tracer(detach(_exponent(x)))
    return Frexp(ldexp(x, cast(tracer(-e), i64)), cast(e, i32))


@operation()
def nextafter(input: Operand, other: Operand) -> Tensor:
    """The next number of the dtype after each element of `input` in the direction of `other`.

    The derivative by `input` is 1, and that by `other` 0.

    Args:
        input: Tensor of floats.
        other: Tensor whose shape broadcasts with that of `input`.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).
        UserTypeError: The operands hold no floats (MLC0359).

    Example:
        >>> mlc.nextafter(mlc.tensor([1.0, 0.0]), mlc.tensor([2.0, -1.0])) - mlc.tensor([1.0, 0.0])
        tensor([ 1.1920929e-07, -1.4012985e-45], dtype=mlc.float32)
    """
    a, b = together(input, other)
    dtype = a.type.dtype
    if not isinstance(dtype, FloatType):
        raise UserTypeError("nextafter is only defined on floats", code="MLC0359", hint="cast it first: x.float()")
    bits, least = PRECISION[dtype]
    x, y = cast(a, f64), cast(tracer(detach(b)), f64)
    e = _exponent(a)
    at_border = abs(x) == ldexp(full(1.0, tracer(x)), cast(tracer(e - 1.0), i64))
    towards_zero = (sign(y - x) * sign(x)) < 0             # below a power of two, numbers are twice as dense
    e = where(at_border & towards_zero, e - 1.0, e) - float(bits)
    step = ldexp(full(1.0, tracer(x)), cast(tracer(where(x == 0, float(least), maximum(e, float(least)))), i64))
    top = math.ldexp(2.0 - math.ldexp(1.0, 1 - bits), {f64: 1023, f32: 127, f16: 15, bf16: 127}[dtype])
    out = where(isfinite(x), x + detach(where(y > x, step, -step)), where(x > 0, top, -top))
    return cast(tracer(where(isnan(x) | isnan(y), x + y, where(x == y, y, out))), dtype)
