"""Normal distributions of vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import mlc
from mlc.distributions import constraints
from mlc.distributions.distribution import Distribution, floats
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError


class MultivariateNormal(Distribution):
    """Normal distribution of vectors with a mean and a covariance matrix.

    The density is exp(-(x - loc).T @ inv(S) @ (x - loc) / 2) / sqrt((2 pi)^n * det(S)) for the covariance matrix S.
    Computations use its Cholesky factor L, so `scale_tril` is the cheapest to give; samples are loc + L @ randn(n).

    Args:
        loc: Mean, of shape (*batch, n).
        covariance_matrix: Covariance matrix, positive definite.
        precision_matrix: Its inverse.
        scale_tril: Its Cholesky factor; one of the three is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or several of the matrices are given (MLC0763), or one is not positive definite (MLC0761).

    Example:
        >>> d = mlc.distributions.MultivariateNormal(mlc.zeros(2), mlc.eye(2))
        >>> d.log_prob(mlc.zeros(2))
        tensor(-1.837877, dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky})
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Operand, covariance_matrix: Operand = None, precision_matrix: Operand = None,
                 scale_tril: Operand = None, validate_args: bool | None = None) -> None:
        self.loc = floats(loc)
        name, matrix = one_of(covariance_matrix=covariance_matrix, precision_matrix=precision_matrix,
                              scale_tril=scale_tril)
        if not self.loc.ndim:
            raise UserError("the mean has no dimension", code="MLC0763", loc=user_loc())
        batch = mlc.broadcast_shapes(matrix.shape[:-2], self.loc.shape[:-1])
        self.loc = self.loc.expand(*batch, self.loc.shape[-1])
        setattr(self, name, matrix.expand(*batch, *matrix.shape[-2:]))
        self._names = "loc", name
        super().__init__(batch, self.loc.shape[-1:], validate_args)
        self._factor = factor_of(name, matrix)

    def __getattr__(self, name: str) -> Tensor:
        if name == "scale_tril":
            return self._whole(self._factor)
        if name == "covariance_matrix":
            return self._whole(self._factor @ self._factor.mT)
        if name == "precision_matrix":
            eye = mlc.eye(self._factor.shape[-1], dtype=self._factor.dtype)
            return self._whole(mlc.cholesky_solve(eye, self._factor))
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}", name=name, obj=self)

    def _whole(self, matrix: Tensor) -> Tensor:
        return matrix.expand(*self.batch_shape, *matrix.shape[-2:])

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
        """Diagonal of the covariance matrix."""
        return (self._factor ** 2).sum(-1).expand(*self.batch_shape, *self.event_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = mlc.randn(*self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + (self._factor @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Operand) -> Tensor:
        distance = mahalanobis(self._factor, self._value(value) - self.loc)
        found: Tensor = -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()
        return found

    def _half_log_det(self) -> Tensor:
        return half_log_det(self._factor)

    def entropy(self) -> Tensor:
        found = 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()
        return found.expand(*self.batch_shape)  # type: ignore[no-any-return]


class LowRankMultivariateNormal(Distribution):
    """Normal distribution of vectors whose covariance matrix is W @ W.T + diag(d).

    Args:
        loc: Mean, of shape (*batch, n).
        cov_factor: The matrix W, of shape (*batch, n, rank).
        cov_diag: The vector d, positive.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: The shapes do not fit (MLC0763), or d is not positive (MLC0761).

    Example:
        >>> d = mlc.distributions.LowRankMultivariateNormal(mlc.zeros(2), mlc.ones(2, 1), mlc.ones(2))
        >>> d.covariance_matrix
        tensor([[2., 1.],
                [1., 2.]], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1)})
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Operand, cov_factor: Operand, cov_diag: Operand,
                 validate_args: bool | None = None) -> None:
        mean, w, d = floats(loc), floats(cov_factor), floats(cov_diag)
        if not mean.ndim or w.ndim < 2 or w.shape[-2] != mean.shape[-1] or d.shape[-1:] != mean.shape[-1:]:
            raise UserError(f"cov_factor of shape {list(w.shape)} and cov_diag of shape {list(d.shape)} do not fit a "
                            f"mean of shape {list(mean.shape)}", code="MLC0763", loc=user_loc())
        batch = mlc.broadcast_shapes(mean.shape[:-1], w.shape[:-2], d.shape[:-1])
        self.loc = mean.expand(*batch, mean.shape[-1])
        self.cov_factor, self.cov_diag = w.expand(*batch, *w.shape[-2:]), d.expand(*batch, d.shape[-1])
        self._names = "loc", "cov_factor", "cov_diag"
        super().__init__(batch, mean.shape[-1:], validate_args)

    @property
    def _capacitance(self) -> Tensor:
        """Cholesky factor of I + W.T @ diag(1 / d) @ W."""
        w = self.cov_factor
        eye = mlc.eye(w.shape[-1], dtype=w.dtype)
        return mlc.linalg.cholesky((w.mT / self.cov_diag.unsqueeze(-2)) @ w + eye)

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
        """Diagonal of the covariance matrix."""
        return (self.cov_factor ** 2).sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Tensor:
        """W @ W.T + diag(d)."""
        return self.cov_factor @ self.cov_factor.mT + mlc.diag_embed(self.cov_diag)

    @property
    def precision_matrix(self) -> Tensor:
        """Inverse of the covariance matrix."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        part = mlc.linalg.solve_triangular(self._capacitance, scaled, upper=False)
        return mlc.diag_embed(1 / self.cov_diag) - part.mT @ part

    @property
    def scale_tril(self) -> Tensor:
        """Cholesky factor of the covariance matrix."""
        return mlc.linalg.cholesky(self.covariance_matrix)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape, rank = self._extended_shape(sample_shape), self.cov_factor.shape[-1]
        inner = mlc.randn(*shape[:-1], rank, dtype=self.loc.dtype)
        outer = mlc.randn(*shape, dtype=self.loc.dtype)
        return self.loc + (self.cov_factor @ inner.unsqueeze(-1)).squeeze(-1) + mlc.sqrt(self.cov_diag) * outer

    def _log_det(self) -> Tensor:
        return 2 * half_log_det(self._capacitance) + mlc.log(self.cov_diag).sum(-1)

    def log_prob(self, value: Operand) -> Tensor:
        x = self._value(value) - self.loc
        scaled = ((self.cov_factor.mT / self.cov_diag.unsqueeze(-2)) @ x.unsqueeze(-1)).squeeze(-1)
        distance = (x ** 2 / self.cov_diag).sum(-1) - mahalanobis(self._capacitance, scaled)
        found: Tensor = -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)
        return found

    def entropy(self) -> Tensor:
        found: Tensor = 0.5 * (self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_det())
        return found


def one_of(**matrices: Any) -> tuple[str, Tensor]:
    """The one matrix that is given, and its name; UserError (MLC0763) otherwise."""
    given = [(name, floats(x)) for name, x in matrices.items() if x is not None]
    if len(given) != 1 or given[0][1].ndim < 2:
        raise UserError(f"one of {', '.join(matrices)} is given, as a matrix", code="MLC0763", loc=user_loc())
    return given[0]


def factor_of(name: str, matrix: Tensor) -> Tensor:
    """The Cholesky factor of a covariance matrix, which is given as this matrix."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return mlc.linalg.cholesky(matrix)
    turned = mlc.linalg.cholesky(matrix.flip(-2, -1)).flip(-2, -1).mT
    return mlc.linalg.solve_triangular(turned, mlc.eye(matrix.shape[-1], dtype=matrix.dtype), upper=False)


def mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """Squared length of the solution of factor @ y = x."""
    y = mlc.linalg.solve_triangular(factor, x.unsqueeze(-1), upper=False)
    return (y ** 2).sum((-2, -1))


def half_log_det(factor: Tensor) -> Tensor:
    """Logarithm of the determinant of a triangular matrix."""
    return mlc.log(mlc.diagonal(factor, dim1=-2, dim2=-1)).sum(-1)
