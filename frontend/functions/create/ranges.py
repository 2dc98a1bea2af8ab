"""Ranges, and the identity matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.axes import plain_int
from mlc.frontend.dtypes import as_dtype, as_ir, float32, int64
from mlc.frontend.functions.create.filled import shape_from
from mlc.frontend.functions.create.public import creation
from mlc.frontend.operands import cast, count_of, size, tracer
from mlc.frontend.tensor import OPERATIONS, Array, DTypeLike, Number, Tensor, wrap
from mlc.frontend.trace import current, emit, state
from mlc.frontend.tracer import Tracer
from mlc.ir.bounds import magnitude
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import f64, i64, to_numpy


def _in_64_bits(*numbers: Any) -> None:
    for x in numbers:
        if isinstance(x, int) and not -2**63 <= x < 2**63:
            raise UserError(f"{x} does not fit in 64 bits"[-200:], code="MLC0348")


@creation
def arange(start: Any = None, end: Any = None, step: Number = 1, *, dtype: DTypeLike = None,
           device: Any = None, requires_grad: bool = False) -> Tensor:
    """Equally spaced numbers from start on, below end: result[i] = start + i * step.

    There are ceil((end - start) / step) of them. With one argument, it is `end`, and counting begins with 0. Floats are
    computed in float64 and rounded once. Within a compiled function `end` may be a symbolic size.

    Args:
        start: First number; 0 if it is left out.
        end: Limit, which is not included.
        step: Distance between neighbours; it may be negative.
        dtype: Dtype of the result; by default int64 if all arguments are integers, else float32.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        1-D tensor.

    Raises:
        UserError: there is no end (MLC0321), an argument is no finite number (MLC0421), or `step` is 0 or
            leads away from the end (MLC0360).

    Example:
        >>> mlc.arange(3)
        tensor([0, 1, 2], dtype=mlc.int64)
        >>> mlc.arange(1, 2, 0.25)
        tensor([1.  , 1.25, 1.5 , 1.75], dtype=mlc.float32)
    """
    first, last = (0, start) if end is None else (0 if start is None else start, end)
    if last is None:
        raise UserTypeError("the end is missing", code="MLC0321")
    if state.trace is not None and not isinstance(last, int | float):
        last, first, by = size(last, "end"), plain_int(first, "start"), plain_int(step, "step")
        _in_64_bits(first, last if isinstance(last, int) else magnitude(last, lambda _: 1))
        if by != 1:
            raise UserError("a symbolic end needs step = 1", code="MLC0365")
        counted: Tracer = emit(T.Iota, (last - first,), 0, i64)
        return cast(tracer(counted + first), as_ir(int64 if dtype is None else dtype))
    _in_64_bits(first, last, step)
    for what, x in (("start", first), ("end", last), ("step", step)):
        if not isinstance(x, int | float | np.integer | np.floating) or not math.isfinite(x):
            raise UserTypeError(f"{what} is {type(x).__name__} {x!r}, expected a finite number"[:200], code="MLC0421")
    if step == 0:
        raise UserError("step = 0", code="MLC0360")
    if (last - first) * step < 0:
        raise UserError(f"steps of {step} do not lead from {first} to {last}"[:200], code="MLC0360")
    whole = all(isinstance(x, int) for x in (first, last, step))
    wanted = as_dtype((int64 if whole else float32) if dtype is None else dtype)
    count = count_of(int(max(0, -(-(last - first) // step) if whole else math.ceil((last - first) / step))), "the size")
    exact: Array = np.arange(count, dtype=np.int64 if whole else np.float64) * np.asarray(step) + first
    return _known(exact.astype(to_numpy(wanted.ir)))


@creation
def linspace(start: Any, end: Any, steps: int, *, dtype: DTypeLike = float32,
             device: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers equally spaced from start to end, both included.

    They are computed in float64 and rounded once. With one step the result is `start` alone.

    Args:
        start: First number, or a 0-d tensor.
        end: Last number, likewise.
        steps: How many numbers there are.
        dtype: Dtype of the result; float32 by default. Integers are truncated.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        1-D tensor of `steps` elements.

    Raises:
        UserError: `steps` is negative (MLC0358) or no integer (MLC0355), a tensor has dimensions (MLC0364), or an end
            is neither a number nor a tensor (MLC0421).

    Example:
        >>> mlc.linspace(0, 1, 5)
        tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=mlc.float32)
    """
    return _spaced(start, end, steps, dtype, lambda x: x)


def _spaced(start: Any, end: Any, steps: int, dtype: DTypeLike, f: Callable[[Any], Any]) -> Tensor:
    """f of numbers equally spaced from start to end, of float64 arrays or tensors; rounded to the dtype."""
    for name, x in (("start", start), ("end", end)):
        if getattr(x, "ndim", 0):
            raise UserError(f"{name} has {x.ndim} dimensions, expected a number or a 0-d tensor", code="MLC0364")
    count = count_of(steps, "steps")
    if isinstance(start, Tracer) or isinstance(end, Tracer):
        first, last = (cast(tracer(x), f64) for x in (start, end))
        at: Tracer = emit(T.Iota, (count,), 0, f64)
        step, half = (last - first) / max(1, count - 1), (count + 1) // 2
        values = OPERATIONS["where"](at < half, first + step * at, last - step * (count - 1 - at))
        return cast(tracer(f(values)), as_ir(dtype))
    try:
        if isinstance(start, str | bytes) or isinstance(end, str | bytes):          # which float() may take
            raise TypeError
        low, high = float(start), float(end)
    except OverflowError:
        raise UserError("an integer does not fit in a float64", code="MLC0348") from None
    except TypeError:
        raise UserTypeError(f"start and end are numbers or 0-d tensors, found {type(start).__name__} and "
                            f"{type(end).__name__}", code="MLC0421") from None
    with np.errstate(all="ignore"):
        return _known(np.asarray(f(np.linspace(low, high, count))).astype(to_numpy(as_ir(dtype))))


@creation
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: DTypeLike = float32,
             device: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers from base ** start to base ** end, both included, whose logarithms are equally spaced.

    They are computed in float64 and rounded once.

    Args:
        start: Exponent of the first number, or a 0-d tensor.
        end: Exponent of the last number, likewise.
        steps: How many numbers there are.
        base: The base.
        dtype: Dtype of the result; float32 by default. Integers are truncated.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        1-D tensor of `steps` elements.

    Raises:
        UserError: `steps` is negative (MLC0358) or no integer (MLC0355), or a tensor has dimensions (MLC0364).

    Example:
        >>> mlc.logspace(0, 2, 3)
        tensor([  1.,  10., 100.], dtype=mlc.float32)
    """
    return _spaced(start, end, steps, dtype, lambda exponents: float(base) ** exponents)


@creation
def eye(n: int, m: int | None = None, *, dtype: DTypeLike = float32,
        device: Any = None, requires_grad: bool = False) -> Tensor:
    """The identity matrix, or its first rows and columns: result[i, j] = (i == j).

    Args:
        n: Number of rows.
        m: Number of columns; `n` by default.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape (n, m).

    Raises:
        UserError: a size is negative (MLC0358) or no integer (MLC0355).

    Example:
        >>> mlc.eye(2, 3)
        tensor([[1., 0., 0.],
                [0., 1., 0.]], dtype=mlc.float32)
    """
    rows, columns = shape_from((n, n if m is None else m))
    return _known(np.eye(count_of(rows, "n"), count_of(columns, "m"), dtype=to_numpy(as_ir(dtype))))


def _known(array: Array) -> Tensor:
    """Wrap an existing array as a tensor; within a trace, as a constant."""
    if state.trace is None:
        return wrap(array)
    return Tracer(T.Constant(array).result, current())
