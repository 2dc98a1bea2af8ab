"""tensor, linear algebra: the pseudo-inverse and the matrix exponential, with derivatives of their own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.base import Array, compare, full, reshape, select
from mlc.dialects.tensor.control import for_loop, from_index
from mlc.dialects.tensor.linalg import embedding
from mlc.dialects.tensor.linalg.elimination import Solve
from mlc.dialects.tensor.linalg.matrices import (
    MatrixOp,
    batched,
    identity,
    mt,
    part,
    product,
    row_vector,
    unbatched,
)
from mlc.dialects.tensor.linalg.spectral import Svd
from mlc.dialects.tensor.source import size
from mlc.ir.core import Value
from mlc.ir.types import ScalarType, TensorType, f32, f64, i64


class Pinv(MatrixOp, name="tensor.pinv"):
    """result = v diag(1 / s) u^T for x = u diag(s) v^T, without each s up to max(atol, rtol * the maximum of s)

    rtol defaults to max(m, n) times the epsilon of the element type, unless an atol above 0 is given.

        %r = tensor.pinv %x : (tensor<Bx3x2xf32>) -> tensor<Bx2x3xf32>
    """

    on_parts = embedding.pseudoinverse
    x: Value
    atol: float | None = None
    rtol: float | None = None

    def infer(self) -> TensorType:
        x, = self.matrices()
        return x.with_shape((*x.shape[:-2], x.shape[-1], x.shape[-2]))

    def each(self, x: Array) -> Any:
        if not x.size:
            return x.T
        if not np.isfinite(x).all():
            return np.full_like(x.T, np.nan)
        u, s, v = np.linalg.svd(x, full_matrices=False)
        rtol = self._rtol(max(x.shape))
        kept = s > max(self.atol or 0.0, rtol * s[0])
        return (v.T.conj() * np.where(kept, 1 / np.where(kept, s, 1.0), 0.0)) @ u.T.conj()

    def _rtol(self, n: Any) -> Any:
        if self.rtol is not None:
            return self.rtol
        return 0.0 if self.atol is not None and self.atol > 0 else n * epsilon(self.x.type.dtype)

    def decompose(self) -> Value:
        u, s, v = Svd(self.x).results
        if s.type.shape[-1] == 0:
            return full(0, self.x, self.result.type.shape)
        m, n = (size(d, s.type.dtype) for d in self.x.type.shape[-2:])
        rtol = self._rtol(tensor.Maximum(m, n).result)
        greatest = tensor.ReduceMax(s, (s.type.rank - 1,)).result
        cut = tensor.Maximum(greatest * rtol, full(self.atol or 0.0, s)).result
        kept = compare("gt", s, reshape(cut, (*s.type.shape[:-1], 1)))
        inverse = select(kept, full(1, s) / select(kept, s, full(1, s)), full(0, s))
        return product(mt(v) * row_vector(inverse), u, right=True)

    def vjp(self, ct: Value) -> list[Value | None]:
        """Valid if only zeros of s are omitted. Golub and Pereyra, "The differentiation of pseudo-inverses and
        nonlinear least squares problems whose variables separate", 1973."""
        x, y = self.x, self.result
        g = mt(ct)
        inner = product(g, y)
        outer = product(inner, y, right=True)
        first = outer - mt(product(y, inner)) - product(product(x, y), outer)
        return [first + product(product(y, y, left=True), g - product(inner, x))]


def epsilon(dtype: ScalarType) -> float:
    """Machine epsilon: the distance from 1 to the next number."""
    return 2.0 ** (-52 if dtype == f64 else -23)


PADE = {f32: (7, 3.925724783138660), f64: (13, 5.371920351148152)}
"""The degree of the Pade approximant of e^x, and the maximum 1-norm for which it is exact to rounding."""


class MatrixExp(MatrixOp, name="tensor.matrix_exp"):
    """result = 1 + x + x x / 2 + x x x / 6 + ..., by the Pade approximant of e^(x / 2^s), squared s times

        %r = tensor.matrix_exp %x : tensor<Bx3x3xf32>

    Higham, "The scaling and squaring method for the matrix exponential revisited", 2005. Each matrix has its own s.
    """

    on_parts = embedding.function
    x: Value

    def infer(self) -> TensorType:
        return self.square()

    def each(self, x: Array) -> Any:
        """The Taylor series of x / 2^s, which has 1-norm below 1/2, squared s times."""
        if not np.isfinite(x).all():
            return np.full(x.shape, np.nan)
        norm = np.abs(x).sum(0).max(initial=0.0)
        s = max(0, math.ceil(math.log2(max(norm, 0.5) * 2)))
        small, term, total = x / 2.0 ** s, np.eye(len(x)), np.eye(len(x))
        for k in range(1, 20):
            term = term @ small / k
            total = total + term
        for _ in range(s):
            total = total @ total
        return total

    def decompose(self) -> Value:
        x = batched(self.x)
        count, n, _ = x.type.shape
        if n == 0:
            return self.x
        degree, limit = PADE[x.type.dtype]
        norm = tensor.ReduceMax(tensor.ReduceSum(tensor.Abs(x).result, (1,)).result, (1,)).result
        ratio = tensor.Maximum(norm * (1 / limit), full(1, norm)).result
        finite = compare("lt", norm, full(math.inf, norm))
        halvings = tensor.Ceil(tensor.Log2(select(finite, ratio, full(1, ratio))).result).result
        steps = reshape(tensor.Cast(halvings, i64).result, (count, 1, 1))
        scale = tensor.Exp2(-(tensor.Cast(steps, x.type.dtype).result)).result
        numerator, denominator = _pade(x * scale, degree)
        start = Solve(denominator, numerator).result
        most = tensor.ReduceMax(steps, (0, 1, 2)).result

        def square(i: Value, y: Value) -> list[Value]:
            return [select(compare("lt", from_index(i), steps), product(y, y), y)]

        out, = for_loop(0, most, [start], square)
        out = select(reshape(finite, (count, 1, 1)), out, full(math.nan, out))
        return unbatched(out, self.x.type.shape[:-2])

    def vjp(self, ct: Value) -> list[Value | None]:
        """The upper right block of e^[[x^T, ct], [0, x^T]]. Najfeld and Havel, "Derivatives of the matrix exponential
        and their computation", 1995."""
        return [_corner(mt(self.x), ct)]

    def jvp(self, tangent: Value) -> list[Value]:
        """The upper right block of e^[[x, tangent], [0, x]]."""
        return [_corner(self.x, tangent)]


def _corner(x: Value, y: Value) -> Value:
    """The upper right block of e^[[x, y], [0, x]]: the derivative of e^x in direction y."""
    n, rank = x.type.shape[-1], x.type.rank
    zero = full(0, x, x.type.shape)
    top = tensor.Concat((x, y), rank - 1).result
    bottom = tensor.Concat((zero, x), rank - 1).result
    both = MatrixExp(tensor.Concat((top, bottom), rank - 2).result).result
    return part(both, 0, n, n, 2 * n)


def _pade(x: Value, degree: int) -> tuple[Value, Value]:
    """Numerator and denominator of the approximant: even powers plus and minus odd ones."""
    c = [math.factorial(2 * degree - k) * math.factorial(degree)
         / (math.factorial(2 * degree) * math.factorial(k) * math.factorial(degree - k)) for k in range(degree + 1)]
    n = x.type.shape[-1]
    one, square = identity(x, n, n), product(x, x)
    even, odd, power = one, one * c[1], square
    for k in range(2, degree + 1, 2):
        even = even + power * c[k]
        if k < degree:
            odd = odd + power * c[k + 1]
        if k + 1 < degree:
            power = product(power, square)
    odd = product(x, odd)
    return even + odd, even - odd
