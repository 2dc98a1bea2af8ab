"""Memory that a worker and the main process share, through which large arrays of a batch are passed.

It is an anonymous file in memory (memfd_create), not a named segment of `multiprocessing.shared_memory`: having no
name, it cannot be left behind, however the processes end, and its size is not limited by /dev/shm, which in containers
is 64 MB by default. It is written and read by system calls instead of being mapped. A tensor needs memory of its own
anyway, which reading fills, since the file is used again; and where there is no memory left, a write fails with an
error, while an access to mapped memory would kill the process.
"""

from __future__ import annotations

import io
import os
from collections import ChainMap
from dataclasses import dataclass
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from mlc.frontend.tensor import Tensor

SMALL = 4096
"""Arrays of fewer bytes travel within the message, which takes less time than two system calls."""


@dataclass(frozen=True)
class Packed:
    """An object that is passed to the other process, without its large arrays; `sizes` are their bytes."""

    message: bytes
    sizes: list[int]


class SharedMemory:
    """Anonymous file that holds the large arrays of one object at a time."""

    def __init__(self) -> None:
        self._file = os.memfd_create("mlc-data", os.MFD_CLOEXEC)

    def close(self) -> None:
        """Close this process's descriptor; the memory is freed with the last one."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __getstate__(self) -> Any:
        return reduction.DupFd(self._file)                 # what spawn and forkserver pass to the child

    def __setstate__(self, state: Any) -> None:
        self._file = state.detach()

    def pack(self, x: Any) -> Packed:
        """Write the large arrays of an object to the file."""
        large, message = list[memoryview](), io.BytesIO()

        def within_message(buffer: Any) -> bool:
            view = buffer.raw()
            if view.nbytes < SMALL:
                return True
            large.append(view)
            return False

        pickler: Any = ForkingPickler(message, 5, True, within_message)
        pickler.dispatch_table = ChainMap({Tensor: Tensor.__reduce__}, pickler.dispatch_table)     # as copies
        pickler.dump(x)
        offset = 0
        for view in large:
            done = 0
            while done < view.nbytes:                      # the system writes 2 GB at a time
                done += os.pwrite(self._file, view[done:], offset + done)
            offset += view.nbytes
        return Packed(message.getvalue(), [view.nbytes for view in large])

    def unpack(self, packed: Packed) -> Any:
        """The object, with copies of its arrays."""
        buffers, offset = list[Any](), 0
        for size in packed.sizes:
            array, done = np.empty(size, np.uint8), 0      # which, unlike a bytearray, is not filled with zeros first
            while done < size:
                done += os.preadv(self._file, [array[done:].data], offset + done)
            buffers.append(array)
            offset += size
        return ForkingPickler.loads(packed.message, buffers=buffers)
