"""Methods of a tensor about its elements in memory, as PyTorch has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.axes import axis
from mlc.frontend.devices import CPU
from mlc.frontend.memory_format import channels_last, channels_last_3d, check_memory_format
from mlc.frontend.sparse.layout import layout, strided

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor


class MemoryLayout:
    """Where the elements are: their strides, their address, and the device."""

    __slots__ = ()

    @property
    def layout(self) -> layout:
        """The layout: `mlc.strided` of dense tensors, `mlc.sparse_coo` and so on of sparse ones."""
        return strided

    def sparse_dim(self) -> int:
        """The number of dimensions that a sparse tensor has indices for; 0 of dense ones."""
        return 0

    def dense_dim(self: Any) -> int:
        """The number of dimensions of the values of a sparse tensor; all of a dense one."""
        return len(self.shape)

    def stride(self: Any, dim: int | None = None) -> Any:
        """The distances in memory between neighbours along each dimension, in elements, or that along one dimension."""
        array = self.backing_array
        if isinstance(array, np.ndarray):
            found = tuple(n // array.itemsize for n in array.strides)
        else:                                              # in device memory rows follow each other
            found = tuple(int(np.prod(array.shape[i + 1:])) for i in range(array.ndim))
        return found if dim is None else found[axis(dim, self.ndim, scalar=False)]

    def storage_offset(self: Any) -> int:
        """Always 0: a tensor's memory begins with its first element."""
        return 0 * int(self.backing_array.ndim)

    def is_contiguous(self: Any, memory_format: Any = None) -> bool:
        """Whether the elements lie in memory in row-major order, or in that of `mlc.channels_last`."""
        check_memory_format(memory_format)
        array = self.backing_array
        if memory_format in (channels_last, channels_last_3d):
            if self.ndim != (4 if memory_format is channels_last else 5):
                return False
            if isinstance(array, np.ndarray):
                return bool(np.moveaxis(array, 1, -1).flags.c_contiguous)
            return bool(self.shape[1] == 1 or all(n == 1 for n in self.shape[2:]))
        return not isinstance(array, np.ndarray) or bool(array.flags.c_contiguous)

    def data_ptr(self: Any) -> int:
        """The address of the first element."""
        array = self.backing_array
        return int(array.ctypes.data if isinstance(array, np.ndarray) else array.address)

    def get_device(self: Any) -> int:
        """The number of the GPU that holds the elements; -1 for the CPU."""
        return -1 if self.device == CPU else int(self.device.partition(":")[2])

    @property
    def is_cpu(self: Any) -> bool:
        """Whether the elements are in the CPU's memory."""
        return bool(self.device == CPU)

    @property
    def is_cuda(self: Any) -> bool:
        """Whether the elements are on a GPU."""
        return bool(self.device != CPU)

    @property
    def is_xpu(self: Any) -> bool:
        """Whether the elements are on a GPU of Intel, which mlc generates no code for: always False."""
        return False

    @property
    def is_sparse(self: Any) -> bool:
        """Whether the layout is `mlc.sparse_coo`."""
        return False

    @property
    def is_sparse_csr(self: Any) -> bool:
        """Whether the layout is `mlc.sparse_csr`."""
        return False

    def is_floating_point(self: Any) -> bool:
        """Whether the dtype is one of floats."""
        return bool(self.dtype.is_floating_point)

    @property
    def itemsize(self: Any) -> int:
        """The number of bytes of an element."""
        return int(self.dtype.itemsize)

    def element_size(self: Any) -> int:
        """The number of bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self: Any) -> Any:
        """The number of bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    def is_signed(self: Any) -> bool:
        """Whether the dtype has negative numbers."""
        return bool(self.dtype.is_signed)

    def is_complex(self: Any) -> bool:
        """Whether the dtype is complex."""
        return bool(self.dtype.is_complex)

    def is_conj(self: Any) -> bool:
        """Whether the elements are stored as their complex conjugates; always False."""
        return False

    def is_neg(self: Any) -> bool:
        """Whether the elements are stored with the opposite sign; always False."""
        return False

    def is_same_size(self: Any, other: Tensor) -> bool:
        """Whether another tensor has the same shape."""
        return tuple(self.shape) == tuple(other.shape)
