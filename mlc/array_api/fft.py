"""Discrete Fourier transforms, the extension `fft` of the array API standard.

The functions of `mlc.fft` under the standard's rules: axes are called `axis` and `axes`, `n` and `s` are numbers of
elements of the result, and real input of `fft` has to be made complex first, as the standard says.

Example:
    >>> xp.fft.rfft(xp.asarray([1.0, 0.0, -1.0, 0.0])).real
    tensor([0., 2., 0.], dtype=mlc.float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlc
from mlc.frontend.dtypes import DType
from mlc.frontend.tensor import Tensor

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]


def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform along an axis.

    Args:
        x: Tensor of floats or complex numbers.
        n: Length of the transformed signal, to which it is cut or padded with zeros; that of the axis by default.
        axis: The axis.
        norm: Which direction is divided by the length: "backward", "forward", or both by its root, "ortho".

    Returns:
        Tensor of complex numbers of the precision of x.

    Raises:
        UserError: The axis is out of range (MLC0356).

    Example:
        >>> xp.fft.fft(xp.asarray([1.0, 2.0, 3.0]))
        tensor([ 6. +0.j       , -1.5+0.8660254j, -1.5-0.8660254j], dtype=mlc.complex64)
    """
    return mlc.fft.fft(x, n, axis, norm)


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `fft`.

    Args:
        x: Tensor of floats or complex numbers.
        n: Length of the transformed signal, to which it is cut or padded with zeros; that of the axis by default.
        axis: The axis.
        norm: Which direction is divided by the length: "backward", "forward", or both by its root, "ortho".

    Returns:
        Tensor of complex numbers of the precision of x.

    Raises:
        UserError: The axis is out of range (MLC0356).

    Example:
        >>> xp.fft.ifft(xp.asarray([1.0, 2.0, 3.0]))
        tensor([ 2. +0.j        , -0.5-0.28867513j, -0.5+0.28867513j], dtype=mlc.complex64)
    """
    return mlc.fft.ifft(x, n, axis, norm)


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform of real numbers along an axis, without the half that follows from the other.

    Args:
        x: Tensor of floats.
        n: Length of the transformed signal, to which it is cut or padded with zeros; that of the axis by default.
        axis: The axis.
        norm: Which direction is divided by the length: "backward", "forward", or both by its root, "ortho".

    Returns:
        Tensor of complex numbers of the precision of x.

    Raises:
        UserError: The axis is out of range (MLC0356).

    Example:
        >>> xp.fft.rfft(xp.asarray([1.0, 2.0, 3.0]))
        tensor([ 6. +0.j       , -1.5+0.8660254j], dtype=mlc.complex64)
    """
    return mlc.fft.rfft(x, n, axis, norm)


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `rfft`.

    Args:
        x: Tensor of floats or complex numbers.
        n: Length of the transformed signal, to which it is cut or padded with zeros; that of the axis by default.
        axis: The axis.
        norm: Which direction is divided by the length: "backward", "forward", or both by its root, "ortho".

    Returns:
        Tensor of floats of the precision of x.

    Raises:
        UserError: The axis is out of range (MLC0356).

    Example:
        >>> xp.fft.irfft(xp.asarray([1.0, 2.0, 3.0]))
        tensor([ 2. , -0.5,  0. , -0.5], dtype=mlc.float32)
    """
    return mlc.fft.irfft(x, n, axis, norm)


def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform of a half of a Hermitian signal, along an axis.

    Args:
        x: Tensor of floats or complex numbers.
        n: Length of the transformed signal, to which it is cut or padded with zeros; that of the axis by default.
        axis: The axis.
        norm: Which direction is divided by the length: "backward", "forward", or both by its root, "ortho".

    Returns:
        Tensor of floats of the precision of x.

    Raises:
        UserError: The axis is out of range (MLC0356).

    Example:
        >>> xp.fft.hfft(xp.asarray([1.0, 2.0, 3.0]))
        tensor([ 8., -2.,  0., -2.], dtype=mlc.float32)
    """
    return mlc.fft.hfft(x, n, axis, norm)


def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `hfft`.

    Args:
        x: Tensor of floats.
        n: Length of the transformed signal, to which it is cut or padded with zeros; that of the axis by default.
        axis: The axis.
        norm: Which direction is divided by the length: "backward", "forward", or both by its root, "ortho".

    Returns:
        Tensor of complex numbers of the precision of x.

    Raises:
        UserError: The axis is out of range (MLC0356).

    Example:
        >>> xp.fft.ihfft(xp.asarray([1.0, 2.0, 3.0]))
        tensor([ 2. +0.j        , -0.5-0.28867513j], dtype=mlc.complex64)
    """
    return mlc.fft.ihfft(x, n, axis, norm)


def fftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
         norm: str = "backward") -> Tensor:
    """The discrete Fourier transform along several axes.

    Args:
        x: Tensor of floats or complex numbers.
        s: Lengths along the axes, to which x is cut or padded with zeros; those of the axes by default.
        axes: The axes; all by default, or the last ones, as many as there are lengths.
        norm: Which direction is divided by the length: "backward", "forward", or both by its root, "ortho".

    Returns:
        Tensor of complex numbers of the precision of x.

    Raises:
        UserError: An axis is out of range (MLC0356).

    Example:
        >>> xp.fft.fftn(xp.ones((2, 3)))
        tensor([[6.+0.j, 0.+0.j, 0.+0.j],
                [0.+0.j, 0.+0.j, 0.+0.j]], dtype=mlc.complex64)
    """
    return mlc.fft.fftn(x, s, axes, norm)


def ifftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str = "backward") -> Tensor:
    """The inverse of `fftn`.

    Args:
        x: Tensor of floats or complex numbers.
        s: Lengths along the axes, to which x is cut or padded with zeros; those of the axes by default.
        axes: The axes; all by default, or the last ones, as many as there are lengths.
        norm: Which direction is divided by the length: "backward", "forward", or both by its root, "ortho".

    Returns:
        Tensor of complex numbers of the precision of x.

    Raises:
        UserError: An axis is out of range (MLC0356).

    Example:
        >>> xp.fft.ifftn(xp.ones((2, 3)))
        tensor([[1.+0.j, 0.+0.j, 0.+0.j],
                [0.+0.j, 0.+0.j, 0.+0.j]], dtype=mlc.complex64)
    """
    return mlc.fft.ifftn(x, s, axes, norm)


def rfftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str = "backward") -> Tensor:
    """The discrete Fourier transform of real numbers along several axes, without the half of the last that follows
    from the other.

    Args:
        x: Tensor of floats or complex numbers.
        s: Lengths along the axes, to which x is cut or padded with zeros; those of the axes by default.
        axes: The axes; all by default, or the last ones, as many as there are lengths.
        norm: Which direction is divided by the length: "backward", "forward", or both by its root, "ortho".

    Returns:
        Tensor of complex numbers of the precision of x.

    Raises:
        UserError: An axis is out of range (MLC0356).

    Example:
        >>> xp.fft.rfftn(xp.ones((2, 3)))
        tensor([[6.+0.j, 0.+0.j],
                [0.+0.j, 0.+0.j]], dtype=mlc.complex64)
    """
    return mlc.fft.rfftn(x, s, axes, norm)


def irfftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
           norm: str = "backward") -> Tensor:
    """The inverse of `rfftn`.

    Args:
        x: Tensor of floats or complex numbers.
        s: Lengths along the axes, to which x is cut or padded with zeros; those of the axes by default.
        axes: The axes; all by default, or the last ones, as many as there are lengths.
        norm: Which direction is divided by the length: "backward", "forward", or both by its root, "ortho".

    Returns:
        Tensor of floats of the precision of x.

    Raises:
        UserError: An axis is out of range (MLC0356).

    Example:
        >>> xp.fft.irfftn(xp.ones((2, 3)))
        tensor([[1., 0., 0., 0.],
                [0., 0., 0., 0.]], dtype=mlc.float32)
    """
    return mlc.fft.irfftn(x, s, axes, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """The frequencies of the results of `fft`.

    Args:
        n: Length of the signal.
        d: Distance of its samples.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of one dimension.

    Example:
        >>> xp.fft.fftfreq(4)
        tensor([ 0.  ,  0.25, -0.5 , -0.25], dtype=mlc.float32)
    """
    out = mlc.fft.fftfreq(n, d, dtype=dtype or mlc.float32)
    return out if device is None else out.to(device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """The frequencies of the results of `rfft`.

    Args:
        n: Length of the signal.
        d: Distance of its samples.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of one dimension.

    Example:
        >>> xp.fft.rfftfreq(4)
        tensor([0.  , 0.25, 0.5 ], dtype=mlc.float32)
    """
    out = mlc.fft.rfftfreq(n, d, dtype=dtype or mlc.float32)
    return out if device is None else out.to(device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Move the frequency 0 from the start of each axis to its middle.

    Args:
        x: Tensor.
        axes: One or several axes; all by default.

    Returns:
        Tensor of the shape and the dtype of x.

    Raises:
        UserError: An axis is out of range (MLC0356).

    Example:
        >>> xp.fft.fftshift(xp.asarray([0, 1, 2, 3]))
        tensor([2, 3, 0, 1], dtype=mlc.int64)
    """
    return mlc.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`.

    Args:
        x: Tensor.
        axes: One or several axes; all by default.

    Returns:
        Tensor of the shape and the dtype of x.

    Raises:
        UserError: An axis is out of range (MLC0356).

    Example:
        >>> xp.fft.ifftshift(xp.asarray([0, 1, 2, 3]))
        tensor([2, 3, 0, 1], dtype=mlc.int64)
    """
    return mlc.fft.ifftshift(x, axes)
