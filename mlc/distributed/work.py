"""Work: a collective that was started with `async_op=True`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol

from mlc.backends.transport.errors import RankError
from mlc.backends.transport.pending import Handle


class Ending(Protocol):
    """The end of work that goes on after it has been submitted."""

    def is_done(self) -> bool:
        """Whether the result of work that was submitted is there."""

    def seen(self) -> None:
        """Its error is raised where somebody waits for it."""


class Work:
    """A collective, or a message, that is on its way.

    Its tensors must not be read or written before `wait` returns.

    Args:
        handle: The collective in the background.
        finish: Function that writes its result to the tensors, in the thread that waits.
        place: Where the tensors are, which knows when the result is there; None for the CPU's memory.

    Returns:
        Object with PyTorch's names.

    Example:
        >>> from mlc.backends.transport import threads
        >>> def average(rank):
        ...     mlc.distributed.init_process_group()
        ...     x = mlc.tensor([float(rank)])
        ...     work = mlc.distributed.all_reduce(x, async_op=True)
        ...     work.wait()
        ...     return x.item()
        >>> threads.run(2, average)
        [1.0, 1.0]
    """

    def __init__(self, handle: Handle[Any], finish: Callable[[Any], Any],
                 place: Ending | None = None) -> None:
        self._handle, self._finish, self._place = handle, finish, place
        self._finished = False
        self._result: Any = None

    def wait(self, timeout: float | timedelta | None = None) -> bool:
        """Wait until the result is in the tensors.

        Args:
            timeout: Seconds or a timedelta; None for the time-out of the group.

        Returns:
            True.

        Raises:
            RankError: It failed, or does not end in time (MLC0971).
        """
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        try:
            found = self._handle.wait(seconds)
        except RankError:
            if self._place is not None:
                self._place.seen()
            raise
        if not self._finished:
            self._finished, self._result = True, self._finish(found)
        return True

    def is_completed(self) -> bool:
        """Whether it has ended, so that `wait` would return, or raise, at once.

        Returns:
            A bool.

        Example:
            >>> from mlc.backends.transport import threads
            >>> def ends(rank):
            ...     mlc.distributed.init_process_group()
            ...     work = mlc.distributed.all_reduce(mlc.tensor([1.0]), async_op=True)
            ...     work.wait()
            ...     return work.is_completed()
            >>> threads.run(2, ends)
            [True, True]
        """
        return self._handle.done() and (self.exception() is not None or self._place is None or self._place.is_done())

    def is_success(self) -> bool:
        """Whether it has ended without an error.

        Returns:
            A bool; False while it is on its way.

        Example:
            >>> from mlc.backends.transport import threads
            >>> def succeeds(rank):
            ...     mlc.distributed.init_process_group()
            ...     work = mlc.distributed.all_reduce(mlc.tensor([1.0]), async_op=True)
            ...     work.wait()
            ...     return work.is_success()
            >>> threads.run(2, succeeds)
            [True, True]
        """
        return self._handle.done() and self.exception() is None

    def exception(self) -> BaseException | None:
        """The error that it ended with.

        Returns:
            An exception; None if there is none, or it has not ended.

        Example:
            >>> from mlc.backends.transport import threads
            >>> def fails(rank):
            ...     mlc.distributed.init_process_group()
            ...     work = mlc.distributed.all_reduce(mlc.tensor([1.0]), async_op=True)
            ...     work.wait()
            ...     return work.exception()
            >>> threads.run(2, fails)
            [None, None]
        """
        return self._handle.error

    def result(self) -> Any:
        """The tensors that it has written, for which it waits.

        Returns:
            The tensors.

        Raises:
            RankError: It failed, or does not end in time (MLC0971).
        """
        self.wait()
        return self._result
