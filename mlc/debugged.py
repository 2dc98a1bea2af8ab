"""Compiled functions with `mlc.debug.print` or `breakpoint` in them: each call runs in the interpreter, too.

The code computes the results. The interpreter runs the module as it was recorded, on the same arguments, before it: so
everything is shown in the order of the program, in loops and branches as often as they run, at the interpreter's pace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects.builtin import Module
from mlc.dialects.tensor.debug import Debug
from mlc.frontend.autograd.function_modules import copy_of
from mlc.frontend.devices import CPU
from mlc.ir.diag import UserError
from mlc.ir.interp import Interpreter


def taken_out(module: Module, device: str) -> Module | None:
    """A copy of a module that shows values, which are removed from the module itself; None if it shows none.

    Raises UserError if the code is for another device (MLC0695).
    """
    found = list(module.inside(Debug))
    if not found:
        return None
    if device != CPU:
        raise UserError(f"mlc.debug shows values on the CPU, and this code is for {device}", code="MLC0695",
                        loc=found[0].loc, hint="move the arguments there: x.cpu()")
    copy = copy_of(module)
    for op in found:
        op.erase()
    return copy


class DebuggedEntry:
    """A compiled function whose module is interpreted first."""

    direct = None

    def __init__(self, entry: Any, module: Module) -> None:
        self._entry, self._module = entry, module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def call(self, arrays: Sequence[Any]) -> Any:
        Interpreter(self._module).run("main", [np.array(x) for x in arrays])
        return self._entry.call(arrays)
