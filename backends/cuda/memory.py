"""Caching allocator of a device, and device arrays.

Allocating memory from the driver, and even more freeing it, synchronises the device. So blocks have size classes, and a
freed block is reused by the next request of its class on the same stream. A stream executes work in order, so reuse
needs no synchronisation.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from sys import getrefcount
from typing import Any, Protocol

import numpy as np

from mlc.backends.cuda import dlpack
from mlc.backends.cuda.device import Device
from mlc.backends.cuda.failures import Failures
from mlc.ir.diag import BackendError, UserTypeError
from mlc.ir.weak_references import FinalizationQueue, WeakList

Array = np.ndarray[Any, Any]
_OURS = 2
"""References to an object in one variable, as `getrefcount` counts them."""
SMALLEST, STEPS = 512, 8
"""Minimum size of a block, and number of size classes per power of two."""
SPARE_BYTES, ALL_SPARE_BYTES = 8 << 20, 128 << 20
"""Maximum bytes of an array that is kept for the next calls, and of all that are kept on a device: it takes longer to
compute larger ones than to make them."""


def size_class(size: int) -> int:
    """The block size for a request of `size` bytes: at most an eighth more, above the minimum."""
    if size <= SMALLEST:
        return SMALLEST
    step = max(SMALLEST, (1 << (size - 1).bit_length()) // 2 // STEPS)
    return -(-size // step) * step


@dataclass(slots=True)
class Block:
    """Memory from the driver. `shared`: another library may still be using it when it is freed."""

    address: int
    size: int
    stream: int
    shared: bool = False


@dataclass(slots=True)
class Statistics:
    """Bytes in use and reserved, the peak of bytes in use, and the numbers of requests, here and to the driver."""

    used: int = 0
    held: int = 0
    peak: int = 0
    requests: int = 0
    allocations: int = 0


class Kept(Protocol):
    """Arrays that are kept for later calls, and take memory that is not in use."""

    bytes: int

    def drop(self) -> None:
        """Keep none of them any longer."""


@dataclass(slots=True)
class Allocator:
    """The memory of one device. `spares` go before it is counted, and where it does not suffice."""

    device: Device
    statistics: Statistics = field(default_factory=Statistics)
    _free: dict[tuple[int, int], list[Block]] = field(default_factory=dict)          # by stream and size
    _returned: deque[Block] = field(default_factory=deque)
    _finalized: FinalizationQueue[Block] = field(default_factory=FinalizationQueue)
    _lock: Any = field(default_factory=threading.RLock)
    spares: WeakList[Kept] = field(default_factory=WeakList)

    def allocate(self, size: int, stream: int | None = None) -> Block:
        """Allocate `size` bytes; BackendError if memory does not suffice, even after releasing all cached blocks."""
        return self.block(size_class(size), self.device.stream if stream is None else stream)

    def block(self, size: int, stream: int) -> Block:
        """The same for a size that is a size class."""
        with self._lock:
            if self._returned or self._finalized:
                self._take_back()
            kept = self._free.get((stream, size))
            block = kept.pop() if kept else self._new(size, stream)
            known = self.statistics
            known.requests += 1
            known.used = used = known.used + size
            if used > known.peak:
                known.peak = used
            return block

    def storage(self, size: int, stream: int) -> Storage:
        """A block that is freed once this is unreferenced."""
        block, out = self.block(size, stream), object.__new__(Storage)
        out.address, out.block, out.writable = block.address, block, True
        self._finalized.register(out, block)
        return out

    def give_back(self, block: Block) -> None:
        """Free a block: later work of its stream does not use it."""
        self._returned.append(block)

    def _take_back(self) -> None:
        returned, free, shared = self._returned, self._free, False
        if self._finalized:
            returned.extend(self._finalized.drain())
        while returned:
            block = returned.popleft()
            if block.shared:
                shared, block.shared = True, False
            self.statistics.used -= block.size
            key = block.stream, block.size
            if key in free:
                free[key].append(block)
            else:
                free[key] = [block]
        if shared:
            self.device.activate()
            self.device.synchronize(everything=True)

    def _drop_spares(self) -> None:
        for spares in self.spares.values():
            spares.drop()

    def _new(self, size: int, stream: int) -> Block:
        self.device.activate()
        address = self.device.allocate(size)
        if address is None:
            self._drop_spares()
            self._take_back()
            self._release()
            address = self.device.allocate(size)
        if address is None:
            free, total = self.device.memory_info()
            raise BackendError(f"{self.device.name} has no {size} bytes left: of {total}, {free} are free, and mlc "
                               f"holds {self.statistics.held}", code="MLC0585",
                               hint="use smaller batches, drop tensors that are done with (del x), or donate arguments")
        self.statistics.held += size
        self.statistics.allocations += 1
        return Block(address, size, stream)

    def release(self) -> None:
        """Return all cached blocks to the driver."""
        with self._lock:
            self._drop_spares()
            self._take_back()
            self._release()

    def _release(self) -> None:
        self.device.activate()
        self.device.synchronize()
        for blocks in self._free.values():
            for block in blocks:
                self.statistics.held -= block.size
                self.device.free(block.address)
        self._free.clear()

    def in_use(self) -> int:
        """Bytes that are in use now."""
        with self._lock:
            self._drop_spares()
            self._take_back()
            return self.statistics.used


# -- arrays -----------------------------------------------------------------------------------------------------------
class Storage:
    """Owner of device memory; `block` is None if another library allocated it.

    writable  whether a call may write its result there; another library may share memory read-only
    """

    __slots__ = ("__weakref__", "address", "block", "writable")

    def __init__(self, address: int, block: Block | None = None) -> None:
        self.address, self.block = address, block
        self.writable = True


class DeviceArray:
    """A device array, contiguous in row-major order; it can be shared by DLPack."""

    __slots__ = ("address", "dtype", "memory", "shape", "size", "storage")

    def __init__(self, memory: DeviceMemory, storage: Storage, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.memory, self.storage, self.shape, self.dtype = memory, storage, shape, dtype
        self.address = storage.address
        self.size = math.prod(shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> str:
        """Name of the device, such as cuda:0."""
        return f"cuda:{self.memory.device.ordinal}"

    def numpy(self) -> Array:
        """A copy in host memory, once the array has been computed."""
        out = np.empty(self.shape, self.dtype)
        if out.size:
            self.memory.device.activate()
            self.memory.device.download(out, self.address)
            if self.memory.failures.pending:
                self.memory.failures.check()
        return out

    def first(self, shape: tuple[int, ...]) -> DeviceArray:
        """The leading elements along each axis; a prefix of rows shares this memory."""
        if shape[1:] == self.shape[1:]:
            return DeviceArray(self.memory, self.storage, shape, self.dtype)
        return self.memory.array(np.ascontiguousarray(self.numpy()[tuple(map(slice, shape))]))

    def reshaped(self, shape: tuple[int, ...]) -> DeviceArray:
        """The same elements in another shape, in the same memory."""
        return DeviceArray(self.memory, self.storage, shape, self.dtype)

    def copy(self) -> DeviceArray:
        """A copy in new memory."""
        out = self.memory.empty(self.shape, self.dtype)
        self.memory.device.activate()
        self.memory.device.copy(out.address, self.address, self.nbytes)
        return out

    def placed_like(self, other: Any) -> DeviceArray:
        """The array itself: a device has one memory."""
        return self

    def __deepcopy__(self, memo: Any) -> DeviceArray:
        return self.copy()

    def __reduce__(self) -> Any:
        raise UserTypeError(f"an array on {self.device} cannot be pickled", code="MLC0346", hint="copy it: x.cpu()")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.memory.device.ordinal                # kDLCUDA

    def __dlpack__(self, **keywords: Any) -> Any:
        """An unversioned DLPack capsule, whatever `max_version` is; the other keywords as in the standard."""
        keywords.pop("max_version", None)
        return dlpack.export(self, **keywords)


class ArrayType:
    """Shape and dtype of arrays that a call makes again and again.

    size   the number of elements
    block  the size of the memory of an array; 0 if it has no elements
    """

    __slots__ = ("block", "dtype", "shape", "size")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype, self.size = shape, dtype, math.prod(shape)
        self.block = size_class(self.size * dtype.itemsize) if self.size else 0


class Spares:
    """The results of the last two calls of a function. The earlier ones serve the next call, unless somebody else holds
    them: so a loop of calls allocates nothing.

    They count as in use until somebody asks how much that is, so also in the peak. The lists belong to no thread: an
    array that two threads find at once has a reference more than one that is free.

    bytes   that they take at most; none are kept where there would be too many on the device
    spare   the results of the call before the last one; None for those that were taken
    last    those of the last one
    arenas  scratch memory of calls that are over
    """

    __slots__ = ("__weakref__", "arenas", "bytes", "last", "spare")

    def __init__(self, memory: DeviceMemory, types: Sequence[ArrayType], arena: int) -> None:
        others, sizes = memory.allocator.spares, [t.block for t in types]
        self.bytes = 2 * sum(sizes) + arena
        if max((*sizes, arena), default=0) > SPARE_BYTES or (
                self.bytes + sum(s.bytes for s in others.values()) > ALL_SPARE_BYTES):
            self.bytes = 0
        self.arenas: list[Storage] = []
        self.spare: list[DeviceArray | None] = [None] * len(types)
        self.last = self.spare.copy()
        if self.bytes:
            others.add(self)

    def drop(self) -> None:
        """Keep none of them any longer."""
        self.spare, self.last = [None] * len(self.last), [None] * len(self.last)
        self.arenas.clear()


def is_spare(array: DeviceArray) -> bool:
    """Whether nobody holds an array but the caller's caller, in one variable, so that its memory may be written to."""
    storage = array.storage
    return getrefcount(array) == _OURS + 1 and getrefcount(storage) == _OURS + 1 and (
        storage.block is not None and not storage.block.shared)


class DeviceMemory:
    """The memory of one device; creates arrays in it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.allocator = Allocator(device)
        self.failures = Failures(device)

    def storage(self, size: int) -> Storage:
        """New memory of at least `size` bytes; a null address for 0."""
        if not size:
            return Storage(0)
        return self.allocator.storage(size_class(size), self.device.stream)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        """An uninitialised array."""
        size = dtype.itemsize
        for n in shape:
            size *= n
        return DeviceArray(self, self.storage(size), shape, dtype)

    def new(self, type: ArrayType) -> DeviceArray:
        """An uninitialised array."""
        if not type.block:
            return DeviceArray(self, Storage(0), type.shape, type.dtype)
        out = object.__new__(DeviceArray)
        out.storage = storage = self.allocator.storage(type.block, self.device.stream)
        out.memory, out.shape, out.dtype, out.size = self, type.shape, type.dtype, type.size
        out.address = storage.address
        return out

    def array(self, source: Array) -> DeviceArray:
        """A copy of a host array."""
        self.device.activate()
        native = source.dtype if source.dtype.isnative else source.dtype.newbyteorder("=")
        out = self.empty(source.shape, native)
        if out.size:
            self.device.upload(out.address, np.ascontiguousarray(source, native))
        return out
