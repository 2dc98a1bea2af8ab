"""Normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

from mlc.distributions import constraints
from mlc.distributions.distribution import ExponentialFamily, floats
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.random import erfinv
from mlc.frontend.functions.random_sampling import randn
from mlc.frontend.tensor import Operand, Tensor


class Normal(ExponentialFamily):
    """Distribution with the density exp(-((x - loc) / scale)^2 / 2) / (scale * sqrt(2 * pi)).

    Mean `loc`, variance scale^2, entropy ln(scale * sqrt(2 pi e)). Samples of `rsample` are loc + scale * randn, so
    that gradients reach both parameters.

    Args:
        loc: Mean.
        scale: Standard deviation.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: `loc` is NaN, or `scale` is not positive (MLC0761).

    Example:
        >>> d = mlc.distributions.Normal(mlc.tensor([0.0, 1.0]), 2.0)
        >>> d.log_prob(mlc.tensor(1.0))
        tensor([-1.7370857, -1.6120857], dtype=mlc.float32)
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
        """scale."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """Square of scale."""
        return self.scale * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self.scale * randn(*self._extended_shape(sample_shape), dtype=self.loc.dtype)

    def log_prob(self, value: Operand) -> Tensor:
        x = self._value(value)
        return -((x - self.loc) ** 2) / (2 * self.variance) - E.log(self.scale) - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Operand) -> Tensor:
        x = self._value(value)
        return 0.5 * (1 + E.erf((x - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: Operand) -> Tensor:
        return self.loc + self.scale * erfinv(2 * floats(value) - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + E.log(self.scale)
