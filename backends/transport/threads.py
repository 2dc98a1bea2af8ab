"""Ranks as threads of one process: for tests, for debugging, and for devices that one process drives."""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlc.backends.transport import current
from mlc.backends.transport.errors import RankError
from mlc.backends.transport.transport import DEFAULT_TIMEOUT, Array, Transport, as_bytes

R = TypeVar("R")


class Board:
    """Where the threads leave their messages: those that wait, by (receiver, source, tag), and which ranks ended."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.messages: dict[tuple[int, int, int], deque[NDArray[np.uint8]]] = {}
        self.posted: dict[tuple[int, int, int], deque[_Receive]] = {}
        self.changed = threading.Condition()
        self.ended = set[int]()
        self.failure: tuple[int, str] | None = None

    def fail(self, rank: int, message: str) -> None:
        with self.changed:
            self.failure = self.failure or (rank, message)
            self.changed.notify_all()

    def end(self, rank: int) -> None:
        with self.changed:
            self.ended.add(rank)
            self.changed.notify_all()


class _Sent:
    def done(self) -> bool:
        return True

    def wait(self, timeout: float | None = None) -> None:
        """Nothing to wait for: the message was copied."""


class _Receive:
    """A receive that was posted; it gets its message from `send`, or at once if one was waiting."""

    def __init__(self, board: Board, key: tuple[int, int, int], into: Array) -> None:
        self.board, self.key, self.into = board, key, into
        self.message: NDArray[np.uint8] | None = None
        self.finished = False

    def done(self) -> bool:
        with self.board.changed:
            return self.finished or self.message is not None

    def wait(self, timeout: float | None = None) -> None:
        board, (to, source, _) = self.board, self.key
        end = None if timeout is None else time.monotonic() + timeout
        with board.changed:
            while self.message is None and not self.finished:
                if board.failure is not None:
                    raise RankError(board.failure[1], code="MLC0970", ranks=[board.failure[0]])
                if source in board.ended:
                    raise RankError(f"rank {source} has ended, and rank {to} waits for a message of it",
                                    code="MLC0970", ranks=[source])
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError
                board.changed.wait(left)
        if self.finished:
            return
        assert self.message is not None
        target = as_bytes(self.into)
        if self.message.nbytes != target.nbytes:
            raise RankError(f"rank {source} sent {self.message.nbytes} bytes, and rank {to} receives {target.nbytes}",
                            code="MLC0973", ranks=[source, to])
        target[...] = self.message
        self.finished, self.message = True, None


class ThreadTransport(Transport):
    """The messages of a rank that is a thread."""

    def __init__(self, board: Board, rank: int, timeout: float = DEFAULT_TIMEOUT) -> None:
        super().__init__(rank, board.size, timeout)
        self.board = board

    def send(self, to: int, tag: int, array: Array) -> _Sent:
        message, key = as_bytes(array).copy(), (to, self.rank, tag)
        with self.board.changed:
            if waiting := self.board.posted.get(key):
                waiting.popleft().message = message
                if not waiting:
                    del self.board.posted[key]
            else:
                self.board.messages.setdefault(key, deque()).append(message)
            self.board.changed.notify_all()
        return _Sent()

    def receive(self, source: int, tag: int, into: Array) -> _Receive:
        key = (self.rank, source, tag)
        request = _Receive(self.board, key, into)
        with self.board.changed:
            if arrived := self.board.messages.get(key):
                request.message = arrived.popleft()
                if not arrived:
                    del self.board.messages[key]
            else:
                self.board.posted.setdefault(key, deque()).append(request)
        return request

    def abort(self, message: str) -> None:
        self.board.fail(self.rank, message)

    def close(self) -> None:
        self.board.end(self.rank)


def run(size: int, function: Callable[[int], R], timeout: float = DEFAULT_TIMEOUT) -> list[R]:
    """Call a function on `size` threads, each a rank with its own current transport; the results by rank.

    An error of one rank ends the waiting of the others, and is the cause of the RankError that names it (MLC0970).
    """
    board, results = Board(size), dict[int, R]()
    errors: list[tuple[int, BaseException]] = []           # in the order in which they were raised

    def call(rank: int) -> None:
        transport = ThreadTransport(board, rank, timeout)
        try:
            with current.in_thread(transport):
                results[rank] = function(rank)
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
        board.fail(-1, "the job was interrupted")
        raise
    if errors:
        rank, error = errors[0]
        raise RankError(f"rank {rank} has failed: {summary(error)}", code="MLC0970", ranks=[rank],
                        notes=tuple(_traceback(error))) from error
    return [results[rank] for rank in range(size)]


def summary(error: BaseException) -> str:
    """The last line of a traceback."""
    message = getattr(error, "message", None) or str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _traceback(error: BaseException) -> list[Any]:
    frames = traceback.extract_tb(error.__traceback__)[1:]
    return [f"{frame.filename}:{frame.lineno}: {frame.line}" for frame in frames[-4:]]
