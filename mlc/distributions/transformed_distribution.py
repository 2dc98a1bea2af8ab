"""Distributions of transforms of variables, and the families that are best defined so."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import mlc
from mlc.distributions import constraints
from mlc.distributions.combined_transforms import ComposeTransform
from mlc.distributions.composed import Independent
from mlc.distributions.distribution import Distribution, floats
from mlc.distributions.normal import Normal
from mlc.distributions.transforms import ExpTransform, Transform, sum_rightmost
from mlc.distributions.transforms_of_vectors import StickBreakingTransform
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError


class TransformedDistribution(Distribution):
    """Distribution of a transform of a variable.

    Args:
        base_distribution: Distribution of the variable.
        transforms: A transform, or several, the first of which is applied first.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: The base distribution has fewer dimensions than the transforms need (MLC0784).

    Example:
        >>> D = mlc.distributions
        >>> d = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.ExpTransform()])
        >>> d.cdf(mlc.tensor(1.0))
        tensor(0.5, dtype=mlc.float32)
    """

    def __init__(self, base_distribution: Distribution, transforms: Transform | Sequence[Transform],
                 validate_args: bool | None = None) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        dims = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        if len(shape) < whole.domain.event_dim:
            raise UserError(f"the transforms are of events of {whole.domain.event_dim} dimensions, and the base "
                            f"distribution has shape {list(shape)}", code="MLC0784", loc=user_loc())
        after = tuple(whole.forward_shape(shape))
        expanded = tuple(whole.inverse_shape(after))
        if shape != expanded:
            base_distribution = base_distribution.expand(expanded[:len(expanded) - dims])
        more = whole.domain.event_dim - dims
        self.base_dist = Independent(base_distribution, more) if more > 0 else base_distribution
        event = whole.codomain.event_dim + max(dims - whole.domain.event_dim, 0)
        super().__init__(after[:len(after) - event], after[len(after) - event:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether samples have a gradient."""
        return self.base_dist.has_rsample

    @property
    def support(self) -> constraints.Constraint:
        """The set of the values."""
        if not self.transforms:
            return self.base_dist.support  # type: ignore[no-any-return]
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        whole = ComposeTransform(self.transforms)
        shape = tuple(whole.inverse_shape((*batch_shape, *self.event_shape)))
        made.base_dist = self.base_dist.expand(shape[:len(shape) - len(self.base_dist.event_shape)])
        made.batch_shape = mlc.Size(batch_shape)
        return made

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with mlc.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Operand) -> Tensor:
        y, dims, total = self._value(value), len(self.event_shape), None
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            term = sum_rightmost(transform.log_abs_det_jacobian(x, y), dims - transform.domain.event_dim)
            total = -term if total is None else total - term
            y = x
        base = sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))
        return base if total is None else base + total

    def _monotone(self, value: Tensor) -> Tensor:
        """A probability, or its complement where the transforms decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if not isinstance(sign, Tensor):
            return value if sign > 0 else 1 - value
        return mlc.where(sign > 0, value, 1 - value)  # type: ignore[no-any-return]

    def cdf(self, value: Operand) -> Tensor:
        y = self._value(value)
        for transform in reversed(self.transforms):
            y = transform.inv(y)
        return self._monotone(self.base_dist.cdf(y))

    def icdf(self, value: Operand) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._monotone(floats(value))))


class LogNormal(TransformedDistribution):
    """Distribution of exp(x), where x is normal.

    Args:
        loc: Mean of x.
        scale: Standard deviation of x, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.LogNormal(mlc.tensor(1.0), 1.0).mode
        tensor(1., dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"loc": constraints.real, "scale": constraints.positive})

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """Mean of x."""
        return self.base_dist.loc  # type: ignore[attr-defined, no-any-return]

    @property
    def scale(self) -> Tensor:
        """Standard deviation of x."""
        return self.base_dist.scale  # type: ignore[attr-defined, no-any-return]

    @property
    def mean(self) -> Tensor:
        """exp(loc + scale**2 / 2)."""
        return mlc.exp(self.loc + self.scale ** 2 / 2)

    @property
    def mode(self) -> Tensor:
        """exp(loc - scale**2)."""
        return mlc.exp(self.loc - self.scale ** 2)

    @property
    def variance(self) -> Tensor:
        """(exp(scale**2) - 1) * exp(2 * loc + scale**2)."""
        return mlc.expm1(self.scale ** 2) * mlc.exp(2 * self.loc + self.scale ** 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Distribution of probabilities that a vector of normal variables has under `StickBreakingTransform`.

    Args:
        loc: Means, of shape (*batch, count).
        scale: Standard deviations, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.distributions.LogisticNormal(mlc.zeros(2), mlc.ones(2)).event_shape
        mlc.Size([3])
    """

    arg_constraints = MappingProxyType({"loc": constraints.real, "scale": constraints.positive})

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        normal = Normal(loc, scale, validate_args)
        normal = normal if normal.batch_shape else normal.expand([1])
        super().__init__(normal, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """Means of the normal variables."""
        return self.base_dist.base_dist.loc  # type: ignore[attr-defined, no-any-return]

    @property
    def scale(self) -> Tensor:
        """Standard deviations of the normal variables."""
        return self.base_dist.base_dist.scale  # type: ignore[attr-defined, no-any-return]
