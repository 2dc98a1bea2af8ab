"""Functions that make tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlc
from mlc.frontend.devices import as_device
from mlc.frontend.dtypes import DType, as_dtype
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
    "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]


def arange(start: float, /, stop: float | None = None, step: float = 1, *, dtype: DType | None = None,
           device: Any = None) -> Tensor:
    """The numbers from `start` up to `stop`, which is left out, at distances of `step`.

    Args:
        start: First number; if there is no `stop`, that is it, and the first number is 0.
        stop: End.
        step: Distance, which may be negative. Without numbers between start and stop the result is empty.
        dtype: Dtype of the result; int64 for integers, float32 otherwise.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of one dimension.

    Raises:
        UserError: The step is zero (MLC0380).

    Example:
        >>> xp.arange(2, 8, 3)
        tensor([2, 5], dtype=mlc.int64)
    """
    if stop is None:
        start, stop = 0, start
    if step and (stop - start) / step <= 0:
        whole = all(isinstance(x, int) for x in (start, stop, step))
        return mlc.zeros(0, dtype=dtype or (mlc.int64 if whole else mlc.float32), device=device)
    return mlc.arange(start, stop, step, dtype=dtype, device=device)


def asarray(obj: Any, /, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of numbers, of nested lists of them, or of another array.

    Args:
        obj: Tensor, number, nested lists of equal lengths, numpy array, or anything with `__dlpack__`.
        dtype: Dtype of the result; by default that of an array, and bool, int64, float32 or complex64 for Python's
            numbers.
        device: Device of the result; by default that of a tensor, and the CPU otherwise.
        copy: True for memory of its own, False to refuse where the memory cannot be shared, None to share it where it
            can be.

    Returns:
        Tensor of the shape of `obj`.

    Raises:
        UserError: It is no array (MLC0345), an integer does not fit in the dtype (MLC0348), or the memory cannot be
            shared (MLC0882).

    Example:
        >>> xp.asarray([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]], dtype=mlc.int64)
    """
    if copy is False and not _shareable(obj, dtype, device):
        raise UserError("this array cannot be made without a copy", code="MLC0882", loc=user_loc(),
                        hint="leave copy=False out, or pass a tensor or array that has the dtype and the device")
    if copy:
        return mlc.tensor(obj, dtype=dtype, device=device)
    return mlc.asarray(obj, dtype=dtype, device=device)


def _shareable(obj: Any, dtype: DType | None, device: Any) -> bool:
    """Whether an array has the dtype and is on the device."""
    if not hasattr(obj, "shape") or not hasattr(obj, "dtype"):
        return False
    same = dtype is None or as_dtype(obj.dtype) is as_dtype(dtype)
    return same and as_device(device) in (None, getattr(obj, "device", "cpu"))


def empty(shape: int | Sequence[int], *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A tensor whose elements do not matter; they are zeros.

    Args:
        shape: The shape, or the only size.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of the shape.

    Example:
        >>> xp.empty((2, 3)).shape
        (2, 3)
    """
    return mlc.empty(_shape(shape), dtype=dtype or mlc.float32, device=device)


def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A tensor of the shape of another, whose elements do not matter; they are zeros.

    Args:
        x: The other tensor.
        dtype: Dtype of the result; that of x by default.
        device: Device of the result; that of x by default.

    Returns:
        Tensor of the shape of x.

    Example:
        >>> xp.empty_like(xp.ones((2, 3))).shape
        (2, 3)
    """
    return mlc.empty_like(x, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None,
        device: Any = None) -> Tensor:
    """A matrix with ones on a diagonal, and zeros elsewhere.

    Args:
        n_rows: Number of rows.
        n_cols: Number of columns; that of rows by default.
        k: The diagonal, above the main one; below it if negative.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of shape (n_rows, n_cols).

    Example:
        >>> xp.eye(2, 3, k=1)
        tensor([[0., 1., 0.],
                [0., 0., 1.]], dtype=mlc.float32)
    """
    columns = n_rows if n_cols is None else n_cols
    k = max(-n_rows, min(k, columns))                      # further diagonals are not there, either
    above = mlc.arange(columns, device=device) - mlc.arange(n_rows, device=device).unsqueeze(1)
    return (above == k).to(dtype or mlc.float32)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of another library's array, by the DLPack protocol.

    Args:
        x: Array with `__dlpack__` and `__dlpack_device__`.
        device: Device of the result; that of x by default.
        copy: True for memory of its own, False to refuse where the memory cannot be shared, None to share it where it
            can be.

    Returns:
        Tensor of the shape and the dtype of x.

    Raises:
        UserError: x has no `__dlpack__` (MLC0345), its memory cannot be used (MLC0346), or it cannot be shared
            (MLC0882).

    Example:
        >>> xp.from_dlpack(np.array([1.0, 2.0]))
        tensor([1., 2.], dtype=mlc.float64)
    """
    return mlc.from_dlpack(x, device=device, copy=copy)


def full(shape: int | Sequence[int], fill_value: complex, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A tensor of one number.

    Args:
        shape: The shape, or the only size.
        fill_value: The number.
        dtype: Dtype of the result; bool, int64, float32 or complex64 by the number if left out.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of the shape.

    Example:
        >>> xp.full(2, 7)
        tensor([7, 7], dtype=mlc.int64)
    """
    return mlc.full(_shape(shape), fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: complex, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A tensor of one number, of the shape of another.

    Args:
        x: The other tensor.
        fill_value: The number.
        dtype: Dtype of the result; that of x by default.
        device: Device of the result; that of x by default.

    Returns:
        Tensor of the shape of x.

    Example:
        >>> xp.full_like(xp.asarray([1, 2]), 7)
        tensor([7, 7], dtype=mlc.int64)
    """
    return mlc.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(start: complex, stop: complex, /, num: int, *, dtype: DType | None = None, device: Any = None,
             endpoint: bool = True) -> Tensor:
    """Numbers at equal distances.

    Args:
        start: First number.
        stop: Last number.
        num: How many there are.
        dtype: Dtype of the result; float32, or complex64 of complex numbers, by default.
        device: Device of the result; the CPU by default.
        endpoint: Whether `stop` is among them; if not, it would be the next one.

    Returns:
        Tensor of shape (num,).

    Example:
        >>> xp.linspace(0.0, 1.0, 5)
        tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=mlc.float32)
    """
    if dtype is None:
        dtype = mlc.complex64 if any(type(x) is complex for x in (start, stop)) else mlc.float32
    if endpoint:
        return mlc.linspace(start, stop, num, dtype=dtype, device=device)
    return mlc.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of the points of a grid.

    Args:
        arrays: Tensors of one dimension: the coordinates along each axis.
        indexing: "xy", by which the first two axes of the results are swapped, or "ij".

    Returns:
        Tuple of as many tensors, of one shape.

    Example:
        >>> xp.meshgrid(xp.asarray([1, 2]), xp.asarray([3, 4]))[0]
        tensor([[1, 2],
                [1, 2]], dtype=mlc.int64)
    """
    return tuple(mlc.meshgrid(*arrays, indexing=indexing)) if arrays else ()


def ones(shape: int | Sequence[int], *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A tensor of ones.

    Args:
        shape: The shape, or the only size.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of the shape.

    Example:
        >>> xp.ones(2)
        tensor([1., 1.], dtype=mlc.float32)
    """
    return mlc.ones(_shape(shape), dtype=dtype or mlc.float32, device=device)


def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A tensor of ones, of the shape of another.

    Args:
        x: The other tensor.
        dtype: Dtype of the result; that of x by default.
        device: Device of the result; that of x by default.

    Returns:
        Tensor of the shape of x.

    Example:
        >>> xp.ones_like(xp.asarray([1, 2]))
        tensor([1, 1], dtype=mlc.int64)
    """
    return mlc.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle of each matrix, with zeros above.

    Args:
        x: Tensor of matrices, in its last two dimensions.
        k: The highest diagonal that is kept, above the main one; below it if negative.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.tril(xp.ones((2, 2)))
        tensor([[1., 0.],
                [1., 1.]], dtype=mlc.float32)
    """
    return mlc.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle of each matrix, with zeros below.

    Args:
        x: Tensor of matrices, in its last two dimensions.
        k: The lowest diagonal that is kept, above the main one; below it if negative.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.triu(xp.ones((2, 2)))
        tensor([[1., 1.],
                [0., 1.]], dtype=mlc.float32)
    """
    return mlc.triu(x, k)


def zeros(shape: int | Sequence[int], *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A tensor of zeros.

    Args:
        shape: The shape, or the only size.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result; the CPU by default.

    Returns:
        Tensor of the shape.

    Example:
        >>> xp.zeros(2)
        tensor([0., 0.], dtype=mlc.float32)
    """
    return mlc.zeros(_shape(shape), dtype=dtype or mlc.float32, device=device)


def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A tensor of zeros, of the shape of another.

    Args:
        x: The other tensor.
        dtype: Dtype of the result; that of x by default.
        device: Device of the result; that of x by default.

    Returns:
        Tensor of the shape of x.

    Example:
        >>> xp.zeros_like(xp.asarray([1, 2]))
        tensor([0, 0], dtype=mlc.int64)
    """
    return mlc.zeros_like(x, dtype=dtype, device=device)


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, list | tuple) else (shape,)  # type: ignore[return-value]
