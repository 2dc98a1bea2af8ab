"""Write concatenations of many operands piece by piece.

takes  FIXED
gives  FIXED
why    a kernel that evaluates a concatenation at a point asks for each operand whether the point lies in it

A concatenation becomes a chain of updates in place, each of which can be the end of the kernel that computes its piece.
A few operands are rather evaluated where they are used, and so are those of small results, which are not worth a kernel
for each piece.
"""

from __future__ import annotations

from math import prod

from mlc.dialects import tensor
from mlc.dialects.tensor.source import size
from mlc.ir.changes import allowed
from mlc.ir.core import Op, Value, before
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim
from mlc.ir.types import i64
from mlc.passes.forms import FIXED

SMALL = 1024
"""Most elements of a result that is evaluated where it is used, however many operands it has."""


def run(module: Op, operands: int = 4) -> None:
    """Expand concatenations of more than `operands` operands."""
    for op in list(module.inside(tensor.Concat)):
        if len(op.xs) > operands and not _is_small(op) and allowed("pieces", op):
            with before(op, op.loc.through("expand_concat")):
                op.replace_by(_updates(op))


def _is_small(op: tensor.Concat) -> bool:
    return bool(op.result.type.is_static and prod(op.result.type.shape) <= SMALL)


def _updates(op: tensor.Concat) -> Value:
    """The operands, put into place one after the other."""
    shape, dtype = op.result.type.shape, op.result.type.dtype
    out: Value = tensor.Full(False if dtype.is_bool else 0, shape, dtype).result
    start: Dim = 0
    for x in op.xs:
        starts = tuple(size(start if axis == op.axis else 0, i64) for axis in range(len(shape)))
        out = tensor.DynamicUpdateSlice(out, x, starts).result
        start = start + x.type.shape[op.axis]
    return out


PASS = Pass(run, takes=FIXED, gives=FIXED)
