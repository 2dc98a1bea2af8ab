"""The regularized incomplete gamma functions.

With t = x exp(s), the integral of t ** (a - 1) exp(-t) becomes that of exp(a s - x (exp(s) - 1)), over s < 0 for the
lower function and s > 0 for the upper one. The function of the smaller value is computed: the upper one for x >= a, and
the lower one below, by Gauss's quadrature or, for small a, by its power series (DLMF 8.7.1).
"""

from __future__ import annotations

import math

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.scan import cumprod
from mlc.frontend.functions.shape import unsqueeze
from mlc.frontend.functions.special.double import in_double, polynomial
from mlc.frontend.functions.special.gamma import BERNOULLI, log_gamma, log_gamma_of_one_and
from mlc.frontend.functions.special.waves import weighted
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit

SERIES = 120.0
"""Up to this a, 160 terms of the power series are exact to float64's last bits for x < a."""
FALL = 42.0
"""Where the logarithm of an integrand has fallen by this, the rest of the integral is below 1e-18 of it."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2
"""Gauss's quadrature on [0, 1]."""


def _log_excess(x: Tensor) -> Tensor:
    """log(1 + x) - x, also where both are nearly equal."""
    near = E.abs(x) < 0.1
    small = E.where(near, x, 0.0)
    series = small * small * polynomial(small, [(-1.0) ** (k + 1) / (k + 2) for k in range(16)])
    return E.where(near, series, E.log1p(E.where(near, 1.0, x)) - E.where(near, 1.0, x))


def _exp_excess(x: Tensor) -> Tensor:
    """exp(x) - 1 - x, also where x is small."""
    near = E.abs(x) < 0.5
    small = E.where(near, x, 0.0)
    series = small * small * polynomial(small, [1 / math.factorial(k + 2) for k in range(14)])
    return E.where(near, series, E.expm1(x) - x)


def _factor(a: Tensor, x: Tensor) -> Tensor:
    """x ** a exp(-x) / gamma(a)"""
    large = a >= 10.0
    big = E.where(large, a, 10.0)
    off = (x - big) / big
    stirling = [float(b / (2 * k * (2 * k - 1))) for k, b in enumerate(BERNOULLI[:9], 1)]
    excess = E.where(off < -0.1, E.log(x / big) - off, _log_excess(off))   # `off` has lost the digits of a small x
    exponent = big * excess - polynomial(1.0 / (big * big), stirling) / big
    far = E.sqrt(big / (2 * math.pi)) * E.exp(exponent)
    small = E.where(large, 1.0, a)
    return E.where(large, far, E.exp(small * E.log(x) - x - log_gamma(small)))


def _tail(a: Tensor, x: Tensor, upper: Tensor) -> Tensor:
    """The upper function for x >= a, and the lower one for a > x, but for `_factor`."""
    slope = E.abs(x - a)
    reach = E.minimum(FALL / E.maximum(slope, 1e-300), E.sqrt(E.where(upper, 2 * FALL, 3 * FALL) / x))
    reach = E.detach(E.where(upper & (x < 1.0), E.log1p(1.2 * FALL / x), reach))
    sign = E.where(upper, 1.0, -1.0)
    at = unsqueeze(sign * reach, -1) * emit(T.Constant, NODES)
    exponent = unsqueeze(a - x, -1) * at - unsqueeze(x, -1) * _exp_excess(at)
    return weighted(E.exp(exponent), WEIGHTS) * reach


def _series(a: Tensor, x: Tensor) -> Tensor:
    """The lower function for a > x, but for `_factor`."""
    return (1.0 + _ratios(a, x)) / a


def _ratios(a: Tensor, x: Tensor) -> Tensor:
    """The terms of the power series after the first one, over that."""
    steps = unsqueeze(x, -1) / (unsqueeze(a, -1) + emit(T.Constant, np.arange(1.0, 161.0)))
    return R.sum(cumprod(steps, -1), -1)


def _upper_of_small(a: Tensor, x: Tensor) -> Tensor:
    """The upper function for x < a < 1/2, where the lower one may be near 1, and 1 less that would cancel."""
    return -E.expm1(a * E.log(x) - x - log_gamma_of_one_and(a) + E.log1p(_ratios(a, x)))


def _lower_and_upper(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    inside = (a > 0) & (x > 0) & E.isfinite(a) & E.isfinite(x)
    s, t = E.where(inside, a, 1.0), E.where(inside, x, 1.0)
    upper = t >= s
    direct = (s <= SERIES) & ~upper
    by_series = _series(E.where(direct, s, 1.0), E.where(direct, t, 0.5))
    rest = _tail(E.where(direct, 1.0, s), E.where(direct, 1.0, t), upper | direct)
    part = _factor(s, t) * E.where(direct, by_series, rest)
    lower, other = E.where(upper, 1.0 - part, part), E.where(upper, part, 1.0 - part)
    small = direct & (s < 0.5)
    other = E.where(small, _upper_of_small(E.where(small, s, 0.25), E.where(small, t, 0.125)), other)
    first = (x == 0) & (a > 0) & (a < math.inf)            # where the first term of the series has the derivative
    start = E.detach(E.where(first, a, 1.0))
    edge = E.pow(E.where(first, x, 1.0), start) * E.exp(-log_gamma(1.0 + start))
    edge = E.where(first, edge, E.where(((a == math.inf) & (x >= 0) & (x < math.inf)), 0.0, E.where(
        ((a == 0) & (x > 0)) | ((x == math.inf) & (a >= 0) & (a < math.inf)), 1.0, math.nan)))
    return E.where(inside, lower, edge), E.where(inside, other, 1.0 - edge)


@operation()
def igamma(input: Operand, other: Operand) -> Tensor:
    """The regularized lower incomplete gamma function: the integral of t ** (a - 1) exp(-t) up to x, over gamma(a).

    Args:
        input: Tensor or number, a; integers become float32.
        other: Tensor or number, x, whose shape broadcasts with that of `input`.

    Returns:
        Tensor of floats from 0 to 1, of the broadcast shape; NaN where a or x is negative.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.igamma(mlc.tensor([1.0, 4.0]), mlc.tensor([1.0, 3.0]))
        tensor([0.63212055, 0.3527681 ], dtype=mlc.float32)
    """
    return in_double(lambda a, x: _lower_and_upper(a, x)[0], input, other)


@operation()
def igammac(input: Operand, other: Operand) -> Tensor:
    """The regularized upper incomplete gamma function: the integral of t ** (a - 1) exp(-t) from x on, over gamma(a).

    Args:
        input: Tensor or number, a; integers become float32.
        other: Tensor or number, x, whose shape broadcasts with that of `input`.

    Returns:
        Tensor of floats from 0 to 1, of the broadcast shape; NaN where a or x is negative.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.igammac(mlc.tensor([1.0, 4.0]), mlc.tensor([1.0, 3.0]))
        tensor([0.36787945, 0.6472319 ], dtype=mlc.float32)
    """
    return in_double(lambda a, x: _lower_and_upper(a, x)[1], input, other)
