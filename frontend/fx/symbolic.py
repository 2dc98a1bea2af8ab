"""Functions of Python numbers, for arguments that are symbolic sizes.

Integers made of sizes are sizes again, as far as these have the function. Others are tensors without axes, in f64 or
int64: numbers that are known when the graph runs.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend.fx.refusing import refuse
from mlc.frontend.tensor import OPERATIONS as O
from mlc.frontend.tensor import Tensor
from mlc.ir.sizes import Dim, Size, is_equal, product


def called(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The result of a function of numbers; UserError if mlc does not have it of symbolic ones."""
    if function is operator.getitem or not any(isinstance(x, Size | Tensor) for x in args):
        return function(*args)
    if function in OF_SIZES and all(isinstance(x, int | Size) for x in args):
        return OF_SIZES[function](*args)
    if function not in OF_TENSORS:
        refuse(f"{function.__name__} of numbers that are computed of symbolic sizes")
    return OF_TENSORS[function](*map(_tensor, args))


def _tensor(x: Any) -> Any:
    """A number as a tensor."""
    return x if isinstance(x, Tensor) else O["full"]((), x, dtype="float64" if isinstance(x, float) else "int64")


def _float(x: Any) -> Any:
    return O["cast"](x, "float64")


def _of_floats(name: str) -> Callable[..., Any]:
    return lambda *xs: O[name](*map(_float, xs))


def _same(name: str) -> Callable[..., Any]:
    return lambda *xs: O[name](*xs)


def _whole(name: str) -> Callable[..., Any]:
    return lambda x: O["cast"](O[name](x), "int64")


def _divisor(n: Dim) -> Dim:
    """A number that sizes are divided by, which they are only by positive ones."""
    if isinstance(n, int) and n <= 0:
        refuse(f"a symbolic size divided by {n}")
    return n


MOST_FACTORS = 64
"""Factors of a product that a power of a size is."""


def _power(n: Dim, exponent: Dim) -> Any:
    """A product of integers, or a power of floats."""
    if isinstance(exponent, int) and exponent > MOST_FACTORS:
        refuse(f"the power {exponent} of a symbolic size")
    if isinstance(exponent, int) and exponent >= 0:
        return product([n] * exponent)
    return OF_TENSORS[operator.pow](_tensor(n), _tensor(exponent))


OF_SIZES: dict[Any, Callable[..., Any]] = {
    operator.add: operator.add, operator.sub: operator.sub, operator.mul: operator.mul, operator.neg: operator.neg,
    operator.floordiv: lambda n, by: n // _divisor(by), operator.mod: lambda n, by: n % _divisor(by),
    operator.pow: _power, operator.eq: is_equal, operator.ne: lambda a, b: not is_equal(a, b),
    operator.lt: operator.lt, operator.le: operator.le, operator.gt: operator.gt, operator.ge: operator.ge,
    builtins.max: max, builtins.min: min, builtins.int: lambda n: n, builtins.round: lambda n: n,
    math.ceil: lambda n: n, math.floor: lambda n: n, math.trunc: lambda n: n}
"""Functions of integers and sizes whose results are sizes, or truths; UserError where these depend on the sizes."""
OF_TENSORS: dict[Any, Callable[..., Any]] = {
    operator.add: _same("add"), operator.sub: _same("sub"), operator.mul: _same("mul"), operator.neg: _same("neg"),
    operator.floordiv: _same("floor_divide"), operator.mod: _same("remainder"), operator.truediv: _of_floats("div"),
    operator.pow: _of_floats("pow"), math.sqrt: _of_floats("sqrt"), builtins.float: _float,
    builtins.max: _same("maximum"), builtins.min: _same("minimum"), builtins.abs: _same("abs"),
    builtins.int: _whole("trunc"), math.trunc: _whole("trunc"), math.ceil: _whole("ceil"),
    math.floor: _whole("floor"), builtins.round: _whole("round")}
"""Functions of tensors without axes."""
