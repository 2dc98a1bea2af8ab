"""Arithmetic of two tensors, or of a tensor and a number, in the standard's common dtype."""

from __future__ import annotations

import mlc
from mlc.array_api.data_types import in_one_dtype, tensors_in_one_dtype
from mlc.frontend.tensor import Operand, Tensor

__all__ = [
    "add", "atan2", "copysign", "divide", "floor_divide", "hypot", "logaddexp", "multiply", "nextafter", "pow",
    "remainder", "subtract",
]


def add(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 + x2.

    Args:
        x1: Tensor of numbers, or a number.
        x2: Tensor of numbers, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.add(xp.asarray([1, 2]), 3)
        tensor([4, 5], dtype=mlc.int64)
    """
    return mlc.add(*in_one_dtype(x1, x2))


def atan2(x1: Operand, x2: Operand, /) -> Tensor:
    """The angle of the point (x2, x1), in radians.

    Args:
        x1: Tensor of floats, or a number.
        x2: Tensor of floats, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.atan2(xp.asarray([1.0]), xp.asarray([1.0]))
        tensor([0.7853982], dtype=mlc.float32)
    """
    return mlc.atan2(*in_one_dtype(x1, x2))


def copysign(x1: Operand, x2: Operand, /) -> Tensor:
    """|x1| with the sign of x2.

    Args:
        x1: Tensor of floats, or a number.
        x2: Tensor of floats, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.copysign(xp.asarray([1.0, 2.0]), -0.0)
        tensor([-1., -2.], dtype=mlc.float32)
    """
    return mlc.copysign(*in_one_dtype(x1, x2))


def divide(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 / x2.

    Args:
        x1: Tensor of floats or complex numbers, or a number.
        x2: Tensor of floats or complex numbers, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.divide(xp.asarray([1.0, 3.0]), 2)
        tensor([0.5, 1.5], dtype=mlc.float32)
    """
    return mlc.div(*in_one_dtype(x1, x2))


def floor_divide(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 / x2, rounded down.

    Args:
        x1: Tensor of real numbers, or a number.
        x2: Tensor of real numbers, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.floor_divide(xp.asarray([7, -7]), 2)
        tensor([ 3, -4], dtype=mlc.int64)
    """
    a, b = tensors_in_one_dtype(x1, x2)
    out = mlc.floor_divide(a, b)
    if not a.dtype.is_floating_point:
        return out
    # Of infinities, Python and PyTorch make NaN, or -1; the standard has the floor of the quotient.
    return mlc.where(mlc.isinf(a) | mlc.isinf(b), mlc.floor(a / b), out)  # type: ignore[no-any-return]


def hypot(x1: Operand, x2: Operand, /) -> Tensor:
    """sqrt(x1^2 + x2^2), without overflow in the squares.

    Args:
        x1: Tensor of floats, or a number.
        x2: Tensor of floats, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.hypot(xp.asarray([3.0]), 4.0)
        tensor([5.], dtype=mlc.float32)
    """
    return mlc.hypot(*in_one_dtype(x1, x2))


def logaddexp(x1: Operand, x2: Operand, /) -> Tensor:
    """log(e^x1 + e^x2), without overflow in the powers.

    Args:
        x1: Tensor of floats, or a number.
        x2: Tensor of floats, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.logaddexp(xp.asarray([0.0]), 0.0)
        tensor([0.6931472], dtype=mlc.float32)
    """
    return mlc.logaddexp(*in_one_dtype(x1, x2))


def multiply(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 * x2.

    Args:
        x1: Tensor of numbers, or a number.
        x2: Tensor of numbers, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.multiply(xp.asarray([1, 2]), 3)
        tensor([3, 6], dtype=mlc.int64)
    """
    return mlc.mul(*in_one_dtype(x1, x2))


def nextafter(x1: Operand, x2: Operand, /) -> Tensor:
    """The next number after x1 in the direction of x2.

    Args:
        x1: Tensor of floats, or a number.
        x2: Tensor of floats, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.nextafter(xp.asarray([1.0]), 2.0) > 1.0
        tensor([ True], dtype=mlc.bool)
    """
    return mlc.nextafter(*in_one_dtype(x1, x2))


def pow(x1: Operand, x2: Operand, /) -> Tensor:
    """x1^x2.

    Args:
        x1: Tensor of numbers, or a number.
        x2: Tensor of numbers, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.pow(xp.asarray([2, 3]), 2)
        tensor([4, 9], dtype=mlc.int64)
    """
    return mlc.pow(*in_one_dtype(x1, x2))


def remainder(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 - x2 * floor(x1 / x2), which has the sign of x2.

    Args:
        x1: Tensor of real numbers, or a number.
        x2: Tensor of real numbers, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.remainder(xp.asarray([7, -7]), 4)
        tensor([3, 1], dtype=mlc.int64)
    """
    return mlc.remainder(*in_one_dtype(x1, x2))


def subtract(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 - x2.

    Args:
        x1: Tensor of numbers, or a number.
        x2: Tensor of numbers, or a number; not both are numbers.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.subtract(xp.asarray([1, 2]), 3)
        tensor([-2, -1], dtype=mlc.int64)
    """
    return mlc.sub(*in_one_dtype(x1, x2))
