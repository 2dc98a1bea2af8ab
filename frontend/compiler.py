"""Compiler interface of the frontend, and the registered compiler.

The frontend only records. Code generation, device memory and the rewriting of Python's control flow are implemented by
a `Compiler`, which mlc.api registers once (`use`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from types import CellType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from mlc.dialects.builtin import Module
from mlc.ir.call_pattern import CallPattern
from mlc.ir.diag import BackendError

if TYPE_CHECKING:
    from mlc.frontend.devices import Array, BackingArray, DeviceArray

class Entry(Protocol):
    """A compiled function."""

    def call(self, arrays: Sequence[Any]) -> Sequence[BackingArray]: ...


class Compiler(Protocol):
    """Interface that a compiler implements for the frontend."""

    def compile(self, module: Module, device: str) -> Entry:
        """Compile the function @main of a module of the tensor level for a device."""

    def native_call(self, entry: Entry, pattern: CallPattern, otherwise: Callable[..., Any],
                    record: Callable[..., Any] | None, gate: CellType) -> Callable[..., Any] | None:
        """A callable as of frontend/dispatch.py, which is closed unless `gate` contains None."""

    def first_changed(self) -> Callable[[int, int, int], int] | None:
        """A native function for `Watch` (script/words.py)."""

    def vendors(self) -> Sequence[str]:
        """The kinds of devices that the compiler supports, by the prefixes of their names, cpu first."""

    def check_device(self, device: str) -> None:
        """Raise an error at the user's line if there is no device of this name."""

    def put(self, array: Array, device: str) -> DeviceArray:
        """Copy a host array to a device."""

    def import_dlpack(self, x: Any) -> DeviceArray:
        """Import a device tensor of another library, without a copy."""

    def dlpack_devices(self) -> Collection[int]:
        """DLPack device types that `import_dlpack` accepts."""

    def captured(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Rewrite a function so that its Python control flow is recorded too."""

    def array_namespace(self, version: str | None) -> ModuleType:
        """The functions of the array API standard; UserError MLC0885 for another version of it."""

    def way_out(self) -> str:
        """A hint for a line of the user's whose control flow on a tensor cannot be recorded; "" if there is none."""


Compile = Callable[[Module, str], Entry]
_given: list[Compiler] = []
_instead: list[Compile] = []


def use(compiler: Compiler) -> None:
    """Register the compiler."""
    _given[:] = [compiler]


def compiler() -> Compiler:
    """The registered compiler; BackendError MLC0685 if there is none."""
    if not _given:
        raise BackendError("the frontend has been given no compiler", code="MLC0685",
                           hint="import mlc.api, which hands it over; or pass one to mlc.frontend.compiler.use")
    return _given[0]


def vendors() -> Sequence[str]:
    """The kinds of devices that the compiler supports; only cpu if none is registered."""
    return _given[0].vendors() if _given else ("cpu",)


def compile_module(module: Module, device: str) -> Entry:
    """Compile the function @main of a module for a device."""
    return (_instead[-1] if _instead else compiler().compile)(module, device)


@contextmanager
def compiled_instead_by(compile: Compile) -> Iterator[None]:
    """Context in which `compile_module` calls `compile`; the compiler keeps its other duties."""
    _instead.append(compile)
    try:
        yield
    finally:
        _instead.pop()
