"""Parametrizations, weight and spectral norm, pruning, fusion and stateless calls: the same programs as in PyTorch."""
from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc import nn
from mlc.nn.utils import prune
from tests.nn.both import same

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_weight_norm() -> None:
    same("""
m, x = filled(nn.Linear(4, 3)), T(5, 4)
parametrizations.weight_norm(m)
m(x).sum().backward()
out += [m, m(x), *(p.grad for p in m.parameters()), list(m.state_dict())]
parametrize.remove_parametrizations(m, "weight")
out += [m, m.weight, [n for n, _ in m.named_parameters()]]
m = nn.utils.weight_norm(filled(nn.Linear(3, 3)), dim=None)
out += [m(T(2, 3)), sorted(m.state_dict())]
nn.utils.remove_weight_norm(m)
out += [m.weight, m]
""")


def test_parametrizations_of_ones_own() -> None:
    same("""
class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T
    def right_inverse(self, a):
        return a.triu()

m = parametrize.register_parametrization(filled(nn.Linear(3, 3)), "weight", Symmetric())
out += [m.weight, m]
m.weight = T(3, 3)
out += [m.weight, m.parametrizations.weight.original, parametrize.is_parametrized(m, "bias")]
with parametrize.cached():
    out.append(m.weight is m.weight)
""")


def test_spectral_norm_and_orthogonal_weights() -> None:
    same("""
m = parametrizations.spectral_norm(filled(nn.Linear(4, 3)))
step, u, v = m.parametrizations.weight[0], T(3), T(4)
step._u, step._v = u / u.norm(), v / v.norm()
out.append(m(T(2, 4)))
m(T(2, 4)).sum().backward()
out += [m.parametrizations.weight.original.grad, m.eval().weight, step._u]
for name in ("matrix_exp", "cayley", "householder"):
    m = parametrizations.orthogonal(filled(nn.Linear(4, 3, bias=False)), orthogonal_map=name)
    out += [m.weight @ m.weight.T, list(m.state_dict())]
out.append(parametrizations.orthogonal(filled(nn.Linear(3, 3))).weight)
""")


def test_pruning() -> None:
    same("""
m = prune.l1_unstructured(filled(nn.Linear(4, 3)), "weight", amount=0.3)
out.append(m.weight)
prune.ln_structured(m, "weight", amount=1, n=2, dim=0)
m(T(2, 4)).sum().backward()
out += [m.weight, m.weight_mask, list(m.state_dict()), m.weight_orig.grad, prune.is_pruned(m)]
prune.remove(m, "weight")
out += [m.weight, [n for n, _ in m.named_parameters()], prune.is_pruned(m)]
a, b = filled(nn.Linear(4, 3)), filled(nn.Linear(3, 2))
prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=7)
out += [a.weight, b.weight]
""")


def test_fusion_and_modules_without_values() -> None:
    same("""
c, n, x = filled(nn.Conv2d(3, 4, 2)).eval(), filled(nn.BatchNorm2d(4)).eval(), T(1, 3, 5, 5)
n.running_mean = T(4)
fused = fusion.fuse_conv_bn_eval(c, n)
out += [fused(x), n(c(x)), fused.weight, nn.utils.skip_init(nn.Linear, 2, 3)]
""")


def test_functional_call_leaves_the_module_as_it_is() -> None:
    model = nn.Sequential(nn.Linear(2, 1, bias=False), nn.BatchNorm1d(1))
    before = {name: x.tolist() for name, x in model.state_dict().items()}
    w = mlc.tensor([[1.0, 2.0]], requires_grad=True)
    x = mlc.tensor([[1.0, 0.0], [0.0, 3.0]])
    y = nn.utils.stateless.functional_call(model.eval(), {"0.weight": w * 2}, (x,))
    y.sum().backward()
    assert w.grad is not None
    assert y.flatten().tolist() == pytest.approx([2.0, 12.0], rel=1e-4) and w.grad.flatten().tolist() == pytest.approx(
        [2.0, 6.0], rel=1e-4)
    assert {name: x.tolist() for name, x in model.state_dict().items()} == before
    own = dict(model.train().named_buffers())
    nn.utils.stateless.functional_call(model, {"0.weight": w * 2, **{n: b.clone() for n, b in own.items()}}, (x,))
    assert {name: x.tolist() for name, x in model.state_dict().items()} == before
    nn.utils.stateless.functional_call(model, {"0.weight": w * 2}, (x,))     # buffers of its own are updated
    assert model.state_dict()["1.num_batches_tracked"].item() == 1
    with pytest.raises(mlc.UserError, match="MLC0382"):
        nn.utils.stateless.functional_call(model, {"wieght": w}, (x,))


@pytest.mark.parametrize(("call", "code"), [
    (lambda: nn.utils.parametrize.register_parametrization(nn.Linear(2, 3), "weight", nn.Flatten(0)), "MLC0742"),
    (lambda: nn.utils.weight_norm(nn.Linear(2, 3), "wieght"), "MLC0743"),
    (lambda: nn.utils.remove_weight_norm(nn.Linear(2, 3)), "MLC0743"),
    (lambda: nn.utils.fuse_conv_bn_eval(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)), "MLC0744"),
    (lambda: nn.utils.skip_init(nn.ReLU), "MLC0745"),
    (lambda: nn.utils.prune.l1_unstructured(nn.Linear(2, 3), "weight", 7), "MLC0746"),
    (lambda: nn.utils.prune.remove(nn.Linear(2, 3), "weight"), "MLC0746")])
def test_what_does_not_fit_is_refused(call: object, code: str) -> None:
    with pytest.raises(mlc.UserError, match=code):
        call()  # type: ignore[operator]


def test_pruning_methods_are_classes() -> None:
    same("""
class Every2nd(nn.utils.prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"
    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask

p, m = nn.utils.prune, filled(nn.Linear(3, 4))
for apply in (lambda: Every2nd.apply(m, "weight"), lambda: p.LnStructured.apply(m, "weight", 1, 2, 0),
              lambda: p.L1Unstructured.apply(m, "weight", amount=2), lambda: Every2nd.apply(m, "weight"),
              lambda: p.CustomFromMask.apply(m, "bias", mask=m.bias.detach().sign().clamp(min=0))):
    apply()
    out += [m.weight, m.state_dict()["weight_mask"]]
p.global_unstructured([(m, "bias"), (m, "weight")], Every2nd)
out += [m.weight_mask, m.bias_mask, p.L1Unstructured(0.5).prune(m.bias.detach())]
""")


@pytest.mark.parametrize(("make", "undo"), [
    (lambda m: prune.l1_unstructured(m, "weight", amount=0.5), lambda m: prune.remove(m, "weight")),
    (nn.utils.weight_norm, nn.utils.remove_weight_norm), (nn.utils.spectral_norm, nn.utils.remove_spectral_norm)])
def test_what_is_undone_in_a_copy_stays_in_the_original(make: Any, undo: Any) -> None:
    m = nn.Linear(4, 2)
    make(m)
    copied = copy.deepcopy(m.eval())
    undo(copied)
    x = mlc.ones(1, 4)
    np.testing.assert_allclose(m(x).detach().numpy(), copied(x).detach().numpy(), rtol=1e-6)
    assert "weight" in dict(copied.named_parameters()) and "weight" not in dict(m.named_parameters())


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_vectors_of_spectral_norm_go_on_as_in_pytorch() -> None:
    theirs = torch.nn.utils.spectral_norm(torch.nn.Linear(4, 3))
    ours = nn.utils.spectral_norm(nn.Linear(4, 3))
    ours.load_state_dict({name: mlc.tensor(x.detach().numpy()) for name, x in theirs.state_dict().items()})
    for _ in range(2):
        np.testing.assert_allclose(ours(mlc.ones(1, 4)).detach().numpy(), theirs(torch.ones(1, 4)).detach().numpy(),
                                   rtol=1e-4, atol=1e-6)
