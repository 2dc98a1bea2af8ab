"""tensor, linear algebra: LU factorisation with partial pivoting, and Householder QR factorisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.base import Array, broadcast_to, compare, full, less, reshape, select
from mlc.dialects.tensor.control import for_loop, from_index
from mlc.dialects.tensor.linalg import embedding
from mlc.dialects.tensor.linalg.matrices import (
    LinearSystem,
    MatrixOp,
    at,
    batched,
    blocks,
    columns,
    first,
    identity,
    mt,
    on_diagonal,
    padded,
    part,
    piece,
    product,
    put,
    rows,
    tril,
    triu,
    unbatched,
    where,
)
from mlc.dialects.tensor.linalg.triangular import TriangularSolve, solve_block
from mlc.dialects.tensor.parts import decomposed
from mlc.dialects.tensor.source import size
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import ComplexType, ScalarType, TensorType, i64, to_numpy


class Factorisation(MatrixOp):
    """A factorisation of m by n matrices."""

    x: Value

    def shorter(self) -> tuple[TensorType, Dim]:
        """The type of x, and min(m, n)."""
        x, = self.matrices()
        m, n = x.shape[-2:]
        if m == n or less(n, m):
            return x, n
        if not less(m, n):
            self.refuse(f"it is not known statically whether {m} rows or {n} columns are fewer", "MLC0688",
                        symbols=sizes.symbols(m, n),
                        hint="use sizes that are static or equal")
        return x, m


class Lu(Factorisation, name="tensor.lu"):
    """result = lu, pivots, permutation with x[permutation] = l u, l below the diagonal of lu and ones on it, u the rest

    Step j exchanges the rows j and pivots[j], so that the pivot is the element of maximum absolute value, the first one
    among ties. A column of zeros is left unchanged: u then has a zero on the diagonal. If x is not finite, lu is NaN
    and no rows are exchanged.

        %r:3 = tensor.lu %x : (tensor<Bx3x3xf32>) -> (tensor<Bx3x3xf32>, tensor<Bx3xi64>, tensor<Bx3xi64>)
    """

    def infer(self) -> tuple[TensorType, ...]:
        x, k = self.shorter()
        return x, TensorType((*x.shape[:-2], k), i64), TensorType(x.shape[:-1], i64)

    on_parts = decomposed

    def each(self, x: Array) -> Any:
        m, n = x.shape
        pivots, order = np.arange(min(m, n)), np.arange(m)
        if not np.isfinite(x).all():
            return np.full_like(x, np.nan), pivots, order
        for j in range(min(m, n)):
            p = pivots[j] = j + int(np.argmax(np.abs(x[j:, j].real) + np.abs(x[j:, j].imag)))
            x, order = x[_exchanged(m, j, p)], order[_exchanged(m, j, p)]
            if x[j, j] != 0:
                x[j + 1:, j] /= x[j, j]
            x[j + 1:, j + 1:] -= np.outer(x[j + 1:, j], x[j, j + 1:])
        return x, pivots, order

    def decompose(self) -> tuple[Value, ...]:
        x, batch = batched(self.x), self.x.type.shape[:-2]
        count, m, n = x.type.shape
        _, k = self.shorter()
        if k == 0:
            order = broadcast_to(tensor.Iota((m,), 0, i64).result, (*batch, m))
            return self.x, full(0, order, (*batch, k)), order
        block, wide = blocks(k)
        tall = (m if m != k else wide) if m != k and less(wide - 1, m) else wide
        broad = n if n != k and less(wide - 1, n) else wide
        finite, unchanged = are_finite(x), (broadcast_to(rows(k), (count, k, 1)), broadcast_to(rows(m), (count, m, 1)))
        x = padded(x, tall, broad)
        order = broadcast_to(rows(tall), (count, tall, 1))
        pivots = full(0, order, (count, wide, 1))
        if wide == block:
            x, order, pivots = _eliminate_block(at(0), block, x, order, pivots)
        else:
            x, order, pivots = for_loop(0, wide, [x, order, pivots], lambda i, *carried: _eliminate_block(
                from_index(i), block, *carried), block)
        x = first(x, m, n)
        pivots, order = (select(finite, first(found, s, 1), own)
                         for found, s, own in zip((pivots, order), (k, m), unchanged))
        return (unbatched(select(finite, x, full(np.nan, x)), batch), unbatched(reshape(pivots, (count, k)), batch),
                unbatched(reshape(order, (count, m)), batch))

    def vjp(self, ct: Value, *_: Value) -> list[Value | None]:
        """For a square x: P^T l^-T (tril(l^T dl, -1) + triu(du u^T)) u^-T; additional columns of u are l^-1 x, and
        additional rows of l are x u^-1.

        A pivot of 0 counts as a tiny number: in the derivative of the determinant it cancels, and leaves the cofactors.
        """
        lu, pivots, order = self.results
        m, n = lu.type.shape[-2:]
        k = pivots.type.shape[-1]
        square = part(lu, 0, k, 0, k)
        zero = compare("eq", _magnitude(square), full(0, _magnitude(square)))
        square = on_diagonal(select(zero, full(tiny_pivot(square.type.dtype), square), square), square)
        dl, du = tril(part(ct, 0, k, 0, k), strict=True), triu(part(ct, 0, k, 0, k))
        below = right = None
        if m != k:
            below = mt(TriangularSolve(square, mt(part(ct, k, m, 0, k)), upper=True).result)
            du = triu(du - product(part(lu, k, m, 0, k), below, left=True))
        if n != k:
            right = TriangularSolve(square, part(ct, 0, k, k, n), transposed=True, unit=True).result
            dl = tril(dl - product(right, part(lu, 0, k, k, n), right=True), strict=True)
        lower = on_diagonal(full(1, square), tril(square, strict=True))
        inner = tril(product(lower, dl, left=True), strict=True) + triu(product(du, triu(square), right=True))
        half = TriangularSolve(square, inner, transposed=True, unit=True).result
        dx = mt(TriangularSolve(square, mt(half), upper=True).result)
        if below is not None:
            dx = tensor.Concat((dx, below), dx.type.rank - 2).result
        if right is not None:
            dx = tensor.Concat((dx, right), dx.type.rank - 1).result
        return [taken_rows(dx, tensor.ArgSort(order, order.type.rank - 1).result)]


def tiny_pivot(dtype: ScalarType) -> float:
    """The number in place of a pivot of 0 where a factorization is differentiated: its square can be represented."""
    return math.sqrt(np.finfo(to_numpy(dtype)).tiny)


def _exchanged(count: int, a: int, b: int) -> Array:
    out = np.arange(count)
    out[[a, b]] = b, a
    return out


def taken_rows(x: Value, order: Value) -> Value:
    """Gather rows: those of each matrix of [..., m, n] at positions [..., m]."""
    shape = x.type.shape
    index = broadcast_to(reshape(order, (*order.type.shape, 1)), (*order.type.shape, shape[-1]))
    return tensor.TakeAlong(x, index, len(shape) - 2).result


def _eliminate_block(start: Value, block: Dim, x: Value, order: Value, pivots: Value) -> list[Value]:
    """Factor the columns of a block from `start`, exchange rows in all others, and update the trailing submatrix."""
    count, m, n = x.type.shape
    row, column = rows(m), columns(n)
    here = broadcast_to(row, (count, m, 1))
    panel, moved, pivots = for_loop(0, block, [piece(x, 0, start, m, block), here, pivots],
                                    lambda i, *carried: _eliminate_column(from_index(i), start, *carried))
    x = taken_rows(x, reshape(moved, (count, m)))
    order = tensor.TakeAlong(order, moved, 1).result
    end = start + block
    corner = piece(panel, start, 0, block, block)
    lower = on_diagonal(full(1, corner), corner)
    solved = where("ge", column, end, solve_block(lower, piece(x, start, 0, block, n)))
    rest = x - product(where("ge", row, end, panel), solved)
    top = where("ge", column, end, solved, piece(x, start, 0, block, n))
    return [put(put(rest, top, start, 0), panel, 0, start), order, pivots]


def _magnitudes(x: Value) -> list[Value]:
    """|x|, and of complex numbers that of each part."""
    parts = [x] if not isinstance(x.type.dtype, ComplexType) else [tensor.Real(x).result, tensor.Imag(x).result]
    return [tensor.Abs(v).result for v in parts]


def _magnitude(x: Value) -> Value:
    """|x|, and of complex numbers |a| + |b|, by which LAPACK chooses pivots."""
    first, *rest = _magnitudes(x)
    return first + rest[0] if rest else first


def are_finite(x: Value) -> Value:
    """Whether all elements of a matrix of [b, m, n] are finite, as [b, 1, 1].

    What a factorisation makes of others depends on the order of its steps, and on those that multiply with zeros in
    place of leaving elements out.
    """
    greatest = reduce(lambda a, b: tensor.Maximum(a, b).result, _magnitudes(x))
    greatest = reshape(tensor.ReduceMax(greatest, (1, 2)).result, (x.type.shape[0], 1, 1))
    return compare("lt", greatest, full(np.inf, greatest))


def _eliminate_column(j: Value, start: Value, x: Value, order: Value, pivots: Value) -> list[Value]:
    """One elimination step in a block of columns: exchange two rows, divide below the diagonal, update to the right."""
    count, m, n = x.type.shape
    row, column = rows(m), columns(n)
    here = start + j
    size_of = _magnitude(piece(x, 0, j, m, 1))
    score = where("ge", row, here, size_of, full(-1, size_of))
    best = reshape(tensor.ArgMax(score, 1).result, (count, 1, 1))

    def exchanged(y: Value) -> Value:
        found = reshape(tensor.ReduceSum(where("eq", row, best, y), (1,)).result, (count, 1, y.type.shape[2]))
        other = where("eq", row, best, piece(y, here, 0, 1, y.type.shape[2]), y)
        return where("eq", row, here, found, other)

    x, order = exchanged(x), exchanged(order)
    pivot = piece(x, here, j, 1, 1)
    pivot = select(compare("eq", pivot, full(0, pivot)), full(1, pivot), pivot)
    below = where("gt", row, here, piece(x, 0, j, m, 1) / pivot)
    right = where("gt", column, j, piece(x, here, 0, 1, n))
    in_column = tensor.And(compare("eq", column, j), compare("gt", row, here)).result
    return [select(in_column, below, x - below * right), order, put(pivots, best, here, 0)]


class Qr(Factorisation, name="tensor.qr"):
    """result = q, r with x = q r, q with orthonormal columns and r upper triangular

    For m by n matrices and k = min(m, n), q is m by k and r k by n; if `complete`, m by m and m by n. Signs follow
    LAPACK's Householder reflections: r[j, j] has the opposite sign of the element that it replaces. If x is not finite,
    q and the upper triangle of r are NaN.

        %r:2 = tensor.qr %x : (tensor<Bx3x2xf32>) -> (tensor<Bx3x2xf32>, tensor<Bx2x2xf32>)
    """

    x: Value
    complete: bool = False

    def infer(self) -> tuple[TensorType, ...]:
        x, k = self.shorter()
        *batch, m, n = x.shape
        inner = m if self.complete else k
        return x.with_shape((*batch, m, inner)), x.with_shape((*batch, inner, n))

    def each(self, x: Array) -> Any:
        q, r = np.linalg.qr(x, "complete" if self.complete else "reduced")
        if not np.isfinite(x).all():
            return np.full_like(q, np.nan), np.triu(np.full_like(r, np.nan))
        return q, r

    def decompose(self) -> tuple[Value, ...]:
        x, batch = batched(self.x), self.x.type.shape[:-2]
        count, m, n = x.type.shape
        _, k = self.shorter()
        inner = m if self.complete else k
        q = identity(x, m, inner)
        if k == 0:
            return unbatched(q, batch), unbatched(first(x, inner, n), batch)
        finite = are_finite(x)
        vectors, factors = full(0, x, (count, m, k)), full(0, x, (count, k, 1))
        x, vectors, factors = for_loop(0, k, [x, vectors, factors], lambda i, *carried: _reflect(
            from_index(i), *carried))

        def apply(i: Value, q: Value) -> list[Value]:
            j = size(k - 1, i64) - from_index(i)
            return [_reflected(q, piece(vectors, 0, j, m, 1), piece(factors, j, 0, 1, 1))]

        q, = for_loop(0, k, [q], apply)
        q, x = (select(finite, found, full(np.nan, found)) for found in (q, first(x, inner, n)))
        return unbatched(q, batch), unbatched(triu(x), batch)

    def vjp(self, dq: Value, dr: Value) -> list[Value | None]:
        """(dq + q sym(tril(m))) r^-T with m = r dr^T - dq^T q, where sym mirrors the lower triangle. Walter and
        Lehmann, "Algorithmic differentiation of linear algebra functions", 2018. Columns past the k-th are q dr."""
        q, r = self.results[0], first(self.results[1], self.shorter()[1], self.x.type.shape[-1])
        m, n = self.x.type.shape[-2:]
        _, k = self.shorter()
        if self.complete and m != k:
            self.refuse("the complete factorisation of more rows than columns has no derivative", "MLC0130",
                        hint="leave out complete")
        dr, right = triu(dr), None
        if n != k:
            right = product(q, part(dr, 0, k, k, n))
            dq = dq + product(part(self.x, 0, m, k, n), part(dr, 0, k, k, n), right=True)
            r, dr = part(r, 0, k, 0, k), part(dr, 0, k, 0, k)
        inner = product(r, dr, right=True) - product(dq, q, left=True)
        inner = tril(inner) + mt(tril(inner, strict=True))
        dx = mt(TriangularSolve(r, mt(dq + product(q, inner)), upper=True).result)
        return [dx if right is None else tensor.Concat((dx, right), dx.type.rank - 1).result]


def _reflected(x: Value, vector: Value, factor: Value) -> Value:
    """(1 - factor * v v^T) x"""
    return x - (vector * factor) * product(vector, x, left=True)


def _reflect(j: Value, x: Value, vectors: Value, factors: Value) -> Sequence[Value]:
    """One Householder reflection, which zeroes column j below the diagonal."""
    _, m, n = x.type.shape
    row, column = rows(m), columns(n)
    old = piece(x, 0, j, m, 1)
    head, tail = piece(x, j, j, 1, 1), where("gt", row, j, old)
    zero, one = full(0, x), full(1, x)
    greatest = tensor.ReduceMax(tensor.Abs(where("ge", row, j, old)).result, (1,)).result
    scale = reshape(greatest, head.type.shape)
    scale = select(compare("eq", scale, zero), one, scale)
    small, rest = head / scale, tail / scale
    below = reshape(tensor.ReduceSum(rest * rest, (1,)).result, head.type.shape)
    norm = tensor.Sqrt(small * small + below).result * scale
    done = compare("eq", below, zero)
    new = select(done, head, select(compare("lt", head, zero), norm, -norm))
    divisor = select(done, one, head - new)
    vector = where("eq", row, j, one, tail / divisor)
    factor = select(done, zero, (new - head) / select(done, one, new))
    updated = _reflected(x, vector, factor)
    made = where("lt", row, j, old, where("eq", row, j, new))
    return [where("eq", column, j, made, updated), put(vectors, vector, 0, j), put(factors, factor, j, 0)]


class Solve(LinearSystem, name="tensor.solve"):
    """result = the x with a x = b, by the LU factorisation of a

    Infinities and NaNs if a is singular; NaN if it is not finite.

        %r = tensor.solve %a, %b : (tensor<Bx3x3xf32>, tensor<Bx3x2xf32>) -> tensor<Bx3x2xf32>
    """

    on_parts = embedding.solution

    def each(self, a: Array, b: Array) -> Any:
        return super().each(a, b) if np.isfinite(a).all() else np.full_like(b, np.nan)

    def decompose(self) -> Value:
        lu, _, order = Lu(self.a).results
        half = TriangularSolve(lu, taken_rows(self.b, order), unit=True).result
        return TriangularSolve(lu, half, upper=True).result

    def vjp(self, ct: Value) -> list[Value | None]:
        """db = a^-T ct, da = -db x^T"""
        db = Solve(mt(self.a), ct).result
        return [-product(db, self.result, right=True), db]


def order_of_pivots(pivots: Value) -> Value:
    """The permutation of rows by the successive exchanges of row i and row pivots[i] - 1."""
    *batch, n = pivots.type.shape
    if n == 0:
        return pivots
    flat = reshape(pivots, (sizes.product(batch), n, 1))
    count = flat.type.shape[0]
    row = rows(n)

    def step(i: Value, order: Value) -> list[Value]:
        here = from_index(i)
        best = piece(flat, here, 0, 1, 1) - 1
        found = tensor.ReduceSum(where("eq", row, best, order), (1,)).result
        other = where("eq", row, best, piece(order, here, 0, 1, 1), order)
        return [where("eq", row, here, reshape(found, (count, 1, 1)), other)]

    order, = for_loop(0, n, [broadcast_to(row, (count, n, 1))], step)
    return reshape(order, (*batch, n))
