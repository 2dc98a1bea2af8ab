"""The compiler registered with the frontend: native code, devices, and the recording of Python's control flow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import CellType, ModuleType
from typing import Any

from mlc.backends.target import VENDORS, part_of
from mlc.code import Placement, device_memory
from mlc.debugged import DebuggedEntry, taken_out
from mlc.dialects.builtin import Module
from mlc.frontend.compiler import Entry
from mlc.frontend.devices import Array, DeviceArray
from mlc.frontend.location import user_loc
from mlc.frontend.script import runtime
from mlc.frontend.tensor import Tensor
from mlc.ir.call_pattern import CallPattern
from mlc.ir.diag import UserError
from mlc.ir.profiling import state as profiling


class FrontendCompiler:
    """The `Compiler` of frontend/compiler.py.

    native_code  makes code of a module for a placement
    """

    def __init__(self, native_code: Callable[[Module, Placement], Any]) -> None:
        self._native_code = native_code

    def compile(self, module: Module, device: str) -> Entry:
        debugged = taken_out(module, device)
        entry: Entry = self._native_code(module, Placement(device).timed(profiling.kernels)).entry("main")
        return entry if debugged is None else DebuggedEntry(entry, debugged)

    def native_call(self, entry: Entry, pattern: CallPattern, otherwise: Callable[..., Any],
                    record: Callable[..., Any] | None, gate: CellType) -> Callable[..., Any] | None:
        from mlc.backends import executable
        from mlc.backends.cpu.callable import make_pattern_callable
        if type(entry) is not executable.Entry:
            return None
        return make_pattern_callable(entry, pattern, otherwise, Tensor, record, gate)  # type: ignore[no-any-return]

    def first_changed(self) -> Callable[[int, int, int], int] | None:
        from mlc.backends.cpu.callable import first_changed
        return first_changed()

    def vendors(self) -> Sequence[str]:
        return VENDORS

    def check_device(self, device: str) -> None:
        device_memory(device)

    def put(self, array: Array, device: str) -> DeviceArray:
        return device_memory(device).array(array)

    def import_dlpack(self, x: Any) -> DeviceArray:
        vendor = next(v for v in VENDORS[1:] if part_of(v, "targets").DLPACK == x.__dlpack_device__()[0])
        return part_of(vendor, "toolchain").import_dlpack(x)       # type: ignore[no-any-return]

    def dlpack_devices(self) -> Collection[int]:
        return [part_of(vendor, "targets").DLPACK for vendor in VENDORS[1:]]

    def captured(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return runtime.captured(f)                         # type: ignore[no-any-return]

    def array_namespace(self, version: str | None) -> ModuleType:
        from mlc import array_api
        if version is not None and version not in array_api.VERSIONS:
            raise UserError(f"there is no version {version!r} of the array API standard here", code="MLC0885",
                            loc=user_loc(), hint=f"ask for {' or '.join(map(repr, array_api.VERSIONS))}, or for none")
        return array_api

    def way_out(self) -> str:
        return runtime.way_out()
