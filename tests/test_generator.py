"""Generators: their states, and what is drawn from them, distributed as PyTorch's functions say."""
from __future__ import annotations

import copy
import inspect
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn

pytestmark = pytest.mark.usefixtures("execution")

torch = pytest.importorskip("torch")
ANY: Any = mlc
"""The package without the types of its parameters."""
COUNT = 20_000


@pytest.fixture(autouse=True)
def _seeded() -> None:
    mlc.manual_seed(2024)


# -- states -----------------------------------------------------------------------------------------------------------
DRAWS: dict[str, Callable[[Any], Any]] = {
    "rand": lambda g: mlc.rand(3, 2, generator=g), "randn": lambda g: mlc.randn((3, 2), generator=g),
    "randint": lambda g: mlc.randint(0, 100, (5,), generator=g), "randperm": lambda g: mlc.randperm(20, generator=g),
    "rand_like": lambda g: mlc.rand_like(mlc.zeros(3), generator=g),
    "randn_like": lambda g: mlc.randn_like(mlc.zeros(3), generator=g),
    "randint_like": lambda g: mlc.randint_like(mlc.zeros(3), 99, generator=g),
    "normal": lambda g: mlc.normal(0.0, 1.0, (3,), generator=g),
    "bernoulli": lambda g: mlc.bernoulli(mlc.full((30,), 0.5), generator=g),
    "multinomial": lambda g: mlc.multinomial(mlc.ones(30), 9, generator=g),
    "poisson": lambda g: mlc.poisson(mlc.full((9,), 20.0), generator=g),
    "binomial": lambda g: mlc.binomial(mlc.full((9,), 50.0), mlc.full((9,), 0.5), generator=g),
    "normal_": lambda g: nn.init.normal_(mlc.empty(3), generator=g),
    "Linear": lambda g: nn.Linear(3, 4, generator=g).weight,
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_state_determines_all_later_numbers(name: str) -> None:
    draw, g = DRAWS[name], mlc.Generator().manual_seed(7)
    draw(g)
    state = g.get_state()
    first, second = draw(g), draw(g)
    assert not mlc.equal(first, second)
    other = mlc.Generator().set_state(mlc.tensor(state.tolist(), dtype=mlc.uint8))
    assert other.initial_seed() == 7 and mlc.equal(draw(other), first) and mlc.equal(draw(other), second)
    mlc.set_rng_state(state)
    assert mlc.equal(draw(None), first)


def test_seeds() -> None:
    g, theirs = mlc.Generator(), torch.Generator()
    assert g.initial_seed() == theirs.initial_seed()
    for seed in (0, 5, -1, -(1 << 63), (1 << 64) - 1):
        assert g.manual_seed(seed).initial_seed() == theirs.manual_seed(seed).initial_seed()
    assert mlc.manual_seed(3) is mlc.default_generator and mlc.initial_seed() == 3
    assert mlc.seed() == mlc.initial_seed() != mlc.seed()
    for wrong, code in ((1 << 64, "MLC0360"), (1.5, "MLC0355"), ("a", "MLC0355")):
        with pytest.raises(mlc.UserError, match=code):
            ANY.manual_seed(wrong)


def test_states_that_are_none() -> None:
    for wrong in (mlc.zeros(16), mlc.zeros(8, dtype=mlc.uint8)):
        with pytest.raises(mlc.UserError, match="MLC0717"):
            mlc.set_rng_state(wrong)


def test_copies_continue_from_the_state() -> None:
    g = mlc.Generator().manual_seed(1)
    mlc.rand(3, generator=g)
    copies = [copy.deepcopy(g), pickle.loads(pickle.dumps(g)), g.clone_state()]  # noqa: S301
    expected = mlc.rand(4, generator=g)
    assert all(mlc.equal(mlc.rand(4, generator=c), expected) for c in copies)


def test_a_seed_makes_weights_and_dropout_reproducible() -> None:
    def run() -> Any:
        mlc.manual_seed(9)
        model = nn.Sequential(nn.Linear(4, 50), nn.Dropout(0.5))
        return mlc.cat([model(mlc.ones(4)), nn.functional.dropout(mlc.ones(50)), mlc.rand(3)])

    assert mlc.equal(run(), run())


def test_fork_rng_leaves_the_state_as_it_was() -> None:
    state = mlc.get_rng_state()
    with mlc.random.fork_rng():
        mlc.manual_seed(5)
        mlc.rand(3)
    assert mlc.equal(mlc.get_rng_state(), state)
    with mlc.random.fork_rng(enabled=False):
        mlc.rand(3)
    assert not mlc.equal(mlc.get_rng_state(), state)


def test_threads_draw_different_keys() -> None:
    g, found = mlc.Generator().manual_seed(0), list[Any]()
    threads = [threading.Thread(target=lambda: found.extend(tuple(g.next_key().tolist()) for _ in range(200)))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other = mlc.Generator().manual_seed(0)
    assert sorted(found) == sorted(tuple(other.next_key().tolist()) for _ in range(800))


# -- numbers ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stateful, functional", [
    (lambda g: mlc.rand(4, 5, generator=g), lambda k: mlc.random.rand(k, 4, 5)),
    (lambda g: mlc.randn(4, 5, generator=g, dtype="float64"), lambda k: mlc.random.randn(k, 4, 5, dtype="float64")),
    (lambda g: mlc.randint(-5, 99, (4, 5), generator=g), lambda k: mlc.random.randint(k, (4, 5), -5, 99)),
    (lambda g: mlc.randint(0, 1 << 32, (7,), generator=g), lambda k: mlc.random.randint(k, (7,), 0, 1 << 32)),
    (lambda g: mlc.randperm(50, generator=g), lambda k: mlc.random.randperm(k, 50)),
    (lambda g: mlc.bernoulli(mlc.full((9,), 0.3), generator=g) > 0, lambda k: mlc.random.bernoulli(k, 0.3, (9,)))])
def test_the_numbers_are_those_of_the_functions_of_a_key(stateful: Any, functional: Any) -> None:
    g = mlc.Generator().manual_seed(4)
    key = g.clone_state().next_key()
    assert mlc.equal(stateful(g), functional(key))


def close(x: Any, mean: float, std: float) -> bool:
    """Whether a sample has this mean and deviation, up to 5 standard errors of the mean."""
    a = x.double().numpy().ravel()
    return bool(abs(a.mean() - mean) < 5 * std / a.size**0.5 and abs(a.std() - std) < 0.05 * std)


def test_distributions() -> None:
    third = 1 / 12**0.5
    assert close(mlc.rand(COUNT), 0.5, third) and close(mlc.rand(COUNT, dtype="float64"), 0.5, third)
    assert close(mlc.rand(COUNT, dtype="float16"), 0.5, third)
    assert close(mlc.rand(COUNT, dtype="bfloat16"), 0.498, third)
    assert close(mlc.randn(COUNT), 0, 1) and close(mlc.normal(3.0, 2.0, (COUNT,)), 3, 2)
    assert close(mlc.randint(0, 10, (COUNT,)), 4.5, 8.25**0.5)
    wide = mlc.randint(-1 << 63, (1 << 63) - 1, (COUNT,))
    assert close(wide.double(), 0, 2.0**64 * third)
    assert close(mlc.bernoulli(mlc.full((COUNT,), 0.3)), 0.3, 0.21**0.5)
    assert close(mlc.poisson(mlc.full((COUNT,), 4.0)), 4, 2)
    assert close(mlc.binomial(mlc.full((COUNT,), 10.0), mlc.tensor(0.25)), 2.5, 1.875**0.5)
    spread = mlc.normal(mlc.tensor([[0.0], [9.0]]), mlc.ones(COUNT))
    assert spread.shape == (2, COUNT) and close(spread[0], 0, 1) and close(spread[1], 9, 1)


def test_integers_cover_the_range() -> None:
    assert sorted(set(mlc.randint(-2, 3, (200,)).tolist())) == [-2, -1, 0, 1, 2]
    assert set(mlc.randint(2, (99,), dtype=mlc.bool).tolist()) == {False, True}
    assert mlc.randint(0, 1 << 64, (5,), dtype="uint64").dtype is mlc.uint64
    assert sorted(mlc.randperm(100).tolist()) == list(range(100))


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial(replacement: bool) -> None:
    rows = np.tile(np.array([[1, 0, 3, 4]], np.float32), (4000, 1))
    drawn = mlc.multinomial(mlc.tensor(rows), 2, replacement).numpy()
    counts, expected = np.bincount(drawn[:, 0], minlength=4), np.array([500, 0, 1500, 2000])
    assert (abs(counts - expected) <= 5 * expected**0.5).all()
    assert replacement == bool((drawn[:, 0] == drawn[:, 1]).any())
    if not replacement:                                    # the second is drawn from what the first has left
        after = np.bincount(drawn[drawn[:, 0] == 3][:, 1], minlength=4)
        assert after[1] == after[3] == 0 and abs(after[2] / after.sum() - 0.75) < 0.05


def test_multinomial_without_replacement_never_repeats() -> None:
    assert sorted(mlc.multinomial(mlc.rand(500) + 0.1, 500).tolist()) == list(range(500))


# -- signatures -------------------------------------------------------------------------------------------------------
SIGNATURES: list[Callable[[Any], Any]] = [
    lambda m: m.rand(2, 3), lambda m: m.rand((2, 3)), lambda m: m.rand(size=(2, 3)), lambda m: m.rand([2]),
    lambda m: m.rand(()), lambda m: m.randn(2, 0, dtype=m.float64), lambda m: m.randn(2, requires_grad=True),
    lambda m: m.randint(5, (2, 3)), lambda m: m.randint(1, 5, (2,)), lambda m: m.randint(low=1, high=5, size=[2]),
    lambda m: m.randint(high=5, size=(2,), low=2, dtype=m.int32), lambda m: m.randint(5, size=(2,), dtype=m.float32),
    lambda m: m.randperm(5), lambda m: m.randperm(5, dtype=m.int32, device="cpu"),
    lambda m: m.rand_like(m.zeros(2, 3)), lambda m: m.randn_like(m.zeros(2, dtype=m.float64)),
    lambda m: m.rand_like(m.zeros(2, dtype=m.int64), dtype=m.float32), lambda m: m.randint_like(m.zeros(2), 5),
    lambda m: m.randint_like(m.zeros(2), 2, 5, dtype=m.int64),
    lambda m: m.normal(0.0, 1.0, (2, 3)), lambda m: m.normal(0, 1, size=(2,)), lambda m: m.normal(m.zeros(3), 2.0),
    lambda m: m.normal(mean=0.5, std=m.ones(4)), lambda m: m.normal(m.zeros(3), m.ones(3)),
    lambda m: m.normal(m.ones(2)),
    lambda m: m.bernoulli(m.zeros(2, 3)), lambda m: m.bernoulli(m.zeros(4), 0.5), lambda m: m.zeros(4).bernoulli(),
    lambda m: m.zeros(3).bernoulli(0.5), lambda m: m.multinomial(m.ones(5), 3),
    lambda m: m.multinomial(m.ones(2, 5, dtype=m.float64), 7, replacement=True), lambda m: m.ones(5).multinomial(2),
    lambda m: m.poisson(m.ones(2, dtype=m.float64)), lambda m: m.binomial(m.ones(2), m.ones(2)),
]


@pytest.mark.parametrize("draw", SIGNATURES, ids=lambda f: inspect.getsource(f).split(": ")[0][:20])
def test_shapes_and_dtypes_are_those_of_torch(draw: Callable[[Any], Any]) -> None:
    ours, theirs = draw(mlc), draw(torch)
    assert ours.shape == tuple(theirs.shape) and str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    assert ours.requires_grad == theirs.requires_grad


@pytest.mark.parametrize("wrong, code", [
    (lambda: ANY.randint(5), "MLC0321"), (lambda: mlc.randint(5, 5, (2,)), "MLC0360"),
    (lambda: mlc.randint(0, 300, (2,), dtype=mlc.uint8), "MLC0348"), (lambda: mlc.rand(-1), "MLC0358"),
    (lambda: mlc.randint(0, 1 << 64, (2,)), "MLC0348"),
    (lambda: mlc.randint(0, 4096, (2,), dtype="float16"), "MLC0348"),
    (lambda: mlc.rand(2, dtype=mlc.int64), "MLC0359"), (lambda: mlc.randperm(-1), "MLC0358"),
    (lambda: mlc.normal(0.0, -1.0, (2,)), "MLC0360"), (lambda: mlc.normal(0.0, 1.0), "MLC0321"),
    (lambda: mlc.normal(mlc.zeros(2), 1.0, (2,)), "MLC0360"), (lambda: mlc.bernoulli(mlc.tensor([1.5])), "MLC0360"),
    (lambda: mlc.bernoulli(mlc.tensor([1])), "MLC0359"),
    (lambda: mlc.multinomial(mlc.tensor([1.0, 0.0]), 2), "MLC0360"),
    (lambda: mlc.multinomial(mlc.tensor([-1.0, 2.0]), 1), "MLC0360"),
    (lambda: mlc.multinomial(mlc.ones(2, 2, 2), 1), "MLC0364"), (lambda: mlc.multinomial(mlc.ones(2), 0), "MLC0360"),
    (lambda: mlc.poisson(mlc.tensor([-1.0])), "MLC0360"), (lambda: mlc.poisson(mlc.tensor([1])), "MLC0359"),
    (lambda: mlc.binomial(mlc.ones(1), mlc.tensor(2.0)), "MLC0360"),
    (lambda: ANY.rand(2, generator=np.random.default_rng(0)), "MLC0421"), (lambda: ANY.rand("a"), "MLC03")])
def test_what_makes_no_sense(wrong: Callable[[], Any], code: str) -> None:
    with pytest.raises(mlc.UserError, match=code):
        wrong()


# -- recorded functions -----------------------------------------------------------------------------------------------
RECORDED: list[Callable[[Any], Any]] = [
    lambda x: x + mlc.rand(3), lambda x: mlc.randn_like(x), lambda x: mlc.normal(x, 1.0), lambda x: mlc.bernoulli(x),
    lambda x: nn.functional.dropout(x, 0.5), lambda x: x * mlc.randint(3, (3,)), lambda x: x.multinomial(1),
    lambda x: x[mlc.randperm(3)]]
REFUSED: list[Callable[[Any], Any]] = [lambda x: x + mlc.poisson(mlc.ones(3))]


def draws_in_a_loop(x: Any) -> Any:
    while x.sum() < 9:
        x = x + mlc.rand(3)
    return x


@pytest.mark.parametrize("f", [*REFUSED, draws_in_a_loop])
def test_a_draw_that_cannot_be_recorded_is_refused(f: Callable[[Any], Any]) -> None:
    with pytest.raises(mlc.UserError, match="MLC0716"):
        mlc.compile(f)(mlc.ones(3))


@pytest.mark.parametrize("f", [*RECORDED, *REFUSED])
def test_a_draw_for_many_examples_is_refused(f: Callable[[Any], Any]) -> None:
    state = mlc.get_rng_state()
    for transformed in (mlc.vmap(f), mlc.compile(mlc.vmap(f)), mlc.grad(lambda x: mlc.vmap(f)(x).sum())):
        with pytest.raises(mlc.UserError, match="MLC0716"):
            transformed(mlc.ones(1, 3))
    assert mlc.equal(mlc.get_rng_state(), state)


@pytest.mark.usefixtures("interpreted")
def test_the_same_draw_for_all_examples() -> None:
    rows = mlc.vmap(lambda x: x + mlc.rand(3), randomness="same")(mlc.zeros(2, 3))
    assert mlc.equal(rows[0], rows[1]) and 0 < rows.sum() < 6


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("f", REFUSED)
def test_what_cannot_be_recorded_has_no_derivative(f: Callable[[Any], Any]) -> None:
    with pytest.raises(mlc.UserError, match="MLC0716"):
        mlc.grad(lambda x: f(x).sum())(mlc.ones(3))


def weighted(x: Any) -> Any:
    return nn.functional.dropout(x, 0.5) * x * mlc.rand(8)


def by_vjp(x: Any) -> tuple[Any, Any]:
    y, pullback = mlc.vjp(weighted, x)
    return y, pullback(mlc.ones(8))[0]


@pytest.mark.usefixtures("interpreted")
def test_a_function_that_draws_is_differentiated_with_what_it_draws() -> None:
    mlc.manual_seed(3)
    x = mlc.ones(8, requires_grad=True)
    y = weighted(x)
    y.sum().backward()
    wanted, after = x.grad, mlc.rand(2)
    ways: list[Callable[[Any], tuple[Any, Any]]] = [
        lambda x: mlc.value_and_grad(lambda x: weighted(x).sum())(x), lambda x: mlc.jvp(weighted, (x,), (mlc.ones(8),)),
        by_vjp,
        lambda x: (None, mlc.jacrev(weighted)(x).sum(0)), lambda x: (None, mlc.jacfwd(weighted)(x).sum(0))]
    for derivative in ways:
        mlc.manual_seed(3)
        value, found = derivative(mlc.ones(8))
        assert value is None or mlc.allclose(value.sum(), y.sum())
        assert mlc.allclose(found, wanted) and mlc.equal(mlc.rand(2), after)
    _, pullback = mlc.vjp(weighted, mlc.ones(8))
    assert mlc.equal(pullback(mlc.ones(8))[0], pullback(mlc.ones(8))[0])


# -- initial values in place ------------------------------------------------------------------------------------------
FILLS: dict[str, tuple[Any, ...]] = {
    "uniform_": (-1.0, 2.0), "normal_": (1.0, 2.0), "trunc_normal_": (0.0, 1.0, -1.0, 1.5), "constant_": (0.5,),
    "zeros_": (), "ones_": (), "xavier_uniform_": (2.0,), "xavier_normal_": (2.0,),
    "kaiming_uniform_": (0.1, "fan_out", "relu"), "kaiming_normal_": (0.1,), "orthogonal_": (2.0,), "eye_": (),
    "sparse_": (0.2, 0.5),
}


@pytest.mark.parametrize("name", FILLS)
def test_a_tensor_is_filled_as_by_torch(name: str) -> None:
    args = FILLS[name]
    ours, theirs = mlc.empty(80, 120, dtype="float64", requires_grad=True), torch.empty(80, 120, dtype=torch.float64)
    before = ours * 1
    assert getattr(nn.init, name)(ours, *args) is ours and ours.is_leaf and ours.requires_grad
    a, b = ours.numpy(), getattr(torch.nn.init, name)(theirs, *args).numpy()
    assert a.dtype == b.dtype and a.std() == pytest.approx(b.std(), rel=0.05)
    assert a.mean() == pytest.approx(b.mean(), abs=0.05 * (b.std() + 1e-9))
    assert abs(a).max() == pytest.approx(abs(b).max(), rel=0.35) and (before == 0).all()
    signature = inspect.signature(getattr(nn.init, name))
    assert list(signature.parameters) == list(inspect.signature(getattr(torch.nn.init, name)).parameters)


def test_dirac_in_place() -> None:
    w = nn.Conv1d(2, 2, 3, padding=1, bias=False)
    nn.init.dirac_(w.weight)
    x = mlc.rand(1, 2, 5)
    assert mlc.equal(w(x), x)


def test_filling_is_eager() -> None:
    with pytest.raises(mlc.UserError, match="MLC0718"):
        mlc.compile(lambda x: nn.init.zeros_(x))(mlc.ones(2))
    with pytest.raises(mlc.UserError, match="MLC0421"):
        nn.init.zeros_(np.ones(2))  # type: ignore[arg-type]


def test_one_trial_is_a_tensor() -> None:
    """Of a tensor without dimensions numpy's comparison makes a number, which had no array."""
    assert np.array_equal(mlc.bernoulli(mlc.tensor(1.0)).numpy(), np.float32(1))
