"""What the run time asks of a device, and which devices this machine has.

A device works on its own, in the order in which it is told (its stream): what is asked of it here returns before it is
done, but for `download`, `synchronize` and whatever has to wait for memory. Addresses are plain numbers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mlc.backends.cuda.targets import TARGETS as GPUS
from mlc.backends.cuda.targets import architecture
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
    """What kind of code it loads; part of what the compile cache knows code by."""
    architecture: int
    """Ten times the compute capability: 90 runs code for sm_90 and older."""
    stream: int
    """What other libraries know its order of work by."""

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

    def room(self) -> tuple[int, int]:
        """Bytes that are free, and of all memory."""

    def upload(self, target: int, source: Array) -> None:
        """Copy a contiguous array to the device; it may be written to as soon as this returns."""

    def download(self, target: Array, source: int) -> None:
        """Fill a contiguous array from the device, once all that was asked before is done."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes within the device."""

    def prepare(self, step: Step) -> Callable[[], object]:
        """What does a step when it is called."""

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


# -- which devices there are ------------------------------------------------------------------------------------------
_opened: dict[int, Device] = {}
_opening = threading.RLock()
_forked = False


def _after_fork() -> None:
    global _forked, _opening
    _forked, _opening = bool(_opened) or _forked, threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def forked() -> BackendError:
    """The error of a process whose parent has used a GPU."""
    return BackendError("a process that was forked from one that used a GPU cannot use it", code="MLC0586",
                        hint='start processes anew: multiprocessing.get_context("spawn")')


def count() -> int:
    """How many devices there are; BackendError if nothing can be said of them."""
    from mlc.backends.cuda import driver
    return len(_opened) if _substituted else driver.count()


def device(ordinal: int = 0) -> Device:
    """The device of this number, ready for work; BackendError with the reason if there is none."""
    if _forked:
        raise forked()
    found = _opened.get(ordinal)
    if found is None:
        with _opening:
            if (found := _opened.get(ordinal)) is None:
                from mlc.backends.cuda import driver
                found = _opened[ordinal] = driver.open_device(ordinal)
    return found


_substituted = False


def substitute(devices: dict[int, Device] | None) -> None:
    """Have these in place of the devices of this machine; None for those again."""
    global _substituted
    _substituted = devices is not None
    _opened.clear()
    _opened.update(devices or {})


def assembler() -> tuple[str, Callable[[Op, Target], bytes]]:
    """The kind of code that devices load, and what makes it: PTX, but for those that stand in for devices."""
    if _substituted and _opened:
        stand_in = next(iter(_opened.values()))
        return stand_in.form, stand_in.assemble
    from mlc.backends.cuda.ptx import assemble
    return PTX, assemble


def target_for(found: Device) -> Target:
    """The target that makes the best code for a device."""
    known = [target for target in GPUS.values() if architecture(target) <= found.architecture]
    if not known:
        raise BackendError(f"{found.name} has compute capability {found.architecture / 10}, and the oldest that mlc "
                           f"makes code for is {min(map(architecture, GPUS.values())) / 10}", code="MLC0588",
                           hint='use target="host"')
    return max(known, key=architecture)


def check_runs(target: Target, found: Device) -> None:
    """BackendError unless a device can run code for `target`."""
    if architecture(target) > found.architecture:
        raise BackendError(f"{found.name} (sm_{found.architecture}) cannot run code made for {target}", code="MLC0588",
                           hint='target="cuda" compiles for the device that is there')
