"""Errors that calls report after they have returned.

A function that can fail, for example because an index is out of range, writes an error record on the device. If every
call waited for it, the device would be idle meanwhile. So calls of which only the addresses are new copy the record to
memory of the host when they are done, and whoever waits for the device next raises the error: reading a result,
`mlc.cuda.synchronize`, the next such call that finds it there, the end of the process. With CUDA_LAUNCH_BLOCKING=1 each
call waits itself.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable

import numpy as np

from mlc.backends.cuda.device import Device
from mlc.backends.transport.errors import RankError
from mlc.ir.diag import Error

SLOTS, RECORD = 256, 8
"""Maximum number of calls that are watched at a time, and bytes of an error record."""
NO_ERROR, RUNNING = -1, -2
"""Error records of a call without an error, and of one that is not done."""


class Failures:
    """The calls on one device that may still report an error, in their order."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._watched: deque[tuple[int, Callable[[int], Error]]] = deque()
        self._free: list[int] = []
        self._lock = threading.Lock()
        self._address = 0                                  # of the records on the host
        self._failed: RankError | None = None
        self.told = False                                  # whether that has been raised

    @property
    def pending(self) -> bool:
        """Whether some calls are watched, or nothing on the device can be relied on."""
        return bool(self._watched) or self._failed is not None

    def fail(self, error: RankError) -> None:
        """Raise an error at every wait from now on: results of other work than of calls are missing."""
        self._failed, self.told = error, False

    def recover(self) -> None:
        """Raise it no more."""
        self._failed = None

    def make_room(self) -> None:
        """Raise the error of an earlier call that is done, and wait for some if too many are not, so that the next call
        can be watched. It is not to be submitted if this raises."""
        if len(self._watched) >= SLOTS // 2:
            self._device.synchronize()
        self.check()

    def watch(self, error: Callable[[int], Error], record: int) -> None:
        """Watch a call that was just submitted: `error` makes the exception of its record, which is at this address of
        the device."""
        with self._lock:
            if not self._address:
                self._address, memory = self._device.pinned(SLOTS * RECORD)
                self._records = memory.view(np.int64)
                self._free = [*range(SLOTS)]
                atexit.register(self._at_exit)
            slot = self._free[-1]
            self._records[slot] = RUNNING
            self._device.fetch(self._address + RECORD * slot, record, RECORD)
            self._watched.append((self._free.pop(), error))
        if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
            self._device.synchronize()
            self.check()

    def check(self) -> None:
        """Raise the error of the first call that is done and has one."""
        with self._lock:
            self._raise_first()
        if self._failed is not None:
            self.told = True
            raise self._failed.at(self._failed.loc)

    def _at_exit(self) -> None:
        """Show the error of a call whose result nobody has read."""
        if self.pending and not self.told:
            self._device.activate()
            self._device.synchronize()
            self.check()

    def _raise_first(self) -> None:
        while self._watched:
            slot, error = self._watched[0]
            record = int(self._records[slot])
            if record == RUNNING:
                return
            self._watched.popleft()
            self._free.append(slot)
            if record != NO_ERROR:
                raise error(record)
