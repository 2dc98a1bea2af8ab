"""Sorts by a comparator.

A comparator of the keys of two elements, by `<` or `>`, is a sort of mlc's by these keys. Any other sorts by a network
of exchanges, which keeps the order of elements that are equal.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mlc.frontend.stablehlo.elementwise import full, is_float, ordered, over_elements
from mlc.frontend.stablehlo.syntax import Operation, Region
from mlc.frontend.stablehlo.table import row
from mlc.frontend.tensor import OPERATIONS as O

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step


@row("stablehlo.sort")
def sort(step: Step, *xs: Any) -> tuple[Any, ...]:
    op, rank = step.op, len(xs[0].shape) if xs else 0
    if not rank or len(op.regions) != 1:
        op.wrong("it sorts no array")
    axis = op.get("dimension", -1)
    axis = axis + rank if isinstance(axis, int) and axis < 0 else axis
    if not isinstance(axis, int) or not 0 <= axis < rank:
        op.wrong(f"there is no dimension {axis}")
    if (isinstance(xs[0].shape[axis], int) and xs[0].shape[axis] < 2) or math.prod(xs[0].shape) == 0:
        return xs
    if (found := _keys(step, xs)) is not None:
        keys, descending = found
        if is_float(keys):
            keys = ordered(keys)
        order = O["argsort"](keys, axis, descending=descending, stable=True)
        return tuple(O["gather"](x, axis, order) for x in xs)
    return _network(step, xs, axis)


def _keys(step: Step, xs: tuple[Any, ...]) -> tuple[Any, bool] | None:
    """The keys by which a comparator compares two elements, and whether the larger comes first."""
    region = step.op.regions[0]
    end = region.last
    by_name = {n: op for op in region.operations for n in op.names}
    last = by_name.get(end.operands[0]) if end is not None and len(end.operands) == 1 else None
    if last is None or last.name != "stablehlo.compare" or last.get("comparison_direction") not in ("LT", "GT"):
        return None
    first, second = (_expression(n, by_name, region) for n in last.operands)
    uses = [sorted(_arguments(e)) for e in (first, second)]
    if len(uses[0]) != 1 or len(uses[1]) != 1 or uses[0][0] % 2 or uses[1][0] != uses[0][0] + 1 \
            or _shifted(first, 0) != _shifted(second, 1):
        return None
    number = uses[0][0]
    x = xs[number // 2]
    if is_float(x) and last.get("compare_type") != "TOTALORDER":
        return None                                        # NaN and zeros of both signs have no order in it
    if last.operands[0] == region.names[number]:
        return x, last.get("comparison_direction") == "GT"

    def key(y: Any) -> tuple[Any, ...]:
        scope = step.scope.inner()
        scope.values[region.names[number]] = y
        for op in region.operations:
            if op is last:
                break
            if _needs(op, by_name, region, number):
                step.interpreter._run(op, scope)
        return (scope.values[last.operands[0]],)

    return over_elements(key, (x,))[0], last.get("comparison_direction") == "GT"


def _needs(op: Operation, by_name: dict[str, Operation], region: Region, number: int) -> bool:
    """Whether an operation computes with one argument and constants only."""
    return all(_arguments(_expression(n, by_name, region)) <= {number} for n in op.names)


def _expression(name: str, by_name: dict[str, Operation], region: Region, depth: int = 0) -> Any:
    """A value of the comparator as a tree of its operations; arguments are their numbers."""
    if name in region.names:
        return ("argument", region.names.index(name))
    op = by_name.get(name)
    if op is None or depth > 40 or op.regions:
        return ("outside", name)
    attrs = tuple(sorted((k, v.tobytes() if hasattr(v, "tobytes") else str(v)) for k, v in op.attrs.items()))
    return (op.name, attrs, *(_expression(n, by_name, region, depth + 1) for n in op.operands))


def _arguments(e: Any) -> set[int]:
    if e[0] == "argument":
        return {e[1]}
    return set[int]().union(*(_arguments(x) for x in e[2:])) if e[0] != "outside" else set()


def _shifted(e: Any, by: int) -> Any:
    if e[0] == "argument":
        return ("argument", e[1] - by)
    return e if e[0] == "outside" else (*e[:2], *(_shifted(x, by) for x in e[2:]))


def _network(step: Step, xs: tuple[Any, ...], axis: int) -> tuple[Any, ...]:
    """Batcher's bitonic network along the last axis, of elements with their first positions, which decide ties."""
    n = xs[0].shape[axis]
    if not isinstance(n, int):
        step.op.refuse("a sort by this comparator needs a size that is a number")
    size = 1 << (n - 1).bit_length()
    rows = [O["movedim"](x, axis, -1) for x in xs]
    lead = tuple(rows[0].shape[:-1])
    position = O["broadcast_to"](O["arange"](size), (*lead, size))
    if size > n:                                           # what fills up the row is behind all elements
        rows = [O["cat"]([r, O["broadcast_to"](r[..., :1], (*lead, size - n))], -1) for r in rows]
    rows = [*rows, position]
    before = step.body()
    span = 2
    while span <= size:
        gap = span // 2
        while gap:
            rows = _exchange(before, rows, n, span, gap, size)
            gap //= 2
        span *= 2
    return tuple(O["movedim"](r[..., :n], -1, axis) for r in rows[:-1])


def _exchange(before: Any, rows: list[Any], n: int, span: int, gap: int, size: int) -> list[Any]:
    """Put elements `gap` apart into order, ascending and descending in turn in blocks of `span`."""
    halves = [O["reshape"](r, (*r.shape[:-1], size // (2 * gap), 2, gap)) for r in rows]
    low, high = [h[..., 0, :] for h in halves], [h[..., 1, :] for h in halves]
    pairs = [x for a, b in zip(low[:-1], high[:-1]) for x in (a, b)]
    swapped = [x for a, b in zip(low[:-1], high[:-1]) for x in (b, a)]
    first, second = over_elements(before, pairs)[0], over_elements(before, swapped)[0]
    i, j = low[-1], high[-1]
    fills = O["logical_or"](O["ge"](i, n), O["ge"](j, n))
    earlier = O["where"](O["logical_or"](fills, O["eq"](first, second)), O["lt"](i, j), first)
    starts = O["reshape"](O["arange"](size), (size // (2 * gap), 2, gap))[..., 0, :]
    ascending = O["eq"](O["bitwise_and"](starts, full(span, starts)), 0) if span < size else O["ge"](starts, 0)
    keep = O["eq"](earlier, O["broadcast_to"](ascending, earlier.shape))
    out = []
    for a, b in zip(low, high):
        both = [O["where"](keep, a, b), O["where"](keep, b, a)]
        out.append(O["reshape"](O["stack"](both, -2), (*a.shape[:-2], size)))
    return out
