"""Compiler interface of the frontend, and the compiler that it has been given.

The frontend records; who makes code of a recording, where arrays of devices live, and what becomes of Python's control
flow is not its business. Whoever puts the parts together hands over an object that knows (`use`), once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from mlc.dialects.builtin import Module
from mlc.ir.diag import BackendError

if TYPE_CHECKING:
    from mlc.frontend.devices import Array, BackingArray, DeviceArray

compiling = threading.RLock()
"""Held while anything is compiled. A fork waits for it: a child cannot go on with what another thread has begun."""
os.register_at_fork(before=compiling.acquire, after_in_parent=compiling.release, after_in_child=compiling.release)


class Entry(Protocol):
    """A compiled function."""

    def call(self, arrays: Sequence[Any]) -> Sequence[BackingArray]: ...


class Compiler(Protocol):
    """Interface that a compiler implements for the frontend."""

    def compile(self, module: Module, device: str) -> Entry:
        """The function @main of a module of the tensor level, for the device of this name."""

    def vendors(self) -> Sequence[str]:
        """The kinds of devices that there is code for, as their names begin: cpu first."""

    def check_device(self, device: str) -> None:
        """Raise an error at the user's line if there is no device of this name."""

    def put(self, array: Array, device: str) -> DeviceArray:
        """A copy of an array of the CPU's memory, on the device of this name."""

    def import_dlpack(self, x: Any) -> DeviceArray:
        """The array of another library's tensor that is on a device, sharing its memory."""

    def dlpack_devices(self) -> Collection[int]:
        """DLPack device types of the arrays that `import_dlpack` takes."""

    def captured(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function that records what this one does, Python's control flow included."""

    def way_out(self) -> str:
        """A hint for a line of the user's that asks a tensor in a way that is not recorded; "" if there is none."""


Compile = Callable[[Module, str], Entry]
_given: list[Compiler] = []
_instead: list[Compile] = []


def use(compiler: Compiler) -> None:
    """Let the frontend have this compiler."""
    _given[:] = [compiler]


def compiler() -> Compiler:
    """The compiler that was handed over; BackendError MLC0685 if none was."""
    if not _given:
        raise BackendError("the frontend has been given no compiler", code="MLC0685",
                           hint="import mlc.api, which hands it over; or pass one to mlc.frontend.compiler.use")
    return _given[0]


def vendors() -> Sequence[str]:
    """The kinds of devices that there is code for: that of arrays alone, where no compiler was handed over."""
    return _given[0].vendors() if _given else ("cpu",)


def compile_module(module: Module, device: str) -> Entry:
    """The function @main of a module, compiled for the device of this name."""
    return (_instead[-1] if _instead else compiler().compile)(module, device)


@contextmanager
def compiled_instead_by(compile: Compile) -> Iterator[None]:
    """Within, `compile_module` calls this; the compiler does the rest."""
    _instead.append(compile)
    try:
        yield
    finally:
        _instead.pop()
