"""tensor, special functions: elementwise composites without an expansion in dialects/expansions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.activation import SmoothActivation
from mlc.dialects.tensor.base import Array, compare, full, select
from mlc.dialects.tensor.composite import exp, widened
from mlc.ir.core import Value
from mlc.ir.types import f64

Piece = tuple[float, float, tuple[float, ...]]

SINGLE: tuple[Piece, ...] = (
    (5.0, 2.5, (1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06,
                -3.5233877e-06, 3.43273939e-07, 2.81022636e-08)),
    (math.inf, 3.0, (2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844,
                     0.00134934322, 0.000100950558, -0.000200214257)))
DOUBLE: tuple[Piece, ...] = (
    (6.25, 3.125, (
        1.6536545626831027356, 0.24015818242558961693, -0.0060336708714301490533, -0.00074070253416626697512,
        0.0001867342080340571352, -1.3882523362786468719e-05, -1.3654692000834678645e-06, 4.2347877827932403518e-07,
        -2.9070369957882005086e-08, -4.1126339803469836976e-09, 1.051212273321532285e-09, -5.4154120542946279317e-11,
        -1.2975133253453532498e-11, 2.6335093153082322977e-12, -8.1519341976054721522e-14, -4.0545662729752068639e-14,
        6.6376381343583238325e-15, 2.0972767875968561637e-17, -1.333171662854620906e-16, 1.115787767802518096e-17,
        1.2858480715256400167e-18, -1.685059138182016589e-19, -3.6444120640178196996e-21)),
    (16.0, 3.25, (
        3.0838856104922207635, 1.0052589676941592334, 0.005370914553590063617, -0.0037512085075692412107,
        0.0024914420961078508066, -0.0016882755560235047313, 0.00095328937973738049703, -0.0003550375203628474796,
        2.4031110387097893999e-05, 6.8284851459573175448e-05, -4.7318229009055733981e-05, 1.2475304481671778723e-05,
        2.9234449089955446044e-06, -4.013867526981545969e-06, 1.5027403968909827627e-06, 1.8239629214389227755e-08,
        -2.7517406297064545428e-07, 9.0756561938885390979e-08, 2.2137376921775787049e-09)),
    (math.inf, 5.0, (
        4.8499064014085844221, 1.0103004648645343977, -0.00013871931833623122026, -0.00021503011930044477347,
        7.5995277030017761139e-05, -1.9681778105531670567e-05, 4.5260625972231537039e-06, -9.9298272942317002539e-07,
        2.2900482228026654717e-07, -6.7711997758452339498e-08, 2.9147953450901080826e-08, -1.4960026627149240478e-08,
        7.6157012080783393804e-09, -3.7894654401267369937e-09, 1.5076572693500548083e-09, -2.5556418169965252055e-10,
        -2.7109920616438573243e-11)))
"""erfinv(x) / x by pieces of w = -log(1 - x^2): upper limit of w; centre and coefficients of a polynomial, lowest
first. The first is a polynomial in w, the others in sqrt(w). Giles, "Approximating the erfinv function", 2012.
"""


class ErfInv(SmoothActivation, name="tensor.erfinv"):
    """result[i] = the y with erf(y) = x[i]; NaN outside [-1, 1]

        %r = tensor.erfinv %x : tensor<3xf32>
    """

    def define(self, x: Array) -> Any:
        return _erfinv(x)

    def emit(self, x: Value) -> Value:
        one = full(1, x)
        w = -(tensor.Log((1 - x) * (1 + x)).result)
        end = compare("eq", tensor.Abs(x).result, one)
        w = select(end, one, w)
        first, *tails = DOUBLE if x.type.dtype == f64 else SINGLE
        root = tensor.Sqrt(tensor.Abs(w).result).result
        ratio = _polynomial(root - tails[-1][1], tails[-1][2])
        for limit, centre, coefficients in reversed(tails[:-1]):
            ratio = select(compare("lt", w, full(limit, w)), _polynomial(root - centre, coefficients), ratio)
        ratio = select(compare("lt", w, full(first[0], w)), _polynomial(w - first[1], first[2]), ratio)
        infinity = select(compare("lt", x, full(0, x)), full(-math.inf, x), full(math.inf, x))
        return select(end, infinity, ratio * x)

    def slope(self, x: Value) -> Value:
        y = widened(self.result)
        return exp(y * y) * (math.sqrt(math.pi) / 2)


def _polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    out = full(coefficients[-1], x)
    for c in reversed(coefficients[:-1]):
        out = out * x + c
    return out


def _inverse(x: float) -> float:
    """The quantile function of the normal distribution (Wichura's AS 241), refined near 0 by Newton's method."""
    from statistics import NormalDist  # for constants only

    if not abs(x) < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    y = math.copysign(NormalDist().inv_cdf((1 - abs(x)) / 2) / math.sqrt(2), x)
    if abs(x) < 0.5:
        for _ in range(3):
            y -= (math.erf(y) - x) * math.exp(y * y) * math.sqrt(math.pi) / 2
    return y


_erfinv = np.vectorize(_inverse, otypes=[np.float64])
