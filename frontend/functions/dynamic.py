"""Dynamic slices: their start indices are tensors, clamped so that the slice lies within the tensor."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import tensor as T
from mlc.frontend.operands import cast, integer, shape_of, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim


def _starts(starts: Sequence[Operand], x: Tracer) -> tuple[Tracer, ...]:
    if not isinstance(starts, tuple | list) or len(starts) != x.ndim:
        raise UserError(f"the starts are not one number for each of {x.ndim} dimensions", code="MLC0357")
    out = tuple(integer(s, "a start") for s in starts)
    for s in out:
        if s.ndim:
            raise UserError(f"a start has {s.ndim} dimensions, expected 0", code="MLC0364")
    return out


def _check(x: Tracer, sizes: Sequence[Dim]) -> None:
    if len(sizes) != x.ndim:
        raise UserError(f"a piece of {len(sizes)} dimensions in {x.ndim} dimensions", code="MLC0364")
    for n, d in zip(x.shape, sizes):
        if isinstance(n, int) and isinstance(d, int) and not 0 <= d <= n:
            raise UserError(f"a piece of {d} does not fit in a dimension of {n}", code="MLC0367")


@operation()
def dynamic_slice(input: Operand, starts: Sequence[Operand], sizes: Sequence[Dim]) -> Tensor:
    """The slice of the given sizes that begins at `starts`, which may be computed: result[i] = input[starts + i].

    Args:
        start from which the slice would reach over an end is moved to where it fits, as in XLA's DynamicSlice.
        input: Tensor.
        starts: An integer number or 0-d tensor for each dimension.
        sizes: Size of the slice in each dimension.

    Returns:
        Tensor of shape `sizes` and the dtype of `input`.

    Raises:
        UserError: the starts are not one for each dimension (MLC0357), a start is not of integers (MLC0354) or not 0-d
            (MLC0364), the sizes are not one for each dimension (MLC0364), or one is greater than the tensor's
            (MLC0367).

    Example:
        >>> mlc.dynamic_slice(mlc.arange(10), (mlc.tensor(4),), (3,))
        tensor([4, 5, 6], dtype=mlc.int64)
        >>> mlc.dynamic_slice(mlc.arange(10), (9,), (3,))
        tensor([7, 8, 9], dtype=mlc.int64)
    """
    x, shape = tracer(input), shape_of(sizes)
    _check(x, shape)
    return emit(T.DynamicSlice, x, _starts(starts, x), shape)  # type: ignore[no-any-return]


@operation()
def dynamic_update_slice(input: Operand, update: Operand, starts: Sequence[Operand]) -> Tensor:
    """The tensor with the slice that begins at `starts` replaced by `update`.

    Args:
        start from which the slice would reach over an end is moved to where it fits, as in XLA's DynamicUpdateSlice.
        input: Tensor.
        update: Tensor of as many dimensions, none of them greater; it is cast to the dtype of `input`.
        starts: An integer number or 0-d tensor for each dimension.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: the starts are not one for each dimension (MLC0357), a start is not of integers (MLC0354) or not 0-d
            (MLC0364), `update` has another number of dimensions (MLC0364) or is greater than `input` (MLC0367).

    Example:
        >>> mlc.dynamic_update_slice(mlc.zeros(5), mlc.tensor([1.0, 2.0]), (3,))
        tensor([0., 0., 0., 1., 2.], dtype=mlc.float32)
    """
    x = tracer(input)
    u = cast(tracer(update), x.type.dtype)
    _check(x, u.shape)
    return emit(T.DynamicUpdateSlice, x, u, _starts(starts, x))  # type: ignore[no-any-return]
