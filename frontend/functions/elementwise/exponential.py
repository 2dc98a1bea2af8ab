"""Exponentials, logarithms, powers and the error function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import binary, numeric, unary
from mlc.frontend.functions.elementwise.arithmetic import mul, reciprocal, square
from mlc.frontend.functions.elementwise.selection import clamp, maximum, where
from mlc.frontend.functions.elementwise.sign import abs
from mlc.frontend.operands import cast, floating, rounded_once, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserTypeError
from mlc.ir.types import c128, f32, f64, i64


@operation(autocast="fp32_on_cuda")
def exp(input: Operand) -> Tensor:
    """e ** x, for each element.

    exp(-inf) is 0, and results above the greatest float are inf; for float32 that begins at x = 88.73. The derivative
    is the result itself. `mlc.expm1` is accurate for results near 1.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.exp(mlc.tensor([0.0, 1.0]))
        tensor([1.       , 2.7182817], dtype=mlc.float32)
    """
    return unary(T.Exp, floating(input))


@operation()
def exp2(input: Operand) -> Tensor:
    """2 ** x, for each element.

    Exact for integers within the range of the dtype. exp2(-inf) is 0, and results above the greatest float are inf. The
    derivative is ln(2) * 2 ** x.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.exp2(mlc.tensor([3.0, -1.0]))
        tensor([8. , 0.5], dtype=mlc.float32)
    """
    return unary(T.Exp2, floating(input))


@operation(autocast="fp32_on_cuda")
def expm1(input: Operand) -> Tensor:
    """e ** x - 1, for each element, accurate near 0.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.expm1(mlc.tensor([0.0, 1e-8]))
        tensor([0.e+00, 1.e-08], dtype=mlc.float32)
    """
    return unary(T.Expm1, floating(input))


@operation(autocast="fp32_on_cuda")
def log(input: Operand) -> Tensor:
    """ln(x), the natural logarithm of each element: -inf at 0, NaN below.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.log(mlc.tensor([1.0, 10.0, 0.0]))
        tensor([0.       , 2.3025851,      -inf], dtype=mlc.float32)
    """
    return unary(T.Log, floating(input))


@operation(autocast="fp32_on_cuda")
def log2(input: Operand) -> Tensor:
    """log2(x), the logarithm to base 2 of each element: -inf at 0, NaN below.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.log2(mlc.tensor([8.0, 0.5]))
        tensor([ 3., -1.], dtype=mlc.float32)
    """
    return unary(T.Log2, floating(input))


@operation(autocast="fp32_on_cuda")
def log10(input: Operand) -> Tensor:
    """log10(x), the logarithm to base 10 of each element: -inf at 0, NaN below.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.log10(mlc.tensor([1000.0, 0.1]))
        tensor([ 3., -1.], dtype=mlc.float32)
    """
    return unary(T.Log10, floating(input))


@operation(autocast="fp32_on_cuda")
def log1p(input: Operand) -> Tensor:
    """ln(1 + x), for each element, accurate near 0: -inf at -1, NaN below.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.log1p(mlc.tensor([0.0, 1e-8]))
        tensor([0.e+00, 1.e-08], dtype=mlc.float32)
    """
    return unary(T.Log1p, floating(input))


@operation()
def sqrt(input: Operand) -> Tensor:
    """sqrt(x), the square root of each element: NaN below 0.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.sqrt(mlc.tensor([4.0, 2.0]))
        tensor([2.       , 1.4142135], dtype=mlc.float32)
    """
    return unary(T.Sqrt, floating(input))


@operation(autocast="fp32_on_cuda")
def rsqrt(input: Operand) -> Tensor:
    """1 / sqrt(x), for each element: inf at 0, NaN below.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.rsqrt(mlc.tensor([4.0, 0.25]))
        tensor([0.5, 2. ], dtype=mlc.float32)
    """
    return unary(T.Rsqrt, floating(input))


@operation()
def sigmoid(input: Operand) -> Tensor:
    """1 / (1 + e ** -x), the logistic function of each element.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats in [0, 1], of the shape of `input`.

    Example:
        >>> mlc.sigmoid(mlc.tensor([0.0, 2.0]))
        tensor([0.5      , 0.8807971], dtype=mlc.float32)
    """
    return unary(T.Sigmoid, floating(input))


@operation()
def logit(input: Operand, eps: float | None = None) -> Tensor:
    """ln(x / (1 - x)), the inverse of the logistic function.

    Without `eps`, 0 gives -inf, 1 gives inf, and NaN comes from what is outside [0, 1].

    Args:
        input: Tensor or number; integers become float32.
        eps: If given, elements below `eps` are raised to it first, and others above 1 - eps lowered to that.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.logit(mlc.tensor([0.5, 0.9]))
        tensor([0.       , 2.1972244], dtype=mlc.float32)
        >>> mlc.logit(mlc.tensor([0.0]), eps=0.1)
        tensor([-2.1972246], dtype=mlc.float32)
    """
    x = floating(input)
    if eps is not None:
        x = floating(where(x < eps, eps, clamp(x, None, 1 - eps)))
    return rounded_once(lambda x: log(x) - log1p(-x), x)


@operation()
def erf(input: Operand) -> Tensor:
    """2 / sqrt(pi) * integral from 0 to x of e ** -t**2 dt, the error function (DLMF 7.2.1).

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats in [-1, 1], of the shape of `input`.

    Example:
        >>> mlc.erf(mlc.tensor([0.0, 0.5, 10.0]))
        tensor([0.       , 0.5204999, 1.       ], dtype=mlc.float32)
    """
    return unary(T.Erf, floating(input))


@operation()
def erfc(input: Operand) -> Tensor:
    """1 - erf(x), the complementary error function (DLMF 7.2.2), accurate also where it is small.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats in [0, 2], of the shape of `input`.

    Example:
        >>> mlc.erfc(mlc.tensor([0.0, 5.0]))
        tensor([1.0000000e+00, 1.5374598e-12], dtype=mlc.float32)
    """
    return unary(T.Erfc, floating(input))


@operation(literal=("exponent", "input"), autocast="fp32_on_cuda")
def pow(input: Operand, exponent: Operand) -> Tensor:
    """input ** exponent, elementwise.

    Exponents 2, 3, 0.5 and -1 that are Python numbers become products, square roots and quotients. A negative float to
    a power that is no whole number gives NaN; anything to the power 0 gives 1. Integer powers wrap around; those to a
    negative power out of a tensor are 0, but for bases 1 and -1.

    Args:
        input: Tensor or number.
        exponent: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: an integer is raised to a negative Python integer (MLC0361), both are of bool (MLC0359), or the
            shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.pow(mlc.tensor([1.0, 2.0, 3.0]), 3)
        tensor([ 1.,  8., 27.], dtype=mlc.float32)
        >>> mlc.pow(2, mlc.tensor([1, 2, 3]))
        tensor([2, 4, 8], dtype=mlc.int64)
    """
    small = {0.5: sqrt, 1: None, 2: square, -1: reciprocal}
    if isinstance(exponent, int | float) and not isinstance(exponent, bool) and not isinstance(input, int | float):
        base = tracer(input)
        input = cast(base, i64) if base.type.dtype.is_bool and isinstance(exponent, int) else base
    if isinstance(exponent, int | float) and not isinstance(exponent, bool) and exponent in small:
        x = tracer(input)
        if not x.type.dtype.is_inexact and isinstance(exponent, float):
            x = floating(x)
        if x.type.dtype.is_inexact or exponent in (1, 2):
            f = small[exponent]
            return x if f is None else f(x)
    if isinstance(exponent, int) and not isinstance(exponent, bool) and exponent == 3:
        x = tracer(input)
        return x * x * x
    a, b = together(input, exponent)
    numeric(a, "pow")
    if isinstance(exponent, int) and exponent < 0 and not a.type.dtype.is_inexact:
        raise UserTypeError(f"an integer to the power {exponent} is no integer", code="MLC0361",
                            hint="use a float: x ** float(n)")
    return binary(T.Pow, a, b)


@operation()
def logaddexp(input: Operand, other: Operand) -> Tensor:
    """ln(e ** input + e ** other), elementwise, without overflow.

    The greater operand is taken out of the sum: max(a, b) + log1p(e ** -|a - b|).

    Args:
        input: Tensor or number; integers become float32.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.logaddexp(mlc.tensor([0.0, 1000.0]), mlc.tensor([0.0, 1000.0]))
        tensor([6.9314718e-01, 1.0006932e+03], dtype=mlc.float32)
    """
    x, y = together(input, other, floating=True)
    if x.type.dtype.is_complex:
        later = emit(T.Compare, "lt", emit(T.Real, x), emit(T.Real, y))
        return where(later, y, x) + log1p(exp(where(later, x - y, y - x)))
    return rounded_once(lambda a, b: maximum(a, b) + log1p(exp(_minus_distance(a, b))), x, y)


@operation()
def logaddexp2(input: Operand, other: Operand) -> Tensor:
    """log2(2 ** input + 2 ** other), elementwise, without overflow.

    Args:
        input: Tensor or number; integers become float32.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.logaddexp2(mlc.tensor([3.0, 1000.0]), mlc.tensor([3.0, 1000.0]))
        tensor([   4., 1001.], dtype=mlc.float32)
    """
    return rounded_once(lambda a, b: maximum(a, b) + log1p(exp2(_minus_distance(a, b))) / math.log(2),
                        *together(input, other, floating=True))


def _minus_distance(a: Tracer, b: Tracer) -> Tensor:
    """-|a - b|, and 0 if both are the same infinity"""
    return where(a == b, 0.0, -abs(a - b))


@operation()
def float_power(input: Operand, exponent: Operand) -> Tensor:
    """input ** exponent, elementwise, in float64.

    Integers and floats of lower precision are converted to float64 first, so that nothing wraps around or overflows
    early. A negative number to a power that is no integer is NaN.

    Args:
        input: Tensor or number.
        exponent: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of float64, or complex128 if an operand is complex, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.float_power(mlc.tensor([2, 4]), -1)
        tensor([0.5 , 0.25], dtype=mlc.float64)
    """
    a, b = tracer(input), tracer(exponent)
    wide = c128 if a.type.dtype.is_complex or b.type.dtype.is_complex else f64
    return pow(cast(a, wide), cast(b, wide))


@operation()
def xlogy(input: Operand, other: Operand) -> Tensor:
    """input * ln(other), elementwise, and 0 where input is 0, unless `other` is NaN.

    Args:
        input: Tensor or number; integers become float32.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.xlogy(mlc.tensor([0.0, 2.0]), mlc.tensor([0.0, 1.0]))
        tensor([0., 0.], dtype=mlc.float32)
    """
    return times_log(input, other, log, 1.0, 0.0)


def times_log(input: Operand, other: Operand, f: Callable[[Any], Tensor], root: float, pole: float) -> Tensor:
    """input * f(other), and 0 where input is 0, for a logarithm f that is 0 at its `root` and -inf at its `pole`."""
    a, b = together(input, other, floating=True)
    zero, steep = (a == 0) & (b <= pole), (a == 0) & (b == math.inf)
    out = where(zero, 0.0, a * f(where(zero | steep, root, b)))
    return where(steep, sqrt(where(steep, a, 1.0)), out)   # which is 0, with an infinite derivative


@operation()
def ldexp(input: Operand, other: Operand) -> Tensor:
    """input * 2 ** other, elementwise.

    With an integer `other` the product is right also where 2 ** other alone is 0 or infinite.

    Args:
        input: Tensor or number; integers become float32.
        other: Tensor or number, the exponent; its shape broadcasts with that of `input`.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.ldexp(mlc.tensor([0.75, 1.0]), mlc.tensor([2, -1]))
        tensor([3. , 0.5], dtype=mlc.float32)
    """
    e = tracer(other)
    x = floating(input)
    if e.type.dtype.is_inexact or x.type.dtype.is_complex:
        return rounded_once(lambda x, e: mul(x, exp2(e)), *together(input, floating(e)))
    power = cast(e, f64 if x.type.dtype == f64 else f32)   # narrower types do not hold every exponent
    return rounded_once(lambda x: _in_steps(x, power), x)


def _in_steps(x: Tracer, e: Tracer) -> Tensor:
    """x * 2 ** e, by three finite factors. Only the last one, the farthest from 1, rounds."""
    down, up = (-969, 1023) if e.type.dtype == f64 else (-102, 127)
    e = tracer(clamp(e, 3 * down, 3 * up))                 # beyond, the product is 0 or infinite anyway
    for n in (2, 1):
        rest = tracer(clamp(e, n * down, n * up))
        x, e = tracer(mul(x, exp2(e - rest))), rest
    return mul(x, exp2(e))
