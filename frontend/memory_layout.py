"""Methods of a tensor about its elements in memory, as PyTorch has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.axes import axis
from mlc.frontend.devices import CPU
from mlc.frontend.memory_format import channels_last, channels_last_3d, check_memory_format, contiguous_format
from mlc.frontend.methods import SYNTAX
from mlc.frontend.refusals import in_progress
from mlc.frontend.sparse.layout import layout, strided

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor


class MemoryLayout:
    """Where the elements are: their strides, their address, and the device."""

    __slots__ = ()

    @property
    def layout(self) -> layout:
        """The layout: `mlc.strided` of dense tensors, `mlc.sparse_coo` and so on of sparse ones.

        Example:
            >>> mlc.eye(2).layout, mlc.eye(2).to_sparse_csr().layout
            (mlc.strided, mlc.sparse_csr)
        """
        return strided

    def sparse_dim(self) -> int:
        """The number of dimensions that a sparse tensor has indices for; 0 of a dense one.

        Returns:
            An integer; 2 in the compressed layouts.

        Example:
            >>> mlc.eye(2).sparse_dim(), mlc.eye(2).to_sparse().sparse_dim(), mlc.eye(2).to_sparse(1).sparse_dim()
            (0, 2, 1)
        """
        return 0

    def dense_dim(self: Any) -> int:
        """The number of dimensions of each value of a sparse tensor; that of all dimensions of a dense one.

        Returns:
            An integer.

        Example:
            >>> mlc.eye(2).dense_dim(), mlc.eye(2).to_sparse().dense_dim(), mlc.eye(2).to_sparse(1).dense_dim()
            (2, 0, 1)
        """
        return len(self.shape)

    def stride(self: Any, dim: int | None = None) -> Any:
        """The distances in memory between neighbours along each dimension, in elements.

        Args:
            dim: The dimension whose distance is wanted; negative ones count from the last. None for all.

        Returns:
            A tuple of integers, or one integer.

        Raises:
            UserError: `dim` is out of range (MLC0356, an IndexError).

        Example:
            >>> mlc.zeros(2, 3).stride(), mlc.zeros(2, 3).T.stride(), mlc.zeros(2, 3).stride(0)
            ((3, 1), (1, 3), 3)
        """
        array = self.backing_array
        if isinstance(array, np.ndarray):
            found = tuple(n // array.itemsize for n in array.strides)
        else:                                              # in device memory rows follow each other
            found = tuple(int(np.prod(array.shape[i + 1:])) for i in range(array.ndim))
        return found if dim is None else found[axis(dim, self.ndim, scalar=False)]

    def storage_offset(self: Any) -> int:
        """Where the first element lies in the memory that the tensor shares, in elements: 0 unless it is a view.

        Returns:
            An integer; always 0 on a GPU, where views are copies, and in a recorded function.

        Example:
            >>> mlc.arange(4)[2:].storage_offset()
            2
        """
        array, storage = self.backing_array, self._storage
        if storage is None or storage.memory is None or not isinstance(array, np.ndarray):
            return 0
        return int(array.ctypes.data - storage.memory.ctypes.data) // array.itemsize

    def is_contiguous(self: Any, memory_format: Any = None) -> bool:
        """Whether the elements lie in memory one after the other, in row-major order or that of `mlc.channels_last`.

        Args:
            memory_format: `mlc.channels_last` asks of 4 dimensions whether that of channels, the second, varies
                fastest, and `mlc.channels_last_3d` of 5. Any other asks for row-major order.

        Returns:
            A bool; True for tensors of a GPU in row-major order.

        Raises:
            UserTypeError: `memory_format` is none (MLC0360).

        Example:
            >>> x = mlc.zeros(2, 3)
            >>> x.is_contiguous(), x.T.is_contiguous()
            (True, False)
        """
        check_memory_format(memory_format)
        if in_progress.recording is not None and memory_format in (None, contiguous_format):
            found = SYNTAX["lies_in_order"](self)
            if found is not None:
                return found  # type: ignore[no-any-return]
        array = self.backing_array
        if memory_format in (channels_last, channels_last_3d):
            if self.ndim != (4 if memory_format is channels_last else 5):
                return False
            if isinstance(array, np.ndarray):
                return bool(np.moveaxis(array, 1, -1).flags.c_contiguous)
            return bool(self.shape[1] == 1 or all(n == 1 for n in self.shape[2:]))
        return not isinstance(array, np.ndarray) or bool(array.flags.c_contiguous)

    def data_ptr(self: Any) -> int:
        """The address of the first element in memory.

        Returns:
            An integer; an address of the device, for a tensor on a GPU.

        Example:
            >>> x = mlc.zeros(4)
            >>> x[1:].data_ptr() - x.data_ptr()
            4
        """
        array = self.backing_array
        return int(array.ctypes.data if isinstance(array, np.ndarray) else array.address)

    def get_device(self: Any) -> int:
        """The number of the GPU that holds the elements; -1 for the CPU.

        Returns:
            An integer.

        Example:
            >>> mlc.zeros(2).get_device()
            -1
        """
        return -1 if self.device == CPU else int(self.device.partition(":")[2])

    @property
    def is_cpu(self: Any) -> bool:
        """Whether the elements are in the CPU's memory.

        Example:
            >>> mlc.zeros(2).is_cpu
            True
        """
        return bool(self.device == CPU)

    @property
    def is_cuda(self: Any) -> bool:
        """Whether the elements are on a GPU.

        Example:
            >>> mlc.zeros(2).is_cuda
            False
        """
        return bool(self.device != CPU)

    @property
    def is_xpu(self: Any) -> bool:
        """Whether the elements are on a GPU of Intel, which mlc generates no code for: always False.

        Example:
            >>> mlc.zeros(2).is_xpu
            False
        """
        return False

    @property
    def is_sparse(self: Any) -> bool:
        """Whether the layout is `mlc.sparse_coo`; False for the compressed layouts.

        Example:
            >>> mlc.eye(2).is_sparse, mlc.eye(2).to_sparse().is_sparse, mlc.eye(2).to_sparse_csr().is_sparse
            (False, True, False)
        """
        return False

    @property
    def is_sparse_csr(self: Any) -> bool:
        """Whether the layout is `mlc.sparse_csr`.

        Example:
            >>> mlc.eye(2).to_sparse_csr().is_sparse_csr
            True
        """
        return False

    def is_floating_point(self: Any) -> bool:
        """Whether the dtype is one of floats, of any width; False for complex numbers.

        Returns:
            A bool.

        Example:
            >>> mlc.zeros(2).is_floating_point(), mlc.tensor([1]).is_floating_point()
            (True, False)
        """
        return bool(self.dtype.is_floating_point)

    @property
    def itemsize(self: Any) -> int:
        """The number of bytes of an element.

        Example:
            >>> mlc.zeros(2).itemsize, mlc.tensor([1, 2]).itemsize, mlc.tensor([True]).itemsize
            (4, 8, 1)
        """
        return int(self.dtype.itemsize)

    def element_size(self: Any) -> int:
        """The number of bytes of an element, as `Tensor.itemsize`.

        Returns:
            An integer.

        Example:
            >>> mlc.zeros(2).element_size()
            4
        """
        return int(self.dtype.itemsize)

    @property
    def nbytes(self: Any) -> Any:
        """The number of bytes of all elements, x.numel() * x.itemsize; views count theirs, too.

        Example:
            >>> mlc.zeros(2, 3).nbytes
            24
        """
        return self.numel() * self.dtype.itemsize

    def is_signed(self: Any) -> bool:
        """Whether the dtype has negative numbers; False for bools.

        Returns:
            A bool.

        Example:
            >>> mlc.tensor([1]).is_signed(), mlc.zeros(1, dtype=mlc.uint8).is_signed()
            (True, False)
        """
        return bool(self.dtype.is_signed)

    def is_complex(self: Any) -> bool:
        """Whether the dtype is complex.

        Returns:
            A bool.

        Example:
            >>> mlc.tensor([1j]).is_complex(), mlc.zeros(1).is_complex()
            (True, False)
        """
        return bool(self.dtype.is_complex)

    def is_conj(self: Any) -> bool:
        """Whether the elements are stored as their complex conjugates: always False, since `mlc.conj` computes them.

        Returns:
            The bool False.

        Example:
            >>> mlc.tensor([1j]).conj().is_conj()
            False
        """
        return False

    def is_neg(self: Any) -> bool:
        """Whether the elements are stored with the opposite sign: always False, since `mlc.imag` of a conjugate has its
        own.

        Returns:
            The bool False.

        Example:
            >>> mlc.tensor([1j]).conj().imag.is_neg()
            False
        """
        return False

    def is_same_size(self: Any, other: Tensor) -> bool:
        """Whether another tensor has the same shape.

        Args:
            other: Tensor of any dtype.

        Returns:
            A bool.

        Example:
            >>> mlc.zeros(2, 3).is_same_size(mlc.ones(2, 3)), mlc.zeros(2, 3).is_same_size(mlc.ones(3))
            (True, False)
        """
        return tuple(self.shape) == tuple(other.shape)
