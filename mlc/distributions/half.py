"""Distributions of the magnitude of a symmetric variable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

import mlc
from mlc.distributions import constraints
from mlc.distributions.distribution import Distribution, floats
from mlc.frontend.tensor import Operand, Tensor


class HalfNormal(Distribution):
    """Distribution of the magnitude of a normal variable with mean 0.

    Args:
        scale: Width, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.HalfNormal(mlc.tensor(1.0)).mode
        tensor(0., dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"scale": constraints.positive})
    support = constraints.nonnegative
    has_rsample = True
    scale: Tensor

    def __init__(self, scale: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, scale=scale)

    @property
    def mean(self) -> Tensor:
        """scale * sqrt(2 / pi)."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        """0."""
        return mlc.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        """scale**2 * (1 - 2 / pi)."""
        return self.scale ** 2 * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return mlc.abs(self.scale * mlc.randn(*self._extended_shape(sample_shape), dtype=self.scale.dtype))

    def log_prob(self, value: Operand) -> Tensor:
        x = self._value(value)
        inside = 0.5 * math.log(2 / math.pi) - mlc.log(self.scale) - x ** 2 / (2 * self.scale ** 2)
        return mlc.where(x >= 0, inside, -math.inf)  # type: ignore[no-any-return]

    def cdf(self, value: Operand) -> Tensor:
        return mlc.erf(self._value(value) / (self.scale * math.sqrt(2)))

    def icdf(self, value: Operand) -> Tensor:
        return self.scale * math.sqrt(2) * mlc.erfinv(floats(value))

    def entropy(self) -> Tensor:
        return 0.5 * math.log(math.pi / 2) + 0.5 + mlc.log(self.scale)


class HalfCauchy(Distribution):
    """Distribution of the magnitude of a Cauchy variable with location 0.

    Args:
        scale: Width, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.HalfCauchy(mlc.tensor(1.0)).mean
        tensor(inf, dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"scale": constraints.positive})
    support = constraints.nonnegative
    has_rsample = True
    scale: Tensor

    def __init__(self, scale: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, scale=scale)

    @property
    def mean(self) -> Tensor:
        """Infinity."""
        return mlc.full_like(self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        """0."""
        return mlc.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        """Infinity."""
        return mlc.full_like(self.scale, math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = mlc.rand(*self._extended_shape(sample_shape), dtype=self.scale.dtype)
        return mlc.abs(self.scale * mlc.tan(math.pi * (u - 0.5)))

    def log_prob(self, value: Operand) -> Tensor:
        x = self._value(value)
        inside = math.log(2 / math.pi) - mlc.log(self.scale) - mlc.log1p((x / self.scale) ** 2)
        return mlc.where(x >= 0, inside, -math.inf)  # type: ignore[no-any-return]

    def cdf(self, value: Operand) -> Tensor:
        return 2 / math.pi * mlc.atan(self._value(value) / self.scale)

    def icdf(self, value: Operand) -> Tensor:
        return self.scale * mlc.tan(math.pi / 2 * floats(value))

    def entropy(self) -> Tensor:
        return math.log(2 * math.pi) + mlc.log(self.scale)
