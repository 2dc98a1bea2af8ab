"""Launch plans: the launches and fills of a call, whose arguments are numbers and addresses in the call's buffers.

The host has two ways to submit them. Each launch on its own costs about 2.5 us in the driver, and a graph of all of
them 5 to 6 us and, if addresses differ from those in the graph, about 1 us per kernel that has them. So a plan of few
steps has no graph; and as the results of one call are usually freed before the one after the next, a loop of calls
comes back to a few sets of addresses, for each of which a plan keeps a graph that needs no change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mlc.backends.cuda.device import Device, Extent, Fill, Graph, Launch, Step

GRAPH_STEPS = 3
"""Minimum number of steps of a graph: two launches take no longer."""
MOST_GRAPHS = 4
"""Maximum number of graphs of a plan, each with other addresses."""
FEW_ADDRESSES = 16
"""Up to this number, addresses are written one by one, which is faster than numpy's setting up of an operation."""


class Argument(NamedTuple):
    """Eight bytes of a step's arguments: a number or, with a buffer, an offset from its start."""

    number: int
    buffer: int = -1


@dataclass(frozen=True)
class PendingStep:
    """A recorded step without an argument buffer. A fill has no kernel, and the address as its only argument."""

    kernel: str
    grid: Extent
    block: Extent
    shared: int
    arguments: tuple[Argument, ...]
    value: int = 0
    width: int = 0
    count: int = 0


class LaunchPlan:
    """Launches and fills with their argument buffers: an array of words, and the address of each.

    written  the buffers whose addresses are in the words; None if these are not known
    graphs   graphs by the buffers whose addresses they have, the most recently used last
    """

    def __init__(self, device: Device, kernels: Callable[[str], Any], pending: Sequence[PendingStep]) -> None:
        self.device = device
        words = [a for step in pending for a in step.arguments]
        self.words = np.array([a.number % (1 << 64) for a in words] or [0], np.uint64)
        start = int(self.words.__array_interface__["data"][0])
        self.addresses = np.arange(start, start + 8 * self.words.size, 8).astype(np.uint64)
        table = int(self.addresses.__array_interface__["data"][0])
        self.where = np.array([i for i, a in enumerate(words) if a.buffer >= 0], np.int64)
        self.which = np.array([a.buffer for a in words if a.buffer >= 0], np.int64)
        self.offsets = self.words[self.where]
        self._places = [(i, a.buffer, a.number) for i, a in enumerate(words) if a.buffer >= 0]
        words_as_buffer: Any = self.words
        self._memory = memoryview(words_as_buffer)
        self.steps: list[Step] = []
        self._users: dict[int, set[int]] = {}              # per buffer: the steps that have an address in it
        first = 0
        for number, step in enumerate(pending):
            if step.kernel:
                self.steps.append(Launch(kernels(step.kernel), step.kernel, step.grid, step.block, step.shared,
                                         table + 8 * first))
            else:
                self.steps.append(Fill(step.value, step.width, step.count, start + 8 * first))
            for argument in step.arguments:
                self._users.setdefault(argument.buffer, set()).add(number)
            first += len(step.arguments)
        self.run_each = [device.prepare(step) for step in self.steps]
        self.written: tuple[int, ...] | None = None
        self.graphs: dict[tuple[int, ...], Graph] = {}
        self.lock = threading.Lock()

    def run(self, buffers: Sequence[int], as_graph: bool = False) -> None:
        """Launch all steps, with buffers at these addresses."""
        key = tuple(buffers)                               # itself, of a tuple
        with self.lock:                                    # arguments are copied when a step is launched
            if as_graph and len(self.steps) >= GRAPH_STEPS:
                self._replay(key)
                return
            if key != self.written:
                self._write(key)
            for run in self.run_each:
                run()

    def _write(self, buffers: tuple[int, ...]) -> None:
        """Have the arguments be in buffers at these addresses."""
        self.written = None
        if len(self._places) <= FEW_ADDRESSES:
            memory = self._memory
            for i, buffer, offset in self._places:
                memory[i] = buffers[buffer] + offset
        else:
            self.words[self.where] = self.offsets + np.array(buffers, np.uint64)[self.which]
        self.written = buffers

    def _replay(self, buffers: tuple[int, ...]) -> None:
        graph = self.graphs.pop(buffers, None)             # it comes back once it is launched: not if that fails
        if graph is None:
            if buffers != self.written:
                self._write(buffers)
            graph = self._graph(buffers)
        graph.launch()
        self.graphs[buffers] = graph

    def _graph(self, buffers: tuple[int, ...]) -> Graph:
        """A graph with the present arguments: a new one, or the one that was not used for longest."""
        if len(self.graphs) < MOST_GRAPHS:
            return self.device.graph(self.steps)
        before = next(iter(self.graphs))
        graph = self.graphs.pop(before)                    # dropped if updating fails, which leaves it half updated
        changed = [self._users.get(i, ()) for i, (old, new) in enumerate(zip(before, buffers)) if old != new]
        for number in sorted(set().union(*changed)):
            graph.update(number)
        return graph
