"""Categorical distribution: an index, each with a probability of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

from mlc.distributions import constraints
from mlc.distributions.distribution import Distribution, floats
from mlc.frontend.element_types import finfo
from mlc.frontend.functions import create, neural
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.index import gather
from mlc.frontend.functions.random_trials import multinomial
from mlc.frontend.inspection import broadcast_shapes
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError


class Categorical(Distribution):
    """Distribution of the indices from 0 up to the last size of its parameters.

    P(k) = probs[..., k] / sum_j probs[..., j], or softmax(logits)[..., k]. Samples are int64 of shape (*sample_shape,
    *batch), and have no derivative by the parameters; `log_prob` has, which is what policy gradients use.

    Args:
        probs: Weights of at least 0, of shape (*batch, count), which are divided by their sum.
        logits: Logarithms of such weights; one of both is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or both of `probs` and `logits` are given (MLC0763), they have no dimension (MLC0763), or
            weights are negative, all 0, infinite or no numbers (MLC0761).

    Example:
        >>> d = mlc.distributions.Categorical(mlc.tensor([1.0, 3.0]))
        >>> d.probs
        tensor([0.25, 0.75], dtype=mlc.float32)
        >>> d.sample((5,)).shape
        (5,)
    """

    arg_constraints = MappingProxyType({"probs": constraints.simplex, "logits": constraints.real_vector})
    has_enumerate_support = True

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The indices."""
        return constraints.integer_interval(0, self.probs.shape[-1] - 1)

    def __init__(self, probs: Operand = None, logits: Operand = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise UserError("a distribution is given either probs or logits", code="MLC0763", loc=user_loc())
        weights = floats(logits if probs is None else probs)
        if not weights.ndim:
            raise UserError("the weights of categories have no dimension", code="MLC0763", loc=user_loc(),
                            hint="their last dimension numbers the categories")
        super().__init__(weights.shape[:-1], (), validate_args)
        self._names = ("logits",) if probs is None else ("probs",)
        if probs is None:
            self.logits = weights - R.logsumexp(weights, -1, True)
            self._check(self.logits == self.logits, "logits are NaN, infinite, or all -infinity")
            self.probs = neural.softmax(weights, -1)
            return
        total = R.sum(weights, -1, keepdim=True)
        self._check((weights >= 0).all(-1) & (total[..., 0] > 0) & (total[..., 0] < math.inf),
                    "probs are negative, all 0, infinite or NaN")
        self.probs = weights / total
        # the least positive probability keeps the logarithm of an impossible category finite, as in PyTorch
        eps = finfo(self.probs.dtype).eps
        self.logits = E.log(E.clamp(self.probs, eps, 1 - eps))

    @property
    def param_shape(self) -> tuple[int, ...]:
        """Shape of `probs`."""
        return self.probs.shape

    @property
    def mean(self) -> Tensor:
        """NaN: indices are names and no numbers."""
        return create.full(self.batch_shape, math.nan, dtype=self.probs.dtype)

    @property
    def mode(self) -> Tensor:
        """Most probable index."""
        return R.argmax(self.probs, -1)

    @property
    def variance(self) -> Tensor:
        """NaN: indices are names and no numbers."""
        return create.full(self.batch_shape, math.nan, dtype=self.probs.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        count, rows = math.prod(sample_shape), math.prod(self.batch_shape)
        drawn = multinomial(self.probs.detach().reshape(rows, self.probs.shape[-1]), count, True)
        return drawn.t().reshape(shape)

    def log_prob(self, value: Operand) -> Tensor:
        index = E.cast_to(self._value(value), "int64")
        shape = broadcast_shapes(index.shape, self.batch_shape)
        logits = self.logits.expand(*shape, self.probs.shape[-1])
        return gather(logits, -1, index.expand(*shape).unsqueeze(-1)).squeeze(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self.probs.shape[-1]
        values = create.arange(count).reshape(count, *[1] * len(self.batch_shape))
        return values.expand(count, *self.batch_shape) if expand else values

    def entropy(self) -> Tensor:
        return -R.sum(E.clamp(self.logits, finfo(self.logits.dtype).min) * self.probs, -1)
