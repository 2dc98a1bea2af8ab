"""The messages of a rank that have arrived or are waited for, where threads or sockets deliver them."""

from __future__ import annotations

import threading
import time
from collections import deque

import numpy as np
from numpy.typing import NDArray

from mlc.backends.transport.errors import RankError
from mlc.backends.transport.transport import Array, as_bytes

Bytes = NDArray[np.uint8]


class Mailbox:
    """Messages to one rank by source and tag, receives that wait for theirs, and what became of the other ranks."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.changed = threading.Condition()
        self.failure: RankError | None = None
        self._messages: dict[tuple[int, int], deque[Bytes]] = {}
        self._posted: dict[tuple[int, int], deque[Receive]] = {}
        self._ended: dict[int, str] = {}

    def deliver(self, source: int, tag: int, message: Bytes) -> None:
        """Hand over a message, whose memory is the receiver's from now on."""
        with self.changed:
            if waiting := self._posted.get((source, tag)):
                waiting.popleft().message = message
                if not waiting:
                    del self._posted[source, tag]
                self.changed.notify_all()
            else:
                self._messages.setdefault((source, tag), deque()).append(message)

    def post(self, source: int, tag: int, into: Array) -> Receive:
        """Have the next message from a rank with this tag arrive in an array."""
        request = Receive(self, source, into)
        with self.changed:
            if arrived := self._messages.get((source, tag)):
                request.message = arrived.popleft()
                if not arrived:
                    del self._messages[source, tag]
            else:
                self._posted.setdefault((source, tag), deque()).append(request)
        return request

    def fail(self, rank: int, message: str) -> None:
        """End all waiting, now and later, with an error; the first one stands."""
        with self.changed:
            if self.failure is None:
                self.failure = RankError(message, code="MLC0970", ranks=[rank])
            self.changed.notify_all()

    def end(self, rank: int, how: str = "has ended") -> None:
        """No message of this rank will come any more."""
        with self.changed:
            self._ended.setdefault(rank, how)
            self.changed.notify_all()

    def check(self, source: int) -> None:
        """RankError if nothing will come from a rank."""
        if self.failure is not None:
            raise self.failure.at(self.failure.loc)
        if source in self._ended:
            raise RankError(f"rank {source} {self._ended[source]}, and rank {self.rank} waits for it", code="MLC0970",
                            ranks=[source])


class Sent:
    """A send of which nothing is left to do."""

    def done(self) -> bool:
        return True

    def wait(self, timeout: float | None = None) -> None:
        """Return at once: the message was copied."""


class Receive:
    """A receive that was posted: its message is there, or comes by `Mailbox.deliver`."""

    def __init__(self, mailbox: Mailbox, source: int, into: Array) -> None:
        self.mailbox, self.source, self.into = mailbox, source, into
        self.message: Bytes | None = None
        self.finished = False

    def done(self) -> bool:
        with self.mailbox.changed:
            if self.finished or self.message is not None:
                return True
            self.mailbox.check(self.source)
            return False

    def wait(self, timeout: float | None = None) -> None:
        box, end = self.mailbox, None if timeout is None else time.monotonic() + timeout
        with box.changed:
            while self.message is None and not self.finished:
                box.check(self.source)
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError
                box.changed.wait(left)
        if self.finished:
            return
        assert self.message is not None
        check_size(self.source, self.message.nbytes, box.rank, self.into.nbytes)
        as_bytes(self.into)[...] = self.message
        self.finished, self.message = True, None


def check_size(source: int, sent: int, rank: int, expected: int) -> None:
    """RankError if a message has another size than the array that receives it."""
    if sent != expected:
        raise RankError(f"rank {source} sent {sent} bytes, and rank {rank} receives {expected}", code="MLC0973",
                        ranks=[source, rank])
