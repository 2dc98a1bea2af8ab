"""tensor, linear algebra: building blocks of factorisations: batches of matrices, their parts and products.

The last two axes of a tensor are a matrix, the others a batch; matrices are independent. Decompositions work on one
batch axis, [b, m, n]. Their steps are loops over columns or blocks of columns, with updates masked by the loop counter,
and all products of blocks are tensor.dot_general.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.base import (
    Array,
    again,
    batch_axis_at,
    batch_axis_first,
    compare,
    full,
    leading,
    reshape,
    rounded,
    select,
    shape_text,
)
from mlc.dialects.tensor.composite import Composite
from mlc.dialects.tensor.shape import transpose
from mlc.dialects.tensor.source import Iota
from mlc.ir import sizes
from mlc.ir.core import Op, Value
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, c64, c128, f32, f64, i64

BLOCK = 32
"""Columns that are factored together; they update the trailing submatrix by one matrix product."""


class MatrixOp(Composite):
    """An operation on float32 or float64 matrices."""

    vmap = leading

    def matrices(self) -> list[TensorType]:
        """The types of the operands: matrices of one element type."""
        types = self.floats()
        for i, type in enumerate(types):
            if type.dtype not in (f32, f64, c64, c128):
                self.refuse(f"does not work on {type.dtype}, only on f32 and f64 elements", "MLC0113",
                            hint="cast the operand first")
            if type.rank < 2:
                self.refuse(f"operand {i} has shape {shape_text(type.shape)}, which is not a matrix", "MLC0117")
        return types

    def square(self) -> TensorType:
        """The type of the first operand, a batch of square matrices."""
        x = self.matrices()[0]
        if x.shape[-1] != x.shape[-2]:
            self.refuse(f"the matrix has {x.shape[-2]} rows and {x.shape[-1]} columns, which must be equal", "MLC0115",
                        symbols=sizes.symbols(*x.shape[-2:]))
        return x

    def ref(self, *xs: Any) -> Any:
        """`each` of all matrices in float64, stacked, and rounded to the element types of the results."""
        batch = xs[0].shape[:-2]
        wide = [np.asarray(x, np.complex128 if np.asarray(x).dtype.kind == "c" else np.float64) for x in xs]
        types = [r.type.dtype for r in self.results]
        with np.errstate(all="ignore"):
            results = [self.each(*(x[at] for x in wide)) for at in np.ndindex(batch)] or [
                self.each(*(np.ones(x.shape[-2:]) for x in wide))]
        results = [r if isinstance(r, tuple) else (r,) for r in results]
        out = [rounded(np.stack(parts)[: int(np.prod(batch))].reshape(*batch, *np.shape(parts[0])), dtype)
               for parts, dtype in zip(zip(*results), types)]
        return out[0] if len(out) == 1 else out

    def each(self, *xs: Any) -> Any:
        """The results for one matrix of each operand."""
        raise NotImplementedError


def of_columns(op: Op, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Any:
    """The batching rule of solvers: if only the right-hand sides are batched, the batch axis becomes columns."""
    if batched[0]:
        return leading(op, batch_size, operands, batched)
    a, b = operands
    (*batch, n, m), at = b.type.shape[1:], b.type.rank - 2
    made = again(op, [a, reshape(batch_axis_at(b, at), (*batch, n, batch_size * m))])
    return batch_axis_first(reshape(made, (*batch, n, batch_size, m)), at)


class LinearSystem(MatrixOp):
    """The x with a x = b, for a square matrix a; the columns of b are right-hand sides."""

    a: Value
    b: Value
    vmap = of_columns
    format = "$a `,` $b attr-dict `:` functional-type"

    def infer(self) -> TensorType:
        a = self.square()
        b: TensorType = self.b.type
        if b.rank != a.rank or b.shape[:-1] != a.shape[:-1]:
            self.refuse(f"right-hand sides of shape {shape_text(b.shape)} do not fit {shape_text(a.shape)}", "MLC0115",
                        symbols=sizes.differing(b.shape[:-1], a.shape[:-1]))
        return b

    def each(self, a: Array, b: Array) -> Any:
        try:
            return np.linalg.solve(a, b)
        except np.linalg.LinAlgError:
            return np.full(b.shape, np.nan)


# -- batches ----------------------------------------------------------------------------------------------------------
def batched(x: Value) -> Value:
    """[..., m, n] as [b, m, n]."""
    shape = x.type.shape
    return reshape(x, (sizes.product(shape[:-2]), *shape[-2:]))


def unbatched(x: Value, batch: Sequence[Dim]) -> Value:
    """[b, ...] as [*batch, ...]."""
    return reshape(x, (*batch, *x.type.shape[1:]))


# -- parts ------------------------------------------------------------------------------------------------------------
def rows(m: Dim, rank: int = 3) -> Value:
    """Row indices, broadcastable over matrices."""
    return Iota((*[1] * (rank - 2), m, 1), rank - 2, i64).result


def columns(n: Dim, rank: int = 3) -> Value:
    """Column indices, broadcastable over matrices."""
    return Iota((*[1] * (rank - 1), n), rank - 1, i64).result


def piece(x: Value, row: Value | int, column: Value | int, m: Dim, n: Dim) -> Value:
    """The m by n submatrix at (row, column) of each matrix of [b, ., .]."""
    starts = (at(0), at(row), at(column))
    return tensor.DynamicSlice(x, starts, (x.type.shape[0], m, n)).result


def put(x: Value, new: Value, row: Value | int, column: Value | int) -> Value:
    """x with its submatrix at (row, column) replaced by `new`."""
    return tensor.DynamicUpdateSlice(x, new, (at(0), at(row), at(column))).result


def at(i: Value | int) -> Value:
    return i if isinstance(i, Value) else tensor.Full(i, (), i64).result


def first(x: Value, m: Dim, n: Dim) -> Value:
    """The first m rows and n columns of each matrix."""
    return part(x, 0, m, 0, n)


def part(x: Value, top: Dim, bottom: Dim, left: Dim, right: Dim) -> Value:
    """Rows [top, bottom) and columns [left, right) of each matrix."""
    shape = x.type.shape
    lead = len(shape) - 2
    starts, stops = (*[0] * lead, top, left), (*shape[:-2], bottom, right)
    if stops == shape and not any(starts):
        return x
    return tensor.Slice(x, starts, stops, (1,) * len(shape)).result


def where(predicate: str, a: Value, b: Value, x: Value, other: Value | None = None) -> Value:
    """x where predicate(a, b) holds, elsewhere `other` or 0."""
    return select(compare(predicate, a, b), x, full(0, x) if other is None else other)


def tril(x: Value, strict: bool = False) -> Value:
    """x on and below the diagonal, or only below it; else 0."""
    shape, rank = x.type.shape, x.type.rank
    return where("gt" if strict else "ge", rows(shape[-2], rank), columns(shape[-1], rank), x)


def triu(x: Value) -> Value:
    """x on and above the diagonal, else 0."""
    shape, rank = x.type.shape, x.type.rank
    return where("le", rows(shape[-2], rank), columns(shape[-1], rank), x)


def on_diagonal(x: Value, other: Value | None = None) -> Value:
    """x on the diagonal, elsewhere `other` or 0; with `other`, x may be a scalar."""
    shape = (x if other is None else other).type.shape
    return where("eq", rows(shape[-2], len(shape)), columns(shape[-1], len(shape)), x, other)


def identity(like: Value, m: Dim, n: Dim) -> Value:
    """An m by n identity matrix for each matrix of [b, ., .]."""
    one = full(1, like, (like.type.shape[0], m, n))
    return on_diagonal(one)


def padded(x: Value, m: Dim, n: Dim) -> Value:
    """x padded with rows and columns of zeros to m by n."""
    shape = x.type.shape
    if shape[-2:] == (m, n):
        return x
    lead = len(shape) - 2
    high = (*[0] * lead, m - shape[-2], n - shape[-1])
    return tensor.Pad(x, full(0, x), (0,) * len(shape), high, (0,) * len(shape)).result


def padded_square(x: Value, n: Dim) -> Value:
    """A square matrix padded with the identity to n rows."""
    shape = x.type.shape
    if shape[-1] == n:
        return x
    wide = padded(x, n, n)
    line = rows(n, len(shape))
    extra = tensor.And(compare("eq", line, columns(n, len(shape))),
                       compare("ge", line, tensor.Size(shape[-1], i64).result if not isinstance(shape[-1], int)
                               else full(shape[-1], line))).result
    return select(extra, full(1, x), wide)


def blocks(n: Dim) -> tuple[Dim, Dim]:
    """The number of columns that are factored together, and n rounded up to a multiple of it."""
    if isinstance(n, int) and n <= BLOCK:
        return n, n
    return BLOCK, (n + (BLOCK - 1)) // BLOCK * BLOCK


# -- products ---------------------------------------------------------------------------------------------------------
def mt(x: Value) -> Value:
    """Each matrix transposed."""
    rank = x.type.rank
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def product(a: Value, b: Value, left: bool = False, right: bool = False) -> Value:
    """The matrix product; `left` and `right` transpose the left or right factor first."""
    lead = a.type.rank - 2
    batch = tuple((i, i) for i in range(lead))
    contract = ((lead if left else lead + 1, lead + 1 if right else lead),)
    return tensor.DotGeneral(a, b, batch, contract).result


def symmetric(x: Value) -> Value:
    """(x + x^T) / 2"""
    return (x + mt(x)) * 0.5


def diagonal(x: Value) -> Value:
    """The diagonal of each square matrix."""
    return tensor.ReduceSum(on_diagonal(x), (x.type.rank - 1,)).result


def column_vector(x: Value) -> Value:
    """[..., n] as [..., n, 1]."""
    return reshape(x, (*x.type.shape, 1))


def row_vector(x: Value) -> Value:
    """[..., n] as [..., 1, n]."""
    return reshape(x, (*x.type.shape[:-1], 1, x.type.shape[-1]))
