"""Tensors from Python data and arrays of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.autograd.copy_node import same_elements
from mlc.frontend.axes import plain_int
from mlc.frontend.devices import BackingArray, as_device
from mlc.frontend.dtypes import as_dtype, as_ir
from mlc.frontend.functionalization import another, captured
from mlc.frontend.functionalization import contiguous as rearranged
from mlc.frontend.functions.create.public import creation
from mlc.frontend.memory_format import check_memory_format
from mlc.frontend.nested_lists import LISTS, elements
from mlc.frontend.operands import cast, reshape, to_default_dtype, together
from mlc.frontend.operators import is_operand
from mlc.frontend.storage import share
from mlc.frontend.tensor import (
    Array,
    DTypeLike,
    Operand,
    Tensor,
    as_array,
    as_backing_array,
    wrap,
)
from mlc.frontend.trace import as_tracer, emit, state
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Size
from mlc.ir.types import to_numpy


@creation
def tensor(data: Any, dtype: DTypeLike = None, *, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of the data.

    Python's bools, integers and floats become bool, int64 and float32; arrays keep their dtype, so those of numpy are
    mostly float64. Within a compiled function nested lists may hold tensors of one shape, which are joined.

    Args:
        data: Number, nested lists of equal lengths, numpy array, tensor, or anything with `__dlpack__`.
        dtype: Dtype of the result; floats are truncated on the way to integers.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

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
    if isinstance(data, LISTS) and state.trace is not None:
        found = list(elements(data))
        if any(isinstance(x, Tracer | Size) for x in found):
            out = _joined(found, _list_shape(data))
            return cast(out, out.type.dtype if dtype is None else as_ir(dtype))
    return wrap(np.array(as_array(data, dtype), order="C"))


def _list_shape(x: Any) -> list[int]:
    """The lengths of nested lists."""
    if not isinstance(x, LISTS):
        return []
    inside = [_list_shape(v) for v in x]
    if any(s != inside[0] for s in inside):
        raise UserTypeError("nested lists of different lengths make no array", code="MLC0345",
                            hint="pad them, as nn.utils.rnn.pad_sequence does")
    return [len(x), *(inside[0] if inside else [])]


def _joined(found: Sequence[Any], outer: Sequence[int]) -> Tracer:
    """The tensor of nested lists of lengths `outer` that hold numbers and tensors of one shape, some being recorded."""
    parts = together(*found)
    inner = parts[0].shape
    if any(x.shape != inner for x in parts):
        raise UserTypeError("tensors of different shapes make no array", code="MLC0345",
                            hint="pick elements that are numbers, or join them with mlc.cat")
    rows = tuple(reshape(to_default_dtype(x), [1, *inner]) for x in parts)
    return reshape(emit(T.Concat, rows, 0) if len(rows) > 1 else rows[0], [*outer, *inner])


@creation
def asarray(data: Any, dtype: DTypeLike = None, *, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of the data, without a copy where possible.

    It shares the memory of an array that has the dtype already, so that each sees what is written to the other.
    Everything else is as in `tensor`.

    Args:
        data: Number, nested lists, numpy array, tensor, or anything with `__dlpack__`.
        dtype: Dtype of the result; that of the data by default.
        device: Device of the result.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

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
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(as_dtype(dtype))
    if not is_operand(data):
        return tensor(data, dtype)
    array = as_backing_array(data) if dtype is None else as_array(data, dtype)
    return wrap(array) if isinstance(data, bool | int | float) else _sharing(array, data)


@creation
def clone(input: Operand, memory_format: Any = None) -> Tensor:
    """A copy of the tensor, in memory of its own.

    Args:
        input: Tensor or number.
        memory_format: Order of elements in memory, which is accepted and not made; see `mlc.memory_format`.

    Returns:
        Tensor of the shape, dtype, device and elements of `input`.

    Raises:
        UserTypeError: `memory_format` is none (MLC0360).

    Example:
        >>> mlc.clone(mlc.tensor([1.0, 2.0]))
        tensor([1., 2.], dtype=mlc.float32)
    """
    check_memory_format(memory_format)
    if state.trace is not None:
        return another(as_tracer(input))
    array = as_backing_array(input)
    return same_elements(wrap(np.array(array, order="C") if isinstance(array, np.ndarray) else array.copy()), input)


@creation
def contiguous(input: Operand, memory_format: Any = None) -> Tensor:
    """The tensor, copied if its elements do not lie in memory in row-major order.

    A tensor in row-major order is returned as it is, without a copy; a transposed or otherwise strided view is copied
    to new memory.

    Args:
        input: Tensor or number.
        memory_format: Order of elements in memory, which is accepted and not made; see `mlc.memory_format`.

    Returns:
        Tensor of the shape, dtype and elements of `input`.

    Raises:
        UserTypeError: `memory_format` is none (MLC0360).

    Example:
        >>> mlc.contiguous(mlc.asarray(np.ones((2, 2), np.float32).T))
        tensor([[1., 1.],
                [1., 1.]], dtype=mlc.float32)
    """
    check_memory_format(memory_format)
    if state.trace is not None:
        input = captured(input)
    if isinstance(input, Tracer):
        return rearranged(input)
    array = as_backing_array(input)
    if not isinstance(array, np.ndarray) or array.flags.c_contiguous:
        return input if isinstance(input, Tensor) else wrap(array)
    return same_elements(wrap(np.array(array, order="C")), input)


@creation
def from_numpy(array: Array) -> Tensor:
    """A tensor that shares the memory of a numpy array.

    Each sees what is written to the other.

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
    return _sharing(as_array(array), array)


@creation
def frombuffer(buffer: Any, *, dtype: DTypeLike, count: int = -1, offset: int = 0,
               requires_grad: bool = False) -> Tensor:
    """A vector that shares the memory of an object with Python's buffer protocol, as bytes, bytearray or array.array.

    Each sees what is written to the other; a tensor of memory that is read-only cannot be written to.

    Args:
        buffer: The object.
        dtype: Dtype of the elements.
        count: Number of elements; -1 for as many as there are.
        offset: Bytes before the first element.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        1-D tensor.

    Raises:
        UserTypeError: `buffer` has no such protocol (MLC0345).
        UserError: the memory has no such elements (MLC0346), or `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.frombuffer(bytearray(b"\\x01\\x00\\x02\\x00"), dtype=mlc.int16)
        tensor([1, 2], dtype=mlc.int16)
    """
    wanted, first = plain_int(count, "count"), plain_int(offset, "offset")
    try:
        size = memoryview(buffer).nbytes
    except TypeError:
        raise UserTypeError(f"{type(buffer).__name__} has no buffer of memory", code="MLC0345") from None
    element = np.dtype(to_numpy(as_ir(dtype)))
    found, rest = divmod(size - first, element.itemsize)
    if first < 0 or found < 1 or (wanted < 0 and rest) or wanted == 0 or wanted > found:
        count_text = "whole" if wanted < 0 else str(wanted)
        raise UserError(f"{size} bytes have no {count_text} elements of {dtype} from byte {first} on", code="MLC0346")
    return from_numpy(np.frombuffer(buffer, element, found if wanted < 0 else wanted, first))


@creation
def from_dlpack(x: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's, by the DLPack protocol.

    Args:
        x: Array with `__dlpack__` and `__dlpack_device__`, in the CPU's memory or that of an NVIDIA GPU.
        device: Device of the result; that of `x` by default.
        copy: True for memory of its own, False to refuse where the memory cannot be shared, None to share it where it
            can be.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        UserError: `x` has no `__dlpack__` (MLC0345), its memory cannot be used or it requires a gradient, which DLPack
            does not pass on (MLC0346), or it cannot be shared (MLC0882).

    Example:
        >>> mlc.from_dlpack(np.array([1.0, 2.0]))
        tensor([1., 2.], dtype=mlc.float64)
    """
    if not hasattr(type(x), "__dlpack__"):
        raise UserTypeError(f"{type(x).__name__} has no __dlpack__", code="MLC0345")
    if type(x) is Tensor and x.requires_grad:
        raise UserError("a tensor that requires a gradient is not shared through DLPack, which passes on no gradient",
                        code="MLC0346", hint="share x.detach(), or use x itself")
    found = x[...] if isinstance(x, Tensor) else _sharing(as_backing_array(x), x)
    if copy is False and as_device(device) not in (None, found.device):
        raise UserError(f"an array on {found.device} shares no memory with {device}", code="MLC0882",
                        hint="leave copy=False out")
    return found.clone() if copy else found


def _sharing(array: BackingArray, data: Any) -> Tensor:
    """The tensor of an array, with the memory of `data` if the array has that, too."""
    shared = isinstance(array, np.ndarray) and (not isinstance(data, np.ndarray) or np.may_share_memory(array, data))
    return share(wrap(array), array) if shared else wrap(array)  # type: ignore[arg-type]
