"""Line search: the length of a step along a direction, by the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlc.frontend.tensor import Tensor

_DECREASE, _CURVATURE = 1e-4, 0.9
"""c1 and c2 of the conditions: f(t) <= f(0) + c1 * t * f'(0) and |f'(t)| <= c2 * |f'(0)|."""


@dataclass(frozen=True)
class Point:
    """The loss along a direction after a step: its value, the gradient, and the slope, their product's sum."""

    step: float
    loss: float
    gradient: Tensor
    slope: float


def strong_wolfe(at: Callable[[float], Point], start: Point, step: float, tolerance: float,
                 iterations: int) -> tuple[Point, int]:
    """Find a step that satisfies the strong Wolfe conditions.

    It brackets an interval that contains one, and narrows it by cubic interpolation. (Nocedal and Wright 2006,
    "Numerical Optimization", algorithms 3.5 and 3.6; the safeguards of the interpolation are those of PyTorch.)

    Args:
        at: Function that evaluates the loss after a step.
        start: The loss before it, `at(0)`.
        step: First step to try.
        tolerance: Length of an interval that is not narrowed any more.
        iterations: Largest number of evaluations after the first.

    Returns:
        The point found, the best one if no step satisfies the conditions, and the number of evaluations.
    """
    bracket, done, used = _bracket(at, start, at(step), iterations)
    cramped = False
    low, high = sorted(bracket, key=lambda point: point.loss)
    while not done and used < iterations and not abs(high.step - low.step) < tolerance:
        ends = sorted((low.step, high.step))
        t, cramped = _inside(_cubic_minimum(*bracket, *ends), ends, cramped)
        here, used = at(t), used + 1
        if _rises(here, start) or here.loss >= low.loss:
            bracket = (here, low) if bracket[0] is high else (low, here)
            low, high = sorted(bracket, key=lambda point: point.loss)
            continue
        done = _flat(here, start)
        end = low if not done and here.slope * (high.step - low.step) >= 0 else high
        bracket = (here, end) if bracket[0] is low else (end, here)
        low, high = here, end
    return low, used + 1


def _bracket(at: Callable[[float], Point], start: Point, here: Point,
             iterations: int) -> tuple[tuple[Point, Point], bool, int]:
    """Two points around a step that satisfies the conditions, whether the second one does, and the iterations."""
    previous = start
    for used in range(iterations):
        if _rises(here, start) or (used > 1 and here.loss >= previous.loss):
            return (previous, here), False, used
        if _flat(here, start):
            return (here, here), True, used
        if here.slope >= 0:
            return (previous, here), False, used
        step = _cubic_minimum(previous, here, here.step + 0.01 * (here.step - previous.step), here.step * 10)
        previous, here = here, at(step)
    return (start, here), False, max(iterations, 0)


def _rises(here: Point, start: Point) -> bool:
    """Whether the loss does not decrease enough for the length of the step."""
    return here.loss > start.loss + _DECREASE * here.step * start.slope


def _flat(here: Point, start: Point) -> bool:
    return abs(here.slope) <= -_CURVATURE * start.slope


def _inside(t: float, ends: list[float], cramped: bool) -> tuple[float, bool]:
    """A step that does not stay close to one end of the interval twice, and whether this one is close to it."""
    least, most = ends
    margin = 0.1 * (most - least)
    if min(most - t, t - least) >= margin:
        return t, False
    if cramped or t >= most or t <= least:
        return (most - margin if abs(t - most) < abs(t - least) else least + margin), False
    return t, True


def _cubic_minimum(a: Point, b: Point, low: float, high: float) -> float:
    """Minimum of the cubic polynomial with the values and slopes of two points, in an interval."""
    if b.step < a.step:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
    square: Any = d1 * d1 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    least = b.step - (b.step - a.step) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(least, low), high)
