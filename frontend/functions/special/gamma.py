"""The gamma function's logarithm and the derivatives of that, and Hurwitz's zeta function.

For large arguments they are asymptotic series in Bernoulli numbers (DLMF 5.11.1, 5.11.2, 25.11.43); smaller arguments
are increased by the recurrence, and those below 1/2 are reflected (DLMF 5.5.3, 5.5.4). Near its zeros, 1 and 2, the
logarithm is its power series (DLMF 5.7.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from mlc.dialects import tensor as T
from mlc.frontend.axes import plain_int
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions import trigonometry as G
from mlc.frontend.functions.shape import broadcast_tensors, stack, unbind
from mlc.frontend.functions.special.double import in_double, polynomial
from mlc.frontend.operands import cast, full, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.ir.diag import UserError
from mlc.ir.types import f64, i64

SHIFT = 9
"""Asymptotic series are used for arguments of at least this: then nine terms are exact to float64's last bits."""
MOST = 100
"""Largest order of a derivative, since 170! is the greatest factorial in float64."""


def _bernoulli(count: int) -> list[Fraction]:
    """The Bernoulli numbers B_2, B_4, ..."""
    numbers = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        numbers.append(-sum((math.comb(n + 1, k) * b for k, b in enumerate(numbers)), Fraction()) / (n + 1))
    return numbers[2::2]


BERNOULLI = _bernoulli(12)


def _zeta_less_one(s: int) -> float:
    """zeta(s) - 1 by the formula of Euler and Maclaurin, for s > 1."""
    n, rising = 12.0, float(s)
    total = math.fsum(k**-s for k in range(2, int(n))) + n ** (1 - s) / (s - 1) + n**-s / 2
    for k, b in enumerate(BERNOULLI[:9], 1):
        total += float(b) / math.factorial(2 * k) * rising * n ** (1.0 - s - 2 * k)
        rising *= (s + 2 * k - 1) * (s + 2 * k)
    return total


ABOUT_TWO = [1 - 0.57721566490153286, *((-1) ** k * _zeta_less_one(k) / k for k in range(2, 30))]
"""Coefficients of z, z ** 2, ... in ln gamma(2 + z); exact to float64's last bits for |z| <= 1/2."""


def _distance(x: Tensor) -> Tensor:
    """The distance from the nearest integer, with its sign."""
    return x - E.round(x)


@operation()
def lgamma(input: Operand) -> Tensor:
    """ln |gamma(x)|, for each element; infinite at 0 and the negative integers.

    The derivative is `mlc.digamma`.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.lgamma(mlc.tensor([0.5, 1.0, 5.0]))
        tensor([0.57236494, 0.        , 3.1780539 ], dtype=mlc.float32)
    """
    return in_double(log_gamma, input)


def log_gamma(x: Tensor) -> Tensor:
    """ln |gamma(x)| of float64."""
    edge = (x == 0) | E.isinf(x)
    low = (x < 0.5) & ~edge
    sine = E.abs(G.sin(math.pi * E.where(low, _distance(x), 0.5)))
    positive = _lgamma_above(E.where(low, 1.0 - x, E.where(edge, 1.0, x)))
    out = E.where(low, math.log(math.pi) - E.log(sine) - positive, positive)
    steep = E.where(x == 0, -E.log(E.where(x == 0, x, 1.0)), x * x)        # of the derivatives that digamma has there
    return E.where(edge, steep, out)


def _lgamma_above(x: Tensor) -> Tensor:
    """ln gamma(x) for x >= 1/2"""
    small = x < SHIFT
    base = E.where(small, x, 1.0)
    product = base
    for k in range(1, SHIFT):
        product = product * (base + k)
    y = E.where(small, x + SHIFT, x)
    series = [float(b / (2 * k * (2 * k - 1))) for k, b in enumerate(BERNOULLI[:9], 1)]
    rest = polynomial(1.0 / (y * y), series) / y
    stirling = (y - 0.5) * (E.log(y) - 1.0) + (0.5 * math.log(2 * math.pi) - 0.5) + rest
    out = stirling - E.where(small, E.log(product), 0.0)
    of_one, of_two = x < 1.5, (x >= 1.5) & (x < 2.5)
    out = E.where(of_one, log_gamma_of_one_and(E.where(of_one, x - 1.0, 0.0)), out)
    z = E.where(of_two, x - 2.0, 0.0)
    return E.where(of_two, z * polynomial(z, ABOUT_TWO), out)


def log_gamma_of_one_and(z: Tensor) -> Tensor:
    """ln gamma(1 + z) for -1/2 <= z <= 1/2, also where 1 + z would be rounded to 1."""
    return z * polynomial(z, ABOUT_TWO) - E.log1p(z)


@operation()
def digamma(input: Operand) -> Tensor:
    """The derivative of ln gamma(x), for each element; NaN at the negative integers, -inf at 0.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.digamma(mlc.tensor([1.0, 0.5]))
        tensor([-0.5772157, -1.9635101], dtype=mlc.float32)
    """
    return in_double(_digamma, input)


def _digamma(x: Tensor) -> Tensor:
    low = x < 0.5
    angle = math.pi * E.where(low & E.isfinite(x) & (x != 0), _distance(x), 0.25)
    positive = _digamma_above(E.where(low, 1.0 - x, x))
    out = E.where(low, positive - math.pi / G.tan(angle), positive)
    out = E.where(x == 0, -1 / x, out)                     # the infinity of the sign of -x
    return E.where((x < 0) & ((x == E.round(x)) | E.isinf(x)), math.nan, out)


def _digamma_above(x: Tensor) -> Tensor:
    small = x < SHIFT
    base = E.where(small, x, 1.0)
    steps = 1.0 / base
    for k in range(1, SHIFT):
        steps = steps + 1.0 / (base + k)
    y = E.where(small, x + SHIFT, x)
    inverse = E.square(1.0 / y)                            # whose derivative at inf is 0
    series = [float(b / (2 * k)) for k, b in enumerate(BERNOULLI[:9], 1)]
    return E.log(y) - 0.5 / y - polynomial(inverse, series) * inverse - E.where(small, steps, 0.0)


@operation()
def polygamma(n: int, input: Operand) -> Tensor:
    """The derivative of order n + 1 of ln gamma(x), for each element: `mlc.digamma` for n = 0.

    For n > 0 it is (-1) ** (n + 1) * n! * zeta(n + 1, x), infinite at 0 and the negative integers.

    Args:
        n: Order of the derivative of `mlc.digamma`, from 0 to 100.
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `n` is no integer (MLC0355), or not within 0 and 100 (MLC0360).

    Example:
        >>> mlc.polygamma(1, mlc.tensor([1.0, 2.0]))
        tensor([1.6449341 , 0.64493406], dtype=mlc.float32)
    """
    order = plain_int(n, "n")
    if not 0 <= order <= MOST:
        raise UserError(f"n = {order}", code="MLC0360", hint=f"it may be 0 to {MOST}")
    if order == 0:
        return digamma(input)
    factor = float((-1) ** (order + 1) * math.factorial(order))
    return in_double(lambda x: factor * _zeta(full(order + 1.0, tracer(x), x.shape), x,
                                              lambda x, s, less: _inverse_power(x, order + 1 - less)), input)


def _inverse_power(x: Tensor, n: int) -> Tensor:
    """x ** -n, by squaring."""
    base, out = 1.0 / x, None
    while n:
        if n & 1:
            out = base if out is None else out * base
        base, n = base * base if n > 1 else base, n >> 1
    assert out is not None
    return out


@operation(name="special.zeta")
def zeta(input: Operand, other: Operand) -> Tensor:
    """Hurwitz's zeta function, sum_k (k + other) ** -input over k >= 0, elementwise.

    It is infinite where `input` is 1, or `other` is 0 or a negative integer; NaN where `input` is below 1, or `other`
    is negative and `input` no integer.

    Args:
        input: Tensor or number, the exponent; integers become float32.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.zeta(mlc.tensor([2.0, 4.0]), 1.0)
        tensor([1.6449341, 1.0823232], dtype=mlc.float32)
    """
    def of(s: Tensor, q: Tensor) -> Tensor:
        s, q = broadcast_tensors(s, q)
        s = E.where(s == math.inf, 1e300, s)               # for which powers are those of the limit
        return _zeta(s, q, lambda x, s, less: E.exp((less - s) * E.log(x)))
    return in_double(of, input, other)


def _zeta(s: Tensor, q: Tensor, power: Callable[[Tensor, Tensor, int], Tensor]) -> Tensor:
    """zeta(s, q), where power(x, s, less) = x ** (less - s)"""
    whole = q == E.round(q)
    low = (q < 0) & ~whole
    # The sum over all integers has period 1 in q, so that it follows from two arguments that are not negative.
    r = E.where(low, q - E.floor(q), 0.5)
    ours = E.where(low, 1.0 - q, E.where(q <= 0, 1.0, q))
    ours, from_r, from_rest = unbind(_zeta_above(_last(s), stack([ours, r, 1.0 - r], -1), power), -1)
    parity = 1.0 - 2.0 * E.remainder(s, 2.0)
    out = E.where(low, from_r + parity * (from_rest - ours), ours)
    out = E.where((q <= 0) & whole, math.inf, out)
    out = E.where(s == 1.0, math.inf, out)
    return E.where((s < 1.0) | (low & (s != E.round(s))), math.nan, out)


def _last(x: Tensor) -> Tensor:
    """x with a last dimension of size 1"""
    return reshape(tracer(x), [*x.shape, 1])


def _zeta_above(s: Tensor, q: Tensor, power: Callable[[Tensor, Tensor, int], Tensor]) -> Tensor:
    """zeta(s, q) for q > 0, by the formula of Euler and Maclaurin."""
    s = E.where(s <= 1.0, 2.0, s)
    total = R.sum(power(_last(q) + cast(emit(T.Iota, (SHIFT,), 0, i64), f64), _last(s), 0), -1)
    y = q + float(SHIFT)
    last = power(y, s, 0)
    total = total + power(y, s, 1) / (s - 1.0) + 0.5 * last
    inverse, factor, rising = 1.0 / (y * y), last / y, s
    for k, b in enumerate(BERNOULLI, 1):
        total = total + float(b / math.factorial(2 * k)) * E.where(factor == 0, 0.0, rising) * factor     # not inf * 0
        rising = rising * (s + (2.0 * k - 1)) * (s + 2.0 * k)
        factor = factor * inverse
    return total


@operation()
def mvlgamma(input: Operand, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function: p (p - 1) / 4 ln pi + sum_j lgamma(x - j / 2) for j < p.

    Args:
        input: Tensor or number, of elements above (p - 1) / 2; integers become float32.
        p: The dimension, at least 1.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `p` is no integer (MLC0355), or not within 1 and 100 (MLC0360).

    Example:
        >>> mlc.mvlgamma(mlc.tensor([2.0, 3.0]), 2)
        tensor([0.45158273, 1.5501949 ], dtype=mlc.float32)
    """
    order = plain_int(p, "p")
    if not 1 <= order <= MOST:
        raise UserError(f"p = {order}", code="MLC0360", hint=f"it may be 1 to {MOST}")

    def of(x: Tensor) -> Tensor:
        total = log_gamma(x) + order * (order - 1) / 4 * math.log(math.pi)
        for j in range(1, order):
            total = total + log_gamma(x - j / 2)
        return total
    return in_double(of, input)
