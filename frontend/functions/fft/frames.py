"""Short-time Fourier transforms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.axes import plain_int
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions import shape as S
from mlc.frontend.functions.convolution import unfold_dimension
from mlc.frontend.functions.fft.lines import complex_operand, fft, ifft, irfft, pairs, real_operand, rfft
from mlc.frontend.functions.scatter import index_add
from mlc.frontend.operands import cast, fail_unless, floating, full, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError
from mlc.ir.types import c64, c128, f32, f64


def _settings(n_fft: int, hop_length: Any, win_length: Any, window: Operand, x: Tracer) -> tuple[int, int, Tracer]:
    """The number of points, the distance of frames, and the window, in the middle of the points."""
    points = plain_int(n_fft, "n_fft")
    hop = points // 4 if hop_length is None else plain_int(hop_length, "hop_length")
    given = None if window is None else tracer(window)     # of which the result has the precision, if it is higher
    if given is not None and given.type.dtype not in (f32, f64, c64, c128):
        given = cast(given, x.type.dtype)
    width = plain_int(win_length, "win_length") if win_length is not None else points
    if points < 1 or hop < 1 or not 0 < width <= points:
        raise UserError(f"n_fft = {points}, hop_length = {hop} and win_length = {width}", code="MLC0360")
    if given is not None and given.shape != (width,):
        raise UserError(f"the window has shape [{', '.join(map(str, given.shape))}], expected [{width}]",
                        code="MLC0367")
    left = (points - width) // 2
    shaped = full(1.0, x, [width]) if given is None else given
    return points, hop, tracer(S.pad(shaped, (left, points - width - left)))


@operation()
def stft(input: Operand, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Operand = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
         onesided: bool | None = None, return_complex: bool | None = None) -> Tensor:
    """The short-time Fourier transform: transforms of the windows of a signal, one every `hop_length` elements.

    Args:
        input: Tensor of shape (t,) or (n, t).
        n_fft: Number of points of a transform.
        hop_length: Distance of one frame from the next; n_fft // 4 by default.
        win_length: Size of the window, in the middle of the points; `n_fft` by default.
        window: Tensor of that size; ones by default.
        center: Whether frames are centred on elements, beginning with the first: the signal is padded at both ends.
        pad_mode: How, as of `nn.functional.pad`.
        normalized: Whether to divide by the square root of `n_fft`.
        onesided: Whether to give n_fft // 2 + 1 frequencies, which determine the others, as it is by default if the
            signal is real.
        return_complex: Whether the result is complex, and not floats with a last dimension of size 2; a real signal
            needs it.

    Returns:
        Complex tensor of shape (..., frequencies, frames).

    Raises:
        UserError: the number of dimensions or `return_complex` is wrong (MLC0364), a setting is out of range (MLC0360),
            the window has another shape (MLC0367), or the signal is too short (MLC0366).

    Example:
        >>> mlc.stft(mlc.ones(8), 4, center=False, return_complex=True).shape
        (3, 5)
    """
    x = floating(input)
    is_real = not x.type.dtype.is_complex
    if is_real and return_complex is None:
        raise UserError("stft needs to be told whether to give complex numbers", code="MLC0364",
                        hint="pass return_complex=True; with False they are pairs in a last dimension of size 2")
    if onesided and not is_real:
        raise UserError("the transform of complex numbers has all frequencies", code="MLC0364", hint="onesided=False")
    x = real_operand(x) if is_real else x
    if x.ndim not in (1, 2):
        raise UserError(f"the signal has {x.ndim} dimensions, expected 1 or 2", code="MLC0364")
    points, hop, shaped = _settings(n_fft, hop_length, win_length, window, x)
    batched = x if x.ndim == 2 else reshape(x, [1, *x.shape])
    if center:
        batched = tracer(S.pad(batched, (points // 2, points // 2), pad_mode))
    frames = tracer(unfold_dimension(batched, -1, points, hop)) * shaped
    complete = onesided is False or not is_real or tracer(shaped).type.dtype.is_complex
    found = fft(frames, None, -1) if complete else rfft(frames, None, -1)
    found = found * (1 / math.sqrt(points)) if normalized else found
    found = S.transpose(found, 1, 2)
    found = found if x.ndim == 2 else reshape(tracer(found), tracer(found).shape[1:])
    return pairs(tracer(found)) if return_complex is False else found


@operation()
def istft(input: Operand, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
          window: Operand = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
          length: int | None = None, return_complex: bool = False) -> Tensor:
    """The inverse of `stft`: the signal whose frames are nearest to these.

    Args:
        input: Complex tensor of shape (frequencies, frames) or (n, frequencies, frames).
        n_fft: Number of points of a transform.
        hop_length: Distance of one frame from the next; n_fft // 4 by default.
        win_length: Size of the window, in the middle of the points; `n_fft` by default.
        window: Tensor of that size; ones by default.
        center: Whether frames are centred on elements, so that what `stft` padded is cut off.
        normalized: Whether `stft` divided by the square root of `n_fft`.
        onesided: Whether there are n_fft // 2 + 1 frequencies; None if the size says so.
        length: Number of elements of the signal; by default as many as the frames tell.
        return_complex: Whether the signal is complex, for which there have to be all frequencies.

    Returns:
        Tensor of shape (t,) or (n, t).

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), a setting is out of range (MLC0360), or the window or
            the number of frequencies does not fit (MLC0367).
        UserAssertionError: an element of the signal is in no window (MLC0612).

    Example:
        >>> mlc.istft(mlc.stft(mlc.tensor([1.0, 2.0, 3.0, 4.0]), 2, 1, return_complex=True), 2, 1)
        tensor([1., 2., 3., 4.], dtype=mlc.float32)
    """
    z = complex_operand(input)
    if not tracer(input).type.dtype.is_complex or z.ndim not in (2, 3):
        raise UserError(f"a spectrum is complex and has 2 or 3 dimensions, and this is a {tracer(input).type}",
                        code="MLC0364")
    if return_complex and onesided:
        raise UserError("the transform of complex numbers has all frequencies", code="MLC0364", hint="onesided=False")
    like = emit(T.Real, z)
    points, hop, shaped = _settings(n_fft, hop_length, win_length, window, like)
    if shaped.type.dtype.is_complex:
        raise UserError("the window of an inverse transform is complex, expected real numbers", code="MLC0364")
    batched = z if z.ndim == 3 else reshape(z, [1, *z.shape])
    count, frames = batched.shape[1:3]
    half = not return_complex and (count == points // 2 + 1 if onesided is None else onesided)
    if not isinstance(frames, int) or count != (points // 2 + 1 if half else points):
        raise UserError(f"{count} frequencies in {frames} frames for {points} points", code="MLC0367")
    spectrum = S.transpose(batched, 1, 2)
    spectrum = spectrum if return_complex else S.narrow(spectrum, 2, 0, points // 2 + 1)
    waves = ifft(spectrum, None, 2) if return_complex else irfft(spectrum, points, 2)
    waves = waves * (math.sqrt(points) * shaped if normalized else shaped)
    total = points + hop * (frames - 1)
    at = emit(T.Constant, (np.arange(frames)[:, None] * hop + np.arange(points)).reshape(-1))
    added = index_add(full(0, tracer(waves), [batched.shape[0], total]), 1, at, S.flatten(waves, 1))
    weights = tracer(S.expand(reshape(tracer(shaped * shaped), [1, points]), (frames, points)))
    envelope = index_add(full(0, weights, [total]), 0, at, reshape(weights, [frames * points]))
    start = points // 2 if center else 0
    stop = total - start if length is None else min(total, start + plain_int(length, "length"))
    kept = S.narrow(envelope, 0, start, stop - start)
    fail_unless(R.amin(E.abs(kept)) > 1e-11, "istft: an element of the signal is in no window")
    out = S.narrow(added, 1, start, stop - start) / kept
    if length is not None and length > stop - start:
        out = S.pad(out, (0, length - (stop - start)))
    return out if z.ndim == 3 else reshape(tracer(out), tracer(out).shape[1:])
