"""mlc.distributions beside torch.distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc.ir.diag import UserError

pytestmark = pytest.mark.usefixtures("execution")

DISTRIBUTIONS: list[tuple[str, dict[str, Any], list[float]]] = [
    ("Categorical", {"probs": [[0.2, 0.3, 0.5], [1.0, 0.0, 3.0]]}, [0, 2]),
    ("Categorical", {"logits": [[0.2, -3.0, 0.5], [1.0, 0.0, 3.0]]}, [0, 1]),
    ("Bernoulli", {"probs": [0.0, 0.2, 0.5, 1.0]}, [0.0, 1.0, 1.0, 1.0]),
    ("Bernoulli", {"logits": [-3.0, 0.2, 0.5]}, [0.0, 1.0, 0.0]),
    ("Normal", {"loc": [1.0, 2.0], "scale": [0.5, 3.0]}, [0.3, -2.0]),
    ("Uniform", {"low": [1.0, 2.0], "high": [4.0, 3.0]}, [1.3, 2.5]),
]


@pytest.mark.parametrize(("name", "parameters", "value"), DISTRIBUTIONS)
def test_distributions_agree_with_those_of_pytorch(name: str, parameters: dict[str, Any], value: list[float]) -> None:
    ours = getattr(mlc.distributions, name)(**{k: mlc.tensor(x) for k, x in parameters.items()})
    wanted = getattr(torch.distributions, name)(**{k: torch.tensor(x) for k, x in parameters.items()})

    def same(found: Any, expected: Any) -> None:
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)

    for attribute in ("mean", "mode", "variance", "stddev", *({"probs", "logits"} & vars(ours).keys())):
        same(getattr(ours, attribute), getattr(wanted, attribute))
    same(ours.entropy(), wanted.entropy())
    same(ours.perplexity(), wanted.perplexity())
    same(ours.log_prob(mlc.tensor(value)), wanted.log_prob(torch.tensor(value)))
    assert tuple(ours.sample((3, 5)).shape) == tuple(wanted.sample((3, 5)).shape)
    assert str(ours.sample().dtype).removeprefix("mlc.") == str(wanted.sample().dtype).removeprefix("torch.")
    if name in ("Normal", "Uniform"):
        same(ours.cdf(mlc.tensor(value)), wanted.cdf(torch.tensor(value)))
        same(ours.icdf(mlc.tensor([0.3, 0.6])), wanted.icdf(torch.tensor([0.3, 0.6])))


@pytest.mark.parametrize(("name", "parameters", "value"), DISTRIBUTIONS)
def test_samples_have_the_mean_of_the_distribution(name: str, parameters: dict[str, Any], value: list[float]) -> None:
    mlc.manual_seed(0)
    distribution = getattr(mlc.distributions, name)(**{k: mlc.tensor(x) for k, x in parameters.items()})
    drawn = distribution.sample((20_000,)).numpy()
    if name == "Categorical":
        drawn = drawn[..., None] == np.arange(3)
        np.testing.assert_allclose(drawn.mean(0), distribution.probs.numpy(), atol=0.02)
    else:
        np.testing.assert_allclose(drawn.mean(0), distribution.mean.numpy(), atol=0.08)
        np.testing.assert_allclose(drawn.var(0), distribution.variance.numpy(), rtol=0.05, atol=1e-6)


def test_gradients_reach_parameters() -> None:
    loc, scale = mlc.tensor([1.0, 2.0], requires_grad=True), mlc.tensor(2.0, requires_grad=True)
    mlc.distributions.Normal(loc, scale).rsample((7,)).sum().backward()
    assert loc.grad is not None
    assert loc.grad.tolist() == [7.0, 7.0]
    logits = mlc.tensor([0.0, 1.0, 2.0], requires_grad=True)
    mlc.distributions.Categorical(logits=logits).log_prob(mlc.tensor(1)).backward()
    wanted = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    torch.distributions.Categorical(logits=wanted).log_prob(torch.tensor(1)).backward()
    assert logits.grad is not None
    np.testing.assert_allclose(logits.grad.numpy(), wanted.grad.numpy(), rtol=1e-6)
    assert not mlc.distributions.Normal(loc, scale).sample().requires_grad


@pytest.mark.parametrize(("code", "call"), [
    ("MLC0761", lambda d: d.Normal(0.0, -1.0)), ("MLC0761", lambda d: d.Uniform(1.0, 1.0)),
    ("MLC0761", lambda d: d.Categorical([0.0, 0.0])), ("MLC0761", lambda d: d.Bernoulli(1.5)),
    ("MLC0761", lambda d: d.Bernoulli(0.5).log_prob(2.0)), ("MLC0761", lambda d: d.Categorical([1.0]).log_prob(1)),
    ("MLC0762", lambda d: d.Categorical([1.0]).rsample()), ("MLC0762", lambda d: d.Bernoulli(0.5).cdf(0.0)),
    ("MLC0763", lambda d: d.Categorical()), ("MLC0763", lambda d: d.Categorical(probs=[1.0], logits=[0.0])),
    ("MLC0763", lambda d: d.Categorical(1.0)), ("MLC0355", lambda d: d.Normal(0.0, 1.0).sample(3)),
    ("MLC0355", lambda d: d.Categorical([1.0]).sample(3)), ("MLC0355", lambda d: d.Multinomial(2, [1.0]).sample(3)),
    ("MLC0358", lambda d: d.Normal(0.0, 1.0).sample((-1,)))])
def test_what_no_distribution_is_or_has_is_refused(code: str, call: Any) -> None:
    with pytest.raises(UserError) as found:
        call(mlc.distributions)
    assert found.value.code == code


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_a_scale_that_is_a_number_keeps_the_dtype(dtype: str) -> None:
    for scale in (3.0, -0.5):
        found = []
        for module in (torch, mlc):
            own: Any = module
            x = own.tensor([[0.5, 2.0]], dtype=getattr(own, dtype))
            found.append([own.distributions.AffineTransform(1.0, scale, event_dim=n).log_abs_det_jacobian(x, x)
                          for n in (0, 1)])
        for a, b in zip(*found):
            assert str(b.dtype).removeprefix("mlc.") == dtype
            assert a.flatten().tolist() == pytest.approx(b.flatten().tolist(), rel=1e-3)
