"""tensor, activations: elementwise functions of one operand; all but Silu are composites."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import Array, cast, compare, full, leading, select
from mlc.dialects.tensor.composite import Composite, exp, softplus, widened
from mlc.dialects.tensor.elementwise import Transcendental
from mlc.dialects.tensor.parts import elementwise
from mlc.dialects.tensor.transcendental import Erfc
from mlc.ir.core import Value
from mlc.ir.types import TensorType


class _Activation(Composite):
    """An elementwise function; `emit` and `slope`, its derivative, compute in the accumulator type."""

    of_elements = True
    x: Value
    vmap = leading

    def infer(self) -> TensorType:
        return self.floats()[0]

    def emit(self, x: Value) -> Value:
        raise NotImplementedError

    def decompose(self) -> Value:
        return cast(self.emit(widened(self.x)), self.x.type.dtype)


class SmoothActivation(_Activation):
    def slope(self, x: Value) -> Value:
        raise NotImplementedError

    def vjp(self, ct: Value) -> list[Value | None]:
        return [cast(widened(ct) * self.slope(widened(self.x)), self.x.type.dtype)]


class Relu(_Activation, name="tensor.relu"):
    """result[i] = max(x[i], 0), with derivative 0 at 0

        %r = tensor.relu %x : tensor<3xf32>
    """

    def define(self, x: Array) -> Any:
        return np.maximum(x, 0)

    def decompose(self) -> Value:
        zero = full(0, self.x)
        return select(compare("le", self.x, zero), zero, self.x)       # propagates NaN

    def vjp(self, ct: Value) -> list[Value | None]:
        zero = full(0, ct)
        return [select(compare("le", self.x, zero), zero, ct)]


class Elu(_Activation, name="tensor.elu"):
    """result[i] = x[i] > 0 ? x[i] : alpha * (e^x[i] - 1)

        %r = tensor.elu %x : tensor<3xf32>
    """

    x: Value
    alpha: float = 1.0

    def define(self, x: Array) -> Any:
        return np.where(x > 0, x, self.alpha * np.expm1(x))

    def emit(self, x: Value) -> Value:
        positive, zero = compare("gt", x, full(0, x)), full(0, x)
        low = tensor.Expm1(select(positive, zero, x)).result           # no overflow in elements that are not selected
        return select(positive, x, low * self.alpha)


class Gelu(SmoothActivation, name="tensor.gelu"):
    """result[i] = x[i] * (1 + erf(x[i] / sqrt(2))) / 2; or by tanh(sqrt(2/pi) * (x + 0.044715 x^3))

        %r = tensor.gelu %x {approximate = "tanh"} : tensor<3xf32>
    """

    x: Value
    approximate: str = "none"

    def infer(self) -> TensorType:
        if self.approximate not in ("none", "tanh"):
            self.refuse(f"approximate is {self.approximate!r}, neither 'none' nor 'tanh'", "MLC0116")
        return super().infer()

    def define(self, x: Array) -> Any:
        if self.approximate == "tanh":
            return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return 0.5 * x * Erfc.f(-x / math.sqrt(2))

    def _twice_cdf(self, x: Value) -> Value:
        """1 + erf(x / sqrt(2)) = erfc(-x / sqrt(2)), or its approximation by tanh."""
        if self.approximate == "tanh":
            inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
            return tensor.Tanh(inner).result + 1
        short = self.x.type.dtype.width == 16                  # 1 + erf would cancel to 0 below -6
        return tensor.Erfc(x * -math.sqrt(0.5), short=short).result

    def emit(self, x: Value) -> Value:
        return x * 0.5 * self._twice_cdf(x)

    def slope(self, x: Value) -> Value:
        """cdf(x) + x * cdf'(x)"""
        twice = self._twice_cdf(x)
        if self.approximate == "tanh":
            inner = (x * x * (3 * 0.044715) + 1) * (0.5 * math.sqrt(2 / math.pi))
            density = inner * (twice * (2 - twice))                    # 1 - tanh^2 = (1 + tanh) (1 - tanh)
        else:
            density = exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
        return twice * 0.5 + x * density


class Silu(Transcendental, name="tensor.silu"):
    """result[i] = x[i] / (1 + e^-x[i])

        %r = tensor.silu %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.silu)
    f = staticmethod(lambda x: np.maximum(x, -800) * tensor.Sigmoid.f(x))

    @classmethod
    def true_value(cls, mp: Any, x: Any) -> Any:
        return x / (1 + mp.exp(-x))

    def partial(self, ct: Value) -> Value:
        x = widened(self.x)
        s = tensor.Sigmoid(x).result
        return cast(widened(ct) * (s * (x * (1 - s) + 1)), self.x.type.dtype)


class Softplus(SmoothActivation, name="tensor.softplus"):
    """result[i] = log(1 + e^x[i])

        %r = tensor.softplus %x : tensor<3xf32>
    """

    def define(self, x: Array) -> Any:
        return np.logaddexp(0, x)

    def emit(self, x: Value) -> Value:
        return softplus(x)

    def slope(self, x: Value) -> Value:
        return tensor.Sigmoid(x).result


class LogSigmoid(SmoothActivation, name="tensor.log_sigmoid"):
    """result[i] = -log(1 + e^-x[i])

        %r = tensor.log_sigmoid %x : tensor<3xf32>
    """

    def define(self, x: Array) -> Any:
        return -np.logaddexp(0, -x)

    def emit(self, x: Value) -> Value:
        """min(x, 0) - log(1 + e^-|x|)"""
        least = tensor.Minimum(x, full(0, x)).result
        return least - tensor.Log1p(exp(-tensor.Abs(x).result)).result

    def slope(self, x: Value) -> Value:
        return tensor.Sigmoid(-x).result
