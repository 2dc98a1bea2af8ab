"""Constraints: sets of values, such as the parameters that a distribution takes, and those that it draws.

A constraint's `check` tells for each event, an element or a vector or matrix, whether it is in the set;
`mlc.distributions.biject_to` and `transform_to` give maps from all numbers onto it.

Example:
    >>> mlc.distributions.constraints.positive.check(mlc.tensor([-1.0, 2.0]))
    tensor([False,  True], dtype=mlc.bool)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlc
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError

__all__ = ["Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
           "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent",
           "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer",
           "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real",
           "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval"]


class Constraint:
    """Set of values of one event.

    Attributes:
        is_discrete: Whether it is a set of integers.
        event_dim: Number of dimensions of an event, over which `check` decides together.

    Example:
        >>> mlc.distributions.constraints.simplex.check(mlc.tensor([0.25, 0.75]))
        tensor(True, dtype=mlc.bool)
    """

    is_discrete = False
    event_dim = 0
    shown = ""

    def check(self, value: Tensor) -> Tensor:
        """Decide which events belong to the set.

        Args:
            value: Tensor of events.

        Returns:
            Tensor of bools, without the dimensions of an event.

        Raises:
            UserError: The set depends on what is not known (MLC0784).
        """
        raise UserError(f"{self!r} depends on parameters, and has no check of its own", code="MLC0784", loc=user_loc())

    def __repr__(self) -> str:
        return f"{self.shown or type(self).__name__.strip('_')}()"


class PredicateConstraint(Constraint):
    """Constraint of a function."""

    def __init__(self, shown: str, check: Callable[[Tensor], Tensor], is_discrete: bool = False,
                 event_dim: int = 0) -> None:
        self.shown, self._check, self.is_discrete, self.event_dim = shown, check, is_discrete, event_dim

    def check(self, value: Tensor) -> Tensor:
        return self._check(value)


class _Dependent(Constraint):
    """Set that depends on other parameters."""

    def __init__(self, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, is_discrete: bool = False, event_dim: int = 0) -> _Dependent:
        return _Dependent(is_discrete, event_dim)


def is_dependent(constraint: Constraint) -> bool:
    """Whether a set depends on parameters.

    Args:
        constraint: The set.

    Returns:
        A bool.

    Example:
        >>> C = mlc.distributions.constraints
        >>> C.is_dependent(C.dependent), C.is_dependent(C.real)
        (True, False)
    """
    return isinstance(constraint, _Dependent)


class dependent_property(property):
    """Property of a distribution that is a set which depends on its parameters; it decorates a method.

    Args:
        fn: The method; without it, a decorator is made.
        is_discrete: Whether it is a set of integers.
        event_dim: Number of dimensions of an event.

    Example:
        >>> class Below(mlc.distributions.Distribution):
        ...     @mlc.distributions.constraints.dependent_property(is_discrete=False, event_dim=0)
        ...     def support(self):
        ...         return mlc.distributions.constraints.less_than(3.0)
        >>> Below().support
        less_than(3.0)
    """

    def __init__(self, fn: Callable[[Any], Any] | None = None, *, is_discrete: bool = False,
                 event_dim: int = 0) -> None:
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[[Any], Any]) -> dependent_property:
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


class _Bounded(Constraint):
    """Numbers between bounds."""

    def __init__(self, *bounds: Any) -> None:
        self.bounds = bounds

    @property
    def lower_bound(self) -> Any:
        return self.bounds[0]

    @property
    def upper_bound(self) -> Any:
        return self.bounds[-1]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(str, self.bounds))})"


class greater_than(_Bounded):
    """Numbers above a bound.

    Args:
        bounds: The bound.

    Example:
        >>> mlc.distributions.constraints.greater_than(1.0).check(mlc.tensor([1.0, 2.0]))
        tensor([False,  True], dtype=mlc.bool)
    """

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound  # type: ignore[no-any-return]


class greater_than_eq(_Bounded):
    """Numbers from a bound on.

    Args:
        bounds: The bound.

    Example:
        >>> mlc.distributions.constraints.greater_than_eq(1.0).check(mlc.tensor([0.5, 1.0]))
        tensor([False,  True], dtype=mlc.bool)
    """

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound  # type: ignore[no-any-return]


class less_than(_Bounded):
    """Numbers below a bound.

    Args:
        bounds: The bound.

    Example:
        >>> mlc.distributions.constraints.less_than(1.0).check(mlc.tensor([0.5, 1.0]))
        tensor([ True, False], dtype=mlc.bool)
    """

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound  # type: ignore[no-any-return]


class interval(_Bounded):
    """Numbers between two bounds, which belong to it.

    Args:
        bounds: Lower and upper bound.

    Example:
        >>> mlc.distributions.constraints.interval(0.0, 1.0).check(mlc.tensor([0.0, 1.0, 1.5]))
        tensor([ True,  True, False], dtype=mlc.bool)
    """

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)  # type: ignore[no-any-return]


class half_open_interval(_Bounded):
    """Numbers between two bounds, of which the lower belongs to it.

    Args:
        bounds: Lower and upper bound.

    Example:
        >>> mlc.distributions.constraints.half_open_interval(0.0, 1.0).check(mlc.tensor([0.0, 1.0]))
        tensor([ True, False], dtype=mlc.bool)
    """

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)  # type: ignore[no-any-return]


class integer_interval(_Bounded):
    """Integers between two bounds, which belong to it.

    Args:
        bounds: Lower and upper bound.

    Example:
        >>> mlc.distributions.constraints.integer_interval(0, 3).check(mlc.tensor([0.0, 1.5, 3.0]))
        tensor([ True, False,  True], dtype=mlc.bool)
    """

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        found: Tensor = (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)
        return found


class multinomial(_Bounded):
    """Vectors of counts of at least 0 with a sum of at most a bound.

    Args:
        bounds: The bound.

    Example:
        >>> mlc.distributions.constraints.multinomial(3).check(mlc.tensor([[1.0, 2.0], [2.0, 2.0]]))
        tensor([ True, False], dtype=mlc.bool)
    """

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)  # type: ignore[no-any-return]


class independent(Constraint):
    """Set of events that have more dimensions: each part belongs to a base set.

    Args:
        base_constraint: The base set.
        reinterpreted_batch_ndims: Number of dimensions that an event has more.

    Example:
        >>> C = mlc.distributions.constraints
        >>> C.independent(C.positive, 1).check(mlc.tensor([[1.0, 2.0], [-1.0, 2.0]]))
        tensor([ True, False], dtype=mlc.bool)
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        found = self.base_constraint.check(value)
        for _ in range(self.reinterpreted_batch_ndims):
            found = found.all(-1)
        return found

    def __repr__(self) -> str:
        return f"independent({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class cat(Constraint):
    """Set of events whose pieces along a dimension belong to sets of their own.

    Args:
        cseq: The sets.
        dim: The dimension.
        lengths: Length of each piece; None for 1.

    Example:
        >>> C = mlc.distributions.constraints
        >>> C.cat([C.positive, C.real], 0, [1, 2]).check(mlc.tensor([-1.0, 2.0, -3.0]))
        tensor([False,  True,  True], dtype=mlc.bool)
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        pieces = mlc.split(value, self.lengths, self.dim)
        return mlc.cat([c.check(piece) for c, piece in zip(self.cseq, pieces)], self.dim)


class stack(Constraint):
    """Set of events that are stacked along a dimension, each of a set of its own.

    Args:
        cseq: The sets.
        dim: The dimension.

    Example:
        >>> C = mlc.distributions.constraints
        >>> C.stack([C.positive, C.real]).check(mlc.tensor([-1.0, -2.0]))
        tensor([False,  True], dtype=mlc.bool)
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        dim = max(c.event_dim for c in self.cseq)
        self.event_dim = dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        return mlc.stack([c.check(v) for c, v in zip(self.cseq, mlc.unbind(value, self.dim))], self.dim)


class MixtureSameFamilyConstraint(Constraint):
    """Set of the values of a mixture: those of its components.

    Args:
        base_constraint: Set of the values of the components, which may depend on the component.

    Example:
        >>> C = mlc.distributions.constraints
        >>> C.MixtureSameFamilyConstraint(C.positive).check(mlc.tensor([-1.0, 2.0]))
        tensor([False,  True], dtype=mlc.bool)
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return found.all(-1) if found.ndim > value.ndim - self.event_dim else found


def _simplex(value: Tensor) -> Tensor:
    return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


def _one_hot(value: Tensor) -> Tensor:
    return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


def _flat(valid: Tensor) -> Tensor:
    return valid.flatten(-2).all(-1)


def _square(value: Tensor) -> Tensor:
    return mlc.full(value.shape[:-2], value.shape[-1] == value.shape[-2], dtype=mlc.bool)


def _lower_triangular(value: Tensor) -> Tensor:
    return _flat(value.tril() == value)


def _lower_cholesky(value: Tensor) -> Tensor:
    return _lower_triangular(value) & (mlc.diagonal(value, dim1=-2, dim2=-1) > 0).all(-1)


def _corr_cholesky(value: Tensor) -> Tensor:
    tolerance = mlc.finfo(value.dtype).eps * value.shape[-1] * 10
    found: Tensor = _lower_cholesky(value) & ((mlc.norm(value, dim=-1) - 1).abs() < tolerance).all(-1)
    return found


def _symmetric(value: Tensor) -> Tensor:
    return _flat(mlc.isclose(value, value.transpose(-2, -1), atol=1e-6))


def _positive_semidefinite(value: Tensor) -> Tensor:
    """Eigenvalues of at least 0, but for rounding: an error is in proportion to the greatest of them."""
    found = mlc.linalg.eigvalsh(value)
    rounding = mlc.finfo(value.dtype).eps * value.shape[-1] * found.abs().amax(-1, keepdim=True)
    return _symmetric(value) & (found >= -rounding).all(-1)  # type: ignore[no-any-return]


def _positive_definite(value: Tensor) -> Tensor:
    return _symmetric(value) & (mlc.linalg.cholesky_ex(value)[1] == 0)


dependent = _Dependent()
boolean: Constraint = PredicateConstraint("boolean", lambda x: (x == 0) | (x == 1), True)
one_hot: Constraint = PredicateConstraint("one_hot", _one_hot, True, 1)
nonnegative_integer: Constraint = PredicateConstraint("nonnegative_integer", lambda x: (x % 1 == 0) & (x >= 0), True)
positive_integer: Constraint = PredicateConstraint("positive_integer", lambda x: (x % 1 == 0) & (x >= 1), True)
real: Constraint = PredicateConstraint("real", lambda x: x == x)
real_vector: Constraint = independent(real, 1)
positive: Constraint = greater_than(0.0)
nonnegative: Constraint = greater_than_eq(0.0)
unit_interval: Constraint = interval(0.0, 1.0)
simplex: Constraint = PredicateConstraint("simplex", _simplex, event_dim=1)
square: Constraint = PredicateConstraint("square", _square, event_dim=2)
lower_triangular: Constraint = PredicateConstraint("lower_triangular", _lower_triangular, event_dim=2)
lower_cholesky: Constraint = PredicateConstraint("lower_cholesky", _lower_cholesky, event_dim=2)
corr_cholesky: Constraint = PredicateConstraint("corr_cholesky", _corr_cholesky, event_dim=2)
symmetric: Constraint = PredicateConstraint("symmetric", _symmetric, event_dim=2)
positive_semidefinite: Constraint = PredicateConstraint("positive_semidefinite", _positive_semidefinite, event_dim=2)
positive_definite: Constraint = PredicateConstraint("positive_definite", _positive_definite, event_dim=2)
