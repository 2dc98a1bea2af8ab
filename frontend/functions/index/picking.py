"""Elements and slices picked by index tensors."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.axes import axis
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.shape import sliced
from mlc.frontend.operands import broadcast_shapes, broadcast_to, cast, full, integer, is_tensor, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Array, Operand, Tensor, as_array
from mlc.frontend.trace import current, emit, state
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import i64


def from_the_front(index: Tracer, n: Dim) -> Tracer:
    """Indices with n added to the negative ones."""
    if getattr(index.type.dtype, "unsigned", False):
        return index
    wide = cast(index, i64)
    return tracer(E.where(wide < 0, wide + (n if isinstance(n, int) else tracer(n)), wide))


def take(x: Tracer, index: Operand, at: int, what: str = "index") -> Tracer:
    """x at the indices along one axis, which is replaced by the dimensions of `index`."""
    wrapped = from_the_front(integer(index, what), x.shape[at])
    return emit(T.Take, x, wrapped, at, weak=False)  # type: ignore[no-any-return]


@operation()
def index_select(input: Operand, dim: int, index: Operand) -> Tensor:
    """The slices of a dimension at given indices: result[i, j] = input[index[i], j] for dim = 0.

    Args:
        input: Tensor.
        dim: The dimension; negative ones count from the last.
        index: 1-D tensor of integers; negative ones count from the end.

    Returns:
        Tensor of the dtype of `input`, with the length of `index` in dimension `dim`.

    Raises:
        UserError: `index` is not of integers (MLC0354), not 1-D (MLC0364), or out of range (MLC0340, an IndexError),
            `dim` is out of range (MLC0356), or `input` has no dimensions, and `index` another number of elements than 1
            (MLC0367).

    Example:
        >>> mlc.index_select(mlc.tensor([[1, 2], [3, 4]]), 0, mlc.tensor([1, 1, 0]))
        tensor([[3, 4],
                [3, 4],
                [1, 2]], dtype=mlc.int64)
    """
    x, i = tracer(input), tracer(index)
    if i.ndim > 1:
        raise UserError(f"the index has {i.ndim} dimensions, expected 1", code="MLC0364")
    at, i = axis(dim, x.ndim), reshape(i, [sizes.product(i.shape)])
    if x.ndim:
        return take(x, i, at)
    if i.shape != (1,):
        raise UserError(f"the index has {i.shape[0]} elements, a 0-d tensor takes one", code="MLC0367",
                        symbols=sizes.symbols(*i.shape))
    return reshape(take(reshape(x, [1]), i, 0), [])


@operation()
def gather(input: Operand, dim: int, index: Operand) -> Tensor:
    """Elements picked along a dimension: result[i, j] = input[index[i, j], j] for dim = 0.

    Args:
        input: Tensor.
        dim: The dimension; negative ones count from the last.
        index: Tensor of integers of as many dimensions; it may be smaller than `input` in the others. Negative indices
            count from the end, which PyTorch refuses.

    Returns:
        Tensor of the shape of `index` and the dtype of `input`.

    Raises:
        UserError: `index` is not of integers (MLC0354), of other dimensions (MLC0364), too great in another dimension
            (MLC0367), or out of range (MLC0340, an IndexError), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.gather(mlc.tensor([[1, 2], [3, 4]]), 1, mlc.tensor([[0], [1]]))
        tensor([[1],
                [4]], dtype=mlc.int64)
    """
    x, i = tracer(input), integer(index, "index")
    if not x.ndim or not i.ndim:                           # a number is a vector of one element
        line, rows = (v if v.ndim else reshape(v, [1]) for v in (x, i))
        return reshape(tracer(gather(line, axis(dim, x.ndim), rows)), i.shape)
    if i.ndim != x.ndim and 0 in i.shape:
        return full(0, x, i.shape)
    if i.ndim != x.ndim:
        raise UserError(f"the index has {i.ndim} dimensions, the input {x.ndim}", code="MLC0364")
    at = axis(dim, x.ndim)
    for k, n in enumerate(i.shape):
        if k != at and n != x.shape[k]:
            if isinstance(n, int) and isinstance(x.shape[k], int) and n > x.shape[k]:
                raise UserError(f"the index has size {n} in dimension {k}, the input {x.shape[k]}", code="MLC0367")
            x = sliced(x, k, 0, n)
    return emit(T.TakeAlong, x, from_the_front(i, x.shape[at]), at)  # type: ignore[no-any-return]


@operation()
def take_along_dim(input: Operand, indices: Operand, dim: int | None = None) -> Tensor:
    """Elements picked along a dimension, with broadcasting in the others: result[i, j] = input[indices[i, j], j].

    Args:
        input: Tensor.
        indices: Tensor of integers of as many dimensions; negative indices count from the end.
        dim: The dimension; None to pick from the flattened tensor.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: `indices` is not of integers (MLC0354), of other dimensions (MLC0364), does not broadcast (MLC0111),
            is out of range (MLC0340, an IndexError), or `dim` is out of range (MLC0356, an IndexError).

    Example:
        >>> mlc.take_along_dim(mlc.tensor([[1, 2], [3, 4]]), mlc.tensor([[1]]), 0)
        tensor([[3, 4]], dtype=mlc.int64)
    """
    x, i = tracer(input), integer(indices, "indices")
    if dim is None:
        x, i, dim = reshape(x, [sizes.product(x.shape)]), reshape(i, [sizes.product(i.shape)]), 0
    if not x.ndim or not i.ndim:
        return gather(x, dim, i)
    if i.ndim != x.ndim:
        raise UserError(f"the indices have {i.ndim} dimensions, the input {x.ndim}", code="MLC0364")
    at = axis(dim, x.ndim)
    others = broadcast_shapes([1 if k == at else n for k, n in enumerate(x.shape)],
                              [1 if k == at else n for k, n in enumerate(i.shape)])
    x = broadcast_to(x, [x.shape[at] if k == at else n for k, n in enumerate(others)])
    i = broadcast_to(i, [i.shape[at] if k == at else n for k, n in enumerate(others)])
    return emit(T.TakeAlong, x, from_the_front(i, x.shape[at]), at)  # type: ignore[no-any-return]


@operation(name="take")
def take_flat(input: Operand, index: Operand) -> Tensor:
    """The elements of the flattened tensor at given indices.

    Args:
        input: Tensor.
        index: Tensor of integers; negative ones count from the end.

    Returns:
        Tensor of the shape of `index` and the dtype of `input`.

    Raises:
        UserError: `index` is not of integers (MLC0354), or out of range (MLC0340, an IndexError).

    Example:
        >>> mlc.take(mlc.tensor([[1, 2], [3, 4]]), mlc.tensor([3, 0]))
        tensor([4, 1], dtype=mlc.int64)
    """
    x = tracer(input)
    return take(reshape(x, [sizes.product(x.shape)]), index, 0)


def known_integers(x: Any) -> Array | None:
    """The elements of an integer array, if they are known while recording."""
    if isinstance(x, Tracer):
        found = current().elements(x)
    else:
        found = as_array(x) if state.trace is None and is_tensor(x) else None
    return found if found is not None and found.dtype.kind in "iu" else None
