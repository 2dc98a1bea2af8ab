"""Scores: the sums of a product on tensor cores that are a factor of another, as those of attention.

A thread has the columns of a block of scores that the product gives it: of each eight, two adjacent ones, and of each
16 rows two. The four threads of a row reduce it together.
"""

from __future__ import annotations

from mlc.dialects import arith, gpu, loop, scf
from mlc.dialects.combining import CombiningKind
from mlc.ir import sizes
from mlc.ir.affine import AffineExpr, step_along
from mlc.ir.core import Op, Value, at_end
from mlc.ir.machine import WARP
from mlc.ir.sizes import AffineDim, Dim
from mlc.ir.types import i32
from mlc.passes.loop_to_gpu.threads import Threads, rule
from mlc.passes.lower_kernel import compute
from mlc.passes.lower_kernel.nest import Point

THREADS, PAIR, TOGETHER = 4, 2, 8
"""Threads that share a row, adjacent columns of each, and columns of all."""
FEWEST = 16
"""Columns of a block at least: the terms of a product of 16-bit floats."""


def distribute(low: Threads, origin: Dim, size: int) -> None:
    """From here on, the points of a block of columns that begins at `origin` are those of the thread."""
    d = low.scores
    member = low.named("member", low.number(sizes.modulo(low.thread, THREADS)))
    low.enter(d, origin + member * PAIR, size // THREADS)
    low.scope.groups[d], low.scope.multiples[d] = (PAIR, TOGETHER), PAIR
    if sizes.modulo(low.kernel.domain[d], size) != 0:
        low.scope.ends[d] = low.kernel.domain[d]
    low.scope.first_score = origin


def reduced(low: Threads, op: loop.Reduce, point: Point) -> Value:
    """The columns of a row, combined as a tree: first those of a thread that are eight apart, then those of threads,
    then adjacent ones."""
    d, count = op.dim, low.scope.block[op.dim]
    combine = CombiningKind(op.kind).emit
    parts = [low.part(op.x, (*point[:d], i, *point[d + 1:])) for i in range(count)]
    while len(parts) > PAIR:
        half = len(parts) // 2
        parts = [combine(a, b) for a, b in zip(parts[:half], parts[half:])]
    width, other = arith.constant(WARP, i32), THREADS // 2
    while other:
        offset = arith.constant(other, i32)
        parts = [combine(x, gpu.Shuffle(x, offset, width, mode="xor").results[0]) for x in parts]
        other //= 2
    return combine(*parts)


def largest(low: Threads, expr: AffineExpr, of_warp: bool) -> Dim:
    """The largest value of an expression at the points of a warp, or of a CTA, in the current block of columns."""
    for d in {leaf.position for leaf in sizes.leaves(expr) if isinstance(leaf, AffineDim)}:
        step = step_along(expr, d)
        if d == low.scores:
            first, count = low.scope.first_score, low.kernel.schedule.tile[d]
        elif of_warp:
            first, count = low.corner[d] + low.part_of_warp[d], low.warp_points(d)
        else:
            first, count = low.corner[d], low.points_along(d)
        if step is None:
            low.kernel.fail(f"{expr} has no largest value along d{d} that is known", code="MLC0171")
        assert step is not None
        expr = sizes.substitute(expr, {AffineDim(d): first + (count - 1 if step > 0 else 0)})
    return expr


@rule(loop.Map)
def _map(low: Threads, op: loop.Map) -> None:
    """Scores that are replaced at some points are looked at only if there may be such a point in the warp."""
    if low.scores < 0 or (number := replaced(low, op)) is None:
        compute.lower_map(low, op)
        return
    scores, keys = op.tiles[1], low.points(op.results[0].type.dims)
    beyond = arith.CmpI("sgt", low.number(largest(low, number, of_warp=True)), low.number(0)).result
    branch = scf.branch(beyond, [scores.type.dtype] * len(keys))
    with at_end(branch.then_body.block), low.scoped():
        assert op.tiles[0].op is not None
        low.lower(op.tiles[0].op)                        # where it is needed, and not before
        compute.lower_map(low, op)
        scf.Yield(tuple(low.part(op.results[0], p) for p in keys))
    with at_end(branch.else_body.block):
        scf.Yield(tuple(low.part(scores, p) for p in keys))
    low.scope.tiles[op.results[0]] = dict(zip(keys, branch.results))


def replaced(low: Threads, op: loop.Map) -> AffineExpr | None:
    """A number that is positive where scores are replaced; None if an operation does other things.

    It selects the score or another number, by whether an index is positive, or a point of the domain.
    """
    chosen, body = op.body.block.terminator.operands[0].op, op.body.block
    if not isinstance(chosen, arith.Select) or len(op.tiles) != 2 or op.tiles[1].type != op.results[0].type:
        return None
    source, d = op.tiles[0].op, low.scores
    if isinstance(source, loop.InBounds) and source.dim == d:
        found = chosen.condition is body.args[0] and chosen.true_value is body.args[1]
        return loop.coordinate(d) - low.kernel.domain[d] + 1 if found else None
    test = chosen.condition.op
    positive = isinstance(test, arith.CmpI) and test.predicate == "sgt" and test.lhs is body.args[0] and _is_zero(
        test.rhs.op)
    found = positive and isinstance(source, loop.Index) and d in source.result.type.dims and (
        chosen.false_value is body.args[1])
    return source.map.result if found and isinstance(source, loop.Index) else None


def _is_zero(op: Op | None) -> bool:
    return isinstance(op, arith.Constant) and op.value == 0
