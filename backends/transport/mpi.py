"""Ranks that MPI's launcher started: mpiexec -n 4 python train.py. It takes mpi4py.

A blocking wait of MPI spins, has no end, and does not see that another rank has failed. Waiting here polls the message,
and now and then the messages of other ranks about themselves, which have a communicator of their own. Between polls it
yields the processor to ranks that have no other, and naps once it has waited for long. A thread beside which its rank
computes, or runs another collective, naps from the start.

Ranks that outnumber the processors of their host stay on one each: left to the system, they change processors at every
nap, two are often on one while another is idle, and they find their data in the caches of the wrong one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from mlc.backends.transport.errors import RankError
from mlc.backends.transport.mailbox import Mailbox, check_size
from mlc.backends.transport.transport import Array, Transport, as_bytes, of_host

_FAILED, _LEFT = 1, 2
"""Tags of messages about the rank itself."""
_SPIN, _PATIENT = 2e-3, 0.2
"""Seconds of waiting before which there are no naps between polls, and after which naps are long."""
_NAP, _LONG_NAP = 20e-6, 1e-3
"""Seconds of naps; the system adds 50 us, the slack of its timers."""
_POLLS = 16
"""Polls between two looks at the time and at other ranks: MPI may need some to bring what was sent long ago."""
_CHECK_EVERY = 0.005
_LATE = 0.5
"""Seconds after a rank has left in which its last messages may still arrive."""


class MpiTransport(Transport):
    """The messages of this process in MPI's world."""

    backend = "mpi"

    def __init__(self, timeout: float) -> None:
        from mpi4py import MPI
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            raise RankError("this MPI does not let several threads communicate", code="MLC0975",
                            hint="use one that has MPI_THREAD_MULTIPLE, as the wheel mpich does")
        world = MPI.COMM_WORLD
        super().__init__(world.rank, world.size, timeout)
        host = world.Split_type(MPI.COMM_TYPE_SHARED)
        self._before = os.sched_getaffinity(0)
        allowed = host.allgather(self._before)
        self._processors = len(set().union(*allowed))
        chosen = own_processor(allowed, host.rank)
        if chosen is not None:
            os.sched_setaffinity(0, {chosen})
        host.Free()
        self._mpi, self._messages, self._notices = MPI, world.Dup(), world.Dup()
        self._mailbox = Mailbox(self.rank)                 # for what became of other ranks only
        self._left: dict[int, float] = {}
        self._told = list[Any]()
        self.unfinished = dict[int, _Request]()            # MPI has their memory, also where nobody waits any more
        self._next_check = 0.0
        self._closed = False

    @property
    def processors(self) -> int:
        return self._processors

    def send(self, to: int, tag: int, array: Array) -> _Request:
        message = as_bytes(array)
        return _Request(self, self._messages.Isend([message, self._mpi.BYTE], to, tag), to, message, False)

    def receive(self, source: int, tag: int, into: Array) -> _Request:
        message = as_bytes(into)
        return _Request(self, self._messages.Irecv([message, self._mpi.BYTE], source, tag), source, message, True)

    def abort(self, message: str) -> None:
        self._mailbox.fail(self.rank, message)
        self._tell(_FAILED, message)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            super().close()
            self._tell(_LEFT, "")
            os.sched_setaffinity(0, self._before)

    def end_job(self) -> None:
        """End all processes of the job, after those that wait have had time to say why they cannot go on."""
        end = time.monotonic() + 2.0
        while len(self._left) < self.size - 1 and time.monotonic() < end:
            time.sleep(0.02)
            self._read_notices()
        sys.stdout.flush()
        sys.stderr.flush()
        self._mpi.COMM_WORLD.Abort(1)

    def check(self, rank: int) -> None:
        """RankError if another rank has failed, or this one has left and nothing of it is on its way."""
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + _CHECK_EVERY
            self._read_notices()
            for other, since in list(self._left.items()):
                if now - since > _LATE:
                    self._mailbox.end(other)
        self._mailbox.check(rank)

    def _tell(self, tag: int, message: str) -> None:
        content = message.encode()
        self._told += [self._notices.Isend([content, self._mpi.BYTE], to, tag)
                       for to in range(self.size) if to != self.rank]

    def _read_notices(self) -> None:
        status = self._mpi.Status()
        with self._lock:
            while (found := self._notices.Improbe(status=status)) is not None:
                content = bytearray(status.Get_count(self._mpi.BYTE))
                source, tag = status.Get_source(), status.Get_tag()
                found.Recv([content, self._mpi.BYTE])
                if tag == _FAILED:
                    self._mailbox.fail(source, content.decode("utf-8", "replace"))
                else:
                    self._left.setdefault(source, time.monotonic())


def own_processor(allowed: Sequence[set[int]], number: int) -> int | None:
    """The processor of rank `number` of a host, from those that each may use; None if all it may use are for it.

    There is none either if they may use different ones: whoever said so has divided the processors.
    """
    shared = sorted(allowed[number])
    alike = all(other == allowed[number] for other in allowed)
    return shared[of_host(number, len(allowed), len(shared))] if alike and len(allowed) > len(shared) else None


class _Request:
    """A message that MPI sends or receives, with the memory that it does so from or to."""

    def __init__(self, transport: MpiTransport, request: Any, other: int, message: Array, receives: bool) -> None:
        self._transport, self._request, self._other = transport, request, other
        self._message, self._receives = message, receives
        self._finished = False
        transport.unfinished[id(self)] = self

    def done(self) -> bool:
        if self._finished:
            return True
        mpi, t = self._transport._mpi, self._transport
        status = mpi.Status()
        try:
            if not self._request.Test(status):
                return False
        except mpi.Exception as error:
            if error.Get_error_class() != mpi.ERR_TRUNCATE:
                raise RankError(f"rank {self._other} has ended or is unreachable ({str(error).splitlines()[0]})",
                                code="MLC0970", ranks=[self._other]) from None
            raise RankError(f"rank {self._other} sent more than the {self._message.nbytes} bytes that rank {t.rank} "
                            "receives", code="MLC0973", ranks=[self._other, t.rank]) from None
        self._finished = True
        del t.unfinished[id(self)]
        if self._receives:
            check_size(self._other, status.Get_count(mpi.BYTE), t.rank, self._message.nbytes)
        return True

    def wait(self, timeout: float | None = None) -> None:
        t, start, polls = self._transport, time.monotonic(), 0
        while not self.done():
            waited, polls = time.monotonic() - start, polls + 1
            if polls % _POLLS == 0:
                t.check(self._other)
                if timeout is not None and waited > timeout:
                    raise TimeoutError
            if waited < _SPIN and t.may_spin():
                os.sched_yield()
            else:
                time.sleep(_NAP if waited < _PATIENT else _LONG_NAP)
