"""Symmetric distributions with heavier tails than the normal one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

import mlc
from mlc.distributions import constraints
from mlc.distributions.distribution import Distribution, floats
from mlc.distributions.gamma_sampling import standard_gamma
from mlc.frontend.tensor import Operand, Tensor


class Laplace(Distribution):
    """Laplace distribution, with the density exp(-|x - loc| / scale) / (2 * scale).

    Args:
        loc: Location: the middle of the distribution.
        scale: Width, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Laplace(0.0, mlc.tensor([1.0, 2.0])).variance
        tensor([2., 8.], dtype=mlc.float32)
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
        """loc."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def stddev(self) -> Tensor:
        """sqrt(2) * scale."""
        return math.sqrt(2) * self.scale

    @property
    def variance(self) -> Tensor:
        """2 * scale**2."""
        return 2 * self.scale * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = mlc.rand(*self._extended_shape(sample_shape), dtype=self.loc.dtype) * 2 - 1
        u = mlc.clamp(u, mlc.finfo(u.dtype).eps - 1, 1)
        return self.loc - self.scale * mlc.sign(u) * mlc.log1p(-mlc.abs(u).clamp(max=1 - mlc.finfo(u.dtype).eps))

    def log_prob(self, value: Operand) -> Tensor:
        x = self._value(value)
        return -mlc.log(2 * self.scale) - mlc.abs(x - self.loc) / self.scale

    def cdf(self, value: Operand) -> Tensor:
        x = self._value(value) - self.loc
        return 0.5 - 0.5 * mlc.sign(x) * mlc.expm1(-mlc.abs(x) / self.scale)

    def icdf(self, value: Operand) -> Tensor:
        x = floats(value) - 0.5
        return self.loc - self.scale * mlc.sign(x) * mlc.log1p(-2 * mlc.abs(x))

    def entropy(self) -> Tensor:
        return 1 + mlc.log(2 * self.scale)


class Cauchy(Distribution):
    """Cauchy distribution, with the density 1 / (pi * scale * (1 + ((x - loc) / scale)**2)).

    Args:
        loc: Location: the middle of the distribution.
        scale: Width, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Cauchy(0.0, 1.0).cdf(mlc.tensor(0.0))
        tensor(0.5, dtype=mlc.float32)
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
        """NaN: the integral does not converge."""
        return mlc.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Infinity."""
        return mlc.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = mlc.rand(*self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + self.scale * mlc.tan(math.pi * (u - 0.5))

    def log_prob(self, value: Operand) -> Tensor:
        x = self._value(value)
        return -math.log(math.pi) - mlc.log(self.scale) - mlc.log1p(((x - self.loc) / self.scale) ** 2)

    def cdf(self, value: Operand) -> Tensor:
        x = self._value(value)
        return mlc.atan((x - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Operand) -> Tensor:
        return mlc.tan(math.pi * (floats(value) - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + mlc.log(self.scale)


class StudentT(Distribution):
    """Student's t-distribution: that of loc + scale * normal / sqrt(chi2 / df).

    Args:
        df: Degrees of freedom, positive.
        loc: Location: the middle of the distribution.
        scale: Width, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.StudentT(mlc.tensor([1.0, 4.0])).variance
        tensor([nan,  2.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({
        "df": constraints.positive, "loc": constraints.real, "scale": constraints.positive})
    support = constraints.real
    has_rsample = True
    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(self, df: Operand, loc: Operand = 0.0, scale: Operand = 1.0,
                 validate_args: bool | None = None) -> None:
        self._take(validate_args, df=df, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        """loc where df > 1, NaN elsewhere."""
        return mlc.where(self.df > 1, self.loc, math.nan)  # type: ignore[no-any-return]

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """scale**2 * df / (df - 2) where df > 2, infinity where df > 1, NaN elsewhere."""
        finite = self.scale ** 2 * self.df / mlc.where(self.df > 2, self.df - 2, 1.0)
        return mlc.where(self.df > 2, finite, mlc.where(self.df > 1, math.inf, math.nan))  # type: ignore[no-any-return]

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        chi2 = 2 * standard_gamma((self.df / 2).expand(*shape))
        return self.loc + self.scale * mlc.randn(*shape, dtype=self.df.dtype) * mlc.rsqrt(chi2 / self.df)

    def log_prob(self, value: Operand) -> Tensor:
        y = (self._value(value) - self.loc) / self.scale
        z = mlc.log(self.scale) + 0.5 * mlc.log(self.df) + 0.5 * math.log(math.pi) + mlc.lgamma(0.5 * self.df)
        return -0.5 * (self.df + 1) * mlc.log1p(y ** 2 / self.df) - z + mlc.lgamma(0.5 * (self.df + 1))

    def entropy(self) -> Tensor:
        beta = mlc.lgamma(0.5 * self.df) + math.lgamma(0.5) - mlc.lgamma(0.5 * (1 + self.df))
        rate = mlc.digamma(0.5 * (1 + self.df)) - mlc.digamma(0.5 * self.df)
        return mlc.log(self.scale) + 0.5 * (self.df + 1) * rate + 0.5 * mlc.log(self.df) + beta
