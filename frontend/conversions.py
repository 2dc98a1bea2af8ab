"""Methods of a tensor that make another like it: on another device, of another dtype, or of other elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.devices import CPU
from mlc.frontend.dtypes import as_dtype, type_name
from mlc.frontend.memory_format import check_memory_format
from mlc.frontend.methods import DTypeLike, Operand, call
from mlc.ir.sizes import Dim

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor


def _cast(x: Any, dtype: str, memory_format: Any) -> Tensor:
    """The elements in a dtype; the tensor itself if they are. The memory format is accepted and not made."""
    check_memory_format(memory_format)
    array = None if x.composite else x._array
    return x if type(array) is np.ndarray and array.dtype.name == dtype else call("cast", x, dtype)


class Conversions:
    """Tensors like this one, in PyTorch's words: `x.cpu()`, `x.type_as(y)`, `x.new_zeros(3)`."""

    __slots__ = ()

    def type(self: Any, dtype: DTypeLike = None) -> Any:
        """The name of the tensor's legacy type, such as "mlc.FloatTensor"; with `dtype`, the tensor in that dtype.

        Args:
            dtype: A dtype, or a legacy type such as `mlc.FloatTensor`; None for the name.

        Returns:
            A string, or a tensor of the same shape.

        Raises:
            UserTypeError: `dtype` is none (MLC0342).

        Example:
            >>> x = mlc.tensor([1.5])
            >>> x.type(), x.type(mlc.int64)
            ('mlc.FloatTensor', tensor([1], dtype=mlc.int64))
        """
        if dtype is not None:
            return self.to(as_dtype(dtype))
        return type_name(self.dtype, self.device)

    def type_as(self: Any, other: Tensor) -> Tensor:
        """The elements in the dtype of `other`, as `mlc.cast` gives them.

        Args:
            other: Tensor of any shape.

        Returns:
            Tensor of the shape of this one; this tensor itself if it has the dtype.

        Example:
            >>> mlc.tensor([1.5, 2.5]).type_as(mlc.tensor([0]))
            tensor([1, 2], dtype=mlc.int64)
        """
        out: Tensor = self.to(other.dtype)
        return out

    def float(self: Any, *, memory_format: Any = None) -> Tensor:
        """The elements as float32. `mlc.cast` has the rules; x.float() is x.to(mlc.float32).

        Example:
            >>> mlc.tensor([1, 2]).float()
            tensor([1., 2.], dtype=mlc.float32)
        """
        return _cast(self, "float32", memory_format)

    def double(self: Any, *, memory_format: Any = None) -> Tensor:
        """The elements as float64. `mlc.cast` has the rules; x.double() is x.to(mlc.float64).

        Example:
            >>> mlc.tensor([0.5]).double()
            tensor([0.5], dtype=mlc.float64)
        """
        return _cast(self, "float64", memory_format)

    def half(self: Any, *, memory_format: Any = None) -> Tensor:
        """The elements as float16; numbers beyond 65504 become infinite. `mlc.cast` has the rules; x.half() is
        x.to(mlc.float16).

        Example:
            >>> mlc.tensor([70000.0]).half()
            tensor([inf], dtype=mlc.float16)
        """
        return _cast(self, "float16", memory_format)

    def bfloat16(self: Any, *, memory_format: Any = None) -> Tensor:
        """The elements as bfloat16. `mlc.cast` has the rules; x.bfloat16() is x.to(mlc.bfloat16).

        Example:
            >>> mlc.tensor([1.0, 3.0]).bfloat16()
            tensor([1., 3.], dtype=mlc.bfloat16)
        """
        return _cast(self, "bfloat16", memory_format)

    def cfloat(self: Any, *, memory_format: Any = None) -> Tensor:
        """The elements as complex64. `mlc.cast` has the rules; x.cfloat() is x.to(mlc.complex64).

        Example:
            >>> mlc.tensor([1.5]).cfloat()
            tensor([1.5+0.j], dtype=mlc.complex64)
        """
        return _cast(self, "complex64", memory_format)

    def cdouble(self: Any, *, memory_format: Any = None) -> Tensor:
        """The elements as complex128. `mlc.cast` has the rules; x.cdouble() is x.to(mlc.complex128).

        Example:
            >>> mlc.tensor([1.5]).cdouble()
            tensor([1.5+0.j], dtype=mlc.complex128)
        """
        return _cast(self, "complex128", memory_format)

    def long(self: Any, *, memory_format: Any = None) -> Tensor:
        """The elements as int64: floats are truncated. `mlc.cast` has the rules; x.long() is x.to(mlc.int64).

        Example:
            >>> mlc.tensor([1.9, -1.9]).long()
            tensor([ 1, -1], dtype=mlc.int64)
        """
        return _cast(self, "int64", memory_format)

    def int(self: Any, *, memory_format: Any = None) -> Tensor:
        """The elements as int32: floats are truncated. `mlc.cast` has the rules; x.int() is x.to(mlc.int32).

        Example:
            >>> mlc.tensor([1.9, -1.9]).int()
            tensor([ 1, -1], dtype=mlc.int32)
        """
        return _cast(self, "int32", memory_format)

    def bool(self: Any, *, memory_format: Any = None) -> Tensor:
        """The elements as bool: what is not 0 is True, NaN too. `mlc.cast` has the rules; x.bool() is x.to(mlc.bool).

        Example:
            >>> mlc.tensor([0.0, 0.5]).bool()
            tensor([False,  True], dtype=mlc.bool)
        """
        return _cast(self, "bool", memory_format)

    def short(self: Any, *, memory_format: Any = None) -> Tensor:
        """The elements as int16; integers beyond it wrap around. `mlc.cast` has the rules; x.short() is
        x.to(mlc.int16).

        Example:
            >>> mlc.tensor([32768]).short()
            tensor([-32768], dtype=mlc.int16)
        """
        return _cast(self, "int16", memory_format)

    def char(self: Any, *, memory_format: Any = None) -> Tensor:
        """The elements as int8; integers beyond it wrap around. `mlc.cast` has the rules; x.char() is x.to(mlc.int8).

        Example:
            >>> mlc.tensor([128, 1]).char()
            tensor([-128,    1], dtype=mlc.int8)
        """
        return _cast(self, "int8", memory_format)

    def byte(self: Any, *, memory_format: Any = None) -> Tensor:
        """The elements as uint8; integers beyond it wrap around. `mlc.cast` has the rules; x.byte() is x.to(mlc.uint8).

        Example:
            >>> mlc.tensor([256, 1]).byte()
            tensor([0, 1], dtype=mlc.uint8)
        """
        return _cast(self, "uint8", memory_format)

    def cpu(self: Any) -> Tensor:
        """The tensor in the CPU's memory; itself if it is there. Gradients flow back to the GPU.

        Returns:
            Tensor of the same shape and dtype.

        Example:
            >>> x = mlc.ones(2)
            >>> x.cpu() is x
            True
        """
        out: Tensor = self.to_device(CPU)
        return out

    def cuda(self: Any, device: Any = None) -> Tensor:
        """The tensor on a GPU, as x.to("cuda") gives it; itself if it is there.

        Args:
            device: Number or name of the GPU, as 1 or "cuda:1"; None for "cuda".

        Returns:
            Tensor of the same shape and dtype.

        Raises:
            BackendError: there is no cuda-python (MLC0580), no driver (MLC0581), or no such device (MLC0582).

        Example:
            >>> x = mlc.ones(2)
            >>> x = x.cuda() if mlc.cuda.is_available() else x
        """
        out: Tensor = self.to_device("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else
                                     device)
        return out

    def new_zeros(self: Any, *size: Any, dtype: DTypeLike = None, device: Any = None) -> Tensor:
        """A tensor of zeros, as `mlc.zeros`, of the dtype and on the device of this tensor.

        Args:
            size: Sizes, as separate arguments or as one sequence.
            dtype: Dtype of the result; that of this tensor by default.
            device: Device of the result; that of this tensor by default.

        Returns:
            Tensor of shape `size`.

        Raises:
            UserError: a size is negative (MLC0358).

        Example:
            >>> mlc.tensor([1, 2]).new_zeros(3)
            tensor([0, 0, 0], dtype=mlc.int64)
        """
        return call("zeros", *size, dtype=dtype or self.dtype, device=device or self.device)

    def new_ones(self: Any, *size: Any, dtype: DTypeLike = None, device: Any = None) -> Tensor:
        """A tensor of ones, as `mlc.ones`, of the dtype and on the device of this tensor.

        Args:
            size: Sizes, as separate arguments or as one sequence.
            dtype: Dtype of the result; that of this tensor by default.
            device: Device of the result; that of this tensor by default.

        Returns:
            Tensor of shape `size`.

        Raises:
            UserError: a size is negative (MLC0358).

        Example:
            >>> mlc.tensor([1, 2]).new_ones(3)
            tensor([1, 1, 1], dtype=mlc.int64)
        """
        return call("ones", *size, dtype=dtype or self.dtype, device=device or self.device)

    def new_empty(self: Any, *size: Any, dtype: DTypeLike = None, device: Any = None) -> Tensor:
        """A tensor whose elements are to be replaced, as `mlc.empty`, of the dtype and on the device of this tensor.

        Args:
            size: Sizes, as separate arguments or as one sequence.
            dtype: Dtype of the result; that of this tensor by default.
            device: Device of the result; that of this tensor by default.

        Returns:
            Tensor of shape `size`; its elements are 0 here.

        Raises:
            UserError: a size is negative (MLC0358).

        Example:
            >>> mlc.tensor([1, 2]).new_empty(2, 3).shape
            (2, 3)
        """
        return call("empty", *size, dtype=dtype or self.dtype, device=device or self.device)

    def new_full(self: Any, size: Sequence[Dim], fill_value: Operand, dtype: DTypeLike = None,
                 device: Any = None) -> Tensor:
        """A tensor filled with one number, as `mlc.full`, of the dtype and on the device of this tensor.

        Args:
            size: Sequence of sizes.
            fill_value: Number or tensor of one element; floats are truncated in a tensor of integers.
            dtype: Dtype of the result; that of this tensor by default.
            device: Device of the result; that of this tensor by default.

        Returns:
            Tensor of shape `size`.

        Raises:
            UserError: a size is negative (MLC0358), or `fill_value` is an integer that the dtype does not hold
                (MLC0348) or no number (MLC0421).

        Example:
            >>> mlc.tensor([1.0]).new_full((2,), 7)
            tensor([7., 7.], dtype=mlc.float32)
        """
        return call("full", size, fill_value, dtype=dtype or self.dtype, device=device or self.device)

    def new_tensor(self: Any, data: Any, dtype: DTypeLike = None, device: Any = None) -> Tensor:
        """A tensor with a copy of the data, as `mlc.tensor`, of the dtype and on the device of this tensor.

        Args:
            data: Number, nested lists of equal lengths, array or tensor; floats are truncated on the way to integers.
            dtype: Dtype of the result; that of this tensor by default.
            device: Device of the result; that of this tensor by default.

        Returns:
            Tensor of the shape of `data`.

        Raises:
            UserError: `data` is no array (MLC0345), or an integer does not fit in the dtype (MLC0348).

        Example:
            >>> mlc.tensor([1.0]).new_tensor([[1, 2]])
            tensor([[1., 2.]], dtype=mlc.float32)
        """
        return call("tensor", data, dtype or self.dtype, device=device or self.device)
