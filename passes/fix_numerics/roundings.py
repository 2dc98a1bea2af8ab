"""Roundings to 16 bits that a program with excess precision does without.

    y = cast(x) to bf16; z = cast(y) to f32        becomes        z = x

where all that reads y is such casts, and what reads these is one or two arithmetic operations on elements, or
reductions. What is returned, what a product reads in 16 bits, what is moved, selected, converted or stored, and what
more operations read, is rounded as before: in f32 it would take twice the memory. XLA calls this excess precision, too.
It is part of the program from here on, so that schedules and threads have no part in it; code for other sizes, in which
an operation has gone, may round at other places.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mlc.dialects import tensor as tn
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.dialects.tensor.reduce import Reduce
from mlc.ir.changes import allowed
from mlc.ir.core import Op
from mlc.ir.types import bf16, f16, f32

MOST_READERS = 2
"""Readers of a value that is not rounded: those of x * sigmoid(x) are in one kernel, and more may be in several."""


def remove_roundings(module: Op) -> None:
    """Leave out the roundings of a module that it does without."""
    for op in list(module.inside(tn.Cast)):
        if op.parent is not None and op.result.type.dtype in (bf16, f16) and op.x.type.dtype == f32:
            widened = _only_widened(op)
            if widened and allowed("excess precision", op):
                for cast in widened:
                    cast.replace_by(op.x)
                op.erase()


def _only_widened(rounding: tn.Cast) -> Collection[tn.Cast]:
    """The casts back to f32 of a value, if nothing else reads it and few operations read them; else none."""
    users: Sequence[Op] = rounding.result.users
    casts = {op for op in users if isinstance(op, tn.Cast) and op.result.type.dtype == f32}
    readers = {op for cast in casts for op in cast.result.users}
    fits = all(isinstance(op, Elementwise | tn.Map | Reduce) and not isinstance(op, tn.Cast) for op in readers)
    return casts if fits and len(casts) == len({*users}) and len(readers) <= MOST_READERS else ()
