"""Grids, combinations, and indices of triangles."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.arguments import coded
from mlc.frontend.axes import plain_int
from mlc.frontend.dtypes import as_ir, int64
from mlc.frontend.functions.create import creation
from mlc.frontend.functions.shape import stack
from mlc.frontend.location import user_loc
from mlc.frontend.methods import listed
from mlc.frontend.operands import broadcast_to, count_of, full, integer, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import OPERATIONS, DTypeLike, Operand, Tensor, wrap
from mlc.frontend.trace import emit, state
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import to_numpy

MOST_PIECES = 1 << 20
"""Largest number of tensors that a function returns."""


def operand_list(tensors: Sequence[Any]) -> list[Tracer]:
    """Operands passed one by one or as one list."""
    return [tracer(x) for x in listed(tuple(tensors))]


@operation(view=True, name="meshgrid")
def _along(input: Operand, place: int, shape: Sequence[Dim]) -> Tensor:
    """A vector along one dimension of a shape."""
    return broadcast_to(reshape(tracer(input), [n if k == place else 1 for k, n in enumerate(shape)]), shape)


@coded
def meshgrid(*tensors: Operand, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The grid that vectors span: result k varies along dimension k as vector k.

    Args:
        tensors: Vectors or numbers, as separate arguments or as one list.
        indexing: "ij" for that order of dimensions, "xy" to exchange the first two.

    Returns:
        Tuple of tensors of one shape, which are views of the vectors.

    Raises:
        UserError: a tensor has more than one dimension (MLC0364), or `indexing` is another string (MLC0360).

    Example:
        >>> mlc.meshgrid(mlc.tensor([1, 2]), mlc.tensor([3, 4]))
        (tensor([[1, 1],
                [2, 2]], dtype=mlc.int64), tensor([[3, 4],
                [3, 4]], dtype=mlc.int64))
    """
    xs = listed(tensors)
    if indexing not in ("ij", "xy"):
        raise UserError(f"indexing = {indexing!r}", code="MLC0360", hint='use "ij" or "xy"', loc=user_loc())
    shapes = [getattr(x, "shape", ()) for x in xs]
    if any(len(s) > 1 for s in shapes):
        raise UserError("meshgrid takes vectors", code="MLC0364", loc=user_loc())
    places = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        places[0], places[1] = 1, 0
    whole = tuple(sizes.product(shapes[p]) for p in places)
    return tuple(_along(x, p, whole) for x, p in zip(xs, places))


OPERATIONS["meshgrid"] = meshgrid


@operation(name="cartesian_prod")
def _products(*tensors: Operand) -> Tensor:
    xs = operand_list(tensors)
    if len(xs) == 1:
        return xs[0]
    return stack([reshape(tracer(g), [sizes.product(tracer(g).shape)]) for g in meshgrid(*xs)], -1)


@coded
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
    given = listed(tensors)
    if len(given) == 1 and isinstance(given[0], Tensor) and len(given[0].shape) == 1:
        return given[0]
    return _products(*given)


OPERATIONS["cartesian_prod"] = cartesian_prod


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


def _indices(row: int, column: int, offset: int, upper: bool, dtype: DTypeLike) -> Tensor:
    m, n = count_of(row, "row"), count_of(column, "col")
    count_of(m * n, "row * col")
    found = np.triu_indices(m, offset, n) if upper else np.tril_indices(m, offset, n)
    made = wrap(np.ascontiguousarray(np.stack(found).astype(to_numpy(as_ir(dtype)))))
    return tracer(made) if state.trace is not None else made


@creation
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = int64, device: Any = None) -> Tensor:
    """Rows and columns of the elements on and below a diagonal of a matrix.

    Args:
        row: Number of rows.
        col: Number of columns.
        offset: The diagonal: 0 for the main one, positive above it, negative below it.
        dtype: Dtype of the result; int64 by default.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (2, number of elements), in row-major order.

    Raises:
        UserError: a size is negative (MLC0358).

    Example:
        >>> mlc.tril_indices(2, 2)
        tensor([[0, 1, 1],
                [0, 0, 1]], dtype=mlc.int64)
    """
    return _indices(row, col, plain_int(offset, "offset"), False, dtype)


@creation
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = int64, device: Any = None) -> Tensor:
    """Rows and columns of the elements on and above a diagonal of a matrix.

    Args:
        row: Number of rows.
        col: Number of columns.
        offset: The diagonal: 0 for the main one, positive above it, negative below it.
        dtype: Dtype of the result; int64 by default.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (2, number of elements), in row-major order.

    Raises:
        UserError: a size is negative (MLC0358).

    Example:
        >>> mlc.triu_indices(2, 2)
        tensor([[0, 0, 1],
                [0, 1, 1]], dtype=mlc.int64)
    """
    return _indices(row, col, plain_int(offset, "offset"), True, dtype)


@operation()
def unravel_index(indices: Operand, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates that positions in the flattened tensor of a shape stand for.

    As in PyTorch, positions are not checked against the shape: those beyond it wrap around in the first dimension.

    Args:
        indices: Tensor of integers.
        shape: The shape, in Python integers.

    Returns:
        Tuple of a tensor for each dimension, of the shape of `indices`.

    Raises:
        UserError: positions are no integers (MLC0354), or a size is no integer (MLC0355) or not positive (MLC0358).

    Example:
        >>> mlc.unravel_index(mlc.tensor([5, 2]), (2, 3))
        (tensor([1, 0], dtype=mlc.int64), tensor([2, 2], dtype=mlc.int64))
    """
    rest: Tensor = integer(indices, "indices")
    out: list[Tensor] = []
    counts = [plain_int(d, "shape") for d in shape]
    if any(n < 1 for n in counts):
        raise UserError(f"shape {counts} has no elements", code="MLC0358")
    for n in reversed(counts):
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
