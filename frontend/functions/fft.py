"""Discrete Fourier transforms under the names of torch.fft.

There are no complex element types: a complex tensor is one of floats with a last dimension of size 2, for real and
imaginary parts, as torch.view_as_real shows it. So `fft(x)` takes and gives [..., n, 2], `rfft` gives [..., n // 2 + 1,
2], and `dim` counts the other dimensions. The number of points must be known when a function is recorded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.dtypes import as_ir
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.create import creation
from mlc.frontend.functions.shape import cat, flip, narrow, roll, sliced
from mlc.frontend.operands import axis, cast, count_of, floating, full, plain_int, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, DTypeLike, Operand, Tensor, wrap
from mlc.frontend.trace import Tracer, emit, state
from mlc.ir.diag import UserError
from mlc.ir.types import f32, f64, to_numpy

NORMS = ("forward", "backward", "ortho")


def _real(input: Operand) -> Tracer:
    """float32 or float64."""
    x = floating(input)
    return x if x.type.dtype in (f32, f64) else cast(x, f32)


def _complex(input: Operand) -> Tracer:
    x = _real(input)
    if not x.ndim or x.shape[-1] != 2:
        raise UserError(f"a {x.type} is no complex tensor, whose last dimension has size 2", code="MLC0364",
                        hint="mlc.stack([real, imaginary], -1) makes one; for real input there is rfft")
    return x


def _with_zero(x: Tracer) -> Tracer:
    """Real numbers as complex ones."""
    real = reshape(x, [*x.shape, 1])
    return tracer(cat([real, full(0, x, real.shape)], -1))


def _points(x: Tracer, n: Any, at: int) -> int:
    count = x.shape[at] if n is None else plain_int(n, "n")
    if not isinstance(count, int):
        raise UserError(f"a transform of {count} points needs a number that is known", code="MLC0365")
    if count < 1:
        raise UserError(f"a transform of {count} points", code="MLC0360")
    return count


def _resized(x: Tracer, n: int, at: int) -> Tracer:
    """Cut, or followed by zeros, to n elements along an axis."""
    size = x.shape[at]
    if size == n:
        return x
    if not isinstance(size, int):
        raise UserError(f"{size} elements are cut or padded to {n} only if their number is known", code="MLC0365")
    if size > n:
        return tracer(narrow(x, at, 0, n))
    zeros = full(0, x, [n - size if i == at else d for i, d in enumerate(x.shape)])
    return tracer(cat([x, zeros], at))


def _scale(n: int, norm: str | None, inverse: bool) -> float:
    norm = "backward" if norm is None else norm
    if norm not in NORMS:
        raise UserError(f"norm = {norm!r}", code="MLC0360", hint="use one of " + ", ".join(NORMS))
    return 1 / math.sqrt(n) if norm == "ortho" else 1 / n if (norm == "backward") == inverse else 1.0


def _dft(x: Tracer, at: int, norm: str | None, inverse: bool) -> Tracer:
    n = x.shape[at]
    scale = _scale(n, norm, inverse)
    out = emit(T.Dft, x, at, inverse)
    return tracer(out * scale) if scale != 1 else out


def _one(input: Operand, n: int | None, dim: int, norm: str | None, inverse: bool) -> Tensor:
    x = _complex(input)
    at = axis(dim, x.ndim - 1)
    return _dft(_resized(x, _points(x, n, at), at), at, norm, inverse)


@operation(name="fft.fft")
def fft(input: Operand, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """sum_j x[j] e^(-2 pi i j k / n), the discrete Fourier transform along a dimension.

    Args:
        input: Complex tensor: floats of shape (..., n, 2).
        n: Number of points; the input is cut or followed by zeros. Its size by default.
        dim: The dimension, not counting the one of real and imaginary parts; negative ones count from the last.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor of shape (..., n, 2).

    Raises:
        UserError: `input` is not complex (MLC0364), `dim` is out of range (MLC0356), there are no points or `norm` is
            another string (MLC0360), or their number is symbolic (MLC0365).

    Example:
        >>> mlc.fft.fft(mlc.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]]))
        tensor([[10.,  0.],
                [-2.,  2.],
                [-2.,  0.],
                [-2., -2.]], dtype=mlc.float32)
    """
    return _one(input, n, dim, norm, False)


@operation(name="fft.ifft")
def ifft(input: Operand, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """sum_k x[k] e^(2 pi i j k / n) / n, the inverse discrete Fourier transform along a dimension.

    Args:
        input: Complex tensor: floats of shape (..., n, 2).
        n: Number of points; the input is cut or followed by zeros. Its size by default.
        dim: The dimension, not counting the one of real and imaginary parts; negative ones count from the last.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor of shape (..., n, 2).

    Raises:
        UserError: `input` is not complex (MLC0364), `dim` is out of range (MLC0356), there are no points or `norm` is
            another string (MLC0360), or their number is symbolic (MLC0365).

    Example:
        >>> mlc.fft.ifft(mlc.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]]))
        tensor([[ 2.5,  0. ],
                [-0.5, -0.5],
                [-0.5,  0. ],
                [-0.5,  0.5]], dtype=mlc.float32)
    """
    return _one(input, n, dim, norm, True)


@operation(name="fft.rfft")
def rfft(input: Operand, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform of real numbers along a dimension: its first n // 2 + 1 elements.

    The others are complex conjugates of these.

    Args:
        input: Real tensor of shape (..., n).
        n: Number of points; the input is cut or followed by zeros. Its size by default.
        dim: The dimension, not counting the one of real and imaginary parts; negative ones count from the last.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor of shape (..., n // 2 + 1, 2).

    Raises:
        UserError: `input` has no dimension (MLC0364), `dim` is out of range (MLC0356), there are no points or `norm` is
            another string (MLC0360), or their number is symbolic (MLC0365).

    Example:
        >>> mlc.fft.rfft(mlc.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([[10.,  0.],
                [-2.,  2.],
                [-2.,  0.]], dtype=mlc.float32)
    """
    x = _real(input)
    at = axis(dim, x.ndim, scalar=False)
    count = _points(x, n, at)
    x = _resized(x, count, at)
    return narrow(_dft(_with_zero(x), at, norm, False), at, 0, count // 2 + 1)


def _hermitian(x: Tracer, n: int, at: int) -> Tracer:
    """All n elements of a transform of real numbers, from the first n // 2 + 1."""
    half = _resized(x, n // 2 + 1, at)
    rest = tracer(flip(narrow(half, at, 1, n - n // 2 - 1), (at,)))
    real, imaginary = (sliced(rest, rest.ndim - 1, i, i + 1) for i in range(2))
    return tracer(cat([half, cat([real, E.neg(imaginary)], -1)], at))


def _real_part(x: Tracer) -> Tracer:
    return reshape(sliced(x, x.ndim - 1, 0, 1), x.shape[:-1])


def _double(x: Tracer, n: int | None, at: int) -> int:
    """The number of points of a real result."""
    if n is not None:
        return _points(x, n, at)
    return _points(x, 2 * (_points(x, None, at) - 1), at)


@operation(name="fft.irfft")
def irfft(input: Operand, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft` along a dimension: real numbers from the first n // 2 + 1 elements of their transform.

    Args:
        input: Complex tensor: floats of shape (..., n // 2 + 1, 2).
        n: Number of points of the result; 2 * (size - 1) by default.
        dim: The dimension, not counting the one of real and imaginary parts; negative ones count from the last.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Real tensor of shape (..., n).

    Raises:
        UserError: `input` is not complex (MLC0364), `dim` is out of range (MLC0356), there are no points or `norm` is
            another string (MLC0360), or their number is symbolic (MLC0365).

    Example:
        >>> mlc.fft.irfft(mlc.fft.rfft(mlc.tensor([1.0, 2.0, 3.0, 4.0])))
        tensor([1., 2., 3., 4.], dtype=mlc.float32)
    """
    x = _complex(input)
    at = axis(dim, x.ndim - 1)
    count = _double(x, n, at)
    return _real_part(_dft(_hermitian(x, count, at), at, norm, True))


@operation(name="fft.hfft")
def hfft(input: Operand, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform, which is real, of a Hermitian sequence that is given by its first half.

    Args:
        input: Complex tensor: floats of shape (..., n // 2 + 1, 2).
        n: Number of points of the result; 2 * (size - 1) by default.
        dim: The dimension, not counting the one of real and imaginary parts; negative ones count from the last.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Real tensor of shape (..., n).

    Raises:
        UserError: `input` is not complex (MLC0364), `dim` is out of range (MLC0356), there are no points or `norm` is
            another string (MLC0360), or their number is symbolic (MLC0365).

    Example:
        >>> mlc.fft.hfft(mlc.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]))
        tensor([ 8., -2.,  0., -2.], dtype=mlc.float32)
    """
    x = _complex(input)
    at = axis(dim, x.ndim - 1)
    count = _double(x, n, at)
    return _real_part(_dft(_hermitian(x, count, at), at, norm, False))


@operation(name="fft.ihfft")
def ihfft(input: Operand, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `hfft` along a dimension: the first n // 2 + 1 elements of the inverse transform of real numbers.

    Args:
        input: Real tensor of shape (..., n).
        n: Number of points; the input is cut or followed by zeros. Its size by default.
        dim: The dimension, not counting the one of real and imaginary parts; negative ones count from the last.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor of shape (..., n // 2 + 1, 2).

    Raises:
        UserError: `input` has no dimension (MLC0364), `dim` is out of range (MLC0356), there are no points or `norm` is
            another string (MLC0360), or their number is symbolic (MLC0365).

    Example:
        >>> mlc.fft.ihfft(mlc.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([[ 2.5,  0. ],
                [-0.5, -0.5],
                [-0.5,  0. ]], dtype=mlc.float32)
    """
    x = _real(input)
    at = axis(dim, x.ndim, scalar=False)
    count = _points(x, n, at)
    return narrow(_dft(_with_zero(_resized(x, count, at)), at, norm, True), at, 0, count // 2 + 1)


def _several(x: Tracer, rank: int, s: Any, dim: Any) -> tuple[list[int], list[Any]]:
    """The axes that are transformed, and how many points each has (None: as many as there are)."""
    if dim is None:
        over = list(range(rank)) if s is None else list(range(rank - len(s), rank))
    else:
        over = [axis(d, rank, scalar=False) for d in (dim if isinstance(dim, tuple | list) else (dim,))]
    counts = [None] * len(over) if s is None else [None if n == -1 else n for n in s]
    if len(over) > rank or len(set(over)) != len(over) or len(counts) != len(over):
        raise UserError(f"s = {s} and dim = {dim} do not name as many dimensions, each once", code="MLC0357")
    return over, counts


def _all(input: Operand, s: Any, dim: Any, norm: str | None, inverse: bool) -> Tensor:
    x = _complex(input)
    over, counts = _several(x, x.ndim - 1, s, dim)
    for at, n in zip(over, counts):
        x = _dft(_resized(x, _points(x, n, at), at), at, norm, inverse)
    return x


@operation(name="fft.fftn")
def fftn(input: Operand, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along several dimensions.

    Args:
        input: Complex tensor: floats with a last dimension of size 2.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default.
        dim: The dimensions, not counting the one of real and imaginary parts; all by default, or the last of them if
            `s` is given.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor.

    Raises:
        UserError: `input` is not complex (MLC0364), a dimension is out of range (MLC0356), `s` and `dim` do not name as
            many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.fftn(mlc.ones(2, 2, 2))
        tensor([[[4., 4.],
                 [0., 0.]],
        <BLANKLINE>
                [[0., 0.],
                 [0., 0.]]], dtype=mlc.float32)
    """
    return _all(input, s, dim, norm, False)


@operation(name="fft.ifftn")
def ifftn(input: Operand, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse discrete Fourier transform along several dimensions.

    Args:
        input: Complex tensor: floats with a last dimension of size 2.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default.
        dim: The dimensions, not counting the one of real and imaginary parts; all by default, or the last of them if
            `s` is given.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor.

    Raises:
        UserError: `input` is not complex (MLC0364), a dimension is out of range (MLC0356), `s` and `dim` do not name as
            many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.ifftn(mlc.ones(2, 2, 2))
        tensor([[[1., 1.],
                 [0., 0.]],
        <BLANKLINE>
                [[0., 0.],
                 [0., 0.]]], dtype=mlc.float32)
    """
    return _all(input, s, dim, norm, True)


@operation(name="fft.fft2")
def fft2(input: Operand, s: Sequence[int] | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along two dimensions.

    Args:
        input: Complex tensor: floats with a last dimension of size 2.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default.
        dim: The dimensions, not counting the one of real and imaginary parts; the last two by default.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor.

    Raises:
        UserError: `input` is not complex (MLC0364), a dimension is out of range (MLC0356), `s` and `dim` do not name as
            many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.fft2(mlc.ones(2, 2, 2))
        tensor([[[4., 4.],
                 [0., 0.]],
        <BLANKLINE>
                [[0., 0.],
                 [0., 0.]]], dtype=mlc.float32)
    """
    return _all(input, s, dim, norm, False)


@operation(name="fft.ifft2")
def ifft2(input: Operand, s: Sequence[int] | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse discrete Fourier transform along two dimensions.

    Args:
        input: Complex tensor: floats with a last dimension of size 2.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default.
        dim: The dimensions, not counting the one of real and imaginary parts; the last two by default.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor.

    Raises:
        UserError: `input` is not complex (MLC0364), a dimension is out of range (MLC0356), `s` and `dim` do not name as
            many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.ifft2(mlc.ones(2, 2, 2))
        tensor([[[1., 1.],
                 [0., 0.]],
        <BLANKLINE>
                [[0., 0.],
                 [0., 0.]]], dtype=mlc.float32)
    """
    return _all(input, s, dim, norm, True)


@operation(name="fft.rfftn")
def rfftn(input: Operand, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform of real numbers along several dimensions.

    It is `rfft` along the last of them, then `fft` along the others.

    Args:
        input: Real tensor.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default.
        dim: The dimensions, not counting the one of real and imaginary parts; all by default, or the last of them if
            `s` is given.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor, with n // 2 + 1 elements along the last of the dimensions.

    Raises:
        UserError: there is no dimension to transform (MLC0364), a dimension is out of range (MLC0356), `s` and `dim` do
            not name as many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.rfftn(mlc.ones(2, 2))
        tensor([[[4., 0.],
                 [0., 0.]],
        <BLANKLINE>
                [[0., 0.],
                 [0., 0.]]], dtype=mlc.float32)
    """
    x = _real(input)
    over, counts = _several(x, x.ndim, s, dim)
    if not over:
        raise UserError("a transform of real numbers needs at least one dimension", code="MLC0364")
    out = rfft(x, counts[-1], over[-1], norm)
    return _all(out, None if s is None else [-1 if n is None else n for n in counts[:-1]], over[:-1], norm,
                False) if len(over) > 1 else out


@operation(name="fft.irfftn")
def irfftn(input: Operand, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`: real numbers from one half of their transform.

    Args:
        input: Complex tensor: floats with a last dimension of size 2.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default, and 2 * (size - 1) for the last.
        dim: The dimensions, not counting the one of real and imaginary parts; all by default, or the last of them if
            `s` is given.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Real tensor.

    Raises:
        UserError: `input` is not complex (MLC0364), a dimension is out of range (MLC0356), `s` and `dim` do not name as
            many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.irfftn(mlc.fft.rfftn(mlc.ones(2, 2)))
        tensor([[1., 1.],
                [1., 1.]], dtype=mlc.float32)
    """
    x = _complex(input)
    over, counts = _several(x, x.ndim - 1, s, dim)
    if not over:
        raise UserError("a transform to real numbers needs at least one dimension", code="MLC0364")
    if len(over) > 1:
        x = tracer(_all(x, None if s is None else [-1 if n is None else n for n in counts[:-1]], over[:-1], norm, True))
    return irfft(x, counts[-1], over[-1], norm)


@operation(name="fft.rfft2")
def rfft2(input: Operand, s: Sequence[int] | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """The discrete Fourier transform of real numbers along two dimensions, as `rfftn`.

    Args:
        input: Real tensor.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default.
        dim: The dimensions, not counting the one of real and imaginary parts; the last two by default.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor, with n // 2 + 1 elements along the last of the dimensions.

    Raises:
        UserError: there is no dimension to transform (MLC0364), a dimension is out of range (MLC0356), `s` and `dim` do
            not name as many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.rfft2(mlc.ones(2, 2))
        tensor([[[4., 0.],
                 [0., 0.]],
        <BLANKLINE>
                [[0., 0.],
                 [0., 0.]]], dtype=mlc.float32)
    """
    return rfftn(input, s, dim, norm)


@operation(name="fft.irfft2")
def irfft2(input: Operand, s: Sequence[int] | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of `rfft2`: real numbers from one half of their transform.

    Args:
        input: Complex tensor: floats with a last dimension of size 2.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default, and 2 * (size - 1) for the last.
        dim: The dimensions, not counting the one of real and imaginary parts; the last two by default.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Real tensor.

    Raises:
        UserError: `input` is not complex (MLC0364), a dimension is out of range (MLC0356), `s` and `dim` do not name as
            many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.irfft2(mlc.fft.rfft2(mlc.ones(2, 2)))
        tensor([[1., 1.],
                [1., 1.]], dtype=mlc.float32)
    """
    return irfftn(input, s, dim, norm)


def _shifted(input: Operand, dim: Dims, forward: bool) -> Tensor:
    x = tracer(input)
    over = list(range(x.ndim)) if dim is None else [
        axis(d, x.ndim, scalar=False) for d in (dim if isinstance(dim, tuple | list) else (dim,))]
    by = [(d if isinstance(d, int) else _points(x, None, a)) // 2 for a, d in enumerate(x.shape)]
    return roll(x, [by[a] if forward else -by[a] for a in over], over) if over else x


@operation(name="fft.fftshift")
def fftshift(input: Operand, dim: Dims = None) -> Tensor:
    """Frequency 0 moved from the front to the middle of dimensions.

    Args:
        input: Tensor. Of a complex one, name all dimensions but the last.
        dim: The dimensions; negative ones count from the last. All by default.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: a dimension is out of range (MLC0356).

    Example:
        >>> mlc.fft.fftshift(mlc.tensor([0.0, 1.0, 2.0, -2.0, -1.0]))
        tensor([-2., -1.,  0.,  1.,  2.], dtype=mlc.float32)
    """
    return _shifted(input, dim, True)


@operation(name="fft.ifftshift")
def ifftshift(input: Operand, dim: Dims = None) -> Tensor:
    """Frequency 0 moved back from the middle to the front of dimensions: the inverse of `fftshift`.

    Args:
        input: Tensor. Of a complex one, name all dimensions but the last.
        dim: The dimensions; negative ones count from the last. All by default.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: a dimension is out of range (MLC0356).

    Example:
        >>> mlc.fft.ifftshift(mlc.tensor([0.0, 1.0, 2.0, -2.0, -1.0]))
        tensor([ 2., -2., -1.,  0.,  1.], dtype=mlc.float32)
    """
    return _shifted(input, dim, False)


def _known(values: Any, dtype: DTypeLike) -> Tensor:
    """Numbers known in advance, as a tensor."""
    made = wrap(np.ascontiguousarray(np.asarray(values).astype(to_numpy(as_ir(dtype)))))
    return tracer(made) if state.trace is not None else made


def _spaced(n: int, d: float) -> int:
    """The number of points d apart."""
    count = plain_int(n, "n")
    if count < 1 or d == 0:
        raise UserError(f"frequencies of {count} points that are {d} apart", code="MLC0360")
    return count_of(count, "n")


@creation
def fftfreq(n: int, d: float = 1.0, *, dtype: DTypeLike = "float32") -> Tensor:
    """The frequencies of the elements of `fft`: [0, 1, ..., -2, -1] / (n * d).

    Args:
        n: Number of points.
        d: Distance of the samples.
        dtype: Dtype of the result.

    Returns:
        Tensor of shape (n,).

    Raises:
        UserError: `n` is below 1 or `d` is 0 (MLC0360).

    Example:
        >>> mlc.fft.fftfreq(4)
        tensor([ 0.  ,  0.25, -0.5 , -0.25], dtype=mlc.float32)
    """
    return _known(np.fft.fftfreq(_spaced(n, d), d), dtype)


@creation
def rfftfreq(n: int, d: float = 1.0, *, dtype: DTypeLike = "float32") -> Tensor:
    """The frequencies of the elements of `rfft`: [0, 1, ..., n // 2] / (n * d).

    Args:
        n: Number of points.
        d: Distance of the samples.
        dtype: Dtype of the result.

    Returns:
        Tensor of shape (n // 2 + 1,).

    Raises:
        UserError: `n` is below 1 or `d` is 0 (MLC0360).

    Example:
        >>> mlc.fft.rfftfreq(4)
        tensor([0.  , 0.25, 0.5 ], dtype=mlc.float32)
    """
    return _known(np.fft.rfftfreq(_spaced(n, d), d), dtype)


def _window(length: int, periodic: bool, coefficients: Sequence[float], dtype: DTypeLike) -> Tensor:
    """sum of (-1)^k * coefficients[k] * cos(2 pi k i / n)"""
    count = count_of(length, "window_length")
    span = count if periodic else count - 1
    i = np.arange(count)
    values = sum((-1) ** k * c * np.cos(2 * np.pi * k * i / max(1, span)) for k, c in enumerate(coefficients))
    return _known(np.ones(count) if count == 1 else values, dtype)


@creation
def hann_window(window_length: int, periodic: bool = True, *, dtype: DTypeLike = "float32") -> Tensor:
    """0.5 - 0.5 cos(2 pi i / N), the Hann window.

    Args:
        window_length: Number of elements.
        periodic: Whether N is `window_length`, for use with `fft`; otherwise it is one less, and the window is
            symmetric.
        dtype: Dtype of the result.

    Returns:
        Tensor of shape (window_length,).

    Raises:
        UserError: `window_length` is negative (MLC0358).

    Example:
        >>> mlc.hann_window(4)
        tensor([0. , 0.5, 1. , 0.5], dtype=mlc.float32)
    """
    return _window(window_length, periodic, (0.5, 0.5), dtype)


@creation
def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
                   dtype: DTypeLike = "float32") -> Tensor:
    """alpha - beta cos(2 pi i / N), the Hamming window.

    Args:
        window_length: Number of elements.
        periodic: Whether N is `window_length`, for use with `fft`; otherwise it is one less, and the window is
            symmetric.
        alpha: The first coefficient.
        beta: The second coefficient.
        dtype: Dtype of the result.

    Returns:
        Tensor of shape (window_length,).

    Raises:
        UserError: `window_length` is negative (MLC0358).

    Example:
        >>> mlc.hamming_window(4)
        tensor([0.08, 0.54, 1.  , 0.54], dtype=mlc.float32)
    """
    return _window(window_length, periodic, (alpha, beta), dtype)


@creation
def blackman_window(window_length: int, periodic: bool = True, *, dtype: DTypeLike = "float32") -> Tensor:
    """0.42 - 0.5 cos(2 pi i / N) + 0.08 cos(4 pi i / N), the Blackman window.

    Args:
        window_length: Number of elements.
        periodic: Whether N is `window_length`, for use with `fft`; otherwise it is one less, and the window is
            symmetric.
        dtype: Dtype of the result.

    Returns:
        Tensor of shape (window_length,).

    Raises:
        UserError: `window_length` is negative (MLC0358).

    Example:
        >>> mlc.blackman_window(4)
        tensor([-1.3877788e-17,  3.4000000e-01,  1.0000000e+00,  3.4000000e-01], dtype=mlc.float32)
    """
    return _window(window_length, periodic, (0.42, 0.5, 0.08), dtype)


@creation
def bartlett_window(window_length: int, periodic: bool = True, *, dtype: DTypeLike = "float32") -> Tensor:
    """1 - |2 i / N - 1|, the Bartlett window, a triangle.

    Args:
        window_length: Number of elements.
        periodic: Whether N is `window_length`, for use with `fft`; otherwise it is one less, and the window is
            symmetric.
        dtype: Dtype of the result.

    Returns:
        Tensor of shape (window_length,).

    Raises:
        UserError: `window_length` is negative (MLC0358).

    Example:
        >>> mlc.bartlett_window(4)
        tensor([0. , 0.5, 1. , 0.5], dtype=mlc.float32)
    """
    count = count_of(window_length, "window_length")
    span = max(1, count if periodic else count - 1)
    return _known(np.ones(1) if count == 1 else 1 - np.abs(2 * np.arange(count) / span - 1), dtype)


