"""Dropout: what is dropped, keys that move on, the same training every time."""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.ir.diag import UserError

pytestmark = pytest.mark.usefixtures("execution")

F = nn.functional


def test_a_fraction_is_dropped_and_the_mean_stays() -> None:
    mlc.manual_seed(0)
    y = nn.Dropout(0.3)(mlc.ones(100, 100)).numpy()
    assert (y == 0).mean() == pytest.approx(0.3, abs=0.02) and y.mean() == pytest.approx(1, abs=0.02)
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.7)}


def test_evaluation_and_no_dropout_change_nothing() -> None:
    x = mlc.ones(5)
    layer = nn.Dropout(0.5)
    before = layer.key.tolist()
    assert layer.eval()(x) is x and nn.Dropout(0.0)(x) is x and layer.key.tolist() == before
    assert nn.Dropout(1.0)(x).tolist() == [0] * 5


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("batched", [True, False])
def test_whole_channels(spatial: int, batched: bool) -> None:
    layer = getattr(nn, f"Dropout{spatial}d")(0.5)
    count = 3 if spatial == 2 and not batched else 3**spatial          # PyTorch's Dropout2d reads (n, c, l) then
    y = layer(mlc.ones(*([8] * batched), 16, *[3] * spatial)).numpy().reshape(-1, count)
    assert (y == y[:, :1]).all() and set(np.unique(y)) == {0, 2}


def test_alpha_dropout_keeps_mean_and_deviation() -> None:
    mlc.manual_seed(1)
    x = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    y = nn.AlphaDropout(0.2)(mlc.tensor(x)).numpy()
    assert y.mean() == pytest.approx(0, abs=0.02) and y.std() == pytest.approx(1, abs=0.02)


def test_a_function_draws_with_a_key_or_from_the_default_generator() -> None:
    x, key = mlc.ones(8), mlc.random.key(1)
    assert F.dropout(x, 0.5, key=key).tolist() == F.dropout(x, 0.5, key=key).tolist()
    assert F.dropout(x, 0.5, training=False).tolist() == [1] * 8
    mlc.manual_seed(1)
    first, second = F.dropout(x, 0.5).tolist(), F.dropout(x, 0.5).tolist()
    mlc.manual_seed(1)
    assert F.dropout(x, 0.5).tolist() == first != second and set(first) <= {0, 2}
    f = mlc.compile(lambda x: F.dropout(x, 0.5))
    f(x)
    mlc.manual_seed(1)
    assert [f(x).tolist(), f(x).tolist()] == [first, second]
    mlc.manual_seed(1)
    assert mlc.grad(lambda x: F.dropout(x, 0.5).sum())(x).tolist() == first
    with pytest.raises(mlc.UserError, match="MLC0716"):
        mlc.vmap(lambda x: F.dropout(x, 0.5).sum())(x[None])


def test_every_function_that_drops_draws_what_it_needs() -> None:
    before, x = mlc.default_generator.clone_state(), mlc.ones(2, 3, 4, 5, 6)
    F.dropout(x, 0.5, False), F.dropout(x, 0.0), F.rrelu(-x), F.scaled_dot_product_attention(x, x, x)
    assert mlc.equal(before.get_state(), mlc.get_rng_state())
    calls: tuple[Callable[[], Any], ...] = (
        lambda: F.dropout(x), lambda: F.dropout1d(x[0, 0]), lambda: F.dropout2d(x[0]), lambda: F.dropout3d(x),
             lambda: F.alpha_dropout(x, 0.5, True), lambda: F.feature_dropout(x[0]), lambda: F.rrelu(-x, training=True),
             lambda: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5))
    for draw in calls:
        before.next_key()
        assert draw().isfinite().all() and mlc.equal(before.get_state(), mlc.get_rng_state())


def masks(run: Any, count: int) -> list[Any]:
    """Dropout masks of several calls of a seeded model."""
    mlc.manual_seed(3)
    model = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5)))
    return [run(model, mlc.ones(16)) for _ in range(count)]


def test_compiled_and_eager_drop_the_same() -> None:
    """And another part in each layer and call."""
    plain = masks(lambda m, x: m(x).tolist(), 3)
    f = mlc.compile(lambda m, x: m(x))
    assert masks(lambda m, x: f(m, x).tolist(), 3) == plain
    assert len({tuple(x) for x in plain}) == 3 and len(f.entries) == 1
    g = mlc.compile(mlc.grad(lambda m, x: m(x).sum(), argnums=1))
    assert masks(lambda m, x: g(m, x).tolist(), 3) == plain


def test_a_step_that_gives_the_model_back() -> None:
    """Donated memory, a compiled update, and twice the same training."""
    def train() -> Any:
        mlc.manual_seed(5)
        model, opt = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)), mlc.optim.SGD(lr=0.1)
        state = opt.init(model)

        def step(model: Any, state: Any, x: Any) -> Any:
            value, gradients = mlc.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
            return *opt.update(gradients, state, model), value

        compiled, values = mlc.compile(step, donate=("model", "state")), []
        for _ in range(4):
            model, state, value = compiled(model, state, mlc.ones(3, 4))
            values.append(value.item())
        return values, model.state_dict()

    (a, first), (b, second) = train(), train()
    assert a == b and len(set(a)) == 4
    assert list(first) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    for name, x in first.items():
        np.testing.assert_array_equal(x.numpy(), second[name].numpy())


def test_copies_of_a_layer_drop_other_elements() -> None:
    mlc.manual_seed(0)
    layers = nn.Sequential(*[copy.deepcopy(nn.Dropout(0.5)) for _ in range(3)])
    x = mlc.ones(10_000)
    for run in (layers, mlc.compile(layers)):
        assert (run(x) > 0).float().mean().item() == pytest.approx(0.125, abs=0.02)


def test_a_seed_reaches_layers_that_are_there() -> None:
    layer, x = nn.Dropout(0.5), mlc.ones(64)
    for run in (layer, mlc.compile(layer)):
        found = []
        for _ in range(2):
            mlc.manual_seed(1)
            found.append(run(x).tolist())
        assert found[0] == found[1] != run(x).tolist()


def test_layers_in_loops_and_branches_drop_other_elements() -> None:
    layers = nn.ModuleList([copy.deepcopy(nn.Dropout(0.5)) for _ in range(3)])

    def once(x: Any) -> Any:
        if x.sum() > 0:
            for layer in layers:
                x = layer(x)
        return x

    def often(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = layers[0](x)
        return x

    def loop(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = once(x)
        return x

    x = mlc.ones(10_000)
    branch, found = mlc.compile(once), []
    for _ in range(2):
        mlc.manual_seed(2)
        found.append(branch(x))
    assert found[0].tolist() == found[1].tolist()
    for y in (found[0], mlc.compile(often)(x, mlc.tensor(3)), mlc.compile(loop)(x, mlc.tensor(1))):
        assert (y > 0).float().mean().item() == pytest.approx(0.125, abs=0.02)


def test_a_layer_with_a_generator_draws_by_a_key_of_its_own() -> None:
    own = [nn.Dropout(0.5, generator=mlc.Generator().manual_seed(4)) for _ in range(2)]
    assert own[0](mlc.ones(64)).tolist() == own[1](mlc.ones(64)).tolist()


def test_a_layer_for_many_examples_draws_only_what_is_the_same_for_all() -> None:
    layer, x = nn.Dropout(0.5), mlc.ones(2, 64)
    for run in (mlc.vmap(layer), mlc.compile(mlc.vmap(layer))):
        with pytest.raises(UserError, match="MLC0716"):
            run(x)
    first, second = mlc.vmap(layer, randomness="same")(x).tolist()
    assert first == second
