"""Elementwise functions of one tensor: exponentials, logarithms, trigonometry."""

from __future__ import annotations

import mlc
from mlc.frontend.tensor import Tensor

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


def acos(x: Tensor, /) -> Tensor:
    """The inverse cosine of each element.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.acos(xp.asarray([1.0, 0.0]))
        tensor([0.       , 1.5707964], dtype=mlc.float32)
    """
    return mlc.acos(x)


def acosh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic cosine of each element.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.acosh(xp.asarray([1.0, 2.0]))
        tensor([0.      , 1.316958], dtype=mlc.float32)
    """
    return mlc.acosh(x)


def asin(x: Tensor, /) -> Tensor:
    """The inverse sine of each element.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.asin(xp.asarray([0.0, 1.0]))
        tensor([0.       , 1.5707964], dtype=mlc.float32)
    """
    return mlc.asin(x)


def asinh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic sine of each element.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.asinh(xp.asarray([0.0, 1.0]))
        tensor([0.       , 0.8813736], dtype=mlc.float32)
    """
    return mlc.asinh(x)


def atan(x: Tensor, /) -> Tensor:
    """The inverse tangent of each element.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.atan(xp.asarray([0.0, 1.0]))
        tensor([0.       , 0.7853982], dtype=mlc.float32)
    """
    return mlc.atan(x)


def atanh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic tangent of each element.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.atanh(xp.asarray([0.0, 0.5]))
        tensor([0.        , 0.54930615], dtype=mlc.float32)
    """
    return mlc.atanh(x)


def cos(x: Tensor, /) -> Tensor:
    """The cosine of each element, in radians.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.cos(xp.asarray([0.0, 1.0]))
        tensor([1.       , 0.5403023], dtype=mlc.float32)
    """
    return mlc.cos(x)


def cosh(x: Tensor, /) -> Tensor:
    """The hyperbolic cosine of each element.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.cosh(xp.asarray([0.0, 1.0]))
        tensor([1.       , 1.5430807], dtype=mlc.float32)
    """
    return mlc.cosh(x)


def exp(x: Tensor, /) -> Tensor:
    """e^x for each element.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.exp(xp.asarray([0.0, 1.0]))
        tensor([1.       , 2.7182817], dtype=mlc.float32)
    """
    return mlc.exp(x)


def expm1(x: Tensor, /) -> Tensor:
    """e^x - 1 for each element, exact near 0.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.expm1(xp.asarray([0.0, 1.0]))
        tensor([0.       , 1.7182819], dtype=mlc.float32)
    """
    return mlc.expm1(x)


def log(x: Tensor, /) -> Tensor:
    """The natural logarithm of each element.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.log(xp.asarray([1.0, 2.0]))
        tensor([0.       , 0.6931472], dtype=mlc.float32)
    """
    return mlc.log(x)


def log10(x: Tensor, /) -> Tensor:
    """The logarithm of each element to base 10.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.log10(xp.asarray([1.0, 100.0]))
        tensor([0., 2.], dtype=mlc.float32)
    """
    return mlc.log10(x)


def log1p(x: Tensor, /) -> Tensor:
    """log(1 + x) for each element, exact near 0.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.log1p(xp.asarray([0.0, 1.0]))
        tensor([0.       , 0.6931472], dtype=mlc.float32)
    """
    return mlc.log1p(x)


def log2(x: Tensor, /) -> Tensor:
    """The logarithm of each element to base 2.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.log2(xp.asarray([1.0, 8.0]))
        tensor([0., 3.], dtype=mlc.float32)
    """
    return mlc.log2(x)


def sin(x: Tensor, /) -> Tensor:
    """The sine of each element, in radians.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.sin(xp.asarray([0.0, 1.0]))
        tensor([0.        , 0.84147096], dtype=mlc.float32)
    """
    return mlc.sin(x)


def sinh(x: Tensor, /) -> Tensor:
    """The hyperbolic sine of each element.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.sinh(xp.asarray([0.0, 1.0]))
        tensor([0.       , 1.1752012], dtype=mlc.float32)
    """
    return mlc.sinh(x)


def sqrt(x: Tensor, /) -> Tensor:
    """The square root of each element.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.sqrt(xp.asarray([4.0, 9.0]))
        tensor([2., 3.], dtype=mlc.float32)
    """
    return mlc.sqrt(x)


def tan(x: Tensor, /) -> Tensor:
    """The tangent of each element, in radians.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.tan(xp.asarray([0.0, 1.0]))
        tensor([0.       , 1.5574077], dtype=mlc.float32)
    """
    return mlc.tan(x)


def tanh(x: Tensor, /) -> Tensor:
    """The hyperbolic tangent of each element.

    Args:
        x: Tensor of floats or complex numbers.

    Returns:
        Tensor of the shape and the dtype of x.

    Example:
        >>> xp.tanh(xp.asarray([0.0, 1.0]))
        tensor([0.       , 0.7615942], dtype=mlc.float32)
    """
    return mlc.tanh(x)
