"""The gamma distribution, and those that are made of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

import mlc
from mlc.distributions import constraints
from mlc.distributions.distribution import Distribution, ExponentialFamily, floats
from mlc.distributions.gamma_sampling import standard_gamma
from mlc.frontend.functions.random_in_place import standard_exponential
from mlc.frontend.tensor import Operand, Tensor


class Exponential(ExponentialFamily):
    """Exponential distribution, with the density rate * exp(-rate * x).

    Args:
        rate: Inverse of the width, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Exponential(mlc.tensor([0.5, 2.0])).mean
        tensor([2. , 0.5], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"rate": constraints.positive})
    support = constraints.nonnegative
    has_rsample = True
    rate: Tensor

    def __init__(self, rate: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        """1 / rate."""
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        """0."""
        return mlc.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        """1 / rate."""
        return 1 / self.rate

    @property
    def variance(self) -> Tensor:
        """1 / rate**2."""
        return 1 / self.rate ** 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return standard_exponential(self._extended_shape(sample_shape), self.rate.dtype) / self.rate

    def log_prob(self, value: Operand) -> Tensor:
        return mlc.log(self.rate) - self.rate * self._value(value)

    def cdf(self, value: Operand) -> Tensor:
        return 1 - mlc.exp(-self.rate * self._value(value))

    def icdf(self, value: Operand) -> Tensor:
        return -mlc.log1p(-floats(value)) / self.rate

    def entropy(self) -> Tensor:
        return 1 - mlc.log(self.rate)


class Gamma(ExponentialFamily):
    """Gamma distribution: the density is that of rate**a * x**(a - 1) * exp(-rate * x) / gamma(a).

    Args:
        concentration: The exponent a, positive.
        rate: Inverse of the width, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Gamma(mlc.tensor([1.0, 3.0]), 2.0).mean
        tensor([0.5, 1.5], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"concentration": constraints.positive, "rate": constraints.positive})
    support = constraints.nonnegative
    has_rsample = True
    concentration: Tensor
    rate: Tensor

    def __init__(self, concentration: Operand, rate: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Tensor:
        """a / rate."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        """(a - 1) / rate, at least 0."""
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        """a / rate**2."""
        return self.concentration / self.rate ** 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        concentration = self.concentration.expand(*self._extended_shape(sample_shape))
        drawn = standard_gamma(concentration) / self.rate
        return drawn.clamp(min=mlc.finfo(drawn.dtype).tiny)

    def log_prob(self, value: Operand) -> Tensor:
        x = self._value(value)
        a, rate = self.concentration, self.rate
        return mlc.xlogy(a, rate) + mlc.xlogy(a - 1, x) - rate * x - mlc.lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - mlc.log(self.rate) + mlc.lgamma(a) + (1 - a) * mlc.digamma(a)


class Chi2(Gamma):
    """Chi-squared distribution: that of the sum of the squares of df standard normal variables.

    Args:
        df: Degrees of freedom, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Chi2(mlc.tensor([1.0, 3.0])).mean
        tensor([1., 3.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"df": constraints.positive})
    support = constraints.nonnegative
    has_rsample = True
    df: Tensor

    def __init__(self, df: Operand, validate_args: bool | None = None) -> None:
        self.df = floats(df)
        super().__init__(0.5 * self.df, 0.5, validate_args)
        self._names = ("df",)


class InverseGamma(Distribution):
    """Distribution of 1 / x, where x is of the gamma distribution.

    Args:
        concentration: The exponent a of the gamma distribution, positive.
        rate: Its rate, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.InverseGamma(mlc.tensor([2.0, 3.0]), 2.0).mean
        tensor([2., 1.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"concentration": constraints.positive, "rate": constraints.positive})
    support = constraints.positive
    has_rsample = True
    concentration: Tensor
    rate: Tensor

    def __init__(self, concentration: Operand, rate: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Tensor:
        """rate / (a - 1) where a > 1, infinity elsewhere."""
        a = self.concentration
        return mlc.where(a > 1, self.rate / mlc.where(a > 1, a - 1, 1.0), math.inf)  # type: ignore[no-any-return]

    @property
    def mode(self) -> Tensor:
        """rate / (a + 1)."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        """rate**2 / ((a - 1)**2 * (a - 2)) where a > 2, infinity elsewhere."""
        a = mlc.where(self.concentration > 2, self.concentration, 3.0)
        found: Tensor = mlc.where(self.concentration > 2, self.rate ** 2 / ((a - 1) ** 2 * (a - 2)), math.inf)
        return found

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        concentration = self.concentration.expand(*self._extended_shape(sample_shape))
        drawn = standard_gamma(concentration) / self.rate
        return 1 / drawn.clamp(min=mlc.finfo(drawn.dtype).tiny)

    def log_prob(self, value: Operand) -> Tensor:
        x = self._value(value)
        a, rate = self.concentration, self.rate
        return mlc.xlogy(a, rate) - (a + 1) * mlc.log(x) - rate / x - mlc.lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + mlc.log(self.rate) + mlc.lgamma(a) - (1 + a) * mlc.digamma(a)


class FisherSnedecor(Distribution):
    """F-distribution: that of (x / df1) / (y / df2), where x and y are of chi-squared distributions.

    Args:
        df1: Degrees of freedom of the numerator, positive.
        df2: Those of the denominator.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.FisherSnedecor(2.0, mlc.tensor([2.0, 4.0])).mean
        tensor([nan,  2.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"df1": constraints.positive, "df2": constraints.positive})
    support = constraints.positive
    has_rsample = True
    df1: Tensor
    df2: Tensor

    def __init__(self, df1: Operand, df2: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, df1=df1, df2=df2)

    @property
    def mean(self) -> Tensor:
        """df2 / (df2 - 2) where df2 > 2, NaN elsewhere."""
        found: Tensor = mlc.where(self.df2 > 2, self.df2 / mlc.where(self.df2 > 2, self.df2 - 2, 1.0), math.nan)
        return found

    @property
    def mode(self) -> Tensor:
        """(df1 - 2) / df1 * df2 / (df2 + 2) where df1 > 2, NaN elsewhere."""
        found: Tensor = mlc.where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)
        return found

    @property
    def variance(self) -> Tensor:
        """2 * df2**2 * (df1 + df2 - 2) / (df1 * (df2 - 2)**2 * (df2 - 4)) where df2 > 4, NaN elsewhere."""
        df2 = mlc.where(self.df2 > 4, self.df2, 5.0)
        finite = 2 * df2 ** 2 * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2) ** 2 * (df2 - 4))
        return mlc.where(self.df2 > 4, finite, math.nan)  # type: ignore[no-any-return]

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x, y = (standard_gamma((df / 2).expand(*shape)) / (df / 2) for df in (self.df1, self.df2))
        tiny = mlc.finfo(x.dtype).tiny
        return (x / y.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Operand) -> Tensor:
        x = self._value(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        beta = mlc.lgamma(a) + mlc.lgamma(b) - mlc.lgamma(a + b)
        return a * mlc.log(ratio) + (a - 1) * mlc.log(x) - (a + b) * mlc.log1p(ratio * x) - beta
