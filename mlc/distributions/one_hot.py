"""Distributions of one-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import mlc
from mlc.distributions import constraints
from mlc.distributions.categorical import Categorical
from mlc.distributions.distribution import Distribution
from mlc.frontend.tensor import Operand, Tensor


class OneHotCategorical(Distribution):
    """Distribution of vectors with one 1 among zeros, each place with a probability of its own.

    Args:
        probs: Weights of the categories, of shape (*batch, count).
        logits: Logarithms of weights; one of both is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or both of `probs` and `logits` are given (MLC0763), or a parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.OneHotCategorical(mlc.tensor([0.0, 1.0])).sample()
        tensor([0., 1.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"probs": constraints.simplex, "logits": constraints.real_vector})
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Operand = None, logits: Operand = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self.probs.shape[-1:], validate_args)
        self._names = self._categorical._names

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
        """The probabilities."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The most probable vector."""
        mode = self._categorical.mode
        return mlc.nn.functional.one_hot(mode, self.probs.shape[-1]).to(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        """p * (1 - p)."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self._categorical.sample(sample_shape)
        return mlc.nn.functional.one_hot(drawn, self.probs.shape[-1]).to(self.probs.dtype)

    def log_prob(self, value: Operand) -> Tensor:
        return self._categorical.log_prob(mlc.argmax(self._value(value), -1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self.probs.shape[-1]
        values = mlc.eye(count, dtype=self.probs.dtype).reshape(count, *[1] * len(self.batch_shape), count)
        return values.expand(count, *self.batch_shape, count) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose samples have the gradient of the probabilities: the straight-through estimator.

    (Bengio, Leonard and Courville 2013, "Estimating or Propagating Gradients Through Stochastic Neurons".)

    Args:
        probs: Weights of the categories, of shape (*batch, count).
        logits: Logarithms of weights; one of both is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or both of `probs` and `logits` are given (MLC0763), or a parameter is out of range (MLC0761).

    Example:
        >>> p = mlc.tensor([0.0, 1.0], requires_grad=True)
        >>> mlc.distributions.OneHotCategoricalStraightThrough(p).rsample()[1].backward()
        >>> p.grad
        tensor([-1.,  0.], dtype=mlc.float32)
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
