"""Base of distributions: shapes, and the checks of parameters and values."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from mlc.distributions.constraints import Constraint, dependent, is_dependent
from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.shape import broadcast_tensors
from mlc.frontend.location import user_loc
from mlc.frontend.size import Size
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import state as recording
from mlc.ir.diag import UserError, UserTypeError


class Distribution:
    """Base class of probability distributions. A subclass defines what it has of `rsample`, `log_prob` and the like.

    Args:
        batch_shape: Shape of the parameters: one distribution for each of their elements.
        event_shape: Shape of one draw from one of these distributions.
        validate_args: Whether parameters and values are checked; None for yes.

    Example:
        >>> mlc.distributions.Distribution((2,)).batch_shape
        mlc.Size([2])
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: Any = MappingProxyType({})
    """The sets that parameters belong to, by their names."""
    support: Any = dependent
    """The set of the values."""
    _names: tuple[str, ...] = ()
    """The arguments that the distribution was made with, which `expand` expands."""
    _validates = True

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (),
                 validate_args: bool | None = None) -> None:
        self.batch_shape, self.event_shape = Size(batch_shape), Size(event_shape)
        self.validate_args = self._validates if validate_args is None else bool(validate_args)
        for name, constraint in self.arg_constraints.items():
            value = vars(self).get(name)
            if isinstance(value, Tensor) and not is_dependent(constraint):
                self._checks(constraint, value, name)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether parameters and values are checked where `validate_args` is None.

        Args:
            value: Whether they are.

        Example:
            >>> mlc.distributions.Distribution.set_default_validate_args(True)
        """
        Distribution._validates = bool(value)

    def _take(self, validate_args: bool | None, **params: Any) -> None:
        """Keep parameters as attributes, broadcast with one another, and check them: each is a number of an event."""
        for name, x in zip(params, broadcast(*params.values())):
            setattr(self, name, x)
        self._names = tuple(params)
        Distribution.__init__(self, getattr(self, self._names[0]).shape, (), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """Make a distribution of a greater batch, whose parameters are views of these.

        Args:
            batch_shape: Shape that the shape of the batch broadcasts to.

        Returns:
            Distribution of the same class.

        Example:
            >>> mlc.distributions.Normal(0.0, 1.0).expand((2, 3)).batch_shape
            mlc.Size([2, 3])
        """
        made = type(self)(**{name: self._expanded(getattr(self, name), batch_shape) for name in self._names},
                          validate_args=False)
        made.validate_args = self.validate_args
        return made

    def _expanded(self, x: Any, batch_shape: Sequence[int]) -> Any:
        if isinstance(x, Distribution):
            return x.expand((*batch_shape, *x.batch_shape[len(self.batch_shape):]))
        return x.expand(*batch_shape, *x.shape[len(self.batch_shape):]) if isinstance(x, Tensor) else x

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """List all values of a discrete distribution.

        Args:
            expand: Whether they are repeated for each element of the batch, rather than of shape (count, 1, ...).

        Returns:
            Tensor of shape (count, *batch_shape, *event_shape).

        Raises:
            UserError: There is no such list (MLC0762).

        Example:
            >>> mlc.distributions.Bernoulli(mlc.tensor([0.2, 0.7])).enumerate_support(expand=False)
            tensor([[0.],
                    [1.]], dtype=mlc.float32)
        """
        self._lacks("enumerate_support")

    @property
    def mean(self) -> Tensor:
        """Expected value, sum or integral of x * p(x), of the shape of the batch and of an event.

        Raises:
            UserError: The class does not have it (MLC0762).

        Example:
            >>> mlc.distributions.Gamma(3.0, 2.0).mean
            tensor(1.5, dtype=mlc.float32)
        """
        self._lacks("mean")

    @property
    def mode(self) -> Tensor:
        """Most probable value, or that of the greatest density.

        Raises:
            UserError: The class does not have it (MLC0762).

        Example:
            >>> mlc.distributions.Gamma(3.0, 2.0).mode
            tensor(1., dtype=mlc.float32)
        """
        self._lacks("mode")

    @property
    def variance(self) -> Tensor:
        """Expected squared deviation from the mean, E[(x - mean)**2]; of vectors that of each element.

        Raises:
            UserError: The class does not have it (MLC0762).

        Example:
            >>> mlc.distributions.Gamma(3.0, 2.0).variance
            tensor(0.75, dtype=mlc.float32)
        """
        self._lacks("variance")

    @property
    def stddev(self) -> Tensor:
        """Standard deviation, the square root of the variance.

        Raises:
            UserError: The class has no variance (MLC0762).

        Example:
            >>> mlc.distributions.Exponential(4.0).stddev
            tensor(0.25, dtype=mlc.float32)
        """
        return E.sqrt(self.variance)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values, without a gradient.

        Args:
            sample_shape: Shape of independent draws, which comes before the shapes of the batch and of an event.

        Returns:
            Tensor of shape (*sample_shape, *batch_shape, *event_shape).

        Raises:
            UserError: A function is being recorded (MLC0716), or a size is negative (MLC0358).
            UserTypeError: `sample_shape` is no tuple or list (MLC0355).

        Example:
            >>> mlc.distributions.Normal(mlc.zeros(3), 1.0).sample((2,)).shape
            (2, 3)
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values as a function of the parameters, so that a gradient flows to them, as of loc + scale * noise.

        (Kingma and Welling 2014, "Auto-Encoding Variational Bayes", section 2.4.)

        Args:
            sample_shape: Shape of independent draws, which comes before the shapes of the batch and of an event.

        Returns:
            Tensor of shape (*sample_shape, *batch_shape, *event_shape).

        Raises:
            UserError: Values of this distribution have no such gradient (MLC0762), or a function is being recorded
                (MLC0716).

        Example:
            >>> loc = mlc.tensor(0.0, requires_grad=True)
            >>> mlc.distributions.Normal(loc, 1.0).rsample((4,)).sum().backward()
            >>> loc.grad
            tensor(4., dtype=mlc.float32)
        """
        self._lacks("rsample")

    def log_prob(self, value: Operand) -> Tensor:
        """Logarithm of the probability, or of its density, at a value.

        Args:
            value: Tensor that can be broadcast with the batch.

        Returns:
            Tensor of floats.

        Raises:
            UserError: The value is impossible, or its last sizes are not those of an event (MLC0761).

        Example:
            >>> mlc.distributions.Uniform(0.0, 2.0).log_prob(mlc.tensor(1.5)).exp()
            tensor(0.5, dtype=mlc.float32)
        """
        self._lacks("log_prob")

    def cdf(self, value: Operand) -> Tensor:
        """Probability of values up to this one: P(x <= value).

        Args:
            value: Tensor that can be broadcast with the batch.

        Returns:
            Tensor of floats.

        Raises:
            UserError: The distribution does not have it (MLC0762), or the value is impossible (MLC0761).

        Example:
            >>> mlc.distributions.Normal(0.0, 1.0).cdf(mlc.tensor(0.0))
            tensor(0.5, dtype=mlc.float32)
        """
        self._lacks("cdf")

    def icdf(self, value: Operand) -> Tensor:
        """Inverse of `cdf`: the value up to which there is this probability.

        Args:
            value: Tensor of probabilities that can be broadcast with the batch; they are not checked.

        Returns:
            Tensor of floats, without a meaning, mostly NaN, where `value` is no probability.

        Raises:
            UserError: The distribution does not have it (MLC0762).

        Example:
            >>> mlc.distributions.Uniform(0.0, 2.0).icdf(mlc.tensor(0.75))
            tensor(1.5, dtype=mlc.float32)
        """
        self._lacks("icdf")

    def entropy(self) -> Tensor:
        """Entropy in nats, the expected value of -log_prob(x); of densities it may be negative.

        Returns:
            Tensor of floats, of the shape of the batch.

        Raises:
            UserError: The class does not have it (MLC0762).

        Example:
            >>> mlc.distributions.Bernoulli(0.5).entropy()
            tensor(0.6931472, dtype=mlc.float32)
        """
        self._lacks("entropy")

    def perplexity(self) -> Tensor:
        """Exponential of the entropy: the number of equally probable values that would have the same.

        Returns:
            Tensor of floats, of the shape of the batch.

        Raises:
            UserError: The class has no entropy (MLC0762).

        Example:
            >>> mlc.distributions.Categorical(mlc.full((6,), 1 / 6)).perplexity()
            tensor(6., dtype=mlc.float32)
        """
        return E.exp(self.entropy())

    def _extended_shape(self, sample_shape: Sequence[int]) -> tuple[int, ...]:
        if not isinstance(sample_shape, tuple | list):
            raise UserTypeError(f"sample_shape is {type(sample_shape).__name__} {sample_shape!r}, expected sizes"[:200],
                                code="MLC0355", loc=user_loc(), hint="pass them in a tuple, as in sample((3,))")
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def _lacks(self, what: str) -> NoReturn:
        raise UserError(f"{type(self).__name__} has no {what}", code="MLC0762", loc=user_loc())

    def _checks(self, constraint: Constraint, value: Tensor, name: str) -> None:
        """UserError (MLC0761) unless a value belongs to a set."""
        if self.validate_args and recording.trace is None:
            self._check(constraint.check(value), f"{name} is not within {constraint!r}")

    def _value(self, value: Operand) -> Tensor:
        """A value that the distribution is asked about, checked."""
        x = as_tensor(value)
        if self.validate_args and recording.trace is None:
            if x.shape[max(x.ndim - len(self.event_shape), 0):] != self.event_shape:
                raise UserError(f"{type(self).__name__}: the value has shape {list(x.shape)}, and an event has shape "
                                f"{list(self.event_shape)}", code="MLC0761", loc=user_loc(),
                                hint="the last sizes of a value are those of an event")
            self._checks(self.support, x, "the value")
        return x

    def _check(self, valid: Tensor, what: str) -> None:
        """UserError (MLC0761) unless a condition holds everywhere; while a function is recorded, nothing is checked."""
        if self.validate_args and recording.trace is None and not bool(valid.all()):
            raise UserError(f"{type(self).__name__}: {what}", code="MLC0761", loc=user_loc(),
                            hint="with validate_args=False nothing is checked")

    def __repr__(self) -> str:
        held = {name: vars(self)[name] for name in self.arg_constraints if name in vars(self)}
        shown = (f"{name}: {x if x.numel() == 1 else x.shape}" for name, x in held.items())
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """Base class of distributions with a density exp(sum(t(x) * natural parameters) - normalizer + carrier(x)).

    Args:
        batch_shape: Shape of the parameters: one distribution for each of their elements.
        event_shape: Shape of one draw from one of these distributions.
        validate_args: Whether parameters and values are checked; None for yes.

    Example:
        >>> isinstance(mlc.distributions.Gamma(1.0, 1.0), mlc.distributions.ExponentialFamily)
        True
    """


def as_tensor(x: Any) -> Tensor:
    """A value as a tensor; numbers are float32."""
    return x if isinstance(x, Tensor) else create.asarray(x)


def floats(x: Any) -> Tensor:
    """A parameter as a tensor of floats."""
    out = create.asarray(x)
    return out if out.is_floating_point() else E.cast_to(out, "float32")


def broadcast(*params: Any) -> Sequence[Tensor]:
    """Parameters as tensors of one shape; numbers take the dtype of the first tensor of floats."""
    dtype = next((x.dtype for x in params if isinstance(x, Tensor) and x.is_floating_point()), None)
    return broadcast_tensors(*(floats(x) if (isinstance(x, Tensor) and x.is_floating_point()) or dtype is None
                               else E.cast_to(create.asarray(x), dtype) for x in params))
