"""Transforms from all numbers to the sets that constraints describe.

    mlc.distributions.biject_to(constraints.positive)      # ExpTransform()
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mlc.distributions import combined_transforms as combined
from mlc.distributions import constraints, transforms
from mlc.distributions import transforms_of_vectors as vectors
from mlc.distributions.constraints import Constraint
from mlc.distributions.transforms import Transform
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError, UserTypeError

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """Table of transforms from unconstrained numbers to the sets of constraints.

    Example:
        >>> D = mlc.distributions
        >>> D.transform_to(D.constraints.simplex)
        SoftmaxTransform()
    """

    def __init__(self) -> None:
        self._factories: dict[Any, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Register a function that makes the transform to a set.

        Args:
            constraint: A constraint, or a class of constraints.
            factory: Function of a constraint that makes the transform; without it, a decorator is returned.

        Returns:
            The factory.

        Raises:
            UserTypeError: `constraint` is none (MLC0784).

        Example:
            >>> class Even(mlc.distributions.constraints.Constraint):
            ...     pass
            >>> _ = mlc.distributions.transform_to.register(Even, lambda c: mlc.distributions.AffineTransform(0.0, 2.0))
            >>> mlc.distributions.transform_to(Even())(mlc.tensor(3.0))
            tensor(6., dtype=mlc.float32)
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise UserTypeError(f"a transform is registered for constraints, found {constraint!r}", code="MLC0784",
                                loc=user_loc())
        self._factories[_key(constraint)] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """The transform to a set."""
        factory = self._factories.get(_key(constraint)) or self._factories.get(type(constraint))
        if factory is None:
            raise UserError(f"there is no transform to {constraint!r}", code="MLC0784", loc=user_loc(),
                            hint="register one: transform_to.register(constraint, factory)")
        return factory(constraint)


def _key(constraint: Any) -> Any:
    """Key of a constraint in the table: itself if it is one of a function, else its class."""
    return id(constraint) if isinstance(constraint, constraints.PredicateConstraint) else (
        constraint if isinstance(constraint, type) else type(constraint))


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _to_interval(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, int | float) and isinstance(high, int | float) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return combined.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def _above(constraint: Any) -> Transform:
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    bound = constraint.lower_bound
    exp = transforms.ExpTransform()
    return exp if isinstance(bound, float) and bound == 0 else combined.ComposeTransform([exp, shift])


def _below(constraint: Any) -> Transform:
    return combined.ComposeTransform([transforms.ExpTransform(),
                                      transforms.AffineTransform(constraint.upper_bound, -1)])


def _independent(registry: ConstraintRegistry, c: Any) -> Transform:
    return combined.IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims)


def _cat(registry: ConstraintRegistry, c: Any) -> Transform:
    return combined.CatTransform([registry(x) for x in c.cseq], c.dim, c.lengths)


def _stack(registry: ConstraintRegistry, c: Any) -> Transform:
    return combined.StackTransform([registry(x) for x in c.cseq], c.dim)


for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda c: combined.identity_transform)
    for _above_kind in (constraints.greater_than, constraints.greater_than_eq):
        _registry.register(_above_kind, _above)
    _registry.register(constraints.less_than, _below)
    for _interval_kind in (constraints.interval, constraints.half_open_interval):
        _registry.register(_interval_kind, _to_interval)
    _registry.register(constraints.corr_cholesky, lambda c: vectors.CorrCholeskyTransform())
    _registry.register(constraints.independent, functools.partial(_independent, _registry))
    _registry.register(constraints.cat, functools.partial(_cat, _registry))
    _registry.register(constraints.stack, functools.partial(_stack, _registry))
biject_to.register(constraints.simplex, lambda c: vectors.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: vectors.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: vectors.LowerCholeskyTransform())
for _definite in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_definite, lambda c: vectors.PositiveDefiniteTransform())
