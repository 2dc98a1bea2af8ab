"""Divergences between families of numbers: KL(p, q) = E[-log q(x)] - entropy of p, where x is of p.

E[-log q(x)] is a formula of q and of moments of p, such as the mean of log(x). A pair is registered if p has the
moments that q needs. Where q does not have all values of p, the divergence is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mlc
from mlc.distributions.distribution import Distribution
from mlc.distributions.extreme import EULER, Gumbel, Pareto
from mlc.distributions.gamma import Exponential, Gamma
from mlc.distributions.kl import TABLE, register_kl
from mlc.distributions.normal import Normal
from mlc.distributions.symmetric import Laplace
from mlc.distributions.uniform import Uniform
from mlc.distributions.unit_interval import Beta, ContinuousBernoulli
from mlc.frontend.tensor import Tensor

BOUNDS: dict[type[Distribution], Callable[[Any], tuple[Any, Any]]] = {
    Beta: lambda p: (0.0, 1.0), ContinuousBernoulli: lambda p: (0.0, 1.0), Exponential: lambda p: (0.0, math.inf),
    Gamma: lambda p: (0.0, math.inf), Gumbel: lambda p: (-math.inf, math.inf),
    Laplace: lambda p: (-math.inf, math.inf), Normal: lambda p: (-math.inf, math.inf),
    Pareto: lambda p: (p.scale, math.inf), Uniform: lambda p: (p.low, p.high)}
"""The least and the greatest value."""


def _xlogx(x: Tensor) -> Tensor:
    return mlc.xlogy(x, x)


def _uniform_log(low: Tensor, high: Tensor) -> Tensor:
    """Mean of log(x) between two bounds."""
    return (_xlogx(high) - _xlogx(low)) / (high - low) - 1


LOG: dict[type[Distribution], Callable[[Any], Tensor]] = {
    Beta: lambda p: mlc.digamma(p.concentration1) - mlc.digamma(p.concentration1 + p.concentration0),
    Exponential: lambda p: -EULER - mlc.log(p.rate),
    Gamma: lambda p: mlc.digamma(p.concentration) - mlc.log(p.rate),
    Pareto: lambda p: mlc.log(p.scale) + 1 / p.alpha,
    Uniform: lambda p: _uniform_log(p.low, p.high)}
"""Mean of log(x)."""
LOG_OF_REST: dict[type[Distribution], Callable[[Any], Tensor]] = {
    Beta: lambda p: mlc.digamma(p.concentration0) - mlc.digamma(p.concentration1 + p.concentration0),
    Uniform: lambda p: _uniform_log(1 - p.high, 1 - p.low)}
"""Mean of log(1 - x)."""
EXP: dict[type[Distribution], Callable[[Any, Tensor, Tensor], Tensor]] = {
    Exponential: lambda p, t, loc: mlc.exp(-t * loc - mlc.log1p(-t / p.rate)),
    Gamma: lambda p, t, loc: mlc.exp(-t * loc - p.concentration * mlc.log1p(-t / p.rate)),
    Normal: lambda p, t, loc: mlc.exp((p.loc - loc) * t + 0.5 * (p.scale * t) ** 2),
    Uniform: lambda p, t, loc: (
        mlc.exp(t * (p.low - loc)) * mlc.expm1(t * (p.high - p.low)) / (t * (p.high - p.low)))}
"""Mean of exp(t * (x - loc)), with one exponent, which overflows only where the mean does."""


def _distance(p: Normal, loc: Tensor) -> Tensor:
    """Mean of |x - loc|."""
    z = (p.loc - loc) / p.scale
    return math.sqrt(2 / math.pi) * p.scale * mlc.exp(-0.5 * z ** 2) + (p.loc - loc) * mlc.erf(math.sqrt(0.5) * z)


MEAN: dict[type[Distribution], Callable[[Any], Tensor]] = {kind: lambda p: p.mean for kind in BOUNDS}
DISTANCE: dict[type[Distribution], Callable[[Any, Tensor], Tensor]] = {Normal: _distance}


def _to_beta(p: Any, q: Beta, log: Any, log_of_rest: Any) -> Tensor:
    a, b = q.concentration1, q.concentration0
    found: Tensor = mlc.lgamma(a) + mlc.lgamma(b) - mlc.lgamma(a + b) - (a - 1) * log(p) - (b - 1) * log_of_rest(p)
    return found


def _to_continuous_bernoulli(p: Any, q: ContinuousBernoulli, mean: Any) -> Tensor:
    return -q._log_normalizer() - mlc.log1p(-q.probs) - mean(p) * q.logits  # type: ignore[no-any-return]


def _to_exponential(p: Any, q: Exponential, mean: Any) -> Tensor:
    return q.rate * mean(p) - mlc.log(q.rate)  # type: ignore[no-any-return]


def _to_gamma(p: Any, q: Gamma, mean: Any, log: Any) -> Tensor:
    a = q.concentration
    return mlc.lgamma(a) - a * mlc.log(q.rate) - (a - 1) * log(p) + q.rate * mean(p)  # type: ignore[no-any-return]


def _to_gumbel(p: Any, q: Gumbel, mean: Any, exp: Any) -> Tensor:
    found: Tensor = (mean(p) - q.loc) / q.scale + mlc.log(q.scale) + exp(p, -1 / q.scale, q.loc)
    return found


def _to_laplace(p: Any, q: Laplace, distance: Any) -> Tensor:
    return mlc.log(2 * q.scale) + distance(p, q.loc) / q.scale  # type: ignore[no-any-return]


def _to_normal(p: Any, q: Normal, mean: Any) -> Tensor:
    square = (p.stddev / q.scale) ** 2 + ((mean(p) - q.loc) / q.scale) ** 2
    return mlc.log(q.scale) + 0.5 * (math.log(2 * math.pi) + square)  # type: ignore[no-any-return]


def _to_pareto(p: Any, q: Pareto, log: Any) -> Tensor:
    return (q.alpha + 1) * log(p) - mlc.log(q.alpha) - q.alpha * mlc.log(q.scale)  # type: ignore[no-any-return]


def _to_uniform(p: Any, q: Uniform, mean: Any) -> Tensor:
    return mlc.log(q.high - q.low)


NEEDS: dict[type[Distribution], tuple[Callable[..., Tensor], tuple[Any, ...]]] = {
    Beta: (_to_beta, (LOG, LOG_OF_REST)), ContinuousBernoulli: (_to_continuous_bernoulli, (MEAN,)),
    Exponential: (_to_exponential, (MEAN,)), Gamma: (_to_gamma, (MEAN, LOG)), Gumbel: (_to_gumbel, (MEAN, EXP)),
    Laplace: (_to_laplace, (DISTANCE,)), Normal: (_to_normal, (MEAN,)), Pareto: (_to_pareto, (LOG,)),
    Uniform: (_to_uniform, (MEAN,))}
"""E[-log q(x)], and the moments of p that it is a function of."""


def _never(p: type[Distribution], q: type[Distribution]) -> bool:
    """Whether q lacks values of p for all parameters."""
    whole = {Gumbel: 3, Laplace: 3, Normal: 3, Exponential: 2, Gamma: 2, Pareto: 2}
    return (q is Pareto and p in (Beta, ContinuousBernoulli, Exponential, Gamma)) or (
        whole.get(p, 1) > whole.get(q, 1))


def _register(type_p: type[Distribution], type_q: type[Distribution]) -> None:
    cross, tables = NEEDS[type_q]
    if _never(type_p, type_q):
        register_kl(type_p, type_q)(lambda p, q: mlc.full_like(p.entropy(), math.inf))
        return
    if any(type_p not in table for table in tables):
        return
    moments = [table[type_p] for table in tables]

    def divergence(p: Any, q: Any) -> Tensor:
        found = cross(p, q, *moments) - p.entropy()
        (low, high), (least, most) = BOUNDS[type_p](p), BOUNDS[type_q](q)
        inside = mlc.asarray(low >= least) & mlc.asarray(high <= most)
        return mlc.where(inside, found, math.inf)  # type: ignore[no-any-return]

    register_kl(type_p, type_q)(divergence)


for _p in BOUNDS:
    for _q in NEEDS:
        if (_p, _q) not in TABLE:                         # a formula of one family has fewer terms, which cancel
            _register(_p, _q)
