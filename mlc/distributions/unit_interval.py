"""Distributions of numbers between 0 and 1, and of probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

import mlc
from mlc.distributions import constraints
from mlc.distributions.distribution import Distribution, ExponentialFamily, floats
from mlc.distributions.extreme import EULER
from mlc.distributions.gamma_sampling import gamma_proportions
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError


class Beta(ExponentialFamily):
    """Beta distribution on (0, 1): the density is that of x**(a - 1) * (1 - x)**(b - 1).

    Args:
        concentration1: The exponent a, positive.
        concentration0: The exponent b, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Beta(mlc.tensor([1.0, 3.0]), 1.0).mean
        tensor([0.5 , 0.75], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"concentration1": constraints.positive, "concentration0": constraints.positive})
    support = constraints.unit_interval
    has_rsample = True
    concentration1: Tensor
    concentration0: Tensor

    def __init__(self, concentration1: Operand, concentration0: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def mean(self) -> Tensor:
        """a / (a + b)."""
        return self.concentration1 / self._total

    @property
    def mode(self) -> Tensor:
        """(a - 1) / (a + b - 2), 0 or 1 where a or b are below 1, NaN where both are."""
        a, b = self.concentration1, self.concentration0
        inner = (a - 1) / (a + b - 2)
        ends = mlc.where((a < 1) & (b < 1), math.nan, mlc.where(a < 1, 0.0, mlc.where(b < 1, 1.0, inner)))
        return mlc.where((a == 1) & (b == 1), math.nan, ends)  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        """a * b / ((a + b)**2 * (a + b + 1))."""
        return self.concentration1 * self.concentration0 / (self._total ** 2 * (self._total + 1))

    @property
    def _total(self) -> Tensor:
        return self.concentration1 + self.concentration0

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        both = mlc.stack([a.expand(*shape) for a in (self.concentration1, self.concentration0)], -1)
        return to_simplex(gamma_proportions(both))[..., 0]

    def log_prob(self, value: Operand) -> Tensor:
        x = self._value(value)
        a, b = self.concentration1, self.concentration0
        norm = mlc.lgamma(a + b) - mlc.lgamma(a) - mlc.lgamma(b)
        return mlc.xlogy(a - 1, x) + mlc.xlogy(b - 1, 1 - x) + norm

    def entropy(self) -> Tensor:
        a, b, total = self.concentration1, self.concentration0, self._total
        return (mlc.lgamma(a) + mlc.lgamma(b) - mlc.lgamma(total) - (2 - total) * mlc.digamma(total)
                + (1 - a) * mlc.digamma(a) + (1 - b) * mlc.digamma(b))


class Dirichlet(ExponentialFamily):
    """Dirichlet distribution of probabilities: the density is that of the product of x**(a - 1).

    Args:
        concentration: The exponents a, positive, of shape (*batch, count).
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761), or has no dimension (MLC0763).

    Example:
        >>> mlc.distributions.Dirichlet(mlc.tensor([1.0, 3.0])).mean
        tensor([0.25, 0.75], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"concentration": constraints.independent(constraints.positive, 1)})
    support = constraints.simplex
    has_rsample = True
    concentration: Tensor

    def __init__(self, concentration: Operand, validate_args: bool | None = None) -> None:
        self.concentration = floats(concentration)
        if not self.concentration.ndim:
            raise UserError("the concentrations have no dimension", code="MLC0763", loc=user_loc())
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:], validate_args)
        self._names = ("concentration",)

    @property
    def mean(self) -> Tensor:
        """a, divided by its sum."""
        return self.concentration / self._total.unsqueeze(-1)

    @property
    def mode(self) -> Tensor:
        """a - 1, at least 0, divided by its sum; the first vertex where all are below 1, as in PyTorch.

        There the density grows without bound towards every vertex.
        """
        a = (self.concentration - 1).clamp(min=0)
        total = a.sum(-1, keepdim=True)
        vertex = mlc.nn.functional.one_hot(mlc.argmax(a, -1), a.shape[-1]).to(a.dtype)
        found: Tensor = mlc.where((self.concentration < 1).all(-1, keepdim=True), vertex, a / total)
        return found

    @property
    def variance(self) -> Tensor:
        """a * (total - a) / (total**2 * (total + 1))."""
        total = self._total.unsqueeze(-1)
        return self.concentration * (total - self.concentration) / (total ** 2 * (total + 1))

    @property
    def _total(self) -> Tensor:
        return self.concentration.sum(-1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return to_simplex(gamma_proportions(self.concentration.expand(*self._extended_shape(sample_shape))))

    def log_prob(self, value: Operand) -> Tensor:
        x, a = self._value(value), self.concentration
        return mlc.xlogy(a - 1, x).sum(-1) + mlc.lgamma(self._total) - mlc.lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        a, total, count = self.concentration, self._total, self.concentration.shape[-1]
        found: Tensor = (mlc.lgamma(a).sum(-1) - mlc.lgamma(total) - (count - total) * mlc.digamma(total)
                         - ((a - 1) * mlc.digamma(a)).sum(-1))
        return found


class Kumaraswamy(Distribution):
    """Kumaraswamy distribution on (0, 1), with the cumulative distribution 1 - (1 - x**a)**b.

    Args:
        concentration1: The exponent a, positive.
        concentration0: The exponent b, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Kumaraswamy(1.0, mlc.tensor([1.0, 3.0])).mean
        tensor([0.5 , 0.25], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"concentration1": constraints.positive, "concentration0": constraints.positive})
    support = constraints.unit_interval
    has_rsample = True
    concentration1: Tensor
    concentration0: Tensor

    def __init__(self, concentration1: Operand, concentration0: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def mean(self) -> Tensor:
        """b * B(1 + 1 / a, b)."""
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """((a - 1) / (a * b - 1))**(1 / a) where a and b are at least 1 and not both 1, NaN elsewhere."""
        a, b = self.concentration1, self.concentration0
        inner = ((a - 1) / mlc.where(a * b == 1, 2.0, a * b - 1)) ** (1 / a)
        return mlc.where((a < 1) | (b < 1) | ((a == 1) & (b == 1)), math.nan, inner)  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        """Second moment less the square of the mean."""
        return self._moment(2) - self._moment(1) ** 2

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        power = 1 + n / a
        return b * mlc.exp(mlc.lgamma(power) + mlc.lgamma(b) - mlc.lgamma(power + b))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = mlc.rand(*self._extended_shape(sample_shape), dtype=self.concentration1.dtype)
        u = u.clamp(mlc.finfo(u.dtype).tiny, 1 - mlc.finfo(u.dtype).eps)
        return self.icdf(u)

    def log_prob(self, value: Operand) -> Tensor:
        x = self._value(value)
        a, b = self.concentration1, self.concentration0
        return mlc.log(a * b) + mlc.xlogy(a - 1, x) + mlc.special.xlog1py(b - 1, -x ** a)

    def cdf(self, value: Operand) -> Tensor:
        return -mlc.expm1(self.concentration0 * mlc.log1p(-self._value(value) ** self.concentration1))

    def icdf(self, value: Operand) -> Tensor:
        inner = -mlc.expm1(mlc.log1p(-floats(value)) / self.concentration0)
        return inner ** (1 / self.concentration1)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = mlc.digamma(b + 1) + EULER
        return 1 - 1 / b + (1 - 1 / a) * harmonic - mlc.log(a) - mlc.log(b)


class ContinuousBernoulli(ExponentialFamily):
    """Distribution on [0, 1] with a density in proportion to p**x * (1 - p)**(1 - x).

    Args:
        probs: The number p.
        logits: log(p / (1 - p)); one of both is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or both of `probs` and `logits` are given (MLC0763), or they are out of range (MLC0761).

    Example:
        >>> mlc.distributions.ContinuousBernoulli(mlc.tensor(0.5)).mean
        tensor(0.5, dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"probs": constraints.unit_interval, "logits": constraints.real})
    support = constraints.unit_interval
    has_rsample = True
    probs: Tensor
    logits: Tensor

    def __init__(self, probs: Operand = None, logits: Operand = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise UserError("a distribution is given either probs or logits", code="MLC0763", loc=user_loc())
        given = floats(logits if probs is None else probs)
        self.probs = mlc.sigmoid(given) if probs is None else given
        super().__init__(given.shape, (), validate_args)
        eps = mlc.finfo(given.dtype).eps
        self.probs = self.probs.clamp(eps, 1 - eps)
        self.logits = given if probs is None else mlc.log(self.probs) - mlc.log1p(-self.probs)
        self._names, self._lims = (("logits",) if probs is None else ("probs",)), (0.499, 0.501)

    def _outside(self) -> Tensor:
        """Whether p is so far from 1/2 that formulas are not replaced by their Taylor series there."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        return mlc.where(self._outside(), self.probs, self._lims[0])  # type: ignore[no-any-return]

    def _log_normalizer(self) -> Tensor:
        p = self._cut()
        below, above = mlc.where(p <= 0.5, p, 0.0), mlc.where(p >= 0.5, p, 1.0)
        exact = mlc.log(mlc.abs(mlc.log1p(-p) - mlc.log(p))) - mlc.where(
            p <= 0.5, mlc.log1p(-2 * below), mlc.log(2 * above - 1))
        x = (self.probs - 0.5) ** 2
        found: Tensor = mlc.where(self._outside(), exact, math.log(2) + (4 / 3 + 104 / 45 * x) * x)
        return found

    @property
    def mean(self) -> Tensor:
        """p / (2 * p - 1) + 1 / (log(1 - p) - log(p)), 1/2 at p = 1/2."""
        p = self._cut()
        exact = p / (2 * p - 1) + 1 / (mlc.log1p(-p) - mlc.log(p))
        x = self.probs - 0.5
        return mlc.where(self._outside(), exact, 0.5 + (1 / 3 + 16 / 45 * x ** 2) * x)  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        """p * (p - 1) / (1 - 2 * p)**2 + 1 / (log(1 - p) - log(p))**2, 1/12 at p = 1/2."""
        p = self._cut()
        exact = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / (mlc.log1p(-p) - mlc.log(p)) ** 2
        x = (self.probs - 0.5) ** 2
        return mlc.where(self._outside(), exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)  # type: ignore[no-any-return]

    @property
    def param_shape(self) -> tuple[int, ...]:
        """Shape of `probs`."""
        return self.probs.shape

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = mlc.rand(*self._extended_shape(sample_shape), dtype=self.probs.dtype)
        return self.icdf(u.clamp(mlc.finfo(u.dtype).tiny, 1 - mlc.finfo(u.dtype).eps))

    def log_prob(self, value: Operand) -> Tensor:
        x = floats(self._value(value))
        logits = self.logits + x * 0
        x = x.expand(*logits.shape)
        return self._log_normalizer() - mlc.nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="none")

    def cdf(self, value: Operand) -> Tensor:
        x, p = floats(self._value(value)), self._cut()
        exact = (p ** x * (1 - p) ** (1 - x) + p - 1) / (2 * p - 1)
        found: Tensor = mlc.where(x <= 0, 0.0, mlc.where(x >= 1, 1.0, mlc.where(self._outside(), exact, x)))
        return found

    def icdf(self, value: Operand) -> Tensor:
        x, p = floats(value), self._cut()
        exact = (mlc.log1p(-p + x * (2 * p - 1)) - mlc.log1p(-p)) / (mlc.log(p) - mlc.log1p(-p))
        return mlc.where(self._outside(), exact, x)  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        complement, logs = mlc.log1p(-self.probs), mlc.log(self.probs)
        return self.mean * (complement - logs) - self._log_normalizer() - complement


def to_simplex(x: Tensor) -> Tensor:
    """Positive numbers divided by their sum, within what a float can represent."""
    least = mlc.finfo(x.dtype).tiny
    x = x.clamp(min=least)
    return (x / x.sum(-1, keepdim=True)).clamp(least, 1 - mlc.finfo(x.dtype).eps)
