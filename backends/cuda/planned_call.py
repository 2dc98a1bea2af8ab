"""Calls of a GPU program that differ from an earlier one by addresses alone.

What a call needs besides these follows from the shapes of its arguments, and was found out by that call: the launch
plan, the size of the arena, the shapes of the results. So nothing is left but to take memory, and to launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlc.backends.cuda.launch_plan import LaunchPlan
from mlc.backends.cuda.memory import ArrayType, DeviceArray, size_class

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
        self._aliases = entry.interface.aliases
        self._results = [ArrayType(x.shape, x.dtype) for x in results]
        self._reuses = any(a >= 0 for a in self._aliases)
        self._arena = size_class(arena) if arena else 0
        self._constants = [*entry.program.constants.values()]

    def takes(self, arrays: Sequence[Any]) -> bool:
        """Whether arrays of the device that have the shapes are arguments, too."""
        memory = self.memory
        for x, dtype in zip(arrays, self.dtypes):
            if x.memory is not memory or (x.dtype is not dtype and x.dtype != dtype):
                return False
        return not self.entry.poison

    def run(self, arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
        """The results for these arguments."""
        if self.donated:
            self.entry.check_writable(arrays)
            self.entry._check_overlap(arrays, [x.address for x in arrays])
        memory = self.memory
        memory.device.activate()
        if self._reuses:
            results = [memory.new(type) if a < 0 else DeviceArray(memory, arrays[a].storage, type.shape, type.dtype)
                       for type, a in zip(self._results, self._aliases)]
            buffers = [x.address for x in arrays] + [r.address for r, a in zip(results, self._aliases) if a < 0]
        else:
            results = [memory.new(type) for type in self._results]
            buffers = [x.address for x in arrays] + [r.address for r in results]
        program = self.entry.program
        if not self._arena:
            self.plan.run([*buffers, 0, 0, *self._constants], program.graphs)
        else:
            # After the results: so the memory that this call frees first is what the next takes last, and its arena
            # lies where this one does.
            arena = memory.allocator.block(self._arena, memory.device.stream)
            try:
                self.plan.run([*buffers, arena.address, 0, *self._constants], program.graphs)
            finally:
                memory.allocator.give_back(arena)
        self.entry.calls += 1
        return results
