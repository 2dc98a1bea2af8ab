"""Values that fit in the type of the result but not in an operand's, and other answers that were not PyTorch's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc

torch = pytest.importorskip("torch")

SMALL, WIDE = np.array([100, -128], np.int8), np.array([1, 2])
HALF = np.array([1e4, -6e4, 0.1, 2, 0.01, 0], np.float16)
FAR, STEPS = np.array([0, 1e-30, 1e30, np.inf, 1], np.float32), np.array([200, 200, -200, -200, -149])
CUBES, ROWS = np.linspace(-2, 1, 8).reshape(1, 1, 8), np.arange(12.0).reshape(4, 3)
BAGS = np.array([[0, 3, 1], [3, 3, 3]])

LARGE = np.array([[300, -40, 1000, 3], [0.5, 700, -600, 2]], np.float16)
FINE = np.array([1.0625, -0.921875, 3, -2.5], np.float16)

HALVES: dict[str, Callable[..., Any]] = {
    "norm": lambda m, f: m.norm(f(LARGE)),
    "norm of p = 3": lambda m, f: m.linalg.vector_norm(f(LARGE / 50), 3),
    "std": lambda m, f: m.std(f(LARGE * 40), 1),
    "logit": lambda m, f: m.logit(f(np.array([0.49, 0.501, 0.02, 0.9], np.float16))),
    "normalize": lambda m, f: m.nn.functional.normalize(f(LARGE)),
    "dist": lambda m, f: m.dist(f(LARGE), -f(LARGE)),
    "pairwise_distance": lambda m, f: m.pairwise_distance(f(LARGE), -f(LARGE)),
    "cosine_similarity": lambda m, f: m.cosine_similarity(f(LARGE), f(LARGE + 1), 1),
    "rms_norm": lambda m, f: m.nn.functional.rms_norm(f(LARGE), (4,), f(FINE)),
    "rms_norm of little": lambda m, f: m.nn.functional.rms_norm(f(FINE / 100), (4,)),
    "lp_pool1d": lambda m, f: m.nn.functional.lp_pool1d(f(LARGE)[None], 2, 2),
    "logaddexp": lambda m, f: m.logaddexp(f(FINE / 3), f(FINE - 2)),
    "logaddexp2": lambda m, f: m.logaddexp2(f(FINE / 3), f(FINE - 2)),
    "lerp": lambda m, f: m.lerp(f(FINE), f(FINE - 2), f(FINE / 7)),
    "addcmul": lambda m, f: m.addcmul(-f(FINE), f(FINE), f(FINE / 3), value=0.9),
    "addcdiv": lambda m, f: m.addcdiv(-f(FINE), f(FINE), f(FINE + 0.1), value=0.9),
    "glu": lambda m, f: m.nn.functional.glu(f(FINE)),
    **{name: (lambda m, f, name=name: getattr(m.nn.functional, name)(f(FINE)))
       for name in ("mish", "selu", "hardsigmoid", "hardswish")},
}

CASES: dict[str, Callable[..., Any]] = {
    "add": lambda m, f: m.add(f(WIDE), f(SMALL), alpha=2),
    "sub": lambda m, f: m.sub(f(WIDE).double(), f(SMALL), alpha=2),
    "add bool": lambda m, f: m.add(f(WIDE) > 1, f(SMALL) > 1, alpha=2),
    "addcmul": lambda m, f: m.addcmul(f(WIDE), f(SMALL), f(SMALL)),
    "lerp": lambda m, f: m.lerp(f(np.array([1e20])), f(np.array([1.0])), 1.0),
    "logaddexp2": lambda m, f: m.logaddexp2(f(WIDE), f(np.array([0.5, 1e-9]))),
    "logaddexp2 bfloat16": lambda m, f: m.logaddexp2(f(WIDE), f(HALF[2:4]).bfloat16()).float(),
    "ldexp": lambda m, f: m.ldexp(f(FAR), f(STEPS)),
    "ldexp float64": lambda m, f: m.ldexp(f(np.array([2.0**-1000, np.inf, 3])), f(np.array([2000, -2000, 200]))),
    "ldexp float16": lambda m, f: m.ldexp(f(HALF), f(np.array([-13, -32, 40, 3, -20, 17]))),
    "sinc": lambda m, f: m.sinc(f(HALF)),
    "any": lambda m, f: m.any(f(ROWS) > 2, dim=()),
    "all": lambda m, f: m.all(f(ROWS) > 2, dim=()),
    "lp_pool1d": lambda m, f: m.nn.functional.lp_pool1d(f(CUBES), 3.0, 2),
    **{f"embedding_bag {mode}": (lambda m, f, mode=mode: m.nn.functional.embedding_bag(
        f(BAGS), f(ROWS), mode=mode, padding_idx=-1)) for mode in ("sum", "mean", "max")},
}


@pytest.mark.parametrize("name", CASES)
def test_as_in_pytorch(name: str, interpreted: None) -> None:
    f = CASES[name]
    ours, theirs = f(mlc, mlc.tensor).numpy(), f(torch, torch.tensor).numpy()
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=2e-3 if ours.dtype == np.float16 else 1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ldexp_rounds_once(dtype: type) -> None:
    """Where the result is less than normal numbers, too, and where 2 ** other is no number of the type."""
    random = np.random.default_rng(0)
    least = np.finfo(dtype).minexp
    x: Any = np.ldexp(random.standard_normal(20000), random.integers(least, -least, 20000)).astype(dtype)
    by = random.integers(2 * least - 40, -2 * least + 40, x.size)
    with np.errstate(over="ignore", under="ignore"):
        wanted = np.ldexp(x, by)
    assert np.array_equal(mlc.ldexp(mlc.tensor(x), mlc.tensor(by)).numpy(), wanted)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", HALVES)
def test_narrow_floats_are_rounded_once(name: str, dtype: str, interpreted: None) -> None:
    """Functions of several steps take them in float32: squares do not overflow, and errors do not add up."""
    def ours(x: Any) -> Any:
        return mlc.tensor(x).to(dtype)
    found = HALVES[name](mlc, ours)
    wanted = HALVES[name](torch, lambda x: torch.tensor(ours(x).double().numpy()))
    assert found.dtype.name == dtype
    np.testing.assert_allclose(found.double().numpy(), wanted.numpy(), 2.0 ** -10 if dtype == "float16" else 2.0 ** -7)


@pytest.mark.parametrize("store", [
    lambda x, n: mlc.clamp(x, max=n), lambda x, n: x.clamp(n), lambda x, n: mlc.masked_fill(x, x > 1, n),
    lambda x, n: mlc.where(x > 1, x, n), lambda x, n: mlc.where(x > 1, n, x), lambda x, n: mlc.index_fill(x, 0, [0], n),
    lambda x, n: mlc.scatter(x, 0, np.zeros(1, np.int64), n), lambda x, n: mlc.pad(x, (1, 1), value=n)])
def test_an_integer_that_is_stored_has_to_fit(store: Any) -> None:
    """Of those that are computed with, the last bits count, as in PyTorch."""
    for run in (store, mlc.compile(store, static="n")):
        for dtype, n in ((np.uint8, 300), (np.int8, -129)):
            with pytest.raises(mlc.UserError, match=f"{n} does not fit in {np.dtype(dtype)}"):
                run(mlc.tensor(np.ones(3, dtype)), n)
    assert (mlc.tensor(np.ones(1, np.uint8)) + 300).item() == 45


def test_stacked_numbers_are_float32() -> None:
    assert mlc.stack([2.0, 2.0]).dtype is mlc.float32 and mlc.stack([2, 2]).dtype is mlc.int64
    assert mlc.compile(lambda x: mlc.stack([x, x]))(2.0).dtype is mlc.float32
    assert mlc.stack([2.0, mlc.tensor(1.0, dtype="float16")]).dtype is mlc.float16


@pytest.mark.parametrize("name", ["bool", "int8", "int64", "uint8", "float16", "bfloat16", "float32", "float64"])
def test_a_number_raises_the_kind_and_never_the_width(name: str) -> None:
    for number in (True, 3, 0.5):
        want = torch.result_type(torch.zeros(2, dtype=getattr(torch, name)), number)
        assert (mlc.zeros(2, dtype=getattr(mlc, name)) * number).dtype == getattr(mlc, str(want).removeprefix("torch."))


@pytest.mark.parametrize("f", [
    lambda x: x * np.log(2.0), lambda x: np.float64(2) * x, lambda x: x + np.int64(3), lambda x: x / np.float32(2),
    lambda x: x**np.float64(2), lambda x: x > np.float64(0), lambda x: x.add(x, alpha=np.float64(0.5))])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_numbers_of_numpy_are_numbers_beside_a_tensor(f: Any, dtype: str, shape: tuple[int, ...]) -> None:
    if dtype == "int32" and f.__code__.co_names == ("add", "np", "float64"):
        return                                             # PyTorch refuses a float factor of integers
    x = mlc.ones(*shape, dtype=dtype)
    expected = str(f(torch.ones(shape, dtype=getattr(torch, dtype))).dtype).removeprefix("torch.")
    assert f(x).dtype.name == mlc.compile(f)(x).dtype.name == expected


def test_numbers_of_numpy_are_numbers_as_arguments_beside_a_tensor_too() -> None:
    def f(x: Any, a: Any) -> Any:
        return x * a

    for x in (mlc.tensor([1, 2]), mlc.tensor(1.0)):
        for a in (np.float64(2), np.int64(2)):
            assert f(x, a).dtype is mlc.compile(f)(x, a).dtype


@pytest.mark.parametrize("number", [np.float64(0.5), np.float32(0.5), np.int64(3), np.int8(3), np.bool_(True)])
@pytest.mark.parametrize("dtype", ["int64", "int8", "float32"])
def test_numbers_of_numpy_are_arrays_beside_arrays(number: Any, dtype: str) -> None:
    """Without a tensor among the arguments they have the types that numpy gives them."""
    x, y = np.arange(4, dtype=dtype), np.asarray(number)
    found, want = (mlc.compile(lambda x, n: x * n)(x, n) for n in (number, y))
    assert found.dtype is want.dtype and found.tolist() == want.tolist()
