"""tensor, trigonometry: tangent, inverse trigonometric functions, hyperbolic functions and their inverses."""

from __future__ import annotations

import numpy as np

from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import full
from mlc.dialects.tensor.binary import BinaryMath, Hypot, one_at_zero
from mlc.dialects.tensor.elementwise import Rounding, Transcendental
from mlc.dialects.tensor.parts import elementwise
from mlc.dialects.tensor.traits import Cost
from mlc.dialects.tensor.transcendental import Rsqrt
from mlc.ir.core import Value


class Tan(Transcendental, name="tensor.tan"):
    """result[i] = tan(x[i])

        %r = tensor.tan %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.tan)
    f = staticmethod(np.tan)

    def partial(self, ct: Value) -> Value:
        return ct * (self.result * self.result + 1)


class Asin(Transcendental, name="tensor.asin"):
    """result[i] = the y in [-pi/2, pi/2] with sin(y) = x[i]; NaN where |x[i]| > 1

        %r = tensor.asin %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.asin)
    f = staticmethod(np.arcsin)

    def partial(self, ct: Value) -> Value:
        return ct * Rsqrt((1 - self.x) * (1 + self.x)).result


class Acos(Transcendental, name="tensor.acos"):
    """result[i] = the y in [0, pi] with cos(y) = x[i]; NaN where |x[i]| > 1

        %r = tensor.acos %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.acos)
    f = staticmethod(np.arccos)

    def partial(self, ct: Value) -> Value:
        return -(ct * Rsqrt((1 - self.x) * (1 + self.x)).result)


class Atan2(BinaryMath, name="tensor.atan2"):
    """result[i] = the angle in [-pi, pi] of the point (rhs[i], lhs[i]); signed zeros are distinguished

        %r = tensor.atan2 %y, %x : tensor<3xf32>
    """

    accepts = ("float",)
    cost = Cost.EXPENSIVE
    rounding = Rounding.WIDE
    f = staticmethod(np.arctan2)

    def partials(self, ct: Value) -> tuple[Value, Value]:
        distance = one_at_zero(Hypot(self.lhs, self.rhs).result)
        return ct * (self.rhs / distance / distance), -(ct * (self.lhs / distance / distance))


class Sinh(Transcendental, name="tensor.sinh"):
    """result[i] = (e^x[i] - e^-x[i]) / 2

        %r = tensor.sinh %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.sinh)
    f = staticmethod(np.sinh)

    def partial(self, ct: Value) -> Value:
        return ct * Cosh(self.x).result


class Cosh(Transcendental, name="tensor.cosh"):
    """result[i] = (e^x[i] + e^-x[i]) / 2

        %r = tensor.cosh %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.cosh)
    f = staticmethod(np.cosh)

    def partial(self, ct: Value) -> Value:
        return ct * Sinh(self.x).result


class Asinh(Transcendental, name="tensor.asinh"):
    """result[i] = the y with sinh(y) = x[i]

        %r = tensor.asinh %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.asinh)
    f = staticmethod(np.arcsinh)

    def partial(self, ct: Value) -> Value:
        return ct / Hypot(self.x, full(1, self.x)).result


class Acosh(Transcendental, name="tensor.acosh"):
    """result[i] = the y >= 0 with cosh(y) = x[i]; NaN where x[i] < 1

        %r = tensor.acosh %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.acosh)
    f = staticmethod(np.arccosh)

    def partial(self, ct: Value) -> Value:
        return ct * (Rsqrt(self.x - 1).result * Rsqrt(self.x + 1).result)


class Atanh(Transcendental, name="tensor.atanh"):
    """result[i] = the y with tanh(y) = x[i]; NaN where |x[i]| > 1

        %r = tensor.atanh %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.atanh)
    f = staticmethod(np.arctanh)

    def partial(self, ct: Value) -> Value:
        return ct / ((1 - self.x) * (1 + self.x))
