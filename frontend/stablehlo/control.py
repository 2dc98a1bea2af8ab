"""Loops and branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlc.frontend.control import cond, while_loop
from mlc.frontend.stablehlo.elementwise import full
from mlc.frontend.stablehlo.table import row
from mlc.frontend.tensor import OPERATIONS as O

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step


@row("stablehlo.while")
def repeated(step: Step, *xs: Any) -> tuple[Any, ...]:
    """The second region for as long as the first gives true. Tokens are not carried."""
    condition, body = step.body(0), step.body(1)
    kept = [x is not None for x in xs]

    def whole(given: Any) -> tuple[Any, ...]:
        rest = iter(given)
        return tuple(next(rest) if k else None for k in kept)

    def carried(given: Any) -> tuple[Any, ...]:
        return tuple(x for x in given if x is not None)

    found = while_loop(lambda x: condition(*whole(x))[0], lambda x: carried(body(*whole(x))), carried(xs))
    return whole(found)


@row("stablehlo.if")
def branch(step: Step, which: Any) -> tuple[Any, ...]:
    first, second = step.body(0), step.body(1)
    return results(step, cond(which, *(without_tokens(f) for f in (first, second))))


def without_tokens(f: Callable[..., tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
    """A branch that gives arrays only."""
    return lambda: tuple(x for x in f() if x is not None)


def results(step: Step, found: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results of a branch, tokens among them."""
    arrays = iter(found)
    return tuple(next(arrays) if hasattr(t, "shape") else None for t in step.op.results)


@row("stablehlo.case")
def case(step: Step, index: Any) -> tuple[Any, ...]:
    """The region of an index; the last for an index that has none. Half of them are left at each condition."""
    count = len(step.op.regions)
    if not count:
        step.op.wrong("it has no branch")
    outside = O["logical_or"](O["lt"](index, full(0, index)), O["ge"](index, full(count, index)))
    chosen = O["where"](outside, full(count - 1, index), index)

    def among(low: int, high: int) -> tuple[Any, ...]:
        if high - low == 1:
            return without_tokens(step.body(low))()
        middle = (low + high) // 2
        found: tuple[Any, ...] = cond(O["lt"](chosen, full(middle, index)), lambda: among(low, middle),
                                      lambda: among(middle, high))
        return found

    return results(step, among(0, count))
