"""Host side of a program of kernels: interpreted once, then replayed as a list of launches.

Between kernels a program computes sizes, takes views of memory and decides what to run next. All of it follows from the
sizes of the arguments, unless it reads the device's memory. So it is interpreted on memory that is no more than the
number of a buffer and an offset into it; what is left are launches whose arguments are numbers and such places. The
next call with equal sizes puts in the addresses of its buffers and launches them all. Where the host reads memory of
the device, to decide how long a loop runs, it waits and is interpreted anew in every call.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mlc.backends.cuda.device import MOST_BLOCKS, Device, Extent, Fill, Graph, Launch, Step
from mlc.backends.cuda.memory import Storage
from mlc.dialects import gpu, memref
from mlc.dialects.arith import store
from mlc.ir.core import Op
from mlc.ir.diag import BackendError
from mlc.ir.interp import Frame, Interpreter
from mlc.ir.types import IndexType, MemRefType, Type, to_numpy

Array = np.ndarray[Any, Any]
MOST_PLANS = 512
"""How many lists of launches a program remembers before it starts again."""


class Memory(NamedTuple):
    """Host representation of a memref: bytes of one of the call's buffers; strides count elements."""

    buffer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)


def contiguous(buffer: int, offset: int, shape: Sequence[int]) -> Memory:
    """Memory in row-major order."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return Memory(buffer, offset, tuple(shape), tuple(reversed(strides)))


class Argument(NamedTuple):
    """Eight bytes of a step's arguments: a number, or, with a buffer, an offset from where that starts."""

    number: int
    buffer: int = -1


@dataclass(frozen=True)
class PendingStep:
    """A recorded step without an argument buffer. A fill has no kernel, and its address as the only argument."""

    kernel: str
    grid: Extent
    block: Extent
    shared: int
    arguments: tuple[Argument, ...]
    value: int = 0
    width: int = 0
    count: int = 0


# -- what is launched -------------------------------------------------------------------------------------------------
class LaunchPlan:
    """Launches and fills with their argument buffers: an array of words, and the address of each."""

    def __init__(self, device: Device, kernels: Callable[[str], Any], pending: Sequence[PendingStep]) -> None:
        self.device = device
        words = [a for step in pending for a in step.arguments]
        self.words = np.array([a.number % (1 << 64) for a in words] or [0], np.uint64)
        start = int(self.words.__array_interface__["data"][0])
        self.addresses = np.arange(start, start + 8 * self.words.size, 8).astype(np.uint64)
        table = int(self.addresses.__array_interface__["data"][0])
        self.where = np.array([i for i, a in enumerate(words) if a.buffer >= 0], np.int64)
        self.which = np.array([a.buffer for a in words if a.buffer >= 0], np.int64)
        self.offsets = self.words[self.where]
        self.steps: list[Step] = []
        first, owners = 0, list[int]()
        for number, step in enumerate(pending):
            if step.kernel:
                self.steps.append(Launch(kernels(step.kernel), step.kernel, step.grid, step.block, step.shared,
                                         table + 8 * first))
            else:
                self.steps.append(Fill(step.value, step.width, step.count, start + 8 * first))
            owners += [number] * len(step.arguments)
            first += len(step.arguments)
        self.owners = np.array(owners, np.int64)[self.where]     # the step of each word that an address is put into
        self.run_each = [device.prepare(step) for step in self.steps]
        self.graph: Graph | None = None
        self.lock = threading.Lock()

    def run(self, buffers: Array, as_graph: bool = False) -> None:
        """Have it all done, with buffers at these addresses."""
        with self.lock:                                    # arguments are copied when a step is launched
            new = self.offsets + buffers[self.which]
            if as_graph and self.steps:
                self._replay(new)
                return
            self.words[self.where] = new
            for run in self.run_each:
                run()

    def _replay(self, new: Array) -> None:
        changed = new != self.words[self.where]
        self.words[self.where] = new
        graph, self.graph = self.graph, None               # if updating fails, some of its steps are still as before
        if graph is None:
            graph = self.device.graph(self.steps)
        else:
            for number in np.unique(self.owners[changed]):
                graph.update(int(number))
        graph.launch()
        self.graph = graph


class Program:
    """The functions of the host, and the kernels they launch, on one device.

    kernels    one by its name
    constants  the addresses of the program's data by name
    allocate   allocates memory of data-dependent size
    graphs     whether launches that follow from sizes alone are handed to the device as one
    """

    def __init__(self, device: Device, host: Op, kernels: Callable[[str], Any], constants: Mapping[str, int],
                 allocate: Callable[[int], Storage]) -> None:
        self.device, self.host, self.kernels, self.allocate = device, host, kernels, allocate
        self.constants = dict(constants)
        self.graphs = False
        self.interpretations = 0
        self._plans: dict[tuple[str, tuple[int, ...]], LaunchPlan] = {}
        self._pieces: dict[tuple[PendingStep, ...], LaunchPlan] = {}
        self._arenas: dict[tuple[str, tuple[int, ...]], int] = {}
        self._lock = threading.Lock()

    def arena_bytes(self, name: str, numbers: Sequence[int]) -> int:
        """How much memory a call needs for values between kernels."""
        key = (name, tuple(numbers))
        if key not in self._arenas:
            if len(self._arenas) >= MOST_PLANS:
                self._arenas.clear()
            self._arenas[key] = int(Interpreter(self.host).call(f"{name}_arena_bytes", list(numbers))[0])
        return self._arenas[key]

    def run(self, name: str, numbers: Sequence[int], addresses: Sequence[int],
            shapes: Sequence[tuple[int, ...]]) -> None:
        """Have a function done: `addresses` and `shapes` are of its buffers, in the order of its arguments."""
        key = (name, tuple(numbers))
        buffers = np.array([*addresses, *self.constants.values()], np.uint64)
        plan = self._plans.get(key)
        if plan is None:
            with self._lock:
                recording = Recording(self, buffers)
                recording.call(name, [*numbers, *(contiguous(i, 0, s) for i, s in enumerate(shapes))], len(addresses))
                self.interpretations += 1
                if recording.waited:
                    recording.flush()
                    return
                plan = self._plan(self._plans, key, recording.pending)
        plan.run(buffers, self.graphs)

    def piece(self, pending: Sequence[PendingStep]) -> LaunchPlan:
        """Steps that were recorded between two places where the host waits."""
        key = tuple(pending)
        return self._pieces.get(key) or self._plan(self._pieces, key, pending)

    def _plan(self, known: dict[Any, LaunchPlan], key: Any, pending: Sequence[PendingStep]) -> LaunchPlan:
        if len(known) >= MOST_PLANS:
            known.clear()
        known[key] = plan = LaunchPlan(self.device, self.kernels, pending)
        return plan


# -- interpreting the host --------------------------------------------------------------------------------------------
class Recording(Interpreter):
    """One call of a function of the host, interpreted.

    pending    what is to be done on the device, and has not been asked of it yet
    waited  whether memory of the device was read: what follows holds for this call alone
    kept    memory that this call has allocated, until it is over: what is asked of the device later waits for it
    """

    def __init__(self, program: Program, buffers: Array) -> None:
        super().__init__(program.host)
        self.program, self.buffers = program, buffers
        self.pending: list[PendingStep] = []
        self.waited = False
        self.first_constant = 0
        self.kept: list[Storage] = []

    def call(self, name: str, args: Sequence[Any], own: int = -1) -> list[Any]:
        """`own`: how many buffers the call brings, before those of constants."""
        if own >= 0:
            self.first_constant = own
        return super().call(name, args)

    def frame(self) -> Frame:
        return HostFrame(self)

    def flush(self) -> None:
        """Ask for all that has been recorded."""
        pending, self.pending = self.pending, []
        if pending:
            self.program.piece(pending).run(self.buffers)

    def read(self, address: Argument, dtype: np.dtype[Any]) -> Any:
        """An element of the device's memory, once it has been computed."""
        self.waited = True
        self.flush()
        out = np.empty(1, dtype)
        self.program.device.download(out, int(self.buffers[address.buffer]) + address.number)
        return out[0]


class HostFrame(Frame):
    """An activation in which memory is that of a device."""

    __slots__ = ()
    interpreter: Recording

    def step(self, op: Op) -> None:
        apply = RULES.get(type(op))
        if apply is None:
            if any(isinstance(v.type, MemRefType) for v in op.results):
                raise BackendError(f"{op.name}: the host has no such memory for a device", code="MLC0540", loc=op.loc)
            super().step(op)
            return
        out = apply(op, self)
        for result, value in zip(op.results, [] if out is None else [out]):
            self.env[result] = value


def _view(op: memref.View, frame: HostFrame) -> Memory:
    source: Memory = frame[op.source]
    type: MemRefType = op.result.type
    shape = memref.fill_shape(op, type.shape, frame.all(op.sizes))
    return contiguous(source.buffer, source.offset + int(frame[op.byte_shift]), shape)


def _reinterpret(op: memref.ReinterpretCast, frame: HostFrame) -> Memory:
    source: Memory = frame[op.source]
    (offset,), shape, strides = ([int(n) for n in op.numbers(frame, name)] for name in ("offsets", "sizes", "strides"))
    return Memory(source.buffer, source.offset + offset * _itemsize(op.source.type), tuple(shape), tuple(strides))


def _subview(op: memref.SubView, frame: HostFrame) -> Memory:
    source: Memory = frame[op.source]
    offsets, shape, strides = ([int(n) for n in op.numbers(frame, name)] for name in ("offsets", "sizes", "strides"))
    start = sum(o * s for o, s in zip(offsets, source.strides))
    return Memory(source.buffer, source.offset + start * _itemsize(op.source.type), tuple(shape),
                  tuple(a * b for a, b in zip(strides, source.strides)))


def _global(op: memref.GetGlobal, frame: HostFrame) -> Memory:
    recording, name = frame.interpreter, str(op.attrs["name"])
    number = list(recording.program.constants).index(name)
    return contiguous(recording.first_constant + number, 0, op.result.type.shape)


def _element(op: memref.Load | memref.Store, frame: HostFrame) -> Argument:
    """Where an element lies."""
    memory: Memory = frame[op.memref]
    at = [int(i) for i in frame.all(op.indices)]
    memref.check_bounds(op, memory, at)  # type: ignore[arg-type]
    place = sum(i * s for i, s in zip(at, memory.strides))
    return Argument(memory.offset + place * _itemsize(op.memref.type), memory.buffer)


def _alloc(op: memref.Alloc, frame: HostFrame) -> Memory:
    """Memory of the device, which becomes one more buffer of the call."""
    recording = frame.interpreter
    shape = memref.fill_shape(op, op.result.type.shape, frame.all(op.sizes))
    recording.kept.append(recording.program.allocate(math.prod(shape) * _itemsize(op.result.type)))
    recording.buffers = np.append(recording.buffers, np.uint64(recording.kept[-1].address))
    recording.waited = True
    return contiguous(len(recording.buffers) - 1, 0, shape)


def _load(op: memref.Load, frame: HostFrame) -> Any:
    return store(frame.interpreter.read(_element(op, frame), to_numpy(op.memref.type.dtype)), op.result.type)


def _store(op: memref.Store, frame: HostFrame) -> None:
    """As the device fills memory: by numbers of 32 bits at most, which need not stay where they are read from."""
    raw = np.asarray(frame[op.value], to_numpy(op.memref.type.dtype)).tobytes()
    place, width = _element(op, frame), min(len(raw), 4)
    for start in range(0, len(raw), width):
        value = int.from_bytes(raw[start: start + width], "little")
        at = Argument(place.number + start, place.buffer)
        frame.interpreter.pending.append(PendingStep("", (0, 0, 0), (0, 0, 0), 0, (at,), value, width, 1))


def _launch(op: gpu.Launch, frame: HostFrame) -> None:
    grid, block = (tuple(int(frame[v]) for v in group) for group in (op.grid, op.threads))
    if 0 in (*grid, *block):
        return
    name = op.kernel.rpartition("::")[2]
    if any(not 0 < n <= most for n, most in zip(grid, MOST_BLOCKS)):
        raise BackendError(f"{name}: a grid has {list(MOST_BLOCKS)} blocks at most, not {list(grid)}", code="MLC0589",
                           loc=op.loc, hint="split the data")
    dynamic = op.dynamic_shared_memory_size
    arguments = [a for v in op.args for a in _arguments(v.type, frame[v])]
    frame.interpreter.pending.append(PendingStep(name, grid, block, 0 if dynamic is None else int(frame[dynamic]),  # type: ignore[arg-type]
                                       tuple(arguments)))


def _arguments(type: Type, value: Any) -> Iterable[Argument]:
    """Kernel arguments for a value, in the convention of gpu_to_nvvm: of a memref its address, and the sizes and
    strides that its type leaves open."""
    if isinstance(type, MemRefType):
        yield Argument(value.offset, value.buffer)
        yield from (Argument(n) for n, known in zip(value.shape, type.shape) if known is None)
        if type.strides is not None:
            yield from (Argument(n) for n, known in zip(value.strides, type.strides) if known is None)
    elif isinstance(type, IndexType):
        yield Argument(int(value))
    else:
        yield Argument(int.from_bytes(np.asarray(value, to_numpy(type)).tobytes(), "little"))


def _itemsize(type: MemRefType) -> int:
    return to_numpy(type.dtype).itemsize


RULES: dict[type[Op], Callable[[Any, HostFrame], Any]] = {
    memref.View: _view, memref.ReinterpretCast: _reinterpret, memref.SubView: _subview,
    memref.Cast: lambda op, frame: frame[op.source], memref.GetGlobal: _global, memref.Load: _load,
    memref.Store: _store, memref.Alloc: _alloc, memref.Dealloc: lambda op, frame: None, gpu.Launch: _launch}
"""Evaluation rules of the host for operations on memory that it cannot access."""
