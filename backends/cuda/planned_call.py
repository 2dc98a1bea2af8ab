"""Calls of a GPU program that differ from an earlier one by addresses alone.

What a call needs besides these follows from the shapes of its arguments, and was found out by that call: the launch
plan, the size of the arena, the shapes of the results. So nothing is left but to take memory, and to launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlc.backends.cuda.launch_plan import LaunchPlan
from mlc.backends.cuda.memory import ArrayType, DeviceArray, Spares, size_class

if TYPE_CHECKING:
    from mlc.backends.cuda.executable import Entry


class PlannedCall:
    """The calls of an entry on arrays of its device with known shapes; it cannot fail, and depends on no other data.

    dtypes   of the arguments
    donated  whether results take over memory of arguments
    """

    def __init__(self, entry: Entry, plan: LaunchPlan, inputs: Sequence[DeviceArray], results: Sequence[DeviceArray],
                 arena: int) -> None:
        self.entry, self.memory, self.plan = entry, entry.memory, plan
        self.dtypes = [x.dtype for x in inputs]
        self.donated = bool(entry.interface.donated)
        self._program = entry.program
        types = [ArrayType(x.shape, x.dtype) for x in results]
        self._results = [*zip(range(len(types)), types, entry.interface.aliases)]
        fresh = [type for _, type, alias in self._results if alias < 0]
        spares = Spares(self.memory, types) if fresh else None
        self._spares = spares if spares is not None and spares.bytes else None
        self._arena = size_class(arena) if arena else 0
        # After the addresses of arguments and results come those of the arena and the error record, if there are any.
        self._rest = (*((0,) if arena else (0, 0)), *entry.program.constants.values())

    def takes(self, arrays: Sequence[Any]) -> bool:
        """Whether arrays that have the shapes are arguments of these calls."""
        memory = self.memory
        for x, dtype in zip(arrays, self.dtypes):
            if type(x) is not DeviceArray or x.memory is not memory or (x.dtype is not dtype and x.dtype != dtype):
                return False
        return not self.entry.poison

    def run(self, arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
        """The results for these arguments."""
        addresses = [x.address for x in arrays]
        if self.donated:
            self.entry.check_writable(arrays)
            self.entry._check_overlap(arrays, addresses)
        return self.launch(addresses, arrays)

    def launch(self, addresses: list[int], arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
        """The same for arguments at these addresses, which have been checked; `arrays` has at least all that are
        donated."""
        memory, spares = self.memory, self._spares
        memory.device.activate()
        results: list[DeviceArray] = []
        buffers = addresses
        for number, type, alias in self._results:
            if alias < 0:
                made = spares.take(number) if spares is not None else None
                if made is None:
                    made = memory.new(type)
                buffers.append(made.address)
            else:
                made = DeviceArray(memory, arrays[alias].storage, type.shape, type.dtype)
            results.append(made)
        if self._arena:
            # After the results: so the memory that this call frees first is what the next takes last, and its arena
            # lies where this one does.
            arena = memory.allocator.block(self._arena, memory.device.stream)
            try:
                self.plan.run((*buffers, arena.address, *self._rest), self._program.graphs)
            finally:
                memory.allocator.give_back(arena)
        else:
            self.plan.run((*buffers, *self._rest), self._program.graphs)
        if spares is not None:
            for number, _, alias in self._results:
                if alias < 0:
                    spares.keep(number, results[number])
        self.entry.calls += 1
        return results
