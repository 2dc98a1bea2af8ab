"""nccl4py's module of bindings, as far as mlc uses it, between fake devices: ranks are threads of this process.

As NCCL's, work is submitted to a stream and done by it later, in order; a message waits until the other rank receives
it, unless it is short, and a collective until all ranks come. What a stream does not wait for is not there yet, and
memory that is given away too early is overwritten: a missing order shows as wrong elements.
"""

from __future__ import annotations

import importlib.machinery
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np

from mlc.backends.cuda import devices
from mlc.frontend import eager
from tests.fake_device import FakeDevice

Array = np.ndarray[Any, Any]
EAGER = 16
"""Bytes of messages that are sent before their receiver is there."""


class RedOp(IntEnum):
    Sum, Prod, Max, Min, Avg = range(5)


class DataType(IntEnum):
    Int8, Uint8, Int32, Uint32, Int64, Uint64, Float16, Float32, Float64, Bfloat16, Float8e4m3, Float8e5m2 = range(12)


class Result(IntEnum):
    Success, InProgress = 0, 7


_NUMPY = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32, np.float64,
          ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
_COMBINE: list[Any] = [np.add, np.multiply, np.fmax, np.fmin, np.add]


class NCCLError(Exception):
    """The error of the bindings: `InvalidUsage (5): invalid usage`."""


class NumberOfGroup:
    def __init__(self, data: bytes = b"") -> None:
        self._data = data.ljust(128, b"\0")

    def __bytes__(self) -> bytes:
        return self._data

    @staticmethod
    def from_buffer(data: bytearray) -> NumberOfGroup:
        return NumberOfGroup(bytes(data))


class Aborted(Exception):
    """The communicator was aborted while its work waited."""


class World:
    """The ranks of a communicator, as each of them sees it."""

    def __init__(self, size: int) -> None:
        self.size, self.changed = size, threading.Condition()
        self.devices = dict[int, int]()
        self.collectives = defaultdict[int, dict[int, Any]](dict)          # by number, what each rank brings
        self.sent = defaultdict[tuple[int, int], deque[Any]](deque)        # arrays that wait for their receiver
        self.aborted = set[int]()                          # ranks that wait no longer

    def wait(self, rank: int, until: Callable[[], bool]) -> None:
        """Have a rank wait until something holds, with `changed` held."""
        while not until():
            if rank in self.aborted:
                raise Aborted
            self.changed.wait(0.05)


class Comm:
    """A rank of a communicator.

    busy   how often NCCL is still to say that it works on the last call
    freed  whether it has been given back, after which nothing may ask for it
    """

    def __init__(self, world: World, rank: int, device: StreamedDevice) -> None:
        self.world, self.rank, self.device = world, rank, device
        self.number, self.busy, self.freed = 0, 0, False


class Stream:
    """A thread that does what is submitted to it, in order, each after a while."""

    def __init__(self, delay: float) -> None:
        self.jobs, self.changed, self.delay = deque[Callable[[], None]](), threading.Condition(), delay
        self.errors: list[BaseException] = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.ended = False
        self.thread.start()

    def submit(self, job: Callable[[], None]) -> None:
        with self.changed:
            self.jobs.append(job)
            self.changed.notify_all()

    def end(self) -> None:
        """Do no more: what a test has left would write to memory that is another's by then."""
        with self.changed:
            self.ended = True
            self.jobs.clear()
            self.changed.notify_all()
        self.thread.join(1)

    def _run(self) -> None:
        while True:
            with self.changed:
                while not self.jobs and not self.ended:
                    self.changed.wait()
                if self.ended:
                    return
                job = self.jobs.popleft()
            time.sleep(self.delay)
            try:
                job()
            except Aborted:
                pass
            except BaseException as error:
                self.errors.append(error)


class StreamedDevice(FakeDevice):
    """A fake device that does what is submitted to its streams later; its own one is 7, the others are NCCL's.

    `delays` are the seconds before each job, on its own stream and on the others.
    """

    here = threading.local()
    made = list["StreamedDevice"]()
    delays = 0.0, 0.002

    def __init__(self, ordinal: int) -> None:
        super().__init__(ordinal)
        self.streams = {self.stream: Stream(self.delays[0])}
        self.made.append(self)

    def activate(self) -> None:
        self.here.device = self

    def submit(self, work: Callable[[], None]) -> None:
        self.streams[self.stream].submit(work)

    def end(self) -> None:
        for stream in self.streams.values():
            stream.end()

    # -- memory ---------------------------------------------------------------------------------------------------
    def upload(self, target: int, source: Array) -> None:
        self.uploads += 1
        content = source.reshape(-1).view(np.uint8).copy()
        self.submit(lambda: self.write(target, content))

    def download(self, target: Array, source: int) -> None:
        self.synchronize()
        super().download(target, source)

    def copy(self, target: int, source: int, size: int) -> None:
        self.submit(lambda: FakeDevice.copy(self, target, source, size))

    def fetch(self, target: int, source: int, size: int) -> None:
        self.submit(lambda: FakeDevice.fetch(self, target, source, size))

    # -- order ----------------------------------------------------------------------------------------------------
    def new_stream(self) -> int:
        self.streams[100 + len(self.streams)] = Stream(self.delays[1])
        return 99 + len(self.streams)

    def mark(self, stream: int) -> threading.Event:
        reached = threading.Event()
        self.streams[stream].submit(reached.set)
        return reached

    def hold(self, stream: int, mark: threading.Event) -> None:
        self.streams[stream].submit(lambda: assert_true(mark.wait(60), "a mark is never reached"))

    def reached(self, mark: threading.Event) -> bool:
        return mark.is_set()

    def synchronize(self, everything: bool = False) -> None:
        self.waits += 1
        for mark in [self.mark(stream) for stream in (self.streams if everything else [self.stream])]:
            mark.wait()
        if errors := [error for stream in self.streams.values() for error in stream.errors]:
            raise errors[0]


def assert_true(fact: bool, text: str) -> None:
    assert fact, text


class Bindings:
    """The module; `made` are the communicators, by rank and size, and `calls` what they were asked for."""

    RedOp, DataType, Result, NCCLError, UniqueId = RedOp, DataType, Result, NCCLError, NumberOfGroup

    def __init__(self) -> None:
        self.worlds = dict[bytes, World]()
        self.calls: list[str] = []
        self.made: list[tuple[int, int]] = []
        self.destroyed = self.aborts = 0
        self.background = 0                                # the status of what goes on in the background
        self.misuse: list[str] = []
        self._lock, self._thread, self._numbers = threading.Lock(), threading.local(), count()

    def get_version(self) -> int:
        return 22800

    # -- communicators --------------------------------------------------------------------------------------------
    def get_unique_id(self) -> NumberOfGroup:
        with self._lock:
            return NumberOfGroup(b"number %d" % next(self._numbers))

    def Config(self) -> Any:
        return SimpleNamespace(blocking=None)

    def comm_init_rank_config(self, nranks: int, comm_id: NumberOfGroup, rank: int, config: Any) -> Comm:
        assert config.blocking == 0
        device = StreamedDevice.here.device
        with self._lock:
            world = self.worlds.setdefault(bytes(comm_id), World(nranks))
            self.made.append((rank, nranks))
        with world.changed:
            world.devices[rank] = device.ordinal
        return Comm(world, rank, device)

    def comm_get_async_error(self, comm: Comm) -> int:
        self._used(comm)
        if len(set(comm.world.devices.values())) < len(comm.world.devices):
            return 5
        if len(comm.world.devices) < comm.world.size:
            return Result.InProgress
        comm.busy = max(0, comm.busy - 1)
        return Result.InProgress if comm.busy else self.background

    def check_status(self, status: int) -> None:
        if status == 5:
            raise NCCLError("InvalidUsage (5): invalid usage (run with NCCL_DEBUG=WARN for details)")
        if status not in (Result.Success, Result.InProgress):
            raise NCCLError(f"RemoteError ({status}): remote process exited or there was a network error")

    def comm_abort(self, comm: Comm) -> None:
        self._used(comm)
        self.aborts += 1
        comm.freed = True
        time.sleep(0.05)                                   # it waits for its other ranks
        with comm.world.changed:
            comm.world.aborted.add(comm.rank)
            comm.world.changed.notify_all()

    def comm_finalize(self, comm: Comm) -> None:
        self._used(comm)
        comm.busy = 2

    def comm_destroy(self, comm: Comm) -> None:
        self._used(comm)
        self.destroyed += 1
        comm.freed = True

    def _used(self, comm: Comm) -> None:
        if comm.freed:
            self.misuse.append(f"rank {comm.rank} uses a communicator that was given back")

    # -- collectives ----------------------------------------------------------------------------------------------
    def group_start(self) -> None:
        self._thread.waiting = []

    def group_end(self) -> None:
        waiting, self._thread.waiting = self._thread.waiting, None
        for comm, stream in dict.fromkeys((comm, stream) for comm, stream, *_ in waiting):
            jobs = [job for c, s, job in waiting if (c, s) == (comm, stream)]
            comm.device.streams[stream].submit(lambda jobs=jobs: self._all(jobs))

    def all_reduce(self, sendbuff: int, recvbuff: int, count: int, datatype: int, op: int, comm: Comm,
                   stream: int) -> None:
        self._collective("all_reduce", comm, stream, _view(comm, sendbuff, count, datatype),
                         _view(comm, recvbuff, count, datatype), lambda xs, rank: _combined(xs, op))

    def reduce(self, sendbuff: int, recvbuff: int, count: int, datatype: int, op: int, root: int, comm: Comm,
               stream: int) -> None:
        self._collective("reduce", comm, stream, _view(comm, sendbuff, count, datatype),
                         _view(comm, recvbuff, count, datatype),
                         lambda xs, rank: _combined(xs, op) if rank == root else None)

    def reduce_scatter(self, sendbuff: int, recvbuff: int, recvcount: int, datatype: int, op: int, comm: Comm,
                       stream: int) -> None:
        size = comm.world.size
        self._collective("reduce_scatter", comm, stream, _view(comm, sendbuff, recvcount * size, datatype),
                         _view(comm, recvbuff, recvcount, datatype),
                         lambda xs, rank: _combined(xs, op).reshape(size, -1)[rank])

    def all_gather(self, sendbuff: int, recvbuff: int, sendcount: int, datatype: int, comm: Comm, stream: int) -> None:
        self._collective("all_gather", comm, stream, _view(comm, sendbuff, sendcount, datatype),
                         _view(comm, recvbuff, sendcount * comm.world.size, datatype),
                         lambda xs, rank: np.concatenate(xs))

    def broadcast(self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, comm: Comm,
                  stream: int) -> None:
        self._collective("broadcast", comm, stream, _view(comm, sendbuff, count, datatype),
                         _view(comm, recvbuff, count, datatype), lambda xs, rank: xs[root])

    def send(self, sendbuff: int, count: int, datatype: int, peer: int, comm: Comm, stream: int) -> None:
        x, key = _view(comm, sendbuff, count, datatype), (comm.rank, peer)

        def begin() -> Callable[[], None]:
            few = x.nbytes <= EAGER
            message = SimpleNamespace(content=x.copy() if few else x, taken=few)
            with comm.world.changed:
                comm.world.sent[key].append(message)
                comm.world.changed.notify_all()

            def finish() -> None:
                with comm.world.changed:
                    comm.world.wait(comm.rank, lambda: message.taken)
            return finish

        self._submit("send", comm, stream, begin)

    def recv(self, recvbuff: int, count: int, datatype: int, peer: int, comm: Comm, stream: int) -> None:
        out, key = _view(comm, recvbuff, count, datatype), (peer, comm.rank)

        def begin() -> Callable[[], None]:
            def finish() -> None:
                with comm.world.changed:
                    comm.world.wait(comm.rank, lambda: bool(comm.world.sent[key]))
                    message = comm.world.sent[key].popleft()
                    assert message.content.size == out.size, "the receiver expects as much as is sent"
                    out[:] = message.content
                    message.taken = True
                    comm.world.changed.notify_all()
            return finish

        self._submit("recv", comm, stream, begin)

    def _collective(self, name: str, comm: Comm, stream: int, x: Array, out: Array,
                    result: Callable[[list[Array], int], Array | None]) -> None:
        number, world = comm.number, comm.world
        comm.number += 1

        def begin() -> Callable[[], None]:
            with world.changed:
                world.collectives[number][comm.rank] = name, x.copy()
                world.changed.notify_all()

            def finish() -> None:
                with world.changed:
                    world.wait(comm.rank, lambda: len(world.collectives[number]) == world.size)
                names, xs = zip(*(world.collectives[number][rank] for rank in range(world.size)))
                assert set(names) == {name}, f"the ranks are in {names}"
                if (found := result(list(xs), comm.rank)) is not None:
                    out[:] = found
            return finish

        self._submit(name, comm, stream, begin)

    def _submit(self, name: str, comm: Comm, stream: int, begin: Callable[[], Callable[[], None]]) -> None:
        assert StreamedDevice.here.device is comm.device, "the communicator's device is not the current one"
        self._used(comm)
        self.calls.append(name)
        comm.busy = 3
        if getattr(self._thread, "waiting", None) is not None:
            self._thread.waiting.append((comm, stream, begin))
        else:
            comm.device.streams[stream].submit(lambda: self._all([begin]))

    def _all(self, jobs: list[Callable[[], Callable[[], None]]]) -> None:
        begun = [begin() for begin in jobs]
        for finish in sorted(begun, key=lambda finish: finish.__qualname__.startswith("Bindings.send")):
            finish()                                       # messages of a group are all on their way at once


def _view(comm: Comm, address: int, size: int, datatype: int) -> Array:
    dtype = np.dtype(_NUMPY[datatype])
    return comm.device.bytes(address, size * dtype.itemsize).view(dtype) if size else np.empty(0, dtype)


def _combined(xs: list[Array], op: int) -> Array:
    total = xs[0]
    for x in xs[1:]:
        total = _COMBINE[op](total, x)
    return total / total.dtype.type(len(xs)) if op == RedOp.Avg else total


@contextmanager
def installed(count: int) -> Iterator[Bindings]:
    """Context with so many fake devices, between which a fake NCCL sends."""
    made, package, bindings = Bindings(), type(sys)("nccl"), type(sys)("nccl.bindings")
    package.__spec__ = importlib.machinery.ModuleSpec("nccl", None)
    bindings.nccl = made  # type: ignore[attr-defined]
    devices.substitute({i: StreamedDevice(i) for i in range(count)})
    try:
        with mock.patch.dict(sys.modules, {"nccl": package, "nccl.bindings": bindings, "nccl.bindings.nccl": made}):
            yield made
        assert not made.misuse
    finally:
        while StreamedDevice.made:
            StreamedDevice.made.pop().end()
        devices.substitute(None)
        eager._kernels.clear()                             # their devices no longer exist
        eager._by_shape.clear()
