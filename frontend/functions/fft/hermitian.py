"""Fourier transforms of Hermitian arrays along several dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.frontend.functions.fft.lines import complex_operand, hfft, ihfft, real_operand
from mlc.frontend.functions.fft.volumes import all_of, several
from mlc.frontend.operands import tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, Operand, Tensor
from mlc.ir.diag import UserError


@operation(name="fft.hfftn")
def hfftn(input: Operand, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform, which is real, of a Hermitian array of which the last dimension holds one half.

    Args:
        input: Tensor; real ones are converted to complex.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default, and 2 * (size - 1) for the last.
        dim: The dimensions; all by default, or the last of them if `s` is given.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Real tensor.

    Raises:
        UserError: there is no dimension to transform (MLC0364), a dimension is out of range (MLC0356), `s` and `dim` do
            not name as many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.hfftn(mlc.fft.ihfftn(mlc.ones(2, 2)))
        tensor([[1., 1.],
                [1., 1.]], dtype=mlc.float32)
    """
    x = complex_operand(input)
    over, counts = several(x.ndim, s, dim)
    if not over:
        raise UserError("a transform to real numbers needs at least one dimension", code="MLC0364")
    if len(over) > 1:
        x = tracer(all_of(x, [-1 if n is None else n for n in counts[:-1]], over[:-1], norm, False))
    return hfft(x, counts[-1], over[-1], norm)


@operation(name="fft.ihfftn")
def ihfftn(input: Operand, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `hfftn`: one half of the inverse transform of real numbers along several dimensions.

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
        >>> mlc.fft.ihfftn(mlc.ones(2, 2))
        tensor([[1.+0.j, 0.+0.j],
                [0.+0.j, 0.+0.j]], dtype=mlc.complex64)
    """
    x = real_operand(input)
    over, counts = several(x.ndim, s, dim)
    if not over:
        raise UserError("a transform of real numbers needs at least one dimension", code="MLC0364")
    half = ihfft(x, counts[-1], over[-1], norm)
    if len(over) == 1:
        return half
    return all_of(half, [-1 if n is None else n for n in counts[:-1]], over[:-1], norm, True)


@operation(name="fft.hfft2")
def hfft2(input: Operand, s: Sequence[int] | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along two dimensions, which is real, of a Hermitian array, as `hfftn`.

    Args:
        input: Tensor; real ones are converted to complex.
        s: Number of points of each dimension; -1 keeps a size. The sizes by default, and 2 * (size - 1) for the last.
        dim: The dimensions; the last two by default.
        norm: "backward" (the default) scales the inverse transform by 1 / n, "forward" the transform itself, "ortho"
            both by 1 / sqrt(n).

    Returns:
        Real tensor.

    Raises:
        UserError: there is no dimension to transform (MLC0364), a dimension is out of range (MLC0356), `s` and `dim` do
            not name as many, each once (MLC0357), or `norm` is another string (MLC0360).

    Example:
        >>> mlc.fft.hfft2(mlc.fft.ihfft2(mlc.ones(2, 2)))
        tensor([[1., 1.],
                [1., 1.]], dtype=mlc.float32)
    """
    return hfftn(input, s, dim, norm)


@operation(name="fft.ihfft2")
def ihfft2(input: Operand, s: Sequence[int] | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of `hfft2`: one half of the inverse transform of real numbers, as `ihfftn`.

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
        >>> mlc.fft.ihfft2(mlc.ones(2, 2))
        tensor([[1.+0.j, 0.+0.j],
                [0.+0.j, 0.+0.j]], dtype=mlc.complex64)
    """
    return ihfftn(input, s, dim, norm)
