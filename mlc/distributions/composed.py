"""Distributions made of distributions: independent parts of one event, and mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import mlc
from mlc.distributions import constraints
from mlc.distributions.categorical import Categorical
from mlc.distributions.distribution import Distribution
from mlc.distributions.transforms import sum_rightmost
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError


class Independent(Distribution):
    """Distribution whose events are those of a batch of another distribution together.

    Args:
        base_distribution: The other distribution.
        reinterpreted_batch_ndims: Number of dimensions of its batch that become dimensions of an event.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: The batch has fewer dimensions (MLC0784).

    Example:
        >>> D = mlc.distributions
        >>> d = D.Independent(D.Normal(mlc.zeros(2, 3), mlc.ones(2, 3)), 1)
        >>> d.batch_shape, d.event_shape, d.log_prob(mlc.zeros(2, 3)).shape
        (mlc.Size([2]), mlc.Size([3]), (2,))
    """

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int,
                 validate_args: bool | None = None) -> None:
        batch, count = tuple(base_distribution.batch_shape), reinterpreted_batch_ndims
        if count > len(batch):
            raise UserError(f"the batch {list(batch)} has fewer than {count} dimensions", code="MLC0784",
                            loc=user_loc())
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        cut = len(batch) - count
        super().__init__(batch[:cut], (*batch[cut:], *base_distribution.event_shape), validate_args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        inner = self.event_shape[:self.reinterpreted_batch_ndims]
        return Independent(self.base_dist.expand((*batch_shape, *inner)), self.reinterpreted_batch_ndims, False)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether samples have a gradient."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether values can be listed, which those of several variables together cannot."""
        return not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support

    @property
    def support(self) -> constraints.Constraint:
        """The set of the values."""
        found = self.base_dist.support
        return constraints.independent(found, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else (
            found)

    @property
    def mean(self) -> Tensor:
        """That of the base distribution."""
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        """That of the base distribution."""
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        """That of the base distribution."""
        return self.base_dist.variance

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Operand) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            self._lacks("enumerate_support")
        return self.base_dist.enumerate_support(expand)


class MixtureSameFamily(Distribution):
    """Mixture of distributions of one family: one of them is chosen, and draws the value.

    Args:
        mixture_distribution: The probabilities of the components, a `Categorical`.
        component_distribution: The components, along the last dimension of its batch.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: The numbers of components differ, or the mixture is no `Categorical` (MLC0784).

    Example:
        >>> D = mlc.distributions
        >>> d = D.MixtureSameFamily(D.Categorical(mlc.ones(2)), D.Normal(mlc.tensor([-1.0, 1.0]), mlc.ones(2)))
        >>> d.mean, d.variance
        (tensor(0., dtype=mlc.float32), tensor(2., dtype=mlc.float32))
    """

    arg_constraints = MappingProxyType({})

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution,
                 validate_args: bool | None = None) -> None:
        batch = tuple(component_distribution.batch_shape)
        if type(mixture_distribution) is not Categorical or not batch or (
                mixture_distribution.probs.shape[-1] != batch[-1]):
            raise UserError(f"a mixture is of a Categorical and as many components, found {mixture_distribution!r} and "
                            f"{component_distribution!r}", code="MLC0784", loc=user_loc())
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """False: the choice of a component has no gradient."""
        return False

    @property
    def support(self) -> constraints.Constraint:
        """The values of the components."""
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        count = self.component_distribution.batch_shape[-1]
        return MixtureSameFamily(self.mixture_distribution.expand(batch_shape),
                                 self.component_distribution.expand((*batch_shape, count)), False)

    def _mixed(self, x: Tensor) -> Tensor:
        """The mean over components, which are the last dimension of the batch."""
        dims = len(self.event_shape)
        probs = self.mixture_distribution.probs
        return (probs.reshape(*probs.shape, *[1] * dims) * x).sum(-1 - dims)

    @property
    def mean(self) -> Tensor:
        """Mean of the means."""
        return self._mixed(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """Mean of the variances, and variance of the means."""
        dims = len(self.event_shape)
        deviation = self.component_distribution.mean - self.mean.unsqueeze(-1 - dims)
        return self._mixed(self.component_distribution.variance) + self._mixed(deviation ** 2)

    def cdf(self, value: Operand) -> Tensor:
        x = self._value(value).unsqueeze(-1 - len(self.event_shape))
        return (self.component_distribution.cdf(x) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Operand) -> Tensor:
        x = self._value(value).unsqueeze(-1 - len(self.event_shape))
        logits = mlc.log_softmax(self.mixture_distribution.logits, -1)
        return mlc.logsumexp(self.component_distribution.log_prob(x) + logits, -1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with mlc.no_grad():
            dims = len(self.event_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            index = chosen.reshape(*chosen.shape, *[1] * (1 + dims)).expand(*chosen.shape, 1, *self.event_shape)
            return mlc.gather(drawn, drawn.ndim - 1 - dims, index).squeeze(-1 - dims)
