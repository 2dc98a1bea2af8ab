"""The transport that this thread's collectives use: its own, if it is a rank by itself, or else that of the process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mlc.backends.transport.transport import Transport
from mlc.ir.thread_values import set_in_thread


class _Thread(threading.local):
    transport: Transport | None = None


_thread = _Thread()
_process: list[Transport] = []


def transport() -> Transport | None:
    """The transport of this thread, or else of the process; None without either."""
    return _thread.transport or (_process[0] if _process else None)


def of_thread() -> Transport | None:
    """The transport of this thread alone; None unless it is a rank by itself."""
    return _thread.transport


def use(transport: Transport | None) -> None:
    """Set the transport of the process; None removes it."""
    _process[:] = [] if transport is None else [transport]


@contextmanager
def in_thread(transport: Transport) -> Iterator[None]:
    """Context in which this thread is a rank by itself."""
    with set_in_thread(_thread, "transport", transport):
        yield
