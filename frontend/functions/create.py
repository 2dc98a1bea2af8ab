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
    """A tensor of zeros.

    Args:
        size: Sizes, as separate arguments or as one sequence.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result, "cpu" or "cuda"; the CPU by default.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: a size is negative (MLC0358) or no integer (MLC0355), or the shape is beyond all memory (MLC0328).

    Example:
        >>> mlc.zeros(2, 3)
        tensor([[0., 0., 0.],
                [0., 0., 0.]], dtype=mlc.float32)
    """
    return _filled(_sizes(size), 0, as_ir(dtype))


@creation
def ones(*size: Any, dtype: DTypeLike = float32, device: Any = None) -> Tensor:
    """A tensor of ones.

    Args:
        size: Sizes, as separate arguments or as one sequence.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result, "cpu" or "cuda"; the CPU by default.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: a size is negative (MLC0358) or no integer (MLC0355), or the shape is beyond all memory (MLC0328).

    Example:
        >>> mlc.ones(2, 3)
        tensor([[1., 1., 1.],
                [1., 1., 1.]], dtype=mlc.float32)
    """
    return _filled(_sizes(size), 1, as_ir(dtype))


@creation
def empty(*size: Any, dtype: DTypeLike = float32, device: Any = None) -> Tensor:
    """A tensor whose elements are to be replaced; here they are 0.

    Unlike PyTorch's, the elements are defined.

    Args:
        size: Sizes, as separate arguments or as one sequence.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result, "cpu" or "cuda"; the CPU by default.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: a size is negative (MLC0358) or no integer (MLC0355), or the shape is beyond all memory (MLC0328).

    Example:
        >>> mlc.empty(2, 3)
        tensor([[0., 0., 0.],
                [0., 0., 0.]], dtype=mlc.float32)
    """
    return _filled(_sizes(size), 0, as_ir(dtype))


@creation
def full(size: Sequence[Dim], fill_value: Operand, *, dtype: DTypeLike = None, device: Any = None) -> Tensor:
    """A tensor filled with one number.

    Args:
        size: Sequence of sizes.
        fill_value: Number or tensor of one element. Within a compiled function a tensor may have more and is broadcast.
        dtype: Dtype of the result; by default that of a tensor, and of a number bool, int64 or float32.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: a size is negative (MLC0358), or `fill_value` is an integer that the dtype does not hold (MLC0348) or
            no number (MLC0421).

    Example:
        >>> mlc.full((2, 2), 7)
        tensor([[7, 7],
                [7, 7]], dtype=mlc.int64)
    """
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
    """A tensor of zeros, shaped as another one.

    Args:
        input: Tensor or number that tells the shape.
        dtype: Dtype of the result; that of `input` by default.
        device: Device of the result; that of `input` by default.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `input` is no array (MLC0345).

    Example:
        >>> mlc.zeros_like(mlc.tensor([[5, 6]]))
        tensor([[0, 0]], dtype=mlc.int64)
    """
    return _like(input, 0, dtype)


@creation
def ones_like(input: Operand, *, dtype: DTypeLike = None, device: Any = None) -> Tensor:
    """A tensor of ones, shaped as another one.

    Args:
        input: Tensor or number that tells the shape.
        dtype: Dtype of the result; that of `input` by default.
        device: Device of the result; that of `input` by default.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `input` is no array (MLC0345).

    Example:
        >>> mlc.ones_like(mlc.tensor([[5, 6]]))
        tensor([[1, 1]], dtype=mlc.int64)
    """
    return _like(input, 1, dtype)


@creation
def empty_like(input: Operand, *, dtype: DTypeLike = None, device: Any = None) -> Tensor:
    """A tensor of elements that are to be replaced; here they are 0, shaped as another one.

    Args:
        input: Tensor or number that tells the shape.
        dtype: Dtype of the result; that of `input` by default.
        device: Device of the result; that of `input` by default.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `input` is no array (MLC0345).

    Example:
        >>> mlc.empty_like(mlc.tensor([[5, 6]]))
        tensor([[0, 0]], dtype=mlc.int64)
    """
    return _like(input, 0, dtype)


@creation
def full_like(input: Operand, fill_value: Number, *, dtype: DTypeLike = None, device: Any = None) -> Tensor:
    """A tensor filled with one number, shaped as another one.

    Args:
        input: Tensor or number that tells the shape.
        fill_value: Number.
        dtype: Dtype of the result; that of `input` by default.
        device: Device of the result; that of `input` by default.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `fill_value` is an integer that the dtype does not hold (MLC0348).

    Example:
        >>> mlc.full_like(mlc.ones(3), 0.5)
        tensor([0.5, 0.5, 0.5], dtype=mlc.float32)
    """
    return _like(input, fill_value, dtype)


@creation
def arange(start: Any = None, end: Any = None, step: Number = 1, *, dtype: DTypeLike = None,
           device: Any = None) -> Tensor:
    """Equally spaced numbers from start on, below end: result[i] = start + i * step.

    There are ceil((end - start) / step) of them. With one argument, it is `end`, and counting begins with 0. Floats are
    computed in float64 and rounded once. Within a compiled function `end` may be a symbolic size.

    Args:
        start: First number; 0 if it is left out.
        end: Limit, which is not included.
        step: Distance between neighbours; it may be negative.
        dtype: Dtype of the result; by default int64 if all arguments are integers, else float32.
        device: Device of the result; the CPU by default.

    Returns:
        1-D tensor.

    Raises:
        UserError: there is no end (MLC0321), an argument is no finite number (MLC0421), or `step` is 0 (MLC0360).

    Example:
        >>> mlc.arange(3)
        tensor([0, 1, 2], dtype=mlc.int64)
        >>> mlc.arange(1, 2, 0.25)
        tensor([1.  , 1.25, 1.5 , 1.75], dtype=mlc.float32)
    """
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
    """Numbers equally spaced from start to end, both included.

    They are computed in float64 and rounded once. With one step the result is `start` alone.

    Args:
        start: First number.
        end: Last number.
        steps: How many numbers there are.
        dtype: Dtype of the result; float32 by default. Integers are truncated.
        device: Device of the result; the CPU by default.

    Returns:
        1-D tensor of `steps` elements.

    Raises:
        UserError: `steps` is negative (MLC0358) or no integer (MLC0355).

    Example:
        >>> mlc.linspace(0, 1, 5)
        tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=mlc.float32)
    """
    try:
        first, last = 1.0 * start, 1.0 * end               # numpy has no integers of more than 64 bits
    except OverflowError:
        raise UserError("an integer does not fit in a float64", code="MLC0348") from None
    return _known(np.linspace(first, last, count_of(steps, "steps")).astype(to_numpy(as_ir(dtype))))


@creation
def eye(n: int, m: int | None = None, *, dtype: DTypeLike = float32, device: Any = None) -> Tensor:
    """The identity matrix, or its first rows and columns: result[i, j] = (i == j).

    Args:
        n: Number of rows.
        m: Number of columns; `n` by default.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (n, m).

    Raises:
        UserError: a size is negative (MLC0358) or no integer (MLC0355).

    Example:
        >>> mlc.eye(2, 3)
        tensor([[1., 0., 0.],
                [0., 1., 0.]], dtype=mlc.float32)
    """
    rows, columns = _sizes((n, n if m is None else m))
    return _known(np.eye(count_of(rows, "n"), count_of(columns, "m"), dtype=to_numpy(as_ir(dtype))))


def _known(array: Array) -> Tensor:
    """A tensor whose elements are there already; within a trace, a constant of it."""
    if state.trace is None:
        return wrap(array)
    return Tracer(T.Constant(array).result, current())


@creation
def tensor(data: Any, dtype: DTypeLike = None, *, device: Any = None) -> Tensor:
    """A tensor with a copy of the data.

    Python's bools, integers and floats become bool, int64 and float32; arrays keep their dtype, so those of numpy are
    mostly float64. Within a compiled function nested lists may hold tensors of one shape, which are joined.

    Args:
        data: Number, nested lists of equal lengths, numpy array, tensor, or anything with `__dlpack__`.
        dtype: Dtype of the result; floats are truncated on the way to integers.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of the shape of `data`.

    Raises:
        UserError: `data` is no array (MLC0345), or an integer does not fit in the dtype (MLC0348).

    Example:
        >>> mlc.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]], dtype=mlc.int64)
        >>> mlc.tensor([1, 0.5])
        tensor([1. , 0.5], dtype=mlc.float32)
    """
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
    """A tensor of the data, without a copy where possible.

    It shares the memory of an array that has the dtype already; do not write to that array. Everything else is as in
    `tensor`.

    Args:
        data: Number, nested lists, numpy array, tensor, or anything with `__dlpack__`.
        dtype: Dtype of the result; that of the data by default.
        device: Device of the result.

    Returns:
        Tensor of the shape of `data`.

    Raises:
        UserError: `data` is no array (MLC0345), or an integer does not fit in the dtype (MLC0348).

    Example:
        >>> mlc.asarray(np.arange(3, dtype=np.int32))
        tensor([0, 1, 2], dtype=mlc.int32)
    """
    if isinstance(data, Tracer):
        return cast(data, data.type.dtype if dtype is None else as_ir(dtype))
    if dtype is None and is_operand(data):
        return data if isinstance(data, Tensor) else wrap(as_held(data))
    return wrap(as_array(data, dtype)) if is_operand(data) else tensor(data, dtype)


@creation
def clone(input: Operand) -> Tensor:
    """A copy of the tensor, in memory of its own.

    Within a compiled function it is the tensor itself, which never changes.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of the shape, dtype, device and elements of `input`.

    Example:
        >>> mlc.clone(mlc.tensor([1.0, 2.0]))
        tensor([1., 2.], dtype=mlc.float32)
    """
    if isinstance(input, Tracer):
        return input
    held = as_held(input)
    return wrap(np.array(held, order="C") if isinstance(held, np.ndarray) else held.copy())


@creation
def contiguous(input: Operand) -> Tensor:
    """The tensor, copied if its elements do not lie in memory in row-major order.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of the shape, dtype and elements of `input`.

    Example:
        >>> mlc.contiguous(mlc.asarray(np.ones((2, 2), np.float32).T))
        tensor([[1., 1.],
                [1., 1.]], dtype=mlc.float32)
    """
    if isinstance(input, Tracer):
        return input
    held = as_held(input)
    if not isinstance(held, np.ndarray) or held.flags.c_contiguous:
        return input if isinstance(input, Tensor) else wrap(held)
    return wrap(np.array(held, order="C"))


@creation
def from_numpy(array: Array) -> Tensor:
    """A tensor that shares the memory of a numpy array.

    Do not write to the array as long as the tensor is in use.

    Args:
        array: Numpy array of bools, integers or floats.

    Returns:
        Tensor of the shape and dtype of `array`.

    Raises:
        UserError: `array` is no numpy array, or its dtype is none of mlc's (MLC0345).

    Example:
        >>> mlc.from_numpy(np.array([1.0, 2.0]))
        tensor([1., 2.], dtype=mlc.float64)
    """
    if not isinstance(array, np.ndarray):
        raise UserTypeError(f"expected a numpy array, found {type(array).__name__}", code="MLC0345")
    return wrap(as_array(array))


@creation
def from_dlpack(x: Any) -> Tensor:
    """A tensor that shares the memory of another library's, by the DLPack protocol.

    Args:
        x: Array with `__dlpack__` and `__dlpack_device__`, in the CPU's memory or that of an NVIDIA GPU.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        UserError: `x` has no `__dlpack__` (MLC0345).

    Example:
        >>> mlc.from_dlpack(np.array([1.0, 2.0]))
        tensor([1., 2.], dtype=mlc.float64)
    """
    if not hasattr(type(x), "__dlpack__"):
        raise UserTypeError(f"{type(x).__name__} has no __dlpack__", code="MLC0345")
    return wrap(as_held(x))
