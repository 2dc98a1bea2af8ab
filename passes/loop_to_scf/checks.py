"""Conditions that kernels check: the least failing element is recorded."""

from __future__ import annotations

from mlc.dialects import arith, loop, memref, scf, vector
from mlc.dialects.builtin import Module
from mlc.dialects.func import Call, Return, function
from mlc.ir.core import Symbol, Value, at_end
from mlc.ir.types import FunctionType, MemRefType, VectorType, i1, i64, index
from mlc.passes.loop_to_scf.memory import scalar_index
from mlc.passes.loop_to_scf.nest import Lowering, rule
from mlc.passes.vectorize import stride


@rule(loop.Check)
def _check(low: Lowering, op: loop.Check) -> None:
    dims = tuple({*op.condition.type.dims, *loop.spanned((op.element,))})
    record = recorder(low.module)
    site = arith.constant(op.site, i64)
    for point in low.points(dims):
        condition = low.part(op.condition, point)
        linear = scalar_index(low, op.element, (), point)
        if not isinstance(condition.type, VectorType):
            bad = arith.XorI(condition, arith.constant(True, i1)).result
            _report(record, op.errors, bad, site, linear)
            continue
        lanes = low.lanes
        bad = arith.XorI(condition, arith.constant(True, VectorType((lanes,), i1))).result
        if (mask := low.mask(point)) is not None:
            bad = arith.AndI(bad, mask).result
        step = stride(op.element, f"d{low.scope.vector}")
        assert step is not None, "the position of an element is linear in each coordinate"
        branch = scf.branch(vector.Reduction("or", bad).result, otherwise=False)
        with at_end(branch.then_body.block), low.scoped():
            for lane in range(lanes):
                lane_bad = vector.Extract(bad, (), (lane,)).result
                moved = arith.AddI(linear, low.number(step * lane)).result
                _report(record, op.errors, lane_bad, site, moved)
            scf.Yield(())


def _report(record: Symbol, errors: Value, bad: Value, site: Value, position: Value) -> None:
    branch = scf.branch(bad, otherwise=False)
    with at_end(branch.then_body.block):
        Call(record, (errors, site, arith.IndexCast(position, i64).result), ())
        scf.Yield(())


def recorder(module: Module) -> Symbol:
    """`@record_error(errors, site, element)`, which keeps the least (site, element) that was reported."""
    inputs = (MemRefType((2,), i64), i64, i64)
    named = {op.attrs.get("sym_name"): op for op in module.body.block}
    name = Symbol("record_error")
    while name in named:
        if named[name].attrs.get("function_type") == FunctionType(inputs, ()):
            return name
        name = Symbol(name + "_")                    # a function of the user has the name
    f = function(name, inputs, ["errors", "site", "element"], private=True)
    errors, site, position = f.args
    with at_end(f.block, f.loc):
        at = [arith.constant(i, index) for i in (0, 1)]
        held_site, held_position = (memref.Load(errors, (i,)).result for i in at)
        none = arith.CmpI("slt", held_site, arith.constant(0, i64)).result
        earlier = arith.CmpI("slt", site, held_site).result
        same = arith.CmpI("eq", site, held_site).result
        less = arith.AndI(same, arith.CmpI("slt", position, held_position).result).result
        branch = scf.branch(arith.OrI(none, arith.OrI(earlier, less).result).result, otherwise=False)
        with at_end(branch.then_body.block):
            memref.Store(site, errors, (at[0],))
            memref.Store(position, errors, (at[1],))
            scf.Yield(())
        Return(())
    f.update_type()
    module.body.block.insert(f)
    return name
