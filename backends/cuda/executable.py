"""Callable GPU programs: the contract of backends/executable.py, on device arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mlc.backends.argument_checks import MAX_BYTES, ArgumentChecks
from mlc.backends.cuda.device import Device, Fill
from mlc.backends.cuda.devices import check_runs, device
from mlc.backends.cuda.failures import NO_ERROR, RECORD
from mlc.backends.cuda.image import DeviceImage
from mlc.backends.cuda.memory import DeviceArray, DeviceMemory, Storage
from mlc.backends.cuda.planned_call import PlannedCall
from mlc.backends.cuda.program import MOST_PLANS, Program
from mlc.ir.abi import Interface
from mlc.ir.diag import UserError, UserMemoryError, UserTypeError

Array = np.ndarray[Any, Any]
_ARRAYS = frozenset({DeviceArray, np.ndarray})

_memories: dict[Device, DeviceMemory] = {}
_placing = threading.Lock()


def device_memory(ordinal: int = 0) -> DeviceMemory:
    """The memory of a device."""
    found = device(ordinal)
    with _placing:
        if (memory := _memories.get(found)) is None:
            memory = _memories[found] = DeviceMemory(found)
        return memory


class Executable:
    """A program loaded on one device; `graphs` as in `Program`."""

    def __init__(self, image: DeviceImage, memory: DeviceMemory, graphs: bool = False) -> None:
        check_runs(image.target, memory.device)
        self.linked, self.memory, self.target = image, memory, image.target
        memory.device.activate()
        library = memory.device.load(image.code) if image.code else None
        kernels: dict[str, Any] = {}

        def kernel(name: str) -> Any:
            if name not in kernels:
                kernels[name] = memory.device.kernel(library, name)
            return kernels[name]

        self._data = {name: memory.array(a) for name, a in image.data.items()}
        self.program = Program(memory.device, image.program(), kernel,
                               {name: a.address for name, a in self._data.items()}, memory.storage)
        self.program.graphs = graphs
        self.entries = {name: Entry(self, interface) for name, interface in image.interfaces.items()}

    def at(self, interface: Callable[[Interface], Interface]) -> Executable:
        """The same program under mapped interfaces: other names and locations."""
        changed = self.linked.at(interface)
        if changed is self.linked:
            return self
        out = object.__new__(Executable)
        out.__dict__.update(self.__dict__)
        out.linked = changed
        out.entries = {name: Entry(out, new) for name, new in changed.interfaces.items()}
        return out

    def entry(self, name: str) -> Entry:
        if name not in self.entries:
            raise UserError(f"the module has no function @{name}", code="MLC0320",
                            hint="it has " + ", ".join(f"@{n}" for n in self.entries))
        return self.entries[name]

    @property
    def calls(self) -> int:
        """The number of calls of functions of this program."""
        return sum(entry.calls for entry in self.entries.values())


class Entry(ArgumentChecks):
    """One function. Any number of threads may call it at once.

    Host arrays are copied to the device, device arrays are used in place; results are device arrays. A call returns
    before they are computed. Errors that are found on the device are raised by the first call with arguments of some
    shapes, and for later ones by whoever waits for the device (failures.py).

    poison   whether memory that the call writes is filled with 1 bits first, to detect elements it does not write
    planned  by the shapes of the arguments: calls of which only the addresses differ from an earlier one
    """

    def __init__(self, executable: Executable, interface: Interface) -> None:
        super().__init__(interface)
        self.executable, self.memory = executable, executable.memory
        self.program = executable.program
        self.calls = 0
        self.poison = False
        self.planned: dict[tuple[Any, ...], PlannedCall] = {}

    @property
    def scratch_bytes(self) -> int:
        """The bytes of scratch memory of a call, if they do not depend on sizes."""
        return self.program.arena_bytes(self.interface.name, [])

    def call(self, arrays: Sequence[Any], sizes: Mapping[str, int] | None = None) -> list[DeviceArray]:
        """Call the function on `arrays`; `sizes` binds symbols that no argument binds."""
        interface, memory = self.interface, self.memory
        key = tuple([x.shape if type(x) in _ARRAYS else None for x in arrays])
        planned = self.planned.get(key)
        if planned is not None and not sizes and planned.takes(arrays):
            return planned.run(arrays)
        self._check_count(arrays)
        for i, array in enumerate(arrays):
            self._check_argument(i, array)
        env = self._bind(arrays, sizes or {})
        shapes = self._result_shapes(env)
        memory.device.activate()
        inputs = [x if isinstance(x, DeviceArray) else memory.array(x) for x in arrays]
        if self._donated:
            self.check_writable(inputs)
            self.check_overlap(inputs, [x.address for x in inputs])
        results = [self._result(inputs, a, shape, dtype)
                   for a, shape, (_, dtype, _) in zip(interface.aliases, shapes, self._results)]
        numbers = [env[name] for name in interface.symbols]
        self._enter(numbers, inputs, [r for r, a in zip(results, interface.aliases) if a < 0])
        if planned is None and None not in key and not sizes and not self.poison:
            self._plan(key, inputs, results, numbers)
        return results

    def _plan(self, key: tuple[Any, ...], inputs: Sequence[DeviceArray], results: Sequence[DeviceArray],
              numbers: Sequence[int]) -> None:
        """Have the next call with arguments of these shapes look at nothing that depends on them alone."""
        plan = self.program.plan(self.interface.name, numbers)
        if plan is None:
            return
        if len(self.planned) >= MOST_PLANS:
            self.planned.clear()
        self.planned[key] = PlannedCall(
            self, plan, inputs, results, self.program.arena_bytes(self.interface.name, numbers))

    def _result(self, inputs: Sequence[DeviceArray], alias: int, shape: tuple[int, ...],
                dtype: np.dtype[Any]) -> DeviceArray:
        """The array for a result: a new one, or that of the donated argument whose buffer it reuses."""
        if alias < 0:
            return self.memory.empty(shape, dtype)
        return DeviceArray(self.memory, inputs[alias].storage, shape, dtype)

    def _check_argument(self, i: int, array: Any) -> None:
        if not isinstance(array, DeviceArray | np.ndarray):
            raise UserTypeError(f"{self.interface.argument(i)} is a {array.__class__.__name__}, expected an array",
                                code="MLC0324")
        self._check_type(i, array)
        if isinstance(array, DeviceArray) and array.memory is not self.memory:
            raise UserError(f"{self.interface.argument(i)} is on {array.device}, and this runs on "
                            f"cuda:{self.memory.device.ordinal}", code="MLC0339",
                            hint=f'move it: x.to("cuda:{self.memory.device.ordinal}")')

    def check_writable(self, inputs: Sequence[DeviceArray]) -> None:
        for i in self._donated:
            if not inputs[i].storage.writable:
                raise UserError(f"{self.interface.argument(i)} is donated, but its memory is read-only",
                                code="MLC0326", hint="donate an array of mlc's own, such as the result of .clone()")

    def _enter(self, numbers: Sequence[int], inputs: Sequence[DeviceArray], fresh: Sequence[DeviceArray]) -> None:
        """Run the function on the device, and raise the error that it reports."""
        name, memory = self.interface.name, self.memory
        needed = self.program.arena_bytes(name, numbers)
        if not 0 <= needed < MAX_BYTES:
            raise UserMemoryError(f"a call needs {needed} bytes of scratch memory", code="MLC0328")
        arena = memory.storage(needed)
        record = memory.storage(RECORD if self.interface.error_sites else 0)
        if record.address:
            self._fill(record.address, RECORD)
        if self.poison:
            for address, size in ((arena.address, needed), *((r.address, r.nbytes) for r in fresh)):
                self._fill(address, size)
        buffers = [x.address for x in (*inputs, *fresh)]
        self.program.run(name, numbers, [*buffers, arena.address, record.address],
                         [*(x.shape for x in (*inputs, *fresh)), (needed,), (1,)])
        self.calls += 1
        if record.address:
            self._check(record)

    def _fill(self, address: int, size: int) -> None:
        """Set all bits of a memory range."""
        at = np.array([address], np.uint64)
        if size:
            self.memory.device.prepare(Fill(0xFF, 1, size, int(at.__array_interface__["data"][0])))()

    def _check(self, record: Storage) -> None:
        out = np.empty(1, np.int64)
        self.memory.device.download(out, record.address)
        if out[0] != NO_ERROR:
            self.fail(int(out[0]))
