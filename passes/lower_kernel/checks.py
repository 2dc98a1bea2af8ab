"""Run-time checks in kernels: the smallest failing element is recorded."""

from __future__ import annotations

from mlc.dialects import arith, loop, memref, scf, vector
from mlc.ir.affine import step_along
from mlc.ir.core import Value, at_end
from mlc.ir.interp import ELEMENTS
from mlc.ir.types import VectorType, i1, i64, index
from mlc.passes.lower_kernel.memory import scalar_index
from mlc.passes.lower_kernel.nest import Lowering, rule


@rule(loop.Check)
def _check(low: Lowering, op: loop.Check) -> None:
    dims = tuple({*op.condition.type.dims, *loop.spanned(op.element.leaves)})
    for point in low.points(dims):
        condition = low.part(op.condition, point)
        number = scalar_index(low, op.element.result + op.site * ELEMENTS, (), point)
        if not isinstance(condition.type, VectorType):
            report(op.errors, arith.XorI(condition, arith.constant(True, i1)).result, number)
            continue
        lanes = low.lanes
        bad = arith.XorI(condition, arith.constant(True, VectorType((lanes,), i1))).result
        if (mask := low.mask(point)) is not None:
            bad = arith.AndI(bad, mask).result
        step = step_along(op.element.result, low.scope.vector)
        assert step is not None, "the position of an element is linear in each coordinate"
        branch = scf.branch(vector.Reduction("or", bad).result, otherwise=False)
        with at_end(branch.then_body.block), low.scoped():
            for lane in range(lanes):
                moved = arith.AddI(number, low.number(step * lane)).result
                report(op.errors, vector.Extract(bad, (), (lane,)).result, moved)
            scf.Yield(())


def report(errors: Value, bad: Value, number: Value) -> None:
    """If `bad`, record the minimum of `number` and the recorded one, atomically: threads may fail concurrently."""
    branch = scf.branch(bad, otherwise=False)
    with at_end(branch.then_body.block):
        memref.AtomicRMW(arith.IndexCast(number, i64).result, errors, (arith.constant(0, index),), kind="minu")
        scf.Yield(())
