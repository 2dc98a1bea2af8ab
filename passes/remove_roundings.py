"""Leave out roundings to 16 bits between operations, in programs that allow excess precision.

takes  FIXED
gives  FIXED: fewer casts; of a module without the attribute `excess_precision`, the same
why    f16 and bf16 are computed in f32 and rounded after each operation, which takes longer than many of them; once
       operations on them are those of f32, and before kernels are formed

    y = cast(x) to bf16; z = cast(y) to f32        becomes        z = x

where all that reads y is such casts, and what reads these is one or two operations on elements, or reductions. A value
that a product reads in 16 bits, that is returned, or that many operations read, is rounded as before: in f32 it would
take twice the memory. XLA calls this excess precision, too. It depends on the program alone, so results have the same
bits for all sizes, schedules and threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import tensor as tn
from mlc.dialects.builtin import EXCESS_PRECISION, Module
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.dialects.tensor.reduce import Reduce
from mlc.ir.changes import allowed
from mlc.ir.passes import Pass
from mlc.ir.types import bf16, f16, f32
from mlc.passes.forms import FIXED

MOST_READERS = 2
"""Readers of a value that is not rounded: those of x * sigmoid(x) are in one kernel, and more may be in several."""


def run(module: Module) -> None:
    """Leave out roundings of a module that allows it."""
    if EXCESS_PRECISION not in module.attrs:
        return
    for op in list(module.inside(tn.Cast)):
        if op.parent is not None and op.result.type.dtype in (bf16, f16) and op.x.type.dtype == f32:
            widened = _only_widened(op)
            if widened and allowed("excess precision", op):
                for cast in widened:
                    cast.replace_by(op.x)
                op.erase()


def _only_widened(rounding: tn.Cast) -> Sequence[tn.Cast]:
    """The casts back to f32 of a value, if nothing else reads it and few operations read them; else none."""
    casts = [op for op in rounding.result.users if isinstance(op, tn.Cast) and op.result.type.dtype == f32]
    readers = [op for cast in casts for op in cast.result.users]
    fits = all(isinstance(op, Elementwise | tn.Map | Reduce) for op in readers)
    return casts if fits and len(casts) == len(rounding.result.users) and len(readers) <= MOST_READERS else ()


PASS = Pass(run, takes=FIXED, gives=FIXED)
