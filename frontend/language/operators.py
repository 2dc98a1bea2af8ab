"""Operators on values: numbers and sizes that are known, tensors, and models tensor by tensor."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from mlc.frontend import tree
from mlc.frontend.dtypes import DType
from mlc.frontend.language.library import call_library
from mlc.frontend.language.values import POISON, Environment, is_static_number, shown
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.ir.insertion import located
from mlc.ir.sizes import Size, divide, modulo

OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floor_divide", "%": "remainder", "@": "matmul",
             "**": "pow", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
LARGEST = 2**63 - 1
"""Integers that are known are those of i64."""


def binary(op: str, a: Any, b: Any, at: int, env: Environment) -> Any:
    """a op b"""
    if a is POISON or b is POISON:
        return POISON
    if is_static_number(a) and is_static_number(b) and op != "@":
        return _of_numbers(op, a, b, at, env)
    if isinstance(a, int | Size) and isinstance(b, int | Size) and op in ("+", "-", "*", "//", "%"):
        return _of_sizes(op, a, b, at, env)
    if any(isinstance(x, tree.AttributeTree | dict) for x in (a, b)) or any(
            isinstance(x, tuple | list) and x and all(isinstance(y, Tensor | tree.AttributeTree | dict | type(None))
                                                      for y in x) for x in (a, b)):
        return _of_trees(op, a, b, at, env)
    for x in (a, b):
        if not isinstance(x, Tensor | int | float | Size):
            raise env.error(at, "MLC0634", f"{op} is not defined on {shown(a)} and {shown(b)}",
                              "call the function first" if callable(x) else "use tensors, numbers or models")
    return call_library(OPERATIONS[OPERATORS[op]], op, (a, b), {}, at, env)


def _of_numbers(op: str, a: Any, b: Any, at: int, env: Environment) -> Any:
    """Arithmetic of numbers that are known."""
    try:
        if op == "**":
            if isinstance(a, int) and isinstance(b, int) and b >= 0 and abs(a) > 1 and (
                    a.bit_length() * b > 128):
                raise OverflowError("it does not fit in 64 bits")
            out = a**b
            if isinstance(out, complex):
                raise ValueError("it is no real number")
        else:
            out = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
                   "//": operator.floordiv, "%": operator.mod}[op](a, b)
    except ZeroDivisionError:
        raise env.error(at, "MLC0630", f"{a} {op} {b} divides by zero", "change one of the numbers") from None
    except (ArithmeticError, ValueError) as error:
        raise env.error(at, "MLC0630", f"{a} {op} {b}: {error}", "change one of the numbers") from None
    if isinstance(out, int) and not -LARGEST - 1 <= out <= LARGEST:
        raise env.error(at, "MLC0630", f"{a} {op} {b} does not fit in 64 bits", "use a float")
    return out


def _of_sizes(op: str, a: Any, b: Any, at: int, env: Environment) -> Any:
    if op in ("//", "%"):
        if isinstance(b, int) and b <= 0:
            raise env.error(at, "MLC0630", f"the size {a} is divided by {b}", "divide by a size of at least 1")
    apply = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": divide, "%": modulo}[op]
    with located(env.loc(at)):
        return apply(a, b)


def _of_trees(op: str, a: Any, b: Any, at: int, env: Environment) -> Any:
    """Models, gradients and other containers, tensor by tensor; what is not trained stays as it is on the left."""
    containers = [isinstance(x, tree.AttributeTree | dict | tuple | list) for x in (a, b)]
    first = a if containers[0] else b
    leaves, structure = tree.flatten(tree.trained_part(first))
    if all(containers):
        other = call_library(tree.matching_leaves, op, (structure, tree.trained_part(b)), {}, at, env)
        pairs = zip(leaves, other)
    else:
        pairs = zip(leaves, [b] * len(leaves)) if containers[0] else zip([a] * len(leaves), leaves)
    moved = [binary(op, x, y, at, env) for x, y in pairs]
    if any(x is POISON for x in moved):
        return POISON
    if not containers[0]:
        return structure.unflatten(moved)
    every, whole = tree.flatten(a)
    new = iter(moved)
    return whole.unflatten([next(new) if trained else x for x, trained in zip(every, tree.trained(a))])


def compare(op: str, a: Any, b: Any, at: int, env: Environment) -> Any:
    if a is POISON or b is POISON:
        return POISON
    if isinstance(a, int | float | Size) and isinstance(b, int | float | Size):
        if isinstance(a, Size) or isinstance(b, Size):
            difference = a - b if not isinstance(a, float) and not isinstance(b, float) else None
            if isinstance(difference, int):
                return _COMPARE[op](difference, 0)
        else:
            return _COMPARE[op](a, b)
    elif op in ("==", "!=") and not isinstance(a, Tensor) and not isinstance(b, Tensor) and type(a) is type(b):
        if isinstance(a, str | DType | tuple | type(None)):
            return _COMPARE[op](a, b)
    for x in (a, b):
        if not isinstance(x, Tensor | int | float | Size):
            raise env.error(at, "MLC0634", f"{op} is not defined on {shown(a)} and {shown(b)}",
                              "compare tensors or numbers")
    return call_library(OPERATIONS[OPERATORS[op]], op, (a, b), {}, at, env)
