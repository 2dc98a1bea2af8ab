"""What mlc hands over to the frontend: native code, devices, and Python's control flow as it is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlc.code import Placement, place_named
from mlc.dialects.builtin import Module
from mlc.frontend.compiler import Entry
from mlc.frontend.devices import CUDA, Array, DeviceArray
from mlc.frontend.script import runtime


class FrontendCompiler:
    """The `Compiler` of frontend/compiler.py.

    native_code  makes code of a module for a placement
    """

    def __init__(self, native_code: Callable[[Module, Placement], Any]) -> None:
        self._native_code = native_code

    def compile(self, module: Module, where: str) -> Entry:
        entry: Entry = self._native_code(module, Placement(where)).entry("main")
        return entry

    def check_device(self, where: str) -> None:
        place_named(where)

    def put(self, array: Array, where: str) -> DeviceArray:
        return place_named(where).array(array)

    def adopt(self, x: Any) -> DeviceArray:
        from mlc.backends.cuda.dlpack import adopt
        return adopt(x, place_named(f"{CUDA}:{x.__dlpack_device__()[1]}"))

    def captured(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return runtime.captured(f)                         # type: ignore[no-any-return]

    def way_out(self) -> str:
        return runtime.way_out()
