"""Diagonal and block-diagonal matrices, and rotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.axes import axis, plain_int
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.grids.combinatorial import operand_list
from mlc.frontend.functions.shape import cat, coordinates, flip, movedim, transpose
from mlc.frontend.operands import broadcast_to, full, reshape, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import f32


@operation()
def diag_embed(input: Operand, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices with the last dimension of a tensor on a diagonal, and 0 elsewhere.

    Args:
        input: Tensor of at least one dimension.
        offset: The diagonal: 0 for the main one, positive above it, negative below it.
        dim1: Dimension of the rows in the result; negative ones count from the last.
        dim2: Dimension of the columns.

    Returns:
        Tensor of the dtype of `input`, with one dimension more.

    Raises:
        UserError: `input` has no dimension (MLC0364), or a dimension is out of range (MLC0356) or named twice
            (MLC0357).

    Example:
        >>> mlc.diag_embed(mlc.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]], dtype=mlc.int64)
    """
    x = tracer(input)
    by = plain_int(offset, "offset")
    n = x.shape[axis(-1, x.ndim, scalar=False)] + abs(by)
    a, b = axis(dim1, x.ndim + 1, "dim1"), axis(dim2, x.ndim + 1, "dim2")
    if a == b:
        raise UserError(f"dim1 = {dim1} and dim2 = {dim2} are the same", code="MLC0357")
    spread = broadcast_to(reshape(x, [*x.shape, 1]), [*x.shape, n])
    zeros = full(0, spread, [*x.shape[:-1], abs(by), n])
    square = tracer(cat([spread, zeros] if by >= 0 else [zeros, spread], -2)) if by else spread
    hit = coordinates(square, square.ndim - 1) == coordinates(square, square.ndim - 2) + by
    out = E.where(hit, square, full(0, square))
    return movedim(out, (-2, -1), (a, b))


@operation()
def diagflat(input: Operand, offset: int = 0) -> Tensor:
    """The matrix with all elements of a tensor on a diagonal, and 0 elsewhere.

    Args:
        input: Tensor or number.
        offset: The diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
        Square matrix of the dtype of `input`.

    Raises:
        UserError: `offset` is no integer (MLC0355).

    Example:
        >>> mlc.diagflat(mlc.tensor([[1, 2]]))
        tensor([[1, 0],
                [0, 2]], dtype=mlc.int64)
    """
    x = tracer(input)
    return diag_embed(reshape(x, [sizes.product(x.shape)]), offset)


@operation()
def block_diag(*tensors: Operand) -> Tensor:
    """The block-diagonal matrix: matrices along the diagonal, and 0 elsewhere.

    Args:
        tensors: Matrices, vectors as rows, or numbers, as separate arguments or as one list.

    Returns:
        Matrix of the promoted dtype; its sizes are the sums of theirs.

    Raises:
        UserError: a tensor has more than 2 dimensions (MLC0364).

    Example:
        >>> mlc.block_diag(mlc.tensor([[1, 2]]), mlc.tensor([[3], [4]]))
        tensor([[1, 2, 0],
                [0, 0, 3],
                [0, 0, 4]], dtype=mlc.int64)
    """
    given = operand_list(tensors) or [emit(T.Full, 0.0, (1, 0), f32)]
    for i, x in enumerate(given):
        if x.ndim > 2:
            raise UserError(f"operand {i} has {x.ndim} dimensions, expected at most 2", code="MLC0364")
    xs = together(*(reshape(x, [1] * (2 - x.ndim) + list(x.shape)) for x in given))
    width = sum(x.shape[1] for x in xs)
    rows, before = [], 0
    for x in xs:
        m, n = x.shape
        parts = [full(0, x, [m, before]), x, full(0, x, [m, width - before - n])]
        rows.append(cat(parts, 1))
        before = before + n
    return cat(rows, 0)


@operation()
def fliplr(input: Operand) -> Tensor:
    """The columns in reverse order: dimension 1 flipped.

    result[i, j] = input[i, n - 1 - j] for n columns. The result is a copy. `mlc.flip` takes any dimensions.

    Args:
        input: Tensor of at least two dimensions.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: there are fewer dimensions (MLC0356).

    Example:
        >>> mlc.fliplr(mlc.tensor([[1, 2], [3, 4]]))
        tensor([[2, 1],
                [4, 3]], dtype=mlc.int64)
    """
    return flip(input, (1,))


@operation()
def flipud(input: Operand) -> Tensor:
    """The rows in reverse order: dimension 0 flipped.

    result[i] = input[n - 1 - i] for n rows. The result is a copy. `mlc.flip` takes any dimensions.

    Args:
        input: Tensor of at least one dimension.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `input` has no dimensions (MLC0364).

    Example:
        >>> mlc.flipud(mlc.tensor([[1, 2], [3, 4]]))
        tensor([[3, 4],
                [1, 2]], dtype=mlc.int64)
    """
    x = tracer(input)
    return flip(x, (axis(0, x.ndim, scalar=False),))


@operation()
def rot90(input: Operand, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """The tensor rotated by 90 degrees, k times, from the first of two dimensions towards the second.

    Args:
        input: Tensor of at least two dimensions.
        k: Number of rotations; negative ones rotate the other way.
        dims: The two dimensions; negative ones count from the last.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: `dims` are not two dimensions (MLC0357), or one is out of range (MLC0356).

    Example:
        >>> mlc.rot90(mlc.tensor([[1, 2], [3, 4]]))
        tensor([[2, 4],
                [1, 3]], dtype=mlc.int64)
    """
    x = tracer(input)
    if len(dims) != 2 or (a := axis(dims[0], x.ndim, "dims")) == (b := axis(dims[1], x.ndim, "dims")):
        raise UserError(f"dims = {tuple(dims)} are not two dimensions", code="MLC0357")
    rotations = plain_int(k, "k") % 4
    if rotations == 0:
        return x
    if rotations == 2:
        return flip(x, (a, b))
    transposed = transpose(x, a, b)
    return flip(transposed, (a,)) if rotations == 1 else flip(transposed, (b,))


@operation(view=True)
def swapaxes(input: Operand, axis0: int, axis1: int) -> Tensor:
    """Two dimensions swapped, as `transpose` does it.

    result[..., j, ..., i, ...] = input[..., i, ..., j, ...]. The result is a view. The name is NumPy's; `mlc.swapdims`
    does the same.

    Args:
        input: Tensor.
        axis0: A dimension; negative ones count from the last.
        axis1: The other dimension.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: a dimension is out of range (MLC0356).

    Example:
        >>> mlc.swapaxes(mlc.ones(2, 3, 4), 0, 2).shape
        (4, 3, 2)
    """
    return transpose(input, axis0, axis1)


def _ravelled(array: Any) -> Any:
    return np.ascontiguousarray(array).reshape(-1)


@operation(view=_ravelled)
def ravel(input: Operand) -> Tensor:
    """All elements in row-major order, as a vector.

    The shape of the result is (numel,). It is a view where the memory of `input` allows it, and a copy otherwise, as
    after a transposition.

    Args:
        input: Tensor or number.

    Returns:
        1-D tensor of the dtype of `input`.

    Example:
        >>> mlc.ravel(mlc.tensor([[1, 2], [3, 4]]))
        tensor([1, 2, 3, 4], dtype=mlc.int64)
    """
    x = tracer(input)
    return reshape(x, [sizes.product(x.shape)])
