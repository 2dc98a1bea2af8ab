"""Comparisons, logic and bits of two tensors, or of a tensor and a number, in the standard's common dtype."""

from __future__ import annotations

import mlc
from mlc.array_api.data_types import in_one_dtype
from mlc.frontend.tensor import Operand, Tensor

__all__ = [
    "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "equal", "greater",
    "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_xor", "maximum", "minimum",
    "not_equal",
]


def bitwise_and(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 & x2.

    Args:
        x1: Tensor of integers or bools, or a number.
        x2: Tensor of integers or bools, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.bitwise_and(xp.asarray([5, 6]), 4)
        tensor([4, 4], dtype=mlc.int64)
    """
    return mlc.bitwise_and(*in_one_dtype(x1, x2))


def bitwise_left_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 * 2^x2, within the bits of the dtype.

    Args:
        x1: Tensor of integers, or a number.
        x2: Tensor of integers, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.bitwise_left_shift(xp.asarray([1, 3]), 2)
        tensor([ 4, 12], dtype=mlc.int64)
    """
    return mlc.bitwise_left_shift(*in_one_dtype(x1, x2))


def bitwise_or(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 | x2.

    Args:
        x1: Tensor of integers or bools, or a number.
        x2: Tensor of integers or bools, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.bitwise_or(xp.asarray([5, 6]), 1)
        tensor([5, 7], dtype=mlc.int64)
    """
    return mlc.bitwise_or(*in_one_dtype(x1, x2))


def bitwise_right_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 / 2^x2, rounded down.

    Args:
        x1: Tensor of integers, or a number.
        x2: Tensor of integers, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.bitwise_right_shift(xp.asarray([8, -3]), 1)
        tensor([ 4, -2], dtype=mlc.int64)
    """
    return mlc.bitwise_right_shift(*in_one_dtype(x1, x2))


def bitwise_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 ^ x2.

    Args:
        x1: Tensor of integers or bools, or a number.
        x2: Tensor of integers or bools, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.bitwise_xor(xp.asarray([5, 6]), 1)
        tensor([4, 7], dtype=mlc.int64)
    """
    return mlc.bitwise_xor(*in_one_dtype(x1, x2))


def equal(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 == x2.

    Args:
        x1: Tensor of numbers, or a number.
        x2: Tensor of numbers, or a number; not both are numbers.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.equal(xp.asarray([1, 2]), 2)
        tensor([False,  True], dtype=mlc.bool)
    """
    return mlc.eq(*in_one_dtype(x1, x2))


def greater(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 > x2.

    Args:
        x1: Tensor of real numbers, or a number.
        x2: Tensor of real numbers, or a number; not both are numbers.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.greater(xp.asarray([1, 2]), 1)
        tensor([False,  True], dtype=mlc.bool)
    """
    return mlc.gt(*in_one_dtype(x1, x2))


def greater_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 >= x2.

    Args:
        x1: Tensor of real numbers, or a number.
        x2: Tensor of real numbers, or a number; not both are numbers.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.greater_equal(xp.asarray([1, 2]), 2)
        tensor([False,  True], dtype=mlc.bool)
    """
    return mlc.ge(*in_one_dtype(x1, x2))


def less(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 < x2.

    Args:
        x1: Tensor of real numbers, or a number.
        x2: Tensor of real numbers, or a number; not both are numbers.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.less(xp.asarray([1, 2]), 2)
        tensor([ True, False], dtype=mlc.bool)
    """
    return mlc.lt(*in_one_dtype(x1, x2))


def less_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 <= x2.

    Args:
        x1: Tensor of real numbers, or a number.
        x2: Tensor of real numbers, or a number; not both are numbers.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.less_equal(xp.asarray([1, 2]), 1)
        tensor([ True, False], dtype=mlc.bool)
    """
    return mlc.le(*in_one_dtype(x1, x2))


def logical_and(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether x1 and x2 are both True.

    Args:
        x1: Tensor of bools, or a number.
        x2: Tensor of bools, or a number; not both are numbers.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.logical_and(xp.asarray([True, False]), True)
        tensor([ True, False], dtype=mlc.bool)
    """
    return mlc.logical_and(*in_one_dtype(x1, x2))


def logical_or(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether x1 or x2 is True.

    Args:
        x1: Tensor of bools, or a number.
        x2: Tensor of bools, or a number; not both are numbers.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.logical_or(xp.asarray([True, False]), False)
        tensor([ True, False], dtype=mlc.bool)
    """
    return mlc.logical_or(*in_one_dtype(x1, x2))


def logical_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether one of x1 and x2 is True, and the other is not.

    Args:
        x1: Tensor of bools, or a number.
        x2: Tensor of bools, or a number; not both are numbers.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.logical_xor(xp.asarray([True, False]), True)
        tensor([False,  True], dtype=mlc.bool)
    """
    return mlc.logical_xor(*in_one_dtype(x1, x2))


def maximum(x1: Operand, x2: Operand, /) -> Tensor:
    """The larger of x1 and x2; NaN if either is.

    Args:
        x1: Tensor of real numbers, or a number.
        x2: Tensor of real numbers, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.maximum(xp.asarray([1, 3]), 2)
        tensor([2, 3], dtype=mlc.int64)
    """
    return mlc.maximum(*in_one_dtype(x1, x2))


def minimum(x1: Operand, x2: Operand, /) -> Tensor:
    """The smaller of x1 and x2; NaN if either is.

    Args:
        x1: Tensor of real numbers, or a number.
        x2: Tensor of real numbers, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.minimum(xp.asarray([1, 3]), 2)
        tensor([1, 2], dtype=mlc.int64)
    """
    return mlc.minimum(*in_one_dtype(x1, x2))


def not_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 != x2.

    Args:
        x1: Tensor of numbers, or a number.
        x2: Tensor of numbers, or a number; not both are numbers.

    Returns:
        Tensor of bools of the broadcast shape.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.not_equal(xp.asarray([1, 2]), 2)
        tensor([ True, False], dtype=mlc.bool)
    """
    return mlc.ne(*in_one_dtype(x1, x2))
