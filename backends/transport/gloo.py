"""Ranks that torchrun started, or that a program for PyTorch joins: gloo carries the messages, by torch.distributed.

Gloo neither polls a receive nor survives the time-out of one. So each pair of ranks has one stream of frames, which a
thread of the receiver reads as they come and puts into its mailbox, where waiting has an end. A frame has the tag, the
number of bytes, and the message itself if it is short; a long one follows.

A thread that gloo wakes while Python ends would abort the process. So a rank that leaves sends each other one a last
frame, which that answers with its own, whatever else it is doing: then no thread waits for gloo any more.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np

from mlc.backends.transport.errors import RankError
from mlc.backends.transport.mailbox import Bytes, Mailbox, Receive
from mlc.backends.transport.transport import Array, Transport, as_bytes

_HEAD, _SHORT = 16, 560
_FAILED, _LEFT, _LAST = (1 << 63) - 1, (1 << 63) - 2, (1 << 63) - 3
"""Tags of frames about the rank itself: it has failed, it leaves the job, it answers one that leaves."""
_FOREVER = timedelta(days=3650)
_PATIENCE = 2.0
"""Seconds in which the other ranks are to answer one that leaves."""


def _check(given: Mapping[str, Any]) -> None:
    """RankError (MLC0975) unless the arguments of init_process_group, and the environment, say where the ranks meet."""
    method = given.get("init_method")
    if method is None and given.get("store") is None:
        lacking = [name for name in ("rank", "world_size") if name not in given and name.upper() not in os.environ]
        lacking += [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    else:
        lacking = [name for name in ("rank", "world_size") if name not in given and f"{name}=" not in str(method or "")]
    if lacking:
        raise RankError(f"{', '.join(given) or 'the environment'} alone does not say where the ranks meet: "
                        f"{', '.join(lacking)} is missing", code="MLC0975",
                        hint='give rank, world_size and init_method="tcp://host:port", or start it by torchrun')


class GlooTransport(Transport):
    """The messages of this process in a process group of torch.distributed, which is made unless it exists.

    timeout  seconds that a collective waits, and that the ranks have to find each other
    given    arguments of torch.distributed.init_process_group other than the backend and the time-out
    """

    backend = "gloo"

    def __init__(self, timeout: float, **given: Any) -> None:
        import torch.distributed as dist
        self._made = not dist.is_initialized()
        if self._made:
            _check(given)
            try:
                dist.init_process_group("gloo", timeout=timedelta(seconds=timeout), **given)
            except (RuntimeError, TypeError, ValueError) as error:
                raise RankError(f"torch.distributed does not join the job: {error}"[:300], code="MLC0975",
                                hint='give rank, world_size and init_method="tcp://host:port"') from error
        super().__init__(dist.get_rank(), dist.get_world_size(), timeout)
        self._dist, self._group = dist, dist.new_group(backend="gloo", timeout=_FOREVER)
        self._mailbox = Mailbox(self.rank)
        self._locks = [threading.Lock() for _ in range(self.size)]
        self._closed = False
        self._silent = set[int]()                          # ranks to which the last frame has been sent
        self.unfinished = dict[int, _Sending]()            # gloo has their memory, also where nobody waits any more
        self._readers = [threading.Thread(target=self._read, args=(rank,), name=f"messages of rank {rank}", daemon=True)
                         for rank in range(self.size) if rank != self.rank]
        for reader in self._readers:
            reader.start()

    def send(self, to: int, tag: int, array: Array) -> _Sending:
        message = as_bytes(array)
        frame = np.zeros(_HEAD + _SHORT, np.uint8)
        frame[:_HEAD].view(np.int64)[:] = tag, message.nbytes
        parts = [frame]
        if message.nbytes <= _SHORT:
            frame[_HEAD:_HEAD + message.nbytes] = message
        else:
            parts.append(message)
        with self._locks[to]:                              # the parts of a message follow each other
            self._mailbox.check(to)
            try:
                works = [self._dist.isend(_tensor(part), to, group=self._group) for part in parts]
            except RuntimeError as error:
                self._lost(to, error)
                self._mailbox.check(to)
        return _Sending(self, to, works, parts)

    def receive(self, source: int, tag: int, into: Array) -> Receive:
        return self._mailbox.post(source, tag, into)

    def check(self, rank: int) -> None:
        self._mailbox.check(rank)

    def abort(self, message: str) -> None:
        self._mailbox.fail(self.rank, message)
        self._tell(_FAILED, message)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        super().close()
        self._tell(_LEFT, "")
        end = time.monotonic() + _PATIENCE
        for reader in self._readers:
            reader.join(max(0.0, end - time.monotonic()))
        if self._made and self._dist.is_initialized() and not any(reader.is_alive() for reader in self._readers):
            self._dist.destroy_process_group()

    def _tell(self, tag: int, message: str) -> None:
        """Send all other ranks a frame about this one; those that are gone do not matter."""
        sending = [s for to in range(self.size) if to != self.rank and (s := self._say(to, tag, message))]
        for one in sending:                                # after all are on their way: one rank may be stopped
            one.end()

    def _say(self, to: int, tag: int, message: str = "") -> _Sending | None:
        """Send a rank a frame about this one, unless it has had the last one."""
        frame = np.zeros(_HEAD + _SHORT, np.uint8)
        text = np.frombuffer(message.encode()[:_SHORT], np.uint8)
        frame[:_HEAD].view(np.int64)[:] = tag, text.nbytes
        frame[_HEAD:_HEAD + text.nbytes] = text
        with self._locks[to]:
            if to in self._silent:
                return None
            if tag != _FAILED:
                self._silent.add(to)
            try:
                works = [self._dist.isend(_tensor(frame), to, group=self._group)]
            except (RuntimeError, ValueError) as error:    # ValueError: the program has destroyed the group
                self._lost(to, error)
                return None
        return _Sending(self, to, works, [frame])

    def _lost(self, rank: int, error: Exception) -> None:
        self._mailbox.end(rank, f"has ended or is unreachable ({str(error).splitlines()[0][:200]})")

    def _read(self, source: int) -> None:
        """Put what a rank sends into the mailbox, until it leaves."""
        frame = np.empty(_HEAD + _SHORT, np.uint8)
        while True:
            try:
                self._fill(source, frame)
                tag, length = (int(n) for n in frame[:_HEAD].view(np.int64))
                message = frame[_HEAD:_HEAD + length].copy() if length <= _SHORT else np.empty(length, np.uint8)
                if length > _SHORT:
                    self._fill(source, message)
            except (RuntimeError, ValueError) as error:
                return self._lost(source, error)
            if tag in (_LEFT, _LAST):
                self._mailbox.end(source)
                if answer := self._say(source, _LAST):
                    answer.end()
                return
            if tag == _FAILED:
                self._mailbox.fail(source, message.tobytes().decode("utf-8", "replace"))
            else:
                self._mailbox.deliver(source, tag, message)

    def _fill(self, source: int, into: Bytes) -> None:
        self._dist.irecv(_tensor(into), source, group=self._group).wait()


class _Sending:
    """Messages that gloo is writing: the reader at the other end takes all that comes, unless its process is stopped.

    Gloo does not say whether one is written before it is waited for. Its time-out ends the connections to all ranks.
    """

    polls = False

    def __init__(self, transport: GlooTransport, to: int, works: list[Any], parts: list[Bytes]) -> None:
        self._transport, self._to, self._works, self._parts = transport, to, works, parts
        self._late = False
        transport.unfinished[id(self)] = self

    def done(self) -> bool:
        return not self._late and all(work.is_completed() for work in self._works)

    def wait(self, timeout: float | None = None) -> None:
        if self._late:
            raise TimeoutError
        limit = () if timeout is None else (timedelta(seconds=max(timeout, 0.001)),)
        try:
            for work in self._works:
                work.wait(*limit)
        except RuntimeError as error:
            self._late = "Timed out" in str(error)
            if self._late:
                raise TimeoutError from None
            self._transport._lost(self._to, error)
            self._transport._mailbox.check(self._to)
        self._works = []
        self._transport.unfinished.pop(id(self), None)

    def end(self) -> None:
        """Wait for a while; nobody minds if the rank is gone."""
        try:
            self.wait(_PATIENCE)
        except (RankError, TimeoutError):
            pass


def _tensor(array: Bytes) -> Any:
    import torch
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")      # it is only read
        return torch.from_numpy(array)
