"""Tensors made of nothing but sizes and numbers.

Outside a recorded function their elements are written once, by numpy; inside one they are an operation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.arguments import FAILURES, as_coded
from mlc.frontend.devices import CPU, Devices, as_device
from mlc.frontend.dtypes import DType, as_dtype, as_ir, float32, int64
from mlc.frontend.eager import strengthened
from mlc.frontend.location import user_loc
from mlc.frontend.operands import (
    MAX_ELEMENTS,
    NUMBER,
    broadcast_to,
    cast,
    count_of,
    number,
    plain_int,
    reshape,
    shape_of,
    size,
    together,
    tracer,
)
from mlc.frontend.tensor import (
    OPERATIONS,
    Array,
    DTypeLike,
    Number,
    Operand,
    Tensor,
    as_array,
    as_held,
    elements,
    is_operand,
    wrap,
)
from mlc.frontend.trace import Tracer, as_user_error, current, emit, state
from mlc.ir.core import located
from mlc.ir.diag import BackendError, Error, UserError, UserTypeError
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import ScalarType, i64, to_numpy

P = ParamSpec("P")
R = TypeVar("R")

def creation(f: Callable[P, R]) -> Callable[P, R]:
    """Make `f` public; errors name the user's line. Where it takes a device, what it gives is there; else, where it
    takes a tensor, where that is."""

    @functools.wraps(f)
    def public(*args: P.args, **keywords: P.kwargs) -> R:
        loc = user_loc()
        try:
            where = as_device(keywords.get("device"))
            if where is None and args and type(args[0]) is Tensor:
                where = args[0].device
            if where not in (None, CPU) and state.trace is None:
                Devices.check(where)                       # before the host's memory is filled
            if state.trace is None or state.in_operation:
                out = f(*args, **keywords)
            else:
                with located(loc):
                    out = f(*args, **keywords)
        except BackendError:
            raise                                          # there is no such device
        except Error as error:
            raise as_user_error(error, f.__name__, (), loc) from None
        except FAILURES as error:
            as_coded(error, f, f.__name__, args, keywords, loc)
            raise
        return out.moved(where) if where is not None and isinstance(out, Tensor) else out  # type: ignore[return-value]

    OPERATIONS[f.__name__] = public
    return public


def _sizes(size: tuple[Any, ...]) -> tuple[Dim, ...]:
    """`zeros(2, 3)` and `zeros((2, 3))` mean the same."""
    shape = shape_of(size[0] if len(size) == 1 and isinstance(size[0], tuple | list) else size)
    for d in shape:
        if isinstance(d, int) and d < 0:
            raise UserError(f"{d} is no size", code="MLC0358")
    if math.prod(d for d in shape if isinstance(d, int) and d) >= MAX_ELEMENTS:
        raise UserError(f"shape {list(map(str, shape))} is beyond all memory".replace("'", ""), code="MLC0328")
    return shape


def _filled(shape: tuple[Dim, ...], value: Number, dtype: ScalarType) -> Tensor:
    if isinstance(value, NUMBER):
        value = as_array(value, as_dtype(dtype)).item()    # as `tensor` makes it of a number
    if state.trace is not None:
        return broadcast_to(number(value, dtype), shape)
    if not all(isinstance(d, int) for d in shape):
        raise UserError(f"shape [{', '.join(map(str, shape))}] has no numbers outside a recorded function",
                        code="MLC0365")
    return wrap(np.full(shape, value, to_numpy(dtype)))


def _in_64_bits(*numbers: Any) -> None:
    for x in numbers:
        if isinstance(x, int) and not -2**63 <= x < 2**63:
            raise UserError(f"{x} does not fit in 64 bits"[-200:], code="MLC0348")


def _of(value: Any) -> DType:
    """The element type of a Python number."""
    return as_dtype("bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32")


@creation
def zeros(*size: Any, dtype: DTypeLike = float32, device: Any = None) -> Tensor:
    """result[i] = 0"""
    return _filled(_sizes(size), 0, as_ir(dtype))


@creation
def ones(*size: Any, dtype: DTypeLike = float32, device: Any = None) -> Tensor:
    """result[i] = 1"""
    return _filled(_sizes(size), 1, as_ir(dtype))


@creation
def empty(*size: Any, dtype: DTypeLike = float32, device: Any = None) -> Tensor:
    """A tensor of this shape whose elements are to be replaced: result[i] = 0"""
    return _filled(_sizes(size), 0, as_ir(dtype))


@creation
def full(size: Sequence[Dim], fill_value: Operand, *, dtype: DTypeLike = None, device: Any = None) -> Tensor:
    """result[i] = fill_value"""
    shape = _sizes((tuple(size),))
    if isinstance(fill_value, Tensor):
        if isinstance(fill_value, Tracer):
            return broadcast_to(cast(fill_value, fill_value.type.dtype if dtype is None else as_ir(dtype)), shape)
        dtype, fill_value = fill_value.dtype if dtype is None else dtype, fill_value.item()
    return _filled(shape, fill_value, as_ir(_of(fill_value) if dtype is None else dtype))


def _like(input: Operand, value: Number, dtype: DTypeLike) -> Tensor:
    x = input if isinstance(input, Tensor) else Tensor(as_array(input))
    return _filled(x.shape, value, as_ir(x.dtype if dtype is None else dtype))


@creation
def zeros_like(input: Operand, *, dtype: DTypeLike = None, device: Any = None) -> Tensor:
    """Zeros of the shape and element type of input."""
    return _like(input, 0, dtype)


@creation
def ones_like(input: Operand, *, dtype: DTypeLike = None, device: Any = None) -> Tensor:
    """Ones of the shape and element type of input."""
    return _like(input, 1, dtype)


@creation
def empty_like(input: Operand, *, dtype: DTypeLike = None, device: Any = None) -> Tensor:
    """As `empty`, of the shape and element type of input."""
    return _like(input, 0, dtype)


@creation
def full_like(input: Operand, fill_value: Number, *, dtype: DTypeLike = None, device: Any = None) -> Tensor:
    """`fill_value` in the shape and element type of input."""
    return _like(input, fill_value, dtype)


@creation
def arange(start: Any = None, end: Any = None, step: Number = 1, *, dtype: DTypeLike = None,
           device: Any = None) -> Tensor:
    """result[i] = start + i * step, below end; arange(n) counts from 0"""
    first, last = (0, start) if end is None else (0 if start is None else start, end)
    if last is None:
        raise UserTypeError("there is no end", code="MLC0321")
    if state.trace is not None and not isinstance(last, int | float):
        last, first, by = size(last, "end"), plain_int(first, "start"), plain_int(step, "step")
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
    whole = all(isinstance(x, int) for x in (first, last, step))
    wanted = as_dtype((int64 if whole else float32) if dtype is None else dtype)
    count = count_of(int(max(0, -(-(last - first) // step) if whole else math.ceil((last - first) / step))), "the size")
    exact: Array = np.arange(count, dtype=np.int64 if whole else np.float64) * np.asarray(step) + first
    return _known(exact.astype(to_numpy(wanted.ir)))


@creation
def linspace(start: float, end: float, steps: int, *, dtype: DTypeLike = float32, device: Any = None) -> Tensor:
    """`steps` numbers from start to end, both included"""
    try:
        first, last = 1.0 * start, 1.0 * end               # numpy has no integers of more than 64 bits
    except OverflowError:
        raise UserError("an integer does not fit in a float64", code="MLC0348") from None
    return _known(np.linspace(first, last, count_of(steps, "steps")).astype(to_numpy(as_ir(dtype))))


@creation
def eye(n: int, m: int | None = None, *, dtype: DTypeLike = float32, device: Any = None) -> Tensor:
    """The matrix of n rows and m columns with ones on the diagonal, result[i, j] = (i == j)."""
    rows, columns = _sizes((n, n if m is None else m))
    return _known(np.eye(count_of(rows, "n"), count_of(columns, "m"), dtype=to_numpy(as_ir(dtype))))


def _known(array: Array) -> Tensor:
    """A tensor whose elements are there already; within a trace, a constant of it."""
    if state.trace is None:
        return wrap(array)
    return Tracer(T.Constant(array).result, current())


@creation
def tensor(data: Any, dtype: DTypeLike = None, *, device: Any = None) -> Tensor:
    """A tensor with a copy of the data: nested lists, numbers, arrays. Python floats are float32."""
    if isinstance(data, Tracer):
        return cast(data, data.type.dtype if dtype is None else as_ir(dtype))
    if isinstance(data, list | tuple) and state.trace is not None:
        found = list(elements(data))
        if any(isinstance(x, Tracer | Size) for x in found):
            out = _joined(found, _list_shape(data))
            return cast(out, out.type.dtype if dtype is None else as_ir(dtype))
    return wrap(np.array(as_array(data, dtype), order="C"))


def _list_shape(x: Any) -> list[int]:
    """The lengths of nested lists."""
    if not isinstance(x, list | tuple):
        return []
    inside = [_list_shape(v) for v in x]
    if any(s != inside[0] for s in inside):
        raise UserTypeError("nested lists of different lengths make no array", code="MLC0345")
    return [len(x), *(inside[0] if inside else [])]


def _joined(found: Sequence[Any], outer: Sequence[int]) -> Tracer:
    """The tensor of nested lists of lengths `outer` that hold numbers and tensors of one shape, some being recorded."""
    parts = together(*found)
    inner = parts[0].shape
    if any(x.shape != inner for x in parts):
        raise UserTypeError("tensors of different shapes make no array", code="MLC0345",
                            hint="pick elements that are numbers, or join them with mlc.cat")
    rows = tuple(reshape(strengthened(x), [1, *inner]) for x in parts)
    return reshape(emit(T.Concat, rows, 0) if len(rows) > 1 else rows[0], [*outer, *inner])


@creation
def asarray(data: Any, dtype: DTypeLike = None, *, device: Any = None) -> Tensor:
    """As `tensor`, sharing the memory of what is an array already."""
    if isinstance(data, Tracer):
        return cast(data, data.type.dtype if dtype is None else as_ir(dtype))
    if dtype is None and is_operand(data):
        return data if isinstance(data, Tensor) else wrap(as_held(data))
    return wrap(as_array(data, dtype)) if is_operand(data) else tensor(data, dtype)


@creation
def clone(input: Operand) -> Tensor:
    """input, in memory of its own"""
    if isinstance(input, Tracer):
        return input
    held = as_held(input)
    return wrap(np.array(held, order="C") if isinstance(held, np.ndarray) else held.copy())


@creation
def contiguous(input: Operand) -> Tensor:
    """input, copied if its elements do not lie in row-major order"""
    if isinstance(input, Tracer):
        return input
    held = as_held(input)
    if not isinstance(held, np.ndarray) or held.flags.c_contiguous:
        return input if isinstance(input, Tensor) else wrap(held)
    return wrap(np.array(held, order="C"))


@creation
def from_numpy(array: Array) -> Tensor:
    """A tensor of the shape and element type of a numpy array, which shares its memory."""
    if not isinstance(array, np.ndarray):
        raise UserTypeError(f"expected a numpy array, found {type(array).__name__}", code="MLC0345")
    return wrap(as_array(array))


@creation
def from_dlpack(x: Any) -> Tensor:
    """A tensor that shares the memory of another library's."""
    if not hasattr(type(x), "__dlpack__"):
        raise UserTypeError(f"{type(x).__name__} has no __dlpack__", code="MLC0345")
    return wrap(as_held(x))
