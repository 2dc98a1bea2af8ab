"""Modules as trees of parameters, initial values, optimisers against PyTorch, and the example."""
from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.frontend import tree
from mlc.ir.diag import UserError

ROOT = Path(__file__).parent.parent


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))


def test_a_module_is_a_tree() -> None:
    m = net()
    assert [n for n, _ in m.named_parameters()] == ["layers[0].weight", "layers[0].bias", "layers[2].weight",
                                                    "layers[2].bias"]
    doubled = tree.map(lambda p: p * 2, m)
    np.testing.assert_array_equal(doubled[0].weight.numpy(), 2 * m[0].weight.numpy())
    assert isinstance(doubled, nn.Sequential) and isinstance(doubled[1], nn.Tanh)
    assert "Linear(weight=mlc.float32[8, 5], bias=mlc.float32[8])" in repr(m)


def test_state_dict_round_trip() -> None:
    a, b = net(), net()
    c = b.load_state_dict(a.state_dict())
    for x, y in zip(a.parameters(), c.parameters()):
        np.testing.assert_array_equal(x.numpy(), y.numpy())
        assert x.numpy() is not y.numpy()
    with pytest.raises(UserError, match=r"missing layers\[0\].bias"):
        b.load_state_dict({n: p for n, p in a.state_dict().items() if n != "layers[0].bias"})
    with pytest.raises(UserError, match=r"expected mlc\.float32"):
        b.load_state_dict(a.state_dict() | {"layers[0].bias": np.zeros(9, np.float32)})


def test_seeds() -> None:
    nn.init.manual_seed(7)
    a = net()
    mlc.manual_seed(7)
    b = net()
    for x, y in zip(a.parameters(), b.parameters()):
        np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_initial_values_have_the_bounds_of_torch() -> None:
    layer = nn.Linear(100, 400)
    for p in (layer.weight, layer.bias):
        assert p is not None
        assert 0.09 < np.abs(p.numpy()).max() <= 0.1 and abs(p.numpy().mean()) < 0.01
    w = nn.init.xavier_uniform((30, 50)).numpy()
    assert np.abs(w).max() <= (6 / 80) ** 0.5 < np.abs(w).max() * 1.05
    w = nn.init.kaiming_uniform((30, 50)).numpy()
    assert np.abs(w).max() <= (6 / 50) ** 0.5 < np.abs(w).max() * 1.05


LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("Linear", (5, 3), {}, (4, 5)), ("Linear", (5, 3), {"bias": False}, (2, 4, 5)), ("LayerNorm", (5,), {}, (4, 5)),
    ("LayerNorm", ((4, 5),), {"eps": 1e-3}, (2, 4, 5)), ("LayerNorm", (5,), {"elementwise_affine": False}, (4, 5)),
    ("LayerNorm", (5,), {"bias": False}, (4, 5)), ("RMSNorm", (5,), {}, (4, 5)), ("Flatten", (), {}, (2, 3, 4)),
    ("Identity", (), {}, (3,)), ("ReLU", (), {}, (3, 4)), ("LeakyReLU", (0.2,), {}, (3, 4)), ("ELU", (0.5,), {}, (9,)),
    ("GELU", (), {}, (9,)), ("GELU", ("tanh",), {}, (9,)), ("SiLU", (), {}, (9,)), ("Mish", (), {}, (9,)),
    ("Softplus", (2.0,), {}, (9,)), ("Sigmoid", (), {}, (9,)), ("Tanh", (), {}, (9,)), ("Softmax", (1,), {}, (3, 4)),
    ("LogSoftmax", (0,), {}, (3, 4)),
]


@pytest.mark.parametrize("name, args, keywords, shape", LAYERS)
@pytest.mark.parametrize("run", [lambda f: f, mlc.compile], ids=["eager", "compiled"])
def test_layers_against_torch(name: str, args: tuple[Any, ...], keywords: dict[str, Any], shape: tuple[int, ...],
                              run: Callable[..., Any]) -> None:
    torch = pytest.importorskip("torch")
    keywords = {("approximate" if args == ("tanh",) else k): v for k, v in keywords.items()}
    theirs = getattr(torch.nn, name)(*(() if args == ("tanh",) else args), **keywords,
                                     **({"approximate": "tanh"} if args == ("tanh",) else {}))
    ours = getattr(nn, name)(*args, **keywords)
    ours = ours.load_state_dict({n: p.detach().numpy() for n, p in theirs.named_parameters()})
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    torch.testing.assert_close(torch.from_numpy(run(ours)(mlc.tensor(x)).numpy()), theirs(torch.from_numpy(x)).detach())


OPTIMIZERS = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}), ("SGD", {"lr": 0.05, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01}), ("AdamW", {"lr": 1e-2}),
    ("AdamW", {"lr": 3e-3, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.2}),
]


@pytest.mark.parametrize("name, settings", OPTIMIZERS)
def test_optimisers_against_torch(name: str, settings: dict[str, Any]) -> None:
    """Thirty compiled steps: forward, backward and update as one function, with donated buffers."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    model = net()
    theirs = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    theirs.load_state_dict({n.removeprefix("layers[").replace("]", ""): torch.from_numpy(p.numpy().copy())
                            for n, p in model.named_parameters()})
    other = getattr(torch.optim, name)(theirs.parameters(), **settings)
    opt = getattr(mlc.optim, name)(**settings)
    state = opt.init(model)

    def loss(m: Any, x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(m(x), y)

    def update(m: Any, state: Any, x: Any, y: Any) -> Any:
        value, gradients = mlc.value_and_grad(loss)(m, x, y)
        return *opt.update(gradients, state, m), value

    step = mlc.compile(update, donate=("m", "state"))
    for _ in range(30):
        x, y = rng.normal(size=(16, 5)).astype(np.float32), rng.integers(0, 3, 16)
        model, state, value = step(model, state, x, y)
        other.zero_grad()
        expected = torch.nn.functional.cross_entropy(theirs(torch.from_numpy(x)), torch.from_numpy(y))
        expected.backward()
        other.step()
        torch.testing.assert_close(torch.tensor(value.item()), expected.detach())
    for ours, p in zip(model.parameters(), theirs.parameters()):
        torch.testing.assert_close(torch.from_numpy(ours.numpy()), p.detach(), rtol=1e-4, atol=1e-6)


def test_a_learning_rate_can_be_passed() -> None:
    opt = mlc.optim.SGD(lr=1.0)
    step = mlc.compile(lambda p, g, lr: opt.update(g, {}, p, lr=lr)[0])
    for lr in (0.5, 0.25):
        assert step(mlc.ones(3), mlc.ones(3), lr).tolist() == [1 - lr] * 3
    assert len(step.entries) == 1


@pytest.mark.parametrize("make", [lambda: mlc.optim.SGD(lr=-1), lambda: mlc.optim.AdamW(betas=(1.0, 0.9)),
                                  lambda: mlc.optim.SGD(nesterov=True)])
def test_settings_are_checked(make: Callable[[], Any]) -> None:
    with pytest.raises(UserError, match="MLC0383"):
        make()


def test_the_digits_example(tmp_path: Path) -> None:
    """Two epochs of the main job: it learns, and a step is one native entry."""
    run = subprocess.run([sys.executable, str(ROOT / "examples" / "digits.py"), "--epochs", "2", "--out",
                          str(tmp_path / "curve.png")], capture_output=True, text=True, cwd=ROOT,
                         env={"PYTHONPATH": str(ROOT), "PATH": ""}, timeout=120)
    assert run.returncode == 0, run.stderr
    assert "42 steps in" in run.stdout and "1.00 native entries per step" in run.stdout
    assert "answers to the 450 test images" in run.stdout and "epoch   2/2" in run.stderr
    accuracy = float(run.stdout.rsplit("test accuracy ", 1)[1].rstrip("%\n"))
    assert accuracy > 75
