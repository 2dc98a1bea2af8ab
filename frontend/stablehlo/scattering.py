"""Scatter: updates of the elements of an operand at indices that are elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlc.frontend.control import fori_loop
from mlc.frontend.stablehlo.elementwise import full
from mlc.frontend.stablehlo.gathering import at_axis, columns, numbers
from mlc.frontend.stablehlo.reductions import Body, kind_of
from mlc.frontend.stablehlo.syntax import Region
from mlc.frontend.stablehlo.table import row
from mlc.frontend.tensor import OPERATIONS as O

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step

REDUCE = {"sum": "sum", "prod": "prod", "amax": "amax", "amin": "amin"}
"""Reductions, as `scatter_reduce` names them."""


@row("stablehlo.scatter")
def scatter(step: Step, *operands: Any) -> tuple[Any, ...]:
    op, count = step.op, len(operands) // 2
    if len(operands) % 2 == 0 or len(op.regions) != 1:
        op.wrong("it takes arrays, indices and as many updates")
    xs, indices, updates = operands[:count], operands[count], operands[count + 1:]
    flat = O["reshape"](positions(step, xs[0], indices, updates[0]), (-1,))
    found = add_each(step.body(), op.regions[0], tuple(O["reshape"](x, (-1,)) for x in xs), flat,
                     tuple(O["reshape"](u, (-1,)) for u in updates))
    return tuple(O["reshape"](y, x.shape) for x, y in zip(xs, found))


def positions(step: Step, x: Any, indices: Any, update: Any) -> Any:
    """For each element of the update, the number of the operand's element that it goes to; -1 for none."""
    op, dims = step.op, step.op.need("scatter_dimension_numbers")
    if not isinstance(dims, dict):
        op.wrong("its dimension numbers are no #stablehlo.scatter")
    windows, inserted = numbers(step, dims, "update_window_dims"), numbers(step, dims, "inserted_window_dims")
    batching, index_batching = (numbers(step, dims, n) for n in ("input_batching_dims",
                                                                 "scatter_indices_batching_dims"))
    mapped, axis = numbers(step, dims, "scatter_dims_to_operand_dims"), dims.get("index_vector_dim", 0)
    rank = len(update.shape)
    starts, batch_shape = columns(step, indices, axis, len(mapped))
    batch_axes = [a for a in range(rank) if a not in windows]
    kept = [a for a in range(len(x.shape)) if a not in (*inserted, *batching)]
    if len(batch_axes) != len(batch_shape) or len(kept) != len(windows) \
            or any(a >= len(x.shape) for a in (*inserted, *batching, *mapped)):
        op.wrong("its dimension numbers do not fit the operands")
    place = O["zeros"](1, dtype="int64")[0]
    inside = O["ones"](1, dtype="bool")[0]
    stride: Any = 1
    for a in reversed(range(len(x.shape))):
        n = x.shape[a]
        found = None
        if a in mapped:
            found = at_axis(starts[mapped.index(a)], batch_axes, rank)
        if a in batching:
            where = index_batching[batching.index(a)]
            where -= isinstance(axis, int) and axis < where
            found = at_axis(O["arange"](n), [batch_axes[where]], rank)
        elif a in kept:
            w = windows[kept.index(a)]
            offsets = at_axis(O["arange"](update.shape[w]), [w], rank)
            if found is not None:                          # a start that is far outside must not wrap around
                found = O["clamp"](found, -(1 << 40), 1 << 40)
            found = offsets if found is None else O["add"](found, offsets)
        if found is not None:
            inside = O["logical_and"](inside, O["logical_and"](O["ge"](found, 0), O["lt"](found, n)))
            last = max(n - 1, 0) if isinstance(n, int) else n - 1
            place = O["add"](place, O["mul"](O["clamp"](found, 0, last), stride))
        stride = stride * n
    return O["broadcast_to"](O["where"](inside, place, full(-1, place)), tuple(update.shape))


def add_each(body: Body, region: Region, xs: tuple[Any, ...], at: Any, updates: tuple[Any, ...]) -> tuple[Any, ...]:
    """Rows with updates put in, one after the other; those at -1 are left out."""
    count, n = math.prod(at.shape), xs[0].shape[0]
    if (isinstance(count, int) and count == 0) or (isinstance(n, int) and n == 0):
        return xs
    if len(xs) == 1:
        kind = kind_of(region, xs[0].dtype)
        replaces = len(region.operations) == 1 and region.last is not None and region.last.operands == region.names[1:]
        if replaces or (kind in REDUCE and not xs[0].dtype.is_complex) or kind == "sum":
            # one element more, which takes what goes nowhere
            longer = O["cat"]([xs[0], O["broadcast_to"](full(0, xs[0]), (1,))], 0)
            place = O["where"](O["lt"](at, 0), full(0, at) + n, at)
            if replaces:
                return (O["index_put"](longer, (last_of(place, count, n),), updates[0])[:n],)
            if kind == "sum":
                return (O["index_put"](longer, (place,), updates[0], accumulate=True)[:n],)
            return (O["scatter_reduce"](longer, 0, place, updates[0], REDUCE[kind or ""])[:n],)
    return _one_by_one(body, xs, at, updates, count)


def last_of(place: Any, count: Any, n: Any) -> Any:
    """Positions, of which those that a later update repeats go nowhere: the last update of an element counts."""
    order = O["arange"](count)
    latest = O["scatter_reduce"](O["broadcast_to"](full(-1, order), (n + 1,)), 0, place, order, "amax")
    return O["where"](O["eq"](latest[place], order), place, full(0, place) + n)


def _one_by_one(body: Body, xs: Sequence[Any], at: Any, updates: Sequence[Any], count: Any) -> tuple[Any, ...]:
    """The body for each update in turn."""
    def one(i: Any, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        place = O["dynamic_slice"](at, [i], [1])
        safe = O["maximum"](place, full(0, place))[0]
        old = [O["dynamic_slice"](r, [safe], [1]) for r in rows]
        new = body(*(o[0] for o in old), *(O["dynamic_slice"](u, [i], [1])[0] for u in updates))
        valid = O["ge"](place, 0)
        return tuple(O["dynamic_update_slice"](r, O["where"](valid, O["reshape"](y, (1,)), o), [safe])
                     for r, o, y in zip(rows, old, new))

    return tuple(fori_loop(0, count, one, tuple(xs)))
