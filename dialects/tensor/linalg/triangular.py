"""tensor, linear algebra: triangular solve and Cholesky factorisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.base import Array, compare, full, select
from mlc.dialects.tensor.control import for_loop, from_index
from mlc.dialects.tensor.linalg import embedding
from mlc.dialects.tensor.linalg.matrices import (
    LinearSystem,
    MatrixOp,
    batched,
    blocks,
    columns,
    diagonal,
    first,
    mt,
    on_diagonal,
    padded,
    padded_square,
    piece,
    product,
    put,
    row_vector,
    rows,
    symmetric,
    tril,
    triu,
    unbatched,
    where,
)
from mlc.ir.core import Value
from mlc.ir.types import TensorType


class TriangularSolve(LinearSystem, name="tensor.triangular_solve"):
    """result = the x with a x = b, where a is the lower triangle of its operand, or the upper if `upper`

    With `transposed`, a^T x = b. With `unit`, the diagonal is taken as ones. A zero on the diagonal gives infinities
    and NaNs.

        %r = tensor.triangular_solve %a, %b : (tensor<Bx3x3xf32>, tensor<Bx3x2xf32>) -> tensor<Bx3x2xf32>
    """

    on_parts = embedding.triangular_solution
    upper: bool = False
    transposed: bool = False
    unit: bool = False

    def each(self, a: Array, b: Array) -> Any:
        a = np.triu(a) if self.upper else np.tril(a)
        if self.unit:
            np.fill_diagonal(a, 1)
        a = a.T if self.transposed else a
        return super().each(a, b)

    def decompose(self) -> Value:
        a, b = batched(self.a), batched(self.b)
        n, batch = a.type.shape[-1], self.a.type.shape[:-2]
        if n == 0:
            return self.b
        if self.unit:
            a = on_diagonal(full(1, a), a)
        if self.transposed:
            a = mt(a)
        flipped = self.upper != self.transposed          # backward substitution: reverse the system
        if flipped:
            a, b = tensor.Reverse(a, (1, 2)).result, tensor.Reverse(b, (1,)).result
        x = solve_lower(a, b)
        return unbatched(tensor.Reverse(x, (1,)).result if flipped else x, batch)

    def vjp(self, ct: Value) -> list[Value | None]:
        """db = a^-T ct, da = the triangle of -db x^T. Giles, "Collected matrix derivative results", 2008."""
        db = TriangularSolve(self.a, ct, self.upper, not self.transposed, self.unit).result
        da = -(product(self.result, db, right=True) if self.transposed else product(db, self.result, right=True))
        da = triu(da) if self.upper else tril(da)
        return [on_diagonal(full(0, da), da) if self.unit else da, db]



def solve_lower(a: Value, b: Value) -> Value:
    """Forward substitution by blocks of rows, each after subtracting the products with the blocks before."""
    n, m = b.type.shape[-2:]
    block, wide = blocks(n)
    if wide == n and block == n:
        return solve_block(a, b)
    a, b = padded_square(a, wide), padded(b, wide, m)

    def step(i: Value, x: Value) -> list[Value]:
        start = from_index(i)
        known = product(piece(a, start, 0, block, wide), x)
        inside = piece(a, start, start, block, block)
        return [put(x, solve_block(inside, piece(b, start, 0, block, m) - known), start, 0)]

    x, = for_loop(0, wide, [full(0, b, b.type.shape)], step, block)
    return first(x, n, m)


def solve_block(a: Value, b: Value) -> Value:
    """Forward substitution: x[j] = b[j] / a[j, j], and b -= a[:, j] x[j] below."""
    n, m = b.type.shape[-2:]
    line = rows(n)

    def step(i: Value, b: Value) -> list[Value]:
        j = from_index(i)
        x = piece(b, j, 0, 1, m) / piece(a, j, j, 1, 1)
        rest = b - piece(a, 0, j, n, 1) * x
        return [select(compare("eq", line, j), x, where("gt", line, j, rest, b))]

    return for_loop(0, n, [b], step)[0]


class Cholesky(MatrixOp, name="tensor.cholesky"):
    """result = the lower triangular l with l l^T = (x + x^T) / 2 and a positive diagonal

    If it is not positive definite, columns are NaN from the first on whose leading minor is not positive.

        %r = tensor.cholesky %x : tensor<Bx3x3xf32>
    """

    on_parts = embedding.factor
    x: Value

    def infer(self) -> TensorType:
        return self.square()

    def each(self, x: Array) -> Any:
        x = (x + x.conj().T) / 2
        out = np.full(x.shape, np.nan, x.dtype)
        for j in range(len(x)):
            row = out[j, :j]
            square = x[j, j].real - (row @ row.conj()).real
            if not square > 0:
                break
            out[:j, j], out[j, j] = 0, np.sqrt(square)
            out[j + 1:, j] = (x[j + 1:, j] - out[j + 1:, :j] @ row.conj()) / out[j, j]
        return out

    def decompose(self) -> Value:
        x = batched(symmetric(self.x))
        n = x.type.shape[-1]
        if n == 0:
            return self.x
        block, wide = blocks(n)
        if wide == n and block == n:
            lower = _cholesky_columns(x, full(0, rows(n)))
        else:
            x = padded_square(x, wide)

            def step(i: Value, lower: Value) -> list[Value]:
                start = from_index(i)
                done = product(lower, piece(lower, start, 0, block, wide), right=True)
                return [put(lower, _cholesky_columns(piece(x, 0, start, wide, block) - done, start), 0, start)]

            lower, = for_loop(0, wide, [full(0, x, x.type.shape)], step, block)
            lower = first(lower, n, n)
        failed = row_vector(tensor.IsNan(diagonal(lower)).result)          # a pivot of NaN makes all that follow NaN
        return unbatched(select(failed, full(float("nan"), lower), lower), self.x.type.shape[:-2])

    def vjp(self, ct: Value) -> list[Value | None]:
        """Murray, "Differentiation of the Cholesky decomposition", 2016: sym(l^-T phi(l^T ct) l^-1), phi the lower
        triangle with half the diagonal."""
        lower = self.result
        phi = tril(product(lower, tril(ct), left=True))
        phi = on_diagonal(phi * 0.5, phi)
        half = TriangularSolve(lower, phi, transposed=True).result
        return [symmetric(mt(TriangularSolve(lower, mt(half), transposed=True).result))]


def _cholesky_columns(x: Value, start: Value) -> Value:
    """The columns of the factor from `start`, given those of a matrix updated by the columns before."""
    m, n = x.type.shape[-2:]
    row, column = rows(m), columns(n)

    def step(i: Value, x: Value) -> list[Value]:
        j = from_index(i)
        pivot = tensor.Sqrt(piece(x, start + j, j, 1, 1)).result
        new = where("ge", row, start + j, piece(x, 0, j, m, 1)) / pivot
        across = piece(mt(new), 0, start, 1, n)
        return [select(compare("eq", column, j), new, where("gt", column, j, x - new * across, x))]

    return for_loop(0, n, [x], step)[0]


