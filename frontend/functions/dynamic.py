"""Pieces of a tensor that start where a value says; a start from which the piece would stick out is moved."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import tensor as T
from mlc.frontend.operands import cast, integer, shape_of, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import Tracer, emit
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
    """The piece of `sizes` that begins at `starts`, one integer tensor or number for each dimension"""
    x, shape = tracer(input), shape_of(sizes)
    _check(x, shape)
    return emit(T.DynamicSlice, x, _starts(starts, x), shape)  # type: ignore[no-any-return]


@operation()
def dynamic_update_slice(input: Operand, update: Operand, starts: Sequence[Operand]) -> Tensor:
    """input with `update` in place of the piece that begins at `starts`"""
    x = tracer(input)
    u = cast(tracer(update), x.type.dtype)
    _check(x, u.shape)
    return emit(T.DynamicUpdateSlice, x, u, _starts(starts, x))  # type: ignore[no-any-return]
