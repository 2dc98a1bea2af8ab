"""Views: functions that change the shape and keep the elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlc.dialects import tensor as T
from mlc.frontend.arguments import coded
from mlc.frontend.axes import axis
from mlc.frontend.operands import broadcast_shapes, conjugate, resolved, shape_of, tracer
from mlc.frontend.operands import broadcast_to as to_size
from mlc.frontend.operands import reshape as to_shape
from mlc.frontend.operation import operation
from mlc.frontend.tensor import OPERATIONS, Dims, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.ir import sizes
from mlc.ir.bounds import MAX_ELEMENTS
from mlc.ir.diag import UserError, UserMemoryError
from mlc.ir.sizes import Dim


@operation(view=True)
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
                        code="MLC0358", symbols=sizes.symbols(sizes.product(wanted) - sizes.product(x.shape)))
    return to_shape(x, wanted)


@operation(view=True)
def view(input: Operand, shape: Sequence[Dim]) -> Tensor:
    """The same elements, in the same memory, under another shape.

    Args:
        input: Tensor.
        shape: Sizes; one may be -1, which stands for what the others leave.

    Returns:
        Tensor of shape `shape` and the dtype of `input`, which shares its memory.

    Raises:
        UserError: The shape does not hold as many elements (MLC0358), or the elements do not lie in memory in that
            order (MLC0751).

    Example:
        >>> x = mlc.zeros(4)
        >>> x.view(2, 2)[0, 1] = 1
        >>> x
        tensor([0., 1., 0., 0.], dtype=mlc.float32)
    """
    return reshape(input, shape)


@operation(view=True)
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


@operation(view=True)
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


@operation(view=True)
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


@operation(view=True)
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


@operation(view=True, name="Tensor.H")
def conjugate_transpose(input: Operand) -> Tensor:
    """The conjugate transpose of a matrix."""
    x = tracer(input)
    if x.ndim not in (0, 2):
        raise UserError(f"a tensor of {x.ndim} dimensions is no matrix", code="MLC0364",
                        hint="x.mH transposes the last two dimensions")
    return conjugate(tracer(t(x)))


@operation(view=True)
def adjoint(input: Operand) -> Tensor:
    """The conjugate transpose of matrices.

    Args:
        input: Tensor of at least 2 dimensions.

    Returns:
        Tensor of the dtype of `input`, with the last two dimensions swapped; a number is its own.

    Raises:
        UserError: `input` has one dimension (MLC0356).

    Example:
        >>> mlc.adjoint(mlc.tensor([[1, 2], [3, 4]]))
        tensor([[1, 3],
                [2, 4]], dtype=mlc.int64)
    """
    x = tracer(input)
    return conjugate(tracer(transpose(x, -2, -1)) if x.ndim else x)


@operation(view=True)
def squeeze(input: Operand, dim: Dims = None) -> Tensor:
    """The tensor without dimensions of size 1.

    The result is a view: it shares the memory of `input`, and a write to one is seen in the other. A dimension of
    another size that `dim` names stays. Without `dim`, a batch of one sample loses its batch dimension too, so models
    do well to name the dimension.

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


@operation(view=True)
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


@operation(view=True)
def flatten(input: Operand, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from start_dim to end_dim made one.

    Elements keep their row-major order: (i, j) of sizes (m, n) becomes i * n + j. The result is a view where the memory
    of `input` allows it, and a copy otherwise, as after a transposition.

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


@operation(view=True)
def unflatten(input: Operand, dim: int, sizes: Sequence[Dim]) -> Tensor:
    """One dimension made several.

    The inverse of `flatten`: the element at k of the old dimension is at (i, j) with k = i * sizes[1] + j, in row-major
    order. The result is a view.

    Args:
        input: Tensor of at least one dimension.
        dim: The dimension; negative ones count from the last.
        sizes: Sizes of the new dimensions; one may be -1.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: the sizes do not multiply to that of `dim` (MLC0358), `dim` is out of range (MLC0356), or `input` has
            no dimensions (MLC0364).

    Example:
        >>> mlc.unflatten(mlc.ones(2, 12), 1, (3, -1)).shape
        (2, 3, 4)
    """
    x = tracer(input)
    at = axis(dim, x.ndim, scalar=False)
    return reshape(x, [*x.shape[:at], *resolved(shape_of(sizes), x.shape[at]), *x.shape[at + 1:]])


@operation(view=True)
def broadcast_to(input: Operand, size: Sequence[Dim]) -> Tensor:
    """The tensor repeated to another shape, by the rules of broadcasting.

    Args:
        input: Tensor.
        size: The shape.

    Returns:
        Tensor of shape `size` and the dtype of `input`.

    Raises:
        UserError: the shapes do not broadcast (MLC0111), the tensor would be beyond all memory (MLC0328), or a size is
            negative (MLC0116).

    Example:
        >>> mlc.broadcast_to(mlc.tensor([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]], dtype=mlc.int64)
    """
    x, wanted = tracer(input), shape_of(size)
    if len(wanted) < x.ndim or broadcast_shapes(x.shape, wanted) != wanted:
        raise UserError(f"shape [{', '.join(map(str, x.shape))}] does not broadcast to "
                        f"[{', '.join(map(str, wanted))}]", code="MLC0111",
                        symbols=sizes.differing(x.shape, wanted, stretch=True))
    if math.prod(d for d in wanted if isinstance(d, int) and d) >= MAX_ELEMENTS:
        raise UserMemoryError(f"shape [{', '.join(map(str, wanted))}] is beyond all memory", code="MLC0328")
    return to_size(x, wanted)


@operation(view=True)
def expand(input: Operand, sizes: Sequence[Dim]) -> Tensor:
    """The tensor repeated to another shape, as `broadcast_to`, where -1 keeps a size.

    Args:
        input: Tensor.
        sizes: The shape.

    Returns:
        Tensor of that shape and the dtype of `input`.

    Raises:
        UserError: the shapes do not broadcast (MLC0111), or a size is -1 where there is none to keep, or less
            (MLC0116).

    Example:
        >>> mlc.expand(mlc.ones(3, 1), (-1, 4)).shape
        (3, 4)
    """
    x, wanted = tracer(input), shape_of(sizes)
    lead = len(wanted) - x.ndim
    kept = tuple(x.shape[i - lead] if d == -1 and i >= lead else d for i, d in enumerate(wanted))
    return broadcast_to(x, kept)


@coded
def broadcast_tensors(*tensors: Operand) -> tuple[Tensor, ...]:
    """The tensors repeated to the one shape that they broadcast to.

    Args:
        tensors: Tensors or numbers.

    Returns:
        Tuple of tensors of one shape, each of its own dtype: views of those given.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> [x.shape for x in mlc.broadcast_tensors(mlc.ones(3, 1), mlc.ones(4))]
        [(3, 4), (3, 4)]
    """
    shape = broadcast_shapes(*(getattr(x, "shape", ()) for x in tensors))
    return tuple(broadcast_to(x, shape) for x in tensors)


OPERATIONS["broadcast_tensors"] = broadcast_tensors
