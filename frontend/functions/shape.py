"""Functions that move elements and compute nothing: shapes, order, joining, cutting."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.operands import (
    axes,
    axis,
    broadcast_shapes,
    full,
    is_tensor,
    number,
    plain_int,
    resolved,
    shape_of,
    size,
    together,
    tracer,
)
from mlc.frontend.operands import broadcast_to as to_size
from mlc.frontend.operands import (
    reshape as to_shape,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import i64


def sliced(x: Tracer, at: int, start: Any, stop: Any, step: int = 1) -> Tracer:
    """x[start:stop:step] along one axis; the bounds are within the axis."""
    starts: list[Any] = [0] * x.ndim
    stops, steps = list(x.shape), [1] * x.ndim
    starts[at], stops[at], steps[at] = start, stop, step
    return emit(T.Slice, x, tuple(starts), tuple(stops), tuple(steps), weak=x.weak)  # type: ignore[no-any-return]


@operation()
def reshape(input: Operand, shape: Sequence[Dim]) -> Tensor:
    """The same elements, in row-major order, under another shape.

    Args:
        input: Tensor.
        shape: Sizes; one may be -1, which stands for what the others leave.

    Returns:
        Tensor of shape `shape` and the dtype of `input`.

    Raises:
        UserError: the shape does not hold as many elements (MLC0358).

    Example:
        >>> mlc.reshape(mlc.arange(6), (2, -1))
        tensor([[0, 1, 2],
                [3, 4, 5]], dtype=mlc.int64)
    """
    x = tracer(input)
    wanted = resolved(shape_of(shape), sizes.product(x.shape))
    if sizes.product(wanted) != sizes.product(x.shape):
        raise UserError(f"{sizes.product(x.shape)} elements do not fit shape [{', '.join(map(str, wanted))}]",
                        code="MLC0358")
    return to_shape(x, wanted)


@operation()
def permute(input: Operand, dims: Sequence[int]) -> Tensor:
    """The dimensions in another order: dimension k of the result is dimension dims[k] of the input.

    Args:
        input: Tensor.
        dims: Every dimension once; negative ones count from the last.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: `dims` is no permutation (MLC0357), or out of range (MLC0356).

    Example:
        >>> mlc.permute(mlc.ones(2, 3, 4), (2, 0, 1)).shape
        (4, 2, 3)
    """
    x = tracer(input)
    order = tuple(axis(d, x.ndim, "dims") for d in dims)
    if sorted(order) != list(range(x.ndim)):
        raise UserError(f"dims = {tuple(dims)} is no order of {x.ndim} dimensions", code="MLC0357")
    return x if order == tuple(range(x.ndim)) else emit(T.Transpose, x, order, weak=x.weak)


@operation()
def transpose(input: Operand, dim0: int, dim1: int) -> Tensor:
    """Two dimensions swapped.

    Args:
        input: Tensor.
        dim0: A dimension; negative ones count from the last.
        dim1: The other dimension.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: a dimension is out of range (MLC0356).

    Example:
        >>> mlc.transpose(mlc.tensor([[1, 2], [3, 4]]), 0, 1)
        tensor([[1, 3],
                [2, 4]], dtype=mlc.int64)
    """
    x = tracer(input)
    order = list(range(x.ndim))
    a, b = axis(dim0, x.ndim, "dim0"), axis(dim1, x.ndim, "dim1")
    if x.ndim:
        order[a], order[b] = order[b], order[a]
    return permute(x, order)


@operation()
def t(input: Operand) -> Tensor:
    """The transposed matrix: result[i, j] = input[j, i]; a vector or number as it is.

    Args:
        input: Tensor of at most 2 dimensions.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: there are more than 2 dimensions (MLC0364).

    Example:
        >>> mlc.t(mlc.tensor([[1, 2], [3, 4]]))
        tensor([[1, 3],
                [2, 4]], dtype=mlc.int64)
    """
    x = tracer(input)
    if x.ndim > 2:
        raise UserError(f"t needs at most 2 dimensions, found {x.ndim}", code="MLC0364", hint="use x.mT")
    return permute(x, range(x.ndim - 1, -1, -1))


@operation()
def movedim(input: Operand, source: Dims, destination: Dims) -> Tensor:
    """Dimensions moved to other places; the others keep their order.

    Args:
        input: Tensor.
        source: A dimension, or several; negative ones count from the last.
        destination: Where each of them goes.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: both do not name as many dimensions, each once (MLC0357), or one is out of range (MLC0356).

    Example:
        >>> mlc.movedim(mlc.ones(2, 3, 4), 0, 2).shape
        (3, 4, 2)
    """
    x = tracer(input)
    a = [axis(d, x.ndim, "source") for d in (source if isinstance(source, tuple | list) else (source,))]
    b = [axis(d, x.ndim, "destination") for d in
         (destination if isinstance(destination, tuple | list) else (destination,))]
    if len(a) != len(b) or len(set(a)) != len(a) or len(set(b)) != len(b):
        raise UserError(f"source = {source} and destination = {destination} do not name as many dimensions, each once",
                        code="MLC0357")
    rest = iter([d for d in range(x.ndim) if d not in a])
    return permute(x, [a[b.index(i)] if i in b else next(rest) for i in range(x.ndim)])


@operation()
def squeeze(input: Operand, dim: Dims = None) -> Tensor:
    """The tensor without dimensions of size 1.

    Args:
        input: Tensor.
        dim: Dimensions that are dropped if their size is 1; None for all.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: a dimension is out of range (MLC0356).

    Example:
        >>> mlc.squeeze(mlc.ones(2, 1, 3, 1)).shape
        (2, 3)
    """
    x = tracer(input)
    chosen = range(x.ndim) if dim is None else [
        axis(d, x.ndim) for d in (dim if isinstance(dim, tuple | list) else (dim,))]
    return to_shape(x, [d for i, d in enumerate(x.shape) if i not in chosen or not sizes.is_equal(d, 1)])


@operation()
def unsqueeze(input: Operand, dim: int) -> Tensor:
    """The tensor with a new dimension of size 1.

    Args:
        input: Tensor.
        dim: Place of the new dimension in the result; -1 puts it last.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> mlc.unsqueeze(mlc.ones(2, 3), 1).shape
        (2, 1, 3)
    """
    x = tracer(input)
    shape = list(x.shape)
    shape.insert(axis(dim, x.ndim + 1), 1)
    return to_shape(x, shape)


@operation()
def flatten(input: Operand, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from start_dim to end_dim made one.

    Args:
        input: Tensor; a 0-d one becomes a vector.
        start_dim: First of the dimensions; negative ones count from the last.
        end_dim: Last of them.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: a dimension is out of range, or `start_dim` comes after `end_dim` (MLC0356).

    Example:
        >>> mlc.flatten(mlc.ones(2, 3, 4), 1).shape
        (2, 12)
    """
    x = tracer(input)
    a, b = axis(start_dim, x.ndim, "start_dim"), axis(end_dim, x.ndim, "end_dim")
    if a > b:
        raise UserError(f"start_dim = {start_dim} comes after end_dim = {end_dim}", code="MLC0356")
    return to_shape(x, [*x.shape[:a], sizes.product(x.shape[a: b + 1]), *x.shape[b + 1:]])


@operation()
def unflatten(input: Operand, dim: int, sizes: Sequence[Dim]) -> Tensor:
    """One dimension made several.

    Args:
        input: Tensor of at least one dimension.
        dim: The dimension; negative ones count from the last.
        sizes: Sizes of the new dimensions; one may be -1.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: the sizes do not multiply to that of `dim` (MLC0358), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.unflatten(mlc.ones(2, 12), 1, (3, -1)).shape
        (2, 3, 4)
    """
    x = tracer(input)
    at = axis(dim, x.ndim, scalar=False)
    return reshape(x, [*x.shape[:at], *resolved(shape_of(sizes), x.shape[at]), *x.shape[at + 1:]])


@operation()
def broadcast_to(input: Operand, size: Sequence[Dim]) -> Tensor:
    """The tensor repeated to another shape, by the rules of broadcasting.

    Args:
        input: Tensor.
        size: The shape.

    Returns:
        Tensor of shape `size` and the dtype of `input`.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.broadcast_to(mlc.tensor([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]], dtype=mlc.int64)
    """
    x, wanted = tracer(input), shape_of(size)
    if len(wanted) < x.ndim or broadcast_shapes(x.shape, wanted) != wanted:
        raise UserError(f"shape [{', '.join(map(str, x.shape))}] does not broadcast to "
                        f"[{', '.join(map(str, wanted))}]", code="MLC0111")
    return to_size(x, wanted)


@operation()
def expand(input: Operand, sizes: Sequence[Dim]) -> Tensor:
    """The tensor repeated to another shape, as `broadcast_to`, where -1 keeps a size.

    Args:
        input: Tensor.
        sizes: The shape.

    Returns:
        Tensor of that shape and the dtype of `input`.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.expand(mlc.ones(3, 1), (-1, 4)).shape
        (3, 4)
    """
    x, wanted = tracer(input), shape_of(sizes)
    lead = len(wanted) - x.ndim
    kept = tuple(x.shape[i - lead] if d == -1 and i >= lead else d for i, d in enumerate(wanted))
    return broadcast_to(x, kept)


@operation()
def broadcast_tensors(*tensors: Operand) -> tuple[Tensor, ...]:
    """The tensors repeated to the one shape that they broadcast to.

    Args:
        tensors: Tensors or numbers.

    Returns:
        Tuple of tensors of one shape, each of its own dtype.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> [x.shape for x in mlc.broadcast_tensors(mlc.ones(3, 1), mlc.ones(4))]
        [(3, 4), (3, 4)]
    """
    xs = [tracer(x) for x in tensors]
    shape = broadcast_shapes(*(x.shape for x in xs))
    return tuple(to_size(x, shape) for x in xs)


@operation()
def cat(tensors: Sequence[Operand], dim: int = 0) -> Tensor:
    """Tensors joined along a dimension: their sizes there add up, all others are equal.

    Args:
        tensors: Tensors of as many dimensions, at least one.
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
    return emit(T.Concat, tuple(xs), axis(dim, xs[0].ndim))  # type: ignore[no-any-return]


@operation()
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
                            code="MLC0111")
    return emit(T.Concat, tuple(tracer(unsqueeze(x, at)) for x in xs), at)  # type: ignore[no-any-return]


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
                        code="MLC0365")
    return n


@operation()
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
            are asked for (MLC0358), `dim` is out of range (MLC0356), or a symbolic size leaves the number of pieces
            open (MLC0365).

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
            raise UserError(f"the pieces add up to {bounds[-1]}, the dimension has {x.shape[at]}", code="MLC0358")
        return _cut(x, at, bounds)
    n, length = _known(x, at, "split"), plain_int(split_size_or_sections, "split_size")
    if length <= 0 and (length or n):
        raise UserError(f"pieces of {length} elements", code="MLC0358")
    return _cut(x, at, [*range(0, n, length), n] if n else [0, 0])


@operation()
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
        UserError: `chunks` is not positive (MLC0358), `dim` is out of range (MLC0356), or the size is symbolic
            (MLC0365).

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


@operation()
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


@operation()
def select(input: Operand, dim: int, index: int) -> Tensor:
    """The slice at one index of a dimension, without it.

    Args:
        input: Tensor of at least one dimension.
        dim: The dimension; negative ones count from the last.
        index: Python integer; negative ones count from the end.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: the index is out of range (MLC0366), or `dim` is (MLC0356).

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


@operation()
def narrow(input: Operand, dim: int, start: int, length: int) -> Tensor:
    """input[start : start + length] along a dimension.

    Args:
        input: Tensor of at least one dimension.
        dim: The dimension; negative ones count from the last.
        start: Index of the first element; a negative one counts from the end.
        length: Number of elements.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: the piece is not within the dimension (MLC0366), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.narrow(mlc.arange(5), 0, 1, 3)
        tensor([1, 2, 3], dtype=mlc.int64)
    """
    x = tracer(input)
    at = axis(dim, x.ndim, scalar=False)
    n, first, count = x.shape[at], size(start, "start"), size(length, "length")
    if isinstance(first, int) and first < 0:
        first = n + first
    if isinstance(n, int) and isinstance(first, int) and isinstance(count, int) and not (
            0 <= first and 0 <= count and first + count <= n):
        raise UserError(f"{start} to {start + length} is not within a dimension of {n}", code="MLC0366")
    return sliced(x, at, first, first + count)


@operation()
def flip(input: Operand, dims: Dims) -> Tensor:
    """The order along dimensions reversed: result[i] = input[n - 1 - i].

    Args:
        input: Tensor.
        dims: A dimension, or several; negative ones count from the last.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: a dimension is out of range (MLC0356) or named twice (MLC0357).

    Example:
        >>> mlc.flip(mlc.arange(3), 0)
        tensor([2, 1, 0], dtype=mlc.int64)
    """
    x = tracer(input)
    over = () if isinstance(dims, tuple | list) and not dims else axes(dims, x.ndim)
    return emit(T.Reverse, x, over) if over else x


@operation()
def roll(input: Operand, shifts: int | Sequence[int], dims: Dims = None) -> Tensor:
    """Elements shifted along dimensions, cyclically: result[i] = input[(i - shifts) mod n].

    Args:
        input: Tensor.
        shifts: How far elements move, an integer for each dimension; negative ones move to the front.
        dims: The dimensions; None to shift the flattened tensor.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `shifts` and `dims` differ in length (MLC0357), or a dimension is out of range (MLC0356).

    Example:
        >>> mlc.roll(mlc.arange(5), 2)
        tensor([3, 4, 0, 1, 2], dtype=mlc.int64)
    """
    x = tracer(input)
    if dims is None:
        return to_shape(tracer(roll(to_shape(x, [sizes.product(x.shape)]), shifts, 0)), x.shape)
    by = shifts if isinstance(shifts, tuple | list) else (shifts,)
    over = dims if isinstance(dims, tuple | list) else (dims,)
    if len(by) != len(over):
        raise UserError(f"shifts = {shifts} and dims = {dims} differ in length", code="MLC0357")
    for shift, dim in zip([plain_int(s, "shifts") for s in by], over):
        at = axis(dim, x.ndim)
        n = x.shape[at] if x.ndim else 1                   # a 0-d tensor is taken for one of one element
        if not isinstance(n, int) or n > 1:
            start = n - shift % n if shift > 0 else -shift % n      # what a modulo is taken of is not negative
            if start != 0:
                x = emit(T.Concat, (sliced(x, at, start, n), sliced(x, at, 0, start)), at)
    return x


@operation()
def tile(input: Operand, dims: Sequence[int]) -> Tensor:
    """The tensor repeated as a whole along its dimensions.

    Args:
        input: Tensor.
        dims: How often it is repeated along each dimension; they are aligned from the last.

    Returns:
        Tensor of the dtype of `input`, with sizes dims[i] times as great.

    Raises:
        UserError: a number of repetitions is no integer (MLC0355) or negative (MLC0116).

    Example:
        >>> mlc.tile(mlc.tensor([1, 2]), (2, 2))
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]], dtype=mlc.int64)
    """
    x = tracer(input)
    times = [plain_int(d, "dims") for d in dims]
    times = [1] * (x.ndim - len(times)) + times
    shape = [1] * (len(times) - x.ndim) + list(x.shape)
    spread = [d for pair in zip([1] * len(times), shape) for d in pair]
    wide = [d for pair in zip(times, shape) for d in pair]
    return to_shape(to_size(to_shape(x, spread), wide), [r * d for r, d in zip(times, shape)])


@operation()
def repeat_interleave(input: Operand, repeats: Any, dim: int | None = None) -> Tensor:
    """Each element repeated in place: result[i] = input[i // repeats].

    Args:
        input: Tensor.
        repeats: How often, a Python integer. A tensor of several numbers is refused: the size would depend on them.
        dim: The dimension; None to repeat the elements of the flattened tensor.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: `repeats` is negative (MLC0360) or a tensor of several numbers (MLC0365), or `dim` is out of range
            (MLC0356).

    Example:
        >>> mlc.repeat_interleave(mlc.tensor([1, 2]), 2)
        tensor([1, 1, 2, 2], dtype=mlc.int64)
    """
    if is_tensor(repeats) and repeats.ndim:
        raise UserError("repeats is a tensor: how long the result is would depend on its elements", code="MLC0365",
                        hint="use mlc.index_select with an index that names each element as often as it occurs")
    x = tracer(input)
    if dim is None:
        x, dim = to_shape(x, [sizes.product(x.shape)]), 0
    at, n = axis(dim, x.ndim, scalar=False), plain_int(repeats, "repeats")
    if n < 0:
        raise UserError(f"repeats = {n}, expected at least 0", code="MLC0360")
    spread = [*x.shape[: at + 1], 1, *x.shape[at + 1:]]
    wide = [*x.shape[: at + 1], n, *x.shape[at + 1:]]
    return to_shape(to_size(to_shape(x, spread), wide), [*x.shape[:at], x.shape[at] * n, *x.shape[at + 1:]])


def coordinates(x: Tracer, at: int) -> Tracer:
    """The index along one axis, in the shape of x."""
    return emit(T.Iota, x.shape, axis(at, x.ndim), i64)  # type: ignore[no-any-return]


def _triangle(input: Operand, diagonal: int, lower: bool, name: str) -> Tensor:
    x = tracer(input)
    if x.ndim < 2:
        raise UserError(f"{name} needs a matrix, found {x.ndim} dimensions", code="MLC0364")
    row, column = coordinates(x, -2), coordinates(x, -1)
    offset = column - row
    keep = E.le(offset, diagonal) if lower else E.ge(offset, diagonal)
    return E.where(keep, x, full(0, x))


@operation()
def tril(input: Operand, diagonal: int = 0) -> Tensor:
    """The lower triangle of matrices: elements on and below a diagonal, 0 above it.

    Args:
        input: Tensor of shape (..., m, n).
        diagonal: The diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: there are fewer than 2 dimensions (MLC0364).

    Example:
        >>> mlc.tril(mlc.ones(3, 3))
        tensor([[1., 0., 0.],
                [1., 1., 0.],
                [1., 1., 1.]], dtype=mlc.float32)
    """
    return _triangle(input, diagonal, True, "tril")


@operation()
def triu(input: Operand, diagonal: int = 0) -> Tensor:
    """The upper triangle of matrices: elements on and above a diagonal, 0 below it.

    Args:
        input: Tensor of shape (..., m, n).
        diagonal: The diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: there are fewer than 2 dimensions (MLC0364).

    Example:
        >>> mlc.triu(mlc.ones(3, 3))
        tensor([[1., 1., 1.],
                [0., 1., 1.],
                [0., 0., 1.]], dtype=mlc.float32)
    """
    return _triangle(input, diagonal, False, "triu")


PLACES: dict[str, Callable[[Any, Any], tuple[Tensor, int]]] = {
    "reflect": lambda i, n: (n - 1 - E.abs(n - 1 - E.abs(i)), n - 1),
    "replicate": lambda i, n: (E.minimum(E.maximum(i, 0), n - 1), sys.maxsize),
    "circular": lambda i, n: (E.remainder(i, n), n),
}
"""Where to find what stands at place i beside n elements, by the mode of `pad`, and how far out at most."""


def _extended(x: Tracer, at: int, low: int, high: int, mode: str) -> Tracer:
    """x with `low` and `high` more along one axis."""
    if mode == "circular" and min(low, high) < 0:          # PyTorch goes round what is left
        x = sliced(x, at, max(0, -low), x.shape[at] - max(0, -high))
        low, high = max(0, low), max(0, high)
    n = x.shape[at]
    if not isinstance(n, int):
        raise UserError(f"mode = {mode!r} needs a size that is known, found {n}", code="MLC0365")
    place: Tracer = emit(T.Iota, (max(0, low + n + high),), 0, i64)
    source, most = PLACES[mode](place - low, n)
    if max(low, high) > most or low + n + high < 1 or not n:
        raise UserError(f"pad = ({low}, {high}) for {n} elements in mode {mode!r}", code="MLC0360",
                        hint=f"at most {most} fit there" if n and max(low, high) > most else None)
    return emit(T.Take, x, source, at)  # type: ignore[no-any-return]


@operation(literal=("value",), stored={"value": "input"})
def pad(input: Operand, pad: Sequence[int], mode: str = "constant", value: Operand = None) -> Tensor:
    """The tensor with more elements around it.

    Args:
        input: Tensor.
        pad: Pairs (before, after), of the last dimension first; negative amounts cut off.
        mode: What is added: "constant" adds `value`, "replicate" the elements at the edge, "reflect" those inside it in
            reverse order, and "circular" those of the other end.
        value: Number or 0-d tensor of mode "constant"; 0 by default.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: `mode` is another string, or more is asked for than the mode has (MLC0360), `pad` is not in pairs or
            too long (MLC0357), or an integer `value` is beyond the dtype (MLC0348).

    Example:
        >>> nn.functional.pad(mlc.tensor([1.0, 2.0, 3.0]), (1, 2))
        tensor([0., 1., 2., 3., 0., 0.], dtype=mlc.float32)
        >>> nn.functional.pad(mlc.tensor([1.0, 2.0, 3.0]), (2, 1), mode="reflect")
        tensor([3., 2., 1., 2., 3., 2.], dtype=mlc.float32)
    """
    x = tracer(input)
    if mode not in ("constant", *PLACES):
        raise UserError(f"mode = {mode!r}", code="MLC0360", hint='use "constant", ' + ", ".join(
            f'"{name}"' for name in PLACES))
    amounts = [plain_int(p, "pad") for p in pad]
    if len(amounts) % 2 or len(amounts) > 2 * x.ndim:
        raise UserError(f"pad = {tuple(pad)} is not one pair for each of at most {x.ndim} dimensions", code="MLC0357")
    if mode != "constant":
        for i in range(len(amounts) // 2):
            x = _extended(x, x.ndim - 1 - i, amounts[2 * i], amounts[2 * i + 1], mode)
        return x
    low, high = [0] * x.ndim, [0] * x.ndim
    for i in range(len(amounts) // 2):
        low[-1 - i], high[-1 - i] = amounts[2 * i], amounts[2 * i + 1]
    for at in range(x.ndim):
        if low[at] < 0 or high[at] < 0:
            x = sliced(x, at, max(0, -low[at]), x.shape[at] - max(0, -high[at]))
    fill = number(0 if value is None else value, x.type.dtype) if not isinstance(value, Tensor) else tracer(value)
    return emit(T.Pad, x, fill, tuple(max(0, n) for n in low),  # type: ignore[no-any-return]
                tuple(max(0, n) for n in high), (0,) * x.ndim)
