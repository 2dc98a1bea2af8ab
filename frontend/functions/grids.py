"""Functions that lay tensors out: grids, stacks and cuts along a named direction, turns, diagonals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.create import creation
from mlc.frontend.functions.shape import cat, coordinates, flip, movedim, sliced, stack, transpose
from mlc.frontend.operands import axis, broadcast_to, count_of, full, plain_int, reshape, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor, wrap
from mlc.frontend.trace import Tracer, emit, state
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import f32


def _list(tensors: Sequence[Any]) -> list[Tracer]:
    """Operands given one by one or as one list."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], tuple | list) else tensors
    return [tracer(x) for x in given]


# -- grids ------------------------------------------------------------------------------------------------------------
@operation()
def meshgrid(*tensors: Operand, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The grid that vectors span: result k varies along dimension k as vector k.

    Args:
        tensors: Vectors or numbers, as separate arguments or as one list.
        indexing: "ij" for that order of dimensions, "xy" to exchange the first two.

    Returns:
        Tuple of tensors of one shape.

    Raises:
        UserError: a tensor has more than one dimension (MLC0364), or `indexing` is another string (MLC0360).

    Example:
        >>> mlc.meshgrid(mlc.tensor([1, 2]), mlc.tensor([3, 4]))
        (tensor([[1, 1],
                [2, 2]], dtype=mlc.int64), tensor([[3, 4],
                [3, 4]], dtype=mlc.int64))
    """
    xs = _list(tensors)
    if indexing not in ("ij", "xy"):
        raise UserError(f"indexing = {indexing!r}", code="MLC0360", hint='use "ij" or "xy"')
    if any(x.ndim > 1 for x in xs):
        raise UserError("meshgrid takes vectors", code="MLC0364")
    places = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        places[0], places[1] = 1, 0
    lengths = [sizes.product(x.shape) for x in xs]
    shape = [lengths[p] for p in places]
    return tuple(broadcast_to(reshape(x, [n if p == k else 1 for k in range(len(xs))]), shape)
                 for x, n, p in zip(xs, lengths, places))


@operation()
def cartesian_prod(*tensors: Operand) -> Tensor:
    """All combinations of elements of vectors, as rows; the last one varies fastest.

    Args:
        tensors: Vectors, as separate arguments or as one list.

    Returns:
        Tensor of shape (product of lengths, number of vectors); one vector alone stays as it is.

    Raises:
        UserError: a tensor has more than one dimension (MLC0364).

    Example:
        >>> mlc.cartesian_prod(mlc.tensor([1, 2]), mlc.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]], dtype=mlc.int64)
    """
    xs = _list(tensors)
    if len(xs) == 1:
        return xs[0]
    return stack([reshape(tracer(g), [sizes.product(tracer(g).shape)]) for g in meshgrid(*xs)], -1)


@operation()
def combinations(input: Operand, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, in its order, as rows.

    Args:
        input: 1-D tensor of a size that is known.
        r: How many elements are chosen.
        with_replacement: Whether an element may be chosen several times.

    Returns:
        Tensor of shape (number of choices, r) and the dtype of `input`.

    Raises:
        UserError: `input` is no vector of known size (MLC0364), or `r` is negative (MLC0358).

    Example:
        >>> mlc.combinations(mlc.tensor([1, 2, 3]))
        tensor([[1, 2],
                [1, 3],
                [2, 3]], dtype=mlc.int64)
    """
    x = tracer(input)
    if x.ndim != 1 or not isinstance(x.shape[0], int):
        raise UserError(f"combinations takes a vector of known size, found {x.type}", code="MLC0364")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    count = count_of(r, "r")
    if count > x.shape[0] and not with_replacement:        # without a choice there is no row
        rows = np.zeros((0, count), np.int64)
    else:
        found = list(choose(range(x.shape[0]), count))
        rows = np.array(found, np.int64).reshape(len(found), count)
    return emit(T.Take, x, tracer(rows), 0)  # type: ignore[no-any-return]


def _indices(row: int, column: int, offset: int, upper: bool) -> Tensor:
    m, n = count_of(row, "row"), count_of(column, "col")
    count_of(m * n, "row * col")
    found = np.triu_indices(m, offset, n) if upper else np.tril_indices(m, offset, n)
    made = wrap(np.ascontiguousarray(np.stack(found).astype(np.int64)))
    return tracer(made) if state.trace is not None else made


@creation
def tril_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Rows and columns of the elements on and below a diagonal of a matrix.

    Args:
        row: Number of rows.
        col: Number of columns.
        offset: The diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
        Tensor of int64 of shape (2, number of elements), in row-major order.

    Raises:
        UserError: a size is negative (MLC0358).

    Example:
        >>> mlc.tril_indices(2, 2)
        tensor([[0, 1, 1],
                [0, 0, 1]], dtype=mlc.int64)
    """
    return _indices(row, col, plain_int(offset, "offset"), False)


@creation
def triu_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Rows and columns of the elements on and above a diagonal of a matrix.

    Args:
        row: Number of rows.
        col: Number of columns.
        offset: The diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
        Tensor of int64 of shape (2, number of elements), in row-major order.

    Raises:
        UserError: a size is negative (MLC0358).

    Example:
        >>> mlc.triu_indices(2, 2)
        tensor([[0, 0, 1],
                [0, 1, 1]], dtype=mlc.int64)
    """
    return _indices(row, col, plain_int(offset, "offset"), True)


@operation()
def unravel_index(indices: Operand, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates that positions in the flattened tensor of a shape stand for.

    Positions are not checked against the shape; PyTorch refuses those beyond it.

    Args:
        indices: Tensor of integers.
        shape: The shape, in Python integers.

    Returns:
        Tuple of a tensor for each dimension, of the shape of `indices`.

    Raises:
        UserError: a size is no integer (MLC0355).

    Example:
        >>> mlc.unravel_index(mlc.tensor([5, 2]), (2, 3))
        (tensor([1, 0], dtype=mlc.int64), tensor([2, 2], dtype=mlc.int64))
    """
    rest: Tensor = tracer(indices)
    out: list[Tensor] = []
    for n in reversed([plain_int(d, "shape") for d in shape]):
        out.append(rest % n)
        rest = rest // n
    return tuple(reversed(out))


@operation()
def vander(x: Operand, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix of a vector: result[i, j] = x[i] ** (N - 1 - j).

    Args:
        x: 1-D tensor.
        N: Number of columns; the size of `x` by default.
        increasing: Whether powers increase: result[i, j] = x[i] ** j.

    Returns:
        Tensor of shape (size of x, N) and the dtype of `x`.

    Raises:
        UserError: `x` is no vector (MLC0364), or `N` is too great (MLC0358) or not known (MLC0365).

    Example:
        >>> mlc.vander(mlc.tensor([1, 2, 3]), increasing=True)
        tensor([[1, 1, 1],
                [1, 2, 4],
                [1, 3, 9]], dtype=mlc.int64)
    """
    base = tracer(x)
    if base.ndim != 1:
        raise UserError(f"vander takes a vector, found {base.type}", code="MLC0364")
    count = base.shape[0] if N is None else plain_int(N, "N")
    if not isinstance(count, int):
        raise UserError(f"the number of powers must be known, found {count}", code="MLC0365")
    if count < 1:
        return full(0, base, [base.shape[0], 0])
    if count > MOST_PIECES:
        raise UserError(f"N = {count}, expected at most {MOST_PIECES}", code="MLC0358")
    powers: list[Tensor] = [full(1, base, base.shape)]
    for _ in range(count - 1):
        powers.append(powers[-1] * base)
    return stack(powers if increasing else powers[::-1], -1)


# -- diagonals --------------------------------------------------------------------------------------------------------
@operation()
def diag_embed(input: Operand, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices with the last dimension of a tensor on a diagonal, and 0 elsewhere.

    Args:
        input: Tensor of at least one dimension.
        offset: The diagonal: 0 for the main one, positive above it, negative below it.
        dim1: Dimension of the rows in the result; negative ones count from the last.
        dim2: Dimension of the columns.

    Returns:
        Tensor of the dtype of `input`, with one dimension more; bools become int64.

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
    wide = tracer(E.mul(reshape(x, [*x.shape, 1]), 1)) if x.type.dtype.is_bool else reshape(x, [*x.shape, 1])
    spread = broadcast_to(wide, [*x.shape, n])
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
        Square matrix of the dtype of `input`; bools become int64.

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
    given = _list(tensors) or [emit(T.Full, 0.0, (1, 0), f32)]
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


MOST_PIECES = 1 << 20
"""Tensors that a function gives at most."""


# -- stacks and cuts --------------------------------------------------------------------------------------------------
def _at_least(x: Tracer, rank: int) -> Tracer:
    """With dimensions of size 1: before a vector's to make 2, around it to make 3, behind a matrix's to make 3."""
    shape = list(x.shape)
    if rank == 1:
        return reshape(x, shape or [1])
    if len(shape) < 2:
        shape = [1, *(shape or [1])]
    return reshape(x, shape if len(shape) >= rank else [*shape, 1])


def _each(tensors: Sequence[Any], rank: int) -> Any:
    xs = tuple(_at_least(x, rank) for x in _list(tensors))
    several = len(tensors) != 1 or isinstance(tensors[0], tuple | list)
    return xs if several else xs[0]


@operation()
def atleast_1d(*tensors: Operand) -> Any:
    """Tensors with at least one dimension: numbers become vectors of one element.

    Args:
        tensors: Tensors or numbers, as separate arguments or as one list.

    Returns:
        The tensor, or a tuple of several.

    Example:
        >>> mlc.atleast_1d(mlc.tensor(5.0))
        tensor([5.], dtype=mlc.float32)
    """
    return _each(tensors, 1)


@operation()
def atleast_2d(*tensors: Operand) -> Any:
    """Tensors with at least two dimensions: numbers and vectors become matrices of one row.

    Args:
        tensors: Tensors or numbers, as separate arguments or as one list.

    Returns:
        The tensor, or a tuple of several.

    Example:
        >>> mlc.atleast_2d(mlc.tensor([1.0, 2.0])).shape
        (1, 2)
    """
    return _each(tensors, 2)


@operation()
def atleast_3d(*tensors: Operand) -> Any:
    """Tensors with at least three dimensions: (n,) becomes (1, n, 1), and (m, n) becomes (m, n, 1).

    Args:
        tensors: Tensors or numbers, as separate arguments or as one list.

    Returns:
        The tensor, or a tuple of several.

    Example:
        >>> mlc.atleast_3d(mlc.tensor([1.0, 2.0])).shape
        (1, 2, 1)
    """
    return _each(tensors, 3)


@operation()
def column_stack(tensors: Sequence[Operand]) -> Tensor:
    """Tensors side by side: vectors as columns, matrices as they are.

    Args:
        tensors: Tensors with as many rows.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        UserError: there is no tensor (MLC0353), or the numbers of rows differ (MLC0115).

    Example:
        >>> mlc.column_stack([mlc.tensor([1, 2]), mlc.tensor([3, 4])])
        tensor([[1, 3],
                [2, 4]], dtype=mlc.int64)
    """
    return cat([reshape(x, [*x.shape, *[1] * (2 - x.ndim)][:2]) if x.ndim == 1 else _at_least(x, 2)
                for x in _list([tensors])], 1)


@operation()
def dstack(tensors: Sequence[Operand]) -> Tensor:
    """Tensors one behind the other: joined along dimension 2, after `atleast_3d`.

    Args:
        tensors: Tensors of equal sizes in the other dimensions.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        UserError: there is no tensor (MLC0353), or other sizes differ (MLC0115).

    Example:
        >>> mlc.dstack([mlc.tensor([1, 2]), mlc.tensor([3, 4])]).shape
        (1, 2, 2)
    """
    return cat([_at_least(x, 3) for x in _list([tensors])], 2)


@operation()
def tensor_split(input: Operand, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """The tensor in pieces along a dimension: so many of about equal size, or cut at given indices.

    Args:
        input: Tensor of at least one dimension.
        indices_or_sections: Number of pieces, of which the first may have one element more; or the indices at which a
            new piece begins.
        dim: The dimension; negative ones count from the last.

    Returns:
        Tuple of tensors of the dtype of `input`.

    Raises:
        UserError: the number is not positive (MLC0358), `dim` is out of range (MLC0356), or the size is symbolic
            (MLC0365).

    Example:
        >>> mlc.tensor_split(mlc.arange(5), 2)
        (tensor([0, 1, 2], dtype=mlc.int64), tensor([3, 4], dtype=mlc.int64))
        >>> mlc.tensor_split(mlc.arange(5), (1, 4))
        (tensor([0], dtype=mlc.int64), tensor([1, 2, 3], dtype=mlc.int64), tensor([4], dtype=mlc.int64))
    """
    x = tracer(input)
    at = axis(dim, x.ndim, scalar=False)
    n = x.shape[at]
    if not isinstance(n, int):
        raise UserError(f"tensor_split needs a size that is known, found {n}", code="MLC0365")
    if isinstance(indices_or_sections, tuple | list):
        cuts = [slice(None, plain_int(i, "index")).indices(n)[1] for i in indices_or_sections]
    else:
        count = plain_int(indices_or_sections, "sections")
        if not 1 <= count <= MOST_PIECES:
            raise UserError(f"{count} pieces", code="MLC0358", hint=f"it may be 1 to {MOST_PIECES}")
        short, more = divmod(n, count)
        cuts = [i * short + min(i, more) for i in range(1, count)]
    bounds = [0, *cuts, n]
    return tuple(sliced(x, at, a, max(a, b)) for a, b in zip(bounds, bounds[1:]))


def _even(x: Tracer, sections: Any, at: int) -> tuple[Tensor, ...]:
    n = x.shape[at]
    if isinstance(sections, int) and isinstance(n, int) and n % max(1, sections):
        raise UserError(f"{n} elements are not divided evenly into {sections}", code="MLC0358")
    return tensor_split(x, sections, at)


@operation()
def hsplit(input: Operand, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The tensor in pieces along dimension 1, a vector along dimension 0.

    Args:
        input: Tensor of at least one dimension.
        indices_or_sections: Number of equal pieces, or the indices at which a new piece begins.

    Returns:
        Tuple of tensors of the dtype of `input`.

    Raises:
        UserError: the size is not a multiple of the number (MLC0358), or there is no such dimension (MLC0356).

    Example:
        >>> mlc.hsplit(mlc.tensor([[1, 2], [3, 4]]), 2)
        (tensor([[1],
                [3]], dtype=mlc.int64), tensor([[2],
                [4]], dtype=mlc.int64))
    """
    x = tracer(input)
    return _even(x, indices_or_sections, 0 if x.ndim == 1 else axis(1, x.ndim))


@operation()
def vsplit(input: Operand, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The tensor in pieces along dimension 0.

    Args:
        input: Tensor of at least one dimension; PyTorch refuses vectors.
        indices_or_sections: Number of equal pieces, or the indices at which a new piece begins.

    Returns:
        Tuple of tensors of the dtype of `input`.

    Raises:
        UserError: the size is not a multiple of the number (MLC0358), or there are no dimensions (MLC0364).

    Example:
        >>> mlc.vsplit(mlc.tensor([[1, 2], [3, 4]]), 2)
        (tensor([[1, 2]], dtype=mlc.int64), tensor([[3, 4]], dtype=mlc.int64))
    """
    x = tracer(input)
    return _even(x, indices_or_sections, axis(0, x.ndim, scalar=False))


@operation()
def dsplit(input: Operand, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The tensor in pieces along dimension 2.

    Args:
        input: Tensor of at least three dimensions.
        indices_or_sections: Number of equal pieces, or the indices at which a new piece begins.

    Returns:
        Tuple of tensors of the dtype of `input`.

    Raises:
        UserError: the size is not a multiple of the number (MLC0358), or there is no such dimension (MLC0356).

    Example:
        >>> [x.shape for x in mlc.dsplit(mlc.ones(2, 3, 4), 2)]
        [(2, 3, 2), (2, 3, 2)]
    """
    x = tracer(input)
    return _even(x, indices_or_sections, axis(2, x.ndim))


# -- turns ------------------------------------------------------------------------------------------------------------
@operation()
def fliplr(input: Operand) -> Tensor:
    """The columns in reverse order: dimension 1 flipped.

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

    Args:
        input: Tensor.

    Returns:
        Tensor of the shape and dtype of `input`.

    Example:
        >>> mlc.flipud(mlc.tensor([[1, 2], [3, 4]]))
        tensor([[3, 4],
                [1, 2]], dtype=mlc.int64)
    """
    return flip(input, (0,))


@operation()
def rot90(input: Operand, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """The tensor rotated by 90 degrees, k times, from the first of two dimensions towards the second.

    Args:
        input: Tensor of at least two dimensions.
        k: Number of rotations; negative ones turn the other way.
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
    turns = plain_int(k, "k") % 4
    if turns == 0:
        return x
    if turns == 2:
        return flip(x, (a, b))
    turned = transpose(x, a, b)
    return flip(turned, (a,)) if turns == 1 else flip(turned, (b,))


@operation()
def swapaxes(input: Operand, axis0: int, axis1: int) -> Tensor:
    """Two dimensions swapped, as `transpose` does it.

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


@operation()
def ravel(input: Operand) -> Tensor:
    """All elements in row-major order, as a vector.

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


@operation()
def trapezoid(y: Operand, x: Operand = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The trapezoidal rule along a dimension: sum_i (y[i + 1] + y[i]) / 2 * (x[i + 1] - x[i]).

    Args:
        y: Tensor of values, of at least one dimension.
        x: Tensor of places, a vector or of the dimensions of `y`; None for equal distances.
        dx: The distance of places, without `x`.
        dim: The dimension; negative ones count from the last.

    Returns:
        Tensor of floats without the dimension; 0 where there are fewer than two points.

    Raises:
        UserError: `y` has no dimension, or `x` neither one nor as many as `y` (MLC0364), or `dim` is out of range
            (MLC0356).

    Example:
        >>> mlc.trapezoid(mlc.tensor([1.0, 2.0, 3.0]), mlc.tensor([0.0, 1.0, 3.0]))
        tensor(6.5, dtype=mlc.float32)
    """
    values = tracer(y)
    at = axis(dim, values.ndim, scalar=False)
    count = values.shape[at]
    if count == 0:
        return R.sum(values * 1.0, at)
    middle = (sliced(values, at, 1, count) + sliced(values, at, 0, count - 1)) * 0.5
    if x is None:
        return R.sum(middle, at) * dx
    points = tracer(x)
    if points.ndim not in (1, values.ndim):
        raise UserError(f"x has {points.ndim} dimensions, expected the place of each point, or 1", code="MLC0364")
    along = at if points.ndim > 1 else 0
    steps = tracer(sliced(points, along, 1, count) - sliced(points, along, 0, count - 1))
    if points.ndim == 1:
        steps = reshape(steps, [steps.shape[0] if i == at else 1 for i in range(values.ndim)])
    return R.sum(middle * steps, at)


