"""The normal distribution, scaled error functions, and entropies."""

from __future__ import annotations

import math

from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.special.double import in_double, polynomial
from mlc.frontend.operands import floating, together
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor

BORDER = 8.0
"""From here on, erfcx is its asymptotic series (DLMF 7.12.1), of which 18 terms are exact in float64."""


@operation(name="special.erfcx")
def erfcx(input: Operand) -> Tensor:
    """e ** (x ** 2) * erfc(x), for each element, the scaled complementary error function.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.erfcx(mlc.tensor([0.0, 100.0]))
        tensor([1.        , 0.00564161], dtype=mlc.float32)
    """
    return in_double(_erfcx, input)


def _erfcx(x: Tensor) -> Tensor:
    near, far = E.where(x < BORDER, x, 0.0), E.where(x < BORDER, BORDER, x)
    terms = [1.0]
    for k in range(1, 19):
        terms.append(-terms[-1] * (2 * k - 1) / 2)
    tail = polynomial(1.0 / (far * far), terms) / (far * math.sqrt(math.pi))
    return E.where(x < BORDER, E.exp(near * near) * E.erfc(near), tail)


@operation(name="special.ndtr")
def ndtr(input: Operand) -> Tensor:
    """The cumulative distribution function of the standard normal distribution: erfc(-x / sqrt(2)) / 2.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats in [0, 1], of the shape of `input`.

    Example:
        >>> mlc.special.ndtr(mlc.tensor([0.0, 1.0]))
        tensor([0.5       , 0.84134475], dtype=mlc.float32)
    """
    return in_double(lambda x: 0.5 * E.erfc(x * -math.sqrt(0.5)), input)


@operation(name="special.log_ndtr")
def log_ndtr(input: Operand) -> Tensor:
    """ln(ndtr(x)), for each element, accurate also where `ndtr` is 0 or 1.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.log_ndtr(mlc.tensor([0.0, -100.0]))
        tensor([-6.9314718e-01, -5.0055244e+03], dtype=mlc.float32)
    """
    def of(x: Tensor) -> Tensor:
        scaled = x * -math.sqrt(0.5)
        low = x < -1
        near, far = E.where(low, 0.0, scaled), E.where(low, scaled, 1.0)
        return E.where(low, E.log(0.5 * _erfcx(far)) - far * far, E.log1p(-0.5 * E.erfc(-near)))
    return in_double(of, input)


@operation(name="special.entr")
def entr(input: Operand) -> Tensor:
    """-x * ln(x), for each element, the entropy; 0 at 0 and -inf below.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.entr(mlc.tensor([0.0, 1.0, 2.0]))
        tensor([ 0.       , -0.       , -1.3862944], dtype=mlc.float32)
    """
    x = floating(input)
    out = E.where(x == 0, 0.0, -x * E.log(E.where(x <= 0, 1.0, x)))
    return E.where(x < 0, -math.inf, out)


@operation(name="special.xlog1py")
def xlog1py(input: Operand, other: Operand) -> Tensor:
    """input * ln(1 + other), elementwise, and 0 where input is 0, unless `other` is NaN.

    Args:
        input: Tensor or number; integers become float32.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of floats, of the broadcast shape.

    Example:
        >>> mlc.special.xlog1py(mlc.tensor([0.0, 2.0]), mlc.tensor([-1.0, 0.0]))
        tensor([0., 0.], dtype=mlc.float32)
    """
    a, b = together(input, other, floating=True)
    zero = (a == 0) & ((b <= -1) | (b == math.inf))
    return E.where(zero, 0.0, a * E.log1p(E.where(zero, 0.0, b)))
