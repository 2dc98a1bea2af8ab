"""Elementwise functions of one tensor: arithmetic, rounding, predicates."""

from __future__ import annotations

import mlc
from mlc.frontend.tensor import Tensor

__all__ = [
    "abs", "bitwise_invert", "ceil", "conj", "floor", "imag", "isfinite", "isinf", "isnan", "logical_not",
    "negative", "positive", "real", "reciprocal", "round", "sign", "signbit", "square", "trunc",
]


def abs(x: Tensor, /) -> Tensor:
    """|x|: the absolute value of each element.

    Args:
        x: Tensor of numbers.

    Returns:
        Tensor of the shape and the dtype of x, that of the parts if x is complex.

    Example:
        >>> xp.abs(xp.asarray([-1, 2]))
        tensor([1, 2], dtype=mlc.int64)
    """
    return mlc.abs(x)


def bitwise_invert(x: Tensor, /) -> Tensor:
    """~x: the bits of each element, inverted.

    Args:
        x: Tensor of integers or bools.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.bitwise_invert(xp.asarray([0, 1]))
        tensor([-1, -2], dtype=mlc.int64)
    """
    return mlc.bitwise_not(x)


def ceil(x: Tensor, /) -> Tensor:
    """The smallest integer that is not below each element, in the dtype of x.

    Args:
        x: Tensor of real numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.ceil(xp.asarray([0.5, -0.5]))
        tensor([ 1., -0.], dtype=mlc.float32)
    """
    return mlc.ceil(x)


def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate of each element.

    Args:
        x: Tensor of numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.conj(xp.asarray([1 + 2j]))
        tensor([1.-2.j], dtype=mlc.complex64)
    """
    return mlc.conj(x)


def floor(x: Tensor, /) -> Tensor:
    """The largest integer that is not above each element, in the dtype of x.

    Args:
        x: Tensor of real numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.floor(xp.asarray([0.5, -0.5]))
        tensor([ 0., -1.], dtype=mlc.float32)
    """
    return mlc.floor(x)


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part of each element.

    Args:
        x: Tensor of complex numbers.

    Returns:
        Tensor of the shape of x and the dtype of its parts.

    Example:
        >>> xp.imag(xp.asarray([1 + 2j]))
        tensor([2.], dtype=mlc.float32)
    """
    return mlc.imag(x)


def isfinite(x: Tensor, /) -> Tensor:
    """Whether each element is neither infinite nor NaN.

    Args:
        x: Tensor of numbers.

    Returns:
        Tensor of bools of the shape of x.

    Example:
        >>> xp.isfinite(xp.asarray([1.0, xp.inf]))
        tensor([ True, False], dtype=mlc.bool)
    """
    return mlc.isfinite(x)


def isinf(x: Tensor, /) -> Tensor:
    """Whether each element is infinite.

    Args:
        x: Tensor of numbers.

    Returns:
        Tensor of bools of the shape of x.

    Example:
        >>> xp.isinf(xp.asarray([1.0, xp.inf]))
        tensor([False,  True], dtype=mlc.bool)
    """
    return mlc.isinf(x)


def isnan(x: Tensor, /) -> Tensor:
    """Whether each element is NaN.

    Args:
        x: Tensor of numbers.

    Returns:
        Tensor of bools of the shape of x.

    Example:
        >>> xp.isnan(xp.asarray([1.0, xp.nan]))
        tensor([False,  True], dtype=mlc.bool)
    """
    return mlc.isnan(x)


def logical_not(x: Tensor, /) -> Tensor:
    """Whether each element is False.

    Args:
        x: Tensor of bools.

    Returns:
        Tensor of bools of the shape of x.

    Example:
        >>> xp.logical_not(xp.asarray([True, False]))
        tensor([False,  True], dtype=mlc.bool)
    """
    return mlc.logical_not(x)


def negative(x: Tensor, /) -> Tensor:
    """-x for each element.

    Args:
        x: Tensor of numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.negative(xp.asarray([1, -2]))
        tensor([-1,  2], dtype=mlc.int64)
    """
    return mlc.neg(x)


def real(x: Tensor, /) -> Tensor:
    """The real part of each element.

    Args:
        x: Tensor of numbers.

    Returns:
        Tensor of the shape of x and the dtype of its parts.

    Example:
        >>> xp.real(xp.asarray([1 + 2j]))
        tensor([1.], dtype=mlc.float32)
    """
    return mlc.real(x)


def reciprocal(x: Tensor, /) -> Tensor:
    """1 / x for each element.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.reciprocal(xp.asarray([2.0, 4.0]))
        tensor([0.5 , 0.25], dtype=mlc.float32)
    """
    return mlc.reciprocal(x)


def signbit(x: Tensor, /) -> Tensor:
    """Whether the sign bit of each element is set, which it is for -0.0.

    Args:
        x: Tensor of floats.

    Returns:
        Tensor of bools of the shape of x.

    Example:
        >>> xp.signbit(xp.asarray([0.0, -0.0]))
        tensor([False,  True], dtype=mlc.bool)
    """
    return mlc.signbit(x)


def square(x: Tensor, /) -> Tensor:
    """x^2 for each element.

    Args:
        x: Tensor of numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.square(xp.asarray([2, -3]))
        tensor([4, 9], dtype=mlc.int64)
    """
    return mlc.square(x)


def trunc(x: Tensor, /) -> Tensor:
    """Each element without its fraction, in the dtype of x.

    Args:
        x: Tensor of real numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.trunc(xp.asarray([1.5, -1.5]))
        tensor([ 1., -1.], dtype=mlc.float32)
    """
    return mlc.trunc(x)


def positive(x: Tensor, /) -> Tensor:
    """+x: a copy of x.

    Args:
        x: Tensor of numbers.

    Returns:
        Tensor of the shape and the dtype of x, with memory of its own.

    Example:
        >>> xp.positive(xp.asarray([1, -2]))
        tensor([ 1, -2], dtype=mlc.int64)
    """
    return x.clone()


def round(x: Tensor, /) -> Tensor:
    """The nearest integer to each element, in the dtype of x; halves go to the even one. Of complex numbers, both parts
    are rounded.

    Args:
        x: Tensor of numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.round(xp.asarray([0.5, 1.5]))
        tensor([0., 2.], dtype=mlc.float32)
    """
    if x.dtype.is_complex:
        return mlc.complex(mlc.round(mlc.real(x)), mlc.round(mlc.imag(x)))
    return mlc.round(x)


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1 by the sign of each element, NaN for NaN; of complex numbers x / |x|.

    Args:
        x: Tensor of numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.sign(xp.asarray([-2.0, 0.0, 3.0]))
        tensor([-1.,  0.,  1.], dtype=mlc.float32)
    """
    if x.dtype.is_complex:
        parts = mlc.real(x), mlc.imag(x)
        endless = [mlc.isinf(p) for p in parts]
        unit = mlc.complex(*(mlc.where(e, mlc.sign(p), 0.0) for e, p in zip(endless, parts)))
        one = (endless[0] ^ endless[1]) & ~mlc.isnan(x)    # x / |x| is NaN
        rest = mlc.sgn(x).masked_fill(x == 0, 0)           # of zeros of any signs 0, not -0
        return mlc.where(one, unit, rest)  # type: ignore[no-any-return]
    return mlc.where(mlc.isnan(x), x, mlc.sign(x)) if x.dtype.is_floating_point else mlc.sign(x)
