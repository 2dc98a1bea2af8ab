"""NCCL's communicators: what carries the elements of arrays between the GPUs of several ranks.

A communicator has one GPU of each rank of a group. It is made when the group first needs it: the ranks meet by a number
that the first one sends over the transport of the job, which also carries everything that is no element: what the ranks
call, objects, errors.

NCCL's work is submitted to a stream of the device, and is not done when a call returns. A GPU whose work waits for a
rank that never comes would wait for ever, and whoever reads a result with it. So a thread watches what was submitted:
when a rank fails, or work takes longer than its time-out, it aborts the communicators, and every wait for the device
raises the error from then on.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mlc.backends.transport import collectives
from mlc.backends.transport.errors import RankError, ranks_text
from mlc.backends.transport.launchers import check_installed

if TYPE_CHECKING:
    from mlc.backends.cuda.memory import DeviceArray, DeviceMemory
    from mlc.backends.transport.gpu_messages import Direction
    from mlc.backends.transport.transport import Group, Transport

_OPERATIONS = {"add": "Sum", "mul": "Prod", "max": "Max", "min": "Min", "mean": "Avg"}
_TYPES = {"int8": "Int8", "uint8": "Uint8", "int32": "Int32", "uint32": "Uint32", "int64": "Int64", "uint64": "Uint64",
          "float16": "Float16", "float32": "Float32", "float64": "Float64", "bfloat16": "Bfloat16",
          "float8_e4m3fn": "Float8e4m3", "float8_e5m2": "Float8e5m2"}
"""NCCL's names of the element types that it combines."""
_COMPLEX = {"complex64": "float32", "complex128": "float64"}
_LOGICAL = {"or": "max", "max": "max", "and": "min", "min": "min"}
"""How it combines truth values, which are bytes of 0 or 1."""
_CHECK_EVERY, _LATE = 0.05, 1.0
"""Seconds between two looks at what was submitted, and those in which it may still end after a rank has left."""


Work = Callable[[], None]


class Span(NamedTuple):
    """A piece of a device's memory."""

    address: int
    bytes: int


class _Submitted(NamedTuple):
    """Work of NCCL: what it is, the mark after it, when it is late, and the arrays that it reads and writes."""

    name: str
    mark: Any
    deadline: float
    communicator: Communicator
    arrays: tuple[Any, ...]


class Communicators:
    """The communicators of one rank, by group, and the thread that watches them.

    failure     why there are none any more
    directions  the messages to other ranks, and from them (gpu_messages.py)
    """

    def __init__(self, transport: Transport) -> None:
        check_installed("nccl")
        from nccl.bindings import nccl  # type: ignore[import-not-found, import-untyped, unused-ignore]
        self.library: Any = nccl
        try:
            nccl.get_version()                             # loads the library
        except RuntimeError as error:
            raise RankError(f"NCCL cannot be loaded: {str(error).splitlines()[0]}", code="MLC0975",
                            hint="pip install 'mlc[nccl]' brings it, or put the folder of libnccl.so.2 into "
                                 "LD_LIBRARY_PATH") from None
        self.transport = transport
        self.failure: RankError | None = None
        self.directions: dict[tuple[int, int], Direction] = {}
        self._collective: dict[Group, Communicator] = {}
        self._made: list[Communicator] = []
        self._running = deque[_Submitted]()
        self._doubtful: float | None = None                # since when the first of these seems not to end
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._watcher: threading.Thread | None = None
        self._closed = False

    def collective(self, group: Group) -> Communicator | None:
        """The communicator of the collectives of a group, if there is one."""
        return self._collective.get(group)

    def make_collective(self, group: Group, memory: DeviceMemory) -> Communicator:
        """Make that with this GPU; all ranks of the group call this together."""
        memory.device.activate()
        made = self._collective[group] = self.make(group, memory, memory.device.new_stream())
        return made

    def make(self, group: Group, memory: DeviceMemory, stream: int) -> Communicator:
        """A further communicator of some ranks, which call this together."""
        self.check()
        with self.explained("meeting the other ranks", group):
            made = Communicator(self, group, memory, stream)
        self._made.append(made)
        return made

    def check(self) -> None:
        """Raise the error that has ended the communicators."""
        if self.failure is not None:
            raise self.failure.at(self.failure.loc)

    @contextmanager
    def explained(self, what: str, group: Group) -> Iterator[None]:
        """Context whose errors of NCCL are RankErrors (MLC0999)."""
        try:
            yield
        except self.library.NCCLError as error:
            raise RankError(f"NCCL, {what}: {str(error).splitlines()[0]}", code="MLC0999", ranks=group,
                            hint="each rank needs a GPU of its own, as that of mlc.distributed.get_node_local_rank(); "
                                 "NCCL_DEBUG=WARN has NCCL say more") from None

    def watch(self, submitted: _Submitted) -> None:
        """Watch work that was just submitted; its arrays are held until it is done."""
        with self._lock:
            self._drop_finished()
            self._running.append(submitted)
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name=f"NCCL of rank {self.transport.rank}",
                                                 daemon=True)
                self._watcher.start()
            self._work.notify()

    def close(self) -> None:
        """Leave all groups, once what was submitted is done, or has failed."""
        while self._is_running():
            time.sleep(_CHECK_EVERY)
        with self._lock:
            self._closed = True
            self._work.notify()
        if self.failure is None:
            for communicator in self._made:
                communicator.close()
        self._made.clear()

    def _is_running(self) -> bool:
        with self._lock:
            self._drop_finished()
            return bool(self._running)

    def fail(self, error: RankError) -> None:
        """End all communicators, and every wait for their devices, with an error."""
        with self._lock:
            if self.failure is not None:
                return
            self.failure = error
            self._running.clear()
        for communicator in self._made:                    # their memory fails first: aborting ends the work on it
            communicator.memory.failures.fail(error)
            communicator.abort()
        self.transport.abort(error.message)

    def _drop_finished(self) -> None:
        while self._running and self._running[0].communicator.finished(self._running[0].mark):
            self._running.popleft()
            self._doubtful = None

    def _watch(self) -> None:
        while True:
            with self._lock:
                while not self._running and not self._closed:
                    self._work.wait()
                if self._closed:
                    return
                self._drop_finished()
                first = self._running[0] if self._running else None
            if first is not None and (error := self._wrong(first)) is not None:
                self.fail(error)
                return
            time.sleep(_CHECK_EVERY)

    def _wrong(self, first: _Submitted) -> RankError | None:
        """The error if the work that was submitted first will not end."""
        group, t, now = first.communicator.group, self.transport, time.monotonic()
        if now > first.deadline:
            return RankError(f"{first.name}: {ranks_text(group)} have not all come to it in time", code="MLC0971",
                             ranks=group, hint="all ranks of the group have to make the same calls; a longer timeout "
                                               "gives slow ones time")
        try:
            for rank in group:
                if rank != t.rank:
                    t.check(rank)
            with self.explained(first.name, group):
                self.library.check_status(first.communicator.state())
        except RankError as error:
            self._doubtful = self._doubtful or now
            return error if now - self._doubtful > _LATE else None
        return None


class Communicator:
    """The ranks of a group with one GPU of each, as one of them sees it.

    memory    the memory of its GPU
    position  that of this rank
    stream    the one on which it communicates, beside what the device computes
    """

    def __init__(self, owner: Communicators, group: Group, memory: DeviceMemory, stream: int) -> None:
        t, nccl = owner.transport, owner.library
        self.group, self.memory, self.device, self._owner, self.stream = group, memory, memory.device, owner, stream
        self.position = collectives.position(t, group)
        number = np.zeros(128, np.uint8)
        if self.position == 0:
            number[:] = np.frombuffer(bytes(nccl.get_unique_id()), np.uint8)
        number = collectives.broadcast(t, group, number, 0)
        self.device.activate()
        self._handle = nccl.comm_init_rank(len(group), nccl.UniqueId.from_buffer(bytearray(number)), self.position)

    # -- collectives ------------------------------------------------------------------------------------------------
    def all_reduce(self, x: DeviceArray, out: DeviceArray, kind: str) -> Work:
        """The combination of the arrays of all ranks, on each. As all of these: work for `submit`."""
        count, type, operation = self._reduction(x, kind)
        return lambda: self._nccl.all_reduce(x.address, out.address, count, type, operation, self._handle,
                                                    self.stream)

    def reduce(self, x: DeviceArray, out: DeviceArray, kind: str, root: int) -> Work:
        """The same at the root; what others have in `out` is not defined."""
        count, type, operation = self._reduction(x, kind)
        return lambda: self._nccl.reduce(x.address, out.address, count, type, operation, root, self._handle,
                                                self.stream)

    def reduce_scatter(self, x: DeviceArray, out: DeviceArray, kind: str) -> Work:
        """The combination of block p of all ranks, at position p; the blocks lie one after another."""
        _, type, operation = self._reduction(x, kind)
        count, *_ = self._reduction(out, kind)
        return lambda: self._nccl.reduce_scatter(x.address, out.address, count, type, operation, self._handle,
                                                        self.stream)

    def all_gather(self, x: DeviceArray, out: DeviceArray) -> Work:
        """The arrays of all ranks, one after another by position."""
        return lambda: self._nccl.all_gather(x.address, out.address, x.nbytes, self._bytes, self._handle, self.stream)

    def broadcast(self, xs: Sequence[DeviceArray], outs: Sequence[DeviceArray], root: int) -> Work:
        """The arrays of the root, on each rank."""
        def work() -> None:
            with self._together():
                for x, out in zip(xs, outs):
                    self._nccl.broadcast(x.address, out.address, x.nbytes, self._bytes, root, self._handle, self.stream)
        return work

    def exchange(self, sent: Sequence[tuple[int, Span]], received: Sequence[tuple[int, Span]]) -> Work:
        """Send pieces of memory to positions, and receive others from positions, all at once.

        Those between two positions arrive in the order in which they are named.
        """
        def work() -> None:
            with self._together():
                for to, span in sent:
                    self._nccl.send(span.address, span.bytes, self._bytes, to, self._handle, self.stream)
                for source, span in received:
                    self._nccl.recv(span.address, span.bytes, self._bytes, source, self._handle, self.stream)
        return work

    def submit(self, name: str, work: Work, arrays: Sequence[Any], timeout: float) -> None:
        """Submit work that reads and writes arrays; it may wait for other ranks for so many seconds."""
        owner = self._owner
        owner.check()
        self.device.activate()
        with owner.explained(name, self.group):
            work()
        owner.watch(_Submitted(name, self.device.mark(self.stream), time.monotonic() + timeout, self, tuple(arrays)))

    def join(self) -> None:
        """Have later work of the device come after what was submitted."""
        self._owner.check()
        self.device.activate()
        self.device.await_stream(self.stream)

    # -- how it is ---------------------------------------------------------------------------------------------------
    def finished(self, mark: Any) -> bool:
        """Whether the work before a mark is done."""
        return self.device.reached(mark)

    def state(self) -> int:
        """NCCL's status of what has gone on in the background."""
        return int(self._nccl.comm_get_async_error(self._handle))

    def abort(self) -> None:
        """End all work at once; its results are not defined."""
        self._nccl.comm_abort(self._handle)

    def close(self) -> None:
        """Leave the group once all work is done."""
        self.device.activate()
        self._nccl.comm_destroy(self._handle)

    @property
    def _nccl(self) -> Any:
        return self._owner.library

    @property
    def _bytes(self) -> int:
        return int(self._nccl.DataType.Uint8)

    @contextmanager
    def _together(self) -> Iterator[None]:
        self._nccl.group_start()
        try:
            yield
        finally:
            self._nccl.group_end()

    def _reduction(self, x: DeviceArray, kind: str) -> tuple[int, int, int]:
        """Number and type of the elements that NCCL combines, and its operation."""
        type, kind, factor = combined(x.dtype, kind)
        return (x.size * factor, int(getattr(self._nccl.DataType, _TYPES[type])),
                int(getattr(self._nccl.RedOp, _OPERATIONS[kind])))


def combined(dtype: np.dtype[Any], kind: str) -> tuple[str, str, int]:
    """As what NCCL combines elements: their type, how, and how many an element is; RankError (MLC0973) if not at all.

    A complex number is two floats, and only their sum is that of its parts.
    """
    name = dtype.name
    if name == "bool" and kind in _LOGICAL:
        return "uint8", _LOGICAL[kind], 1
    if name in _COMPLEX and kind in ("add", "mean"):
        return _COMPLEX[name], kind, 2
    if name in _TYPES and kind in _OPERATIONS:
        return name, kind, 1
    raise RankError(f"NCCL has no {kind} of {name} elements", code="MLC0973",
                    hint="convert the tensor first (x.int(), x.float()), or combine copies in the CPU's memory")


def communicators(t: Transport) -> Communicators:
    """Those of a rank; RankError (MLC0975) if nccl4py is not installed."""
    if t.nccl is None:
        t.nccl = Communicators(t)
    return t.nccl
