"""Window functions under the names of torch.signal.windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.frontend.dtypes import as_dtype, as_ir
from mlc.frontend.functions.create import creation
from mlc.frontend.functions.fft.spectra import BLACKMAN, HAMMING, HANN, cosines, known_numbers, window_of_floats
from mlc.frontend.operands import count_of
from mlc.frontend.tensor import Array, DTypeLike, Tensor
from mlc.ir.diag import UserError
from mlc.ir.types import f32, f64


def _distances(M: int, sym: bool) -> Array:
    """The distances of the places from the middle, with their signs."""
    count = count_of(M, "M")
    return np.arange(count) - (count - 1 if sym else count) / 2


def _window(values: Any, dtype: DTypeLike) -> Tensor:
    """The values as a window: a vector of float32 or float64."""
    if as_ir(dtype) not in (f32, f64):
        raise UserError(f"a window of {as_dtype(dtype).name}, expected float32 or float64", code="MLC0359",
                        hint="convert the window afterwards: window.to(...)")
    return known_numbers(values, dtype)


def _positive(x: float, name: str) -> float:
    if not x > 0:
        raise UserError(f"{name} = {x}, expected a number above 0", code="MLC0360")
    return x


@creation
def general_cosine(M: int, *, a: Sequence[float], sym: bool = True, dtype: DTypeLike = "float32",
                   device: Any = None) -> Tensor:
    """sum_k (-1) ** k * a[k] * cos(2 pi k i / N), for N = M - 1.

    Args:
        M: Number of elements.
        a: The coefficients, at least one.
        sym: Whether the window is symmetric; otherwise it is periodic, for use with `mlc.fft`.
        dtype: Dtype of the result, float32 or float64.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (M,).

    Raises:
        UserError: `M` is negative (MLC0358), there are no coefficients (MLC0360), `dtype` is another one (MLC0359), or
            `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.signal.windows.general_cosine(4, a=[0.5, 0.5], sym=False)
        tensor([0. , 0.5, 1. , 0.5], dtype=mlc.float32)
    """
    if len(a) == 0:
        raise UserError("a window has at least one coefficient", code="MLC0360")
    return _window(cosines(count_of(M, "M"), a, sym), dtype)


@creation
def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: DTypeLike = "float32",
                    device: Any = None) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi i / N), for N = M - 1.

    Args:
        M: Number of elements.
        alpha: The first coefficient.
        sym: Whether the window is symmetric; otherwise it is periodic, for use with `mlc.fft`.
        dtype: Dtype of the result, float32 or float64.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (M,).

    Raises:
        UserError: `M` is negative (MLC0358), `dtype` another one (MLC0359), or `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.signal.windows.general_hamming(4, sym=False)
        tensor([0.08, 0.54, 1.  , 0.54], dtype=mlc.float32)
    """
    return _window(cosines(count_of(M, "M"), (alpha, 1 - alpha), sym), dtype)


@creation
def hamming(M: int, *, sym: bool = True, dtype: DTypeLike = "float32", device: Any = None) -> Tensor:
    """0.54 - 0.46 cos(2 pi i / N), the Hamming window.

    Args:
        M: Number of elements.
        sym: Whether the window is symmetric; otherwise it is periodic, for use with `mlc.fft`.
        dtype: Dtype of the result, float32 or float64.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (M,).

    Raises:
        UserError: `M` is negative (MLC0358), `dtype` another one (MLC0359), or `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.signal.windows.hamming(4, sym=False)
        tensor([0.08, 0.54, 1.  , 0.54], dtype=mlc.float32)
    """
    return _window(cosines(count_of(M, "M"), HAMMING, sym), dtype)


@creation
def hann(M: int, *, sym: bool = True, dtype: DTypeLike = "float32", device: Any = None) -> Tensor:
    """0.5 - 0.5 cos(2 pi i / N), the Hann window.

    Args:
        M: Number of elements.
        sym: Whether the window is symmetric; otherwise it is periodic, for use with `mlc.fft`.
        dtype: Dtype of the result, float32 or float64.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (M,).

    Raises:
        UserError: `M` is negative (MLC0358), `dtype` another one (MLC0359), or `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.signal.windows.hann(4, sym=False)
        tensor([0. , 0.5, 1. , 0.5], dtype=mlc.float32)
    """
    return _window(cosines(count_of(M, "M"), HANN, sym), dtype)


@creation
def blackman(M: int, *, sym: bool = True, dtype: DTypeLike = "float32", device: Any = None) -> Tensor:
    """0.42 - 0.5 cos(2 pi i / N) + 0.08 cos(4 pi i / N), the Blackman window.

    Args:
        M: Number of elements.
        sym: Whether the window is symmetric; otherwise it is periodic, for use with `mlc.fft`.
        dtype: Dtype of the result, float32 or float64.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (M,).

    Raises:
        UserError: `M` is negative (MLC0358), `dtype` another one (MLC0359), or `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.signal.windows.blackman(3)
        tensor([-1.3877788e-17,  1.0000000e+00, -1.3877788e-17], dtype=mlc.float32)
    """
    return _window(cosines(count_of(M, "M"), BLACKMAN, sym), dtype)


@creation
def nuttall(M: int, *, sym: bool = True, dtype: DTypeLike = "float32", device: Any = None) -> Tensor:
    """The cosine window of four terms of Nuttall 1981 that has a continuous first derivative.

    Args:
        M: Number of elements.
        sym: Whether the window is symmetric; otherwise it is periodic, for use with `mlc.fft`.
        dtype: Dtype of the result, float32 or float64.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (M,).

    Raises:
        UserError: `M` is negative (MLC0358), `dtype` another one (MLC0359), or `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.signal.windows.nuttall(3)
        tensor([3.628e-04, 1.000e+00, 3.628e-04], dtype=mlc.float32)
    """
    return _window(cosines(count_of(M, "M"), (0.3635819, 0.4891775, 0.1365995, 0.0106411), sym), dtype)


@creation
def bartlett(M: int, *, sym: bool = True, dtype: DTypeLike = "float32", device: Any = None) -> Tensor:
    """1 - |2 i / N - 1|, the Bartlett window, a triangle.

    Args:
        M: Number of elements.
        sym: Whether the window is symmetric; otherwise it is periodic, for use with `mlc.fft`.
        dtype: Dtype of the result, float32 or float64.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (M,).

    Raises:
        UserError: `M` is negative (MLC0358), `dtype` another one (MLC0359), or `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.signal.windows.bartlett(5)
        tensor([0. , 0.5, 1. , 0.5, 0. ], dtype=mlc.float32)
    """
    d = _distances(M, sym)
    span = len(d) - 1 if sym else len(d)
    return _window(np.ones(1) if len(d) == 1 else 1 - np.abs(2 * d / max(1, span)), dtype)


@creation
def cosine(M: int, *, sym: bool = True, dtype: DTypeLike = "float32", device: Any = None) -> Tensor:
    """sin(pi (i + 0.5) / M), the cosine window; of M + 1 where it is periodic.

    Args:
        M: Number of elements.
        sym: Whether the window is symmetric; otherwise it is periodic, for use with `mlc.fft`.
        dtype: Dtype of the result, float32 or float64.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (M,).

    Raises:
        UserError: `M` is negative (MLC0358), `dtype` another one (MLC0359), or `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.signal.windows.cosine(3)
        tensor([0.5, 1. , 0.5], dtype=mlc.float32)
    """
    count = count_of(M, "M")
    span = count if sym or count == 1 else count + 1
    return _window(np.sin(np.pi * (np.arange(count) + 0.5) / max(1, span)), dtype)


@creation
def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True,
                dtype: DTypeLike = "float32", device: Any = None) -> Tensor:
    """e ** (-|i - center| / tau), the exponential window.

    Args:
        M: Number of elements.
        center: Where the maximum is; the middle by default, and only that in a symmetric window.
        tau: The decay.
        sym: Whether the window is symmetric; otherwise it is periodic, for use with `mlc.fft`.
        dtype: Dtype of the result, float32 or float64.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (M,).

    Raises:
        UserError: `M` is negative (MLC0358) or `tau` not positive, or a symmetric window is given a centre (MLC0360),
            `dtype` is another one (MLC0359), or `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.signal.windows.exponential(3)
        tensor([0.36787945, 1.        , 0.36787945], dtype=mlc.float32)
    """
    if center is not None and sym:
        raise UserError("a symmetric window has its centre in the middle", code="MLC0360", hint="pass sym=False")
    d = _distances(M, sym) if center is None else np.arange(count_of(M, "M")) - center
    return _window(np.ones(1) if len(d) == 1 and center is None else np.exp(-np.abs(d) / _positive(tau, "tau")), dtype)


@creation
def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: DTypeLike = "float32", device: Any = None) -> Tensor:
    """e ** (-(d / std) ** 2 / 2) for distances d from the middle, the Gaussian window.

    Args:
        M: Number of elements.
        std: The standard deviation.
        sym: Whether the window is symmetric; otherwise it is periodic, for use with `mlc.fft`.
        dtype: Dtype of the result, float32 or float64.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (M,).

    Raises:
        UserError: `M` is negative (MLC0358) or `std` not positive (MLC0360), `dtype` is another one (MLC0359), or
            `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.signal.windows.gaussian(3)
        tensor([0.60653067, 1.        , 0.60653067], dtype=mlc.float32)
    """
    d = _distances(M, sym) if M != 1 else np.zeros(1)
    return _window(np.exp(-0.5 * (d / _positive(std, "std")) ** 2), dtype)


def _kaiser(d: Array, beta: float, sym: bool) -> Array:
    """i0(beta sqrt(1 - (d / half) ** 2)) / i0(beta) at these distances from the middle"""
    if len(d) == 1:
        return np.ones(1)
    half = max(1e-300, (len(d) - 1 if sym else len(d)) / 2)
    inside = np.sqrt(np.maximum(0, 1 - (d / half) ** 2))
    return np.asarray(np.i0(beta * inside) / np.i0(beta))


@creation
def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: DTypeLike = "float32", device: Any = None) -> Tensor:
    """i0(beta sqrt(1 - (2 i / N - 1) ** 2)) / i0(beta), the Kaiser window.

    Args:
        M: Number of elements.
        beta: The shape, at least 0.
        sym: Whether the window is symmetric; otherwise it is periodic, for use with `mlc.fft`.
        dtype: Dtype of the result, float32 or float64.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (M,).

    Raises:
        UserError: `M` is negative (MLC0358) or `beta` (MLC0360), `dtype` is another one (MLC0359), or `dtype` is no
            dtype (MLC0342).

    Example:
        >>> mlc.signal.windows.kaiser(3)
        tensor([5.277344e-05, 1.000000e+00, 5.277344e-05], dtype=mlc.float32)
    """
    if beta < 0:
        raise UserError(f"beta = {beta}, expected at least 0", code="MLC0360")
    return _window(_kaiser(_distances(M, sym), beta, sym), dtype)


@creation
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: DTypeLike = "float32",
                  device: Any = None, requires_grad: bool = False) -> Tensor:
    """i0(beta sqrt(1 - (2 i / N - 1) ** 2)) / i0(beta), the Kaiser window.

    Args:
        window_length: Number of elements.
        periodic: Whether N is `window_length`, for use with `fft`; otherwise it is one less, and the window is
            symmetric.
        beta: The shape: the greater, the narrower is the window.
        dtype: Dtype of the result, of floats.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape (window_length,).

    Raises:
        UserError: `window_length` is negative (MLC0358), or `dtype` is no dtype (MLC0342) or none of floats (MLC0359).

    Example:
        >>> mlc.kaiser_window(4, beta=3.0)
        tensor([0.20488475, 0.72692555, 1.        , 0.72692555], dtype=mlc.float32)
    """
    distances = _distances(count_of(window_length, "window_length"), not periodic)
    return window_of_floats(_kaiser(distances, beta, not periodic), dtype)
