"""Bessel functions of orders 0 and 1 of both kinds, and modified ones of the second kind.

Up to 20, J and Y are sums over the nodes of the trapezoidal rule, which is exact to float64's last bits for integrals
over a period: J is Bessel's integral (DLMF 10.9.1), and the terms of Neumann's series, which Y has besides (DLMF
10.8.3), are such integrals too. From there on they are Hankel's asymptotic expansions (DLMF 10.17.3). K is a power
series up to 2 (DLMF 10.31.2), and from there on the trapezoidal rule for the integral of exp(-x cosh(t)) cosh(n t)
(DLMF 10.32.9).
"""

from __future__ import annotations

import math

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions import trigonometry as G
from mlc.frontend.functions.shape import unsqueeze
from mlc.frontend.functions.special.bessel import bessel_i
from mlc.frontend.functions.special.double import in_double, polynomial
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Array, Operand, Tensor
from mlc.frontend.trace import emit

EULER = 0.5772156649015328606
BORDER = 20.0
PERIOD, TERMS = 112, 27
"""Points over a period, and terms of Neumann's series: J of order 54 and of order 112 - 54 is below 1e-17 at the
border."""
K_BORDER = 2.0


def _nodes() -> tuple[Array, Array, Array]:
    """sin of the angles of a quarter period, the weights of the trapezoidal rule, and those of Neumann's series."""
    angle = 2 * np.pi / PERIOD * np.arange(PERIOD // 4 + 1)
    weight = np.full(len(angle), 4 / PERIOD)
    weight[[0, -1]] /= 2
    series = sum((-1) ** k / k * np.cos(2 * k * angle) for k in range(1, TERMS + 1))
    return np.sin(angle), weight, 4 / np.pi * weight * series


NODES, PLAIN, NEUMANN = _nodes()


def weighted(values: Tensor, weights: Array) -> Tensor:
    """The weighted sum over the last dimension."""
    return R.sum(values * emit(T.Constant, weights), -1)


def _near(x: Tensor, order: int, second: bool) -> Tensor:
    """J for |x| < 20, or Y for 0 < x < 20."""
    angles = unsqueeze(x, -1) * emit(T.Constant, NODES)
    waves, factor = (G.sin(angles), NODES) if order else (G.cos(angles), np.ones_like(NODES))
    first = weighted(waves, PLAIN * factor)
    if not second:
        return first
    out = 2 / math.pi * (E.log(0.5 * x) + EULER) * first - weighted(waves, NEUMANN * factor)
    return out - 2 / (math.pi * x) * weighted(G.cos(angles), PLAIN) if order else out


def _far(x: Tensor, order: int, second: bool) -> Tensor:
    """J or Y for x >= 20."""
    terms = [1.0]
    for k in range(1, 26):
        terms.append(terms[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    inverse = 1.0 / x
    square = inverse * inverse
    p = polynomial(square, [(-1) ** k * c for k, c in enumerate(terms[0::2])])
    q = polynomial(square, [(-1) ** k * c for k, c in enumerate(terms[1::2])]) * inverse
    sine, cosine = G.sin(x), G.cos(x)
    c, s = (sine + cosine) / math.sqrt(2), (sine - cosine) / math.sqrt(2)      # of x - pi / 4
    c, s = (s, -c) if order else (c, s)
    wave = p * s + q * c if second else p * c - q * s
    return E.where(E.isinf(x), 0.0, wave * E.sqrt(2 / math.pi * inverse))


def _bessel(x: Tensor, order: int, second: bool) -> Tensor:
    size = x if second else E.abs(x)
    inside = size < BORDER
    far = _far(E.where(inside, BORDER, size), order, second)
    if second:
        out = E.where(inside, _near(E.where(inside & (size > 0), size, 1.0), order, True), far)
        return E.where(x > 0, out, E.where(x == 0, -math.inf, math.nan))
    far = E.where(x < 0, -far, far) if order else far
    return E.where(inside, _near(E.where(inside, x, 0.0), order, False), far)      # with its derivatives at 0


def _bessel_k(x: Tensor, order: int, scaled: bool) -> Tensor:
    """K(x), or e ** x * K(x)."""
    inside = x < K_BORDER
    near = E.where(inside & (x > 0), x, 1.0)
    harmonic = [sum(1 / j for j in range(1, k + 1)) - EULER for k in range(20)]          # digamma(k + 1)
    square = 0.25 * near * near
    if order:
        series = [(harmonic[k] + harmonic[k + 1]) / (math.factorial(k) * math.factorial(k + 1)) for k in range(19)]
        small = 1.0 / near + E.log(0.5 * near) * bessel_i(near, 1, False) - 0.25 * near * polynomial(square, series)
    else:
        series = [harmonic[k] / math.factorial(k) ** 2 for k in range(19)]
        small = polynomial(square, series) - E.log(0.5 * near) * bessel_i(near, 0, False)
    far = E.where(inside, K_BORDER, x)
    y = 0.35 * np.arange(19)                               # the trapezoidal rule for y = sqrt(2 x) sinh(t / 2)
    weights = 0.35 * np.exp(-y * y)
    weights[0] /= 2
    ratio = emit(T.Constant, y * y) / unsqueeze(far, -1)
    values = E.rsqrt(0.5 * ratio + 1.0)
    large = weighted(values * (1.0 + ratio) if order else values, weights) * E.sqrt(2.0 / far)
    if scaled:
        small = small * E.exp(near)
    else:
        large = large * E.exp(-far)
    large = E.where(E.isinf(far), 0.0, large)
    return E.where(x > 0, E.where(inside, small, large), E.where(x == 0, math.inf, math.nan))


@operation(name="special.bessel_j0")
def bessel_j0(input: Operand) -> Tensor:
    """The Bessel function of the first kind of order 0, for each element.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.bessel_j0(mlc.tensor([0.0, 1.0]))
        tensor([1.       , 0.7651977], dtype=mlc.float32)
    """
    return in_double(lambda x: _bessel(x, 0, False), input)


@operation(name="special.bessel_j1")
def bessel_j1(input: Operand) -> Tensor:
    """The Bessel function of the first kind of order 1, for each element.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.bessel_j1(mlc.tensor([0.0, 1.0]))
        tensor([0.        , 0.44005057], dtype=mlc.float32)
    """
    return in_double(lambda x: _bessel(x, 1, False), input)


@operation(name="special.bessel_y0")
def bessel_y0(input: Operand) -> Tensor:
    """The Bessel function of the second kind of order 0, for each element: -inf at 0, NaN below.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.bessel_y0(mlc.tensor([1.0, 100.0]))
        tensor([ 0.08825696, -0.07724431], dtype=mlc.float32)
    """
    return in_double(lambda x: _bessel(x, 0, True), input)


@operation(name="special.bessel_y1")
def bessel_y1(input: Operand) -> Tensor:
    """The Bessel function of the second kind of order 1, for each element: -inf at 0, NaN below.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.bessel_y1(mlc.tensor([1.0, 100.0]))
        tensor([-0.7812128 , -0.02037231], dtype=mlc.float32)
    """
    return in_double(lambda x: _bessel(x, 1, True), input)


@operation(name="special.modified_bessel_k0")
def modified_bessel_k0(input: Operand) -> Tensor:
    """The modified Bessel function of the second kind of order 0, for each element: inf at 0, NaN below.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.modified_bessel_k0(mlc.tensor([1.0, 10.0]))
        tensor([4.2102444e-01, 1.7780063e-05], dtype=mlc.float32)
    """
    return in_double(lambda x: _bessel_k(x, 0, False), input)


@operation(name="special.modified_bessel_k1")
def modified_bessel_k1(input: Operand) -> Tensor:
    """The modified Bessel function of the second kind of order 1, for each element: inf at 0, NaN below.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.modified_bessel_k1(mlc.tensor([1.0, 10.0]))
        tensor([6.0190725e-01, 1.8648774e-05], dtype=mlc.float32)
    """
    return in_double(lambda x: _bessel_k(x, 1, False), input)


@operation(name="special.scaled_modified_bessel_k0")
def scaled_modified_bessel_k0(input: Operand) -> Tensor:
    """e ** x * modified_bessel_k0(x), for each element, which does not underflow: inf at 0, NaN below.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.scaled_modified_bessel_k0(mlc.tensor([1.0, 1000.0]))
        tensor([1.1444631 , 0.03962832], dtype=mlc.float32)
    """
    return in_double(lambda x: _bessel_k(x, 0, True), input)


@operation(name="special.scaled_modified_bessel_k1")
def scaled_modified_bessel_k1(input: Operand) -> Tensor:
    """e ** x * modified_bessel_k1(x), for each element, which does not underflow: inf at 0, NaN below.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.scaled_modified_bessel_k1(mlc.tensor([1.0, 1000.0]))
        tensor([1.6361535 , 0.03964813], dtype=mlc.float32)
    """
    return in_double(lambda x: _bessel_k(x, 1, True), input)
