"""Fourier transforms, and spectrograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.frontend.functions.fft.lines import fft, ifft
from mlc.frontend.onnx.moving import padded
from mlc.frontend.onnx.table import row
from mlc.frontend.onnx.values import axis_of, dtype_of, number, refuse
from mlc.frontend.tensor import OPERATIONS as O


def transformed(x: Any, n: int | None, axis: int, inverse: int, onesided: int) -> Any:
    """The transform of complex numbers, or of real ones, whose last axis is one of parts."""
    last = x.shape[-1]
    if last not in (1, 2):
        refuse(f"{last} parts of a number")
    axis = axis_of(axis, x.ndim)
    if axis == x.ndim - 1:
        refuse("the parts are transformed")
    if onesided and inverse:
        return _from_half(x, n, axis)
    y = O["complex"](x[..., 0], x[..., 1]) if last == 2 else O["complex"](x[..., 0], O["zeros_like"](x[..., 0]))
    y = ifft(y, n, axis) if inverse else fft(y, n, axis)
    if onesided:
        y = y[(slice(None),) * axis + (slice(0, y.shape[axis] // 2 + 1),)]
    return O["view_as_real"](y)


def _from_half(x: Any, n: int | None, axis: int) -> Any:
    """The real numbers that a half of a spectrum is of, whose other half mirrors it."""
    half = O["complex"](x[..., 0], x[..., 1])
    total = n if n is not None else 2 * (x.shape[axis] - 1)
    at = (slice(None),) * axis
    rest = O["conj"](O["flip"](half[(*at, slice(1, total - total // 2))], (axis,)))
    out = ifft(O["cat"]((half[(*at, slice(0, total // 2 + 1))], rest), axis), None, axis)
    return O["unsqueeze"](O["real"](out), -1)


@row("DFT", since=20, known=("dft_length", "axis"))
def dft(x: Any, dft_length: Any = None, axis: Any = None, *, inverse: int = 0, onesided: int = 0) -> Any:
    return transformed(x, None if dft_length is None else number(dft_length), -2 if axis is None else number(axis),
                       inverse, onesided)


@row("DFT", known=("dft_length",))
def dft_by_attribute(x: Any, dft_length: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0) -> Any:
    return transformed(x, None if dft_length is None else number(dft_length), axis, inverse, onesided)


@row("STFT", known=("frame_step", "frame_length"))
def stft(signal: Any, frame_step: Any, window: Any = None, frame_length: Any = None, *, onesided: int = 1) -> Any:
    """The transform of each frame, in an axis of frames before that of frequencies."""
    n = number(frame_length) if frame_length is not None else None if window is None else window.shape[0]
    if n is None:
        refuse("neither a window nor the length of frames is given")
    step, total = number(frame_step), signal.shape[1]
    if not isinstance(total, int) or step < 1 or n > total:
        refuse(f"frames of {n} in a signal of {total}, every {step}")
    starts = np.arange((total - n) // step + 1) * step
    frames = O["index_select"](signal, 1, (starts[:, None] + np.arange(n)).ravel())
    frames = O["reshape"](frames, (signal.shape[0], len(starts), n, signal.shape[2]))
    if window is not None:
        frames = frames * O["reshape"](padded(window, [0, n - window.shape[0]]), (n, 1))
    return transformed(frames, None, 2, 0, onesided)


@row("MelWeightMatrix", known=("bins", "dft_length", "rate", "lowest", "highest"))
def mel_weights(bins: Any, dft_length: Any, rate: Any, lowest: Any, highest: Any, *, output_datatype: int = 1) -> Any:
    """Triangles over frequencies, whose corners are at equal distances on the mel scale."""
    count, length = int(number(bins)), int(number(dft_length))
    mels = [2595 * np.log10(1 + number(f) / 700) for f in (lowest, highest)]
    step = (mels[1] - mels[0]) / (count + 2)
    corners = 700 * (10 ** ((np.arange(count + 2) * step + mels[0]) / 2595) - 1)
    at = ((length + 1) * corners // number(rate)).astype(int)
    out = np.zeros((length // 2 + 1, count))
    for k in range(count):
        low, middle, high = at[k:k + 3]
        if low == middle:
            out[middle, k] = 1
        else:
            out[low:middle + 1, k] = (np.arange(low, middle + 1) - low) / (middle - low)
        if high > middle:
            out[middle:high, k] = (high - np.arange(middle, high)) / (high - middle)
    return O["cast"](out.astype(np.float32), dtype_of(output_datatype))
