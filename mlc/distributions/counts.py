"""Distributions of counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import mlc
from mlc.distributions import constraints
from mlc.distributions.categorical import Categorical
from mlc.distributions.distribution import Distribution, ExponentialFamily, broadcast, floats
from mlc.distributions.gamma_sampling import standard_gamma
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError


class Poisson(ExponentialFamily):
    """Poisson distribution: the probability of k is rate**k * exp(-rate) / k!.

    Args:
        rate: Expected value, at least 0.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Poisson(mlc.tensor([1.5, 4.0])).mode
        tensor([1., 4.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"rate": constraints.nonnegative})
    support = constraints.nonnegative_integer
    rate: Tensor

    def __init__(self, rate: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        """rate."""
        return self.rate

    @property
    def mode(self) -> Tensor:
        """Greatest integer up to rate."""
        return mlc.floor(self.rate)

    @property
    def variance(self) -> Tensor:
        """rate."""
        return self.rate

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return mlc.poisson(self.rate.detach().expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value: Operand) -> Tensor:
        x = floats(self._value(value))
        return mlc.xlogy(x, self.rate) - self.rate - mlc.lgamma(x + 1)


class Geometric(Distribution):
    """Number of failures before the first success in independent trials.

    Args:
        probs: Probability of a success.
        logits: log(p / (1 - p)); one of both is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or both of `probs` and `logits` are given (MLC0763), or a parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Geometric(mlc.tensor([0.25, 0.5])).mean
        tensor([3., 1.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"probs": constraints.unit_interval, "logits": constraints.real})
    support = constraints.nonnegative_integer
    probs: Tensor
    logits: Tensor

    def __init__(self, probs: Operand = None, logits: Operand = None, validate_args: bool | None = None) -> None:
        _take_probs(self, probs, logits, validate_args)
        if probs is not None:                              # of logits it may only be too small for a float
            self._check(self.probs > 0, "probs are 0")

    @property
    def mean(self) -> Tensor:
        """1 / p - 1."""
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        """0."""
        return mlc.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        """(1 / p - 1) / p."""
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = mlc.rand(*self._extended_shape(sample_shape), dtype=self.probs.dtype)
        u = u.clamp(min=mlc.finfo(u.dtype).tiny)
        return mlc.floor(mlc.log(u) / mlc.log1p(-self.probs.detach()))

    def log_prob(self, value: Operand) -> Tensor:
        x = floats(self._value(value))
        if "logits" in self._names:
            return -x * mlc.nn.functional.softplus(self.logits) - mlc.nn.functional.softplus(-self.logits)
        p = mlc.where((self.probs == 1) & (x == 0), 0.0, self.probs)
        return x * mlc.log1p(-p) + mlc.log(self.probs)

    def entropy(self) -> Tensor:
        of_trial = mlc.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return of_trial / self.probs


class Binomial(Distribution):
    """Number of successes in independent trials.

    Args:
        total_count: Number of trials.
        probs: Probability of a success.
        logits: log(p / (1 - p)); one of both is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or both of `probs` and `logits` are given (MLC0763), or a parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Binomial(4, mlc.tensor([0.25, 0.5])).mean
        tensor([1., 2.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real})
    total_count: Tensor
    probs: Tensor
    logits: Tensor
    has_enumerate_support = True

    def __init__(self, total_count: Operand = 1, probs: Operand = None, logits: Operand = None,
                 validate_args: bool | None = None) -> None:
        _take_probs(self, probs, logits, validate_args, total_count)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The integers up to the number of trials."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        """n * p."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        """Greatest integer up to (n + 1) * p, at most n."""
        return mlc.minimum(mlc.floor((self.total_count + 1) * self.probs), self.total_count)

    @property
    def variance(self) -> Tensor:
        """n * p * (1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """Shape of `probs`."""
        return self.probs.shape

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return mlc.binomial(self.total_count.expand(*shape), self.probs.detach().expand(*shape))

    def log_prob(self, value: Operand) -> Tensor:
        x, n = floats(self._value(value)), self.total_count
        chosen = mlc.lgamma(n + 1) - mlc.lgamma(x + 1) - mlc.lgamma(n - x + 1)
        failures = -n * mlc.nn.functional.logsigmoid(-self.logits)
        return x * self.logits + chosen - failures

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = 1 + int(self.total_count.max())
        if bool((self.total_count != count - 1).any()):
            self._lacks("list of all values where the numbers of trials differ")
        values = mlc.arange(count, dtype=self.probs.dtype).reshape(count, *[1] * len(self.batch_shape))
        return values.expand(count, *self.batch_shape) if expand else values

    def entropy(self) -> Tensor:
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(mlc.exp(log_prob) * log_prob).sum(0)


class NegativeBinomial(Distribution):
    """Number of successes before a number of failures in independent trials.

    Args:
        total_count: Number of failures after which it ends, at least 0.
        probs: Probability of a success.
        logits: log(p / (1 - p)); one of both is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or both of `probs` and `logits` are given (MLC0763), or a parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.NegativeBinomial(2.0, mlc.tensor([0.25, 0.5])).mode
        tensor([0., 1.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({
        "total_count": constraints.nonnegative, "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real})
    support = constraints.nonnegative_integer
    total_count: Tensor
    probs: Tensor
    logits: Tensor

    def __init__(self, total_count: Operand, probs: Operand = None, logits: Operand = None,
                 validate_args: bool | None = None) -> None:
        _take_probs(self, probs, logits, validate_args, total_count)

    @property
    def mean(self) -> Tensor:
        """n * p / (1 - p)."""
        return self.total_count * mlc.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        """Greatest integer up to (n - 1) * p / (1 - p), at least 0."""
        return ((self.total_count - 1) * mlc.exp(self.logits)).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        """mean / (1 - p)."""
        return self.mean / mlc.sigmoid(-self.logits)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """Shape of `probs`."""
        return self.probs.shape

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with mlc.no_grad():
            count = self.total_count.expand(*self._extended_shape(sample_shape))
            return mlc.poisson(standard_gamma(count) * mlc.exp(self.logits))

    def log_prob(self, value: Operand) -> Tensor:
        x, n = floats(self._value(value)), self.total_count
        log_sigmoid = mlc.nn.functional.logsigmoid
        unnormalized = n * log_sigmoid(-self.logits) + x * log_sigmoid(self.logits)
        normalizer = -mlc.lgamma(n + x) + mlc.lgamma(1 + x) + mlc.lgamma(n)
        return unnormalized - mlc.where(n + x == 0, 0.0, normalizer)  # type: ignore[no-any-return]


class Multinomial(Distribution):
    """Numbers of times that each category is drawn in independent draws.

    Args:
        total_count: Number of draws, an integer.
        probs: Weights of the categories, of shape (*batch, count).
        logits: Logarithms of weights; one of both is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or both of `probs` and `logits` are given (MLC0763), or a parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Multinomial(4, mlc.tensor([1.0, 3.0])).mean
        tensor([1., 3.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"probs": constraints.simplex, "logits": constraints.real_vector})
    total_count: int

    def __init__(self, total_count: int = 1, probs: Operand = None, logits: Operand = None,
                 validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        self.total_count = total_count
        super().__init__(self._categorical.batch_shape, self.probs.shape[-1:], validate_args)
        self._names = "total_count", *self._categorical._names

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        """The vectors of counts."""
        return constraints.multinomial(self.total_count)

    @property
    def probs(self) -> Tensor:
        """Probabilities of the categories."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> tuple[int, ...]:
        """Shape of `probs`."""
        return self.probs.shape

    @property
    def mean(self) -> Tensor:
        """n * p."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        """n * p * (1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)[:len(sample_shape)]
        drawn = self._categorical.sample((self.total_count, *shape))
        return mlc.nn.functional.one_hot(drawn, self.probs.shape[-1]).sum(0).to(self.probs.dtype)

    def log_prob(self, value: Operand) -> Tensor:
        x = floats(self._value(value))
        logits = mlc.where((x == 0) & (self.logits == -math.inf), 0.0, self.logits)
        found: Tensor = mlc.lgamma(x.sum(-1) + 1) - mlc.lgamma(x + 1).sum(-1) + (logits * x).sum(-1)
        return found

    def entropy(self) -> Tensor:
        n, p = self.total_count, self.probs
        one = Binomial(n, p)
        values = one.enumerate_support(False)[1:]
        weights = mlc.exp(one.log_prob(values))
        return n * self._categorical.entropy() - math.lgamma(n + 1) + (weights * mlc.lgamma(values + 1)).sum((0, -1))


def _take_probs(self: Any, probs: Operand, logits: Operand, validate_args: bool | None,
                total_count: Operand = None) -> None:
    """Keep the probabilities of a distribution, and their logits, beside a number of trials."""
    if (probs is None) == (logits is None):
        raise UserError("a distribution is given either probs or logits", code="MLC0763", loc=user_loc())
    given, name = (logits, "logits") if probs is None else (probs, "probs")
    self._names = (name,)
    if total_count is None:
        given = floats(given)
    else:
        given, self.total_count = broadcast(given, total_count)
        self._names = "total_count", name
    setattr(self, name, given)
    Distribution.__init__(self, given.shape, (), validate_args)
    if probs is None:
        self.probs = mlc.sigmoid(given)
    else:
        eps = mlc.finfo(given.dtype).eps
        kept = given.clamp(eps, 1 - eps)
        self.logits = mlc.log(kept) - mlc.log1p(-kept)
