"""Timed code: executables whose kernels' times a profile takes after each call (passes/time_kernels.py)."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from time import perf_counter_ns
from typing import Any

import numpy as np

from mlc.backends.cpu.layout import data_address
from mlc.backends.executable import Arena, Array, Entry, Executable
from mlc.backends.load import Library
from mlc.ir.abi import Interface, TimedContext
from mlc.ir.kernel_sites import EVENT, HEADER, SLOT, KernelSite, words
from mlc.ir.profiling import state

ROOM = 1 << 14
"""Events of a call for which there is room at first; as many as a call has had, the next time."""
MOST = 1 << 20


class Times:
    """The times of the kernels of a call.

    entry    the function
    sums     per slot: how often it ran, its cycles, its floating-point operations and its bytes
    events   per event: the slot, and the cycle counter before and after
    start    nanoseconds of `perf_counter_ns` before the call
    end      the same after it
    numbers  the values of the symbolic sizes
    """

    def __init__(self, entry: TimedEntry, buffer: Array, start: int, end: int, numbers: Sequence[int]) -> None:
        slots = len(entry.sites)
        self.entry, self.start, self.end = entry, start, end
        self.numbers: Mapping[str, int] = dict(zip(entry.interface.symbols, numbers))
        first = words(slots, 0)
        self.sums = buffer[HEADER:first].reshape(slots, SLOT).copy()
        self.events = buffer[first:buffer[0]].reshape(-1, EVENT).copy()
        self.thread = threading.get_native_id()


    def add(self, other: Times) -> None:
        """Add the sums and the time of another call of the function; its events are not kept."""
        values = np.array([bool(site.live) for site in self.entry.sites])
        self.sums = np.where(values[:, None], other.sums, self.sums + other.sums)
        self.end += other.end - other.start


class TimedEntry(Entry):
    """A function that times its kernels; each call gives its times to the profile that is on, if one is."""

    def __init__(self, library: Library, interface: Interface) -> None:
        super().__init__(library, interface)
        self._room = ROOM

    @cached_property
    def sites(self) -> list[KernelSite]:
        """The kernels, by slot."""
        return [KernelSite.parse(text) for text in self.interface.kernels]

    def _invoke(self, arena: Arena, *pointers: Any) -> int:
        slots = len(self.sites)
        if arena.times is None or len(arena.times) < words(slots, self._room):
            arena.times = np.zeros(words(slots, self._room), np.int64)
            arena.context.times, arena.context.words = data_address(arena.times), len(arena.times)
        buffer = arena.times
        first = words(slots, 0)
        buffer[:first] = 0
        buffer[0], buffer[1] = first, len(buffer)
        start = perf_counter_ns()
        status = super()._invoke(arena, *pointers)
        end = perf_counter_ns()
        recorder = state.recorder
        if recorder is not None:
            recorder.add_times(Times(self, buffer, start, end, pointers[1]))
        ran = int(buffer[HEADER:first:SLOT].sum())
        if ran > self._room:
            self._room = min(2 * ran, MOST)
        return status

    def _arena(self) -> Arena:
        return Arena(TimedContext())


class TimedExecutable(Executable):
    """Loaded code whose entries are timed."""

    entry_type = TimedEntry
