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
    """Vectors repeated to the grid they span: result k varies along dimension k; "xy" exchanges the first two"""
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
    """Every combination of elements of vectors, as rows; the last varies fastest"""
    xs = _list(tensors)
    if len(xs) == 1:
        return xs[0]
    return stack([reshape(tracer(g), [sizes.product(tracer(g).shape)]) for g in meshgrid(*xs)], -1)


@operation()
def combinations(input: Operand, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of r elements of a vector, in its order, as rows"""
    x = tracer(input)
    if x.ndim != 1 or not isinstance(x.shape[0], int):
        raise UserError(f"combinations takes a vector of known size, found {x.type}", code="MLC0364",
                        symbols=sizes.symbols(*x.shape))
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
    """Rows and columns of the elements on and below a diagonal, as two rows."""
    return _indices(row, col, plain_int(offset, "offset"), False)


@creation
def triu_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Rows and columns of the elements on and above a diagonal, as two rows."""
    return _indices(row, col, plain_int(offset, "offset"), True)


@operation()
def unravel_index(indices: Operand, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates of positions in a flattened tensor of the shape."""
    rest: Tensor = tracer(indices)
    out: list[Tensor] = []
    for n in reversed([plain_int(d, "shape") for d in shape]):
        out.append(rest % n)
        rest = rest // n
    return tuple(reversed(out))


@operation()
def vander(x: Operand, N: int | None = None, increasing: bool = False) -> Tensor:
    """result[i, j] = x[i] ** (N - 1 - j), or x[i] ** j if `increasing`"""
    base = tracer(x)
    if base.ndim != 1:
        raise UserError(f"vander takes a vector, found {base.type}", code="MLC0364")
    count = base.shape[0] if N is None else plain_int(N, "N")
    if not isinstance(count, int):
        raise UserError(f"the number of powers must be known, found {count}", code="MLC0365",
                        symbols=sizes.symbols(count))
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
    """Matrices in the dimensions dim1 and dim2 with the last dimension of input on a diagonal"""
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
    """A matrix with all elements of input on a diagonal."""
    x = tracer(input)
    return diag_embed(reshape(x, [sizes.product(x.shape)]), offset)


@operation()
def block_diag(*tensors: Operand) -> Tensor:
    """A matrix with matrices along its diagonal and zeros elsewhere; vectors are rows"""
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
    """Numbers as vectors of one element."""
    return _each(tensors, 1)


@operation()
def atleast_2d(*tensors: Operand) -> Any:
    """Numbers and vectors as matrices of one row."""
    return _each(tensors, 2)


@operation()
def atleast_3d(*tensors: Operand) -> Any:
    """What has fewer than three dimensions with further ones of size 1."""
    return _each(tensors, 3)


@operation()
def column_stack(tensors: Sequence[Operand]) -> Tensor:
    """Vectors as columns, and matrices, side by side"""
    return cat([reshape(x, [*x.shape, *[1] * (2 - x.ndim)][:2]) if x.ndim == 1 else _at_least(x, 2)
                for x in _list([tensors])], 1)


@operation()
def dstack(tensors: Sequence[Operand]) -> Tensor:
    """Tensors one behind the other: along dimension 2."""
    return cat([_at_least(x, 3) for x in _list([tensors])], 2)


@operation()
def tensor_split(input: Operand, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces along `dim`: that many, of sizes that differ by at most 1, or cut at the indices of a list"""
    x = tracer(input)
    at = axis(dim, x.ndim, scalar=False)
    n = x.shape[at]
    if not isinstance(n, int):
        raise UserError(f"tensor_split needs a size that is known, found {n}", code="MLC0365", symbols=sizes.symbols(n))
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
    """Pieces along dimension 1, of a vector along 0."""
    x = tracer(input)
    return _even(x, indices_or_sections, 0 if x.ndim == 1 else axis(1, x.ndim))


@operation()
def vsplit(input: Operand, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Pieces along dimension 0 of a matrix."""
    x = tracer(input)
    return _even(x, indices_or_sections, axis(0, x.ndim, scalar=False))


@operation()
def dsplit(input: Operand, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Pieces along dimension 2."""
    x = tracer(input)
    return _even(x, indices_or_sections, axis(2, x.ndim))


# -- turns ------------------------------------------------------------------------------------------------------------
@operation()
def fliplr(input: Operand) -> Tensor:
    """The order along dimension 1 reversed."""
    return flip(input, (1,))


@operation()
def flipud(input: Operand) -> Tensor:
    """The order along dimension 0 reversed."""
    return flip(input, (0,))


@operation()
def rot90(input: Operand, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turned k times by 90 degrees, from the first of two dimensions towards the second."""
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
    """Two dimensions swapped."""
    return transpose(input, axis0, axis1)


@operation()
def ravel(input: Operand) -> Tensor:
    """All elements in row-major order, as a vector."""
    x = tracer(input)
    return reshape(x, [sizes.product(x.shape)])


@operation()
def trapezoid(y: Operand, x: Operand = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral along `dim` of what is linear between points: sum (y[i + 1] + y[i]) / 2 * (x[i + 1] - x[i])"""
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


