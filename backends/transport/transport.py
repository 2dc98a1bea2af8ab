"""Messages of bytes between the ranks of a job: what MPI, gloo and the threads of a process have in common.

A message goes from one rank to another under a tag; those with equal source and tag arrive in the order of the calls.
Sending and receiving return at once with a request, and whoever waits for it, waits at most for a time. A rank that
fails says so to the others by `abort`, which ends their waiting with an error of the same message.
"""

from __future__ import annotations

import functools
import threading
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlc.backends.cpu.threads import processors
from mlc.backends.transport.errors import RankError, timed_out
from mlc.backends.transport.pending import Handle, Worker
from mlc.backends.transport.traffic import Traffic

if TYPE_CHECKING:
    from mlc.backends.transport.nccl import Communicators

Array = NDArray[Any]
Group = tuple[int, ...]
"""Ranks by their numbers in the job, in the order of their positions: of all, or of a group of a mesh."""
R = TypeVar("R")
DEFAULT_TIMEOUT = 1800.0
"""Seconds, as of PyTorch's process groups."""
SEQUENCE_BITS, GROUP_BITS = 16, 9
CALL_BYTES = 512
"""Bytes of the message before a collective, that says which one it is."""
USER_TAGS, USER_BITS = 1 << (SEQUENCE_BITS + GROUP_BITS), 19
"""Tags of collectives are below, those of messages in process groups from here on, by the group and its own tag."""
LARGEST_TAG = (1 << USER_BITS) - 1
"""The largest tag that a program may choose."""
MESSAGE_TAGS = USER_TAGS + (1 << (USER_BITS + GROUP_BITS))
"""Tags of messages within compiled programs are this plus their number."""
MEETING_TAGS = MESSAGE_TAGS + (1 << 27)
"""Tags by which two ranks meet for the messages of one direction between them, and of the other."""


class NumberedRanks(Group):
    """The ranks of a process group, which its number tells apart from other groups of the same ranks.

    number  from 1 on; all ranks of the job number groups alike
    """

    number: int

    def __new__(cls, ranks: Group, number: int) -> NumberedRanks:
        made = super().__new__(cls, ranks)
        made.number = number
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberedRanks) and self.number == other.number and super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.number, *self))


def order_of(group: Group) -> tuple[Group, int]:
    """A key by which all ranks sort groups alike."""
    return tuple(group), group.number if isinstance(group, NumberedRanks) else 0


class Request(Protocol):
    """A message on its way; one whose `done` does not tell before it is waited for has `polls = False`."""

    def done(self) -> bool:
        """Whether the message has been sent or received; never blocks, and raises if it never will be."""

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the memory of a sent message may change, or that of a received one holds it.

        `TimeoutError` after `timeout` seconds, `RankError` if the other rank has ended or a rank aborted the job.
        """


class Transport(ABC):
    """The messages of one rank.

    backend     the name of what carries them: mpi, gloo, threads
    rank, size  which of how many ranks this is
    timeout     seconds that a collective waits if it is given no others
    nccl        what carries the elements of arrays on GPUs, once there are some (nccl.py)
    groups      the number of process groups that the job has made, besides that of all ranks
    """

    backend = ""

    def __init__(self, rank: int, size: int, timeout: float = DEFAULT_TIMEOUT) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self.traffic = Traffic()
        self.nccl: Communicators | None = None
        self.groups = 0
        self._sequences: dict[Group, int] = {}
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._thread = threading.get_ident()

    @abstractmethod
    def send(self, to: int, tag: int, array: Array) -> Request:
        """Start to send the bytes of a contiguous array, which must not change before the request is done."""

    @abstractmethod
    def receive(self, source: int, tag: int, into: Array) -> Request:
        """Start to receive a message of exactly the bytes of a contiguous array, which it overwrites."""

    @abstractmethod
    def abort(self, message: str) -> None:
        """End the waiting of all ranks, now and later, with an error of this message."""

    @abstractmethod
    def check(self, rank: int) -> None:
        """RankError if another rank has left or failed, or a rank has aborted the job."""

    @abstractmethod
    def close(self) -> None:
        """Leave the job: a rank that waits for this one gets an error."""
        if self.nccl is not None:
            if self._worker is not None:
                self._worker.finish()                      # others wait for what it submits
            self.nccl.close()
        if self._worker is not None:
            self._worker.stop()

    def leave(self) -> None:
        """Leave the job; raises the error of work in the background that nobody has seen."""
        self.close()
        if self.nccl is not None:
            self.nccl.check_told()

    @property
    def processors(self) -> int:
        """The number of processors that the ranks of this host share."""
        return processors()

    def end_job(self) -> None:
        """End the processes of all ranks; nothing to do where the launcher does that when one fails."""
        return

    def next_tag(self, group: Group) -> int:
        """The tag of this rank's next collective of a group; the same number on each, if they call in one order."""
        with self._lock:
            number = self._sequences[group] = self._sequences.get(group, -1) + 1
        return _group_bits(group) | number & ((1 << SEQUENCE_BITS) - 1)

    def start(self, name: str, work: Callable[[], R]) -> Handle[R]:
        """Run a collective in the background: one thread runs those that were started, in their order."""
        with self._lock:
            if self._worker is None:
                self._worker = Worker(f"collectives of rank {self.rank}")
            handle = Handle(name, work, self._worker.awaited)
            self._worker.submit(handle)
        return handle

    def in_order(self, name: str, work: Callable[[], R]) -> R:
        """The result of work that comes after all that was started in the background."""
        return work() if self._is_idle() else self.start(name, work).wait()

    def _is_idle(self) -> bool:
        return self._worker is None or self._worker.is_idle()

    def may_spin(self) -> bool:
        """Whether this thread may poll without naps: no other one of its rank computes or runs a collective now."""
        worker = self._worker
        if threading.get_ident() == self._thread:
            return self._is_idle()
        return worker is not None and worker.is_this_thread() and bool(worker.awaited)

    def barrier(self, timeout: float | None = None, group: Group | None = None, call: str = "") -> None:
        """Wait until all ranks (of a group) have called this; the error of a time-out names those that have not.

        call  what other ranks are told if they call a collective instead, and this one then, too
        """
        group = tuple(range(self.size)) if group is None else group
        tag, note = self.next_tag(group), np.frombuffer(call.encode().ljust(CALL_BYTES if call else 0, b"\0"), np.uint8)
        others = [rank for rank in group if rank != self.rank]
        found = {rank: np.empty_like(note) for rank in others}
        requests = {rank: self.receive(rank, tag, theirs) for rank, theirs in found.items()}
        sent = {rank: self.send(rank, tag, note) for rank in others}
        deadline = self.deadline(timeout)
        wait_all("barrier", requests, deadline)
        wait_all("barrier", sent, deadline)
        for rank, theirs in found.items():
            if not np.array_equal(theirs, note):
                text = theirs.tobytes().split(b"\0")[0].decode("utf-8", "replace")
                raise RankError(f"rank {self.rank} calls {call}, and rank {rank} {text}", code="MLC0972", ranks=[rank],
                                hint="all ranks of a group make the same calls, in the same order")

    def deadline(self, timeout: float | None) -> float:
        """The end of a time-out that starts now, by `time.monotonic`."""
        return time.monotonic() + (self.timeout if timeout is None else timeout)


@functools.cache
def _group_bits(group: Group) -> int:
    """The bits that tell the tags of groups with ranks in common apart as far as they can: one half for each kind.

    Where they cannot, those of a mesh still arrive in order: all ranks run one program. Of process groups, one in 256
    has the bits of a given one, and the messages before collectives tell the groups apart.
    """
    half = 1 << (GROUP_BITS - 1)
    if isinstance(group, NumberedRanks):
        return (group.number % half) << SEQUENCE_BITS
    return (half + zlib.crc32(np.asarray(group, np.int64).tobytes()) % half) << SEQUENCE_BITS


def message_tag(tag: int, group: Group) -> int:
    """The tag of a message that a program sends within a process group; `tag` is `LARGEST_TAG` at most."""
    number = 1 + group.number % ((1 << GROUP_BITS) - 1) if isinstance(group, NumberedRanks) else 0
    return USER_TAGS + (number << USER_BITS) + tag


def wait_for(name: str, rank: int, request: Request, deadline: float) -> None:
    """Wait for one message to or from a rank."""
    wait_all(name, {rank: request}, deadline)


def wait_all(name: str, requests: dict[int, Request], deadline: float) -> None:
    """Wait for messages to or from some ranks; the error of a time-out names all that have not answered.

    There is none if all have in the end: this process may have been stopped meanwhile.
    """
    for request in requests.values():
        try:
            request.wait(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            if missing := [rank for rank, r in requests.items() if not r.done()]:
                raise timed_out(name, missing) from None
            request.wait(0.0)                              # it came just now, and is not in its memory yet


def as_bytes(array: Array) -> NDArray[np.uint8]:
    """The memory of a contiguous array as bytes."""
    assert array.flags.c_contiguous, "a message is one piece of memory"
    return array.reshape(-1).view(np.uint8)


def of_host(number: int, ranks: int, processors: int) -> int:
    """Which of the processors of a host rank `number` of its ranks has, where ranks outnumber processors.

    Consecutive ranks share one. They are those of the last axis of a mesh, as the stages of a pipeline whose batches
    are divided, too: while some stages wait for others, no processor is idle.
    """
    return number * processors // ranks
