"""Sums, differences and products of indices that do not fit 64 bits."""

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
    """Report at the end of a block the first of its operations on indices, among `ops`, that overflows."""
    found: list[tuple[Value, int]] = []
    for op in block.ops:
        if op in ops and isinstance(op, arith.AddI | arith.SubI | arith.MulI) and isinstance(
                element(op.result.type), IndexType):
            with after(op):
                bad = _overflows(op)
                if isinstance(bad.type, VectorType):
                    bad = vector.Reduction("or", bad).result
            found.append((bad, traps.place(op, f"{op.name} overflows the bits of an index:")))
    if not found:
        return
    with before(block.terminator):
        _report_first(found, traps, errors)


def _report_first(found: Sequence[tuple[Value, int]], traps: Traps, errors: Value) -> None:
    any_bad = found[0][0]
    for bad, _ in found[1:]:
        any_bad = arith.OrI(any_bad, bad).result
    branch = scf.branch(any_bad, otherwise=False)
    with at_end(branch.then_body.block):
        first = value(found[-1][1])
        for bad, place in reversed(found[:-1]):
            first = arith.Select(bad, value(place), first).result
        traps.report(errors, first, value(64))
        scf.Yield(())


def _overflows(op: Any) -> Value:
    """Whether the exact result of an operation is another than that of 64 bits."""
    a, b, out = op.lhs, op.rhs, op.result
    if isinstance(op, arith.MulI):
        wide = like(out.type, f64) if isinstance(out.type, VectorType) else f64
        x, y = (arith.SIToFP(arith.IndexCast(v, _integers(v)).result, wide).result for v in (a, b))
        exact = arith.MulF(x, y).result
        limits = [arith.CmpF(predicate, exact, arith.constant(limit, wide)).result
                  for predicate, limit in (("oge", LIMIT), ("olt", -LIMIT))]
        return arith.OrI(*limits).result
    # A sum has another sign than both terms; a difference another one than its first term, and that not of the second.
    changed = arith.XorI(a, out).result
    other = arith.XorI(b, out if isinstance(op, arith.AddI) else a).result
    both = arith.AndI(changed, other).result
    return arith.CmpI("slt", both, arith.constant(0, out.type)).result


def _integers(v: Value) -> Any:
    return like(v.type, i64) if isinstance(v.type, VectorType) else i64
