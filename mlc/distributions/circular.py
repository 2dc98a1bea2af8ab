"""Distributions of angles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

import mlc
from mlc.distributions import constraints
from mlc.distributions.distribution import Distribution
from mlc.frontend.tensor import Operand, Tensor


class VonMises(Distribution):
    """Von Mises distribution of an angle: the density is that of exp(concentration * cos(x - loc)).

    Args:
        loc: The mean angle.
        concentration: Concentration, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: A parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.VonMises(mlc.tensor(1.0), mlc.tensor(2.0)).mode
        tensor(1., dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"loc": constraints.real, "concentration": constraints.positive})
    support = constraints.real
    loc: Tensor
    concentration: Tensor

    def __init__(self, loc: Operand, concentration: Operand, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, concentration=concentration)

    @property
    def mean(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Circular variance: 1 - I1(concentration) / I0(concentration)."""
        return 1 - mlc.special.i1e(self.concentration) / mlc.special.i0e(self.concentration)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with mlc.no_grad():
            k = self.concentration.double()
            tau = 1 + mlc.sqrt(1 + 4 * k ** 2)
            rho = (tau - mlc.sqrt(2 * tau)) / (2 * k)
            r = mlc.where(k < 1e-5, 1 / k + k, (1 + rho ** 2) / (2 * rho))
            shape = self._extended_shape(sample_shape)
            angle, pending = mlc.zeros(shape, dtype="float64"), mlc.ones(shape, dtype=mlc.bool)
            while bool(pending.any()):
                u = mlc.rand(3, *shape, dtype="float64")
                z = mlc.cos(math.pi * u[0])
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accepted = pending & ((c * (2 - c) > u[1]) | (mlc.log(c / u[1]) + 1 - c >= 0))
                angle = mlc.where(accepted, mlc.sign(u[2] - 0.5) * mlc.acos(f), angle)
                pending = pending & ~accepted
            return ((angle + math.pi + self.loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value: Operand) -> Tensor:
        k = self.concentration
        log_i0 = mlc.log(mlc.special.i0e(k)) + k
        return k * mlc.cos(self._value(value) - self.loc) - math.log(2 * math.pi) - log_i0
