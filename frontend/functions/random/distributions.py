"""Samples from continuous distributions."""

from __future__ import annotations

import math
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.dtypes import DType, as_dtype, as_ir, float32
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.random.keys import Shape, bits_from, constant_like
from mlc.frontend.functions.trigonometry import tan
from mlc.frontend.methods import listed
from mlc.frontend.operands import cast, floating, shape_of, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserTypeError
from mlc.ir.types import FloatType, bf16, f16, f32, f64, i32, i64, ui32, ui64

DIGITS = {f16: 11, bf16: 8, f32: 24, f64: 53}
"""Binary digits of the floats drawn in [0, 1): the precision of the type."""


def float_type(dtype: DTypeLike) -> FloatType:
    wanted = as_ir(dtype)
    if not isinstance(wanted, FloatType):
        raise UserTypeError(f"random numbers of {wanted} are not floats", code="MLC0359", hint="use randint")
    return wanted


def _parts_of(dtype: DTypeLike) -> DType | None:
    """The dtype of the parts of a complex dtype; None of any other."""
    wanted = as_dtype(dtype)
    return wanted.to_real() if wanted.is_complex else None


def _between(unit: Tracer, low: Operand, high: Operand) -> Tensor:
    """Numbers of [0, 1) scaled to [low, high)."""
    if isinstance(low, int | float) and isinstance(high, int | float) and (low, high) == (0, 1):
        return unit
    return cast(tracer(E.add(E.mul(unit, E.sub(high, low)), low)), unit.type.dtype)


def unit_interval(key: Operand, shape: Shape, dtype: FloatType) -> Tracer:
    """Multiples of 2^-digits in [0, 1)."""
    digits = DIGITS[dtype]
    wide, word = (64, ui64) if dtype == f64 else (32, ui32)
    drawn = bits_from(key, shape, word)
    whole = cast(tracer(E.bitwise_right_shift(drawn, constant_like(wide - digits, drawn))), i64 if wide == 64 else i32)
    return tracer(E.mul(cast(whole, dtype), 2.0 ** -digits))


@operation(name="random.uniform", static=("key",))
def uniform(key: Operand, shape: Shape = (), low: Operand = 0.0, high: Operand = 1.0,
            dtype: DTypeLike = float32) -> Tensor:
    """Numbers uniformly distributed in [low, high).

    In [0, 1) they are multiples of 2^-24 in float32 and of 2^-53 in float64. Rounding may give `high` in other
    intervals.

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        low: Lower end, a number or a tensor that broadcasts.
        high: Upper end, likewise.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`, broadcast with the ends.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.uniform(mlc.random.key(0), (2,)).shape
        (2,)
    """
    if (parts := _parts_of(dtype)) is not None:
        both = uniform(key, (*shape_of(shape), 2), dtype=parts)
        return _between(emit(T.ViewAsComplex, tracer(both)), low, high)
    return _between(unit_interval(key, shape, float_type(dtype)), low, high)


@operation(name="random.normal", static=("key",))
def normal(key: Operand, shape: Shape = (), mean: Operand = 0.0, std: Operand = 1.0,
           dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the normal distribution: mean + std * sqrt(2) * erfinv(u), for u uniform in (-1, 1).

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        mean: Mean, a number or a tensor that broadcasts.
        std: Standard deviation, likewise.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`, broadcast with mean and deviation.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.normal(mlc.random.key(0), (2, 3)).shape
        (2, 3)
    """
    if (parts := _parts_of(dtype)) is not None:            # each has half of the variance
        both = normal(key, (*shape_of(shape), 2), 0.0, math.sqrt(0.5), parts)
        return E.add(E.mul(emit(T.ViewAsComplex, tracer(both)), std), mean)
    wanted = float_type(dtype)
    wide = f64 if wanted == f64 else f32
    digits = DIGITS[wide]
    # The middles of 2^digits intervals would need a digit more: of the lower half they are exact, and so mirrored.
    unit = unit_interval(key, shape, wide)
    low = unit < 0.5
    half = E.where(low, unit, unit - 0.5) + 2.0 ** -(digits + 1)          # in (0, 0.5)
    size = emit(T.ErfInv, 1 - 2 * half) * math.sqrt(2)
    drawn = E.where(low, E.neg(size), size)
    return cast(tracer(E.add(E.mul(drawn, std), mean)), wanted)


@operation(name="random.rand", static=("key",))
def rand(key: Operand, *size: Any, dtype: DTypeLike = float32) -> Tensor:
    """Numbers uniformly distributed in [0, 1), as `uniform(key, size)`.

    Args:
        key: Random key, a tensor of two uint32.
        size: Sizes, as separate arguments or as one sequence.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.rand(mlc.random.key(0), 2, 3).shape
        (2, 3)
    """
    return uniform(key, listed(size), dtype=dtype)


@operation(name="random.randn", static=("key",))
def randn(key: Operand, *size: Any, dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the standard normal distribution, as `normal(key, size)`.

    Args:
        key: Random key, a tensor of two uint32.
        size: Sizes, as separate arguments or as one sequence.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.randn(mlc.random.key(0), 2, 3).shape
        (2, 3)
    """
    return normal(key, listed(size), dtype=dtype)


@operation(name="random.rand_like", static=("key",))
def rand_like(key: Operand, input: Operand, *, dtype: DTypeLike = None) -> Tensor:
    """Numbers uniformly distributed in [0, 1), in the shape of a tensor.

    Args:
        key: Random key, a tensor of two uint32.
        input: Tensor that tells the shape.
        dtype: Float dtype of the result; that of `input` by default.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `key` is no random key (MLC0370), or the dtype is no float (MLC0359).

    Example:
        >>> mlc.random.rand_like(mlc.random.key(0), mlc.ones(2, 3)).shape
        (2, 3)
    """
    x = tracer(input)
    return uniform(key, x.shape, dtype=x.dtype if dtype is None else dtype)


@operation(name="random.randn_like", static=("key",))
def randn_like(key: Operand, input: Operand, *, dtype: DTypeLike = None) -> Tensor:
    """Numbers of the standard normal distribution, in the shape of a tensor.

    Args:
        key: Random key, a tensor of two uint32.
        input: Tensor that tells the shape.
        dtype: Float dtype of the result; that of `input` by default.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `key` is no random key (MLC0370), or the dtype is no float (MLC0359).

    Example:
        >>> mlc.random.randn_like(mlc.random.key(0), mlc.ones(2, 3)).shape
        (2, 3)
    """
    x = tracer(input)
    return normal(key, x.shape, dtype=x.dtype if dtype is None else dtype)


@operation(name="random.truncated_normal", static=("key",))
def truncated_normal(key: Operand, lower: Operand, upper: Operand, shape: Shape = (),
                     dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the standard normal distribution, given that they lie between two bounds.

    They are drawn by the inverse of the distribution function: sqrt(2) * erfinv(u), for u uniform in (erf(lower /
    sqrt(2)), erf(upper / sqrt(2))).

    Args:
        key: Random key, a tensor of two uint32.
        lower: Lower bound, a number or a tensor that broadcasts.
        upper: Upper bound, likewise.
        shape: Sizes of the result.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`, broadcast with the bounds.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.truncated_normal(mlc.random.key(0), -2.0, 2.0, (3,)).shape
        (3,)
    """
    wanted = float_type(dtype)
    wide = f64 if wanted == f64 else f32
    a, b = (cast(floating(x), wide) for x in (lower, upper))
    low, high = E.erf(a * math.sqrt(0.5)), E.erf(b * math.sqrt(0.5))
    drawn = emit(T.ErfInv, tracer(low + (high - low) * unit_interval(key, shape, wide))) * math.sqrt(2)
    return cast(tracer(E.minimum(E.maximum(drawn, a), b)), wanted)


@operation(name="random.exponential", static=("key",))
def exponential(key: Operand, shape: Shape = (), rate: Operand = 1.0, dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the exponential distribution, with density rate * e^(-rate x): -log1p(-u) / rate.

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        rate: Rate, a number or a tensor that broadcasts.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`, broadcast with the rate.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.exponential(mlc.random.key(0), (2,)).shape
        (2,)
    """
    drawn = E.neg(E.log1p(E.neg(unit_interval(key, shape, float_type(dtype)))))
    return cast(tracer(E.div(drawn, rate)), as_ir(dtype))


def gumbel_noise(key: Operand, shape: Shape, dtype: FloatType) -> Tensor:
    tiny = {f16: 2.0 ** -14, f64: 2.0 ** -1022}.get(dtype, 2.0 ** -126)
    return E.neg(E.log(E.neg(E.log(E.maximum(unit_interval(key, shape, dtype), tiny)))))


@operation(name="random.gumbel", static=("key",))
def gumbel(key: Operand, shape: Shape = (), dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the standard Gumbel distribution: -ln(-ln(u)), for u uniform in (0, 1).

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.gumbel(mlc.random.key(0), (2,)).shape
        (2,)
    """
    return gumbel_noise(key, shape, float_type(dtype))


@operation(name="random.laplace", static=("key",))
def laplace(key: Operand, shape: Shape = (), dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the Laplace distribution, with density e^-|x| / 2.

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.laplace(mlc.random.key(0), (2,)).shape
        (2,)
    """
    unit = unit_interval(key, shape, float_type(dtype))
    low = unit < 0.5
    size = E.neg(E.log1p(E.neg(2 * E.where(low, unit, unit - 0.5))))
    return E.where(low, size, E.neg(size))


@operation(name="random.cauchy", static=("key",))
def cauchy(key: Operand, shape: Shape = (), dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the Cauchy distribution, with density 1 / (pi (1 + x^2)): tan(pi (u - 1/2)), for u uniform.

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.cauchy(mlc.random.key(0), (2,)).shape
        (2,)
    """
    return tan((unit_interval(key, shape, float_type(dtype)) - 0.5) * math.pi)


@operation(autocast="fp32_on_cuda")
def erfinv(input: Operand) -> Tensor:
    """The inverse error function: the y with erf(y) = x; infinite at 1 and -1, NaN beyond.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.erfinv(mlc.tensor([0.0, 0.5, 1.0]))
        tensor([0.        , 0.47693628,        inf], dtype=mlc.float32)
    """
    return emit(T.ErfInv, floating(input))  # type: ignore[no-any-return]
