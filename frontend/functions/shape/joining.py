"""Tensors joined, and split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.axes import axis, plain_int
from mlc.frontend.functions.shape.views import unsqueeze
from mlc.frontend.operands import integer, need, size, together, tracer
from mlc.frontend.operands import reshape as to_shape
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Size


def sliced(x: Tracer, at: int, start: Any, stop: Any, step: int = 1) -> Tracer:
    """x[start:stop:step] along one axis; the bounds are within the axis."""
    starts: list[Any] = [0] * x.ndim
    stops, steps = list(x.shape), [1] * x.ndim
    starts[at], stops[at], steps[at] = start, stop, step
    return emit(T.Slice, x, tuple(starts), tuple(stops), tuple(steps), weak=x.weak)  # type: ignore[no-any-return]


@operation(autocast="promote")
def cat(tensors: Sequence[Operand], dim: int = 0) -> Tensor:
    """Tensors joined along a dimension: their sizes there add up, all others are equal.

    Args:
        tensors: Tensors of as many dimensions, at least one; 1-D tensors of no elements do not count, as in PyTorch.
        dim: The dimension; negative ones count from the last.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        UserError: there is no tensor (MLC0353), one is 0-d (MLC0364), `dim` is out of range (MLC0356), or other sizes
            differ (MLC0115).

    Example:
        >>> mlc.cat([mlc.tensor([[1, 2]]), mlc.tensor([[3, 4], [5, 6]])])
        tensor([[1, 2],
                [3, 4],
                [5, 6]], dtype=mlc.int64)
    """
    xs = _several(tensors, "cat")
    if any(x.ndim == 0 for x in xs):
        raise UserError("0-d tensors cannot be joined", code="MLC0364", hint="use mlc.stack")
    if any(x.ndim != xs[0].ndim for x in xs):
        xs = [x for x in xs if x.shape != (0,)]
    return emit(T.Concat, tuple(xs), axis(dim, xs[0].ndim))  # type: ignore[no-any-return]


@operation(autocast="promote")
def stack(tensors: Sequence[Operand], dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new dimension.

    Args:
        tensors: Tensors or numbers of one shape.
        dim: Place of the new dimension in the result; negative ones count from its last.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        UserError: there is no tensor (MLC0353), `dim` is out of range (MLC0356), or shapes differ (MLC0111).

    Example:
        >>> mlc.stack([mlc.tensor([1, 2]), mlc.tensor([3, 4])], dim=1)
        tensor([[1, 3],
                [2, 4]], dtype=mlc.int64)
    """
    xs = _several(tensors, "stack")
    at = axis(dim, xs[0].ndim + 1)
    for x in xs:
        if x.shape != xs[0].shape:
            raise UserError(f"shapes [{', '.join(map(str, xs[0].shape))}] and [{', '.join(map(str, x.shape))}] differ",
                            code="MLC0111", symbols=sizes.differing(xs[0].shape, x.shape))
    rows = tuple(tracer(unsqueeze(x, at)) for x in xs)
    return emit(T.Concat, rows, at, weak=all(x.weak for x in rows))  # type: ignore[no-any-return]


def _several(tensors: Any, name: str) -> list[Tracer]:
    if not isinstance(tensors, tuple | list) or not tensors:
        raise UserError(f"{name} needs a list of at least one tensor", code="MLC0353")
    return together(*tensors)


@operation()
def hstack(tensors: Sequence[Operand]) -> Tensor:
    """Tensors side by side: joined along dimension 1, vectors along dimension 0.

    Args:
        tensors: Tensors; numbers are vectors of one element.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        UserError: there is no tensor (MLC0353), or other sizes differ (MLC0115).

    Example:
        >>> mlc.hstack([mlc.tensor([1, 2]), mlc.tensor([3])])
        tensor([1, 2, 3], dtype=mlc.int64)
    """
    xs = [tracer(x) for x in tensors]
    xs = [to_shape(x, [1]) if not x.ndim else x for x in xs]
    return cat(xs, 0 if xs and xs[0].ndim == 1 else 1)


@operation()
def vstack(tensors: Sequence[Operand]) -> Tensor:
    """Tensors one below the other: joined along dimension 0, vectors as rows.

    Args:
        tensors: Tensors; numbers and vectors are matrices of one row.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        UserError: there is no tensor (MLC0353), or other sizes differ (MLC0115).

    Example:
        >>> mlc.vstack([mlc.tensor([1, 2]), mlc.tensor([3, 4])])
        tensor([[1, 2],
                [3, 4]], dtype=mlc.int64)
    """
    xs = [tracer(x) for x in tensors]
    return cat([to_shape(x, [1, *(x.shape or (1,))]) if x.ndim < 2 else x for x in xs], 0)


def _cut(x: Tracer, at: int, bounds: Sequence[Any]) -> tuple[Tensor, ...]:
    return tuple(sliced(x, at, a, b) for a, b in zip(bounds, bounds[1:]))


def _known(x: Tracer, at: int, name: str) -> int:
    n = x.shape[at]
    if not isinstance(n, int):
        raise UserError(f"{name} needs a size that is known, found {n}: it decides how many tensors there are",
                        code="MLC0365", symbols=sizes.symbols(n))
    return n


@operation(view=True)
def split(tensor: Operand, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """The tensor in pieces along a dimension, of one size or of given sizes.

    Args:
        tensor: Tensor of at least one dimension.
        split_size_or_sections: Size of all pieces but the last, which is smaller if need be; or the size of each piece.
        dim: The dimension; negative ones count from the last.

    Returns:
        Tuple of tensors of the dtype of `tensor`.

    Raises:
        UserError: the sizes do not add up to that of `dim` (MLC0358) or one is negative (MLC0116), pieces of 0 elements
            are asked for (MLC0358), `dim` is out of range (MLC0356), a symbolic size leaves the number of pieces open
            (MLC0365), or `tensor` has no dimensions (MLC0364).

    Example:
        >>> mlc.split(mlc.arange(5), 2)
        (tensor([0, 1], dtype=mlc.int64), tensor([2, 3], dtype=mlc.int64), tensor([4], dtype=mlc.int64))
    """
    x = tracer(tensor)
    at = axis(dim, x.ndim, scalar=False)
    if isinstance(split_size_or_sections, tuple | list):
        bounds: list[Any] = [0]
        for length in split_size_or_sections:
            bounds.append(bounds[-1] + size(length))
        if bounds[-1] != x.shape[at]:
            raise UserError(f"the pieces add up to {bounds[-1]}, the dimension has {x.shape[at]}", code="MLC0358",
                            symbols=sizes.symbols(bounds[-1], x.shape[at]))
        return _cut(x, at, bounds)
    n, length = _known(x, at, "split"), plain_int(split_size_or_sections, "split_size")
    if length <= 0 and (length or n):
        raise UserError(f"pieces of {length} elements", code="MLC0358")
    return _cut(x, at, [*range(0, n, length), n] if n else [0, 0])


@operation(view=True)
def split_with_sizes(input: Operand, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """The tensor in pieces of given sizes along a dimension, as `split`.

    Args:
        input: Tensor of at least one dimension.
        split_sizes: The size of each piece.
        dim: The dimension; negative ones count from the last.

    Returns:
        Tuple of tensors of the dtype of `input`.

    Raises:
        UserError: the sizes do not add up to that of `dim` (MLC0358) or one is negative (MLC0116), `dim` is out of
            range (MLC0356), or `input` has no dimensions (MLC0364).

    Example:
        >>> mlc.split_with_sizes(mlc.arange(3), [1, 2])
        (tensor([0], dtype=mlc.int64), tensor([1, 2], dtype=mlc.int64))
    """
    return split(input, tuple(split_sizes), dim)


@operation(view=True)
def chunk(input: Operand, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """The tensor in at most `chunks` pieces along a dimension, of equal size but for the last.

    The size is rounded up, so there may be fewer pieces; `tensor_split` gives as many as asked for.

    Args:
        input: Tensor of at least one dimension.
        chunks: How many pieces there are at most.
        dim: The dimension; negative ones count from the last.

    Returns:
        Tuple of tensors of the dtype of `input`.

    Raises:
        UserError: `chunks` is not positive (MLC0358), `dim` is out of range (MLC0356), the size is symbolic (MLC0365),
            or `input` has no dimensions (MLC0364).

    Example:
        >>> mlc.chunk(mlc.arange(5), 3)
        (tensor([0, 1], dtype=mlc.int64), tensor([2, 3], dtype=mlc.int64), tensor([4], dtype=mlc.int64))
    """
    x = tracer(input)
    at = axis(dim, x.ndim, scalar=False)
    if plain_int(chunks, "chunks") <= 0:
        raise UserError(f"chunks = {chunks}, expected at least 1", code="MLC0358")
    n = _known(x, at, "chunk")
    return split(x, -(-n // chunks), at) if n else (x,) * chunks


@operation(view=True)
def unbind(input: Operand, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dimension, without it: result[k] = input[k] for dim = 0.

    Args:
        input: Tensor of at least one dimension.
        dim: The dimension; negative ones count from the last.

    Returns:
        Tuple of as many tensors as the dimension has elements.

    Raises:
        UserError: there are no dimensions (MLC0364), `dim` is out of range (MLC0356), or the size is symbolic
            (MLC0365).

    Example:
        >>> mlc.unbind(mlc.tensor([[1, 2], [3, 4]]))
        (tensor([1, 2], dtype=mlc.int64), tensor([3, 4], dtype=mlc.int64))
    """
    x = tracer(input)
    if not x.ndim:
        raise UserError("a 0-d tensor has no slices", code="MLC0364")
    at = axis(dim, x.ndim)
    return tuple(select(x, at, i) for i in range(_known(x, at, "unbind")))


@operation(view=True)
def select(input: Operand, dim: int, index: int) -> Tensor:
    """The slice at one index of a dimension, without it.

    Args:
        input: Tensor of at least one dimension.
        dim: The dimension; negative ones count from the last.
        index: Python integer; negative ones count from the end.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: the index is out of range (MLC0366), `dim` is (MLC0356), or `input` has no dimensions (MLC0364).

    Example:
        >>> mlc.select(mlc.tensor([[1, 2], [3, 4]]), 1, -1)
        tensor([2, 4], dtype=mlc.int64)
    """
    x = tracer(input)
    at = axis(dim, x.ndim, scalar=False)
    n, i = x.shape[at], size(index, "index")
    if isinstance(i, int) and i < 0:
        i = n + i
    if isinstance(i, int) and isinstance(n, int) and not 0 <= i < n:
        from mlc.ir.diag import UserIndexError
        raise UserIndexError(f"index {index} is out of range for a dimension of {n}", code="MLC0366")
    return to_shape(sliced(x, at, i, i + 1), [d for k, d in enumerate(x.shape) if k != at])


@operation(view=True)
def narrow(input: Operand, dim: int, start: int, length: int) -> Tensor:
    """input[start : start + length] along a dimension.

    The same elements as a slice with step 1, in a view: it shares the memory of `input`. Unlike a slice of Python, a
    piece that reaches over the end is an error.

    Args:
        input: Tensor of at least one dimension.
        dim: The dimension; negative ones count from the last.
        start: Index of the first element; a negative one counts from the end.
        length: Number of elements.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: the piece is not within the dimension (MLC0366), `dim` is out of range (MLC0356), or `input` has no
            dimensions (MLC0364).

    Example:
        >>> mlc.narrow(mlc.arange(5), 0, 1, 3)
        tensor([1, 2, 3], dtype=mlc.int64)
    """
    x = tracer(input)
    at = axis(dim, x.ndim, scalar=False)
    if isinstance(start, Tensor):
        integer(start, "start")
    n, first, count = x.shape[at], size(start, "start"), size(length, "length")
    if isinstance(first, int) and first < 0:
        first = n + first
    if isinstance(n, int) and isinstance(first, int) and isinstance(count, int) and not (
            0 <= first and 0 <= count and first + count <= n):
        raise UserError(f"{start} to {start + length} is not within a dimension of {n}", code="MLC0366")
    for bound in (first, count, n - first - count):
        if isinstance(bound, Size):
            need(bound, f"{start} to {start + length} is not within a dimension of {n}")
    return sliced(x, at, first, first + count)
