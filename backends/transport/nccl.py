"""NCCL's communicators: what carries the elements of arrays between the GPUs of several ranks.

A communicator has one GPU of each rank of a group. It is made when the group first needs it: the ranks meet by a number
that the first one sends over the transport of the job, which also carries everything that is no element: what the ranks
call, objects, errors.

NCCL's work is submitted to a stream of the device, and is not done when a call returns. A GPU whose work waits for a
rank that never comes would wait for ever, and whoever reads a result with it. So no call of NCCL blocks
(`Config.blocking`) but those that end a communicator, and a thread watches what was submitted: when a rank fails, or
work takes longer than its time-out, it aborts the communicators, and every wait for the device raises the error from
then on.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mlc.backends.transport import collectives
from mlc.backends.transport.errors import RankError, ranks_text
from mlc.backends.transport.launchers import check_installed
from mlc.backends.transport.transport import NumberedRanks, order_of
from mlc.ir.diag import BackendError

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
_CHECK_EVERY, _POLL_EVERY = 0.05, 2e-4
"""Seconds between two looks at what was submitted, and at what NCCL does in the background of a call."""
_LATE, _LEAVING = 1.0, 30.0
"""Seconds in which work may still end after a rank has left, and those that ending a communicator may take."""
Work = Callable[[], None]


class Span(NamedTuple):
    """A piece of a device's memory."""

    address: int
    bytes: int


class Submitted:
    """Work of NCCL on its way.

    name          what it is
    communicator  whose it is
    deadline      when it is late
    arrays        those that it reads and writes, which are held until it is done
    """

    def __init__(self, name: str, communicator: Communicator, deadline: float, arrays: Sequence[Any]) -> None:
        self.name, self.communicator, self.deadline = name, communicator, deadline
        self.arrays: Sequence[Any] = arrays
        self._mark = communicator.device.mark(communicator.stream)
        self._lock = threading.Lock()

    def done(self) -> bool:
        """Whether it is done."""
        with self._lock:
            if self._mark is not None and self.communicator.device.reached(self._mark):
                self._mark, self.arrays = None, ()
            return self._mark is None

    def join(self) -> None:
        """Have later work of the device come after it."""
        device = self.communicator.device
        self.communicator.owner.check()
        device.activate()
        with self._lock:
            if self._mark is not None:
                device.hold(device.stream, self._mark)


def is_available() -> bool:
    """Whether nccl4py is installed and finds NCCL."""
    try:
        _library()
    except RankError:
        return False
    return True


def _library() -> Any:
    """The bindings, with NCCL loaded; RankError if either is missing (MLC0975)."""
    check_installed("nccl")
    from nccl.bindings import nccl  # type: ignore[import-not-found, import-untyped, unused-ignore]
    try:
        nccl.get_version()                                 # loads the library
    except RuntimeError as error:
        raise RankError(f"NCCL cannot be loaded: {str(error).splitlines()[0]}", code="MLC0975",
                        hint="pip install 'mlc[nccl]' brings it, or put the folder of libnccl.so.2 into "
                             "LD_LIBRARY_PATH") from None
    return nccl


class Communicators:
    """The communicators of one rank, and the thread that watches them.

    failure     why there are none any more
    told        whether that has been raised
    directions  the messages to other ranks, and from them (gpu_messages.py)
    """

    def __init__(self, transport: Transport) -> None:
        self.library = _library()
        self.transport = transport
        self.failure: RankError | None = None
        self.told = False
        self.directions: dict[tuple[int, int], Direction] = {}
        self._collective: dict[Group, Communicator] = {}
        self._made: list[Communicator] = []
        self._ending: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._watcher: threading.Thread | None = None
        self._closed = False

    def collective(self, group: Group, memory: DeviceMemory, agree: Callable[[], Any] = lambda: None) -> Communicator:
        """The communicator of the collectives of a group, which its first call makes; all its ranks call this together.

        agree  waits until they do, in a program in which some may not
        """
        if (found := self._collective.get(group)) is None:
            agree()
            memory.device.activate()
            found = self._collective[group] = self.make(group, memory, memory.device.new_stream(), "collectives")
        if found.memory is not memory:
            raise RankError(f"an array is on cuda:{memory.device.ordinal}, and this rank's part in the collectives of "
                            f"ranks {list(group)} is that of cuda:{found.device.ordinal}", code="MLC0976",
                            hint="use one GPU for each rank of a group")
        return found

    def make(self, group: Group, memory: DeviceMemory, stream: int, purpose: str, tag: int | None = None
             ) -> Communicator:
        """A further communicator of some ranks, which call this together; `tag` is that of the message for it."""
        self.check()
        made = Communicator(self, group, memory, stream, purpose)
        with self._changed:
            self._made.append(made)
        try:
            made.meet(tag)
        except BaseException:
            with self._changed:
                self._made.remove(made)
            made.abort()
            raise
        return made

    def check(self) -> None:
        """Raise the error that has ended the communicators."""
        if self.failure is not None:
            self.told = True
        self.check_quietly()

    def check_quietly(self) -> None:
        """The same in a thread whose errors may not be seen."""
        if self.failure is not None:
            raise self.failure.at(self.failure.loc)

    def check_told(self) -> None:
        """Raise the error if nobody has seen it."""
        if not self.told:
            self.check()

    @contextmanager
    def explained(self, what: str, group: Group) -> Iterator[None]:
        """Context whose errors of NCCL are RankErrors (MLC0999)."""
        try:
            yield
        except self.library.NCCLError as error:
            raise RankError(f"NCCL, {what}: {str(error).splitlines()[0]}", code="MLC0999", ranks=group,
                            hint="each rank needs a GPU of its own, as that of mlc.distributed.get_node_local_rank(); "
                                 "NCCL_DEBUG=WARN has NCCL say more") from None

    def watch(self) -> None:
        """Have something that was submitted be watched."""
        with self._changed:
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name=f"NCCL of rank {self.transport.rank}",
                                                 daemon=True)
                self._watcher.start()
            self._changed.notify()

    def close(self) -> None:
        """Leave all groups, once what was submitted is done on all of their ranks, or has failed."""
        try:
            for direction in self.directions.values():
                direction.stop()
            while self.failure is None and any(c.is_running() for c in self._made):
                time.sleep(_CHECK_EVERY)
            if self.failure is None:
                self._wait_for_others()
            self._stop_watching()
            for communicator in sorted(self._made, key=lambda c: (order_of(c.group), c.purpose)):  # alike on all ranks
                if self.failure is None:
                    communicator.close()
        except BackendError as error:                      # of the device, of NCCL, or of another rank
            self._stop_watching()
            self.fail(error if isinstance(error, RankError) else RankError(error.message, error.code))
        for thread in self._ending:
            thread.join(_LEAVING)
        for communicator in self._made:
            self.told |= communicator.memory.failures.told
            communicator.memory.failures.recover()         # whoever goes on does so without the other ranks
        self._made.clear()

    def _wait_for_others(self) -> None:
        """Wait until all other ranks have done their parts: what this one has sent may not be there yet.

        They may have much to do that is not for all ranks, so there is no time-out.
        """
        for ranks in sorted({c.group if isinstance(c.group, NumberedRanks) else tuple(sorted(c.group))
                             for c in self._made}, key=order_of):
            self.transport.barrier(threading.TIMEOUT_MAX, ranks, "destroy_process_group()")

    def _stop_watching(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._watcher is not None:
            self._watcher.join()

    def fail(self, error: RankError) -> None:
        """End all communicators, and every wait for their devices, with an error.

        Aborting one waits for its other ranks, which are told first, and for each by itself.
        """
        with self._changed:
            if self.failure is not None:
                return
            self.failure = error
            made = list(self._made)
        for communicator in made:
            communicator.memory.failures.fail(error)
        self.transport.abort(error.message)
        for communicator in made:
            self._ending.append(threading.Thread(target=communicator.abort, daemon=True))
            self._ending[-1].start()

    def _watch(self) -> None:
        doubtful: dict[Submitted, float] = {}              # since when work seems not to end
        while True:
            try:
                with self._changed:
                    while not self._closed and not any(c.is_running() for c in self._made):
                        self._changed.wait()
                    if self._closed:
                        return
                    made = list(self._made)
                firsts = [first for c in made if (first := c.first()) is not None]
                wrong = next((error for first in firsts if (error := self._wrong(first, doubtful)) is not None), None)
            except Exception as error:
                self.fail(RankError(f"NCCL cannot be watched any longer: {error}", code="MLC0999"))
                raise
            if wrong is not None:
                self.fail(wrong)
                return
            doubtful = {first: doubtful[first] for first in firsts if first in doubtful}
            time.sleep(_CHECK_EVERY)

    def _wrong(self, first: Submitted, doubtful: dict[Submitted, float]) -> RankError | None:
        """The error if the first work of a communicator will not end."""
        group, t, now = first.communicator.group, self.transport, time.monotonic()
        if now > first.deadline:
            return late(first.name, group)
        try:
            for rank in group:
                if rank != t.rank:
                    t.check(rank)
            first.communicator.check()
        except RankError as error:
            since = doubtful.setdefault(first, now)
            return error if now - since > _LATE else None
        doubtful.pop(first, None)
        return None


def late(name: str, group: Group) -> RankError:
    """The error of work to which not all ranks of a group have come in time."""
    return RankError(f"{name}: {ranks_text(group)} have not all come to it in time", code="MLC0971", ranks=group,
                     hint="all ranks of the group have to make the same calls; a longer timeout gives slow ones time")


class Communicator:
    """The ranks of a group with one GPU of each, as one of them sees it.

    memory    the memory of its GPU
    position  that of this rank
    stream    the one on which it communicates, beside what the device computes
    purpose   what it is for: a group has one for each
    """

    def __init__(self, owner: Communicators, group: Group, memory: DeviceMemory, stream: int, purpose: str) -> None:
        self.group, self.memory, self.device, self.owner, self.stream = group, memory, memory.device, owner, stream
        self.position, self.purpose = collectives.position(owner.transport, group), purpose
        self._nccl = owner.library
        self._handle: Any = None
        self._lock = threading.Lock()                      # of the handle: it is not used while it is given back
        self._running, self._looking = deque[Submitted](), threading.Lock()

    def meet(self, tag: int | None = None) -> None:
        """Connect the GPUs; all ranks call this together."""
        t, nccl = self.owner.transport, self._nccl
        number = np.zeros(128, np.uint8)
        with self.owner.explained("meeting the other ranks", self.group):
            if self.position == 0:
                number[:] = np.frombuffer(bytes(nccl.get_unique_id()), np.uint8)
            number = collectives.broadcast(t, self.group, number, 0, tag=tag)
            config = nccl.Config()
            config.blocking = 0
            self.device.activate()
            self._handle = nccl.comm_init_rank_config(len(self.group), nccl.UniqueId.from_buffer(bytearray(number)),
                                                      self.position, config)
        self._settle("meeting the other ranks", t.deadline(None))

    # -- collectives ------------------------------------------------------------------------------------------------
    def all_reduce(self, x: DeviceArray, out: DeviceArray, kind: str) -> Work:
        """The combination of the arrays of all ranks, on each. As all of these: work for `submit`."""
        count, type, operation = self._reduction(x, kind)
        return lambda: self._nccl.all_reduce(x.address, out.address, count, type, operation, self._handle, self.stream)

    def reduce(self, x: DeviceArray, out: DeviceArray, kind: str, root: int) -> Work:
        """The same at the root; what others have in `out` is not defined."""
        count, type, operation = self._reduction(x, kind)
        return lambda: self._nccl.reduce(x.address, out.address, count, type, operation, root, self._handle,
                                         self.stream)

    def reduce_scatter(self, x: DeviceArray, out: DeviceArray, kind: str) -> Work:
        """The combination of block p of all ranks, at position p; the blocks lie one after another."""
        count, type, operation = self._reduction(out, kind)
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

    def submit(self, name: str, work: Work, arrays: Sequence[Any], timeout: float, after: Any) -> Submitted:
        """Submit work that reads and writes arrays, after a mark of the device.

        It may wait for other ranks for so many seconds.
        """
        deadline = time.monotonic() + timeout
        self.device.activate()
        with self._open(), self.owner.explained(name, self.group):
            self.device.hold(self.stream, after)
            work()
        self._settle(name, deadline)
        submitted = Submitted(name, self, deadline, arrays)
        self._running.append(submitted)
        self.owner.watch()
        return submitted

    # -- how it is ---------------------------------------------------------------------------------------------------
    def first(self) -> Submitted | None:
        """The first work that is not done."""
        with self._looking:
            while self._running and self._running[0].done():
                self._running.popleft()
            return self._running[0] if self._running else None

    def is_running(self) -> bool:
        """Whether some work is not done."""
        return self.first() is not None

    def check(self) -> None:
        """RankError if NCCL reports one."""
        with self._open(), self.owner.explained("working in the background", self.group):
            self._nccl.check_status(self._nccl.comm_get_async_error(self._handle))

    def abort(self) -> None:
        """End all work at once; its results are not defined."""
        with self._lock:
            handle, self._handle = self._handle, None
        if handle is not None:
            with suppress(self._nccl.NCCLError):           # it had failed, and is of no use any more
                self._nccl.comm_abort(handle)

    def close(self) -> None:
        """Leave the group, when all work is done."""
        self.device.activate()
        with self._open(), self.owner.explained("leaving the other ranks", self.group):
            self._nccl.comm_finalize(self._handle)
        self._settle("leaving the other ranks", time.monotonic() + _LEAVING, together=False)
        with self._open(), self.owner.explained("leaving the other ranks", self.group):
            handle, self._handle = self._handle, None
            self._nccl.comm_destroy(handle)

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Context in which the handle stays; raises the error that has ended the communicators."""
        with self._lock:
            self.owner.check_quietly()
            if self._handle is None:
                raise RankError("the communicator has been given back", code="MLC0974", ranks=self.group,
                                hint="call collectives before destroy_process_group()")
            yield

    def _settle(self, name: str, deadline: float, together: bool = True) -> None:
        """Wait until NCCL has taken a call, which it may do in the background, as while it connects ranks.

        together  whether it takes the others: then it fails when one has left
        """
        t = self.owner.transport
        while True:
            with self._open(), self.owner.explained(name, self.group):
                status = int(self._nccl.comm_get_async_error(self._handle))
                if status != self._nccl.Result.InProgress:
                    self._nccl.check_status(status)
                    return
            try:
                if time.monotonic() > deadline:
                    raise late(name, self.group)
                for rank in self.group:
                    if rank != t.rank and together:
                        t.check(rank)
            except RankError as error:
                self.owner.fail(error)
                self.owner.check_quietly()
            time.sleep(_POLL_EVERY)

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
