"""Probability distributions with the names and arguments of `torch.distributions`.

    policy = Categorical(logits=model(state))
    action = policy.sample()
    loss = -policy.log_prob(action) * reward

Samples come from the default generator; those of `rsample` have a gradient with respect to the parameters.

Example:
    >>> normal = mlc.distributions.Normal(mlc.tensor([0.0, 1.0]), 2.0)
    >>> normal.mean, normal.sample((3,)).shape
    (tensor([0., 1.], dtype=mlc.float32), (3, 2))
"""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.distributions import constraints, kl_of_numbers  # noqa: F401 (it registers divergences)
from mlc.distributions.bernoulli import Bernoulli
from mlc.distributions.categorical import Categorical
from mlc.distributions.circular import VonMises
from mlc.distributions.combined_transforms import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    StackTransform,
    identity_transform,
)
from mlc.distributions.composed import Independent, MixtureSameFamily
from mlc.distributions.constraint_registry import biject_to, transform_to
from mlc.distributions.counts import Binomial, Geometric, Multinomial, NegativeBinomial, Poisson
from mlc.distributions.distribution import Distribution, ExponentialFamily
from mlc.distributions.extreme import GeneralizedPareto, Gumbel, Pareto, Weibull
from mlc.distributions.gamma import Chi2, Exponential, FisherSnedecor, Gamma, InverseGamma
from mlc.distributions.half import HalfCauchy, HalfNormal
from mlc.distributions.kl import kl_divergence, register_kl
from mlc.distributions.matrices import LKJCholesky, Wishart
from mlc.distributions.multivariate_normal import LowRankMultivariateNormal, MultivariateNormal
from mlc.distributions.normal import Normal
from mlc.distributions.one_hot import OneHotCategorical, OneHotCategoricalStraightThrough
from mlc.distributions.relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from mlc.distributions.symmetric import Cauchy, Laplace, StudentT
from mlc.distributions.transformed_distribution import LogisticNormal, LogNormal, TransformedDistribution
from mlc.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    Transform,
)
from mlc.distributions.transforms_of_vectors import (
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)
from mlc.distributions.uniform import Uniform
from mlc.distributions.unit_interval import Beta, ContinuousBernoulli, Dirichlet, Kumaraswamy

__all__ = ["AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy",
           "Chi2", "ComposeTransform", "ContinuousBernoulli", "CorrCholeskyTransform",
           "CumulativeDistributionTransform", "Dirichlet", "Distribution", "ExpTransform", "Exponential",
           "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy",
           "HalfNormal", "Independent", "IndependentTransform", "InverseGamma", "Kumaraswamy", "LKJCholesky",
           "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "LowerCholeskyTransform",
           "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
           "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PositiveDefiniteTransform", "PowerTransform",
           "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
           "SoftplusTransform", "StackTransform", "StickBreakingTransform", "StudentT", "TanhTransform", "Transform",
           "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "constraints",
           "identity_transform", "kl_divergence", "register_kl", "transform_to"]
