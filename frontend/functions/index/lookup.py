"""One-hot vectors, tables, and diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.axes import plain_int
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.create import creation
from mlc.frontend.functions.index.picking import known_integers
from mlc.frontend.functions.shape import sliced
from mlc.frontend.operands import cast, integer, need, number, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import i64


@operation(name="one_hot")
def _one_hot(tensor: Operand, n: int) -> Tensor:
    x = integer(tensor, "tensor")
    if n < 0:
        raise UserError("the number of classes must be given: it decides the shape of the result", code="MLC0365",
                        hint="pass num_classes")
    shape = [*x.shape, n]
    known = emit(T.Take, emit(T.Iota, (n,), 0, i64), x, 0)           # x itself, if it is a class
    classes = emit(T.Iota, tuple(shape), len(shape) - 1, i64)
    return cast(tracer(reshape(known, [*x.shape, 1]) == classes), i64)


@creation
def one_hot(tensor: Operand, num_classes: int = -1) -> Tensor:
    """One-hot vectors: result[..., k] = 1 where tensor[...] == k, and 0 elsewhere.

    Args:
        tensor: Tensor of integers from 0 to num_classes - 1.
        num_classes: Size of the last dimension of the result. -1 stands for one more than the greatest element, which
            is not known within a compiled function.

    Returns:
        Tensor of int64 of shape (*tensor.shape, num_classes).

    Raises:
        UserError: elements are no integers (MLC0354), one is no class (MLC0340, an IndexError), or `num_classes` is
            needed (MLC0365).

    Example:
        >>> nn.functional.one_hot(mlc.tensor([0, 2]), 3)
        tensor([[1, 0, 0],
                [0, 0, 1]], dtype=mlc.int64)
    """
    n = plain_int(num_classes, "num_classes")
    if n < 0 and (known := known_integers(tensor)) is not None and known.size:
        n = max(int(known.max()) + 1, 1)                   # a negative element is no class of it
    return _one_hot(tensor, n)


def rows_of(table: Tracer, index: Operand) -> Tracer:
    """The rows at the indices, which must not be negative: embeddings do not count from the end."""
    return emit(T.Take, table, integer(index, "input"), 0, weak=False)  # type: ignore[no-any-return]


def padding_row(padding_idx: int, rows: Dim) -> Dim:
    """The row of a table that `padding_idx` names, counted from the front; UserError if there is none."""
    at = plain_int(padding_idx, "padding_idx")
    message = f"padding_idx = {at} is no row of the table"
    if isinstance(rows, int) and not -rows <= at < rows:
        raise UserError(f"{message}, which has {rows}", code="MLC0356")
    need(rows - 1 - at if at >= 0 else rows + at, message)
    return at if at >= 0 else rows + at


def _diagonal_view(array: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    most = max(array.shape, default=0)                     # beyond it, there is no diagonal, and numpy has no number
    return np.diagonal(array, max(-most, min(plain_int(offset, "offset"), most)), dim1, dim2)


@operation(view=_diagonal_view)
def diagonal(input: Operand, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The elements of a diagonal of two dimensions, as a new last dimension.

    Args:
        input: Tensor of at least 2 dimensions.
        offset: The diagonal: index in `dim2` less index in `dim1`.
        dim1: First of the dimensions; negative ones count from the last.
        dim2: Second of them.

    Returns:
        Tensor of the dtype of `input`, without `dim1` and `dim2`, with the diagonal as its last dimension.

    Raises:
        UserError: a dimension is out of range (MLC0356), both are the same (MLC0357), or a size is symbolic (MLC0365).

    Example:
        >>> mlc.diagonal(mlc.tensor([[1, 2], [3, 4]]))
        tensor([1, 4], dtype=mlc.int64)
        >>> mlc.diagonal(mlc.tensor([[1, 2], [3, 4]]), 1)
        tensor([2], dtype=mlc.int64)
    """
    from mlc.frontend.functions.shape import movedim
    x = tracer(input)
    x = tracer(movedim(x, (dim1, dim2), (-2, -1)))
    rows, columns = x.shape[-2], x.shape[-1]
    if isinstance(rows, Size) or isinstance(columns, Size):
        raise UserError(f"the diagonal of {rows} x {columns} has no length that is known", code="MLC0365",
                        symbols=sizes.symbols(rows, columns))
    down, right = max(0, -offset), max(0, offset)
    length = max(0, min(rows - down, columns - right))
    flat = reshape(x, [*x.shape[:-2], rows * columns])
    start = down * columns + right
    stop = start + (length - 1) * (columns + 1) + 1 if length else start
    return sliced(flat, flat.ndim - 1, start if length else 0, stop if length else 0, columns + 1)


@operation()
def diag(input: Operand, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix that has a vector as its diagonal.

    Args:
        input: Tensor of 1 or 2 dimensions.
        diagonal: The diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: `input` is no vector or matrix (MLC0364).

    Example:
        >>> mlc.diag(mlc.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]], dtype=mlc.int64)
        >>> mlc.diag(mlc.tensor([[1, 2], [3, 4]]))
        tensor([1, 4], dtype=mlc.int64)
    """
    x = tracer(input)
    if x.ndim == 2:
        return _diagonal(x, diagonal)
    if x.ndim != 1:
        raise UserError(f"diag needs a vector or a matrix, found {x.ndim} dimensions", code="MLC0364")
    diagonal = plain_int(diagonal, "diagonal")
    size = x.shape[0] + abs(diagonal)
    row = emit(T.Iota, (size, size), 0, i64)
    column = emit(T.Iota, (size, size), 1, i64)
    low, high = (0, size - x.shape[0]) if diagonal < 0 else (size - x.shape[0], 0)
    zero = number(0, x.type.dtype)
    along = emit(T.Pad, x, zero, (low,), (high,), (0,))
    return E.where(column - row == diagonal, along, zero)


_diagonal = diagonal
