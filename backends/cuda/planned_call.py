"""Calls of a GPU program that differ from an earlier one by addresses alone.

What a call needs besides these follows from the shapes of its arguments, and was found out by that call: the launch
plan, the size of the arena, the shapes of the results. So nothing is left but to take memory, and to launch.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.backends.cuda.device import Fill
from mlc.backends.cuda.failures import RECORD
from mlc.backends.cuda.launch_plan import LaunchPlan
from mlc.backends.cuda.memory import Array, ArrayType, DeviceArray, DeviceMemory, Spares, Storage, is_spare, size_class

if TYPE_CHECKING:
    from mlc.backends.cuda.executable import Entry


class Uploads:
    """Copies of host arrays that are arguments of calls. Those of numbers are kept, since a setting such as a learning
    rate is the same in most calls.

    donated  the numbers of the arguments that a call writes to
    """

    __slots__ = ("__weakref__", "_donated", "_kept", "_known_as_spare", "_memory", "bytes")

    def __init__(self, memory: DeviceMemory, donated: Sequence[int]) -> None:
        self._memory, self._donated = memory, donated
        self._kept: dict[int, tuple[bytes, DeviceArray]] = {}
        self.bytes, self._known_as_spare = 0, False

    def copy(self, number: int, array: Array) -> DeviceArray:
        """Argument `number` on the device."""
        if array.ndim or number in self._donated:
            return self._memory.array(array)
        content, known = array.tobytes(), self._kept.get(number)
        if known is None or known[0] != content:
            if not self._known_as_spare:
                self._known_as_spare = True
                self._memory.allocator.spares.add(self)
            known = self._kept[number] = content, self._memory.array(array)
        return known[1]

    def drop(self) -> None:
        """Keep none of them any longer."""
        self._kept = {}


class PlannedCall:
    """The calls of an entry on arrays of known shapes; what is launched depends on no other data.

    dtypes   of the arguments
    donated  whether results take over memory of arguments
    """

    def __init__(self, entry: Entry, plan: LaunchPlan, inputs: Sequence[DeviceArray], results: Sequence[DeviceArray],
                 arena: int) -> None:
        self.entry, self.memory = entry, entry.memory
        self.dtypes = [x.dtype for x in inputs]
        self.donated = bool(entry.interface.donated)
        self._program, self._run = entry.program, plan.run
        self._results = [(ArrayType(x.shape, x.dtype), alias) for x, alias in zip(results, entry.interface.aliases)]
        reuses = any(alias >= 0 for _, alias in self._results)
        self._arena = size_class(arena) if arena else 0
        spares = None if reuses else Spares(self.memory, [type for type, _ in self._results], self._arena)
        self._spares = spares if spares is not None and spares.bytes else None
        self._uploads = Uploads(self.memory, entry.interface.donated)
        self._record = self.memory.storage(RECORD) if entry.interface.error_sites else None
        self._one_at_a_time = threading.Lock()
        if self._record is not None:
            self._fill_words = np.array([self._record.address], np.uint64)
            self._clear = self.memory.device.prepare(
                Fill(0xFF, 1, RECORD, int(self._fill_words.__array_interface__["data"][0])))
        # After the addresses of arguments and results come those of the arena and the error record, if there are any.
        record = 0 if self._record is None else self._record.address
        self._rest = (*((record,) if arena else (0, record)), *entry.program.constants.values())

    def takes(self, arrays: Sequence[Any]) -> bool:
        """Whether arrays that have the shapes are arguments of these calls."""
        memory = self.memory
        for x, dtype in zip(arrays, self.dtypes):
            if (x.dtype is not dtype and x.dtype != dtype) or (type(x) is DeviceArray and x.memory is not memory):
                return False
        return not self.entry.poison

    def run(self, arrays: Sequence[DeviceArray | Array]) -> list[DeviceArray]:
        """The results for these arguments."""
        inputs = [x if isinstance(x, DeviceArray) else self._uploads.copy(i, x) for i, x in enumerate(arrays)]
        addresses = [x.address for x in inputs]
        if self.donated:
            self.entry.check_writable(inputs)
            self.entry.check_overlap(inputs, addresses)
        return self.launch(addresses, inputs)

    def launch(self, addresses: list[int], arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
        """The same for arguments at these addresses, which have been checked; `arrays` has at least all that are
        donated. The list of addresses is used up."""
        memory = self.memory
        memory.device.activate()
        if self._record is None:
            return self._launch(addresses, arrays)
        with self._one_at_a_time:                          # calls share the record: it is read before it is cleared
            memory.failures.make_room()
            self._clear()
            results = self._launch(addresses, arrays)
            memory.failures.watch(self.entry.error, self._record.address)
        return results

    def _launch(self, addresses: list[int], arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
        memory, spares = self.memory, self._spares
        results: list[Any] = []
        if spares is None:
            for type, alias in self._results:
                if alias < 0:
                    results.append(made := memory.new(type))
                    addresses.append(made.address)
                else:
                    results.append(DeviceArray(memory, arrays[alias].storage, type.shape, type.dtype))
        else:
            spare, number = spares.spare, 0
            for type, _ in self._results:
                found, spare[number] = spare[number], None
                if found is None or not is_spare(found):
                    found = memory.new(type)
                results.append(found)
                addresses.append(found.address)
                number += 1
        if self._arena:
            arena = self._take_arena()
            try:
                self._run((*addresses, arena.address, *self._rest), self._program.graphs)
            finally:
                if spares is not None:
                    spares.arenas.append(arena)
        else:
            self._run((*addresses, *self._rest), self._program.graphs)
        if spares is not None:
            spares.spare, spares.last = spares.last, results.copy()    # as the caller still has only the list
        self.entry.calls += 1
        return results

    def _take_arena(self) -> Storage:
        """Scratch memory for one call; that of another one, if that is over."""
        if self._spares is not None:
            try:
                return self._spares.arenas.pop()
            except IndexError:                             # none is over, or memory was wanted for other things
                pass
        return self.memory.allocator.storage(self._arena, self.memory.device.stream)
