"""Fourier transforms along one dimension."""

from __future__ import annotations

import math
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.axes import axis, plain_int
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.shape import cat, flip, narrow, sliced
from mlc.frontend.operands import cast, floating, full, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import c64, c128, f32, f64

NORMS = ("forward", "backward", "ortho")


def real_operand(input: Operand) -> Tracer:
    """float32 or float64."""
    x = floating(input)
    if x.type.dtype.is_complex:
        raise UserError(f"a {x.type} is complex, and this is a transform of real numbers", code="MLC0364",
                        hint="mlc.fft.fft transforms complex numbers")
    return x if x.type.dtype in (f32, f64) else cast(x, f32)


def complex_operand(input: Operand) -> Tracer:
    """complex64 or complex128."""
    x = floating(input)
    return x if x.type.dtype.is_complex else cast(x, c128 if x.type.dtype == f64 and not x.weak else c64)


def pairs(x: Tracer) -> Tracer:
    """A complex tensor as floats with a last dimension of size 2, on which tensor.dft works."""
    return emit(T.ViewAsReal, x)  # type: ignore[no-any-return]


def of_pairs(x: Tensor) -> Tracer:
    return emit(T.ViewAsComplex, x)  # type: ignore[no-any-return]


def _with_zero(x: Tracer) -> Tracer:
    """Real numbers as complex ones."""
    real = reshape(x, [*x.shape, 1])
    return tracer(cat([real, full(0, x, real.shape)], -1))


def point_count(x: Tracer, n: Any, at: int) -> int:
    count = x.shape[at] if n is None else plain_int(n, "n")
    if not isinstance(count, int):
        raise UserError(f"a transform of {count} points needs a number that is known", code="MLC0365",
                        symbols=sizes.symbols(count))
    if count < 1:
        raise UserError(f"a transform of {count} points", code="MLC0360")
    return count


def resized(x: Tracer, n: int, at: int) -> Tracer:
    """Cut, or followed by zeros, to n elements along an axis."""
    size = x.shape[at]
    if size == n:
        return x
    if not isinstance(size, int):
        raise UserError(f"{size} elements are cut or padded to {n} only if their number is known", code="MLC0365",
                        symbols=sizes.symbols(size))
    if size > n:
        return tracer(narrow(x, at, 0, n))
    zeros = full(0, x, [n - size if i == at else d for i, d in enumerate(x.shape)])
    return tracer(cat([x, zeros], at))


def _scale(n: int, norm: str | None, inverse: bool) -> float:
    norm = "backward" if norm is None else norm
    if norm not in NORMS:
        raise UserError(f"norm = {norm!r}", code="MLC0360", hint="use one of " + ", ".join(NORMS))
    return 1 / math.sqrt(n) if norm == "ortho" else 1 / n if (norm == "backward") == inverse else 1.0


def dft(x: Tracer, at: int, norm: str | None, inverse: bool) -> Tracer:
    n = x.shape[at]
    scale = _scale(n, norm, inverse)
    out = emit(T.Dft, x, at, inverse)
    return tracer(out * scale) if scale != 1 else out


def _one(input: Operand, n: int | None, dim: int, norm: str | None, inverse: bool) -> Tensor:
    x = pairs(complex_operand(input))
    at = axis(dim, x.ndim - 1)
    return of_pairs(dft(resized(x, point_count(x, n, at), at), at, norm, inverse))


@operation(name="fft.fft", autocast="fp32")
def fft(input: Operand, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """sum_j x[j] e^(-2 pi i j k / n), the discrete Fourier transform along a dimension.

    Args:
        input: Tensor of shape (..., n); real ones are converted to complex.
        n: Number of points; the input is cut or followed by zeros. Its size by default.
        dim: The dimension; negative ones count from the last.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor of shape (..., n).

    Raises:
        UserError: `dim` is out of range (MLC0356), there are no points or `norm` is
            another string (MLC0360), or their number is symbolic (MLC0365).

    Example:
        >>> mlc.fft.fft(mlc.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=mlc.complex64)
    """
    return _one(input, n, dim, norm, False)


@operation(name="fft.ifft", autocast="fp32")
def ifft(input: Operand, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """sum_k x[k] e^(2 pi i j k / n) / n, the inverse discrete Fourier transform along a dimension.

    Args:
        input: Tensor of shape (..., n); real ones are converted to complex.
        n: Number of points; the input is cut or followed by zeros. Its size by default.
        dim: The dimension; negative ones count from the last.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor of shape (..., n).

    Raises:
        UserError: `dim` is out of range (MLC0356), there are no points or `norm` is
            another string (MLC0360), or their number is symbolic (MLC0365).

    Example:
        >>> mlc.fft.ifft(mlc.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([ 2.5+0.j , -0.5-0.5j, -0.5+0.j , -0.5+0.5j], dtype=mlc.complex64)
    """
    return _one(input, n, dim, norm, True)


@operation(name="fft.rfft", autocast="fp32")
def rfft(input: Operand, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform of real numbers along a dimension: its first n // 2 + 1 elements.

    The others are complex conjugates of these.

    Args:
        input: Real tensor of shape (..., n).
        n: Number of points; the input is cut or followed by zeros. Its size by default.
        dim: The dimension; negative ones count from the last.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor of shape (..., n // 2 + 1).

    Raises:
        UserError: `input` is complex (MLC0364), `dim` is out of range (MLC0356), there are no points or `norm` is
            another string (MLC0360), or their number is symbolic (MLC0365).

    Example:
        >>> mlc.fft.rfft(mlc.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([10.+0.j, -2.+2.j, -2.+0.j], dtype=mlc.complex64)
    """
    x = real_operand(input)
    at = axis(dim, x.ndim, scalar=False)
    count = point_count(x, n, at)
    x = resized(x, count, at)
    return of_pairs(narrow(dft(_with_zero(x), at, norm, False), at, 0, count // 2 + 1))


def _hermitian(x: Tracer, n: int, at: int) -> Tracer:
    """All n elements of a transform of real numbers, from the first n // 2 + 1, in pairs."""
    half = resized(x, n // 2 + 1, at)
    rest = tracer(flip(narrow(half, at, 1, n - n // 2 - 1), (at,)))
    real, imaginary = (sliced(rest, rest.ndim - 1, i, i + 1) for i in range(2))
    return tracer(cat([half, cat([real, E.neg(imaginary)], -1)], at))


def _real_part(x: Tracer) -> Tracer:
    return reshape(sliced(x, x.ndim - 1, 0, 1), x.shape[:-1])


def _double(x: Tracer, n: int | None, at: int) -> int:
    """The number of points of a real result."""
    if n is not None:
        return point_count(x, n, at)
    return point_count(x, 2 * (point_count(x, None, at) - 1), at)


@operation(name="fft.irfft", autocast="fp32")
def irfft(input: Operand, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft` along a dimension: real numbers from the first n // 2 + 1 elements of their transform.

    Args:
        input: Tensor of shape (..., n // 2 + 1); real ones are converted to complex.
        n: Number of points of the result; 2 * (size - 1) by default.
        dim: The dimension; negative ones count from the last.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Real tensor of shape (..., n).

    Raises:
        UserError: `dim` is out of range (MLC0356), there are no points or `norm` is
            another string (MLC0360), or their number is symbolic (MLC0365).

    Example:
        >>> mlc.fft.irfft(mlc.fft.rfft(mlc.tensor([1.0, 2.0, 3.0, 4.0])))
        tensor([1., 2., 3., 4.], dtype=mlc.float32)
    """
    x = pairs(complex_operand(input))
    at = axis(dim, x.ndim - 1)
    count = _double(x, n, at)
    return _real_part(dft(_hermitian(x, count, at), at, norm, True))


@operation(name="fft.hfft", autocast="fp32")
def hfft(input: Operand, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform, which is real, of a Hermitian sequence that is given by its first half.

    Args:
        input: Tensor of shape (..., n // 2 + 1); real ones are converted to complex.
        n: Number of points of the result; 2 * (size - 1) by default.
        dim: The dimension; negative ones count from the last.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Real tensor of shape (..., n).

    Raises:
        UserError: `dim` is out of range (MLC0356), there are no points or `norm` is
            another string (MLC0360), or their number is symbolic (MLC0365).

    Example:
        >>> mlc.fft.hfft(mlc.tensor([1.0, 2.0, 3.0]))
        tensor([ 8., -2.,  0., -2.], dtype=mlc.float32)
    """
    x = pairs(complex_operand(input))
    at = axis(dim, x.ndim - 1)
    count = _double(x, n, at)
    return _real_part(dft(_hermitian(x, count, at), at, norm, False))


@operation(name="fft.ihfft", autocast="fp32")
def ihfft(input: Operand, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `hfft` along a dimension: the first n // 2 + 1 elements of the inverse transform of real numbers.

    Args:
        input: Real tensor of shape (..., n).
        n: Number of points; the input is cut or followed by zeros. Its size by default.
        dim: The dimension; negative ones count from the last.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor of shape (..., n // 2 + 1).

    Raises:
        UserError: `input` is complex (MLC0364), `dim` is out of range (MLC0356), there are no points or `norm` is
            another string (MLC0360), or their number is symbolic (MLC0365).

    Example:
        >>> mlc.fft.ihfft(mlc.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([ 2.5+0.j , -0.5-0.5j, -0.5+0.j ], dtype=mlc.complex64)
    """
    x = real_operand(input)
    at = axis(dim, x.ndim, scalar=False)
    count = point_count(x, n, at)
    return of_pairs(narrow(dft(_with_zero(resized(x, count, at)), at, norm, True), at, 0, count // 2 + 1))
