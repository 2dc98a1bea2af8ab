"""Integrals and derivatives of functions given by their values on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.axes import axis
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.scan import cumsum
from mlc.frontend.functions.shape import cat, sliced
from mlc.frontend.operands import cast, floating, is_tensor, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, Operand, Tensor
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError


@operation()
def trapezoid(y: Operand, x: Operand = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The trapezoidal rule along a dimension: sum_i (y[i + 1] + y[i]) / 2 * (x[i + 1] - x[i]).

    Args:
        y: Tensor of values, of at least one dimension.
        x: Tensor of places, a vector or of the dimensions of `y`; None for equal distances.
        dx: The distance of places, without `x`.
        dim: The dimension; negative ones count from the last.

    Returns:
        Tensor of floats without the dimension; 0 where there are fewer than two points.

    Raises:
        UserError: `y` has no dimension, or `x` neither one nor as many as `y` (MLC0364), `x` has not a place for each
            value (MLC0367), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.trapezoid(mlc.tensor([1.0, 2.0, 3.0]), mlc.tensor([0.0, 1.0, 3.0]))
        tensor(6.5, dtype=mlc.float32)
    """
    areas, at = _areas(y, x, dx, dim)
    return R.sum(areas, at)


@operation()
def cumulative_trapezoid(y: Operand, x: Operand = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The running integral by the trapezoidal rule: result[i] is `mlc.trapezoid` of the first i + 2 points.

    Args:
        y: Tensor of values, of at least one dimension.
        x: Tensor of places, a vector or of the dimensions of `y`; None for equal distances.
        dx: The distance of places, without `x`.
        dim: The dimension; negative ones count from the last.

    Returns:
        Tensor of floats with one element less along the dimension.

    Raises:
        UserError: `y` has no dimension, or `x` neither one nor as many as `y` (MLC0364), `x` has not a place for each
            value (MLC0367), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.cumulative_trapezoid(mlc.tensor([1.0, 2.0, 3.0]), mlc.tensor([0.0, 1.0, 3.0]))
        tensor([1.5, 6.5], dtype=mlc.float32)
    """
    areas, at = _areas(y, x, dx, dim)
    return cumsum(areas, at)


def _areas(y: Operand, x: Operand, dx: float, dim: int) -> tuple[Tensor, int]:
    """The areas below the segments between points, and the dimension along which they are."""
    values = tracer(y)
    at = axis(dim, values.ndim, scalar=False)
    count = values.shape[at]
    if count == 0:
        return values * 1.0, at
    middle = (sliced(values, at, 1, count) + sliced(values, at, 0, count - 1)) * 0.5
    if x is None:
        return middle * dx, at
    points = tracer(x)
    if points.ndim not in (1, values.ndim):
        raise UserError(f"x has {points.ndim} dimensions, expected the place of each point, or 1", code="MLC0364")
    along = at if points.ndim > 1 else 0
    if not sizes.is_equal(points.shape[along], count):
        raise UserError(f"x has {points.shape[along]} places for {count} values", code="MLC0367",
                        symbols=sizes.symbols(points.shape[along], count))
    steps = tracer(sliced(points, along, 1, count) - sliced(points, along, 0, count - 1))
    if points.ndim == 1:
        steps = reshape(steps, [steps.shape[0] if i == at else 1 for i in range(values.ndim)])
    return middle * steps, at


@operation(literal=("spacing",))
def gradient(input: Operand, *, spacing: Operand | Sequence[Operand] | None = None, dim: Dims = None,
             edge_order: int = 1) -> tuple[Tensor, ...]:
    """Partial derivatives of a function given by its values on a grid, by finite differences of second order.

    Inside the grid they are those of the parabola through three neighbours; at its ends, differences of two points, or
    with `edge_order` 2 of the parabola through three.

    Args:
        input: Tensor of at least one dimension; integers become float32.
        spacing: Distance of neighbouring points: a number, or for each dimension a number or a vector of places; 1 by
            default.
        dim: Dimension, or several; negative ones count from the last. All by default.
        edge_order: 1 or 2.

    Returns:
        Tuple of a tensor for each dimension, of the shape of `input`.

    Raises:
        UserError: `input` has no dimension (MLC0364), `dim` is out of range (MLC0356) or names a dimension twice
            (MLC0357), `edge_order` is another number (MLC0360), there are too few points (MLC0363), their number is
            symbolic (MLC0365), or `spacing` does not fit the dimensions (MLC0357) or the points (MLC0367).

    Example:
        >>> mlc.gradient(mlc.tensor([1.0, 4.0, 9.0, 16.0]))
        (tensor([3., 4., 6., 7.], dtype=mlc.float32),)
    """
    x = floating(input)
    if not x.ndim:
        raise UserError("a 0-d tensor has no dimensions, expected at least one", code="MLC0364")
    given = list(range(x.ndim)) if dim is None else dim if isinstance(dim, tuple | list) else [dim]
    over = [axis(d, x.ndim) for d in given]
    if len(set(over)) != len(over):
        raise UserError(f"dim = {dim} names a dimension twice", code="MLC0357")
    if edge_order not in (1, 2):
        raise UserError(f"edge_order = {edge_order}", code="MLC0360", hint="use 1 or 2")
    step = 1 if spacing is None else spacing
    steps = list(step) if isinstance(step, tuple | list) else [step] * len(over)
    if len(steps) != len(over):
        raise UserError(f"{len(steps)} spacings for {len(over)} dimensions", code="MLC0357")
    return tuple(_partial(x, at, step, edge_order) for at, step in zip(over, steps))


def _partial(x: Tracer, at: int, spacing: Operand, order: int) -> Tensor:
    """The derivative along one dimension."""
    n = x.shape[at]
    if not isinstance(n, int):
        raise UserError(f"gradient needs a size that is known, found {n}", code="MLC0365", symbols=sizes.symbols(n))
    if n <= order:
        raise UserError(f"{n} points, expected at least {order + 1}", code="MLC0363")
    h: Any = spacing
    if is_tensor(spacing) and tracer(spacing).ndim:
        places = cast(tracer(spacing), x.type.dtype)
        if places.shape != (n,):
            raise UserError(f"{list(places.shape)} places for {n} points", code="MLC0367")
        h = tracer(sliced(places, 0, 1, n) - sliced(places, 0, 0, n - 1))
        h = reshape(h, [n - 1 if i == at else 1 for i in range(x.ndim)])
    slopes = tracer((sliced(x, at, 1, n) - sliced(x, at, 0, n - 1)) / h)
    first, last = sliced(slopes, at, 0, 1), sliced(slopes, at, n - 2, n - 1)
    if n == 2:
        return cat([first, last], at)
    before, after = sliced(slopes, at, 0, n - 2), sliced(slopes, at, 1, n - 1)
    if h is spacing:
        inside = tracer((sliced(x, at, 2, n) - sliced(x, at, 0, n - 2)) / h * 0.5)     # without the point between
        bend = [tracer(after - before) * 0.5] * 2
    else:
        a, b = sliced(h, at, 0, n - 2), sliced(h, at, 1, n - 1)
        inside = tracer((before * b + after * a) / (a + b))
        bend = [(after - before) / (a + b) * step for step in (a, b)]
    if order == 2:
        first = tracer(first - sliced(tracer(bend[0]), at, 0, 1))
        last = tracer(last + sliced(tracer(bend[1]), at, n - 3, n - 2))
    return cat([first, inside, last], at)
