"""Transforms: differentiable functions with an inverse and the logarithm of their determinant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mlc
from mlc.distributions import constraints
from mlc.distributions.constraints import Constraint
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError


class Transform:
    """Base class of transforms y = f(x). A subclass defines `_call`, `_inverse` and `log_abs_det_jacobian`.

    Args:
        cache_size: 1 to keep the last pair of x and y, so that the inverse of y is x itself; else 0.

    Attributes:
        domain: The set that x belongs to.
        codomain: The set that y belongs to.
        bijective: Whether every y comes from one x.
        sign: 1 or -1 for monotone functions of numbers: whether they increase.

    Example:
        >>> t = mlc.distributions.ExpTransform()
        >>> t(mlc.tensor(0.0)), t.inv(mlc.tensor(1.0))
        (tensor(1., dtype=mlc.float32), tensor(0., dtype=mlc.float32))
    """

    bijective = False
    domain: Any = constraints.real
    codomain: Any = constraints.real

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise UserError(f"cache_size = {cache_size}, expected 0 or 1", code="MLC0784", loc=user_loc())
        self._cache_size = cache_size
        self._cached: tuple[Any, Any] = (None, None)

    @property
    def event_dim(self) -> int:
        """Number of dimensions of an event, where x and y have the same."""
        return int(self.domain.event_dim)

    @property
    def inv(self) -> Transform:
        """The inverse."""
        return _Inverse(self)

    @property
    def sign(self) -> Any:
        """1 where the function increases, -1 where it decreases."""
        raise UserError(f"{type(self).__name__} is not monotone", code="MLC0784", loc=user_loc())

    def with_cache(self, cache_size: int = 1) -> Any:
        """Make the same transform with a cache of another size.

        Args:
            cache_size: 0 or 1.

        Returns:
            A transform.
        """
        if cache_size == self._cache_size:
            return self
        made = object.__new__(type(self))
        vars(made).update(vars(self), _cache_size=cache_size, _cached=(None, None))
        return made

    def __call__(self, x: Any) -> Tensor:
        if self._cache_size and self._cached[0] is x:
            return self._cached[1]  # type: ignore[no-any-return]
        y = self._call(x)
        self._cached = (x, y) if self._cache_size else self._cached
        return y

    def _inv_call(self, y: Any) -> Tensor:
        if self._cache_size and self._cached[1] is y:
            return self._cached[0]  # type: ignore[no-any-return]
        x = self._inverse(y)
        self._cached = (x, y) if self._cache_size else self._cached
        return x

    def _call(self, x: Any) -> Tensor:
        raise UserError(f"{type(self).__name__} defines no function", code="MLC0784", loc=user_loc())

    def _inverse(self, y: Any) -> Tensor:
        raise UserError(f"{type(self).__name__} has no inverse", code="MLC0784", loc=user_loc())

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """Logarithm of the absolute value of the determinant of the Jacobian matrix.

        Args:
            x: Argument.
            y: The function of it.

        Returns:
            Tensor without the dimensions of an event.

        Raises:
            UserError: The transform has none (MLC0784).
        """
        raise UserError(f"{type(self).__name__} has no log_abs_det_jacobian", code="MLC0784", loc=user_loc())

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Shape of y for a shape of x.

        Args:
            shape: Shape of x.

        Returns:
            Shape of y.
        """
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Shape of x for a shape of y.

        Args:
            shape: Shape of y.

        Returns:
            Shape of x.
        """
        return shape

    def __eq__(self, other: object) -> bool:
        def settings(t: Any) -> dict[str, Any]:
            return {n: x for n, x in vars(t).items() if not n.startswith("_cache")}
        if type(other) is not type(self):
            return False
        mine, theirs = settings(self), settings(other)
        return all(bool((x == theirs[n]).all()) if isinstance(x, Tensor) and isinstance(theirs[n], Tensor)
                   and x.shape == theirs[n].shape else x is theirs[n] or bool(mlc.tensor(x == theirs[n]).all())
                   for n, x in mine.items())

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    """Inverse of a transform."""

    def __init__(self, of: Transform) -> None:
        super().__init__(of._cache_size)
        self._of = of
        self.bijective = of.bijective

    @property
    def domain(self) -> Any:
        return self._of.codomain

    @property
    def codomain(self) -> Any:
        return self._of.domain

    @property
    def inv(self) -> Transform:
        return self._of

    @property
    def sign(self) -> Any:
        return self._of.sign

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._of.with_cache(cache_size).inv

    def __call__(self, x: Any) -> Tensor:
        return self._of._inv_call(x)

    def _inv_call(self, y: Any) -> Tensor:
        return self._of(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return -self._of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._of.forward_shape(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Inverse) and self._of == other._of

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{self._of!r}.inv"


class MonotoneTransform(Transform):
    """Base class of transforms of numbers that increase."""

    bijective = True
    domain = constraints.real

    @property
    def sign(self) -> Any:
        return 1


class ExpTransform(MonotoneTransform):
    """y = exp(x).

    Args:
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> mlc.distributions.ExpTransform()(mlc.tensor(0.0))
        tensor(1., dtype=mlc.float32)
    """

    codomain = constraints.positive

    def _call(self, x: Any) -> Tensor:
        return mlc.exp(x)

    def _inverse(self, y: Any) -> Tensor:
        return mlc.log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return x  # type: ignore[no-any-return]


class PowerTransform(MonotoneTransform):
    """y = x**exponent, for positive x.

    Args:
        exponent: The exponent.
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> mlc.distributions.PowerTransform(mlc.tensor(2.0))(mlc.tensor(3.0))
        tensor(9., dtype=mlc.float32)
    """

    domain = codomain = constraints.positive

    def __init__(self, exponent: Operand, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent: Any = mlc.asarray(exponent)

    @property
    def sign(self) -> Any:
        return mlc.sign(self.exponent)

    def _call(self, x: Any) -> Tensor:
        return x ** self.exponent  # type: ignore[no-any-return]

    def _inverse(self, y: Any) -> Tensor:
        return y ** (1 / self.exponent)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return mlc.log(mlc.abs(self.exponent * y / x))

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return mlc.broadcast_shapes(shape, self.exponent.shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return mlc.broadcast_shapes(shape, self.exponent.shape)


class SigmoidTransform(MonotoneTransform):
    """y = 1 / (1 + exp(-x)).

    Args:
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> mlc.distributions.SigmoidTransform()(mlc.tensor(0.0))
        tensor(0.5, dtype=mlc.float32)
    """

    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Tensor:
        info = mlc.finfo(x.dtype)
        return mlc.sigmoid(x).clamp(info.tiny, 1 - info.eps)

    def _inverse(self, y: Any) -> Tensor:
        info = mlc.finfo(y.dtype)
        y = y.clamp(info.tiny, 1 - info.eps)
        return mlc.log(y) - mlc.log1p(-y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        softplus = mlc.nn.functional.softplus
        return -softplus(-x) - softplus(x)


class SoftplusTransform(MonotoneTransform):
    """y = log(1 + exp(x)).

    Args:
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> mlc.distributions.SoftplusTransform()(mlc.tensor(0.0))
        tensor(0.6931472, dtype=mlc.float32)
    """

    codomain = constraints.positive

    def _call(self, x: Any) -> Tensor:
        return mlc.nn.functional.softplus(x)

    def _inverse(self, y: Any) -> Tensor:
        return mlc.log(-mlc.expm1(-y)) + y  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return -mlc.nn.functional.softplus(-x)


class TanhTransform(MonotoneTransform):
    """y = tanh(x).

    Args:
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> mlc.distributions.TanhTransform()(mlc.tensor(0.0))
        tensor(0., dtype=mlc.float32)
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Tensor:
        return mlc.tanh(x)

    def _inverse(self, y: Any) -> Tensor:
        return mlc.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return 2.0 * (math.log(2.0) - x - mlc.nn.functional.softplus(-2.0 * x))  # type: ignore[no-any-return]


class AbsTransform(Transform):
    """y = |x|.

    Args:
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> mlc.distributions.AbsTransform()(mlc.tensor(-2.0))
        tensor(2., dtype=mlc.float32)
    """

    codomain = constraints.positive

    def _call(self, x: Any) -> Tensor:
        return mlc.abs(x)

    def _inverse(self, y: Any) -> Tensor:
        return y  # type: ignore[no-any-return]


class AffineTransform(Transform):
    """y = loc + scale * x.

    Args:
        loc: What is added.
        scale: Factor.
        event_dim: Number of dimensions of an event.
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> mlc.distributions.AffineTransform(1.0, 2.0)(mlc.tensor(3.0))
        tensor(7., dtype=mlc.float32)
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def domain(self) -> Constraint:
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    @property
    def codomain(self) -> Constraint:
        return self.domain

    @property
    def sign(self) -> Any:
        return mlc.sign(self.scale) if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Any) -> Tensor:
        return self.loc + self.scale * x  # type: ignore[no-any-return]

    def _inverse(self, y: Any) -> Tensor:
        return (y - self.loc) / self.scale  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        if not isinstance(self.scale, Tensor):
            return sum_rightmost(mlc.full_like(x, math.log(abs(self.scale)) if self.scale else -math.inf),
                                 self._event_dim)
        logs = mlc.log(mlc.abs(self.scale)).expand(*mlc.broadcast_shapes(x.shape, self.scale.shape))
        return sum_rightmost(logs, self._event_dim)

    def _shape(self, shape: Sequence[int]) -> Sequence[int]:
        return mlc.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    forward_shape = inverse_shape = _shape


def sum_rightmost(x: Tensor, dims: int) -> Tensor:
    """The sum over the last dimensions."""
    return x.sum(tuple(range(-dims, 0))) if dims else x
