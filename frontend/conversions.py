"""Methods of a tensor that make another like it: on another device, of another dtype, or of other elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlc.frontend.devices import CPU
from mlc.frontend.dtypes import as_dtype, type_name
from mlc.frontend.methods import DTypeLike, Operand, call
from mlc.ir.sizes import Dim

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor


class Conversions:
    """Tensors like this one, in PyTorch's words: `x.cpu()`, `x.type_as(y)`, `x.new_zeros(3)`."""

    __slots__ = ()

    def type(self: Any, dtype: DTypeLike = None) -> Any:
        """The name of the tensor's legacy type, such as "mlc.FloatTensor"; with `dtype`, the tensor in that dtype."""
        if dtype is not None:
            return self.to(as_dtype(dtype))
        return type_name(self.dtype, self.device)

    def type_as(self: Any, other: Tensor) -> Tensor:
        """The elements in the dtype of `other`."""
        out: Tensor = self.to(other.dtype)
        return out

    def cpu(self: Any) -> Tensor:
        """The tensor in the CPU's memory; itself if it is there."""
        out: Tensor = self.to_device(CPU)
        return out

    def cuda(self: Any, device: Any = None) -> Tensor:
        """The tensor on a GPU, `cuda:0` or that of a number or name; itself if it is there."""
        out: Tensor = self.to_device("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else
                                     device)
        return out

    def new_zeros(self: Any, *size: Any, dtype: DTypeLike = None, device: Any = None) -> Tensor:
        """A tensor of zeros, of a shape, as `mlc.zeros`; dtype and device are those of this tensor by default."""
        return call("zeros", *size, dtype=dtype or self.dtype, device=device or self.device)

    def new_ones(self: Any, *size: Any, dtype: DTypeLike = None, device: Any = None) -> Tensor:
        """A tensor of ones, of a shape, as `mlc.ones`; dtype and device are those of this tensor by default."""
        return call("ones", *size, dtype=dtype or self.dtype, device=device or self.device)

    def new_empty(self: Any, *size: Any, dtype: DTypeLike = None, device: Any = None) -> Tensor:
        """A tensor of a shape, as `mlc.empty`; dtype and device are those of this tensor by default."""
        return call("empty", *size, dtype=dtype or self.dtype, device=device or self.device)

    def new_full(self: Any, size: Sequence[Dim], fill_value: Operand, dtype: DTypeLike = None,
                 device: Any = None) -> Tensor:
        """A tensor of one number, as `mlc.full`; dtype and device are those of this tensor by default."""
        return call("full", size, fill_value, dtype=dtype or self.dtype, device=device or self.device)

    def new_tensor(self: Any, data: Any, dtype: DTypeLike = None, device: Any = None) -> Tensor:
        """A tensor with a copy of data, as `mlc.tensor`; dtype and device are those of this tensor by default."""
        return call("tensor", data, dtype or self.dtype, device=device or self.device)
