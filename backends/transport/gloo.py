"""Ranks that torchrun started, or that a program for PyTorch joins: gloo carries the messages, by torch.distributed.

Gloo neither polls a receive nor survives the time-out of one. So each pair of ranks has one stream of frames, which a
thread of the receiver reads as they come and puts into its mailbox, where waiting has an end. A frame has the tag, the
number of bytes, and the message itself if it is short; a long one follows.

A thread that gloo wakes while Python ends would abort the process. So a process ends when all other ranks have left,
or without ending Python, if it has failed.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import warnings
from datetime import timedelta
from typing import Any

import numpy as np

from mlc.backends.transport.mailbox import Bytes, Mailbox, Receive
from mlc.backends.transport.transport import Array, Transport, as_bytes

_HEAD, _SHORT = 16, 560
_FAILED, _LEFT = (1 << 63) - 1, (1 << 63) - 2
"""Tags of frames about the rank itself."""
_FOREVER = timedelta(days=3650)
_PATIENCE = 2.0
"""Seconds that a rank that leaves the job, or has failed, waits for the others to do so."""


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
            dist.init_process_group("gloo", timeout=timedelta(seconds=timeout), **given)
        super().__init__(dist.get_rank(), dist.get_world_size(), timeout)
        self._dist, self._group = dist, dist.new_group(backend="gloo", timeout=_FOREVER)
        self._mailbox = Mailbox(self.rank)
        self._locks = [threading.Lock() for _ in range(self.size)]
        self._closed = False
        self.unfinished = dict[int, _Sending]()            # gloo has their memory, also where nobody waits any more
        self._readers = [threading.Thread(target=self._read, args=(rank,), name=f"messages of rank {rank}", daemon=True)
                         for rank in range(self.size) if rank != self.rank]
        for reader in self._readers:
            reader.start()
        atexit.register(self._await_others)

    def send(self, to: int, tag: int, array: Array) -> _Sending:
        message = as_bytes(array)
        frame = np.zeros(_HEAD + _SHORT, np.uint8)
        frame[:_HEAD].view(np.int64)[:] = tag, message.nbytes
        parts = [frame]
        if message.nbytes <= _SHORT:
            frame[_HEAD:_HEAD + message.nbytes] = message
        else:
            parts.append(message)
        self._mailbox.check(to)
        with self._locks[to]:                              # the parts of a message follow each other
            try:
                works = [self._dist.isend(_tensor(part), to, group=self._group) for part in parts]
            except RuntimeError as error:
                self._lost(to, error)
                self._mailbox.check(to)
        return _Sending(self, to, works, parts)

    def receive(self, source: int, tag: int, into: Array) -> Receive:
        return self._mailbox.post(source, tag, into)

    def abort(self, message: str) -> None:
        self._mailbox.fail(self.rank, message)
        self._tell(_FAILED, message)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        super().close()
        self._tell(_LEFT, "")
        self._await_others(_PATIENCE)

    def end_job(self) -> None:
        """End this process, which has failed, also if others go on for now: the launcher ends them."""
        self.close()
        if any(reader.is_alive() for reader in self._readers):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)

    def _await_others(self, timeout: float | None = None) -> None:
        """Wait until the readers have ended, by the last frame of their rank or the end of its process."""
        for reader in self._readers:
            reader.join(timeout)
        if self._made and self._dist.is_initialized() and not any(reader.is_alive() for reader in self._readers):
            self._dist.destroy_process_group()

    def _tell(self, tag: int, message: str) -> None:
        """Send all other ranks a frame about this one; those that are gone do not matter."""
        frame = np.zeros(_HEAD + _SHORT, np.uint8)
        text = np.frombuffer(message.encode()[:_SHORT], np.uint8)
        frame[:_HEAD].view(np.int64)[:] = tag, text.nbytes
        frame[_HEAD:_HEAD + text.nbytes] = text
        for to in range(self.size):
            if to != self.rank:
                with self._locks[to]:
                    try:
                        self._dist.isend(_tensor(frame), to, group=self._group).wait()
                    except RuntimeError as error:
                        self._lost(to, error)

    def _lost(self, rank: int, error: RuntimeError) -> None:
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
            except RuntimeError as error:
                return self._lost(source, error)
            if tag == _LEFT:
                return self._mailbox.end(source)
            if tag == _FAILED:
                self._mailbox.fail(source, message.tobytes().decode("utf-8", "replace"))
            else:
                self._mailbox.deliver(source, tag, message)

    def _fill(self, source: int, into: Bytes) -> None:
        self._dist.irecv(_tensor(into), source, group=self._group).wait()


class _Sending:
    """Messages that gloo is writing, which it always does: the reader at the other end takes all that comes."""

    def __init__(self, transport: GlooTransport, to: int, works: list[Any], parts: list[Bytes]) -> None:
        self._transport, self._to, self._works, self._parts = transport, to, works, parts
        transport.unfinished[id(self)] = self

    def done(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def wait(self, timeout: float | None = None) -> None:
        try:
            for work in self._works:
                work.wait()
        except RuntimeError as error:
            self._transport._lost(self._to, error)
            self._transport._mailbox.check(self._to)
        self._works = []
        self._transport.unfinished.pop(id(self), None)


def _tensor(array: Bytes) -> Any:
    import torch
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")      # it is only read
        return torch.from_numpy(array)
