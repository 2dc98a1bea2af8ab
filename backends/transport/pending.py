"""Collectives in the background: each transport has one thread that runs those that were started, in their order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from mlc.backends.transport.errors import timed_out

R = TypeVar("R")


class Handle(Generic[R]):
    """A collective that was started; `wait` gives its result or raises its error.

    awaited  where it is while somebody waits for it
    """

    def __init__(self, name: str, work: Callable[[], R], awaited: set[Any] | None = None) -> None:
        self._name, self._work, self._awaited = name, work, set[Any]() if awaited is None else awaited
        self._ended = threading.Event()
        self._results: list[R] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do the work; an error is kept for `wait`."""
        try:
            self._results.append(self._work())
        except BaseException as error:
            self.error = error
        self._work = _done                                  # its arrays may be freed
        self._ended.set()

    def done(self) -> bool:
        """Whether it has ended, with a result or an error."""
        return self._ended.is_set()

    def ended(self) -> None:
        """Wait until it has ended."""
        self._ended.wait()

    def wait(self, timeout: float | None = None) -> R:
        """The result; `RankError` if it does not come within so many seconds. Its own time-out ends it otherwise."""
        self._awaited.add(self)
        try:
            if not self._ended.wait(timeout):
                raise timed_out(self._name, ())
        finally:
            self._awaited.discard(self)
        if self.error is not None:
            raise self.error
        return self._results[0]


def _done() -> Any:
    raise AssertionError("a collective runs once")


class Worker:
    """A thread that runs handles one by one; it ends with the process, whatever it waits for.

    awaited  handles for which somebody waits now
    """

    def __init__(self, name: str) -> None:
        self._queue = SimpleQueue[Handle[Any] | None]()
        self._last: Handle[Any] | None = None
        self.awaited = set[Any]()
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def submit(self, handle: Handle[Any]) -> None:
        self._last = handle
        self._queue.put(handle)

    def finish(self) -> None:
        """Wait until all that was submitted has ended, with a result or an error."""
        if self._last is not None:
            self._last.ended()

    def stop(self) -> None:
        self._queue.put(None)

    def is_idle(self) -> bool:
        """Whether it has run all that was submitted."""
        return self._last is None or self._last.done()

    def is_this_thread(self) -> bool:
        """Whether it is the thread that asks."""
        return threading.current_thread() is self._thread

    def _loop(self) -> None:
        while (handle := self._queue.get()) is not None:
            handle.run()
