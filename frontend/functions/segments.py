"""Repetitions of elements, and reductions of segments, whose lengths are elements of a tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.arguments import coded
from mlc.frontend.axes import axis, plain_int
from mlc.frontend.axes import axis as along
from mlc.frontend.devices import CPU
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions import shape as S
from mlc.frontend.functions.create import arange
from mlc.frontend.functions.scan import cumsum
from mlc.frontend.functions.sort import searchsorted
from mlc.frontend.operands import (
    broadcast_to,
    cast,
    fail_unless,
    floating,
    full,
    integer,
    is_tensor,
    reshape,
    size,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import OPERATIONS, Operand, Tensor
from mlc.frontend.trace import emit, state
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Dim
from mlc.ir.types import i64


@operation(name="repeat_interleave")
def _repeated(input: Operand, repeats: Any, dim: int | None) -> Tensor:
    """Each element repeated as often as a number says."""
    x = tracer(input)
    if dim is None:
        x, dim = reshape(x, [sizes.product(x.shape)]), 0
    at, n = axis(dim, x.ndim, scalar=False), plain_int(repeats, "repeats")
    if n < 0:
        raise UserError(f"repeats = {n}, expected at least 0", code="MLC0360")
    spread = [*x.shape[: at + 1], 1, *x.shape[at + 1:]]
    wide = [*x.shape[: at + 1], n, *x.shape[at + 1:]]
    return reshape(broadcast_to(reshape(x, spread), wide), [*x.shape[:at], x.shape[at] * n, *x.shape[at + 1:]])


@operation(name="_repeat_interleave")
def _repeated_each(input: Operand, repeats: Operand, dim: int | None, output_size: Dim) -> Tensor:
    """Each element repeated as often as a tensor says, which adds up to `output_size`."""
    x = tracer(input)
    if dim is None:
        x, dim = reshape(x, [sizes.product(x.shape)]), 0
    at = axis(dim, x.ndim, scalar=False)
    given = integer(repeats, "repeats")
    if given.ndim > 1 or (given.ndim and given.shape[0] not in (1, x.shape[at])):
        raise UserError(f"repeats has shape [{', '.join(map(str, given.shape))}], and dimension {at} of the input "
                        f"{x.shape[at]} elements", code="MLC0367" if given.ndim == 1 else "MLC0364",
                        symbols=sizes.symbols(*given.shape, x.shape[at]), hint="give one number for each of them")
    counts = broadcast_to(cast(given, i64), [x.shape[at]])
    place = searchsorted(cumsum(counts, 0), emit(T.Iota, (size(output_size),), 0, i64), right=True)
    return emit(T.Take, x, tracer(place), at)  # type: ignore[no-any-return]


def _length(input: Operand, repeats: Any, dim: int | None) -> int:
    """How many elements the result has along the dimension, by the elements of `repeats`."""
    count = input.shape[axis(dim, input.ndim)] if dim is not None else math.prod(input.shape)
    known = repeats.array if isinstance(repeats, Tensor) else np.asarray(repeats)
    if known.dtype.kind not in "iu":
        raise UserTypeError(f"repeat_interleave: repeats has element type {known.dtype}, expected an integer type",
                            code="MLC0354")
    if (known < 0).any():
        raise UserError("repeat_interleave: repeats has negative elements", code="MLC0360",
                        hint="repeats.clamp(min=0) repeats none")
    return int(known.sum()) * (count if known.shape[0] == 1 else 1)


def _check_length(given: Dim | None, length: Dim) -> None:
    """UserError if the length that is given is another one."""
    if isinstance(given, int) and isinstance(length, int) and given != length:
        raise UserError(f"repeat_interleave: output_size = {given}, and the result has {length} elements there",
                        code="MLC0360", hint="it is the sum of repeats; leave it out to have it computed")


@coded
def repeat_interleave(input: Operand, repeats: Any = None, dim: int | None = None, *,
                      output_size: Dim | None = None) -> Tensor:
    """Each element repeated in place.

    result[k] = input[i] for repeats[i] consecutive k, so the size along `dim` is the sum of the repeats.
    `Tensor.repeat` and `mlc.tile` repeat the tensor as a whole instead.

    Args:
        input: Tensor; without `repeats`, how often each index is repeated.
        repeats: How often, a Python integer, or a tensor of integers for each element along the dimension.
        dim: The dimension; None to repeat the elements of the flattened tensor.
        output_size: Sum of a tensor of repeats, which a recorded function has to be told.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: `repeats` is negative (MLC0360), missing for an input that is no vector (MLC0364) or, while a
            function is recorded, a tensor without `output_size` (MLC0365), it is no number, nor one for each element
            along `dim` (MLC0364, MLC0367), or not of integers (MLC0354), `dim` is out of range (MLC0356), or
            `output_size` is another number than the sum (MLC0360).

    Example:
        >>> mlc.repeat_interleave(mlc.tensor([1, 2]), 2)
        tensor([1, 1, 2, 2], dtype=mlc.int64)
        >>> mlc.repeat_interleave(mlc.tensor([1, 2]), mlc.tensor([2, 1]))
        tensor([1, 1, 2], dtype=mlc.int64)
    """
    if repeats is None:
        if getattr(input, "ndim", 0) != 1:
            raise UserError("repeat_interleave: without repeats, the input is a vector of them", code="MLC0364")
        return repeat_interleave(arange(input.shape[0]), input, 0, output_size=output_size)
    if not (is_tensor(repeats) and repeats.ndim):
        found = _repeated(input, repeats, dim)
        at = 0 if dim is None else axis(dim, found.ndim)
        length = found.shape[at]
        _check_length(output_size, length)
        if output_size is None or output_size == length:
            return found                                   # else a size is a symbol: the call is refused if it differs
        return found.reshape((*found.shape[:at], output_size, *found.shape[at + 1:]))
    if isinstance(repeats, Tracer) and output_size is None:
        raise UserError("repeat_interleave: repeats is a tensor: how long the result is would depend on its elements",
                        code="MLC0365", hint="pass output_size, the sum of repeats")
    if output_size is None or (state.trace is None and getattr(repeats, "device", CPU) == CPU):
        length = _length(input, repeats, dim)
        _check_length(output_size, length)
        output_size = length
    return _repeated_each(input, repeats, dim, output_size)


OPERATIONS["repeat_interleave"] = repeat_interleave


@operation()
def segment_reduce(data: Operand, reduce: str, *, lengths: Operand = None, offsets: Operand = None, axis: int = 0,
                   unsafe: bool = False, initial: float | None = None) -> Tensor:
    """The maximum, minimum, mean, sum or product of each segment of a dimension.

    Args:
        data: Tensor of floats.
        reduce: "max", "min", "mean", "sum" or "prod".
        lengths: Numbers of elements of the segments, a tensor of integers with the dimensions of `data` up to `axis`.
        offsets: Where segments begin and the last one ends, in place of `lengths`.
        axis: The dimension, the last one of `lengths`.
        unsafe: Whether `lengths` are taken as they are, of which a check says otherwise that none is negative and that
            they add up to the size of the dimension.
        initial: What the reduction of each segment begins with; None for the identity element, and NaN as the
            mean of no elements.

    Returns:
        Tensor of the dtype of `data`, with a segment in place of its elements.

    Raises:
        UserError: `reduce` is another string, or neither or both of `lengths` and `offsets` are given (MLC0360); they
            are not of integers (MLC0354), have the wrong number of dimensions (MLC0364), or `axis` is out of range
            (MLC0356, an IndexError).
        UserAssertionError: `lengths` are negative or do not add up (MLC0612).

    Example:
        >>> mlc.segment_reduce(mlc.tensor([1.0, 2.0, 3.0]), "sum", lengths=mlc.tensor([1, 2]))
        tensor([1., 5.], dtype=mlc.float32)
    """
    x = floating(data)
    at = along(axis, x.ndim, scalar=False)
    given = [cast(integer(v, "a segment"), i64) for v in (lengths, offsets) if v is not None]
    if any(v.ndim != at + 1 for v in given):
        raise UserError(f"segments of dimension {at} need lengths or offsets of {at + 1} dimensions", code="MLC0364")
    if reduce not in ("max", "min", "mean", "sum", "prod") or (lengths is None) == (offsets is None):
        raise UserError(f"reduce = {reduce!r} with {'neither' if lengths is None else 'both'} of lengths and offsets"
                        if reduce in ("max", "min", "mean", "sum", "prod") else f"reduce = {reduce!r}", code="MLC0360")
    if offsets is not None:
        ends, = given
        count: Any = ends.shape[-1] - 1
        start, stop = (tracer(S.narrow(ends, -1, k, count)) for k in (0, 1))
    else:
        each = tracer(given[0])
        if not unsafe:
            fail_unless(each >= 0, "segment_reduce: a length is negative")
            fail_unless(R.sum(each, -1) == emit(T.Size, x.shape[at], i64),
                        f"segment_reduce: lengths do not add up to the size of dimension {at}")
        stop = tracer(cumsum(each, -1))
        start = tracer(stop - each)
    # Whether element i is in segment j, in dimensions [..., j, i].
    i = emit(T.Iota, (x.shape[at],), 0, i64)
    inside = (reshape(start, [*start.shape, 1]) <= i) & (i < reshape(stop, [*stop.shape, 1]))
    inside = reshape(tracer(inside), [*tracer(inside).shape, *[1] * (x.ndim - at - 1)])
    wide = reshape(x, [*x.shape[:at], 1, *x.shape[at:]])
    identity = {"max": -math.inf, "min": math.inf, "prod": 1.0}.get(reduce, 0.0)
    chosen = E.where(inside, wide, identity)
    if reduce in ("max", "min"):
        out = (R.amax if reduce == "max" else R.amin)(chosen, at + 1)
        return out if initial is None else (E.maximum if reduce == "max" else E.minimum)(out, initial)
    if reduce == "prod":
        out = R.prod(chosen, at + 1)
        return out if initial is None else out * initial
    out = R.sum(chosen, at + 1)
    out = out if initial is None else out + initial
    if reduce == "sum":
        return out
    members = cast(tracer(R.sum(inside, at + 1)), x.type.dtype)
    empty = full(math.nan if initial is None else initial, x)
    return E.where(members == 0, empty, out / E.maximum(members, 1.0))
