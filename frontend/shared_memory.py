"""Tensors whose memory several processes share.

The memory is an anonymous file (memfd_create) that is mapped: it has no name that could be left behind, and a process
that gets its descriptor maps it, too. A tensor that is pickled for another process is moved to such memory, and what
travels is the descriptor, with the place of the tensor in it. The storage of a tensor there is one that is `handed`
out: its elements may be written by others at any time, and are not replaced.
"""

from __future__ import annotations

import mmap
import os
import weakref
from typing import Any

import numpy as np

from mlc.frontend.arguments import coded
from mlc.frontend.autograd.differentiable import mark_parameter
from mlc.frontend.devices import CPU
from mlc.frontend.location import user_loc
from mlc.frontend.storage import Array, Storage, storage_of
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.ir.weak_references import WeakTable


class Segment(mmap.mmap):
    """Mapped memory of an anonymous file. The mapping keeps a descriptor of it, which it closes itself.

    identity  device and inode of the file
    storage   the storage that has it in this process, weakly
    """

    identity: tuple[int, int]
    storage: weakref.ref[Storage] | None

    @staticmethod
    def of(file: int) -> Segment:
        """The memory of a file, whose descriptor is closed; the one that this process has, if it has it already."""
        found = os.fstat(file)
        identity = found.st_dev, found.st_ino
        segment = _segments.get(identity)
        if segment is None:
            segment = Segment(file, found.st_size)
            segment.identity, segment.storage = identity, None
            _segments.put(identity, segment)
        os.close(file)
        return segment

    def descriptor(self) -> int:
        """The descriptor that the mapping keeps."""
        for name in os.listdir("/proc/self/fd"):
            try:
                found = os.fstat(int(name))
            except OSError:                                # that of the folder itself
                continue
            if (found.st_dev, found.st_ino) == self.identity:
                return int(name)
        raise AssertionError("the mapping has no descriptor")

    def array(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """All of the memory as an array, which keeps the segment alive."""
        return np.ndarray(shape, dtype, self)


_segments = WeakTable[tuple[int, int], Segment]()
"""The segments of this process by device and inode of their files."""


def segment_of(tensor: Tensor) -> Segment | None:
    """The shared memory of a tensor; None if it has memory of its own."""
    memory: Any = None if tensor._storage is None else tensor._storage.memory
    while isinstance(memory, np.ndarray | memoryview):
        memory = memory.base if isinstance(memory, np.ndarray) else memory.obj
    return memory if isinstance(memory, Segment) else None


def share_memory_(self: Tensor) -> Tensor:
    """Move the tensor, and all that share its memory, to memory that other processes can share.

    Writes to it then go to that memory: those of an optimizer, for example. `mlc.multiprocessing` passes such tensors
    to other processes without a copy.

    Returns:
        The tensor itself.

    Raises:
        UserError: The tensor is on a GPU (MLC0337).

    Example:
        >>> x = mlc.zeros(3).share_memory_()
        >>> x.is_shared(), x.add_(1).is_shared()
        (True, True)
    """
    if self.device != CPU:
        raise UserError(f"the tensor is on {self.device}, whose memory is not shared between processes",
                        code="MLC0337", loc=user_loc(), hint='x.to("cpu") can be shared')
    if segment_of(self) is not None:
        return self
    storage = storage_of(self)
    before = storage.memory
    assert before is not None
    file = os.memfd_create("mlc-tensor", os.MFD_CLOEXEC)
    os.truncate(file, max(before.nbytes, 1))
    segment = Segment.of(file)
    memory = segment.array(before.shape, before.dtype)
    np.copyto(memory, before)
    storage.move(memory)
    segment.storage = weakref.ref(storage)
    return self


def is_shared(self: Tensor) -> bool:
    """Whether the tensor's memory is one that other processes can share, as `share_memory_` makes it.

    Returns:
        Whether it is.

    Example:
        >>> mlc.zeros(3).is_shared()
        False
    """
    return segment_of(self) is not None


def _reduce(tensor: Tensor) -> Any:
    """The message from which another process makes the tensor."""
    if tensor.device != CPU:
        return tensor.__reduce__()
    if not tensor.is_leaf:
        raise UserError("the result of a recorded operation has a history, which no other process can share",
                        code="MLC0434", loc=user_loc(), hint="send x.detach()")
    from multiprocessing.reduction import DupFd  # which loads sockets
    segment = segment_of(share_memory_(tensor))
    storage, array = tensor._storage, tensor._array
    assert segment is not None and storage is not None and storage.memory is not None
    offset = array.__array_interface__["data"][0] - storage.memory.__array_interface__["data"][0] if array.size else 0
    place = storage.memory.shape, storage.memory.dtype, array.shape, array.dtype, offset, array.strides
    return _received, (DupFd(segment.descriptor()), place, tensor.requires_grad, tensor.frozen is not None)


def _received(descriptor: Any, place: tuple[Any, ...], requires_grad: bool, is_parameter: bool) -> Tensor:
    """The tensor that another process has sent."""
    whole, kind, shape, dtype, offset, strides = place
    segment = Segment.of(descriptor.detach())
    storage = segment.storage() if segment.storage is not None else None
    if storage is None:
        storage = Storage(segment.array(whole, kind), True, True)
        segment.storage = weakref.ref(storage)
    array: Array = np.ndarray(shape, dtype, segment, offset, strides)
    array.flags.writeable = False
    tensor = Tensor(array)
    tensor._array = array
    storage.add(tensor)
    if is_parameter:
        return mark_parameter(tensor, requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor


def register() -> None:
    """Have tensors that are sent to other processes be shared with them."""
    from multiprocessing.reduction import ForkingPickler
    ForkingPickler.register(Tensor, _reduce)


for method in (share_memory_, is_shared):
    setattr(Tensor, method.__name__, coded(method))
