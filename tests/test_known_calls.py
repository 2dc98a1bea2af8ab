"""Calls of layers that are recorded once and called again (frontend/known_calls.py)."""
from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.frontend import known_calls, known_classes, nested
from mlc.frontend.captures import Captures
from mlc.frontend.trace import Trace
from mlc.models import cache, decoder, encoder, experts, gpt2, rotary
from mlc.nn.utils import parametrizations, parametrize

X = mlc.tensor(np.random.default_rng(0).standard_normal((4, 8), np.float32))
IMAGE = mlc.tensor(np.random.default_rng(1).standard_normal((2, 4, 6, 6), np.float32))


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that are recorded from here on."""
    names: list[str] = []
    original = nested.record

    def record(name: str, *args: Any, **keywords: Any) -> Any:
        names.append(name)
        return original(name, *args, **keywords)

    monkeypatch.setattr(nested, "record", record)
    return names


def equal_blocks() -> nn.Sequential:
    return nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU()) for _ in range(5)))


def tied() -> nn.Module:
    first, second, third = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
    second.weight = first.weight
    third.bias = second.bias
    return nn.Sequential(first, second, third)


def training() -> nn.Module:
    return nn.Sequential(*(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
                           for _ in range(3)))


def partly_frozen() -> nn.Module:
    net = equal_blocks()
    for p in net[2].parameters():
        p.requires_grad_(False)
    return net


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Any]] = {
    "equal blocks": (equal_blocks, X),
    "tied weights": (tied, X),
    "batch norm in training": (training, IMAGE),
    "dropout": (lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8)), X),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 3), X[None]),
    "partly frozen": (partly_frozen, X),
    "views": (lambda: nn.Sequential(nn.Flatten(), nn.Unflatten(1, (2, 72)), nn.Flatten(), nn.Linear(144, 3)), IMAGE),
}


RECORDED_EACH = ("tied weights", "views")
"""Networks of no two equal layers, or whose results are views of what goes in."""


def step(net: nn.Module) -> Callable[[Any], Any]:
    def one(x: Any) -> Any:
        loss = (net(x) ** 2).mean()
        loss.backward()
        return loss

    return one


@pytest.mark.usefixtures("execution")
@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_recorded_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, x = NETWORKS[name]

    def runs() -> list[Any]:
        mlc.manual_seed(0)
        net = make()
        losses = [mlc.compile(step(net))(x).numpy() for _ in range(2)]
        return [*losses, *(g.numpy() for p in net.parameters() if (g := p.grad) is not None),
                *(b.numpy() for b in net.buffers())]

    original, reused = known_calls.KnownCall.again, []

    def again(*args: Any) -> Any:
        reused.append(args)
        return original(*args)

    monkeypatch.setattr(known_calls.KnownCall, "again", again)
    found = runs()
    assert bool(reused) == (name not in RECORDED_EACH)
    monkeypatch.setattr(known_calls, "find", lambda seen: None)
    for a, b in zip(found, runs(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_equal_layers_are_recorded_once(recorded: list[str]) -> None:
    net = equal_blocks().eval()
    mlc.compile(lambda x: net(x))(X)
    assert sorted(recorded) == ["GELU", "LayerNorm", "Linear", "Sequential", "Sequential"]


@pytest.mark.usefixtures("execution")
def test_two_tensors_are_not_one(recorded: list[str]) -> None:
    layer, y = nn.Bilinear(8, 8, 3), X * 2
    f = mlc.compile(lambda x, y: (layer(x, x), layer(x, y), layer(y, x)))
    for found, wanted in zip(f(X, y), (layer(X, X), layer(X, y), layer(y, X)), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)
    assert recorded == ["Bilinear", "Bilinear"]


def test_a_weight_that_is_kept_elsewhere_is_looked_at_again() -> None:
    layer = parametrizations.weight_norm(nn.Linear(8, 8))

    def f(x: Any) -> Any:
        with mlc.no_grad():
            with parametrize.cached():
                layer(x)
                before = layer(x)
            layer.parametrizations.weight.original0.mul_(2)
            after = layer(x) - before
            layer.parametrizations.weight.original0.mul_(0.5)
            return after

    found, wanted = mlc.compile(f)(X), f(X)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-6)
    assert abs(wanted.numpy()).max() > 0.01


def test_checkpoints_are_functions_of_their_own(recorded: list[str]) -> None:
    layer = nn.Linear(8, 8)
    f = mlc.compile(lambda x: layer(x) + mlc.checkpoint(layer)(x) + mlc.checkpoint(layer.forward)(x))
    np.testing.assert_allclose(f(X).detach().numpy(), 3 * layer(X).detach().numpy(), rtol=1e-5)
    assert len(recorded) > 2


def test_all_that_a_recording_does_is_known() -> None:
    """A new field of `Captures` is one that `done` counts or `noting` notes, or it follows from others."""
    counted = {"effects", "hosts", "read", "made", "hooks", "retained", "requiring", "_gradients", "severed",
               "leaves_within", "inputs", "assigned"}
    noted = {"asks_autograd", "asks_layout", "asks_identity", "differentiates", "accumulates"}
    about_inputs = {"arguments", "given", "same", "leaves", "numbers", "_types", "_fixed", "_others", "_tensors",
                    "_numbers", "_buffers", "_ordered"}
    at_the_end = {"trace", "constants", "by_place", "recorded_grad_mode", "keeps_history", "uses_changed_leaf"}
    assert set(vars(Captures(Trace("f"), ()))) == counted | noted | about_inputs | at_the_end


def test_modes_are_seen(recorded: list[str]) -> None:
    layer = nn.Linear(8, 8)

    def f(x: Any) -> Any:
        with mlc.no_grad():
            first = layer(x)
        with mlc.autocast("cpu"):
            return first, layer(x), layer(x)

    first, second, _ = mlc.compile(f)(X)
    assert (first.dtype, second.dtype, len(recorded)) == (mlc.float32, mlc.bfloat16, 2)
    assert not first.requires_grad and second.requires_grad


class Scaled(nn.Module):
    """A layer of a program, which reads a variable that recordings do not know of."""

    factor = 1.0

    def forward(self, x: Any) -> Any:
        return x * Scaled.factor


def test_layers_of_programs_run_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Scaled()

    def f(x: Any) -> Any:
        first = layer(x)
        monkeypatch.setattr(Scaled, "factor", 2.0)
        try:
            return first, nn.Sequential(layer)(x), layer(x)
        finally:
            monkeypatch.undo()

    found = [y.numpy() for y in mlc.compile(f)(X)]
    np.testing.assert_array_equal(found[1], 2 * found[0])
    np.testing.assert_array_equal(found[2], 2 * found[0])


def test_a_replaced_forward_is_recorded_each_time(recorded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8))
    net[2].register_forward_hook(lambda module, args, out: out + 1)

    def compiled() -> Any:
        recorded.clear()
        return mlc.compile(lambda x: net(x))(X)

    found, wanted = compiled(), net(X)
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-4, atol=1e-5)
    assert recorded.count("Linear") == 2                   # one that has a hook is no setting alone
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: x @ self.weight.T)
    found, wanted = compiled(), X @ net[0].weight.T @ net[1].weight.T @ net[2].weight.T + 1
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-4, atol=1e-5)
    assert recorded.count("Linear") == 3


def patched(plain: Callable[..., Any], f: Callable[..., Any]) -> list[Callable[..., Any]]:
    """Replacements of a method: a function, one that takes the name and the module of the method, a mock."""
    return [f, functools.wraps(plain)(f), mock.MagicMock(side_effect=f)]


@pytest.mark.usefixtures("execution")
@pytest.mark.parametrize("way", range(3))
def test_a_replaced_method_is_recorded_each_time(way: int, recorded: list[str], monkeypatch: pytest.MonkeyPatch
                                                 ) -> None:
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 3)
    owner: Any = next(base for base in nn.TransformerEncoderLayer.__mro__ if "_feed_forward" in vars(base))

    def replaced() -> None:
        numbers = itertools.count(2)
        f = patched(owner._feed_forward, lambda *args: args[-1].sin() * next(numbers))[way]
        monkeypatch.setattr(owner, "_feed_forward", f)

    mlc.compile(net)(X[None])
    assert recorded.count("TransformerEncoderLayer") == 1
    recorded.clear()
    replaced()
    found = mlc.compile(net)(X[None])
    assert recorded.count("TransformerEncoderLayer") == 3
    replaced()
    np.testing.assert_allclose(found.detach().numpy(), net(X[None]).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("execution")
@pytest.mark.parametrize("way", range(3))
def test_a_method_of_one_layer_is_seen(way: int, recorded: list[str]) -> None:
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 3)
    f = patched(nn.TransformerEncoderLayer._feed_forward, lambda x: 3 * x.sin())[way]
    object.__setattr__(net.layers[1], "_feed_forward", f)
    found = mlc.compile(net)(X[None])
    assert recorded.count("TransformerEncoderLayer") == 2
    np.testing.assert_allclose(found.detach().numpy(), net(X[None]).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_members_of_classes_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    classes = known_classes.KnownClasses()
    before = classes.state([nn.Linear, nn.GELU])
    assert before is not None and before == classes.state([nn.GELU, nn.Linear])
    monkeypatch.setattr(nn.Linear, "extra_repr", nn.GELU.extra_repr)       # also of mlc
    assert classes.state([nn.Linear, nn.GELU]) not in (None, before)
    monkeypatch.setattr(nn.Module, "added", property(lambda self: 1), raising=False)
    assert classes.state([nn.Linear, nn.GELU]) is None


def test_the_methods_of_all_layers_are_known() -> None:
    """Otherwise calls of a layer would be recorded each time."""
    everything = [getattr(nn, name) for name in nn.__all__]
    kinds: list[type] = [k for k in everything if isinstance(k, type) and issubclass(k, nn.Module)]
    kinds += [k for module in (cache, decoder, encoder, experts, gpt2, rotary) for k in vars(module).values()
              if isinstance(k, type) and (issubclass(k, nn.Module) or dataclasses.is_dataclass(k))]
    assert len(kinds) > 100
    assert [k for k in kinds if known_classes.KnownClasses().state([k]) is None] == []
