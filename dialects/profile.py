"""profile: the clock of code that times its kernels (passes/time_kernels.py). No other code has operations of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mlc.ir.core import Op
from mlc.ir.types import Type, i64

if TYPE_CHECKING:
    from mlc.ir.interp import Frame


class Clock(Op, name="profile.clock", pure=False):
    """result = the cycles of the processor's time stamp counter; in the interpreter, nanoseconds

        %t = profile.clock : i64
    """

    format = "attr-dict `:` type(result)"

    def infer(self) -> Type:
        return i64

    def interpret(self, frame: Frame) -> int:
        return time.perf_counter_ns()
