"""tensor, linear algebra: eigenvalues of symmetric matrices and singular values, by Jacobi rotations.

In each round disjoint pairs of columns are rotated, all at once; n - 1 rounds (a sweep) meet every pair, as in a
tournament. Sweeps go on until no pair needs a rotation, and a matrix that is done is not touched by those that others
of its batch still need. Golub and Van Loan, "Matrix computations", 8.5 and 8.6; Brent and Luk, "The solution of
singular-value and symmetric eigenvalue problems on multiprocessor arrays", 1985.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.base import Array, broadcast_to, compare, full, keep_axes, reshape, select
from mlc.dialects.tensor.control import for_loop, from_index, while_loop
from mlc.dialects.tensor.linalg.elimination import Factorisation, Qr
from mlc.dialects.tensor.linalg.matrices import (
    MatrixOp,
    at,
    batched,
    column_vector,
    columns,
    diagonal,
    first,
    identity,
    mt,
    on_diagonal,
    padded,
    product,
    row_vector,
    symmetric,
    unbatched,
)
from mlc.dialects.tensor.source import Iota, size
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, f64, i1, i64

SWEEPS = 40
"""Most sweeps; fewer suffice in practice, as convergence is quadratic once the off-diagonal elements are small."""


class Eigh(MatrixOp, name="tensor.eigh"):
    """result = w, v with (x + x^T) / 2 = v diag(w) v^T, w ascending and v orthogonal

    The element of maximum absolute value of each column of v, the first one among ties, is positive. All elements are
    NaN if x is not finite.

        %r:2 = tensor.eigh %x : (tensor<Bx3x3xf32>) -> (tensor<Bx3xf32>, tensor<Bx3x3xf32>)
    """

    x: Value

    def infer(self) -> tuple[TensorType, ...]:
        x = self.square()
        return x.with_shape(x.shape[:-1]), x

    def each(self, x: Array) -> Any:
        if not np.isfinite(x).all():
            return np.full(len(x), np.nan), np.full(x.shape, np.nan)
        w, v = np.linalg.eigh((x + x.T) / 2)
        return w, v * _signs(v)

    def decompose(self) -> tuple[Value, ...]:
        x, batch = batched(symmetric(self.x)), self.x.type.shape[:-2]
        n = x.type.shape[-1]
        if n == 0:
            return reshape(self.x, self.x.type.shape[:-1]), self.x
        wide = (n + 1) // 2 * 2
        bound = _norm(x) * _epsilon(x, 1 / 16)
        x = padded(x, wide, wide)

        def turn(partner: Value, x: Value, v: Value) -> tuple[list[Value], Value]:
            across = compare("eq", columns(wide), column_vector(partner))
            off = tensor.ReduceSum(select(across, x, full(0, x)), (2,)).result
            angle = _Rotation(partner, diagonal(x), off, lambda p, q, off: compare(
                "gt", tensor.Abs(off).result, bound))
            x = angle.columns(angle.rows(x))
            x = select(tensor.And(across, column_vector(angle.rotated)).result, full(0, x), x)
            return [x, angle.columns(v)], angle.rotated

        x, v = _sweeps(wide, [x, identity(x, wide, wide)], turn)
        w, v = reshape(first(row_vector(diagonal(x)), 1, n), (x.type.shape[0], n)), first(v, n, n)
        order = tensor.ArgSort(w, 1).result
        w, v = tensor.TakeAlong(w, order, 1).result, taken_columns(v, order)
        finite = compare("lt", bound, full(np.inf, bound))
        nan = full(np.nan, w)
        v = select(column_vector(finite), v * row_vector(_sign_values(v)), nan)
        return unbatched(select(finite, w, nan), batch), unbatched(v, batch)

    def vjp(self, dw: Value, dv: Value) -> list[Value | None]:
        """v (diag(dw) + f * (v^T dv)) v^T, symmetrised, with f[i, j] = 1 / (w[j] - w[i]), or 0 for equal eigenvalues.
        Giles, "Collected matrix derivative results", 2008, 3.1.

        v^T dv is symmetric for equal eigenvalues, unless the function depends on which of their vectors is given, so
        that their term is 0 / 0. It is 0 of functions of v alone, which an infinite f would make NaN; of functions of
        w and v it is lost.
        """
        w, v = self.results
        inner = product(v, dv, left=True) * _inverse(row_vector(w) - column_vector(w))
        inner = on_diagonal(broadcast_to(row_vector(dw), inner.type.shape), inner)
        return [symmetric(product(product(v, inner), v, right=True))]


class Svd(Factorisation, name="tensor.svd"):
    """result = u, s, v with x = u diag(s) v, s descending and not negative, u and v^T with orthonormal columns

    For m by n matrices and k = min(m, n), u is m by k and v k by n. The element of maximum absolute value of each
    column of u, the first one among ties, is positive.

        %r:3 = tensor.svd %x : (tensor<Bx3x2xf32>) -> (tensor<Bx3x2xf32>, tensor<Bx2xf32>, tensor<Bx2x2xf32>)
    """

    def infer(self) -> tuple[TensorType, ...]:
        x, k = self.shorter()
        *batch, m, n = x.shape
        return x.with_shape((*batch, m, k)), x.with_shape((*batch, k)), x.with_shape((*batch, k, n))

    def each(self, x: Array) -> Any:
        k = min(x.shape)
        if not np.isfinite(x).all():
            return np.full((len(x), k), np.nan), np.full(k, np.nan), np.full((k, x.shape[1]), np.nan)
        u, s, v = np.linalg.svd(x, full_matrices=False)
        signs = _signs(u)
        return u * signs, s, v * signs.reshape(-1, 1)

    def decompose(self) -> tuple[Value, ...]:
        x, batch = batched(self.x), self.x.type.shape[:-2]
        _, k = self.shorter()
        wide = x.type.shape[-1] != k
        if k == 0:
            return tuple(full(0, self.x, r.type.shape) for r in self.results)
        scale = _power_of_two(x)
        u, s, v = _one_sided((mt(x) if wide else x) / scale)
        if wide:
            u, v = v, u
        signs = row_vector(_sign_values(u))
        s = s * reshape(scale, (scale.type.shape[0], 1))
        return unbatched(u * signs, batch), unbatched(s, batch), unbatched(mt(v * signs), batch)

    def vjp(self, du: Value, ds: Value, dv: Value) -> list[Value | None]:
        """Giles, "Collected matrix derivative results", 2008, 3.2, extended to the orthogonal complements of u and v.

        u (k + diag(ds)) v^T + (1 - u u^T) du / s v^T + u / s dv^T (1 - v v^T), where k = (p s[j] + s[i] q) / (s[j]^2 -
        s[i]^2) = ((p + q) / (s[j] - s[i]) + (p - q) / (s[j] + s[i])) / 2 with p = skew(u^T du), q = skew(v^T dv) and
        skew(a) = a - a^T. Terms with a zero divisor are omitted: the second stays where two singular values are equal.
        """
        u, s, v = self.results
        m, n = self.x.type.shape[-2:]
        _, k = self.shorter()
        across, down = row_vector(s), column_vector(s)
        a, b = product(u, du, left=True), product(v, dv, right=True)
        of_u, of_v = a - mt(a), b - mt(b)
        inner = ((of_u + of_v) * _inverse(across - down) + (of_u - of_v) * _inverse(across + down)) * full(0.5, a)
        inner = on_diagonal(broadcast_to(across * 0 + row_vector(ds), inner.type.shape), inner)
        left = product(u, inner)
        if m != k:
            left = left + (du - product(u, a)) * _inverse(across)
        dx = product(left, v)
        if n != k:
            dx = dx + product(u, (dv - product(b, v, left=True)) * _inverse(down))
        return [dx]


def _one_sided(x: Value) -> tuple[Value, Value, Value]:
    """u, s and v^T of matrices with at least as many rows as columns: x = q r, and rotations make r v orthogonal.

    Its columns are then u diag(s). If some are zero, another QR factorisation completes u.
    Hestenes, "Inversion of matrices by biorthogonalization and related results", 1958.
    """
    count, _, n = x.type.shape
    wide = (n + 1) // 2 * 2
    q, r = Qr(x).results
    tolerance = tensor.Sqrt(size(n, x.type.dtype)).result * _epsilon(x, 1)

    def turn(partner: Value, x: Value, v: Value) -> tuple[list[Value], Value]:
        other = tensor.Take(x, partner, 2).result
        squares, off = tensor.ReduceSum(x * x, (1,)).result, tensor.ReduceSum(x * other, (1,)).result
        angle = _Rotation(partner, squares, off, lambda p, q, off: compare(
            "gt", tensor.Abs(off).result, tensor.Sqrt(p).result * tensor.Sqrt(q).result * tolerance))
        return [angle.columns(x), angle.columns(v)], angle.rotated

    bound = _norm(r)
    x, v = _sweeps(wide, [padded(r, n, wide), identity(r, wide, wide)], turn)
    s = tensor.Sqrt(tensor.ReduceSum(x * x, (1,)).result).result
    descending = tensor.ArgSort(s, 1, True).result
    order = reshape(first(row_vector(descending), 1, n), (count, n))
    s, v, x = tensor.TakeAlong(s, order, 1).result, first(taken_columns(v, order), n, n), taken_columns(x, order)
    basis, triangle = Qr(x).results
    corner = diagonal(triangle)
    left = basis * row_vector(select(compare("lt", corner, full(0, corner)), full(-1, corner), full(1, corner)))
    finite = compare("lt", bound, full(np.inf, bound))
    nan = full(np.nan, s)
    return (select(column_vector(finite), product(q, left), nan), select(finite, s, nan),
            select(column_vector(finite), v, nan))


class _Rotation:
    """Rotations of disjoint pairs of columns: columns i and partner[i] each become c * own + s * other.

    They zero the off-diagonal element `off` of each pair, given the diagonal elements; if `needed` is false, a pair is
    left unchanged. c * own + s * other is computed as own + s * (other - s / (1 + c) * own): most angles are small,
    and a small correction leaves columns orthonormal to rounding however many rotations there are. Rutishauser, "The
    Jacobi method for real symmetric matrices", 1966.
    """

    def __init__(self, partner: Value, squares: Value, off: Value, needed: Callable[..., Value]) -> None:
        self.partner = partner
        line = Iota(partner.type.shape, 0, i64).result
        low = compare("lt", line, partner)

        def of_pair(x: Value) -> Value:
            return select(low, x, tensor.Take(x, partner, 1).result)

        p, q, off = of_pair(squares), select(low, tensor.Take(squares, partner, 1).result, squares), of_pair(off)
        zero, one = full(0, off), full(1, off)
        self.rotated = needed(p, q, off)
        ratio = (q - p) / (select(self.rotated, off, one) * 2)
        steep = tensor.Abs(ratio).result
        tangent = one / (steep + tensor.Sqrt(ratio * ratio + 1).result)
        tangent = select(compare("lt", ratio, zero), -tangent, tangent)
        cosine = one / tensor.Sqrt(tangent * tangent + 1).result
        sine = tangent * cosine
        self.sine = select(self.rotated, select(low, -sine, sine), zero)
        self.half = self.sine / (cosine + 1)                     # the tangent of half the angle

    def columns(self, x: Value) -> Value:
        return self._turned(x, tensor.Take(x, self.partner, 2).result, row_vector)

    def rows(self, x: Value) -> Value:
        return self._turned(x, tensor.Take(x, self.partner, 1).result, column_vector)

    def _turned(self, own: Value, other: Value, along: Callable[[Value], Value]) -> Value:
        return own + along(self.sine) * (other - along(self.half) * own)


def _sweeps(n: Dim, carried: Sequence[Value],
            turn: Callable[..., tuple[list[Value], Value]]) -> Sequence[Value]:
    """Rounds until a sweep makes no rotation. As in a round-robin tournament of n players, i and j meet in round r if
    i + j = r modulo n - 1; a player that would meet itself meets the last one."""
    rounds = size(n - 1, i64)
    line = Iota((n,), 0, i64).result
    last = compare("eq", line, rounds)

    def play(r: Value, going: Value, *carried: Value) -> list[Value]:
        number = from_index(r)
        opposite = tensor.Rem(number - line, rounds).result
        partner = select(compare("eq", opposite, line), rounds, opposite)
        of_last = tensor.Rem(number * size(n // 2, i64), rounds).result
        out, rotated = turn(select(last, of_last, partner), *carried)
        return [tensor.Or(going, tensor.ReduceAny(rotated, (0, 1)).result).result, *out]

    def sweep(number: Value, going: Value, *carried: Value) -> list[Value]:
        nothing = tensor.Full(False, (), i1).result
        return [number + 1, *for_loop(0, n - 1, [nothing, *carried], play)]

    def unfinished(number: Value, going: Value, *_: Value) -> Value:
        return tensor.And(going, compare("lt", number, at(SWEEPS))).result

    start = [at(0), tensor.Full(True, (), i1).result]
    return while_loop(unfinished, sweep, [*start, *carried])[2:]


def _greatest(x: Value) -> Value:
    """The maximum absolute value of each matrix of [b, m, n], as [b, 1, 1]."""
    return keep_axes(tensor.ReduceMax(tensor.Abs(x).result, (1, 2)).result, (1, 2), x.type.shape)


def _power_of_two(x: Value) -> Value:
    """The maximum absolute value of each matrix rounded down to a power of two: division by it is exact, after which
    squares of significant elements neither overflow nor underflow. 1 if x is 0 or not finite."""
    top = _greatest(x)
    one, zero = full(1, top), full(0, top)
    usual = tensor.And(compare("gt", top, zero), compare("lt", top, full(np.inf, top))).result
    most = 1023.0 if x.type.dtype == f64 else 127.0          # the logarithm of the largest number rounds up to one more
    exponent = tensor.Floor(tensor.Log2(select(usual, top, one)).result).result
    exponent = tensor.Minimum(tensor.Maximum(exponent, full(1 - most, top)).result, full(most, top)).result
    return tensor.Exp2(exponent).result


def _norm(x: Value) -> Value:
    """The Frobenius norm of each matrix of [b, m, n], as [b, 1]; NaN if x is not finite."""
    shape = x.type.shape
    top = _greatest(x)
    scaled = x / select(compare("eq", top, full(0, top)), full(1, top), top)
    total = tensor.ReduceSum(scaled * scaled, (1, 2)).result
    return reshape(tensor.Sqrt(total).result, (shape[0], 1)) * reshape(top, (shape[0], 1))


def _epsilon(like: Value, times: float) -> Value:
    """`times` the machine epsilon."""
    return full(times * 2.0 ** (-52 if like.type.dtype == f64 else -23), like)


def _inverse(x: Value) -> Value:
    """1 / x, and 0 where x is 0, which omits terms of equal eigenvalues."""
    zero = compare("eq", x, full(0, x))
    return select(zero, full(0, x), full(1, x) / select(zero, full(1, x), x))


def taken_columns(x: Value, order: Value) -> Value:
    """Gather columns: those of each matrix of [b, m, n] at positions [b, k]."""
    count, k = order.type.shape
    index = broadcast_to(reshape(order, (count, 1, k)), (count, x.type.shape[1], k))
    return tensor.TakeAlong(x, index, 2).result


def _sign_values(v: Value) -> Value:
    """1 or -1 for each column of [b, m, n]: the factor that makes its element of maximum absolute value positive."""
    best = tensor.ArgMax(tensor.Abs(v).result, 1).result
    found = reshape(tensor.TakeAlong(v, row_vector(best), 1).result, best.type.shape)
    return select(compare("lt", found, full(0, found)), full(-1, found), full(1, found))


def _signs(v: Array) -> Array:
    """`_sign_values` in numpy, for one matrix."""
    if v.size == 0:
        return np.ones(v.shape[1])
    best = np.argmax(np.abs(v), 0)
    return np.asarray(np.where(v[best, np.arange(v.shape[1])] < 0, -1.0, 1.0))


