"""Timed code: executables whose kernels' times a profile takes after each call (passes/time_kernels.py)."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from time import perf_counter_ns
from typing import Any

import numpy as np

from mlc.backends.cpu.layout import data_address
from mlc.backends.cpu.threads import regions
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
    shares   per slot, of its parallel regions that are among the events: their cycles, those of all threads together,
             those of the busiest thread, and the most threads
    """

    def __init__(self, entry: TimedEntry, buffer: Array, start: int, end: int, numbers: Sequence[int],
                 regions: Array | None = None) -> None:
        slots = len(entry.sites)
        self.entry, self.start, self.end = entry, start, end
        self.numbers: Mapping[str, int] = dict(zip(entry.interface.symbols, numbers))
        first = words(slots, 0)
        self.sums = buffer[HEADER:first].reshape(slots, SLOT).copy()
        self.events = buffer[first:buffer[0]].reshape(-1, EVENT).copy()
        self.thread = threading.get_native_id()
        self._regions = regions

    @cached_property
    def shares(self) -> Array:
        """Found when they are asked for, and not while the program runs."""
        return shares_of(len(self.sums), self.events, self._regions)

    @property
    def size(self) -> int:
        """The words of memory that it takes."""
        return self.sums.size + self.events.size + (0 if self._regions is None else self._regions.size)

    def drop_events(self) -> None:
        """Keep the sums, and the shares that have been found."""
        self.events, self._regions = self.events[:0].copy(), None

    def add(self, other: Times) -> None:
        """Add the sums and the time of another call of the function; its events are not kept."""
        values = np.array([bool(site.live) for site in self.entry.sites])
        self.sums = np.where(values[:, None], other.sums, self.sums + other.sums)
        self.shares[:, :3] += other.shares[:, :3]
        self.shares[:, 3] = np.maximum(self.shares[:, 3], other.shares[:, 3])
        self.end += other.end - other.start


def shares_of(slots: int, events: Array, regions: Array | None) -> Array:
    """The work of the threads within the events of each slot; a region is of the event that it is within."""
    out = np.zeros((slots, 4), np.int64)
    if regions is None or not len(regions) or not len(events):
        return out
    starts = events[np.argsort(events[:, 1])]
    at = np.searchsorted(starts[:, 1], regions[:, 1], side="right") - 1
    within = (at >= 0) & (regions[:, 2] <= starts[at, 2])
    slot = starts[at, 0][within]
    _, start, stop, busy, longest, threads = regions[within].T
    for column, values in enumerate((stop - start, busy, longest)):
        np.add.at(out[:, column], slot, values)
    np.maximum.at(out[:, 3], slot, threads)
    return out


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
        ring = regions(self.library)
        written = ring.count if ring is not None else 0
        start = perf_counter_ns()
        status = super()._invoke(arena, *pointers)
        end = perf_counter_ns()
        recorder = state.recorder
        if recorder is not None:
            found = ring.since(written, threading.get_native_id()) if ring is not None else None
            recorder.add_times(Times(self, buffer, start, end, pointers[1], found))
        ran = int(buffer[HEADER:first:SLOT].sum())
        if ran > self._room:
            self._room = min(2 * ran, MOST)
        return status

    def _arena(self) -> Arena:
        return TimedArena(TimedContext())


class TimedArena(Arena):
    """Scratch memory whose pages are there before a call: its times are then those of any call, not of the first."""

    def grow(self, needed: int) -> None:
        super().grow(needed)
        assert self.memory is not None
        self.memory[::mmap.PAGESIZE] = 0


class TimedExecutable(Executable):
    """Loaded code whose entries are timed."""

    entry_type = TimedEntry
    timed = True
