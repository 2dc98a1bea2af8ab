"""Uniform distribution on an interval."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.distributions.distribution import Distribution, floats
from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.random_sampling import rand
from mlc.frontend.functions.shape import broadcast_tensors
from mlc.frontend.tensor import Operand, Tensor


class Uniform(Distribution):
    """Distribution with the same density everywhere in [low, high).

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

    has_rsample = True

    def __init__(self, low: Operand, high: Operand, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_tensors(floats(low), floats(high))
        super().__init__(self.low.shape, (), validate_args)
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
        x = floats(value)
        self._check((x >= self.low) & (x <= self.high), "the value is outside of the interval")
        inside = E.cast_to((x >= self.low) & (x < self.high), self.low.dtype)
        return E.log(inside) - E.log(self.high - self.low)

    def cdf(self, value: Operand) -> Tensor:
        x = floats(value)
        self._check((x >= self.low) & (x <= self.high), "the value is outside of the interval")
        return E.clamp((x - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value: Operand) -> Tensor:
        return self.low + floats(value) * (self.high - self.low)

    def entropy(self) -> Tensor:
        return E.log(self.high - self.low)
