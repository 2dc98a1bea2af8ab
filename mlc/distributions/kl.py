"""Kullback-Leibler divergence: the table of pairs of classes, and the pairs of one family.

Pairs of different families of numbers are in `kl_of_numbers.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mlc
from mlc.distributions.bernoulli import Bernoulli
from mlc.distributions.categorical import Categorical
from mlc.distributions.composed import Independent
from mlc.distributions.counts import Binomial, Geometric, Poisson
from mlc.distributions.distribution import Distribution
from mlc.distributions.extreme import EULER, Gumbel, Pareto, Weibull
from mlc.distributions.gamma import Exponential, Gamma, InverseGamma
from mlc.distributions.half import HalfCauchy, HalfNormal
from mlc.distributions.matrices import Wishart
from mlc.distributions.multivariate_normal import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    half_log_det,
    mahalanobis,
)
from mlc.distributions.normal import Normal
from mlc.distributions.one_hot import OneHotCategorical
from mlc.distributions.symmetric import Cauchy, Laplace
from mlc.distributions.transformed_distribution import TransformedDistribution
from mlc.distributions.transforms import sum_rightmost
from mlc.distributions.unit_interval import Beta, Dirichlet, Kumaraswamy
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError, UserTypeError

Divergence = Callable[[Any, Any], Tensor]
TABLE: dict[tuple[type, type], Divergence] = {}
"""The divergences by the classes of both distributions."""


def register_kl(type_p: Any, type_q: Any) -> Callable[[Divergence], Divergence]:
    """Decorator that adds the divergence of two classes of distributions to the table.

    Args:
        type_p: Class of the first distribution.
        type_q: Class of the second.

    Returns:
        Decorator of a function of two distributions.

    Raises:
        UserTypeError: One is no class of distributions (MLC0784).

    Example:
        >>> D = mlc.distributions
        >>> class Unit(D.Normal):
        ...     pass
        >>> @D.register_kl(Unit, Unit)
        ... def divergence(p, q):
        ...     return (p.loc - q.loc) ** 2 / 2
        >>> D.kl_divergence(Unit(0.0, 1.0), Unit(2.0, 1.0))
        tensor(2., dtype=mlc.float32)
    """
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise UserTypeError(f"a divergence is of two classes of distributions, found {kind!r}", code="MLC0784",
                                loc=user_loc())

    def register(divergence: Divergence) -> Divergence:
        TABLE[type_p, type_q] = divergence
        return divergence

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Kullback-Leibler divergence: the mean of log(p(x) / q(x)) over values x of p.

    Args:
        p: Distribution of the values.
        q: Distribution that is compared with it.

    Returns:
        Tensor of the shape of the batch.

    Raises:
        UserError: There is no formula for the two (MLC0784).

    Example:
        >>> D = mlc.distributions
        >>> D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(mlc.tensor([0.0, 1.0]), 1.0))
        tensor([0. , 0.5], dtype=mlc.float32)
    """
    ranks = [(type(p).__mro__.index(a), type(q).__mro__.index(b), f) for (a, b), f in TABLE.items()
             if isinstance(p, a) and isinstance(q, b)]
    if not ranks:
        raise _missing(p, q)
    return min(ranks, key=lambda row: (row[0] + row[1], row[0]))[2](p, q)


def _missing(p: Distribution, q: Distribution) -> UserError:
    return UserError(f"there is no divergence of a {type(p).__name__} from this {type(q).__name__}", code="MLC0784",
                     loc=user_loc(), hint="estimate it: (p.log_prob(x) - q.log_prob(x)).mean(0) with "
                                          "x = p.sample((1000,))")


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    softplus = mlc.nn.functional.softplus
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    one = mlc.where(p.probs == 0, 0.0, mlc.where(q.probs == 0, math.inf, one))
    return one + mlc.where(p.probs == 1, 0.0, mlc.where(q.probs == 1, math.inf, zero))  # type: ignore[no-any-return]


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise _missing(p, q)
    found = p.total_count * (p.probs * (p.logits - q.logits) + mlc.log1p(-p.probs) - mlc.log1p(-q.probs))
    return mlc.where(p.total_count > q.total_count, math.inf, found)  # type: ignore[no-any-return]


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = mlc.where(q.probs == 0, math.inf, p.probs * (p.logits - q.logits))
    return mlc.where(p.probs == 0, 0.0, terms).sum(-1)  # type: ignore[no-any-return]


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    log_mean = mlc.digamma(a) - mlc.digamma(a.sum(-1, keepdim=True))
    return (mlc.lgamma(a.sum(-1)) - mlc.lgamma(b.sum(-1)) - (mlc.lgamma(a) - mlc.lgamma(b)).sum(-1)
            + ((a - b) * log_mean).sum(-1))


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - mlc.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (mlc.log(p.rate) - mlc.log(q.rate)) - (p.rate - q.rate)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * mlc.log(q.rate) - q.rate)


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _poisson_bounded(p: Poisson, q: Distribution) -> Tensor:
    return mlc.full_like(p.rate, math.inf)


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - mlc.log(ratio))


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - mlc.log(ratio)


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    return ((a - b) * mlc.digamma(a) + mlc.lgamma(b) - mlc.lgamma(a) + b * mlc.log(p.rate / q.rate)
            + a * (q.rate - p.rate) / p.rate)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    mine, theirs = (mlc.stack([x.concentration1, x.concentration0], -1) for x in (p, q))
    return _dirichlet(Dirichlet(mine, False), Dirichlet(theirs, False))


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return (distance - mlc.log(ratio) + EULER * (ratio - 1) - 1
            + mlc.exp(mlc.lgamma(1 + ratio) - distance))


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    found = q.alpha * mlc.log(p.scale / q.scale) + ratio - 1 - mlc.log(ratio)
    return mlc.where(p.scale >= q.scale, found, math.inf)  # type: ignore[no-any-return]


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio - 1 - mlc.log(ratio))


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, mlc.abs(p.loc - q.loc)
    return -mlc.log(ratio) + distance / q.scale + ratio * mlc.exp(-distance / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    return mlc.log((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) - mlc.log(4 * p.scale * q.scale)


@register_kl(HalfCauchy, HalfCauchy)
def _half_cauchy(p: HalfCauchy, q: HalfCauchy) -> Tensor:
    return 2 * mlc.log(p.scale + q.scale) - mlc.log(4 * p.scale * q.scale)


@register_kl(InverseGamma, InverseGamma)
def _inverse_gamma(p: InverseGamma, q: InverseGamma) -> Tensor:
    a, b = p.concentration, q.concentration
    return ((a - b) * mlc.digamma(a) - mlc.lgamma(a) + mlc.lgamma(b) + b * mlc.log(p.rate / q.rate)
            + a * (q.rate / p.rate - 1))


@register_kl(Kumaraswamy, Kumaraswamy)
def _kumaraswamy(p: Kumaraswamy, q: Kumaraswamy) -> Tensor:
    if bool((p.concentration1 != q.concentration1).any()):
        raise _missing(p, q)
    ratio = q.concentration0 / p.concentration0
    return ratio - 1 - mlc.log(ratio)


@register_kl(Weibull, Weibull)
def _weibull(p: Weibull, q: Weibull) -> Tensor:
    k, m = p.concentration, q.concentration
    return (mlc.log(k) - k * mlc.log(p.scale) - mlc.log(m) + m * mlc.log(q.scale)
            + (k - m) * (mlc.log(p.scale) - EULER / k)
            + (p.scale / q.scale) ** m * mlc.exp(mlc.lgamma(m / k + 1)) - 1)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise _missing(p, q)
    mine, theirs = p.scale_tril, q.scale_tril
    part = mlc.linalg.solve_triangular(theirs, mine, upper=False)
    distance = mahalanobis(theirs, q.loc - p.loc)
    found: Tensor = (half_log_det(theirs) - half_log_det(mine)
                     + 0.5 * ((part ** 2).sum((-2, -1)) + distance - p.event_shape[0]))
    return found


@register_kl(Wishart, Wishart)
def _wishart(p: Wishart, q: Wishart) -> Tensor:
    n, halves = p.event_shape[-1], mlc.arange(p.event_shape[-1], dtype=p.df.dtype) / 2
    part = mlc.linalg.solve_triangular(q._factor, p._factor, upper=False)
    mvdigamma = mlc.digamma(p.df.unsqueeze(-1) / 2 - halves).sum(-1)
    trace = (part ** 2).sum((-2, -1))
    found: Tensor = (q.df * (half_log_det(q._factor) - half_log_det(p._factor)) + p.df / 2 * (trace - n)
                     + mlc.mvlgamma(q.df / 2, n) - mlc.mvlgamma(p.df / 2, n) + (p.df - q.df) / 2 * mvdigamma)
    return found


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise _missing(p, q)
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise _missing(p, q)
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
