"""Calls of native code in memory that detects accesses out of bounds: writes by red zones, any access by guard pages.

A buffer lies between red zones, whose byte pattern is checked after the call, or with one end at a guard page.
Arguments have only the alignment of an element, as compiled code may require no more.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlc.backends.executable import Entry
from mlc.ir import abi
from mlc.ir.abi import Context
from mlc.ir.diag import BackendError

Array = np.ndarray[Any, Any]
PATTERN, ZONE = 0xA5, 256
"""The byte that fills the red zones around a buffer, and the size of each zone in bytes."""


class Memory:
    """Buffers between red zones, which are filled with a pattern."""

    def __init__(self) -> None:
        self.zones: list[tuple[str, Array, int, int]] = []     # whose; all bytes, of which those from, to are its own

    def bytes(self, name: str, size: int, alignment: int) -> Array:
        """A buffer whose address is a multiple of `alignment`, and of no higher power of two."""
        storage = np.full(size + 2 * ZONE + 2 * alignment, PATTERN, np.uint8)
        start = ZONE + -(_address(storage) + ZONE) % (2 * alignment) + alignment
        return self.own(name, storage, start, size)

    def own(self, name: str, storage: Array, start: int, size: int) -> Array:
        self.zones.append((name, storage, start, start + size))
        return storage[start: start + size]

    def array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array in a buffer of its own, with the alignment of an element."""
        data = self.bytes(name, math.prod(shape) * dtype.itemsize, dtype.itemsize)
        return data.view(dtype).reshape(shape)

    def damage(self) -> str | None:
        """Message about the first red zone that was written to."""
        for name, storage, start, end in self.zones:
            before, behind = np.flatnonzero(storage[:start] != PATTERN), np.flatnonzero(storage[end:] != PATTERN)
            if before.size:
                return f"byte {int(before[0]) - start} before {name} is written to"
            if behind.size:
                return f"byte {int(behind[0])} behind {name} is written to"
        return None


class Pages(Memory):
    """Buffers that end, or begin, at a guard page, where any access ends the process."""

    def __init__(self, at_end: bool) -> None:
        super().__init__()
        self.at_end = at_end
        self.maps: list[mmap.mmap] = []

    def bytes(self, name: str, size: int, alignment: int) -> Array:
        page = mmap.PAGESIZE
        middle = max(page, (size + alignment + page - 1) // page * page)
        memory = mmap.mmap(-1, middle + 2 * page)
        self.maps.append(memory)
        everything = np.frombuffer(memory, np.uint8)
        for at in (0, page + middle):
            if ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(_address(everything) + at),
                                                          ctypes.c_size_t(page), 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        storage = everything[page: page + middle]
        storage[:] = PATTERN
        return self.own(name, storage, (middle - size) // alignment * alignment if self.at_end else 0, size)


class FencedEntry(Entry):
    """A compiled function whose whole memory lies between red zones, for one call; `damage` reports writes to them."""

    def __init__(self, entry: Entry, memory: Memory) -> None:
        super().__init__(entry.library, entry.interface)
        self.memory = memory
        self.damage: str | None = None

    def call(self, arrays: Sequence[Any], sizes: Mapping[str, int] | None = None) -> list[Array]:
        """As `Entry.call`, on copies of the arrays."""
        self._check_count(arrays)
        given = [self._array(i, array) for i, array in enumerate(arrays)]
        env = self._bind(given, sizes or {})
        interface = self.interface
        inputs = [self._copy(interface.argument(i), array) for i, array in enumerate(given)]
        results = [inputs[a] if a >= 0 else self._fresh(f"result {k}", shape, dtype) for k, (a, shape, (_, dtype, _))
                   in enumerate(zip(interface.aliases, self._result_shapes(env), self._results))]
        fresh = [r for a, r in zip(interface.aliases, results) if a < 0]
        addresses = iter([_address(r) for r in fresh])
        status, record = self._run(
            [_address(x) for x in inputs], [env[name] for name in interface.symbols],
            [_address(inputs[a]) if a >= 0 else next(addresses) for a in interface.aliases])
        self.damage = self.memory.damage() or next(
            (f"{interface.argument(i)} is written to" for i, (x, own) in enumerate(zip(given, inputs))
             if i not in self._donated and x.tobytes() != own.tobytes()), None)
        if status == abi.ERROR_RECORDED:
            raise self.error(record)
        if status != abi.OK:
            raise BackendError(f"{interface.name} returned status {status}", code="MLC0563")
        return [r.copy() for r in results]

    def _copy(self, name: str, array: Array) -> Array:
        own = self.memory.array(name, array.shape, array.dtype)
        own[...] = array
        return own

    def _fresh(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Memory for a result, with the alignment of an element, filled with a pattern to detect unwritten elements."""
        own = self.memory.array(name, shape, dtype)
        own.reshape(-1).view(np.uint8)[:] = 0xFF
        return own

    def _run(self, inputs: Sequence[int], numbers: Sequence[int], results: Sequence[int]) -> tuple[int, int]:
        """The status of the call and its error record; the arena has exactly the size that the code requests."""
        context = Context()
        arguments = ((ctypes.c_void_p * len(inputs))(*inputs), (ctypes.c_int64 * len(numbers))(*numbers),
                     (ctypes.c_void_p * len(results))(*results))
        status = self._function(ctypes.addressof(context), *arguments)
        if status == abi.ARENA_TOO_SMALL:
            arena = self.memory.bytes("the arena", context.needed, abi.ARENA_ALIGN)
            arena[:] = 0xFF
            context.arena, context.capacity = _address(arena), context.needed
            status = self._function(ctypes.addressof(context), *arguments)
        return status, context.record


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
