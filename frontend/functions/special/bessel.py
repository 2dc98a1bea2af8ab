"""Modified Bessel functions of the first kind, and the spherical one of order 0.

Up to 20 they are power series (DLMF 10.25.2), whose terms are all positive; from there on, Hankel's asymptotic
expansion (DLMF 10.40.1).
"""

from __future__ import annotations

import math

from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import trigonometry as G
from mlc.frontend.functions.special.double import in_double, polynomial
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor

BORDER = 20.0


def _series(order: int) -> list[float]:
    """Coefficients of I(x) / (x / 2) ** order in powers of x ** 2 / 4."""
    return [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(45)]


def _hankel(order: int) -> list[float]:
    """Coefficients of e ** -x * sqrt(2 pi x) * I(x) in powers of 1 / x."""
    out = [1.0]
    for k in range(1, 31):
        out.append(-out[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return out


def bessel_i(x: Tensor, order: int, scaled: bool) -> Tensor:
    """I(x), or e ** -|x| * I(x)."""
    size = E.abs(x)
    near = E.where(size < BORDER, x, 0.0)
    series = polynomial(near * near * 0.25, _series(order)) * (0.5 * near if order else 1.0)
    far = E.where(size < BORDER, BORDER, size)
    tail = polynomial(1.0 / far, _hankel(order)) / E.sqrt(2 * math.pi * far)
    tail = tail * E.sign(x) if order else tail
    if scaled:
        return E.where(size < BORDER, series * E.exp(-E.abs(near)), tail)
    half = E.exp(0.5 * far)                                # e ** x alone may overflow where I(x) does not
    return E.where(size < BORDER, series, tail * half * half)


@operation()
def i0(input: Operand) -> Tensor:
    """The modified Bessel function of the first kind of order 0, for each element.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.i0(mlc.tensor([0.0, 1.0]))
        tensor([1.       , 1.2660658], dtype=mlc.float32)
    """
    return in_double(lambda x: bessel_i(x, 0, False), input)


@operation(name="special.i0e")
def i0e(input: Operand) -> Tensor:
    """e ** -|x| * i0(x), for each element, which does not overflow.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.i0e(mlc.tensor([0.0, 1000.0]))
        tensor([1.       , 0.0126173], dtype=mlc.float32)
    """
    return in_double(lambda x: bessel_i(x, 0, True), input)


@operation(name="special.i1")
def i1(input: Operand) -> Tensor:
    """The modified Bessel function of the first kind of order 1, for each element.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.i1(mlc.tensor([0.0, 1.0]))
        tensor([0.        , 0.56515914], dtype=mlc.float32)
    """
    return in_double(lambda x: bessel_i(x, 1, False), input)


@operation(name="special.i1e")
def i1e(input: Operand) -> Tensor:
    """e ** -|x| * i1(x), for each element, which does not overflow.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.i1e(mlc.tensor([0.0, 1000.0]))
        tensor([0.        , 0.01261099], dtype=mlc.float32)
    """
    return in_double(lambda x: bessel_i(x, 1, True), input)


@operation(name="special.spherical_bessel_j0")
def spherical_bessel_j0(input: Operand) -> Tensor:
    """sin(x) / x, the spherical Bessel function of the first kind of order 0; 1 at 0.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.spherical_bessel_j0(mlc.tensor([0.0, 1.0]))
        tensor([1.        , 0.84147096], dtype=mlc.float32)
    """
    def of(x: Tensor) -> Tensor:
        safe = E.where(E.abs(x) < 0.5, 1.0, x)
        near = E.where(E.abs(x) < 0.5, x, 0.0)
        series = [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]
        return E.where(E.isinf(x), 0.0, E.where(E.abs(x) < 0.5, polynomial(near * near, series), G.sin(safe) / safe))
    return in_double(of, input)
