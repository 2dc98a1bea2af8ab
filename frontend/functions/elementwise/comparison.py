"""Elementwise comparisons and predicates."""

from __future__ import annotations

import math

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import compare, unary
from mlc.frontend.operands import floating, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.ir.diag import UserError


@operation()
def isnan(input: Operand) -> Tensor:
    """x != x: whether each element is NaN.

    NaN is the only number that differs from itself, which is why `x == nan` finds none. A complex number is NaN if one
    of its parts is; integers and bools never are.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of bools of the shape of `input`.

    Example:
        >>> mlc.isnan(mlc.tensor([1.0, float("nan")]))
        tensor([False,  True], dtype=mlc.bool)
    """
    x = tracer(input)
    return unary(T.IsNan, x) if x.type.dtype.is_inexact else x != x


@operation()
def isinf(input: Operand) -> Tensor:
    """|x| == inf: whether each element is infinite, of either sign.

    A complex number is infinite if one of its parts is; integers and bools never are. `mlc.isposinf` and `mlc.isneginf`
    tell the signs apart.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of bools of the shape of `input`.

    Example:
        >>> mlc.isinf(mlc.tensor([1.0, -float("inf")]))
        tensor([False,  True], dtype=mlc.bool)
    """
    x = tracer(input)
    if x.type.dtype.is_complex:
        return isinf(emit(T.Real, x)) | isinf(emit(T.Imag, x))
    return abs(x) == math.inf if x.type.dtype.is_float else x != x


@operation()
def isfinite(input: Operand) -> Tensor:
    """|x| < inf: whether each element is neither infinite nor NaN.

    A complex number is finite if both of its parts are; integers and bools always are.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of bools of the shape of `input`.

    Example:
        >>> mlc.isfinite(mlc.tensor([1.0, float("inf"), float("nan")]))
        tensor([ True, False, False], dtype=mlc.bool)
    """
    x = tracer(input)
    if x.type.dtype.is_complex:
        return isfinite(emit(T.Real, x)) & isfinite(emit(T.Imag, x))
    return abs(x) < math.inf if x.type.dtype.is_float else x == x


@operation()
def isposinf(input: Operand) -> Tensor:
    """x == inf: whether each element is plus infinity.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of bools of the shape of `input`.

    Example:
        >>> mlc.isposinf(mlc.tensor([float("inf"), -float("inf")]))
        tensor([ True, False], dtype=mlc.bool)
    """
    return tracer(input) == math.inf


@operation()
def isneginf(input: Operand) -> Tensor:
    """x == -inf: whether each element is minus infinity.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of bools of the shape of `input`.

    Example:
        >>> mlc.isneginf(mlc.tensor([float("inf"), -float("inf")]))
        tensor([False,  True], dtype=mlc.bool)
    """
    return tracer(input) == -math.inf


@operation()
def eq(input: Operand, other: Operand) -> Tensor:
    """input == other, elementwise; NaN equals nothing.

    Operands are compared in the promoted dtype.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.eq(mlc.tensor([1.0, 2.0, 3.0]), 2)
        tensor([False,  True, False], dtype=mlc.bool)
    """
    return compare("eq", input, other)


@operation()
def ne(input: Operand, other: Operand) -> Tensor:
    """input != other, elementwise; NaN differs from all.

    Operands are compared in the promoted dtype.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.ne(mlc.tensor([1.0, 2.0, 3.0]), 2)
        tensor([ True, False,  True], dtype=mlc.bool)
    """
    return compare("ne", input, other)


@operation()
def lt(input: Operand, other: Operand) -> Tensor:
    """input < other, elementwise; False where either is NaN.

    Operands are compared in the promoted dtype.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.lt(mlc.tensor([1.0, 2.0, 3.0]), 2)
        tensor([ True, False, False], dtype=mlc.bool)
    """
    return compare("lt", input, other)


@operation()
def le(input: Operand, other: Operand) -> Tensor:
    """input <= other, elementwise; False where either is NaN.

    Operands are compared in the promoted dtype.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.le(mlc.tensor([1.0, 2.0, 3.0]), 2)
        tensor([ True,  True, False], dtype=mlc.bool)
    """
    return compare("le", input, other)


@operation()
def gt(input: Operand, other: Operand) -> Tensor:
    """input > other, elementwise; False where either is NaN.

    Operands are compared in the promoted dtype.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.gt(mlc.tensor([1.0, 2.0, 3.0]), 2)
        tensor([False, False,  True], dtype=mlc.bool)
    """
    return compare("gt", input, other)


@operation()
def ge(input: Operand, other: Operand) -> Tensor:
    """input >= other, elementwise; False where either is NaN.

    Operands are compared in the promoted dtype.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.ge(mlc.tensor([1.0, 2.0, 3.0]), 2)
        tensor([False,  True,  True], dtype=mlc.bool)
    """
    return compare("ge", input, other)


@operation()
def isclose(input: Operand, other: Operand, rtol: float = 1e-5, atol: float = 1e-8,
            equal_nan: bool = False) -> Tensor:
    """|input - other| <= atol + rtol * |other| or input == other, elementwise.

    The test is not symmetric: `other` is the reference. Infinities are close to themselves only.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.
        rtol: Relative tolerance, at least 0.
        atol: Absolute tolerance, at least 0.
        equal_nan: Whether NaN is close to NaN.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserError: A tolerance is negative (MLC0360), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.isclose(mlc.tensor([1.0, 100.0]), mlc.tensor([1.000001, 101.0]))
        tensor([ True, False], dtype=mlc.bool)
    """
    if rtol < 0 or atol < 0:
        raise UserError(f"rtol = {rtol} and atol = {atol}, expected at least 0", code="MLC0360")
    a, b = together(input, other)
    x, y = floating(a), floating(b)
    near = isfinite(y) & (abs(x - y) <= atol + rtol * abs(y))
    out = (a == b) | near
    return out | (isnan(a) & isnan(b)) if equal_nan else out
