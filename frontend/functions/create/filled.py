"""Constant tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.frontend.dtypes import DType, as_dtype, as_ir, float32
from mlc.frontend.functions.create.public import creation
from mlc.frontend.memory_format import check_memory_format
from mlc.frontend.operands import (
    NUMBER,
    broadcast_to,
    cast,
    number,
    refuse_several,
    shape_of,
    to_default_dtype,
    tracer,
)
from mlc.frontend.tensor import DTypeLike, Number, Operand, Tensor, as_array, wrap
from mlc.frontend.trace import state
from mlc.frontend.tracer import Tracer
from mlc.ir.bounds import MAX_ELEMENTS
from mlc.ir.diag import UserError, UserMemoryError, UserTypeError
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import ScalarType, to_numpy

MAX_RANK = 64
"""Dimensions that numpy's arrays have at most."""


def shape_from(size: tuple[Any, ...]) -> tuple[Dim, ...]:
    """`zeros(2, 3)` and `zeros((2, 3))` mean the same."""
    shape = shape_of(size[0] if len(size) == 1 and isinstance(size[0], tuple | list) else size)
    if len(shape) > MAX_RANK:
        raise UserError(f"a tensor has at most {MAX_RANK} dimensions, not {len(shape)}", code="MLC0364")
    for d in shape:
        if isinstance(d, int) and d < 0:
            raise UserError(f"{d} is no size", code="MLC0358")
    if math.prod(d for d in shape if isinstance(d, int) and d) >= MAX_ELEMENTS:
        raise UserMemoryError(f"shape {list(map(str, shape))} is beyond all memory".replace("'", ""), code="MLC0328")
    return shape


def _filled(shape: tuple[Dim, ...], value: Number | Size, dtype: ScalarType) -> Tensor:
    if value is None:
        raise UserTypeError("expected a number, found None", code="MLC0353")       # numpy makes it NaN
    plain = state.trace is None and type(value) is int and 0 <= value <= 1                 # which every dtype has
    if not plain and isinstance(value, NUMBER):
        value = as_array(value, as_dtype(dtype)).item()    # as `tensor` makes it of a number
    if state.trace is not None:
        return broadcast_to(cast(tracer(value), dtype) if isinstance(value, Size) else number(value, dtype), shape)
    if not all(isinstance(d, int) for d in shape):
        raise UserError(f"shape [{', '.join(map(str, shape))}] has no numbers outside a recorded function",
                        code="MLC0365")
    refuse_several(value)                                  # which numpy would broadcast
    return wrap(np.full(shape, value, to_numpy(dtype)))


def _of(value: Any) -> DType:
    """The element type of a Python number."""
    return as_dtype("bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else
                    "complex64" if isinstance(value, complex) else "float32")


@creation
def zeros(*size: Any, dtype: DTypeLike = float32, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros.

    Every call gives new memory. `size` may be empty, for a tensor of no dimensions, and sizes may be 0. Bools are
    False.

    Args:
        size: Sizes, as separate arguments or as one sequence.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result, "cpu" or "cuda"; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: a size is negative (MLC0358) or no integer (MLC0355), or the shape is beyond all memory (MLC0328).

    Example:
        >>> mlc.zeros(2, 3)
        tensor([[0., 0., 0.],
                [0., 0., 0.]], dtype=mlc.float32)
    """
    return _filled(shape_from(size), 0, as_ir(dtype))


@creation
def ones(*size: Any, dtype: DTypeLike = float32, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones.

    Every call gives new memory. `size` may be empty, for a tensor of no dimensions, and sizes may be 0. Bools are True.

    Args:
        size: Sizes, as separate arguments or as one sequence.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result, "cpu" or "cuda"; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: a size is negative (MLC0358) or no integer (MLC0355), or the shape is beyond all memory (MLC0328).

    Example:
        >>> mlc.ones(2, 3)
        tensor([[1., 1., 1.],
                [1., 1., 1.]], dtype=mlc.float32)
    """
    return _filled(shape_from(size), 1, as_ir(dtype))


@creation
def empty(*size: Any, dtype: DTypeLike = float32, device: Any = None, requires_grad: bool = False,
          memory_format: Any = None) -> Tensor:
    """A tensor whose elements are to be replaced; here they are 0.

    Unlike PyTorch's, the elements are defined.

    Args:
        size: Sizes, as separate arguments or as one sequence.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result, "cpu" or "cuda"; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.
        memory_format: Order of elements in memory, which is accepted and not made; see `mlc.memory_format`.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: a size is negative (MLC0358) or no integer (MLC0355), or the shape is beyond all memory (MLC0328).

    Example:
        >>> mlc.empty(2, 3)
        tensor([[0., 0., 0.],
                [0., 0., 0.]], dtype=mlc.float32)
    """
    check_memory_format(memory_format)
    return _filled(shape_from(size), 0, as_ir(dtype))


@creation
def full(size: Sequence[Dim], fill_value: Operand, *, dtype: DTypeLike = None,
         device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor filled with one number.

    result[i...] = fill_value. Unlike `mlc.zeros`, it takes its dtype from the number: True gives bools, 7 int64, 7.0
    float32 and 7j complex64.

    Args:
        size: Sequence of sizes.
        fill_value: Number or tensor of one element. Within a compiled function a tensor may have more and is broadcast.
        dtype: Dtype of the result; by default that of a tensor, and of a number bool, int64 or float32.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

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
    shape = shape_from((tuple(size),))
    if isinstance(fill_value, Tensor):
        if isinstance(fill_value, Tracer):
            filled = to_default_dtype(fill_value) if dtype is None else cast(fill_value, as_ir(dtype))
            return broadcast_to(filled, shape)
        dtype, fill_value = fill_value.dtype if dtype is None else dtype, fill_value.item()
    return _filled(shape, fill_value, as_ir(_of(fill_value) if dtype is None else dtype))


def _like(input: Operand, value: Number, dtype: DTypeLike) -> Tensor:
    x = input if isinstance(input, Tensor) else Tensor(as_array(input))
    return _filled(x.shape, value, as_ir(x.dtype if dtype is None else dtype))


@creation
def zeros_like(input: Operand, *, dtype: DTypeLike = None, device: Any = None, requires_grad: bool = False,
               memory_format: Any = None) -> Tensor:
    """A tensor of zeros, shaped as another one.

    The shape, the dtype and the device are those of `input` unless others are given; its elements are not read, and no
    gradient flows to it.

    Args:
        input: Tensor or number that tells the shape.
        dtype: Dtype of the result; that of `input` by default.
        device: Device of the result; that of `input` by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.
        memory_format: Order of elements in memory, which is accepted and not made; see `mlc.memory_format`.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `input` is no array (MLC0345).

    Example:
        >>> mlc.zeros_like(mlc.tensor([[5, 6]]))
        tensor([[0, 0]], dtype=mlc.int64)
    """
    check_memory_format(memory_format)
    return _like(input, 0, dtype)


@creation
def ones_like(input: Operand, *, dtype: DTypeLike = None, device: Any = None, requires_grad: bool = False,
              memory_format: Any = None) -> Tensor:
    """A tensor of ones, shaped as another one.

    The shape, the dtype and the device are those of `input` unless others are given; its elements are not read, and no
    gradient flows to it.

    Args:
        input: Tensor or number that tells the shape.
        dtype: Dtype of the result; that of `input` by default.
        device: Device of the result; that of `input` by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.
        memory_format: Order of elements in memory, which is accepted and not made; see `mlc.memory_format`.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `input` is no array (MLC0345).

    Example:
        >>> mlc.ones_like(mlc.tensor([[5, 6]]))
        tensor([[1, 1]], dtype=mlc.int64)
    """
    check_memory_format(memory_format)
    return _like(input, 1, dtype)


@creation
def empty_like(input: Operand, *, dtype: DTypeLike = None, device: Any = None, requires_grad: bool = False,
               memory_format: Any = None) -> Tensor:
    """A tensor of elements that are to be replaced; here they are 0, shaped as another one.

    Args:
        input: Tensor or number that tells the shape.
        dtype: Dtype of the result; that of `input` by default.
        device: Device of the result; that of `input` by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.
        memory_format: Order of elements in memory, which is accepted and not made; see `mlc.memory_format`.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `input` is no array (MLC0345).

    Example:
        >>> mlc.empty_like(mlc.tensor([[5, 6]]))
        tensor([[0, 0]], dtype=mlc.int64)
    """
    check_memory_format(memory_format)
    return _like(input, 0, dtype)


@creation
def full_like(input: Operand, fill_value: Number, *, dtype: DTypeLike = None,
              device: Any = None, requires_grad: bool = False,
              memory_format: Any = None) -> Tensor:
    """A tensor filled with one number, shaped as another one.

    result[i...] = fill_value, in the dtype of `input`: in a tensor of integers a float loses its fraction, unless
    `dtype` says otherwise.

    Args:
        input: Tensor or number that tells the shape.
        fill_value: Number.
        dtype: Dtype of the result; that of `input` by default.
        device: Device of the result; that of `input` by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.
        memory_format: Order of elements in memory, which is accepted and not made; see `mlc.memory_format`.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `fill_value` is an integer that the dtype does not hold (MLC0348).
        UserTypeError: `fill_value` is no number (MLC0353).

    Example:
        >>> mlc.full_like(mlc.ones(3), 0.5)
        tensor([0.5, 0.5, 0.5], dtype=mlc.float32)
    """
    check_memory_format(memory_format)
    return _like(input, fill_value, dtype)
