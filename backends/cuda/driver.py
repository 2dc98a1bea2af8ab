"""The driver of NVIDIA GPUs, through cuda-python, which only this module uses.

The status of every call is checked (`_call`). All work is submitted to one non-blocking stream per device.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from mlc.backends.cuda.device import PTX, Array, Fill, Launch, Step, forked
from mlc.backends.target import Target
from mlc.ir.core import Op
from mlc.ir.diag import BackendError
from mlc.ir.machine import GPU
from mlc.ir.weak_references import FinalizationQueue

SHARED_BY_DEFAULT = GPU.shared_bytes
"""Bytes of dynamic shared memory that a kernel may use without opting in."""
OUT_OF_MEMORY, NO_DEVICE, NOT_READY = 2, 100, 600
LOST = frozenset({700, 702, 709, 710, 714, 715, 716, 717, 718, 719})
"""Sticky errors of kernels, after which the process can no longer use the device."""
CHUNK, CHUNKS = 4 << 20, 4
"""Copies go through pinned memory in chunks of this many bytes; the next chunk is filled while one is transferred."""
LOG = 1 << 14
_process: int | None = None
"""The process in which the driver was initialised; it does not work in forked children."""


def bindings() -> Any:
    """cuda-python's driver module; BackendError if it is not installed."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise BackendError(f"cuda-python is not installed ({error})", code="MLC0580",
                           hint="pip install 'mlc[cuda]'") from None
    return driver


def count() -> int:
    """The number of devices."""
    global _process
    cu = bindings()
    if _process not in (None, os.getpid()):
        raise forked()
    try:
        status = cu.cuInit(0)[0]
    except (RuntimeError, OSError, ImportError) as error:       # libcuda is found on the first call
        raise BackendError("this machine has no NVIDIA driver", code="MLC0581", notes=(str(error).split("\n")[0],),
                           hint='install the driver, or use target="host"') from None
    if status == NO_DEVICE:
        return 0
    if status:
        raise BackendError(f"the NVIDIA driver does not start: {_name(cu, status)}", code="MLC0581",
                           hint="nvidia-smi tells more; a driver that was updated needs a restart")
    _process = os.getpid()
    return int(_call(cu, cu.cuDeviceGetCount(), "counting devices"))


def open_device(ordinal: int) -> Driver:
    """Open the device with this ordinal."""
    found = count()
    if not 0 <= ordinal < found:
        there = f"there is no device cuda:{ordinal}, of {found}" if found else "this machine has no NVIDIA GPU"
        raise BackendError(there, code="MLC0582", hint="is CUDA_VISIBLE_DEVICES set?" if not found else
                           f"use cuda:0 to cuda:{found - 1}")
    return Driver(bindings(), ordinal)


def _name(cu: Any, status: Any) -> str:
    """The driver's name and description of a status."""
    try:
        name, text = cu.cuGetErrorName(status)[1], cu.cuGetErrorString(status)[1]
        return f"{name.decode()} ({text.decode()})" if name else f"status {int(status)}"
    except (AttributeError, TypeError, ValueError):       # an older driver does not know the status
        return getattr(status, "name", f"status {int(status)}")


def _call(cu: Any, out: tuple[Any, ...], what: str) -> Any:
    """Results of a driver call without its status: none, one value or several."""
    if out[0]:
        raise failure(cu, out[0], what)
    return out[1] if len(out) == 2 else out[1:]


def failure(cu: Any, status: Any, what: str) -> BackendError:
    """The exception for a status."""
    if int(status) in LOST:
        return BackendError(f"{what}: {_name(cu, status)}: a kernel went wrong, now or before", code="MLC0587",
                            hint="the process must start anew to use the device; report the program that did this")
    return BackendError(f"{what}: {_name(cu, status)}", code="MLC0583",
                        hint="nvidia-smi shows what the device is busy with")


class Driver:
    """One GPU: its primary context, which other libraries share, and a stream."""

    form = PTX

    def __init__(self, cu: Any, ordinal: int) -> None:
        self.cu, self.ordinal = cu, ordinal
        self._set_current = cu.cuCtxSetCurrent             # of each call
        handle = self.call(cu.cuDeviceGet(ordinal), "opening the device")
        self.context = self.call(cu.cuDevicePrimaryCtxRetain(handle), "opening the device")
        self.activate()
        raw = bytes(self.call(cu.cuDeviceGetName(256, handle), "asking its name"))
        self.name = raw.split(b"\0")[0].decode("utf-8", "replace")
        attribute = cu.CUdevice_attribute
        major, minor, self.most_shared = (int(self.call(cu.cuDeviceGetAttribute(a, handle), "asking what it can do"))
                                          for a in (attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                                    attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                                    attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
        self.architecture = 10 * major + minor
        self._stream = self._created_stream()
        self.stream = int(self._stream)
        self._ordering = self.event()
        self._staging = Staging(self)
        self._finalized: FinalizationQueue[tuple[tuple[Callable[[Any], object], Any], ...]] = FinalizationQueue()
        self._lock = threading.RLock()                     # of the pinned memory and the event

    def call(self, out: tuple[Any, ...], what: str) -> Any:
        return _call(self.cu, out, what)

    def activate(self) -> None:
        if status := self._set_current(self.context)[0]:
            raise failure(self.cu, status, "taking up the device's context")

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Context in which this is the calling thread's current device."""
        self.call(self.cu.cuCtxPushCurrent(self.context), "taking up the device's context")
        try:
            yield
        finally:
            self.call(self.cu.cuCtxPopCurrent(), "leaving the device's context")

    # -- code -----------------------------------------------------------------------------------------------------
    def assemble(self, module: Op, target: Target) -> bytes:
        """PTX."""
        from mlc.backends.cuda.ptx import assemble
        return assemble(module, target)

    def load(self, code: bytes) -> Library:
        """Load PTX, which the driver compiles for the device."""
        self.clear_away()
        cu, option = self.cu, self.cu.CUjit_option
        said = [bytearray(LOG), bytearray(LOG)]
        options = {option.CU_JIT_ERROR_LOG_BUFFER: said[0], option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: LOG,
                   option.CU_JIT_INFO_LOG_BUFFER: said[1], option.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: LOG}
        out = cu.cuModuleLoadDataEx(code + b"\0", len(options), list(options), list(options.values()))
        if out[0]:
            if int(out[0]) in (OUT_OF_MEMORY, *LOST):
                raise failure(cu, out[0], "loading kernels")
            notes = [line for text in said for line in _text(text).splitlines() if line.strip()]
            raise BackendError(f"the driver rejects PTX: {_name(cu, out[0])}", code="MLC0584", notes=tuple(notes[:20]),
                               hint="an older driver may not know this version of PTX; else report it, with the PTX "
                                    "(mlc compile --emit=ptx)")
        library = Library(out[1])
        self._finalized.register(library, ((cu.cuModuleUnload, out[1]),))
        return library

    def clear_away(self) -> None:
        """Unload unreferenced kernels and graphs, once the device is done with them.

        At process exit nothing is unloaded, since the driver does so itself.
        """
        if gone := list(self._finalized.drain()):
            self.synchronize()
            for end, handle in (call for calls in gone for call in calls):
                end(handle)

    def kernel(self, library: Library, name: str) -> Any:
        return self.call(self.cu.cuModuleGetFunction(library.module, name.encode()), f"finding the kernel {name}")

    def attributes(self, kernel: Any) -> dict[str, int]:
        """Resource usage of a kernel: registers, and bytes of local and shared memory."""
        known = self.cu.CUfunction_attribute
        names = {"registers": known.CU_FUNC_ATTRIBUTE_NUM_REGS, "local": known.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
                 "shared": known.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES}
        return {name: int(self.call(self.cu.cuFuncGetAttribute(a, kernel), "asking about a kernel"))
                for name, a in names.items()}

    # -- memory ---------------------------------------------------------------------------------------------------
    def allocate(self, size: int) -> int | None:
        out = self.cu.cuMemAlloc(size)
        if int(out[0]) == OUT_OF_MEMORY:
            return None
        return int(self.call(out, f"allocating {size} bytes"))

    def free(self, address: int) -> None:
        self.call(self.cu.cuMemFree(address), "freeing memory")

    def memory_info(self) -> tuple[int, int]:
        free, total = self.call(self.cu.cuMemGetInfo(), "asking for free memory")
        return int(free), int(total)

    def upload(self, target: int, source: Array) -> None:
        with self._lock:
            self._staging.upload(target, source.reshape(-1).view(np.uint8))

    def download(self, target: Array, source: int) -> None:
        with self._lock:
            self._staging.download(target.reshape(-1).view(np.uint8), source)

    def pinned(self, size: int) -> tuple[int, Array]:
        address = int(self.call(self.cu.cuMemHostAlloc(size, 0), "allocating pinned memory"))
        return address, np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))

    def fetch(self, target: int, source: int, size: int) -> None:
        self.call(self.cu.cuMemcpyDtoHAsync(target, source, size, self._stream), "copying from the device")

    def copy(self, target: int, source: int, size: int) -> None:
        if size:
            self.call(self.cu.cuMemcpyDtoDAsync(target, source, size, self._stream), "copying")

    # -- work -----------------------------------------------------------------------------------------------------
    def prepare(self, step: Step) -> Callable[[], object]:
        cu, stream = self.cu, self._stream
        if isinstance(step, Fill):
            fill = {1: cu.cuMemsetD8Async, 2: cu.cuMemsetD16Async, 4: cu.cuMemsetD32Async}[step.width]
            place = ctypes.c_uint64.from_address(step.parameters)
            return lambda: self.call(fill(place.value, step.value, step.count, stream), "filling memory")
        self._allow(step)
        launch, arguments = cu.cuLaunchKernel, (step.kernel, *step.grid, *step.block, step.shared, stream,
                                                step.parameters, 0)

        def run() -> None:
            if status := launch(*arguments)[0]:
                raise failure(cu, status, f"launching {step.name} with {step.grid} blocks of {step.block} threads")

        return run

    def _allow(self, step: Launch) -> None:
        """Opt in to a kernel's dynamic shared memory, if it exceeds the default limit."""
        if step.shared > SHARED_BY_DEFAULT:
            if step.shared > self.most_shared:
                raise BackendError(f"{step.name} needs {step.shared} bytes of shared memory, {self.name} has "
                                   f"{self.most_shared}", code="MLC0588", hint="use smaller tiles")
            limit = self.cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.call(self.cu.cuFuncSetAttribute(step.kernel, limit, step.shared), f"preparing {step.name}")

    def graph(self, steps: Sequence[Step]) -> DriverGraph:
        for step in steps:
            if isinstance(step, Launch):
                self._allow(step)
        self.clear_away()
        made = DriverGraph(self, steps)
        self._finalized.register(made, ((self.cu.cuGraphExecDestroy, made._made),
                                        (self.cu.cuGraphDestroy, made._graph)))
        return made

    # -- order ----------------------------------------------------------------------------------------------------
    def synchronize(self, everything: bool = False) -> None:
        wait = self.cu.cuCtxSynchronize() if everything else self.cu.cuStreamSynchronize(self._stream)
        self.call(wait, "waiting for the device")

    def settle(self) -> None:
        with self.aside():
            self.synchronize()

    def event(self, timing: bool = False) -> Any:
        """Create an event."""
        kind = self.cu.CUevent_flags
        return self.call(self.cu.cuEventCreate(int(kind.CU_EVENT_DEFAULT if timing else kind.CU_EVENT_DISABLE_TIMING)),
                         "making an event")

    def record(self, event: Any) -> None:
        """Record an event after all work submitted so far."""
        self.call(self.cu.cuEventRecord(event, self._stream), "recording an event")

    def wait(self, event: Any) -> None:
        """Wait until the stream has reached an event."""
        self.call(self.cu.cuEventSynchronize(event), "waiting for the device")

    def publish(self, stream: int) -> None:
        if stream == self.stream:
            return
        with self._lock:
            self.record(self._ordering)
            self.call(self.cu.cuStreamWaitEvent(self.cu.CUstream(stream), self._ordering, 0), "ordering streams")

    def await_stream(self, stream: int) -> None:
        if stream == self.stream:
            return
        with self._lock:
            self.call(self.cu.cuEventRecord(self._ordering, self.cu.CUstream(stream)), "ordering streams")
            self.call(self.cu.cuStreamWaitEvent(self._stream, self._ordering, 0), "ordering streams")

    def new_stream(self) -> int:
        return int(self._created_stream())

    def _created_stream(self) -> Any:
        flags = int(self.cu.CUstream_flags.CU_STREAM_NON_BLOCKING)
        return self.call(self.cu.cuStreamCreate(flags), "making a stream")

    def mark(self, stream: int) -> Mark:
        mark = Mark(self, self.event())
        self.call(self.cu.cuEventRecord(mark.event, self.cu.CUstream(stream)), "recording an event")
        return mark

    def reached(self, mark: Mark) -> bool:
        with self.aside():
            status, = self.cu.cuEventQuery(mark.event)
            if int(status) == NOT_READY:
                return False
            self.call((status,), "waiting for the device")
            return True

    def hold(self, stream: int, mark: Mark) -> None:
        self.call(self.cu.cuStreamWaitEvent(self.cu.CUstream(stream), mark.event, 0), "ordering streams")


def _text(log: bytearray) -> str:
    return bytes(log).split(b"\0")[0].decode("utf-8", "replace")


class Mark:
    """An event of the driver, which is destroyed once this is unreferenced; what waits for it goes on doing so."""

    def __init__(self, device: Driver, event: Any) -> None:
        self._device, self.event = device, event

    def __del__(self) -> None:
        with suppress(BackendError), self._device.aside():  # the device may have failed, and shows that elsewhere
            self._device.call(self._device.cu.cuEventDestroy(self.event), "dropping an event")


class Library:
    """Loaded kernels. They are unloaded by `clear_away` once this object is unreferenced."""

    def __init__(self, module: Any) -> None:
        self.module = module


class Staging:
    """Pinned staging memory for copies, which the device accesses by DMA.

    Chunks are used round-robin. The event in `ends` marks the last use of each chunk.
    """

    def __init__(self, device: Driver) -> None:
        self.device = device
        self.chunks: list[tuple[int, Array]] = []
        self.ends: list[Any] = []
        self.at = 0                                        # the chunk in use
        self.used = 0                                      # bytes of it

    def _open(self) -> None:
        for _ in range(CHUNKS):
            self.chunks.append(self.device.pinned(CHUNK))
            self.ends.append(self.device.event())

    def _room(self, size: int) -> tuple[int, Array]:
        """Reserve the next `size` bytes, at most a chunk; returns their address and an array of them."""
        if not self.chunks:
            self._open()
        if self.used + size > CHUNK:
            self.device.record(self.ends[self.at])
            self.at, self.used = (self.at + 1) % CHUNKS, 0
            self.device.wait(self.ends[self.at])           # returns at once for an event that was never recorded
        address, memory = self.chunks[self.at]
        start = self.used
        self.used += -(-size // 64) * 64
        return address + start, memory[start: start + size]

    def upload(self, target: int, source: Array) -> None:
        device = self.device
        for start in range(0, source.size, CHUNK):
            piece = source[start: start + CHUNK]
            address, memory = self._room(piece.size)
            memory[:] = piece
            device.call(device.cu.cuMemcpyHtoDAsync(target + start, address, piece.size, device._stream),
                        "copying to the device")

    def download(self, target: Array, source: int) -> None:
        """One piece is copied out of pinned memory while the next is transferred."""
        device, pending = self.device, list[tuple[Array, Array, Any]]()
        events = [device.event(), device.event()] if target.size > CHUNK else []
        for number, start in enumerate(range(0, target.size, CHUNK)):
            piece = target[start: start + CHUNK]
            address, memory = self._room(piece.size)
            device.call(device.cu.cuMemcpyDtoHAsync(address, source + start, piece.size, device._stream),
                        "copying from the device")
            if events:
                device.record(events[number % 2])
                pending.append((piece, memory, events[number % 2]))
                if len(pending) == 2:
                    self._finish(*pending.pop(0))
            else:
                device.synchronize()
                piece[:] = memory
        for piece, memory, event in pending:
            self._finish(piece, memory, event)
        for event in events:
            device.call(device.cu.cuEventDestroy(event), "ending a copy")

    def _finish(self, piece: Array, memory: Array, event: Any) -> None:
        self.device.wait(event)
        piece[:] = memory


class DriverGraph:
    """Sequential steps as a CUDA graph. The parameters of a launch point to its arguments, so an update passes those
    that its node was made of."""

    def __init__(self, device: Driver, steps: Sequence[Step]) -> None:
        cu, self.device, self.steps = device.cu, device, steps
        self._graph = device.call(cu.cuGraphCreate(0), "making a graph")
        self._nodes: list[Any] = []
        self._parameters = [self._launch(step) if isinstance(step, Launch) else self._fill(step) for step in steps]
        for step, parameters in zip(steps, self._parameters):
            before = self._nodes[-1:]
            if isinstance(step, Launch):
                out = cu.cuGraphAddKernelNode(self._graph, before, len(before), parameters)
            else:
                out = cu.cuGraphAddMemsetNode(self._graph, before, len(before), parameters, device.context)
            self._nodes.append(device.call(out, "making a graph"))
        self._made = device.call(cu.cuGraphInstantiate(self._graph, 0), "making a graph")
        self._run = cu.cuGraphLaunch

    def _launch(self, step: Launch) -> Any:
        out = self.device.cu.CUDA_KERNEL_NODE_PARAMS()
        out.func = step.kernel
        out.gridDimX, out.gridDimY, out.gridDimZ = step.grid
        out.blockDimX, out.blockDimY, out.blockDimZ = step.block
        out.sharedMemBytes = step.shared
        out.kernelParams = step.parameters
        return out

    def _fill(self, step: Fill) -> Any:
        out = self.device.cu.CUDA_MEMSET_NODE_PARAMS()
        out.dst = self.device.cu.CUdeviceptr(ctypes.c_uint64.from_address(step.parameters).value)
        out.value, out.elementSize, out.width, out.height, out.pitch = step.value, step.width, step.count, 1, 0
        return out

    def update(self, number: int) -> None:
        device, step, node = self.device, self.steps[number], self._nodes[number]
        if isinstance(step, Launch):
            out = device.cu.cuGraphExecKernelNodeSetParams(self._made, node, self._parameters[number])
        else:
            out = device.cu.cuGraphExecMemsetNodeSetParams(self._made, node, self._fill(step), device.context)
        device.call(out, "changing a graph")

    def launch(self) -> None:
        if status := self._run(self._made, self.device._stream)[0]:
            raise failure(self.device.cu, status, "launching a graph")
