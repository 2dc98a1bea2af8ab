"""Integers that only sizes determine: the operands that give dynamic operations their sizes.

It is computed beside the tensors, as arrays of Python's integers and of symbolic sizes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.frontend.stablehlo.syntax import ArrayType, Operation

Known = np.ndarray[Any, Any]
MOST = 64
"""Most elements of an array that is followed."""


def known_of(op: Operation, inputs: Sequence[Known | None], tensors: Sequence[Any]) -> Known | None:
    """Known elements of the result of an operation, by those of its operands."""
    f = FOLLOWED.get(op.name)
    type = op.results[0] if op.results else None
    if f is None or not isinstance(type, ArrayType) or type.dtype.is_inexact or None in type.shape \
            or int(np.prod([n or 0 for n in type.shape])) > MOST:
        return None
    if op.name == "stablehlo.get_dimension_size":
        return _array(tensors[0].shape[int(op.need("dimension"))], ())
    if op.name != "stablehlo.constant" and (not inputs or any(x is None for x in inputs)):
        return None
    shape = tuple(n or 0 for n in type.shape)
    return f(op, shape, *inputs)


def _array(x: Any, shape: tuple[int, ...]) -> Known:
    out = np.empty(shape, object)
    out[...] = x
    return out


def _constant(op: Operation, shape: tuple[int, ...]) -> Known | None:
    value = op.get("value")
    if not isinstance(value, np.ndarray):
        return None
    out = np.empty(shape, object)
    for at, x in np.ndenumerate(value):
        out[at] = int(x)
    return out


def _broadcast(op: Operation, shape: tuple[int, ...], x: Known) -> Known:
    axes = op.ints("broadcast_dimensions", [])
    middle = [1] * len(shape)
    for axis, n in zip(axes, x.shape):
        middle[axis] = n
    return np.broadcast_to(x.reshape(middle), shape)


def _slice(op: Operation, shape: tuple[int, ...], x: Known) -> Known:
    ranges = zip(op.ints("start_indices"), op.ints("limit_indices"), op.ints("strides", [1] * x.ndim))
    return x[tuple(slice(*r) for r in ranges)]


def _each(f: Callable[..., Any]) -> Callable[..., Known | None]:
    def apply(op: Operation, shape: tuple[int, ...], *xs: Known) -> Known | None:
        out = np.empty(shape, object)
        for at in np.ndindex(*shape):
            try:
                out[at] = f(*(x[at] for x in xs))
            except (TypeError, ValueError, ZeroDivisionError):   # a question that a symbolic size does not answer
                return None
        return out
    return apply


def _quotient(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int):
        return int(np.trunc(x / y)) if abs(x) < 1 << 52 else x // y
    return x // y


def _remainder(x: Any, y: Any) -> Any:
    return x % y


def _largest(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int):
        return max(x, y)
    return x if isinstance(y, int) and y <= 0 else y if isinstance(x, int) and x <= 0 else _unknown()


def _smallest(x: Any, y: Any) -> Any:
    return min(x, y) if isinstance(x, int) and isinstance(y, int) else _unknown()


def _unknown() -> Any:
    raise ValueError("not known")


FOLLOWED: dict[str, Callable[..., Known | None]] = {
    "stablehlo.constant": _constant,
    "stablehlo.get_dimension_size": lambda op, shape: None,
    "stablehlo.add": _each(operator.add), "stablehlo.subtract": _each(operator.sub),
    "stablehlo.multiply": _each(operator.mul), "stablehlo.divide": _each(_quotient),
    "stablehlo.remainder": _each(_remainder), "stablehlo.maximum": _each(_largest),
    "stablehlo.minimum": _each(_smallest), "stablehlo.negate": _each(operator.neg),
    "stablehlo.convert": _each(lambda x: x),
    "stablehlo.reshape": lambda op, shape, x: x.reshape(shape),
    "stablehlo.broadcast_in_dim": _broadcast, "stablehlo.slice": _slice,
    "stablehlo.concatenate": lambda op, shape, *xs: np.concatenate(xs, int(op.get("dimension", 0))),
    "stablehlo.optimization_barrier": lambda op, shape, x: x,
}
"""Operations on integers that sizes go through."""
