"""Continuous relaxations of discrete distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import mlc
from mlc.distributions import constraints
from mlc.distributions.bernoulli import Bernoulli
from mlc.distributions.categorical import Categorical
from mlc.distributions.distribution import Distribution
from mlc.distributions.transformed_distribution import TransformedDistribution
from mlc.distributions.transforms import ExpTransform, SigmoidTransform
from mlc.frontend.tensor import Operand, Tensor


class ExpRelaxedCategorical(Distribution):
    """Distribution of the logarithms of the values of `RelaxedOneHotCategorical`.

    Args:
        temperature: Temperature: near 0, values are near one-hot vectors.
        probs: Weights of the categories, of shape (*batch, count).
        logits: Logarithms of weights; one of both is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or both of `probs` and `logits` are given (MLC0763), or a parameter is out of range (MLC0761).

    Example:
        >>> d = mlc.distributions.relaxed.ExpRelaxedCategorical(mlc.tensor(0.5), mlc.ones(3))
        >>> round(d.sample().exp().sum().item(), 3)
        1.0
    """

    arg_constraints = MappingProxyType({"probs": constraints.simplex, "logits": constraints.real_vector})
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Operand, probs: Operand = None, logits: Operand = None,
                 validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        self.temperature = mlc.asarray(temperature)
        super().__init__(self._categorical.batch_shape, self.probs.shape[-1:], validate_args)

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

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = _inside(mlc.rand(*self._extended_shape(sample_shape), dtype=self.logits.dtype))
        return mlc.log_softmax((self.logits - mlc.log(-mlc.log(u))) / self.temperature, -1)

    def log_prob(self, value: Operand) -> Tensor:
        count, x = self.probs.shape[-1], self._value(value)
        scale: Tensor = math.lgamma(count) + mlc.log(self.temperature) * (count - 1)
        return mlc.log_softmax(self.logits - x * self.temperature, -1).sum(-1) + scale

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return type(self)(self.temperature, logits=self._expanded(self.logits, batch_shape), validate_args=False)


class _Relaxed(TransformedDistribution):
    """A relaxed distribution: a transformed one, with the parameters of what is transformed."""

    base_dist: ExpRelaxedCategorical | LogitRelaxedBernoulli

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Tensor:
        """Probability of 1, or of each category."""
        return self.base_dist.probs

    @property
    def logits(self) -> Tensor:
        """Logits of these probabilities."""
        return self.base_dist.logits


class RelaxedOneHotCategorical(_Relaxed):
    """Distribution of probabilities that are near to a one-hot vector, with a gradient.

    (Jang, Gu and Poole 2017, "Categorical Reparameterization with Gumbel-Softmax"; Maddison, Mnih and Teh 2017, "The
    Concrete Distribution: A Continuous Relaxation of Discrete Random Variables".)

    Args:
        temperature: Temperature: near 0, values are near one-hot vectors.
        probs: Weights of the categories, of shape (*batch, count).
        logits: Logarithms of weights; one of both is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or both of `probs` and `logits` are given (MLC0763), or a parameter is out of range (MLC0761).

    Example:
        >>> d = mlc.distributions.RelaxedOneHotCategorical(mlc.tensor(0.5), mlc.ones(3))
        >>> round(d.sample().sum().item(), 3)
        1.0
    """

    arg_constraints = MappingProxyType({"probs": constraints.simplex, "logits": constraints.real_vector})
    support = constraints.simplex
    base_dist: ExpRelaxedCategorical

    def __init__(self, temperature: Operand, probs: Operand = None, logits: Operand = None,
                 validate_args: bool | None = None) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)


class LogitRelaxedBernoulli(Distribution):
    """Distribution of the logits of the values of `RelaxedBernoulli`.

    Args:
        temperature: Temperature: near 0, values are near 0 or 1.
        probs: Probability of 1.
        logits: log(p / (1 - p)); one of both is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or both of `probs` and `logits` are given (MLC0763), or a parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.relaxed.LogitRelaxedBernoulli(mlc.tensor(1.0), mlc.tensor(0.5)).log_prob(mlc.tensor(0.0))
        tensor(-1.3862944, dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"probs": constraints.unit_interval, "logits": constraints.real})
    support = constraints.real
    has_rsample = True

    def __init__(self, temperature: Operand, probs: Operand = None, logits: Operand = None,
                 validate_args: bool | None = None) -> None:
        self._bernoulli = Bernoulli(probs, logits, validate_args)
        self.temperature = mlc.asarray(temperature)
        self.probs, self.logits = self._bernoulli.probs, self._bernoulli.logits
        super().__init__(self.probs.shape, (), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return LogitRelaxedBernoulli(self.temperature, logits=self.logits.expand(*batch_shape), validate_args=False)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = _inside(mlc.rand(*self._extended_shape(sample_shape), dtype=self.probs.dtype))
        p = _inside(self.probs)
        return (mlc.log(u) - mlc.log1p(-u) + mlc.log(p) - mlc.log1p(-p)) / self.temperature

    def log_prob(self, value: Operand) -> Tensor:
        diff = self.logits - self._value(value) * self.temperature
        return mlc.log(self.temperature) + diff - 2 * mlc.log1p(mlc.exp(diff))


class RelaxedBernoulli(_Relaxed):
    """Distribution of numbers in (0, 1) that are near to 0 or 1, with a gradient.

    (Maddison, Mnih and Teh 2017, "The Concrete Distribution: A Continuous Relaxation of Discrete Random Variables".)

    Args:
        temperature: Temperature: near 0, values are near 0 or 1.
        probs: Probability of 1.
        logits: log(p / (1 - p)); one of both is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or both of `probs` and `logits` are given (MLC0763), or a parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.RelaxedBernoulli(mlc.tensor(1.0), mlc.tensor([0.5, 0.9])).sample().shape
        (2,)
    """

    arg_constraints = MappingProxyType({"probs": constraints.unit_interval, "logits": constraints.real})
    support = constraints.unit_interval
    base_dist: LogitRelaxedBernoulli

    def __init__(self, temperature: Operand, probs: Operand = None, logits: Operand = None,
                 validate_args: bool | None = None) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)


def _inside(p: Tensor) -> Tensor:
    """Probabilities whose logarithms are finite."""
    eps = mlc.finfo(p.dtype).eps
    return p.clamp(eps, 1 - eps)
