"""tensor, Fourier: the discrete Fourier transform. Complex numbers are pairs of floats in the last axis."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.base import Array, along_axes, cast, reshape, shape_text
from mlc.dialects.tensor.composite import Composite
from mlc.dialects.tensor.shape import transpose
from mlc.dialects.tensor.source import Iota
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.types import FloatType, TensorType, f32, f64, i64, to_numpy

RADIX = 32
"""Transforms of at most this many points, and the factors of longer ones, are products with the DFT matrix."""

TABLE = 1 << 14
"""At most this many roots of unity are constants; larger tables are computed where they are used."""


class Dft(Composite, name="tensor.dft"):
    """result[k] = the sum over j of x[j] * e^(-2 pi i j k / n), j and k along axis; with `inverse`, + 2 pi i

    The last axis holds real and imaginary parts. There is no factor 1 / n. Zeros of the result are positive, whatever
    the order of the sums, unless there is only one point.

        %r = tensor.dft %x {axis = 1} : tensor<Bx8x2xf32>
    """

    x: Value
    axis: int
    inverse: bool = False
    vmap = along_axes

    @property
    def needs_finite(self) -> bool:
        return True

    def infer(self) -> TensorType:
        x, = self.floats()
        if x.dtype not in (f32, f64):
            self.refuse(f"does not work on {x.dtype}, only on f32 and f64 elements", "MLC0113",
                        hint="cast the operand first")
        self.check_axis(self.axis, x.rank - 1)
        if x.shape[-1] != 2:
            self.refuse(f"the last axis of {shape_text(x.shape)} must have size 2, for real and imaginary parts",
                        "MLC0115", symbols=sizes.symbols(x.shape[-1]))
        if not isinstance(x.shape[self.axis], int):
            self.refuse(f"size {x.shape[self.axis]} of axis {self.axis} is not static", "MLC0688",
                        symbols=sizes.symbols(x.shape[self.axis]),
                        hint="the decomposition depends on the number of points")
        return x

    def define(self, x: Array) -> Any:
        if x.shape[self.axis] < 2:
            return x                                       # as it is, with the signs of zeros
        z = x[..., 0] + 1j * x[..., 1]
        z = np.fft.ifft(z, axis=self.axis, norm="forward") if self.inverse else np.fft.fft(z, axis=self.axis)
        return np.stack([z.real, z.imag], -1) + 0.0

    def decompose(self) -> Value:
        rank, shape = self.x.type.rank, self.x.type.shape
        n = shape[self.axis]
        assert isinstance(n, int)
        if n < 2:
            return self.x
        rest = [a for a in range(rank - 1) if a != self.axis]
        order = [*rest, self.axis, rank - 1]
        out = transform(transpose(self.x, order), 1 if self.inverse else -1)
        return transpose(out, [order.index(a) for a in range(rank)])

    def vjp(self, ct: Value) -> list[Value | None]:
        return [Dft(ct, self.axis, not self.inverse).result]


def transform(x: Value, sign: int) -> Value:
    """The transform along the second last axis, by factors of its length.

    n = r m, j = a m + b and k = c + r d give e(jk / n) = e(ac / r) e(bc / n) e(bd / m): transforms of r points, a
    product with roots of unity, and transforms of m points. Cooley and Tukey, "An algorithm for the machine
    calculation of complex Fourier series", 1965.
    """
    *batch, n, _ = x.type.shape
    assert isinstance(n, int)
    r = factor(n)
    if r == n:
        return _by_matrix(x, sign) if n <= 2 * RADIX else _by_chirps(x, sign)
    m, lead = n // r, len(batch)
    split = reshape(x, (*batch, r, m, 2))
    transposed = transpose(split, (*range(lead), lead + 1, lead, lead + 2))             # [b, a]
    first = transform(transposed, sign)                                                    # [b, c]
    twisted = times(first, roots((m, r), n, sign, x.type.dtype))
    back = transpose(twisted, (*range(lead), lead + 1, lead, lead + 2))             # [c, b]
    second = transform(back, sign)                                                     # [c, d]
    return reshape(transpose(second, (*range(lead), lead + 1, lead, lead + 2)), (*batch, n, 2))


@cache
def factor(n: int) -> int:
    """The factor of n to split off: the largest up to RADIX, else the smallest prime; n itself if small or prime."""
    if n <= RADIX:
        return n
    for r in range(RADIX, 1, -1):
        if n % r == 0:
            return r
    return next((p for p in range(RADIX + 1, math.isqrt(n) + 1) if n % p == 0), n)


def _by_matrix(x: Value, sign: int) -> Value:
    """The product with the n by n DFT matrix, with real and imaginary parts as additional rows and columns."""
    *batch, n, _ = x.type.shape
    lead = len(batch)
    z = _powers(np.outer(np.arange(n), np.arange(n)), n, sign)
    table = np.stack([np.stack([z.real, z.imag], -1), np.stack([-z.imag, z.real], -1)], 1)     # [j, part, k, part]
    matrix = tensor.Constant(np.ascontiguousarray(table.astype(to_numpy(x.type.dtype)))).result
    return tensor.DotGeneral(x, matrix, (), ((lead, 0), (lead + 1, 1))).result


def _by_chirps(x: Value, sign: int) -> Value:
    """jk = (j^2 + k^2 - (k - j)^2) / 2 turns a transform of any length into a convolution, done by longer transforms.

    Bluestein, "A linear filtering approach to the computation of discrete Fourier transform", 1970.
    """
    *batch, n, _ = x.type.shape
    length = 1 << (2 * n - 2).bit_length()
    chirp = _powers(np.array([j * j for j in range(n)]), 2 * n, sign)
    filter = np.zeros(length, complex)
    filter[:n] = chirp.conj()
    filter[length - n + 1:] = chirp.conj()[:0:-1]
    spectrum = np.fft.fft(filter) / length
    zeros, zero = (0,) * x.type.rank, tensor.Full(0, (), x.type.dtype).result
    chirped = times(x, _pairs(chirp, x.type.dtype))
    padded = tensor.Pad(chirped, zero, zeros, (*[0] * len(batch), length - n, 0), zeros).result
    filtered = transform(times(transform(padded, -1), _pairs(spectrum, x.type.dtype)), 1)
    kept = tensor.Slice(filtered, zeros, (*batch, n, 2), (1,) * x.type.rank).result
    return times(kept, _pairs(chirp, x.type.dtype)) + zero                    # of a zero it makes a positive one


def _powers(k: Array, n: int, sign: int) -> Array:
    """e^(sign 2 pi i k / n), reduced to multiples of pi / 2 and an angle of at most pi / 4, for accuracy."""
    k = k % n
    quarters = (8 * k + n) // (2 * n)
    angle = (4 * k - quarters * n) * (np.pi / (2 * n))
    z = np.array([1, 1j, -1, -1j])[quarters % 4] * np.exp(1j * angle)
    return np.asarray(z if sign > 0 else z.conj())


def _pairs(z: Array, dtype: FloatType) -> tuple[Value, Value]:
    """Complex constants as real and imaginary parts."""
    parts = (np.ascontiguousarray(p.astype(to_numpy(dtype))) for p in (z.real, z.imag))
    real, imaginary = (tensor.Constant(p).result for p in parts)
    return real, imaginary


def roots(shape: tuple[int, int], n: int, sign: int, dtype: FloatType) -> tuple[Value, Value]:
    """e^(sign 2 pi i a b / n) for the coordinates a and b of a matrix, as real and imaginary parts."""
    if shape[0] * shape[1] <= TABLE:
        a, b = np.indices(shape)
        return _pairs(_powers(a * b, n, sign), dtype)
    power = cast(Iota(shape, 0, i64).result * Iota(shape, 1, i64).result, f64)           # below n: exact
    angle = power * (sign * 2 * math.pi / n)
    return cast(tensor.Cos(angle).result, dtype), cast(tensor.Sin(angle).result, dtype)


def times(x: Value, factor: tuple[Value, Value]) -> Value:
    """The complex product of x, with pairs in the last axis, and a factor in parts, which broadcasts."""
    shape = x.type.shape
    parts = []
    for i in range(2):
        piece = tensor.Slice(x, (*[0] * (len(shape) - 1), i), (*shape[:-1], i + 1), (1,) * len(shape)).result
        parts.append(reshape(piece, shape[:-1]))
    (a, b), (c, d) = parts, factor
    out = (a * c - b * d, a * d + b * c)
    return tensor.Concat(tuple(reshape(v, (*shape[:-1], 1)) for v in out), len(shape) - 1).result
