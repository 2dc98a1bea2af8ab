"""Device interface of the run time, and the devices of this machine.

A device works on its own, in the order in which it is told (its stream): what is asked of it here returns before it is
done, but for `download`, `synchronize` and whatever has to wait for memory. Addresses are plain numbers.
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
"""How many blocks a grid has at most along x, y and z."""


@dataclass(frozen=True)
class Launch:
    """A kernel with all that it takes to run it; `parameters` is where the addresses of its arguments stand."""

    kernel: Any
    name: str
    grid: Extent
    block: Extent
    shared: int
    parameters: int


@dataclass(frozen=True)
class Fill:
    """Memory of `count` elements of `width` bytes (1, 2 or 4), each the number `value`; `parameters` is where its
    address stands."""

    value: int
    width: int
    count: int
    parameters: int


Step = Launch | Fill
"""One thing that a device does. Its arguments are read from where they stand whenever it is told to do it."""


class Graph(Protocol):
    """Steps that a device has been told once, to be done again and again by one call."""

    def update(self, number: int) -> None:
        """Read the arguments of step `number` again, for the runs to come."""

    def launch(self) -> None:
        """Do all steps, in order."""


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
        """Make this the device that the calling thread speaks to; everything else assumes that."""

    def assemble(self, module: Op, target: Target) -> bytes:
        """The code that `load` takes, of a module with kernels of the gpu dialect, which is lowered in place."""

    def load(self, code: bytes) -> Any:
        """The kernels of some code."""

    def kernel(self, library: Any, name: str) -> Any:
        """One kernel."""

    def allocate(self, size: int) -> int | None:
        """The address of new memory; None if there is not so much."""

    def free(self, address: int) -> None:
        """Give memory back, once all that was asked so far is done."""

    def memory_info(self) -> tuple[int, int]:
        """Bytes that are free, and of all memory."""

    def upload(self, target: int, source: Array) -> None:
        """Copy a contiguous array to the device; it may be written to as soon as this returns."""

    def download(self, target: Array, source: int) -> None:
        """Fill a contiguous array from the device, once all that was asked before is done."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes within the device."""

    def prepare(self, step: Step) -> Callable[[], object]:
        """A callable that executes a step."""

    def graph(self, steps: Sequence[Step]) -> Graph:
        """Steps as one."""

    def synchronize(self, everything: bool = False) -> None:
        """Wait until all that was asked is done; `everything`: by other libraries of this process, too."""

    def settle(self) -> None:
        """The same for this library's work, at any moment, as the collector may: the calling thread goes on speaking
        to the device that it spoke to."""

    def publish(self, stream: int) -> None:
        """Let what is asked of another stream from now on wait for all that was asked here."""

    def await_stream(self, stream: int) -> None:
        """Let what is asked here from now on wait for all that was asked of another stream."""


def forked() -> BackendError:
    """The error of a process whose parent has used a GPU."""
    return BackendError("a process that was forked from one that used a GPU cannot use it", code="MLC0586",
                        hint='start processes anew: multiprocessing.get_context("spawn")')
