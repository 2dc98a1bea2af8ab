"""All families of mlc.distributions beside those of PyTorch, by the program of tests/peers; transforms; divergences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc.checked import Meaning
from mlc.distributions.gamma_sampling import derivative
from mlc.distributions.kl import TABLE
from mlc.frontend import eager
from mlc.ir.diag import UserError
from tests.peers import distributions as peer

D: Any = mlc.distributions
ROWS = dict(reversed(peer.rows()))
WITHOUT_CDF = {"Gamma", "InverseGamma", "Chi2"}
"""Those whose cdf is an incomplete gamma function."""


@pytest.fixture(autouse=True)
def interpreted() -> Iterator[None]:
    with eager.compiled_by(lambda module, where: Meaning(module)):
        yield


def test_all_names_of_pytorch_are_there() -> None:
    assert [name for name in torch.distributions.__all__ if not hasattr(D, name)] == []
    pairs = {(a.__name__, b.__name__) for a, b in TABLE}
    assert {(a.__name__, b.__name__) for a, b in torch.distributions.kl._KL_REGISTRY} - pairs == {
        ("ExponentialFamily", "ExponentialFamily")}


@pytest.mark.parametrize("name", ROWS)
def test_values(name: str) -> None:
    wrong = {aspect: found for aspect, found in peer.values(ROWS[name]) if found}
    assert not wrong or (name in WITHOUT_CDF and list(wrong) == ["cdf"])


@pytest.mark.parametrize("name", ["Weibull", "InverseGamma", "HalfCauchy"])
def test_divergences_are_means_over_samples(name: str) -> None:
    mlc.manual_seed(0)
    params = ((2.0, 3.0), (4.0, 2.0)) if name != "HalfCauchy" else ((2.0,), (3.0,))
    p, q = (getattr(D, name)(*(mlc.tensor(x, dtype="float64") for x in own)) for own in params)
    x = p.sample((20_000,))
    assert float((p.log_prob(x) - q.log_prob(x)).mean()) == pytest.approx(float(D.kl_divergence(p, q)), rel=0.1)


@pytest.mark.parametrize("name", ["Gamma", "Beta", "Dirichlet", "MultivariateNormal", "RelaxedBernoulli", "Binomial",
                                  "VonMises", "StudentT"])
def test_samples_and_gradients(name: str) -> None:
    found = [*peer.samples(ROWS[name], 3000), *peer.gradients(ROWS[name], 3000)]
    assert found and not any(wrong for _, wrong in found)


def test_transforms() -> None:
    assert [row for row in peer.transforms() if row[1]] == []


@pytest.mark.parametrize("pair", list(itertools.pairwise(["Normal", "Laplace", "Normal", "Gamma", "Normal", "Uniform",
                                                          "Normal", "Gumbel", "Gumbel"])), ids=str)
def test_divergences(pair: tuple[str, str]) -> None:
    p, q = (ROWS[name] for name in pair)
    wanted = torch.distributions.kl_divergence(*(make(torch, peer.theirs) for make in (p, q)))
    np.testing.assert_allclose(peer.divergence(p, q).numpy(), wanted.numpy(), rtol=1e-6, atol=1e-9)


def test_the_gradient_of_a_gamma_variable() -> None:
    a = np.array([0.1, 0.5, 1.0, 2.5, 10.0, 50.0, 99.0, 101.0, 500.0])
    for x in (a, a / 2, a * 1.5):
        wanted = torch._standard_gamma_grad(torch.tensor(a), torch.tensor(x)).numpy()
        np.testing.assert_allclose(derivative(x, a), wanted, rtol=5e-3)


def test_a_diagonal_is_taken_by_the_names_of_its_dimensions() -> None:
    x = mlc.arange(8.0).reshape(2, 2, 2)
    assert mlc.diagonal(x, dim1=-2, dim2=-1).tolist() == [[0, 3], [4, 7]]


@pytest.mark.parametrize("code, mistake", [
    ("MLC0761", lambda: D.Gamma(-1.0, 1.0)), ("MLC0761", lambda: D.Poisson(1.0).log_prob(mlc.tensor(0.5))),
    ("MLC0763", lambda: D.MultivariateNormal(mlc.zeros(2))), ("MLC0763", lambda: D.Geometric()),
    ("MLC0762", lambda: D.Gamma(1.0, 1.0).cdf(1.0)), ("MLC0763", lambda: D.Dirichlet(mlc.tensor(1.0))),
    ("MLC0784", lambda: D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0))),
    ("MLC0784", lambda: D.biject_to(D.constraints.one_hot)), ("MLC0784", lambda: D.AbsTransform().sign),
    ("MLC0784", lambda: D.Independent(D.Normal(0.0, 1.0), 1))])
def test_mistakes(code: str, mistake: Callable[[], Any]) -> None:
    with pytest.raises(UserError, match=code):
        mistake()
