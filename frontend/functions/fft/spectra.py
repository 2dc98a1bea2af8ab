"""Frequencies of transforms, and window functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.frontend.axes import plain_int
from mlc.frontend.dtypes import as_dtype, as_ir, float32
from mlc.frontend.functions.create import creation
from mlc.frontend.operands import count_of, tracer
from mlc.frontend.tensor import Array, DTypeLike, Tensor, wrap
from mlc.frontend.trace import state
from mlc.ir.diag import UserError
from mlc.ir.types import to_numpy


def known_numbers(values: Any, dtype: DTypeLike) -> Tensor:
    """A constant tensor of precomputed numbers."""
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
        UserError: `n` is below 1 or `d` is 0 (MLC0360), or `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.fft.fftfreq(4)
        tensor([ 0.  ,  0.25, -0.5 , -0.25], dtype=mlc.float32)
    """
    return known_numbers(np.fft.fftfreq(_spaced(n, d), d), dtype)


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
        UserError: `n` is below 1 or `d` is 0 (MLC0360), or `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.fft.rfftfreq(4)
        tensor([0.  , 0.25, 0.5 ], dtype=mlc.float32)
    """
    return known_numbers(np.fft.rfftfreq(_spaced(n, d), d), dtype)


HANN, HAMMING, BLACKMAN = (0.5, 0.5), (0.54, 0.46), (0.42, 0.5, 0.08)
"""Coefficients of cosine windows."""


def cosines(count: int, coefficients: Sequence[float], symmetric: bool) -> Array:
    """sum of (-1)^k * coefficients[k] * cos(2 pi k i / N), for N = count - 1, or count if the window is periodic"""
    if count == 1:
        return np.ones(1)
    phase = 2 * np.pi * np.arange(count) / (count - 1 if symmetric else max(1, count))
    return np.asarray(sum((-1) ** k * c * np.cos(k * phase) for k, c in enumerate(coefficients)) + np.zeros(count))


def window_of_floats(values: Array, dtype: DTypeLike) -> Tensor:
    """The values as a window of any dtype of floats; None is float32."""
    wanted = float32 if dtype is None else as_dtype(dtype)
    if not wanted.is_floating_point:
        raise UserError(f"a window of {wanted.name}, expected floats", code="MLC0359",
                        hint="convert the window afterwards: window.to(...)")
    return known_numbers(values, wanted)


def _window(length: int, periodic: bool, coefficients: Sequence[float], dtype: DTypeLike) -> Tensor:
    return window_of_floats(cosines(count_of(length, "window_length"), coefficients, not periodic), dtype)


@creation
def hann_window(window_length: int, periodic: bool = True, *, dtype: DTypeLike = "float32", device: Any = None,
                requires_grad: bool = False) -> Tensor:
    """0.5 - 0.5 cos(2 pi i / N), the Hann window.

    Args:
        window_length: Number of elements.
        periodic: Whether N is `window_length`, for use with `fft`; otherwise it is one less, and the window is
            symmetric.
        dtype: Dtype of the result, of floats.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape (window_length,).

    Raises:
        UserError: `window_length` is negative (MLC0358), or `dtype` is no dtype (MLC0342) or none of floats (MLC0359).

    Example:
        >>> mlc.hann_window(4)
        tensor([0. , 0.5, 1. , 0.5], dtype=mlc.float32)
    """
    return _window(window_length, periodic, HANN, dtype)


@creation
def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
                   dtype: DTypeLike = "float32", device: Any = None, requires_grad: bool = False) -> Tensor:
    """alpha - beta cos(2 pi i / N), the Hamming window.

    Args:
        window_length: Number of elements.
        periodic: Whether N is `window_length`, for use with `fft`; otherwise it is one less, and the window is
            symmetric.
        alpha: The first coefficient.
        beta: The second coefficient.
        dtype: Dtype of the result, of floats.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape (window_length,).

    Raises:
        UserError: `window_length` is negative (MLC0358), or `dtype` is no dtype (MLC0342) or none of floats (MLC0359).

    Example:
        >>> mlc.hamming_window(4)
        tensor([0.08, 0.54, 1.  , 0.54], dtype=mlc.float32)
    """
    return _window(window_length, periodic, (alpha, beta), dtype)


@creation
def blackman_window(window_length: int, periodic: bool = True, *, dtype: DTypeLike = "float32", device: Any = None,
                    requires_grad: bool = False) -> Tensor:
    """0.42 - 0.5 cos(2 pi i / N) + 0.08 cos(4 pi i / N), the Blackman window.

    Args:
        window_length: Number of elements.
        periodic: Whether N is `window_length`, for use with `fft`; otherwise it is one less, and the window is
            symmetric.
        dtype: Dtype of the result, of floats.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape (window_length,).

    Raises:
        UserError: `window_length` is negative (MLC0358), or `dtype` is no dtype (MLC0342) or none of floats (MLC0359).

    Example:
        >>> mlc.blackman_window(4)
        tensor([-1.3877788e-17,  3.4000000e-01,  1.0000000e+00,  3.4000000e-01], dtype=mlc.float32)
    """
    return _window(window_length, periodic, BLACKMAN, dtype)


@creation
def bartlett_window(window_length: int, periodic: bool = True, *, dtype: DTypeLike = "float32", device: Any = None,
                    requires_grad: bool = False) -> Tensor:
    """1 - |2 i / N - 1|, the Bartlett window, a triangle.

    Args:
        window_length: Number of elements.
        periodic: Whether N is `window_length`, for use with `fft`; otherwise it is one less, and the window is
            symmetric.
        dtype: Dtype of the result, of floats.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape (window_length,).

    Raises:
        UserError: `window_length` is negative (MLC0358), or `dtype` is no dtype (MLC0342) or none of floats (MLC0359).

    Example:
        >>> mlc.bartlett_window(4)
        tensor([0. , 0.5, 1. , 0.5], dtype=mlc.float32)
    """
    count = count_of(window_length, "window_length")
    span = max(1, count if periodic else count - 1)
    return window_of_floats(np.ones(1) if count == 1 else 1 - np.abs(2 * np.arange(count) / span - 1), dtype)
