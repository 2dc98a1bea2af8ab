"""Distributions of extreme values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

import mlc
from mlc.distributions import constraints
from mlc.distributions.distribution import Distribution, floats
from mlc.frontend.functions.random_in_place import standard_exponential
from mlc.frontend.tensor import Operand, Tensor

EULER = 0.57721566490153286
"""Euler's constant."""


class Gumbel(Distribution):
    """Gumbel distribution, with the cumulative distribution exp(-exp(-(x - loc) / scale)).

    Args:
        loc: Location: the middle of the distribution.
        scale: Width, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Gumbel(mlc.tensor(1.0), 2.0).mode
        tensor(1., dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"loc": constraints.real, "scale": constraints.positive})
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        """loc + scale * Euler's constant."""
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def stddev(self) -> Tensor:
        """scale * pi / sqrt(6)."""
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        """Square of `stddev`."""
        return self.stddev ** 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = mlc.rand(*self._extended_shape(sample_shape), dtype=self.loc.dtype)
        info = mlc.finfo(u.dtype)
        return self.loc - self.scale * mlc.log(-mlc.log(u.clamp(info.tiny, 1 - info.eps)))

    def log_prob(self, value: Operand) -> Tensor:
        y = (self.loc - self._value(value)) / self.scale
        return y - mlc.exp(y) - mlc.log(self.scale)

    def cdf(self, value: Operand) -> Tensor:
        return mlc.exp(-mlc.exp((self.loc - self._value(value)) / self.scale))

    def icdf(self, value: Operand) -> Tensor:
        return self.loc - self.scale * mlc.log(-mlc.log(floats(value)))

    def entropy(self) -> Tensor:
        return mlc.log(self.scale) + (1 + EULER)


class Weibull(Distribution):
    """Weibull distribution: that of scale * x**(1 / concentration), where x is exponential with rate 1.

    Args:
        scale: Width, positive.
        concentration: Shape of the distribution, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Weibull(1.0, mlc.tensor([0.5, 1.0])).mean
        tensor([2., 1.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"scale": constraints.positive, "concentration": constraints.positive})
    support = constraints.positive
    has_rsample = True
    scale: Tensor
    concentration: Tensor

    def __init__(self, scale: Operand, concentration: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, scale=scale, concentration=concentration)

    @property
    def mean(self) -> Tensor:
        """scale * gamma(1 + 1 / concentration)."""
        return self.scale * mlc.exp(mlc.lgamma(1 + 1 / self.concentration))

    @property
    def mode(self) -> Tensor:
        """scale * (1 - 1 / concentration)**(1 / concentration)."""
        inverse = 1 / self.concentration
        return self.scale * (1 - inverse) ** inverse

    @property
    def variance(self) -> Tensor:
        """scale**2 * (gamma(1 + 2 / concentration) - gamma(1 + 1 / concentration)**2)."""
        inverse = 1 / self.concentration
        return self.scale ** 2 * (mlc.exp(mlc.lgamma(1 + 2 * inverse)) - mlc.exp(2 * mlc.lgamma(1 + inverse)))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = standard_exponential(self._extended_shape(sample_shape), self.scale.dtype)
        drawn = self.scale * drawn ** (1 / self.concentration)
        return drawn.clamp(min=mlc.finfo(drawn.dtype).smallest_normal)

    def log_prob(self, value: Operand) -> Tensor:
        y = self._value(value) / self.scale
        k = self.concentration
        return mlc.log(k / self.scale) + (k - 1) * mlc.log(y) - y ** k

    def cdf(self, value: Operand) -> Tensor:
        return -mlc.expm1(-(self._value(value) / self.scale) ** self.concentration)

    def icdf(self, value: Operand) -> Tensor:
        return self.scale * (-mlc.log1p(-floats(value))) ** (1 / self.concentration)

    def entropy(self) -> Tensor:
        inverse = 1 / self.concentration
        return EULER * (1 - inverse) + mlc.log(self.scale * inverse) + 1


class Pareto(Distribution):
    """Pareto distribution, with the density alpha * scale**alpha / x**(alpha + 1) from `scale` on.

    Args:
        scale: Least value, positive.
        alpha: Shape of the distribution, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Pareto(1.0, mlc.tensor([1.0, 2.0])).mean
        tensor([inf,  2.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"scale": constraints.positive, "alpha": constraints.positive})
    has_rsample = True
    scale: Tensor
    alpha: Tensor

    def __init__(self, scale: Operand, alpha: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, scale=scale, alpha=alpha)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        """The numbers from scale on."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        """alpha * scale / (alpha - 1) where alpha > 1, infinity elsewhere."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        """scale."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """scale**2 * alpha / ((alpha - 1)**2 * (alpha - 2)) where alpha > 2, infinity elsewhere."""
        a = self.alpha.clamp(min=2)
        return self.scale ** 2 * a / ((a - 1) ** 2 * (a - 2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = mlc.rand(*self._extended_shape(sample_shape), dtype=self.scale.dtype)
        return self.scale * mlc.exp(-mlc.log1p(-u) / self.alpha)

    def log_prob(self, value: Operand) -> Tensor:
        return mlc.log(self.alpha / self._value(value)) + self.alpha * (self.scale.log() - mlc.log(floats(value)))

    def cdf(self, value: Operand) -> Tensor:
        return 1 - (self.scale / self._value(value)) ** self.alpha

    def icdf(self, value: Operand) -> Tensor:
        return self.scale * (1 - floats(value)) ** (-1 / self.alpha)

    def entropy(self) -> Tensor:
        return mlc.log(self.scale / self.alpha) + (1 + 1 / self.alpha)


class GeneralizedPareto(Distribution):
    """Generalized Pareto distribution, with the cumulative distribution 1 - (1 + c * z)**(-1 / c).

    Args:
        loc: Least value.
        scale: Width, positive.
        concentration: The number c; z = (x - loc) / scale.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.GeneralizedPareto(0.0, 1.0, mlc.tensor([0.0, 0.5])).mean
        tensor([1., 2.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real})
    has_rsample = True
    loc: Tensor
    scale: Tensor
    concentration: Tensor

    def __init__(self, loc: Operand, scale: Operand, concentration: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        """The numbers from loc on, up to loc - scale / concentration where that is negative."""
        below = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, mlc.where(self.concentration < 0, below, math.inf))

    @property
    def mean(self) -> Tensor:
        """loc + scale / (1 - c) where c < 1, NaN elsewhere."""
        c = mlc.where(self.concentration < 1, self.concentration, 0.5)
        found: Tensor = mlc.where(self.concentration < 1, self.loc + self.scale / (1 - c), math.nan)
        return found

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """scale**2 / ((1 - c)**2 * (1 - 2 * c)) where c < 1/2, NaN elsewhere."""
        c = mlc.where(self.concentration < 0.5, self.concentration, 0.25)
        found: Tensor = mlc.where(self.concentration < 0.5, self.scale ** 2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)
        return found

    def _parts(self) -> tuple[Tensor, Tensor]:
        """Whether c is 0, and c where it is not."""
        zero = mlc.isclose(self.concentration, mlc.zeros_like(self.concentration))
        return zero, mlc.where(zero, 1.0, self.concentration)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(mlc.rand(*self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value: Operand) -> Tensor:
        z = (self._value(value) - self.loc) / self.scale
        zero, c = self._parts()
        return -mlc.log(self.scale) - mlc.where(zero, z, mlc.special.xlog1py(1 / c + 1, c * z))  # type: ignore[no-any-return]

    def log_survival_function(self, value: Operand) -> Tensor:
        """Logarithm of the probability of greater values.

        Args:
            value: Tensor that can be broadcast with the batch.

        Returns:
            Tensor of floats.
        """
        z = (self._value(value) - self.loc) / self.scale
        zero, c = self._parts()
        return mlc.where(zero, -z, -mlc.log1p(c * z) / c)  # type: ignore[no-any-return]

    def log_cdf(self, value: Operand) -> Tensor:
        """Logarithm of `cdf`.

        Args:
            value: Tensor that can be broadcast with the batch.

        Returns:
            Tensor of floats.
        """
        return mlc.log1p(-mlc.exp(self.log_survival_function(value)))

    def cdf(self, value: Operand) -> Tensor:
        return mlc.exp(self.log_cdf(value))

    def icdf(self, value: Operand) -> Tensor:
        zero, c = self._parts()
        logs = mlc.log1p(-floats(value))
        found: Tensor = mlc.where(zero, self.loc - self.scale * logs, self.loc + self.scale / c * mlc.expm1(-c * logs))
        return found

    def entropy(self) -> Tensor:
        return mlc.log(self.scale) + self.concentration + 1
