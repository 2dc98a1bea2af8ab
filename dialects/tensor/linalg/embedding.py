"""tensor, linear algebra of complex matrices, by that of real ones of twice the size.

a + bi is represented by [[a, -b], [b, a]]: products, inverses and functions of matrices are those of the
representations. Where it is interleaved, that is, made of such blocks for each element, its Cholesky factor is the
representation of the complex factor, whose diagonal is real.
"""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor
from mlc.dialects.tensor.base import again, compare, full, reshape, select
from mlc.dialects.tensor.linalg.matrices import columns, rows
from mlc.dialects.tensor.parts import Parts
from mlc.ir.core import Value
from mlc.ir.sizes import Dim


def _joined(a: Value, b: Value, axis: int) -> Value:
    return tensor.Concat((a, b), axis).result


def embedded(x: Parts) -> Value:
    """[[a, -b], [b, a]]"""
    a, b = x
    last = a.type.rank - 1
    return _joined(_joined(a, -b, last), _joined(b, a, last), last - 1)


def _piece(x: Value, shape: tuple[Dim, ...], row: Dim) -> Value:
    """The matrices of a shape that begin at a row and in the first column."""
    lead = (0,) * (len(shape) - 2)
    stops = (*shape[:-2], row + shape[-2], shape[-1])
    return tensor.Slice(x, (*lead, row, 0), stops, (1,) * len(shape)).result


def first_column(x: Value, shape: tuple[Dim, ...]) -> Parts:
    """The parts of matrices of a shape, from the first column of their representation."""
    return Parts(_piece(x, shape, 0), _piece(x, shape, shape[-2]))


def solution(op: Any, a: Parts, b: Parts) -> Parts:
    """x with a x = b"""
    both = _joined(b.real, b.imag, b.real.type.rank - 2)
    return first_column(tensor.Solve(embedded(a), both).result, b.real.type.shape)


def function(op: Any, x: Parts) -> Parts:
    """A function of matrices."""
    return first_column(again(op, [embedded(x)]), op.result.type.shape)


def pseudoinverse(op: Any, x: Parts) -> Parts:
    """With the bound of the complex matrix, which is half as large."""
    m, n = op.x.type.shape[-2:]
    rtol = op._rtol(max(m, n)) if isinstance(m, int) and isinstance(n, int) else op.rtol
    return first_column(tensor.Pinv(embedded(x), op.atol, rtol).result, op.result.type.shape)


def triangular_solution(op: Any, a: Parts, b: Parts) -> Parts:
    """The representation of a triangular matrix is none, so that a general one is factored."""
    n, rank = a.real.type.shape[-1], a.real.type.rank
    row, column = rows(n, rank), columns(n, rank)
    zero = full(0, a.real)
    kept = compare("le" if op.upper else "ge", row, column)
    parts = [select(kept, v, zero) for v in a]
    if op.unit:
        diagonal = compare("eq", row, column)
        parts = [select(diagonal, full(number, a.real), v) for number, v in zip((1, 0), parts)]
    if op.transposed:
        order = (*range(rank - 2), rank - 1, rank - 2)
        parts = [tensor.Transpose(v, order).result for v in parts]
    return solution(op, Parts(*parts), b)


def factor(op: Any, x: Parts) -> Parts:
    """The Cholesky factor, from that of the interleaved representation."""
    a, b = x
    *batch, n, _ = a.type.shape
    rank = len(batch) + 2

    def beside(left: Value, right: Value, axis: int) -> Value:
        def lifted(v: Value) -> Value:
            shape = v.type.shape
            return reshape(v, (*shape[:axis], 1, *shape[axis:]))
        return _joined(lifted(left), lifted(right), axis)

    blocks = beside(beside(a, -b, rank), beside(b, a, rank), rank - 1)             # [row, part, column, part]
    made = tensor.Cholesky(reshape(blocks, (*batch, 2 * n, 2 * n))).result
    split = reshape(made, (*batch, n, 2, n, 2))
    zeros, ones = (0,) * len(batch), (1,) * (rank + 2)
    pieces = (tensor.Slice(split, (*zeros, 0, i, 0, 0), (*batch, n, i + 1, n, 1), ones).result for i in range(2))
    return Parts(*(reshape(v, (*batch, n, n)) for v in pieces))

