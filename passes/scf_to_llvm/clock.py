"""Lowering of the clock of timed code to the processor's time stamp counter."""

from __future__ import annotations

from mlc.dialects import llvm
from mlc.dialects.profile import Clock
from mlc.ir.core import Value
from mlc.ir.types import i64
from mlc.passes.lower_to_llvm.lowering import Lowering, rule


@rule(Clock)
def _clock(low: Lowering, op: Clock) -> list[Value]:
    return [llvm.CallIntrinsic("llvm.readcyclecounter", (), types=(i64,)).result]
