"""A device in this process's memory, whose kernels are run by the SIMT interpreter.

It stands at the very end of the run time: what it is passed is what hardware would be passed, packed arguments and
addresses, and it looks at each as strictly as hardware does not.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.backends.cuda.device import Fill, Launch, Step
from mlc.backends.target import Target
from mlc.dialects import gpu
from mlc.dialects.builtin import Module
from mlc.dialects.gpu import simt
from mlc.ir.core import Op
from mlc.ir.interp import Frame, Interpreter
from mlc.ir.parser import parse_module
from mlc.ir.printer import to_text
from mlc.ir.types import IndexType, MemRefType, to_numpy

Array = np.ndarray[Any, Any]
ALIGNMENT = 256


class FakeDevice:
    """One device with `capacity` bytes. Everything is done at once, and everything it is told is counted."""

    form = "gpu"

    def __init__(self, ordinal: int = 0, architecture: int = 90, capacity: int = 1 << 26) -> None:
        self.ordinal, self.name, self.architecture, self.capacity = ordinal, "a fake device", architecture, capacity
        self.stream = 7
        self.memory: dict[int, Array] = {}
        self.taken = 0
        self.launches: list[str] = []
        self.waits = self.graphs = self.replays = self.updates = self.uploads = self.downloads = 0
        self.ordered: list[tuple[str, int]] = []

    def activate(self) -> None:
        pass

    # -- code -----------------------------------------------------------------------------------------------------
    def assemble(self, module: Op, target: Target) -> bytes:
        holder, = (op for op in module.regions[0].block if isinstance(op, gpu.GPUModule))
        return f"module {{\n{to_text(holder)}\n}}".encode()

    def load(self, code: bytes) -> Any:
        return parse_module(code.decode(), "kernels")

    def kernel(self, library: Any, name: str) -> gpu.Func:
        assert isinstance(library, Module)
        kernel, = (op for op in library.walk() if isinstance(op, gpu.Func) and op.sym_name == name)
        return kernel

    # -- memory ---------------------------------------------------------------------------------------------------
    def allocate(self, size: int) -> int | None:
        if self.taken + size > self.capacity:
            return None
        raw = np.full(size + ALIGNMENT, 0xFF, np.uint8)
        start = int(raw.__array_interface__["data"][0])
        address = -(-start // ALIGNMENT) * ALIGNMENT
        self.memory[address] = raw[address - start: address - start + size]
        self.taken += size
        return address

    def free(self, address: int) -> None:
        self.taken -= self.memory.pop(address).size

    def memory_info(self) -> tuple[int, int]:
        return self.capacity - self.taken, self.capacity

    def bytes(self, address: int, size: int) -> Array:
        """Memory of the device, which must be that of one allocation."""
        starts = sorted(self.memory)
        at = bisect_right(starts, address) - 1
        assert at >= 0, f"{address:#x} is no address of the device"
        held = self.memory[starts[at]]
        first = address - starts[at]
        assert first + size <= held.size, f"{size} bytes from {first} of an allocation of {held.size}"
        return held[first: first + size]

    def upload(self, target: int, source: Array) -> None:
        assert source.flags.c_contiguous
        self.uploads += 1
        self.bytes(target, source.nbytes)[:] = source.reshape(-1).view(np.uint8)

    def download(self, target: Array, source: int) -> None:
        assert target.flags.c_contiguous
        self.downloads += 1
        target.reshape(-1).view(np.uint8)[:] = self.bytes(source, target.nbytes)

    def pinned(self, size: int) -> tuple[int, Array]:
        self.pages = [*getattr(self, "pages", []), np.zeros(size, np.uint8)]
        return int(self.pages[-1].__array_interface__["data"][0]), self.pages[-1]

    def fetch(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, self.bytes(source, size).tobytes(), size)

    def copy(self, target: int, source: int, size: int) -> None:
        if size:
            self.bytes(target, size)[:] = self.bytes(source, size)

    # -- work -----------------------------------------------------------------------------------------------------
    def prepare(self, step: Step) -> Callable[[], object]:
        return lambda: self.run(step)

    def run(self, step: Step) -> None:
        self.submit(self.bound(step))

    def submit(self, work: Callable[[], None]) -> None:
        """Do what was submitted."""
        work()

    def bound(self, step: Step) -> Callable[[], None]:
        """A step with the arguments that it has now."""
        if isinstance(step, Fill):
            address = ctypes.c_uint64.from_address(step.parameters).value
            assert address % step.width == 0 and 0 <= step.value < 1 << 8 * step.width
            pattern = np.frombuffer(step.value.to_bytes(step.width, "little") * step.count, np.uint8)
            return lambda: self.write(address, pattern)
        self.launches.append(step.name)
        args = self._arguments(step.kernel, step.parameters)
        return lambda: self._execute(step, args)

    def write(self, address: int, content: Array) -> None:
        self.bytes(address, content.size)[:] = content

    def _execute(self, step: Launch, args: list[Any]) -> None:
        kernel: gpu.Func = step.kernel
        frame = Frame(Interpreter(kernel.parent_op.parent_op))  # type: ignore[union-attr, arg-type]
        known = kernel.known_block_size
        assert known is None or tuple(known) == step.block
        assert step.shared == kernel.dynamic_bytes
        size, blocks = int(np.prod(step.block)), int(np.prod(step.grid))
        traces = simt._segments(args, size)
        with np.errstate(all="ignore"):
            together = max(1, simt.TOGETHER // size)
            for first in range(0, blocks, together):
                numbers = np.arange(first, min(first + together, blocks))
                simt.Threads(frame, kernel, traces, step.grid, step.block, numbers).execute(
                    args, [v.type for v in kernel.args])

    def _arguments(self, kernel: gpu.Func, parameters: int) -> list[Any]:
        """Unpack kernel arguments: as many words per parameter as gpu_to_nvvm assigns."""
        count = 0

        def word() -> int:
            nonlocal count
            place = ctypes.c_uint64.from_address(parameters + 8 * count).value
            count += 1
            return ctypes.c_uint64.from_address(place).value

        def one(type: Any) -> Any:
            raw = word()
            if isinstance(type, IndexType):
                return int(np.uint64(raw).astype(np.int64))
            if not isinstance(type, MemRefType):
                return np.frombuffer(raw.to_bytes(8, "little"), to_numpy(type), 1)[0]
            shape = [word() if n is None else n for n in type.shape]
            if type.strides is None:
                strides = [int(np.prod(shape[i + 1:], dtype=np.int64)) for i in range(len(shape))]
            else:
                strides = [word() if n is None else n for n in type.strides]
            dtype = to_numpy(type.dtype)
            if 0 in shape:
                return np.empty(shape, dtype)
            size = (1 + sum((n - 1) * s for n, s in zip(shape, strides))) * dtype.itemsize
            assert raw % dtype.itemsize == 0
            return np.lib.stride_tricks.as_strided(self.bytes(raw, size).view(dtype), shape,
                                                   [s * dtype.itemsize for s in strides])

        return [one(v.type) for v in kernel.args]

    def words(self, kernel: gpu.Func) -> int:
        """How many words a kernel's arguments take."""
        return sum(1 + v.type.shape.count(None) + (v.type.strides or ()).count(None)
                   if isinstance(v.type, MemRefType) else 1 for v in kernel.args)

    def graph(self, steps: Sequence[Step]) -> FakeGraph:
        self.graphs += 1
        return FakeGraph(self, steps)

    # -- order ----------------------------------------------------------------------------------------------------
    def synchronize(self, everything: bool = False) -> None:
        self.waits += 1

    def settle(self) -> None:
        self.synchronize()

    def publish(self, stream: int) -> None:
        self.ordered.append(("publish", stream))

    def await_stream(self, stream: int) -> None:
        self.ordered.append(("await", stream))

    def new_stream(self) -> int:
        return self.stream + 1

    def mark(self, stream: int) -> Any:
        return None

    def hold(self, stream: int, mark: Any) -> None:
        pass

    def reached(self, mark: Any) -> bool:
        return True


class FakeGraph:
    """Steps with the arguments they had when they were last read."""

    def __init__(self, device: FakeDevice, steps: Sequence[Step]) -> None:
        self.device, self.steps = device, list(steps)
        self.arguments: list[list[int]] = [[] for _ in steps]
        for number in range(len(self.steps)):
            self._read(number)

    def _words(self, step: Step) -> list[ctypes.c_uint64]:
        if isinstance(step, Fill):
            return [ctypes.c_uint64.from_address(step.parameters)]
        places = [ctypes.c_uint64.from_address(step.parameters + 8 * i).value
                  for i in range(self.device.words(step.kernel))]
        return [ctypes.c_uint64.from_address(p) for p in places]

    def _read(self, number: int) -> None:
        self.arguments[number] = [w.value for w in self._words(self.steps[number])]

    def update(self, number: int) -> None:
        self.device.updates += 1
        self._read(number)

    def launch(self) -> None:
        self.device.replays += 1
        for step, values in zip(self.steps, self.arguments):
            words = self._words(step)
            now = [w.value for w in words]
            for w, v in zip(words, values):
                w.value = v
            self.device.run(step)
            for w, v in zip(words, now):
                w.value = v
