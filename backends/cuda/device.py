"""Device interface of the run time.

A device executes work asynchronously, in the order of submission (its stream): calls return before the work is done,
except `download`, `synchronize` and calls that wait for memory. Addresses are plain numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mlc.backends.target import Target
from mlc.ir.core import Op
from mlc.ir.diag import BackendError

Array = np.ndarray[Any, Any]
Extent = tuple[int, int, int]
PTX = "ptx"
MOST_BLOCKS: Extent = ((1 << 31) - 1, 65535, 65535)
"""Maximum number of blocks of a grid along x, y and z."""


@dataclass(frozen=True)
class Launch:
    """A kernel launch; `parameters` is the array with the addresses of its arguments."""

    kernel: Any
    name: str
    grid: Extent
    block: Extent
    shared: int
    parameters: int


@dataclass(frozen=True)
class Fill:
    """A memset of `count` elements of `width` bytes (1, 2 or 4) to `value`; `parameters` points to the destination
    address."""

    value: int
    width: int
    count: int
    parameters: int


Step = Launch | Fill
"""One operation of a device. Its arguments are read from memory each time it is submitted."""


class Graph(Protocol):
    """Steps that are recorded once and replayed by one call."""

    def update(self, number: int) -> None:
        """Reread the arguments of step `number` for subsequent launches."""

    def launch(self) -> None:
        """Execute all steps, in order."""


class Device(Protocol):
    """A machine with memory of its own."""

    ordinal: int
    name: str
    form: str
    """Kind of code that the device loads; part of the key of code in the compile cache."""
    architecture: int
    """Ten times the compute capability: 90 runs code for sm_90 and older."""
    stream: int
    """Handle by which other libraries refer to the device's stream."""

    def activate(self) -> None:
        """Make this the current device of the calling thread; all other methods assume it."""

    def assemble(self, module: Op, target: Target) -> bytes:
        """Compile a module with kernels of the gpu dialect to code for `load`; the module is lowered in place."""

    def load(self, code: bytes) -> Any:
        """Load code; returns its library of kernels."""

    def kernel(self, library: Any, name: str) -> Any:
        """Look up a kernel by name."""

    def allocate(self, size: int) -> int | None:
        """Allocate memory; returns its address, or None if there is not enough."""

    def free(self, address: int) -> None:
        """Free memory once all work submitted so far is done."""

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes of memory."""

    def upload(self, target: int, source: Array) -> None:
        """Copy a contiguous array to the device; the array may be modified as soon as this returns."""

    def download(self, target: Array, source: int) -> None:
        """Copy to a contiguous array from the device, once all work submitted before is done."""

    def pinned(self, size: int) -> tuple[int, Array]:
        """Allocate page-locked memory of the host, for good; returns its address and bytes."""

    def fetch(self, target: int, source: int, size: int) -> None:
        """Copy bytes to page-locked memory; they are there once all work submitted before is done."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes within the device."""

    def prepare(self, step: Step) -> Callable[[], object]:
        """A callable that executes a step."""

    def graph(self, steps: Sequence[Step]) -> Graph:
        """Record steps as one graph."""

    def synchronize(self, everything: bool = False) -> None:
        """Wait until all submitted work is done; `everything`: also that of other libraries of this process."""

    def settle(self) -> None:
        """Wait for this library's work without changing the calling thread's current device, so that the garbage
        collector may call this."""

    def publish(self, stream: int) -> None:
        """Make later work of another stream wait for all work submitted here."""

    def await_stream(self, stream: int) -> None:
        """Make later work submitted here wait for all work of another stream."""

    def new_stream(self) -> int:
        """Create a further stream, for work of other libraries; returns its handle."""

    def mark(self, stream: int) -> Any:
        """A mark after all work submitted to a stream so far."""

    def hold(self, stream: int, mark: Any) -> None:
        """Make later work of a stream wait for the work before a mark."""

    def reached(self, mark: Any) -> bool:
        """Whether the work before a mark is done. Any thread may ask."""


def forked() -> BackendError:
    """The error of a process whose parent has used a GPU."""
    return BackendError("a process that was forked from one that used a GPU cannot use it", code="MLC0586",
                        hint='start processes anew: multiprocessing.get_context("spawn")')
