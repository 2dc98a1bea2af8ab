"""Transforms of vectors and matrices: probabilities, and factors of covariance and correlation matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlc
from mlc.distributions import constraints
from mlc.distributions.transforms import MonotoneTransform, Transform
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError


class SoftmaxTransform(Transform):
    """y = exp(x) / sum(exp(x)), whose inverse is log(y).

    Args:
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> mlc.distributions.SoftmaxTransform()(mlc.tensor([0.0, 0.0]))
        tensor([0.5, 0.5], dtype=mlc.float32)
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Tensor:
        return mlc.softmax(x, -1)

    def _inverse(self, y: Any) -> Tensor:
        return mlc.log(y)


class StickBreakingTransform(Transform):
    """Vector of numbers to a vector of one more probability: each number says what part of the rest is broken off.

    Args:
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> mlc.distributions.StickBreakingTransform()(mlc.tensor([0.0]))
        tensor([0.5, 0.5], dtype=mlc.float32)
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _parts(self, x: Any) -> Tensor:
        offset = x.shape[-1] + 1 - mlc.ones_like(x).cumsum(-1)
        info = mlc.finfo(x.dtype)
        return mlc.sigmoid(x - mlc.log(offset)).clamp(info.tiny, 1 - info.eps)

    def _call(self, x: Any) -> Tensor:
        z = self._parts(x)
        one = mlc.ones_like(z[..., :1])
        return mlc.cat([z, one], -1) * mlc.cat([one, (1 - z).cumprod(-1)], -1)

    def _inverse(self, y: Any) -> Tensor:
        cropped = y[..., :-1]
        offset = y.shape[-1] - mlc.ones_like(cropped).cumsum(-1)
        rest = (1 - cropped.cumsum(-1)).clamp(min=mlc.finfo(y.dtype).tiny)
        return mlc.log(cropped) - mlc.log(rest) + mlc.log(offset)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        offset = x.shape[-1] + 1 - mlc.ones_like(x).cumsum(-1)
        x = x - mlc.log(offset)
        return (-x + mlc.nn.functional.logsigmoid(x) + mlc.log(y[..., :-1])).sum(-1)  # type: ignore[no-any-return]

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return *shape[:-1], shape[-1] + 1

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return *shape[:-1], shape[-1] - 1


class LowerCholeskyTransform(Transform):
    """Square matrix to a lower triangular one with exp of its diagonal.

    Args:
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> mlc.distributions.LowerCholeskyTransform()(mlc.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]], dtype=mlc.float32)
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Tensor:
        return mlc.tril(x, -1) + mlc.diag_embed(mlc.exp(mlc.diagonal(x, dim1=-2, dim2=-1)))

    def _inverse(self, y: Any) -> Tensor:
        return mlc.tril(y, -1) + mlc.diag_embed(mlc.log(mlc.diagonal(y, dim1=-2, dim2=-1)))


class PositiveDefiniteTransform(Transform):
    """Square matrix to L @ L.T, where L is that of `LowerCholeskyTransform`.

    Args:
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> mlc.distributions.PositiveDefiniteTransform()(mlc.zeros(1, 1))
        tensor([[1.]], dtype=mlc.float32)
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Tensor:
        return LowerCholeskyTransform().inv(mlc.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vector of n * (n - 1) / 2 numbers to the Cholesky factor of a correlation matrix of size n.

    Args:
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> mlc.distributions.CorrCholeskyTransform()(mlc.tensor([0.0]))
        tensor([[1., 0.],
                [0., 1.]], dtype=mlc.float32)
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Tensor:
        eps = mlc.finfo(x.dtype).eps
        r = _matrix(mlc.tanh(x).clamp(-1 + eps, 1 - eps))
        rest = mlc.sqrt(1 - r * r).cumprod(-1)
        r = r + mlc.eye(r.shape[-1], dtype=r.dtype)
        return r * mlc.nn.functional.pad(rest[..., :-1], [1, 0], value=1.0)

    def _inverse(self, y: Any) -> Tensor:
        rest = mlc.nn.functional.pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1.0)
        t = _vector(y) / mlc.sqrt(_vector(rest))
        return (mlc.log1p(t) - mlc.log1p(-t)) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        stick = 0.5 * mlc.log(_vector(1 - (y * y).cumsum(-1), -2)).sum(-1)
        tanh = -2 * (x + mlc.nn.functional.softplus(-2 * x) - mlc.log(mlc.tensor(2.0))).sum(-1)
        return stick + tanh  # type: ignore[no-any-return]

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise UserError(f"{shape[-1]} numbers are no triangle", code="MLC0784", loc=user_loc())
        return *shape[:-1], n, n

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return *shape[:-2], shape[-1] * (shape[-1] - 1) // 2


def _matrix(x: Tensor) -> Tensor:
    """Strictly lower triangular matrix with the elements of a vector."""
    n = round((0.25 + 2 * x.shape[-1]) ** 0.5 + 0.5)
    places = [[i * (i - 1) // 2 + j if j < i else x.shape[-1] for j in range(n)] for i in range(n)]
    padded = mlc.nn.functional.pad(x, [0, 1])
    return padded[..., mlc.tensor(places)]


def _vector(x: Tensor, diagonal: int = -1) -> Tensor:
    """Elements of a matrix up to a diagonal."""
    n = x.shape[-1]
    places = [i * n + j for i in range(n) for j in range(i + 1 + diagonal)]
    return x.flatten(-2)[..., mlc.tensor(places, dtype="int64")]


class CumulativeDistributionTransform(MonotoneTransform):
    """y = cdf(x) of a distribution.

    Args:
        distribution: The distribution, of numbers.
        cache_size: As of `Transform`.

    Raises:
        UserError: `cache_size` is neither 0 nor 1 (MLC0784).

    Example:
        >>> t = mlc.distributions.CumulativeDistributionTransform(mlc.distributions.Normal(0.0, 1.0))
        >>> t(mlc.tensor(0.0))
        tensor(0.5, dtype=mlc.float32)
    """

    codomain = constraints.unit_interval

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self.distribution.support

    def _call(self, x: Any) -> Tensor:
        return self.distribution.cdf(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Any) -> Tensor:
        return self.distribution.icdf(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return self.distribution.log_prob(x)  # type: ignore[no-any-return]
