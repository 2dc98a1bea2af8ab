"""Run-time checks of threads: only of points that exist."""

from __future__ import annotations

from mlc.dialects import arith, loop
from mlc.ir.interp import ELEMENTS
from mlc.ir.types import i1
from mlc.passes.loop_to_gpu.memory import alone
from mlc.passes.loop_to_gpu.threads import Threads, rule
from mlc.passes.lower_kernel.checks import report
from mlc.passes.lower_kernel.memory import scalar_index


@rule(loop.Check)
def _check(low: Threads, op: loop.Check) -> None:
    """A thread may have points beyond the end of the domain, for which loads give 0: what is computed from that says
    nothing."""
    dims = tuple(sorted({*op.condition.type.dims, *loop.spanned(op.element.leaves)}))
    for point in low.points(dims):
        bad = arith.XorI(low.part(op.condition, point), arith.constant(True, i1)).result
        for holds in [*alone(low, dims), *(low.inside(d, point) for d in dims)]:
            if holds is not None:
                bad = arith.AndI(bad, holds).result
        report(op.errors, bad, scalar_index(low, op.element.result + op.site * ELEMENTS, (), point))
