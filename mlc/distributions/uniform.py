"""Uniform distribution on an interval."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from mlc.distributions import constraints
from mlc.distributions.distribution import Distribution, floats
from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.random_sampling import rand
from mlc.frontend.tensor import Operand, Tensor


class Uniform(Distribution):
    """Distribution with the same density everywhere in [low, high).

    The density is 1 / (high - low) within the interval and 0 outside: mean (low + high) / 2, variance (high - low)^2 /
    12. Samples of `rsample` are low + (high - low) * rand, so that gradients reach both bounds.

    Args:
        low: Least value.
        high: Upper bound, which is excluded.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: An interval is empty (MLC0761).

    Example:
        >>> d = mlc.distributions.Uniform(0.0, mlc.tensor([2.0, 4.0]))
        >>> d.mean, d.entropy()
        (tensor([1., 2.], dtype=mlc.float32), tensor([0.6931472, 1.3862944], dtype=mlc.float32))
    """

    arg_constraints = MappingProxyType({"low": constraints.dependent, "high": constraints.dependent})
    has_rsample = True
    low: Tensor
    high: Tensor

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        """The interval."""
        return constraints.interval(self.low, self.high)

    def __init__(self, low: Operand, high: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, low=low, high=high)
        self._check(self.low < self.high, "the interval is empty")

    @property
    def mean(self) -> Tensor:
        """Middle of the interval."""
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        """NaN: no value is more probable than the others."""
        return create.full_like(self.low, float("nan"))

    @property
    def variance(self) -> Tensor:
        """Square of the width, divided by 12."""
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        unit = rand(*self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + unit * (self.high - self.low)

    def log_prob(self, value: Operand) -> Tensor:
        x = self._value(value)
        inside = E.cast_to((x >= self.low) & (x < self.high), self.low.dtype)
        return E.log(inside) - E.log(self.high - self.low)

    def cdf(self, value: Operand) -> Tensor:
        x = self._value(value)
        return E.clamp((x - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value: Operand) -> Tensor:
        return self.low + floats(value) * (self.high - self.low)

    def entropy(self) -> Tensor:
        return E.log(self.high - self.low)
