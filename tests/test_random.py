"""Random numbers: the published bits, the same eager and compiled, and distributed as they should be."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import random
from mlc.dialects.tensor.random import threefry_arrays
from mlc.ir.diag import UserError
from tests.fake_device import FakeDevice
from tests.public_case import thinned

pytestmark = pytest.mark.usefixtures("execution")

KEY = mlc.random.key(2024)
COUNT = 20_000


@pytest.mark.parametrize(("key", "counter", "words"), [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0))])
def test_published_vectors(key: Any, counter: Any, words: Any) -> None:
    """Random123's known answers for Threefry-2x32 with 20 rounds."""
    high, low = (np.array([w], np.uint32) for w in counter)
    assert [int(w[0]) for w in threefry_arrays(np.array(key, np.uint32), high, low)] == list(words)


def test_keys_are_those_of_jax() -> None:
    key = mlc.random.key(0)
    assert key.tolist() == [0, 0] and mlc.random.key(-1).tolist() == [0xFFFFFFFF] * 2
    assert mlc.random.split(key).tolist() == [[1797259609, 2579123966], [928981903, 3453687069]]
    high, low = threefry_arrays(*(np.array(w, np.uint32) for w in ([0, 0], [0], [7])))
    assert mlc.random.fold_in(key, 7).tolist() == [high[0], low[0]]


def test_an_element_depends_on_its_place_alone() -> None:
    long = mlc.random.bits(KEY, (1000,)).numpy()
    assert (mlc.random.bits(KEY, (7,)).numpy() == long[:7]).all()
    assert (mlc.random.bits(KEY, (10, 100)).numpy().ravel() == long).all()
    assert (mlc.random.bits(KEY, (1000,), "uint8").numpy() == (long & 255)).all()


DRAWS: dict[str, Callable[[Any], Any]] = {
    "bits": lambda k: mlc.random.bits(k, (5, 3), "uint64"), "uniform": lambda k: mlc.random.uniform(k, (33,), -1, 2),
    "normal": lambda k: mlc.random.normal(k, (33,)), "normal64": lambda k: mlc.random.normal(k, (9,), dtype="float64"),
    "split": lambda k: mlc.random.split(k, 3), "fold_in": lambda k: mlc.random.fold_in(k, 3),
    "permutation": lambda k: mlc.random.permutation(k, 100), "exponential": lambda k: mlc.random.exponential(k, (9,)),
    "categorical": lambda k: mlc.random.categorical(k, np.eye(4, dtype=np.float32)),
    "dropout": lambda k: mlc.random.dropout(k, np.ones((4, 5), np.float32), 0.3),
    "randint": lambda k: mlc.random.randint(k, (9,), -3, 1000),
    "half": lambda k: mlc.random.uniform(k, (9,), dtype="float16"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_eager_and_compiled_give_the_same_bits(name: str) -> None:
    assert DRAWS[name](KEY).numpy().tobytes() == mlc.compile(DRAWS[name])(KEY).numpy().tobytes()


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.usefixtures("interpreted")
def test_every_lane_and_every_turn_has_the_bits_that_its_key_has_alone(name: str) -> None:
    keys = mlc.random.split(KEY, 3)
    alone = np.stack([DRAWS[name](key).numpy() for key in keys])
    for many in (mlc.vmap(DRAWS[name]), lambda keys: mlc.map(DRAWS[name], keys)):
        assert mlc.compile(many)(keys).numpy().tobytes() == alone.tobytes()


@pytest.mark.parametrize("name", thinned(DRAWS, 2))
def test_a_gpu_draws_the_same_bits(name: str, device: FakeDevice) -> None:
    assert mlc.compile(DRAWS[name], target="cuda")(KEY).numpy().tobytes() == DRAWS[name](KEY).numpy().tobytes()


def _normal(x: Any) -> Any:
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


CONTINUOUS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "uniform": (lambda k, d: mlc.random.uniform(k, (COUNT,), -1, 3, dtype=d), lambda x: (x + 1) / 4),
    "normal": (lambda k, d: mlc.random.normal(k, (COUNT,), 1, 2, dtype=d), lambda x: _normal((x - 1) / 2)),
    "exponential": (lambda k, d: mlc.random.exponential(k, (COUNT,), 2.0, dtype=d), lambda x: 1 - np.exp(-2 * x)),
    "gumbel": (lambda k, d: mlc.random.gumbel(k, (COUNT,), dtype=d), lambda x: np.exp(-np.exp(-x))),
    "laplace": (lambda k, d: mlc.random.laplace(k, (COUNT,), dtype=d),
                lambda x: np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)),
    "cauchy": (lambda k, d: mlc.random.cauchy(k, (COUNT,), dtype=d), lambda x: 0.5 + np.arctan(x) / np.pi),
    "truncated": (lambda k, d: mlc.random.truncated_normal(k, -0.5, 2.0, (COUNT,), dtype=d),
                  lambda x: (_normal(x) - _normal(-0.5)) / (_normal(2.0) - _normal(-0.5))),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.usefixtures("interpreted")
def test_distribution(name: str, dtype: str) -> None:
    """Kolmogorov and Smirnov: the empirical distribution is nowhere farther off than in one of a million runs."""
    draw, distribution = CONTINUOUS[name]
    x = draw(KEY, dtype).numpy()
    assert str(x.dtype) == dtype and np.isfinite(x).all()
    place = np.sort(distribution(x.astype(np.float64)))
    steps = np.arange(COUNT + 1) / COUNT
    distance = max((steps[1:] - place).max(), (place - steps[:-1]).max())
    assert distance < 2.7 / math.sqrt(COUNT)


def test_uniform_digits() -> None:
    x = mlc.random.uniform(KEY, (COUNT,)).numpy()
    assert x.min() >= 0 and x.max() < 1 and (x * 2.0 ** 24 % 1 == 0).all()
    for dtype, digits in (("float16", 11), ("bfloat16", 8)):
        y = mlc.random.uniform(KEY, (COUNT,), dtype=dtype).float().numpy()
        assert y.max() < 1 and (y * 2.0 ** digits % 1 == 0).all()


@pytest.mark.usefixtures("interpreted")
def test_moments_and_independence() -> None:
    a, b = (mlc.random.normal(k, (COUNT,)).numpy() for k in mlc.random.split(KEY).numpy())
    error = 5 / math.sqrt(COUNT)
    assert abs(a.mean()) < error and abs(a.var() - 1) < 2 * error and abs((a ** 3).mean()) < 4 * error
    assert abs((a * b).mean()) < error and abs((a[1:] * a[:-1]).mean()) < error


@pytest.mark.usefixtures("interpreted")
def test_discrete() -> None:
    error = 5 / math.sqrt(COUNT)
    assert abs(mlc.random.bernoulli(KEY, 0.3, (COUNT,)).numpy().mean() - 0.3) < error
    counts = np.bincount(mlc.random.randint(KEY, (COUNT,), -2, 5).numpy() + 2, minlength=7)
    assert len(counts) == 7 and np.abs(counts / COUNT - 1 / 7).max() < error
    assert set(mlc.random.rademacher(KEY, (99,)).tolist()) == {-1.0, 1.0}
    logits = np.log(np.array([0.1, 0.2, 0.7], np.float32))
    drawn = mlc.random.categorical(KEY, logits, shape=(COUNT,)).numpy()
    assert np.abs(np.bincount(drawn) / COUNT - [0.1, 0.2, 0.7]).max() < error
    assert sorted(mlc.random.permutation(KEY, 200).tolist()) == list(range(200))
    rows = mlc.random.permutation(KEY, np.arange(12.0).reshape(6, 2)).numpy()
    assert sorted(rows[:, 0]) == [0, 2, 4, 6, 8, 10] and (rows[:, 1] == rows[:, 0] + 1).all()
    assert set(mlc.random.choice(KEY, np.array([3, 5], np.float32), (50,)).tolist()) == {3.0, 5.0}


@pytest.mark.usefixtures("interpreted")
def test_dropout() -> None:
    x = np.ones(COUNT, np.float32)
    y = mlc.random.dropout(KEY, x, 0.25).numpy()
    assert set(np.unique(y)) == {0.0, np.float32(1 / 0.75)} and abs(y.mean() - 1) < 5 / math.sqrt(COUNT)
    gradient = mlc.grad(lambda x: mlc.random.dropout(KEY, x, 0.25).sum())(mlc.tensor(x)).numpy()
    assert (gradient == y).all()
    assert mlc.random.dropout(KEY, x, 0.0).numpy().all() and not mlc.random.dropout(KEY, x, 1).numpy().any()


def test_symbolic_shape() -> None:
    def noisy(key: Any, x: Any) -> Any:
        return x + mlc.random.normal(key, x.shape)
    f = mlc.compile(noisy, args=[None, mlc.spec("B", 3)])
    for n in (2, 5):
        assert (f(KEY, np.zeros((n, 3), np.float32)).numpy() == mlc.random.normal(KEY, (n, 3)).numpy()).all()


@pytest.mark.parametrize("wrong", [
    lambda: mlc.random.uniform(np.zeros(2, np.float32), (3,)),
    lambda: mlc.random.uniform(mlc.random.split(KEY, 3), (3,)),
    lambda: mlc.random.randint(KEY, (3,), 5, 5), lambda: mlc.random.bits(KEY, (3,), "int32"),
    lambda: mlc.random.normal(KEY, (3,), dtype="int32"), lambda: mlc.random.dropout(KEY, np.ones(3), 1.5)])
def test_refused(wrong: Callable[[], Any]) -> None:
    with pytest.raises(UserError):
        wrong()


@pytest.mark.usefixtures("interpreted")
def test_names_of_pytorch() -> None:
    key, x = random.key(3), mlc.zeros(2, 3, dtype="float64")
    same = {"rand": (random.rand(key, 2, 3), random.uniform(key, (2, 3))),
            "rand, a tuple": (random.rand(key, (2, 3)), random.uniform(key, (2, 3))),
            "randn": (random.randn(key, 4, dtype="float64"), random.normal(key, (4,), dtype="float64")),
            "rand_like": (random.rand_like(key, x), random.uniform(key, (2, 3), dtype="float64")),
            "randn_like": (random.randn_like(key, x, dtype="float32"), random.normal(key, (2, 3))),
            "randperm": (random.randperm(key, 7), random.permutation(key, 7))}
    for name, (found, wanted) in same.items():
        assert found.dtype is wanted.dtype and np.array_equal(found, wanted), name


@pytest.mark.parametrize("dtype, bits", [("int64", 63), ("uint64", 64), ("int32", 31), ("uint8", 8), ("float32", 24)])
def test_random_integers_of_a_whole_dtype(dtype: str, bits: int) -> None:
    mlc.manual_seed(0)
    drawn = [int(x) for x in mlc.empty(500, dtype=dtype).random_().tolist()]
    assert 0 <= min(drawn) < 1 << bits - 5 and (1 << bits) - (1 << bits - 5) < max(drawn) <= 1 << bits
