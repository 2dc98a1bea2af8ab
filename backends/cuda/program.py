"""Host side of a GPU program: interpreted once per set of sizes, then replayed as a list of launches.

Between kernels, a program computes sizes, takes views of memory and evaluates control flow. All of this depends on the
sizes of the arguments only, unless it reads device memory. So it is interpreted with symbolic memory, a buffer number
and an offset, and yields launches whose arguments are numbers and such addresses. The next call with equal sizes
substitutes the addresses of its buffers and launches them all. If the host reads device memory, for example a
data-dependent trip count, it waits, and is interpreted again in every call.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlc.backends.cuda.device import MOST_BLOCKS, Device
from mlc.backends.cuda.launch_plan import Argument, LaunchPlan, PendingStep
from mlc.backends.cuda.memory import Storage
from mlc.dialects import gpu, memref
from mlc.dialects.arith import store
from mlc.ir.core import Op
from mlc.ir.diag import BackendError
from mlc.ir.interp import Frame, Interpreter
from mlc.ir.types import IndexType, MemRefType, Type, to_numpy

MOST_PLANS = 512
"""Maximum number of cached launch plans, beyond which the cache is cleared."""


class Memory(NamedTuple):
    """Host representation of a memref: a byte offset into a buffer of the call; strides count elements."""

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


class Program:
    """The host functions, and the kernels they launch, on one device.

    kernels    looks up a kernel by name
    constants  addresses of the program's constants by name
    allocate   allocates memory of data-dependent size
    graphs     whether launches that depend on sizes alone are submitted as one graph
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
        """The number of arena bytes that a call needs."""
        key = (name, tuple(numbers))
        if key not in self._arenas:
            if len(self._arenas) >= MOST_PLANS:
                self._arenas.clear()
            self._arenas[key] = int(Interpreter(self.host).call(f"{name}_arena_bytes", list(numbers))[0])
        return self._arenas[key]

    def run(self, name: str, numbers: Sequence[int], addresses: Sequence[int],
            shapes: Sequence[tuple[int, ...]]) -> None:
        """Run a function; `addresses` and `shapes` are those of its buffers, in the order of its arguments."""
        key = (name, tuple(numbers))
        buffers = [*addresses, *self.constants.values()]
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

    def plan(self, name: str, numbers: Sequence[int]) -> LaunchPlan | None:
        """The launches of calls with these numbers; None if none was made yet, or if each is interpreted anew."""
        return self._plans.get((name, tuple(numbers)))

    def piece(self, pending: Sequence[PendingStep]) -> LaunchPlan:
        """The launch plan of steps recorded between two points at which the host waits."""
        key = tuple(pending)
        return self._pieces.get(key) or self._plan(self._pieces, key, pending)

    def _plan(self, known: dict[Any, LaunchPlan], key: Any, pending: Sequence[PendingStep]) -> LaunchPlan:
        if len(known) >= MOST_PLANS:
            known.clear()
        known[key] = plan = LaunchPlan(self.device, self.kernels, pending)
        return plan


# -- interpreting the host --------------------------------------------------------------------------------------------
class Recording(Interpreter):
    """Interpreter of one call of a host function.

    pending    steps recorded but not yet submitted
    waited  whether device memory was read: later steps are valid for this call only
    kept    memory allocated by this call, kept until its end; later work on the stream is ordered after its use
    """

    def __init__(self, program: Program, buffers: list[int]) -> None:
        super().__init__(program.host)
        self.program, self.buffers = program, buffers
        self.pending: list[PendingStep] = []
        self.waited = False
        self.first_constant = 0
        self.kept: list[Storage] = []

    def call(self, name: str, args: Sequence[Any], own: int = -1) -> list[Any]:
        """`own`: the number of buffers of the call, which precede those of constants."""
        if own >= 0:
            self.first_constant = own
        return super().call(name, args)

    def frame(self) -> Frame:
        return HostFrame(self)

    def flush(self) -> None:
        """Submit all recorded steps."""
        pending, self.pending = self.pending, []
        if pending:
            self.program.piece(pending).run(self.buffers)

    def read(self, address: Argument, dtype: np.dtype[Any]) -> Any:
        """Read an element of device memory, once it has been computed."""
        self.waited = True
        self.flush()
        out = np.empty(1, dtype)
        self.program.device.download(out, self.buffers[address.buffer] + address.number)
        return out[0]


class HostFrame(Frame):
    """An activation whose memrefs are in device memory."""

    __slots__ = ()
    interpreter: Recording

    def step(self, op: Op) -> None:
        apply = RULES.get(type(op))
        if apply is None:
            if any(isinstance(v.type, MemRefType) for v in op.results):
                raise BackendError(f"{op.name} on device memory has no host evaluation", code="MLC0540", loc=op.loc)
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
    """The address of an element."""
    memory: Memory = frame[op.memref]
    at = [int(i) for i in frame.all(op.indices)]
    memref.check_bounds(op, memory, at)  # type: ignore[arg-type]
    place = sum(i * s for i, s in zip(at, memory.strides))
    return Argument(memory.offset + place * _itemsize(op.memref.type), memory.buffer)


def _alloc(op: memref.Alloc, frame: HostFrame) -> Memory:
    """Allocate device memory, which becomes another buffer of the call."""
    recording = frame.interpreter
    shape = memref.fill_shape(op, op.result.type.shape, frame.all(op.sizes))
    recording.kept.append(recording.program.allocate(math.prod(shape) * _itemsize(op.result.type)))
    recording.buffers.append(recording.kept[-1].address)
    recording.waited = True
    return contiguous(len(recording.buffers) - 1, 0, shape)


def _load(op: memref.Load, frame: HostFrame) -> Any:
    return store(frame.interpreter.read(_element(op, frame), to_numpy(op.memref.type.dtype)), op.result.type)


def _store(op: memref.Store, frame: HostFrame) -> None:
    """Store by fills of at most 32 bits, whose value is part of the step, so that no host memory has to be kept."""
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
        raise BackendError(f"{name}: a grid has at most {list(MOST_BLOCKS)} blocks, not {list(grid)}", code="MLC0589",
                           loc=op.loc, hint="split the data")
    dynamic = op.dynamic_shared_memory_size
    arguments = [a for v in op.args for a in _arguments(v.type, frame[v])]
    frame.interpreter.pending.append(PendingStep(name, grid, block, 0 if dynamic is None else int(frame[dynamic]),  # type: ignore[arg-type]
                                       tuple(arguments)))


def _arguments(type: Type, value: Any) -> Iterable[Argument]:
    """Kernel arguments for a value, in the convention of gpu_to_nvvm: for a memref its address, and its dynamic sizes
    and strides."""
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
"""Evaluation rules of the host for operations on device memory."""
