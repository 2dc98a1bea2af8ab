"""Orthogonal polynomials of any degree, by their recurrences (DLMF 18.9.1 and table 18.9.1).

The degrees are elements of a tensor, so that the recurrence runs as often as the greatest of them says.
"""

from __future__ import annotations

from collections.abc import Callable

from mlc.frontend.control import while_loop
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.shape import cat, flatten
from mlc.frontend.functions.special.double import in_double
from mlc.frontend.operands import broadcast_shapes, broadcast_to, cast, full, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.types import i64

Step = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""p of degree k + 1 from x, k, p of degree k and p of degree k - 1."""


def _polynomial(input: Operand, n: Operand, linear: tuple[float, float], step: Step) -> Tensor:
    """The polynomial of degree n with p0 = 1 and p1 = linear[0] + linear[1] * x; 0 for negative degrees."""
    def of(x: Tensor, n: Tensor) -> Tensor:
        shape = broadcast_shapes(tracer(x).shape, tracer(n).shape)
        x = broadcast_to(tracer(x), shape)
        degree = cast(tracer(E.where(E.isfinite(n), n, -1.0)), i64)
        degrees = cat([tracer(flatten(degree)), full(0, degree, [1])])
        last, one = R.amax(degrees), full(1.0, tracer(x), shape)

        def advanced(state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            k, before, p, found = state
            wanted = cast(tracer(k), tracer(x).type.dtype)
            return k + 1, p, step(x, wanted, p, before), E.where(degree == k, p, found)

        first = linear[0] + linear[1] * x
        _, _, p, found = while_loop(lambda state: state[0] < last, advanced,
                                    (full(1, degree), one, first, E.where(degree == 0, one, 0.0)))
        return E.where((degree == last) & (degree > 0), p, found)
    return in_double(of, input, n)


def _chebyshev(input: Operand, n: Operand, constant: float, slope: float) -> Tensor:
    return _polynomial(input, n, (constant, slope), lambda x, k, p, before: 2.0 * x * p - before)


def _shifted(input: Operand) -> Tensor:
    return tracer(input) * 2.0 - 1.0


@operation(name="special.chebyshev_polynomial_t")
def chebyshev_polynomial_t(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the first kind and degree n, elementwise: cos(n acos(x)) on [-1, 1].

    Args:
        input: Tensor or number, the argument x; integers become float32.
        n: Tensor or number, the degree, of which the fraction is cut off; 0 is the result for negative degrees.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.chebyshev_polynomial_t(mlc.tensor([0.5, 2.0]), mlc.tensor([2, 3]))
        tensor([-0.5, 26. ], dtype=mlc.float32)
    """
    return _chebyshev(input, n, 0.0, 1.0)


@operation(name="special.chebyshev_polynomial_u")
def chebyshev_polynomial_u(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the second kind and degree n, elementwise: sin((n + 1) t) / sin(t) of x = cos(t).

    Args:
        input: Tensor or number, the argument x; integers become float32.
        n: Tensor or number, the degree, of which the fraction is cut off; 0 is the result for negative degrees.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.chebyshev_polynomial_u(mlc.tensor([0.5, 2.0]), mlc.tensor([2, 3]))
        tensor([ 0., 56.], dtype=mlc.float32)
    """
    return _chebyshev(input, n, 0.0, 2.0)


@operation(name="special.chebyshev_polynomial_v")
def chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the third kind and degree n, elementwise: cos((n + 1/2) t) / cos(t / 2) of x = cos(t).

    Args:
        input: Tensor or number, the argument x; integers become float32.
        n: Tensor or number, the degree, of which the fraction is cut off; 0 is the result for negative degrees.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.chebyshev_polynomial_v(mlc.tensor([0.5, 2.0]), mlc.tensor([2, 3]))
        tensor([-1., 41.], dtype=mlc.float32)
    """
    return _chebyshev(input, n, -1.0, 2.0)


@operation(name="special.chebyshev_polynomial_w")
def chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the fourth kind and degree n, elementwise: sin((n + 1/2) t) / sin(t / 2) of x = cos(t).

    Args:
        input: Tensor or number, the argument x; integers become float32.
        n: Tensor or number, the degree, of which the fraction is cut off; 0 is the result for negative degrees.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.chebyshev_polynomial_w(mlc.tensor([0.5, 2.0]), mlc.tensor([2, 3]))
        tensor([ 1., 71.], dtype=mlc.float32)
    """
    return _chebyshev(input, n, 1.0, 2.0)


@operation(name="special.shifted_chebyshev_polynomial_t")
def shifted_chebyshev_polynomial_t(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the first kind and degree n, shifted to [0, 1], elementwise: that of 2 x - 1.

    Args:
        input: Tensor or number, the argument x; integers become float32.
        n: Tensor or number, the degree, of which the fraction is cut off; 0 is the result for negative degrees.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.shifted_chebyshev_polynomial_t(mlc.tensor([0.5, 2.0]), mlc.tensor([2, 3]))
        tensor([-1., 99.], dtype=mlc.float32)
    """
    return _chebyshev(_shifted(input), n, 0.0, 1.0)


@operation(name="special.shifted_chebyshev_polynomial_u")
def shifted_chebyshev_polynomial_u(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the second kind and degree n, shifted to [0, 1], elementwise: that of 2 x - 1.

    Args:
        input: Tensor or number, the argument x; integers become float32.
        n: Tensor or number, the degree, of which the fraction is cut off; 0 is the result for negative degrees.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.shifted_chebyshev_polynomial_u(mlc.tensor([0.5, 2.0]), mlc.tensor([2, 3]))
        tensor([ -1., 204.], dtype=mlc.float32)
    """
    return _chebyshev(_shifted(input), n, 0.0, 2.0)


@operation(name="special.shifted_chebyshev_polynomial_v")
def shifted_chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the third kind and degree n, shifted to [0, 1], elementwise: that of 2 x - 1.

    Args:
        input: Tensor or number, the argument x; integers become float32.
        n: Tensor or number, the degree, of which the fraction is cut off; 0 is the result for negative degrees.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.shifted_chebyshev_polynomial_v(mlc.tensor([0.5, 2.0]), mlc.tensor([2, 3]))
        tensor([ -1., 169.], dtype=mlc.float32)
    """
    return _chebyshev(_shifted(input), n, -1.0, 2.0)


@operation(name="special.shifted_chebyshev_polynomial_w")
def shifted_chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the fourth kind and degree n, shifted to [0, 1], elementwise: that of 2 x - 1.

    Args:
        input: Tensor or number, the argument x; integers become float32.
        n: Tensor or number, the degree, of which the fraction is cut off; 0 is the result for negative degrees.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.shifted_chebyshev_polynomial_w(mlc.tensor([0.5, 2.0]), mlc.tensor([2, 3]))
        tensor([ -1., 239.], dtype=mlc.float32)
    """
    return _chebyshev(_shifted(input), n, 1.0, 2.0)


@operation(name="special.hermite_polynomial_h")
def hermite_polynomial_h(input: Operand, n: Operand) -> Tensor:
    """The physicists' Hermite polynomial of degree n, elementwise: orthogonal with the weight exp(-x ** 2).

    Args:
        input: Tensor or number, the argument x; integers become float32.
        n: Tensor or number, the degree, of which the fraction is cut off; 0 is the result for negative degrees.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.hermite_polynomial_h(mlc.tensor([0.5, 2.0]), mlc.tensor([2, 3]))
        tensor([-1., 40.], dtype=mlc.float32)
    """
    return _polynomial(input, n, (0.0, 2.0), lambda x, k, p, before: 2.0 * (x * p - k * before))


@operation(name="special.hermite_polynomial_he")
def hermite_polynomial_he(input: Operand, n: Operand) -> Tensor:
    """The probabilists' Hermite polynomial of degree n, elementwise: orthogonal with the weight exp(-x ** 2 / 2).

    Args:
        input: Tensor or number, the argument x; integers become float32.
        n: Tensor or number, the degree, of which the fraction is cut off; 0 is the result for negative degrees.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.hermite_polynomial_he(mlc.tensor([0.5, 2.0]), mlc.tensor([2, 3]))
        tensor([-0.75,  2.  ], dtype=mlc.float32)
    """
    return _polynomial(input, n, (0.0, 1.0), lambda x, k, p, before: x * p - k * before)


@operation(name="special.laguerre_polynomial_l")
def laguerre_polynomial_l(input: Operand, n: Operand) -> Tensor:
    """Laguerre's polynomial of degree n, elementwise: orthogonal on [0, inf) with the weight exp(-x).

    Args:
        input: Tensor or number, the argument x; integers become float32.
        n: Tensor or number, the degree, of which the fraction is cut off; 0 is the result for negative degrees.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.laguerre_polynomial_l(mlc.tensor([0.5, 2.0]), mlc.tensor([2, 3]))
        tensor([ 0.125     , -0.33333334], dtype=mlc.float32)
    """
    return _polynomial(
        input, n, (1.0, -1.0), lambda x, k, p, before: ((2.0 * k + 1.0 - x) * p - k * before) / (k + 1.0))


@operation(name="special.legendre_polynomial_p")
def legendre_polynomial_p(input: Operand, n: Operand) -> Tensor:
    """Legendre's polynomial of degree n, elementwise: orthogonal on [-1, 1].

    Args:
        input: Tensor or number, the argument x; integers become float32.
        n: Tensor or number, the degree, of which the fraction is cut off; 0 is the result for negative degrees.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.special.legendre_polynomial_p(mlc.tensor([0.5, 2.0]), mlc.tensor([2, 3]))
        tensor([-0.125, 17.   ], dtype=mlc.float32)
    """
    return _polynomial(
        input, n, (0.0, 1.0), lambda x, k, p, before: ((2.0 * k + 1.0) * x * p - k * before) / (k + 1.0))
