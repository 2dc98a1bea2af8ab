"""Transforms made of transforms: one after another, of parts, and of more dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mlc
from mlc.distributions import constraints
from mlc.distributions.constraints import Constraint
from mlc.distributions.transforms import Transform, sum_rightmost
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError


class ComposeTransform(Transform):
    """Transforms one after another.

    Args:
        parts: The transforms, the first of which is applied first.
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> D = mlc.distributions
        >>> D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)])(mlc.tensor(0.0))
        tensor(3., dtype=mlc.float32)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return math.prod((part.sign for part in self.parts), start=1)

    @property
    def domain(self) -> Constraint:
        return self._ends()[0]

    @property
    def codomain(self) -> Constraint:
        return self._ends()[1]

    def _ends(self) -> tuple[Constraint, Constraint]:
        """Domain and codomain, of as many dimensions as the parts need."""
        if not self.parts:
            return constraints.real, constraints.real
        first, last = self.parts[0].domain, self.parts[-1].codomain
        ahead = last.event_dim
        for part in reversed(self.parts):
            ahead = max(ahead + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        behind = first.event_dim
        for part in self.parts:
            behind = max(behind + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _widened(first, ahead - first.event_dim), _widened(last, behind - last.event_dim)

    def _call(self, x: Any) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x  # type: ignore[no-any-return]

    def _inverse(self, y: Any) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        if not self.parts:
            return mlc.zeros_like(x)
        terms, dims = list[Tensor](), self.domain.event_dim
        for i, part in enumerate(self.parts):
            after = y if i + 1 == len(self.parts) else part(x)
            terms.append(sum_rightmost(part.log_abs_det_jacobian(x, after), dims - part.domain.event_dim))
            dims += part.codomain.event_dim - part.domain.event_dim
            x = after
        return sum(terms[1:], terms[0])

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


class IndependentTransform(Transform):
    """A transform of events that have more dimensions, whose determinants are multiplied over these.

    Args:
        base_transform: The transform.
        reinterpreted_batch_ndims: Number of dimensions that an event has more.
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> D = mlc.distributions
        >>> t, x = D.IndependentTransform(D.ExpTransform(), 1), mlc.tensor([1.0, 2.0])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor(3., dtype=mlc.float32)
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.base_transform.bijective  # type: ignore[no-any-return]

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    @property
    def domain(self) -> Constraint:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Constraint:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    def _call(self, x: Any) -> Tensor:
        return self.base_transform(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Any) -> Tensor:
        return self.base_transform.inv(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.base_transform.forward_shape(shape)  # type: ignore[no-any-return]

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.base_transform.inverse_shape(shape)  # type: ignore[no-any-return]


class ReshapeTransform(Transform):
    """The elements of an event in another shape.

    Args:
        in_shape: Shape of an event.
        out_shape: Its new shape.
        cache_size: As of `Transform`.

    Raises:
        UserError: The shapes have different numbers of elements (MLC0784).

    Example:
        >>> mlc.distributions.ReshapeTransform((4,), (2, 2))(mlc.ones(3, 4)).shape
        (3, 2, 2)
    """

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise UserError(f"events of shape {list(in_shape)} and {list(out_shape)} have different numbers of "
                            "elements", code="MLC0784", loc=user_loc())

    @property
    def domain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Tensor:
        return x.reshape(*self.forward_shape(x.shape))  # type: ignore[no-any-return]

    def _inverse(self, y: Any) -> Tensor:
        return y.reshape(*self.inverse_shape(y.shape))  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return x.new_zeros(x.shape[:x.ndim - len(self.in_shape)])  # type: ignore[no-any-return]

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return *self._batch(shape, self.in_shape), *self.out_shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return *self._batch(shape, self.out_shape), *self.in_shape

    def _batch(self, shape: Sequence[int], event: tuple[int, ...]) -> Sequence[int]:
        cut = len(shape) - len(event)
        if cut < 0 or tuple(shape[cut:]) != event:
            raise UserError(f"a tensor of shape {list(shape)} has no events of shape {list(event)}", code="MLC0784",
                            loc=user_loc())
        return shape[:cut]


class CatTransform(Transform):
    """A transform for each piece along a dimension.

    Args:
        tseq: The transforms.
        dim: The dimension.
        lengths: Length of each piece; None for 1.
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> D = mlc.distributions
        >>> D.CatTransform([D.ExpTransform(), D.identity_transform], 0, [1, 2])(mlc.tensor([0.0, 2.0, 3.0]))
        tensor([1., 2., 3.], dtype=mlc.float32)
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None,
                 cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim, self.lengths = dim, [1] * len(self.transforms) if lengths is None else list(lengths)

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @property
    def domain(self) -> Constraint:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Constraint:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def _pieces(self, x: Any) -> Sequence[Any]:
        return mlc.split(x, self.lengths, self.dim)

    def _call(self, x: Any) -> Tensor:
        return mlc.cat([t(piece) for t, piece in zip(self.transforms, self._pieces(x))], self.dim)

    def _inverse(self, y: Any) -> Tensor:
        return mlc.cat([t.inv(piece) for t, piece in zip(self.transforms, self._pieces(y))], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        rows = zip(self.transforms, self._pieces(x), self._pieces(y))
        terms = [sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim) for t, a, b in rows]
        dim = self.dim if self.dim < 0 else self.dim - x.ndim
        dim += self.event_dim
        return mlc.cat(terms, dim) if dim < 0 else sum(terms[1:], terms[0])


class StackTransform(Transform):
    """A transform for each index of a dimension.

    Args:
        tseq: The transforms.
        dim: The dimension.
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> D = mlc.distributions
        >>> D.StackTransform([D.ExpTransform(), D.AbsTransform()])(mlc.tensor([0.0, -2.0]))
        tensor([1., 2.], dtype=mlc.float32)
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @property
    def domain(self) -> Constraint:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Constraint:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def _pieces(self, x: Any) -> Sequence[Any]:
        return mlc.unbind(x, self.dim)

    def _call(self, x: Any) -> Tensor:
        return mlc.stack([t(piece) for t, piece in zip(self.transforms, self._pieces(x))], self.dim)

    def _inverse(self, y: Any) -> Tensor:
        return mlc.stack([t.inv(piece) for t, piece in zip(self.transforms, self._pieces(y))], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        rows = zip(self.transforms, self._pieces(x), self._pieces(y))
        return mlc.stack([t.log_abs_det_jacobian(a, b) for t, a, b in rows], self.dim)


def _widened(constraint: Constraint, dims: int) -> Constraint:
    return constraints.independent(constraint, dims) if dims else constraint


identity_transform = ComposeTransform([])
