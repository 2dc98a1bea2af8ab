"""Bernoulli distribution: 1 or 0."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from mlc.distributions import constraints
from mlc.distributions.distribution import ExponentialFamily, floats
from mlc.frontend.element_types import finfo
from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.random_trials import bernoulli
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError
from mlc.nn.functional import binary_cross_entropy_with_logits


class Bernoulli(ExponentialFamily):
    """Distribution of 1, with a probability p, and 0.

    P(1) = p and P(0) = 1 - p: mean p, variance p * (1 - p). Logits are the numerically safer parameter, as log(p) and
    log(1 - p) are computed without rounding p to 0 or 1. Samples have no derivative by p.

    Args:
        probs: Probability of 1.
        logits: log(p / (1 - p)); one of both is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or both of `probs` and `logits` are given (MLC0763), or they are out of range (MLC0761).

    Example:
        >>> d = mlc.distributions.Bernoulli(mlc.tensor([0.0, 1.0]))
        >>> d.sample()
        tensor([0., 1.], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({"probs": constraints.unit_interval, "logits": constraints.real})
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Operand = None, logits: Operand = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise UserError("a distribution is given either probs or logits", code="MLC0763", loc=user_loc())
        given = floats(logits if probs is None else probs)
        super().__init__(given.shape, (), validate_args)
        self._names = ("logits",) if probs is None else ("probs",)
        if probs is None:
            self._check(given == given, "logits are NaN")
            self.logits, self.probs = given, E.sigmoid(given)
            return
        self._check((given >= 0) & (given <= 1), "probs are no probabilities")
        # a logarithm that is finite also for the certain and the impossible, as in PyTorch
        eps = finfo(given.dtype).eps
        kept = E.clamp(given, eps, 1 - eps)
        self.probs, self.logits = given, E.log(kept) - E.log1p(-kept)

    @property
    def mean(self) -> Tensor:
        """p."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """1 where p > 1/2, 0 where p < 1/2, NaN between them."""
        sharp = E.cast_to(self.probs > 0.5, self.probs.dtype)
        return E.where(self.probs == 0.5, create.full_like(self.probs, float("nan")), sharp)

    @property
    def variance(self) -> Tensor:
        """p * (1 - p)."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return bernoulli(self.probs.detach().expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value: Operand) -> Tensor:
        x = floats(self._value(value))
        logits = self.logits + x * 0                       # of the shape of both
        return -binary_cross_entropy_with_logits(logits, x.expand(*logits.shape), reduction="none")

    @property
    def param_shape(self) -> tuple[int, ...]:
        """Shape of `probs`."""
        return self.probs.shape

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = create.tensor([0.0, 1.0], dtype=self.probs.dtype).reshape(2, *[1] * len(self.batch_shape))
        return values.expand(2, *self.batch_shape) if expand else values

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
