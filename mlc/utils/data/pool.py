"""Worker processes as the main process sees them: started, asked, listened to, and ended.

Workers are forked by default, although Python's own default becomes another from 3.14 on:

* A program written for PyTorch on Linux counts on it: its datasets and collate functions need not be picklable, large
  datasets are not copied, and the module needs no `if __name__ == "__main__"`.
* A worker starts in milliseconds. One that is spawned imports the program, mlc and numpy first, which takes a second.
* mlc supports it. A fork waits for compilations (frontend/compiler.py); the thread pool of compiled code, whose threads
  a fork does not copy, is made anew in the child (backends/cpu/threads.py); and a device that was open in the parent is
  refused in the child (MLC0586), which concerns only datasets that use the GPU themselves.

What remains is that a lock which another thread of the program or of a library holds at that moment stays locked in the
child. A program that has such threads, or whose dataset uses a GPU, passes `multiprocessing_context="spawn"`. The pool
starts no threads in the main process, so one loader is no danger to the next.

Each worker has pipes of its own instead of a queue that all share: a worker that is killed can leave no lock behind,
and the end of its pipe is noticed at once.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from collections.abc import Iterable
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.compilation_lock import compiling
from mlc.utils.data.shared_memory import SharedMemory
from mlc.utils.data.worker import GRACE, Batch, Fetch, Job, Restart, WorkerError, run

POLL = 0.5
"""Seconds after which it is asked for the exit status of workers whose end no pipe has reported, since a process that
was forked at the wrong moment has a copy of its end."""


class Channel:
    """The main process's side of one worker."""

    def __init__(self, process: Any, tasks: Connection, results: Connection, slots: list[SharedMemory]) -> None:
        self.process = process
        self.tasks = tasks
        self.results = results
        self.slots = slots
        self.outstanding = 0

    def close(self) -> None:
        """Close this process's ends. A worker that waits for requests, or for its answer to be read, then ends."""
        _close([self.tasks, self.results, *self.slots])


Closable = Connection | SharedMemory
_open: weakref.WeakKeyDictionary[Closable, int] = weakref.WeakKeyDictionary()
"""Ends of the main process, with 0, and those of a worker that a thread is starting, with that thread's number. A
forked child closes them, but a worker not its own: as long as it had copies, no process would notice that another
closes its end, or is killed."""
_changing = threading.RLock()
"""Held while ends are opened and closed, and during a fork, there after the lock of the compiler: garbage is collected
during a compilation too, and may close ends."""


def _before_fork() -> None:
    compiling.acquire()
    _changing.acquire()


def _after_fork_in_parent() -> None:
    _changing.release()
    compiling.release()


def _after_fork_in_child() -> None:
    for end, thread in list(_open.items()):
        if thread != threading.get_ident():
            end.close()
    _after_fork_in_parent()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


class Pool:
    """The workers of an iteration, or of all iterations of a loader with persistent workers."""

    def __init__(self, context: BaseContext, jobs: list[dict[str, Any]], prefetch: int) -> None:
        self.channels = list[Channel]()
        self.prefetch = prefetch
        self.user: object = None
        self._count = 0
        self.close = weakref.finalize(self, _end, self.channels, os.getpid())
        try:
            for job in jobs:
                self.channels.append(_started(context, job, prefetch))
        except BaseException:
            self.close()
            raise

    @property
    def usable(self) -> bool:
        """Whether the workers are there, and are this process's."""
        return self.close.alive and not any(channel.tasks.closed for channel in self.channels)

    def begin(self) -> object:
        """Begin a pass over the dataset; the result is `user` until another one begins."""
        if self.user is not None:
            for channel in self.channels:
                self._send(channel, Restart())
        self.user = object()
        return self.user

    def free(self, worker: int) -> bool:
        """Whether a worker may be asked for another batch."""
        return self.channels[worker].outstanding < self.prefetch

    def request(self, worker: int, index: Any) -> int:
        """Ask a worker for the batch of an index; returns the number of the request."""
        channel = self.channels[worker]
        self._send(channel, Fetch(self._count, index))
        channel.outstanding += 1
        self._count += 1
        return self._count - 1

    def _send(self, channel: Channel, request: Any) -> None:
        try:
            channel.tasks.send(request)
        except BrokenPipeError:
            raise self._death(channel) from None

    def receive(self, timeout: float | None) -> list[tuple[int, Any]]:
        """(worker, answer) of what has arrived, with batches unpacked; waits for the first one if there is none.

        The list is empty if nothing arrives in time. Raises WorkerError if a worker has ended.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            handles = [end for c in self.channels for end in (c.results, c.process.sentinel)]
            ready = set(wait(handles, POLL if left is None else min(left, POLL)))
            out = [(i, self._answer(channel)) for i, channel in enumerate(self.channels) if channel.results in ready]
            for channel in self.channels:
                if channel.process.sentinel in ready or (not ready and channel.process.exitcode is not None):
                    raise self._death(channel)
            if out or left == 0:
                return out

    def _answer(self, channel: Channel) -> Any:
        try:
            answer = channel.results.recv()
        except (EOFError, OSError):
            raise self._death(channel) from None
        channel.outstanding -= 1
        if isinstance(answer, Batch):
            return answer.number, channel.slots[answer.slot].unpack(answer.data)
        return answer.number, answer

    def _death(self, channel: Channel) -> WorkerError:
        """The error for a worker that has ended; the others are ended too."""
        channel.process.join(GRACE)                        # its pipes are closed before its status is there
        code, pid = channel.process.exitcode, channel.process.pid
        how = ("has closed its connection" if code is None else f"was killed by {signal.Signals(-code).name}"
               if code < 0 else f"exited with code {code}")
        hint = ("the system kills processes when memory runs out: use fewer workers or smaller batches"
                if code == -signal.SIGKILL else "with num_workers=0 the dataset runs in this process")
        self.close()
        return WorkerError(f"worker {self.channels.index(channel)} of the data loader (process {pid}) {how}",
                           code="MLC0706", loc=user_loc(), hint=hint)


def _started(context: BaseContext, job: dict[str, Any], prefetch: int) -> Channel:
    with _changing:
        tasks_of_worker, tasks = context.Pipe(duplex=False)
        results, results_of_worker = context.Pipe(duplex=False)
        slots = [SharedMemory() for _ in range(prefetch)]
        of_worker: list[Closable] = [tasks_of_worker, results_of_worker, *slots]
        _open.update({tasks: 0, results: 0, **dict.fromkeys(of_worker, threading.get_ident())})
    try:
        process = context.Process(  # type: ignore[attr-defined]
            target=run, args=(Job(**job, tasks=tasks_of_worker, results=results_of_worker, slots=slots),), daemon=True)
        process.start()
    except BaseException:
        _close([tasks, results, *slots])
        raise
    finally:
        _close([tasks_of_worker, results_of_worker])
    with _changing:
        _open.update(dict.fromkeys(slots, 0))
    return Channel(process, tasks, results, slots)


def _close(ends: Iterable[Closable]) -> None:
    with _changing:
        for end in ends:
            end.close()
            _open.pop(end, None)


def _end(channels: list[Channel], owner: int) -> None:
    """End workers: those that are idle at once, others when they have finished a batch, or by force after a moment."""
    if os.getpid() != owner:                               # a forked process has no children yet
        return
    for channel in channels:
        channel.close()
    deadline = time.monotonic() + GRACE / 2
    for channel in channels:
        channel.process.join(max(0.0, deadline - time.monotonic()))
    for signal_them in ("terminate", "kill"):
        late = [channel.process for channel in channels if channel.process.exitcode is None]
        for process in late:
            getattr(process, signal_them)()
        for process in late:
            process.join(GRACE / 2)
