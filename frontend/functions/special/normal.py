"""The normal distribution, scaled error functions, and entropies."""

from __future__ import annotations

import math

from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.special.double import in_double, polynomial
from mlc.frontend.operands import floating
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor

BORDER = 8.0
"""From here on, erfcx is its asymptotic series (DLMF 7.12.1), of which 18 terms are exact in float64."""
CENTRAL = [1.0, 1 / 6, 7 / 120, 127 / 5040, 4369 / 362880, 34807 / 39916800]
"""Coefficients of the quantiles of the normal distribution as a series in sqrt(2 pi) (p - 1 / 2): the inverse of that
of its cumulative distribution function (DLMF 7.17.2)."""


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
    size = E.abs(x)
    near, far = E.where(size < BORDER, size, 0.0), E.where(size < BORDER, BORDER, size)
    terms = [1.0]
    for k in range(1, 19):
        terms.append(-terms[-1] * (2 * k - 1) / 2)
    tail = polynomial(1.0 / (far * far), terms) / (far * math.sqrt(math.pi))
    out = E.where(size < BORDER, E.exp(near * near) * E.erfc(near), tail)
    below = E.where(x < 0, x, 0.0)
    return E.where(x < 0, 2.0 * E.exp(below * below) - out, out)       # whose derivative is finite where it is


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
    out = -x * E.log(E.where(x <= 0, 1.0, x))
    steep = E.sqrt(E.where(x == 0, x, 1.0))         # which is 0, with an infinite derivative
    return E.where(x < 0, -math.inf, E.where(x == 0, steep, out))


@operation(name="special.xlog1py")
def xlog1py(input: Operand, other: Operand) -> Tensor:
    """input * ln(1 + other), elementwise, and 0 where input is 0, unless `other` is NaN.

    Args:
        input: Tensor or number; integers become float32.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.xlog1py(mlc.tensor([0.0, 2.0]), mlc.tensor([-1.0, 0.0]))
        tensor([0., 0.], dtype=mlc.float32)
    """
    return E.times_log(input, other, E.log1p, 0.0, -1.0)


@operation(name="special.ndtri")
def ndtri(input: Operand) -> Tensor:
    """The quantiles of the standard normal distribution, for each element: the x with ndtr(x) = input.

    Args:
        input: Tensor or number, of elements from 0 to 1; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`: -inf at 0, inf at 1, NaN outside.

    Example:
        >>> mlc.special.ndtri(mlc.tensor([0.5, 0.975, 0.0]))
        tensor([0.       , 1.9599639,      -inf], dtype=mlc.float32)
    """
    def of(p: Tensor) -> Tensor:
        inside = (p > 0) & (p < 1)
        below = E.where(inside, E.minimum(p, 1.0 - p), 0.25)
        t = E.sqrt(-2.0 * E.log(below))                    # Abramowitz and Stegun 26.2.23, within 5e-4
        z = polynomial(t, (2.515517, 0.802853, 0.010328)) / polynomial(t, (1.0, 1.432788, 0.189269, 0.001308)) - t
        for _ in range(2):                                 # Halley's method, on the ratio to what is wanted
            scaled = math.sqrt(math.pi / 2) * _erfcx(z * -math.sqrt(0.5))      # ndtr over its derivative
            step = scaled * (1.0 - below / (0.5 * E.erfc(z * -math.sqrt(0.5))))
            z = z - step / (1.0 + 0.5 * z * step)
        z = E.where(p > 0.5, -z, z)
        middle = E.abs(p - 0.5) < 0.02                     # where z is the difference of two numbers near 1
        q = E.where(middle, p - 0.5, 0.0) * math.sqrt(2 * math.pi)
        z = E.where(middle, q * polynomial(q * q, CENTRAL), z)
        low, high = p == 0, p == 1                         # logarithms have infinite derivatives there, too
        edge = E.where(low, E.log(E.where(low, p, 1.0)), -E.log(E.where(high, 1.0 - p, 1.0)))
        return E.where(inside, z, E.where(low | high, edge, math.nan))
    return in_double(of, input)
