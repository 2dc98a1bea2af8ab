"""Ranks as threads of one process: for tests, for debugging, and for devices that one process drives."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from typing import TypeVar

from mlc.backends.transport import current
from mlc.backends.transport.errors import RankError
from mlc.backends.transport.mailbox import Mailbox, Receive, Sent
from mlc.backends.transport.transport import DEFAULT_TIMEOUT, Array, Transport, as_bytes

R = TypeVar("R")


class ThreadTransport(Transport):
    """The messages of a rank that is a thread, which go through the mailboxes of all."""

    backend = "threads"

    def __init__(self, mailboxes: Sequence[Mailbox], rank: int, timeout: float = DEFAULT_TIMEOUT) -> None:
        super().__init__(rank, len(mailboxes), timeout)
        self._mailboxes = mailboxes

    def send(self, to: int, tag: int, array: Array) -> Sent:
        self._mailboxes[to].deliver(self.rank, tag, as_bytes(array).copy())
        return Sent()

    def receive(self, source: int, tag: int, into: Array) -> Receive:
        return self._mailboxes[self.rank].post(source, tag, into)

    def check(self, rank: int) -> None:
        self._mailboxes[self.rank].check(rank)

    def abort(self, message: str) -> None:
        for mailbox in self._mailboxes:
            mailbox.fail(self.rank, message)

    def close(self) -> None:
        super().close()
        for mailbox in self._mailboxes:
            mailbox.end(self.rank)


def run(size: int, function: Callable[[int], R], timeout: float = DEFAULT_TIMEOUT,
        make: Callable[[Sequence[Mailbox], int, float], ThreadTransport] = ThreadTransport) -> list[R]:
    """Call a function on `size` threads, each a rank with its own current transport; the results by rank.

    An error of one rank ends the waiting of the others, and is the cause of the RankError that names it (MLC0970).
    """
    mailboxes, results = [Mailbox(rank) for rank in range(size)], dict[int, R]()
    errors: list[tuple[int, BaseException]] = []           # in the order in which they were raised

    def call(rank: int) -> None:
        transport = make(mailboxes, rank, timeout)
        try:
            with current.in_thread(transport):
                results[rank] = function(rank)
            transport.leave()
        except BaseException as error:
            errors.append((rank, error))
            transport.abort(f"rank {rank} has failed: {summary(error)}")
        finally:
            transport.close()

    threads = [threading.Thread(target=call, args=(rank,), name=f"rank {rank}", daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:                                  # Ctrl-C: the threads end at their next wait
        for mailbox in mailboxes:
            mailbox.fail(-1, "the job was interrupted")
        raise
    if errors:
        rank, error = errors[0]
        raise RankError(f"rank {rank} has failed: {summary(error)}", code="MLC0970", ranks=[rank],
                        notes=_lines_of(error)) from error
    return [results[rank] for rank in range(size)]


def summary(error: BaseException) -> str:
    """The last line of a traceback."""
    message = getattr(error, "message", None) or str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _lines_of(error: BaseException) -> tuple[str, ...]:
    frames = traceback.extract_tb(error.__traceback__)[1:]
    return tuple(f"{frame.filename}:{frame.lineno}: {frame.line}" for frame in frames[-4:])
