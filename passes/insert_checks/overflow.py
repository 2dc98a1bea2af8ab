"""Overflow checks of sums, differences and products of indices."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from mlc.dialects import arith, scf, vector
from mlc.ir.core import Block, Op, Value, after, at_end, before
from mlc.ir.types import IndexType, VectorType, element, f64, i64, like
from mlc.passes.insert_checks.numbers import value
from mlc.passes.insert_checks.traps import Traps

LIMIT = float(1 << 63)


def check_overflow(block: Block, ops: Collection[Op], traps: Traps, errors: Value) -> None:
    """Report, at the end of a block, the first of its index operations among `ops` that overflows."""
    conditions: list[tuple[Value, int]] = []
    for op in block.ops:
        if op in ops and isinstance(op, arith.AddI | arith.SubI | arith.MulI) and isinstance(
                element(op.result.type), IndexType):
            with after(op):
                bad = _overflows(op)
                if isinstance(bad.type, VectorType):
                    bad = vector.Reduction("or", bad).result
            conditions.append((bad, traps.place(op, f"{op.name} overflows the bits of an index:")))
    if not conditions:
        return
    with before(block.terminator):
        _report_first(conditions, traps, errors)


def _report_first(conditions: Sequence[tuple[Value, int]], traps: Traps, errors: Value) -> None:
    any_bad = conditions[0][0]
    for bad, _ in conditions[1:]:
        any_bad = arith.OrI(any_bad, bad).result
    branch = scf.branch(any_bad, otherwise=False)
    with at_end(branch.then_body.block):
        first = value(conditions[-1][1])
        for bad, place in reversed(conditions[:-1]):
            first = arith.Select(bad, value(place), first).result
        traps.report(errors, first, value(64))
        scf.Yield(())


def _overflows(op: Any) -> Value:
    """Whether the exact result of an operation does not fit 64 bits."""
    a, b, out = op.lhs, op.rhs, op.result
    if isinstance(op, arith.MulI):
        wide = like(out.type, f64) if isinstance(out.type, VectorType) else f64
        x, y = (arith.SIToFP(arith.IndexCast(v, _integers(v)).result, wide).result for v in (a, b))
        exact = arith.MulF(x, y).result
        limits = [arith.CmpF(predicate, exact, arith.constant(limit, wide)).result
                  for predicate, limit in (("oge", LIMIT), ("olt", -LIMIT))]
        return arith.OrI(*limits).result
    # A sum overflows if its sign differs from both terms'; a difference, if its sign and the sign of its second term
    # differ from that of its first.
    changed = arith.XorI(a, out).result
    other = arith.XorI(b, out if isinstance(op, arith.AddI) else a).result
    both = arith.AndI(changed, other).result
    return arith.CmpI("slt", both, arith.constant(0, out.type)).result


def _integers(v: Value) -> Any:
    return like(v.type, i64) if isinstance(v.type, VectorType) else i64
