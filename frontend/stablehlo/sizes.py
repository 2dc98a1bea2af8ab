"""Integers that only sizes determine: the operands that give dynamic operations their sizes.

It is computed beside the tensors, as arrays of Python's integers and of symbolic sizes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.frontend.stablehlo.syntax import ArrayType, Function, Operation
from mlc.ir import sizes
from mlc.ir.sizes import Dim, Quotient, Size

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
    known = [x for x in inputs if x is not None]
    if len(known) < len(inputs) or (not inputs and op.name != "stablehlo.constant"):
        return None
    shape = tuple(n or 0 for n in type.shape)
    found = f(op, shape, *known) if _fits(op, shape, [x.shape for x in known]) else None
    return found if found is not None and found.shape == shape else None


def _fits(op: Operation, shape: tuple[int, ...], inputs: Sequence[tuple[int, ...]]) -> bool:
    """Whether an operation, which nobody has checked yet, has operands that its name and its result allow."""
    count = OPERANDS.get(op.name, 1)
    if count is not None and len(inputs) != count:
        return False
    if op.name == "stablehlo.constant":
        return True
    if op.name == "stablehlo.reshape":
        return math.prod(inputs[0]) == math.prod(shape)
    if op.name == "stablehlo.broadcast_in_dim":
        axes = op.ints("broadcast_dimensions", [])
        return len(set(axes)) == len(inputs[0]) == len(axes) and all(
            0 <= axis < len(shape) and n in (1, shape[axis]) for axis, n in zip(axes, inputs[0]))
    if op.name == "stablehlo.slice":
        starts, stops, strides = (op.ints(n, otherwise) for n, otherwise in (
            ("start_indices", []), ("limit_indices", []), ("strides", [1] * len(inputs[0]))))
        return len(starts) == len(stops) == len(strides) == len(inputs[0]) and all(
            0 <= a <= b <= n and s > 0 for a, b, s, n in zip(starts, stops, strides, inputs[0]))
    if op.name == "stablehlo.concatenate":
        axis = op.get("dimension", 0)
        return bool(inputs) and isinstance(axis, int) and 0 <= axis < len(shape) and all(
            len(x) == len(shape) and x[:axis] + x[axis + 1:] == shape[:axis] + shape[axis + 1:] for x in inputs)
    return all(x == shape for x in inputs)


def unified(function: Function, shapes: Sequence[Sequence[Dim]]) -> list[tuple[Dim, ...]]:
    """The shapes of arguments with one symbol for sizes that the function asserts to be equal.

    `shape_assertion` of an equality of two sizes says so; of a remainder that is 0, that the size is a multiple.
    """
    assert function.body is not None
    arguments = dict(zip(function.body.names, shapes))
    known: dict[str, Known] = {}
    equal: dict[str, tuple[Dim, Dim]] = {}
    env: dict[str, Dim] = {}
    for op in function.body.operations:
        if op.name == "stablehlo.get_dimension_size":
            axis, shape = op.get("dimension"), arguments.get(op.operands[0], ()) if len(op.operands) == 1 else ()
            if isinstance(axis, int) and 0 <= axis < len(shape) and len(op.names) == 1:
                known[op.names[0]] = _array(shape[axis], ())
        elif op.name == "stablehlo.compare" and op.get("comparison_direction") == "EQ" and len(op.names) == 1 \
                and len(op.operands) == 2 and all(n in known and known[n].size == 1 for n in op.operands):
            a, b = (known[n].ravel()[0] for n in op.operands)
            equal[op.names[0]] = a, b
        elif op.name == "stablehlo.custom_call" and op.get("call_target_name") == "shape_assertion" \
                and op.operands and op.operands[0] in equal:
            _unify(env, *equal[op.operands[0]])
        elif len(op.names) == 1 and (found := known_of(op, [known.get(n) for n in op.operands], ())) is not None:
            known[op.names[0]] = found
    return [tuple(_substituted(d, env) for d in shape) for shape in shapes]


def _substituted(d: Dim, env: dict[str, Dim]) -> Dim:
    return sizes.substitute(d, env)


def _unify(env: dict[str, Dim], a: Dim, b: Dim) -> None:
    """Solve an equality of sizes for a symbol, where it is one of a single symbol or of a remainder."""
    a, b = _substituted(a, env), _substituted(b, env)
    for x, y in ((a, b), (b, a)):
        name = sizes.symbol_name(x)
        solution: Dim | None = y if name is not None and name not in sizes.symbols(y) else None
        if solution is None and y == 0 and isinstance(x, Size) and len(x.terms) == 1:
            name, solution = _multiple(x)
        if name is not None and solution is not None:
            for other in env:
                env[other] = sizes.substitute(env[other], {name: solution})
            env[name] = solution
            return


def _multiple(x: Size) -> tuple[str | None, Dim | None]:
    """The symbol N of `(N + c) mod k`, and the sizes for which that is 0."""
    (monomial, factor), = x.terms
    if factor == 1 and len(monomial) == 1 and monomial[0][1] == 1 and isinstance(monomial[0][0], Quotient):
        atom = monomial[0][0]
        found = sizes.symbols(atom.num)
        if atom.op == "mod" and isinstance(atom.den, int) and len(found) == 1:
            name, = found
            offset = atom.num - sizes.sym(name)
            if isinstance(offset, int):
                return name, atom.den * sizes.sym(name) + -offset % atom.den
    return None, None


def _array(x: Any, shape: tuple[int, ...]) -> Known:
    out = np.empty(shape, object)
    out[...] = x
    return out


def _constant(op: Operation, shape: tuple[int, ...]) -> Known | None:
    value = op.get("value")
    if not isinstance(value, np.ndarray):
        return None
    if value.shape != shape:
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
    """x / y, rounded to zero."""
    if isinstance(x, int) and isinstance(y, int):
        return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return x // y if sizes.is_natural(x) and sizes.is_natural(y) else _unknown()


def _remainder(x: Any, y: Any) -> Any:
    """x - y * quotient; it has the sign of x."""
    if isinstance(x, int) and isinstance(y, int):
        return x - y * _quotient(x, y)
    return x % y if sizes.is_natural(x) and sizes.is_natural(y) else _unknown()


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
OPERANDS: dict[str, int | None] = {"stablehlo.constant": 0, "stablehlo.concatenate": None, **dict.fromkeys(
    (f"stablehlo.{n}" for n in ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum")), 2)}
"""How many operands they have, if it is not one; None for any number."""
