"""Bitwise and logical functions."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import binary, unary
from mlc.frontend.operands import boolean, number, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserTypeError


def _bits(cls: Any, a: Operand, b: Operand, name: str) -> Tensor:
    a, b = together(a, b)
    if a.type.dtype.is_float:
        raise UserTypeError(f"{name} is not defined on {a.dtype}", code="MLC0359")
    return binary(cls, a, b)


@operation()
def bitwise_and(input: Operand, other: Operand) -> Tensor:
    """input & other, the bits that both have, elementwise; for bools the logical function.

    Negative integers are in two's complement, so -1 has all bits and x & -1 is x. Operands are promoted to a common
    dtype first.

    Args:
        input: Tensor of integers or bools, or a number.
        other: One whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: either is of floats (MLC0359), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.bitwise_and(mlc.tensor([12, 5]), 6)
        tensor([4, 4], dtype=mlc.int64)
    """
    return _bits(T.And, input, other, "bitwise_and")


@operation()
def bitwise_or(input: Operand, other: Operand) -> Tensor:
    """input | other, the bits that either has, elementwise; for bools the logical function.

    Args:
        input: Tensor of integers or bools, or a number.
        other: One whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: either is of floats (MLC0359), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.bitwise_or(mlc.tensor([12, 5]), 6)
        tensor([14,  7], dtype=mlc.int64)
    """
    return _bits(T.Or, input, other, "bitwise_or")


@operation()
def bitwise_xor(input: Operand, other: Operand) -> Tensor:
    """input ^ other, the bits that one of them has, elementwise; for bools the logical function.

    Args:
        input: Tensor of integers or bools, or a number.
        other: One whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: either is of floats (MLC0359), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.bitwise_xor(mlc.tensor([12, 5]), 6)
        tensor([10,  3], dtype=mlc.int64)
    """
    return _bits(T.Xor, input, other, "bitwise_xor")


@operation()
def bitwise_not(input: Operand) -> Tensor:
    """~x, each element with all bits inverted; for bools the logical not.

    Of integers ~x = -x - 1 in two's complement, and 2^bits - 1 - x for unsigned ones.

    Args:
        input: Tensor of integers or bools, or a number.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `input` is of floats (MLC0359).

    Example:
        >>> mlc.bitwise_not(mlc.tensor([0, 5]))
        tensor([-1, -6], dtype=mlc.int64)
    """
    x = tracer(input)
    if x.type.dtype.is_bool:
        return unary(T.LogicalNot, x)
    return _bits(T.Xor, x, number(-1, x.type.dtype, x.weak), "bitwise_not")


@operation()
def bitwise_left_shift(input: Operand, other: Operand) -> Tensor:
    """input << other, elementwise: input * 2 ** other, without the bits that leave the dtype.

    Shifts by fewer than 0 bits or by the width of the dtype and more shift all bits out.

    Args:
        input: Tensor of integers, or a number.
        other: Number of bits; its shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: either is of floats (MLC0359), both are of bool (MLC0113), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.bitwise_left_shift(mlc.tensor([1, 5]), 2)
        tensor([ 4, 20], dtype=mlc.int64)
    """
    return _bits(T.Shl, input, other, "bitwise_left_shift")


@operation()
def bitwise_right_shift(input: Operand, other: Operand) -> Tensor:
    """input >> other, elementwise: floor(input / 2 ** other).

    Signed integers keep their sign. Shifts by fewer than 0 bits or by the width of the dtype and more leave 0, or -1 of
    negative numbers.

    Args:
        input: Tensor of integers, or a number.
        other: Number of bits; its shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: either is of floats (MLC0359), both are of bool (MLC0113), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.bitwise_right_shift(mlc.tensor([-9, 20]), 2)
        tensor([-3,  5], dtype=mlc.int64)
    """
    return _bits(T.Shr, input, other, "bitwise_right_shift")


@operation()
def logical_not(input: Operand) -> Tensor:
    """x == 0, elementwise.

    True where an element is 0, of either sign, or False. NaN is not 0, so it gives False. `mlc.bitwise_not` inverts the
    bits of integers.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of bools of the shape of `input`.

    Example:
        >>> mlc.logical_not(mlc.tensor([0.0, 2.0]))
        tensor([ True, False], dtype=mlc.bool)
    """
    return unary(T.LogicalNot, boolean(input))


@operation()
def logical_and(input: Operand, other: Operand) -> Tensor:
    """input != 0 and other != 0, elementwise; NaN is not 0.

    Both operands may be of any dtype, and are not converted to a common one. Both are computed in any case: there is no
    short circuit as in Python's `and`.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.logical_and(mlc.tensor([True, True, False]), mlc.tensor([True, False, False]))
        tensor([ True, False, False], dtype=mlc.bool)
    """
    return binary(T.And, boolean(input), boolean(other))


@operation()
def logical_or(input: Operand, other: Operand) -> Tensor:
    """input != 0 or other != 0, elementwise; NaN is not 0.

    Both operands may be of any dtype, and are not converted to a common one. Both are computed in any case: there is no
    short circuit as in Python's `or`.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.logical_or(mlc.tensor([True, True, False]), mlc.tensor([True, False, False]))
        tensor([ True,  True, False], dtype=mlc.bool)
    """
    return binary(T.Or, boolean(input), boolean(other))


@operation()
def logical_xor(input: Operand, other: Operand) -> Tensor:
    """(input != 0) != (other != 0), elementwise; NaN is not 0.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.logical_xor(mlc.tensor([True, True, False]), mlc.tensor([True, False, False]))
        tensor([False,  True, False], dtype=mlc.bool)
    """
    return binary(T.Xor, boolean(input), boolean(other))
