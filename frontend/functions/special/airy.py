"""Airy's function of the first kind.

Near 0 it is its power series (DLMF 9.4.1). Elsewhere it is the trapezoidal rule, which converges geometrically, for the
integral of exp(-sqrt(x) t ** 2) cos(t ** 3 / 3) (DLMF 9.5.4); on the negative axis that of complex arguments, by the
connection formula (DLMF 9.2.10).
"""

from __future__ import annotations

import math

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import trigonometry as G
from mlc.frontend.functions.shape import unsqueeze
from mlc.frontend.functions.special.double import in_double, polynomial
from mlc.frontend.functions.special.waves import weighted
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit

LEAST, GREATEST = -4.0, 2.0
"""The power series loses no more than three digits between these."""
AT_ZERO = 3 ** (-2 / 3) / math.gamma(2 / 3), -(3 ** (-1 / 3)) / math.gamma(1 / 3)
"""Ai(0) and Ai'(0)"""


def _series() -> tuple[list[float], list[float]]:
    """The coefficients of both solutions, in powers of x ** 3."""
    even, odd = [AT_ZERO[0]], [AT_ZERO[1]]
    for k in range(1, 25):
        even.append(even[-1] / ((3 * k - 1) * 3 * k))
        odd.append(odd[-1] / (3 * k * (3 * k + 1)))
    return even, odd


def _above(x: Tensor) -> Tensor:
    """Ai(x) for x >= 2."""
    y = 0.25 * np.arange(27)
    weights = 0.25 / math.pi * np.exp(-y * y)
    weights[0] /= 2
    root = E.sqrt(x)
    phase = emit(T.Constant, y**3 / 3) / unsqueeze(root * E.sqrt(root), -1)
    return weighted(G.cos(phase), weights) * E.exp(-2 / 3 * x * root) / E.sqrt(root)


def _below(x: Tensor) -> Tensor:
    """Ai(-x) for x >= 4."""
    y = 0.2 * np.arange(36)
    weights = 0.4 / math.pi * np.exp(-math.cos(math.pi / 6) * y * y)
    weights[0] /= 2
    root = E.sqrt(x)
    waves = G.cos(emit(T.Constant, y**3 / 3) / unsqueeze(root * E.sqrt(root), -1))
    even, odd = (weighted(waves, weights * f(0.5 * y * y)) for f in (np.cos, np.sin))
    angle = 2 / 3 * x * root - math.pi / 3
    return (even * G.cos(angle) - odd * G.sin(angle)) / E.sqrt(root)


@operation(name="special.airy_ai")
def airy_ai(input: Operand) -> Tensor:
    """Airy's function Ai, for each element: the solution of y'' = x y that vanishes at infinity.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.special.airy_ai(mlc.tensor([0.0, 1.0, -2.0]))
        tensor([0.35502806, 0.13529241, 0.22740743], dtype=mlc.float32)
    """
    def of(x: Tensor) -> Tensor:
        inside = (x > LEAST) & (x < GREATEST)
        near = E.where(inside, x, 0.0)
        cube, (even, odd) = near * near * near, _series()
        high = _above(E.where((x >= GREATEST) & E.isfinite(x), x, GREATEST))
        low = _below(E.where((x <= LEAST) & E.isfinite(x), -x, -LEAST))
        out = E.where(inside, polynomial(cube, even) + near * polynomial(cube, odd), E.where(x > 0, high, low))
        return E.where(E.isfinite(x), out, E.where(E.isinf(x), 0.0, x))
    return in_double(of, input)
