"""Elementary functions: exponentials, logarithms, roots, trigonometric functions and those derived from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlc.dialects.tensor import parts
from mlc.dialects.tensor.elementwise import Transcendental
from mlc.dialects.tensor.parts import elementwise
from mlc.ir.core import Value
from mlc.ir.types import TensorType, f32


class Exp(Transcendental, name="tensor.exp"):
    """result[i] = e^x[i]

        %r = tensor.exp %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.exp)
    f = staticmethod(np.exp)

    def partial(self, ct: Value) -> Value:
        return ct * self.result


class Exp2(Transcendental, name="tensor.exp2"):
    """result[i] = 2^x[i]

        %r = tensor.exp2 %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.exp2)
    f = staticmethod(np.exp2)

    @classmethod
    def true_value(cls, mp: Any, x: Any) -> Any:
        return mp.power(2, x)

    def partial(self, ct: Value) -> Value:
        return ct * (self.result * math.log(2))


class Expm1(Transcendental, name="tensor.expm1"):
    """result[i] = e^x[i] - 1

        %r = tensor.expm1 %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.expm1)
    f = staticmethod(np.expm1)

    def partial(self, ct: Value) -> Value:
        return ct * Exp(self.x).result                     # result + 1 would lose small values


class Log(Transcendental, name="tensor.log"):
    """result[i] = log_e(x[i])

        %r = tensor.log %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.log)
    f = staticmethod(np.log)

    def partial(self, ct: Value) -> Value:
        return ct / self.x


class Log2(Transcendental, name="tensor.log2"):
    """result[i] = log_2(x[i])

        %r = tensor.log2 %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.log2)
    f = staticmethod(np.log2)

    @classmethod
    def true_value(cls, mp: Any, x: Any) -> Any:
        return mp.log(x, 2)

    def partial(self, ct: Value) -> Value:
        return ct / (self.x * math.log(2))


class Log10(Transcendental, name="tensor.log10"):
    """result[i] = log_10(x[i])

        %r = tensor.log10 %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.log10)
    f = staticmethod(np.log10)

    def partial(self, ct: Value) -> Value:
        return ct / (self.x * math.log(10))


class Log1p(Transcendental, name="tensor.log1p"):
    """result[i] = log_e(1 + x[i])

        %r = tensor.log1p %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.log1p)
    f = staticmethod(np.log1p)

    def partial(self, ct: Value) -> Value:
        return ct / (self.x + 1)


class Rsqrt(Transcendental, name="tensor.rsqrt"):
    """result[i] = 1 / sqrt(x[i])

        %r = tensor.rsqrt %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.rsqrt)
    f = staticmethod(lambda x: 1 / np.sqrt(x))

    @classmethod
    def true_value(cls, mp: Any, x: Any) -> Any:
        return 1 / mp.sqrt(x)

    def partial(self, ct: Value) -> Value:
        return ct * -0.5 * (self.result * self.result * self.result)


class Sin(Transcendental, name="tensor.sin"):
    """result[i] = sin(x[i])

        %r = tensor.sin %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.sin)
    f = staticmethod(np.sin)

    def partial(self, ct: Value) -> Value:
        return ct * Cos(self.x).result


class Cos(Transcendental, name="tensor.cos"):
    """result[i] = cos(x[i])

        %r = tensor.cos %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.cos)
    f = staticmethod(np.cos)

    def partial(self, ct: Value) -> Value:
        return -(ct * Sin(self.x).result)


class Atan(Transcendental, name="tensor.atan"):
    """result[i] = atan(x[i])

        %r = tensor.atan %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.atan)
    f = staticmethod(np.arctan)

    def partial(self, ct: Value) -> Value:
        return ct / (1 + self.x * self.x)


class Tanh(Transcendental, name="tensor.tanh"):
    """result[i] = tanh(x[i])

        %r = tensor.tanh %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.tanh)
    f = staticmethod(np.tanh)

    def partial(self, ct: Value) -> Value:
        return ct * (1 - self.result * self.result)


def _sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x), of real numbers from e^-|x| so that nothing overflows."""
    if np.iscomplexobj(x):
        return 1 / (1 + np.exp(-x))
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


class Sigmoid(Transcendental, name="tensor.sigmoid"):
    """result[i] = 1 / (1 + e^-x[i])

        %r = tensor.sigmoid %x : tensor<3xf32>
    """

    on_parts = elementwise(parts.sigmoid)
    f = staticmethod(_sigmoid)

    @classmethod
    def true_value(cls, mp: Any, x: Any) -> Any:
        return 1 / (1 + mp.exp(-x))

    def partial(self, ct: Value) -> Value:
        return ct * (self.result * (1 - self.result))


class Erf(Transcendental, name="tensor.erf"):
    """result[i] = 2/sqrt(pi) * integral from 0 to x[i] of e^(-t^2) dt

        %r = tensor.erf %x : tensor<3xf32>
    """

    f = staticmethod(np.vectorize(math.erf, otypes=[np.float64]))

    def partial(self, ct: Value) -> Value:
        return ct * (Exp(-(self.x * self.x)).result * (2 / math.sqrt(math.pi)))


class Erfc(Transcendental, name="tensor.erfc"):
    """result[i] = 1 - erf(x[i]) = 2/sqrt(pi) * integral from x[i] to infinity of e^(-t^2) dt

        %r = tensor.erfc %x : tensor<3xf32>

    With `short`, the relative error may be 2^-15, and what is less than the least normal number may be 0: for values
    of f32 that are rounded to 16 bits in the end.
    """

    x: Value
    short: bool = False
    f = staticmethod(np.vectorize(math.erfc, otypes=[np.float64]))

    def partial(self, ct: Value) -> Value:
        return ct * (Exp(-(self.x * self.x)).result * (-2 / math.sqrt(math.pi)))

    def infer(self) -> TensorType:
        if self.short and self.x.type.dtype != f32:
            self.refuse(f"short is for f32, not {self.x.type.dtype}", "MLC0116")
        return super().infer()

    def expansion(self) -> Callable[..., Any]:
        from mlc.dialects import expansions
        return expansions.short_erfc if self.short else self.expand
