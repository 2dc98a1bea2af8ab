"""`mlc.compile(f, freeze=True)`: constants of the code, which is split in what runs once and what runs in each call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from tests.test_artifact import edited


class Small(nn.Module):
    """Products of weights in panels and not, normalization, and a tied weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(20, 64), nn.BatchNorm1d(64), nn.Linear(64, 20)
        self.scale = nn.Parameter(mlc.ones(20))

    def forward(self, x: Any) -> Any:
        y = mlc.relu(self.norm(self.first(x)))
        return (self.second(y) * mlc.exp(self.scale)) @ self.first.weight.T


def agrees(frozen: Callable[..., Any], f: Callable[..., Any], *args: Any) -> bool:
    """Whether a frozen function gives the bits of another one."""
    with mlc.no_grad():
        return np.array_equal(frozen(*args).numpy(), f(*args).numpy())


class Image(nn.Module):
    """Convolutions whose channels are in vectors: padded, strided, of one point and of windows, beside those of each
    channel, pooling, a sum of two images, and one of few points."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, channels, 5, stride=2, padding=2)
        self.point, self.window = nn.Conv2d(channels, 48, 1), nn.Conv2d(48, 48, 3, padding=1)
        self.norm, self.own = nn.BatchNorm2d(48), nn.Conv2d(48, 48, 3, padding=1, groups=48)
        self.last, self.out = nn.Conv2d(48, 33, 3, padding=1, dilation=1), nn.Linear(33, 7)

    def forward(self, x: Any) -> Any:
        x = mlc.relu(self.point(mlc.relu(self.first(x))))
        x = x + mlc.relu(self.norm(self.window(x)))
        x = mlc.cat([x, mlc.nn.functional.max_pool2d(x, 3, stride=1, padding=1)], 1)[:, :48]
        x = self.last(mlc.relu(self.own(mlc.nn.functional.max_pool2d(x, 2))))
        return self.out(x.mean((2, 3))), x


@pytest.mark.parametrize(("images", "size", "channels"), [(1, 22, 20), (2, 28, 32)])
def test_convolutions_have_the_same_bits(images: int, size: int, channels: int) -> None:
    model = Image(channels).eval()
    frozen: Any = mlc.compile(model, freeze=True)
    x = mlc.randn(images, 3, size, size)
    with mlc.no_grad():
        for one, other in zip(frozen(x), mlc.compile(model)(x)):
            assert np.array_equal(one.numpy(), other.numpy())
    assert [e.interface.name for e in frozen.entries] == ["main_with_constants"]


def test_a_softmax_between_convolutions_has_the_same_bits() -> None:
    """The exponentials, kept in the memory of the result, are in the order of its axes, also where that is another."""
    first, second, F = mlc.randn(32, 16, 1, 1), mlc.randn(32, 32, 3, 3), nn.functional

    def f(x: Any) -> Any:
        return F.conv2d(F.conv2d(x, first).softmax(2), second, None, 1, 1)

    assert agrees(mlc.compile(f, freeze=True), mlc.compile(f), mlc.randn(2, 16, 8, 8))


def test_columns_that_no_tile_divides_have_the_same_bits() -> None:
    """Vectors of 32 numbers and panels of 48."""
    weight = mlc.randint(-5, 5, (20, 48)).to(mlc.int16)
    x = mlc.randint(-5, 5, (40, 20)).to(mlc.int16)
    assert agrees(mlc.compile(lambda x: x @ weight, freeze=True), mlc.compile(lambda x: x @ weight), x)


@pytest.mark.parametrize("rows", [1, 3, 5, 40])
def test_results_have_the_same_bits(rows: int) -> None:
    model = Small().eval()
    frozen: Any = mlc.compile(model, freeze=True)
    assert agrees(frozen, mlc.compile(model), mlc.randn(rows, 20))
    assert [e.interface.name for e in frozen.entries] == ["main_with_constants"]


def test_a_module_with_a_buffer_that_has_no_value() -> None:
    model = Small().eval()
    model.register_buffer("mask", None)
    frozen: Any = mlc.compile(model, freeze=True)
    assert agrees(frozen, mlc.compile(model), mlc.randn(8, 20))
    assert [e.interface.name for e in frozen.entries] == ["main_with_constants"]


def test_code_for_all_sizes() -> None:
    model = Small().eval()
    frozen: Any = mlc.compile(model, freeze=True, dynamic=True)
    plain = mlc.compile(model, dynamic=True)
    for rows in (1, 2, 40):
        assert agrees(frozen, plain, mlc.randn(rows, 20))
    assert len(frozen.entries) == 1


def _write(model: Small) -> None:
    with mlc.no_grad():
        model.first.weight[3, 4] = 7.0


def _replace(model: Small) -> None:
    model.second.weight = nn.Parameter(mlc.randn(20, 64))


def _load(model: Small) -> None:
    model.load_state_dict(Small().state_dict())


def _train(model: Small) -> None:
    optimizer = mlc.optim.SGD(model.parameters(), lr=0.1)
    model(mlc.randn(4, 20)).sum().backward()
    optimizer.step()


def _write_outside(model: Small) -> None:
    model.scale.detach().numpy()[2] = 3.0


@pytest.mark.parametrize("change", [_write, _replace, _load, _train, _write_outside])
def test_changes_of_constants_are_seen(change: Callable[[Small], None]) -> None:
    model, x = Small().eval(), mlc.randn(8, 20)
    frozen = mlc.compile(model, freeze=True)
    for _ in range(3):                                     # the third call takes the fast path
        before = frozen(x)
    change(model)
    assert agrees(frozen, model, x)
    assert not np.array_equal(frozen(x).numpy(), before.numpy())


def test_calls_take_the_fast_path_in_any_grad_mode() -> None:
    x = mlc.randn(8, 20)
    frozen: Any = mlc.compile(Small().eval(), freeze=True)
    first = frozen(x)
    entry, = frozen.entries
    before = entry.fast_calls.value
    assert not first.requires_grad and not frozen(x).requires_grad
    with mlc.no_grad():
        frozen(x)
    assert entry.fast_calls.value == before + 2


def test_there_are_no_derivatives() -> None:
    frozen, x = mlc.compile(Small().eval(), freeze=True), mlc.randn(8, 20, requires_grad=True)
    with pytest.raises(mlc.UserError, match=r"MLC0438.*freeze=True"):
        frozen(x).sum().backward()


def test_what_changes_constants_is_refused() -> None:
    with pytest.raises(mlc.UserError, match=r"MLC0995.*freeze"):
        mlc.compile(Small(), freeze=True)(mlc.randn(8, 20))
    with pytest.raises(mlc.UserError, match=r"MLC0995.*computes gradients"):
        model = Small().eval()
        mlc.compile(lambda x: mlc.autograd.grad(model(x).sum(), [model.scale]), freeze=True)(mlc.randn(8, 20))
    with pytest.raises(mlc.UserError, match=r"MLC0380.*does not go with donate"):
        mlc.compile(lambda x: x, freeze=True, donate="x")


def test_functions_without_constants_and_closures() -> None:
    weight = mlc.randn(16, 16)
    frozen = mlc.compile(lambda x: (x @ mlc.exp(weight), x), freeze=True)
    x = mlc.randn(5, 16)
    assert np.array_equal(frozen(x)[0].numpy(), (x @ mlc.exp(weight)).numpy())
    assert mlc.compile(lambda x: x + 1, freeze=True)(mlc.ones(2)).tolist() == [2.0, 2.0]


def test_constants_of_loops() -> None:
    weight = mlc.randn(16, 16) * 0.1

    @mlc.compile(freeze=True)
    def repeated(x: Any, n: Any) -> Any:
        while n > 0:
            x, n = mlc.tanh(x @ mlc.exp(weight)), n - 1
        return x

    x = y = mlc.randn(5, 16)
    for _ in range(3):
        y = mlc.tanh(y @ mlc.exp(weight))
    assert np.array_equal(repeated(x, mlc.tensor(3)).numpy(), y.numpy())


def test_literals_are_used_within_loops_and_before() -> None:
    weight = mlc.rand(16) + 1

    @mlc.compile(freeze=True)
    def f(x: Any) -> Any:
        two = mlc.full((16,), 2.0)
        x = x * two
        if x.sum() > 0:
            x = x + two * weight
        while x.sum() < 100:
            x = x + two * mlc.exp(weight)
        return x

    x = two = mlc.full((16,), 2.0)
    x = mlc.ones(16) * two + two * weight
    while x.sum() < 100:
        x = x + two * mlc.exp(weight)
    assert np.array_equal(f(mlc.ones(16)).numpy(), x.numpy())


def test_an_argument_that_is_written_shares_no_memory_with_a_constant() -> None:
    weight = mlc.randn(32, 32)

    @mlc.compile(freeze=True)
    def f(x: Any) -> Any:
        x.add_(1)
        return x @ weight

    f(mlc.randn(32, 32))
    sharing: list[Callable[[], Any]] = [lambda: weight, lambda: weight[:16]]
    for shared in sharing:
        with pytest.raises(mlc.UserError, match="MLC0759"):
            f(shared())


def test_random_keys_are_drawn_once_in_each_call_and_anomalies_are_named() -> None:
    weight = mlc.ones(4)
    f, g = (mlc.compile(lambda x: x * mlc.exp(weight) + mlc.rand(4), freeze=freeze) for freeze in (True, False))
    found = []
    for h, around in ((g, nullcontext), (g, mlc.detect_anomaly), (f, nullcontext), (f, mlc.detect_anomaly)):
        mlc.manual_seed(0)
        with around():
            found.append([h(mlc.ones(4)).tolist() for _ in range(3)])
    assert all(numbers == found[0] for numbers in found)
    with mlc.detect_anomaly(), pytest.raises(mlc.UserError, match=r"sqrt.*NaN|NaN.*sqrt"):
        mlc.compile(lambda x: mlc.sqrt(x * mlc.exp(weight)), freeze=True)(-mlc.ones(4))


def test_dual_constants_are_refused() -> None:
    weights, v = [mlc.randn(4, 4)], mlc.randn(4, 4)
    f = mlc.compile(lambda x: x @ weights[0], freeze=True)
    with mlc.autograd.forward_ad.dual_level():
        weights[0] = mlc.autograd.forward_ad.make_dual(weights[0], v)
        with pytest.raises(mlc.UserError, match=r"MLC0839.*freeze"):
            f(mlc.randn(2, 4))


def test_many_changes() -> None:
    """Each is seen, and the function stays frozen."""
    model, x = Small().eval(), mlc.randn(8, 20)
    frozen: Any = mlc.compile(model, freeze=True)
    for n in range(10):
        with mlc.no_grad():
            model.first.weight[0, 0] = float(n)
        assert agrees(frozen, model, x)
    assert {e.interface.name for e in frozen.entries} == {"main_with_constants"} and not frozen(x).requires_grad


def test_functions_of_the_names_that_constants_would_have() -> None:
    weight = mlc.randn(16, 16)

    @mlc.compile
    def main_constants(x: Any) -> Any:
        return mlc.tanh(x) @ mlc.exp(x)

    f = mlc.compile(lambda x: main_constants(x @ mlc.exp(weight)) + main_constants(x), freeze=True)
    x = mlc.randn(16, 16)
    g = mlc.compile(lambda x: main_constants(x @ mlc.exp(weight)) + main_constants(x))
    assert np.array_equal(f(x).numpy(), g(x).numpy())


def test_profiles_time_the_kernels_that_run_in_each_call() -> None:
    frozen, x = mlc.compile(Small().eval(), freeze=True), mlc.randn(8, 20)
    expected = frozen(x)
    with mlc.profiler.profile(kernels=True) as profile:
        assert np.array_equal(frozen(x).numpy(), expected.numpy())
    assert any("unpack" in row.kernel for row in profile.kernels().rows)


# -- files ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("args", [[mlc.spec("B", 20)], [mlc.spec(8, 20)], None])
def test_a_saved_function_is_frozen(args: Any, tmp_path: Path) -> None:
    model, x = Small().eval(), mlc.randn(8, 20)
    frozen: Any = mlc.compile(model, freeze=True)
    expected = frozen(x)
    mlc.save(frozen, tmp_path / "frozen.mlc", args=args)
    loaded = mlc.load(tmp_path / "frozen.mlc")
    assert np.array_equal(loaded(x).numpy(), expected.numpy())
    assert np.array_equal(loaded(mlc.flip(x, (0,))).numpy(), mlc.flip(expected, (0,)).numpy())
    assert loaded.weights == {} and "frozen" in repr(loaded)


def test_a_saved_function_without_anything_to_compute_once(tmp_path: Path) -> None:
    class Shift(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by = nn.Parameter(mlc.ones(3))

        def forward(self, x: Any) -> Any:
            return x + self.by

    mlc.save(mlc.compile(Shift(), freeze=True), tmp_path / "shift.mlc", args=[mlc.spec("B", 3)])
    assert mlc.load(tmp_path / "shift.mlc")(mlc.ones(2, 3)).tolist() == [[2.0] * 3] * 2


def test_a_model_in_training_is_not_saved_frozen(tmp_path: Path) -> None:
    with pytest.raises(mlc.UserError, match=r"MLC0995.*freeze"):
        mlc.save(mlc.compile(Small(), freeze=True), tmp_path / "frozen.mlc", args=[mlc.spec(8, 20)])
    with pytest.raises(mlc.UserError, match=r"MLC0380.*freeze"):
        mlc.save(mlc.compile(Small().eval(), freeze=True), tmp_path / "frozen.mlc", args=[mlc.spec(8, 20)],
                 targets=["cuda:sm_90"])
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("sources", [[0], [1000], [-1, 0]])
def test_constants_that_do_not_fit_are_refused(sources: list[int], tmp_path: Path) -> None:
    path = tmp_path / "frozen.mlc"
    mlc.save(mlc.compile(Small().eval(), freeze=True), path, args=[mlc.spec(8, 20)])

    def change(head: Any) -> None:
        for interface in head["signatures"][0]["image"]["interfaces"]:
            if interface["name"] == "main_with_constants":
                interface["sources"] = (sources * 100)[: len(interface["sources"])]

    edited(path, change)
    with pytest.raises(mlc.UserError, match="MLC0571"):
        mlc.load(path)


def test_what_is_lowered_of_a_frozen_module_is_what_runs() -> None:
    """Its weights are constants there, as in the code of its calls."""
    frozen, x = mlc.compile(nn.Linear(20, 64).eval(), freeze=True), mlc.ones(40, 20)
    assert "@main_constants" in str(mlc.lower(frozen, [x], level="loop"))
