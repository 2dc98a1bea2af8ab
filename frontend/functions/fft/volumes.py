"""Fourier transforms along several dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.axes import axis
from mlc.frontend.functions.fft.lines import (
    complex_operand,
    dft,
    irfft,
    of_pairs,
    pairs,
    point_count,
    real_operand,
    resized,
    rfft,
)
from mlc.frontend.functions.shape import roll
from mlc.frontend.operands import tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, Operand, Tensor
from mlc.ir.diag import UserError


def several(rank: int, s: Any, dim: Any) -> tuple[list[int], list[Any]]:
    """The transformed axes, and the number of points along each (None: the size of the axis)."""
    if dim is None:
        over = list(range(rank)) if s is None else list(range(rank - len(s), rank))
    else:
        over = [axis(d, rank, scalar=False) for d in (dim if isinstance(dim, tuple | list) else (dim,))]
    counts = [None] * len(over) if s is None else [None if n == -1 else n for n in s]
    if len(over) > rank or len(set(over)) != len(over) or len(counts) != len(over):
        raise UserError(f"s = {s} and dim = {dim} do not name as many dimensions, each once", code="MLC0357")
    return over, counts


def all_of(input: Operand, s: Any, dim: Any, norm: str | None, inverse: bool) -> Tensor:
    x = pairs(complex_operand(input))
    over, counts = several(x.ndim - 1, s, dim)
    for at, n in zip(over, counts):
        x = dft(resized(x, point_count(x, n, at), at), at, norm, inverse)
    return of_pairs(x)


@operation(name="fft.fftn", autocast="fp32")
def fftn(input: Operand, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along several dimensions.

    X[k...] = sum_n... x[n...] * exp(-2 pi i * (k1 n1 / N1 + k2 n2 / N2 + ...)): the transform along one dimension after
    the other. An `s` above a size pads with zeros at the end, one below cuts off.

    Args:
        input: Tensor; real ones are converted to complex.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default.
        dim: The dimensions; all by default, or the last of them if `s` is given.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor.

    Raises:
        UserError: a dimension is out of range (MLC0356), `s` and `dim` do not name as
            many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.fftn(mlc.ones(2, 2))
        tensor([[4.+0.j, 0.+0.j],
                [0.+0.j, 0.+0.j]], dtype=mlc.complex64)
    """
    return all_of(input, s, dim, norm, False)


@operation(name="fft.ifftn", autocast="fp32")
def ifftn(input: Operand, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse discrete Fourier transform along several dimensions.

    Args:
        input: Tensor; real ones are converted to complex.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default.
        dim: The dimensions; all by default, or the last of them if `s` is given.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor.

    Raises:
        UserError: a dimension is out of range (MLC0356), `s` and `dim` do not name as
            many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.ifftn(mlc.ones(2, 2))
        tensor([[1.+0.j, 0.+0.j],
                [0.+0.j, 0.+0.j]], dtype=mlc.complex64)
    """
    return all_of(input, s, dim, norm, True)


@operation(name="fft.fft2", autocast="fp32")
def fft2(input: Operand, s: Sequence[int] | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along two dimensions.

    X[k, l] = sum_mn x[m, n] * exp(-2 pi i * (k m / M + l n / N)), for each image of a batch. Of real images half of the
    result is redundant: see `mlc.fft.rfft2`.

    Args:
        input: Tensor; real ones are converted to complex.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default.
        dim: The dimensions; the last two by default.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor.

    Raises:
        UserError: a dimension is out of range (MLC0356), `s` and `dim` do not name as many, each once (MLC0357), `norm`
            is another string (MLC0360), or `input` has no dimensions (MLC0364).

    Example:
        >>> mlc.fft.fft2(mlc.ones(2, 2))
        tensor([[4.+0.j, 0.+0.j],
                [0.+0.j, 0.+0.j]], dtype=mlc.complex64)
    """
    return all_of(input, s, dim, norm, False)


@operation(name="fft.ifft2", autocast="fp32")
def ifft2(input: Operand, s: Sequence[int] | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse discrete Fourier transform along two dimensions.

    Args:
        input: Tensor; real ones are converted to complex.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default.
        dim: The dimensions; the last two by default.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor.

    Raises:
        UserError: a dimension is out of range (MLC0356), `s` and `dim` do not name as many, each once (MLC0357), `norm`
            is another string (MLC0360), or `input` has no dimensions (MLC0364).

    Example:
        >>> mlc.fft.ifft2(mlc.ones(2, 2))
        tensor([[1.+0.j, 0.+0.j],
                [0.+0.j, 0.+0.j]], dtype=mlc.complex64)
    """
    return all_of(input, s, dim, norm, True)


@operation(name="fft.rfftn", autocast="fp32")
def rfftn(input: Operand, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform of real numbers along several dimensions.

    It is `rfft` along the last of them, then `fft` along the others.

    Args:
        input: Real tensor.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default.
        dim: The dimensions; all by default, or the last of them if `s` is given.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor, with n // 2 + 1 elements along the last of the dimensions.

    Raises:
        UserError: there is no dimension to transform (MLC0364), a dimension is out of range (MLC0356), `s` and `dim` do
            not name as many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.rfftn(mlc.ones(2, 2))
        tensor([[4.+0.j, 0.+0.j],
                [0.+0.j, 0.+0.j]], dtype=mlc.complex64)
    """
    x = real_operand(input)
    over, counts = several(x.ndim, s, dim)
    if not over:
        raise UserError("a transform of real numbers needs at least one dimension", code="MLC0364")
    out = rfft(x, counts[-1], over[-1], norm)
    return all_of(out, None if s is None else [-1 if n is None else n for n in counts[:-1]], over[:-1], norm,
                False) if len(over) > 1 else out


@operation(name="fft.irfftn", autocast="fp32")
def irfftn(input: Operand, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`: real numbers from one half of their transform.

    Args:
        input: Tensor; real ones are converted to complex.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default, and 2 * (size - 1) for the last.
        dim: The dimensions; all by default, or the last of them if `s` is given.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Real tensor.

    Raises:
        UserError: a dimension is out of range (MLC0356), `s` and `dim` do not name as many, each once (MLC0357), `norm`
            is another string (MLC0360), or `input` has no dimensions (MLC0364).

    Example:
        >>> mlc.fft.irfftn(mlc.fft.rfftn(mlc.ones(2, 2)))
        tensor([[1., 1.],
                [1., 1.]], dtype=mlc.float32)
    """
    x = complex_operand(input)
    over, counts = several(x.ndim, s, dim)
    if not over:
        raise UserError("a transform to real numbers needs at least one dimension", code="MLC0364")
    if len(over) > 1:
        x = tracer(all_of(x, [-1 if n is None else n for n in counts[:-1]], over[:-1], norm, True))
    return irfft(x, counts[-1], over[-1], norm)


@operation(name="fft.rfft2", autocast="fp32")
def rfft2(input: Operand, s: Sequence[int] | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """The discrete Fourier transform of real numbers along two dimensions, as `rfftn`.

    Args:
        input: Real tensor.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default.
        dim: The dimensions; the last two by default.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Complex tensor, with n // 2 + 1 elements along the last of the dimensions.

    Raises:
        UserError: there is no dimension to transform (MLC0364), a dimension is out of range (MLC0356), `s` and `dim` do
            not name as many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.rfft2(mlc.ones(2, 2))
        tensor([[4.+0.j, 0.+0.j],
                [0.+0.j, 0.+0.j]], dtype=mlc.complex64)
    """
    return rfftn(input, s, dim, norm)


@operation(name="fft.irfft2", autocast="fp32")
def irfft2(input: Operand, s: Sequence[int] | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of `rfft2`: real numbers from one half of their transform.

    Args:
        input: Tensor; real ones are converted to complex.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default, and 2 * (size - 1) for the last.
        dim: The dimensions; the last two by default.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Real tensor.

    Raises:
        UserError: a dimension is out of range (MLC0356), `s` and `dim` do not name as many, each once (MLC0357), `norm`
            is another string (MLC0360), or `input` has no dimensions (MLC0364).

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
    by = [(d if isinstance(d, int) else point_count(x, None, a)) // 2 for a, d in enumerate(x.shape)]
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
