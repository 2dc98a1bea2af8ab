"""Reductions by a region.

A region of one operation that mlc has a reduction for is that reduction. Any other is applied to halves of the
elements, as StableHLO leaves the order of reductions open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mlc.frontend.stablehlo.elementwise import over_elements
from mlc.frontend.stablehlo.syntax import Region
from mlc.frontend.stablehlo.table import row
from mlc.frontend.tensor import OPERATIONS as O

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step

Body = Callable[..., tuple[Any, ...]]
KINDS = {"add": "sum", "multiply": "prod", "maximum": "amax", "minimum": "amin", "and": "all", "or": "any"}
"""Operations that reductions of mlc combine by."""


def combining(region: Region) -> str | None:
    """The operation that a region of one applies to its two arguments, such as "add"; None for other regions."""
    if len(region.operations) != 2 or len(region.names) != 2:
        return None
    op, end = region.operations
    if sorted(op.operands) != sorted(region.names) or end.operands != op.names:
        return None
    dialect, _, name = op.name.partition(".")
    return name if dialect == "stablehlo" else None


def kind_of(region: Region, dtype: Any) -> str | None:
    """The reduction of mlc's that a region is, for elements of a dtype."""
    name = combining(region)
    if dtype.name == "bool":
        name = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}.get(name or "", name)
    elif name in ("and", "or"):
        return None
    if name in ("maximum", "minimum") and dtype.is_complex:
        return None
    return KINDS.get(name or "")


def elementwise(body: Body) -> Body:
    """A function of numbers as one of tensors of equal shapes."""
    return lambda *xs: over_elements(body, xs)


@row("stablehlo.reduce")
def reduce(step: Step, *operands: Any) -> tuple[Any, ...]:
    op, count = step.op, len(operands) // 2
    axes = op.ints("dimensions")
    xs, inits = operands[:count], operands[count:]
    if not xs or len(operands) % 2 or len(set(axes)) != len(axes) or any(
            not 0 <= a < len(xs[0].shape) for a in axes) or len(op.regions) != 1:
        op.wrong("it reduces no such dimensions")
    body, region = step.body(), op.regions[0]
    if count == 1 and (kind := kind_of(region, xs[0].dtype)) is not None:
        x, init = xs[0], inits[0]
        if not axes:
            return (elementwise(body)(O["broadcast_to"](init, x.shape), x)[0],)
        if 0 in [x.shape[a] for a in axes]:
            return (O["broadcast_to"](init, tuple(n for a, n in enumerate(x.shape) if a not in axes)),)
        found = _reduced(kind, x, axes)
        return (elementwise(body)(O["broadcast_to"](init, found.shape), found)[0],)
    return folded(elementwise(body), xs, inits, axes)


def _reduced(kind: str, x: Any, axes: Sequence[int]) -> Any:
    """A reduction of mlc's over axes, in the dtype of the elements."""
    if kind == "prod":
        for axis in sorted(axes, reverse=True):
            x = O["cast"](O["prod"](x, axis), x.dtype)
        return x
    return O["cast"](O[kind](x, list(axes)), x.dtype)


def folded(body: Body, xs: Sequence[Any], inits: Sequence[Any], axes: Sequence[int]) -> tuple[Any, ...]:
    """A reduction by any function: the elements of the axes in a row, whose halves are combined until one is left."""
    rest = [a for a in range(len(xs[0].shape)) if a not in axes]
    shape = tuple(xs[0].shape[a] for a in rest)
    n = math.prod(xs[0].shape[a] for a in axes)
    rows = [O["reshape"](O["permute"](x, [*axes, *rest]), (n, *shape)) for x in xs]
    starts = [O["broadcast_to"](init, shape) for init in inits]
    if not n:
        return tuple(starts)
    while n > 1:
        half = n // 2
        pairs = body(*(r[0: 2 * half: 2] for r in rows), *(r[1: 2 * half: 2] for r in rows))
        rows = [O["cat"]([p, r[2 * half:]], 0) if n % 2 else p for p, r in zip(pairs, rows)]
        n -= half
    return body(*starts, *(r[0] for r in rows))
