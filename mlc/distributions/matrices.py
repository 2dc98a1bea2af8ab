"""Distributions of matrices: covariance matrices, and factors of correlation matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import mlc
from mlc.distributions import constraints
from mlc.distributions.distribution import Distribution, ExponentialFamily, floats
from mlc.distributions.gamma_sampling import standard_gamma
from mlc.distributions.multivariate_normal import factor_of, half_log_det, one_of
from mlc.distributions.unit_interval import Beta
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError


class Wishart(ExponentialFamily):
    """Wishart distribution: that of the sum of x @ x.T over df normal vectors x of mean 0.

    Args:
        df: Degrees of freedom, above n - 1.
        covariance_matrix: Covariance matrix of x, of shape (*batch, n, n), positive definite.
        precision_matrix: Its inverse.
        scale_tril: Its Cholesky factor; one of the three is given.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: None or several of the matrices are given (MLC0763), or a parameter is out of range (MLC0761).

    Example:
        >>> mlc.distributions.Wishart(mlc.tensor(3.0), covariance_matrix=mlc.eye(2)).mean
        tensor([[3., 0.],
                [0., 3.]], dtype=mlc.float32)
    """

    arg_constraints = MappingProxyType({
        "df": constraints.positive, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky})
    support = constraints.positive_definite
    has_rsample = True

    def __init__(self, df: Operand, covariance_matrix: Operand = None, precision_matrix: Operand = None,
                 scale_tril: Operand = None, validate_args: bool | None = None) -> None:
        name, matrix = one_of(covariance_matrix=covariance_matrix, precision_matrix=precision_matrix,
                              scale_tril=scale_tril)
        freedom = floats(df).to(matrix.dtype)
        batch = mlc.broadcast_shapes(matrix.shape[:-2], freedom.shape)
        self.df = freedom.expand(*batch)
        setattr(self, name, matrix.expand(*batch, *matrix.shape[-2:]))
        self._names = "df", name
        super().__init__(batch, matrix.shape[-2:], validate_args)
        self._check(self.df > self.event_shape[-1] - 1, f"df is not above {self.event_shape[-1] - 1}")
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
        return matrix.expand(*self.batch_shape, *self.event_shape)

    def _each(self, x: Tensor) -> Tensor:
        return x.reshape(*self.batch_shape, 1, 1)

    @property
    def mean(self) -> Tensor:
        """df times the covariance matrix."""
        return self._each(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """df - n - 1 times the covariance matrix where that is positive, NaN elsewhere."""
        factor = self.df - self.event_shape[-1] - 1
        return self._each(mlc.where(factor > 0, factor, math.nan)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """df * (V[i, j]**2 + V[i, i] * V[j, j])."""
        v = self.covariance_matrix
        diagonal = mlc.diagonal(v, dim1=-2, dim2=-1)
        return self._each(self.df) * (v ** 2 + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        n, shape = self.event_shape[-1], self._extended_shape(sample_shape)
        freedom = self.df.unsqueeze(-1) - mlc.arange(n, dtype=self.df.dtype)
        chi2 = 2 * standard_gamma((freedom / 2).expand(*shape[:-1]))
        below = mlc.tril(mlc.randn(*shape, dtype=self.df.dtype), -1)
        root = self._factor @ (mlc.diag_embed(mlc.sqrt(chi2.clamp(min=mlc.finfo(chi2.dtype).eps))) + below)
        return root @ root.mT

    def log_prob(self, value: Operand) -> Tensor:
        x, n, df = self._value(value), self.event_shape[-1], self.df
        trace = mlc.diagonal(mlc.cholesky_solve(x, self._factor), dim1=-2, dim2=-1).sum(-1)
        found: Tensor = (-df * (n * math.log(2) / 2 + half_log_det(self._factor)) - mlc.mvlgamma(df / 2, n)
                         + (df - n - 1) / 2 * mlc.linalg.slogdet(x)[1] - trace / 2)
        return found

    def entropy(self) -> Tensor:
        n, df = self.event_shape[-1], self.df
        halves = mlc.arange(n, dtype=df.dtype) / 2
        mvdigamma = mlc.digamma(df.unsqueeze(-1) / 2 - halves).sum(-1)
        found: Tensor = ((n + 1) * (n * math.log(2) / 2 + half_log_det(self._factor)) + mlc.mvlgamma(df / 2, n)
                         - (df - n - 1) / 2 * mvdigamma + df * n / 2)
        return found


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, whose density is that of det(matrix)**(concentration - 1).

    (Lewandowski, Kurowicka and Joe 2009, "Generating Random Correlation Matrices Based on Vines and Extended Onion
    Method".)

    Args:
        dim: Size of the matrices, at least 2.
        concentration: Concentration, positive; at 1, all correlation matrices are as probable.
        validate_args: Whether parameters and values are checked; None for yes.

    Raises:
        UserError: The size is below 2 (MLC0763), or the concentration is not positive (MLC0761).

    Example:
        >>> mlc.distributions.LKJCholesky(3, 0.5).sample().shape
        (3, 3)
    """

    arg_constraints = MappingProxyType({"concentration": constraints.positive})
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Operand = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise UserError(f"dim = {dim}, expected at least 2", code="MLC0763", loc=user_loc())
        self.dim, self.concentration = dim, floats(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)
        offset = (mlc.arange(dim, dtype=self.concentration.dtype) - 1).clamp(min=0)
        marginal = self.concentration.unsqueeze(-1) + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, marginal - 0.5 * offset)
        self._names = "dim", "concentration"

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with mlc.no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = mlc.tril(mlc.randn(*self._extended_shape(sample_shape), dtype=y.dtype), -1)
            length = mlc.norm(normal, dim=-1, keepdim=True)
            w: Any = mlc.sqrt(y) * normal / mlc.where(length == 0, 1.0, length)
            rest = (1 - (w ** 2).sum(-1)).clamp(min=mlc.finfo(y.dtype).tiny)
            return w + mlc.diag_embed(mlc.sqrt(rest))  # type: ignore[no-any-return]

    def log_prob(self, value: Operand) -> Tensor:
        n, concentration = self.dim, self.concentration
        diagonal = mlc.diagonal(self._value(value), dim1=-1, dim2=-2)[..., 1:]
        order = 2 * (concentration - 1).unsqueeze(-1) + n - mlc.arange(2, n + 1)
        alpha = concentration + 0.5 * (n - 1)
        normalizer = (0.5 * (n - 1) * math.log(math.pi) + mlc.mvlgamma(alpha - 0.5, n - 1)
                      - mlc.lgamma(alpha) * (n - 1))
        return (order * mlc.log(diagonal)).sum(-1) - normalizer
