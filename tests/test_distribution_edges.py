"""Distributions at the limits of their parameters and of floats, beside those of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc.distributions.gamma_sampling import derivative
from mlc.ir.diag import UserError

pytestmark = pytest.mark.usefixtures("execution")

D: Any = mlc.distributions
T: Any = torch.distributions
inf = float("inf")


@pytest.fixture(autouse=True)
def seeded() -> None:
    mlc.manual_seed(0)


def agree(make: Callable[[Any, Any], Any], rtol: float = 1e-4, atol: float = 1e-6) -> None:
    """A function of a module of distributions, and of the function that makes tensors, gives the same with both."""
    found, wanted = (np.asarray(make(*own).tolist()) for own in ((D, mlc.tensor), (T, torch.tensor)))
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


def test_probabilities_of_small_concentrations_are_near_vertices() -> None:
    beta = D.Beta(mlc.tensor(0.01), mlc.tensor(0.01)).sample((5000,)).numpy()
    assert ((beta > 0.25) & (beta < 0.75)).mean() < 0.015
    assert beta.mean() == pytest.approx(0.5, abs=0.03)
    dirichlet = D.Dirichlet(mlc.full((3,), 0.01)).sample((5000,)).numpy()
    assert (dirichlet.max(-1) < 0.6).mean() < 0.015
    np.testing.assert_allclose(dirichlet.mean(0), 1 / 3, atol=0.03)


def test_the_gradient_of_probabilities_of_small_concentrations() -> None:
    a = mlc.tensor(0.02, requires_grad=True)
    D.Beta(a, mlc.tensor(0.02)).rsample((20_000,)).mean().backward()
    assert a.grad is not None
    assert float(a.grad) == pytest.approx(12.5, abs=2)              # of a / (a + b)
    assert derivative(np.array(1e-250), np.array(0.01)) == pytest.approx(
        float(torch._standard_gamma_grad(torch.tensor(0.01).double(), torch.tensor(1e-250).double())), rel=1e-6)


def test_heavy_tails_are_finite() -> None:
    assert np.isfinite(D.StudentT(mlc.tensor(0.05)).sample((2000,)).numpy()).all()


def test_gamma_variables_of_half_precision_are_not_drawn_of_few_bits() -> None:
    a = mlc.tensor(0.05, dtype="bfloat16")
    x = D.Beta(a, a).sample((5000,)).float().numpy()
    assert x.mean() == pytest.approx(0.5, abs=0.04)
    assert ((x > 0.25) & (x < 0.75)).mean() == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("p, q", [
    (("Gumbel", 100.0, 1.0), ("Gumbel", 100.5, 1.0)), (("Gumbel", -110.0, 1.0), ("Gumbel", -109.5, 1.0)),
    (("Normal", 100.0, 1.0), ("Gumbel", 100.0, 1.0)), (("Uniform", 100.0, 101.0), ("Gumbel", 100.0, 1.0)),
    (("Gamma", 2.0, 1.5), ("Gumbel", 0.5, 2.0)), (("Exponential", 1.5), ("Gumbel", 0.5, 2.0)),
    (("Normal", 0.0, 1e20), ("Normal", 0.0, 2e20)), (("Normal", 0.0, 1e-23), ("Normal", 0.0, 2e-23)),
    (("Gamma", 1e6, 1.0), ("Gamma", 1e6, 1.0)), (("Gamma", 2.0, 3.0), ("Gamma", 1.0, 0.5)),
    (("Beta", 1e6, 2e6), ("Beta", 1e6, 2e6)), (("Beta", 2.0, 3.0), ("Beta", 0.5, 1.5)),
    (("Pareto", 10.0, 1e6), ("Pareto", 10.0, 1e6)), (("Pareto", 2.0, 3.0), ("Pareto", 1.0, 1.5)),
    (("Pareto", 1.0, 3.0), ("Pareto", 2.0, 1.5)), (("Exponential", 1e-30), ("Exponential", 2e-30))], ids=str)
def test_divergences_do_not_overflow_or_cancel(p: tuple[Any, ...], q: tuple[Any, ...]) -> None:
    def divergence(module: Any, tensor: Any) -> Any:
        return module.kl_divergence(*(getattr(module, name)(*map(tensor, params)) for name, *params in (p, q)))

    agree(divergence)


def test_a_divergence_of_variables_whose_squares_overflow() -> None:
    for scale in (1.0, 1e20):                                       # PyTorch gives NaN
        wide = D.kl_divergence(D.Laplace(mlc.tensor(0.0), scale), D.Normal(mlc.tensor(0.0), scale))
        assert float(wide) == pytest.approx(0.2257913, rel=1e-4)


def test_small_probabilities_of_a_transformed_variable() -> None:
    def logistic(module: Any, tensor: Any, scale: Any) -> Any:
        return module.TransformedDistribution(module.Uniform(tensor(0.0), tensor(1.0)), [
            module.SigmoidTransform().inv, module.AffineTransform(loc=tensor(0.0), scale=scale)])

    agree(lambda module, tensor: logistic(module, tensor, 1.0).icdf(tensor(1e-9)))
    agree(lambda module, tensor: logistic(module, tensor, 1.0).cdf(tensor(-20.0)), atol=0)
    of_tensor = logistic(D, mlc.tensor, mlc.tensor(1.0)).cdf(mlc.tensor(-20.0))
    assert float(of_tensor) == pytest.approx(2.0611536e-9)          # PyTorch's is 0
    agree(lambda module, tensor: logistic(module, tensor, tensor([1.0, -2.0])).cdf(tensor(-3.0)))


@pytest.mark.parametrize("make", [
    lambda d, t: d.Categorical(t([0.2, 0.3, 0.5])).log_prob(t(1.5)),
    lambda d, t: d.Categorical(t([0.2, 0.3, 0.5])).log_prob(t(-0.5)),
    lambda d, t: d.Categorical(logits=t([-inf, -inf])), lambda d, t: d.Categorical(logits=t([inf, 0.0])),
    lambda d, t: d.Categorical(t([inf, 1.0])), lambda d, t: d.Multinomial(4, t([0.2, 0.3, 0.5])).log_prob(t([4.0])),
    lambda d, t: d.Dirichlet(t([1.0, 2.0, 3.0])).log_prob(t([1.0])),
    lambda d, t: d.MultivariateNormal(t([0.0, 0.0]), t([[1.0, 0.0], [0.0, 1.0]])).log_prob(t([1.0])),
    lambda d, t: d.MultivariateNormal(t([0.0, 0.0]), t([[1.0, 0.0], [0.0, 1.0]])).log_prob(t(1.0))])
def test_impossible_values_and_weights_are_refused(make: Callable[[Any, Any], Any]) -> None:
    with pytest.raises((ValueError, RuntimeError)):
        make(T, torch.tensor)
    with pytest.raises(UserError, match="MLC0761"):
        make(D, mlc.tensor)


@pytest.mark.parametrize("name", ["entropy", "enumerate_support"])
def test_unequal_numbers_of_trials_have_no_list(name: str) -> None:
    unequal = D.Binomial(mlc.tensor([2.0, 4.0]), mlc.tensor(0.5), validate_args=False)
    with pytest.raises(UserError, match="MLC0762"):
        getattr(unequal, name)()


def test_densities_at_the_end_of_the_support() -> None:
    agree(lambda d, t: d.GeneralizedPareto(t(0.0), t(2.0), t(-1.0)).log_prob(t(2.0)))
    for a, b, x in ((2.0, 1.0, 1.0), (1.0, 2.0, 0.0)):              # PyTorch's are NaN
        assert float(D.Kumaraswamy(mlc.tensor(a), mlc.tensor(b)).log_prob(mlc.tensor(x))) == pytest.approx(np.log(2))


def test_a_broken_stick_has_no_parts_of_0() -> None:
    x = [-120.0, 60.0, 0.5]
    agree(lambda d, t: d.StickBreakingTransform()(t(x)), rtol=1e-4, atol=1e-40)
    agree(lambda d, t: d.StickBreakingTransform().log_abs_det_jacobian(t(x), d.StickBreakingTransform()(t(x))))
    agree(lambda d, t: d.StickBreakingTransform().inv(d.StickBreakingTransform()(t(x))), rtol=0.02)
    wide = D.LogisticNormal(mlc.tensor([-120.0, 40.0]), mlc.ones(2), validate_args=False)
    assert np.isfinite(wide.log_prob(wide.sample((20,))).numpy()).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_certain_outcomes_in_half_precision(dtype: str) -> None:
    def of(tensor: Any, x: Any) -> Any:
        return tensor(x, dtype=getattr(mlc if tensor is mlc.tensor else torch, dtype))

    agree(lambda d, t: d.Categorical(logits=of(t, [0.0, 0.0, -inf])).entropy(), atol=0.02)
    agree(lambda d, t: d.Categorical(of(t, [0.0, 1.0])).logits, atol=0.02)
    agree(lambda d, t: d.Bernoulli(of(t, 1.0)).log_prob(of(t, [1.0, 0.0])), atol=0.02)
    agree(lambda d, t: d.Bernoulli(of(t, 0.0)).log_prob(of(t, [1.0, 0.0])), atol=0.02)


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6])
def test_positive_semidefinite_matrices_of_all_sizes(scale: float) -> None:
    check = D.constraints.positive_semidefinite.check
    for negative in (-1.0, -1e-3):
        assert not check(mlc.tensor([[negative, 0.0], [0.0, -1.0]]) * scale)
    assert not check(mlc.tensor([[1.0, 0.0], [0.0, -1e-3]]) * scale)
    assert check(mlc.tensor([[1.0, 0.0], [0.0, 0.0]]) * scale) and check(mlc.zeros(2, 2))
    x = mlc.tensor([[0.1, 0.7, 0.3], [1.3, 0.2, 0.9]])
    assert check(x.T @ x * scale)                                   # of rank 2: rounding may make the third negative


def test_a_geometric_distribution_of_tiny_probability() -> None:
    rare = D.Geometric(logits=mlc.tensor(-120.0))
    assert float(rare.log_prob(mlc.tensor(3.0))) == pytest.approx(-120.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_exponential_variables_of_half_precision_are_not_0_and_have_a_tail(dtype: str) -> None:
    for x in (D.Exponential(mlc.tensor(1.0, dtype=dtype)).sample((50_000,)),
              D.Weibull(mlc.tensor(1.0, dtype=dtype), mlc.tensor(1.0, dtype=dtype)).sample((50_000,)),
              mlc.empty(50_000, dtype=dtype).exponential_()):
        values = x.float().numpy()
        assert values.min() > 0 and values.max() > 8.5
        assert values.mean() == pytest.approx(1, abs=0.03)
