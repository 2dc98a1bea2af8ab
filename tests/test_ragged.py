"""Results of data-dependent size: masks, nonzero, unique; eager, compiled, differentiated."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc import extension, nn
from mlc.ir.affine_syntax import parse_size
from mlc.ir.bounds import certainly_natural, least, most
from mlc.ir.sizes import Dim, sym
from tests.arrays import Array
from tests.execution import NATIVE
from tests.fake_device import FakeDevice
from tests.public_case import thinned

pytestmark = pytest.mark.usefixtures("execution")

SHIFTS = [np.float32(s) for s in (0, 9, -9, -0.7)]
"""Offsets that make some, all, none and few elements positive."""


def data(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def same(ours: Any, theirs: Any) -> None:
    """Equal shapes and element types, and numbers up to rounding."""
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            same(a, b)
        return
    theirs = theirs.detach().numpy()
    assert ours.shape == theirs.shape and ours.numpy().dtype == theirs.dtype
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-6)


# -- sizes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size, greatest, smallest", [
    ("k", "B", "0"), ("B - k", "B", "0"), ("2*k + 1", "2*B + 1", "1"), ("j", "B", "0"), ("k - j", "B", "0"),
    ("k*j", "B*B", "0"), ("(k + 3) floordiv 4", "(B + 3) floordiv 4", "0"), ("k mod 4", "3", "0"),
    ("(k - j + 1) floordiv 2", "(B + 1) floordiv 2", "0"), ("N - k", "N", "N - B"), ("k - 1", "B - 1", "-1"),
    ("-((k - 3) floordiv 2)", "2", "-((B - 3) floordiv 2)"), ("(k - 3)*k", "B*B", "-3*B"), ("7", "7", "7")])
def test_bounds_of_sizes(size: str, greatest: str, smallest: str) -> None:
    """With k at most B, and j at most k; the bounds are those of every choice, and reached or passed by none."""
    bounds: dict[str, Dim] = {"k": sym("B"), "j": sym("k")}
    found = most(parse_size(size), bounds), least(parse_size(size), bounds)
    assert found == (parse_size(greatest), parse_size(smallest))
    assert certainly_natural(parse_size(size), bounds) == (smallest in ("0", "1", "7"))


def test_a_size_without_bounds() -> None:
    assert most(parse_size("k*((B - 5) floordiv 2)"), {"k": sym("B")}) is None
    assert not certainly_natural(parse_size("k*((B - 5) floordiv 2)"), {"k": sym("B")})


def test_what_division_leaves_is_not_negative() -> None:
    assert certainly_natural(parse_size("k + 1 - 2*((k + 1) floordiv 2)"), {"k": sym("B")})
    assert not certainly_natural(parse_size("k + 1 - 3*((k + 1) floordiv 2)"), {"k": sym("B")})


# -- values -----------------------------------------------------------------------------------------------------------
PICKS: dict[str, Callable[[Any], Any]] = {
    "mask": lambda x: x[x > 0],
    "rows": lambda x: x[x[:, 0] > 0],
    "differences": lambda x: x[x > 0][1:] - x[x > 0][:-1],
    "columns": lambda x: x[:, x[0] > 0],
    "beside integers": lambda x: x[x[:, 0] > 0, 1],
    "first element": lambda x: x[x[:, 0] > 0][:1],
    "twice": lambda x: x[x > 0][x[x > 0] < 1],
    "transposed": lambda x: x[x[:, 0] > 0].T,
    "flat": lambda x: x[x[:, 0] > 0].reshape(-1),
    "equal masks": lambda x: x[x > 0] + x[x > 0] * 2,
    "sum over number": lambda x: (x[x > 0] * 2).sum() / (x[x > 0].shape[0] + 1),
    "products": lambda x: x[x[:, 0] > 0] @ x[x[:, 1] > 0].T,
    "sum of products": lambda x: (x.T[:, x[:, 0] > 0] @ x[x[:, 0] > 0]).sum(),
    "sorted": lambda x: x[x > 0].sort().values,
    "softmax": lambda x: x[x > 0].softmax(0),
    "running sum": lambda x: x[x > 0].cumsum(0),
    "both kinds": lambda x: (x[x > 0], x[x < 0].sum(), x * 2),
    "nonzero": lambda x: (x > 0).nonzero(),
    "nonzero by axes": lambda x: (x > 0).nonzero(as_tuple=True),
    "nonzero of a number": lambda x: (x.sum() > 0).nonzero(),
    "masked_select": lambda x: x.masked_select(x[0] > 0),
    "argwhere": lambda x: (x > 0).argwhere(),
    "unique": lambda x: (x * 2).floor().clamp(0).unique(),
    "unique counted": lambda x: (x * 2).floor().clamp(0).unique(return_inverse=True, return_counts=True),
    "runs": lambda x: (x > 0).unique_consecutive(return_inverse=True, return_counts=True),
    "runs of columns": lambda x: (x > 0).unique_consecutive(return_counts=True, dim=1),
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", PICKS)
def test_values(name: str) -> None:
    check_values(PICKS[name])
    for shift in SHIFTS:
        x = data(5, 4) + shift
        same(PICKS[name](mlc.tensor(x)), PICKS[name](torch.tensor(x)))


@pytest.mark.parametrize("name", thinned(PICKS, 4))
def test_values_in_native_code(name: str) -> None:
    check_values(PICKS[name])


def check_values(f: Callable[[Any], Any]) -> None:
    """A function compiled, and compiled for all sizes, gives what it gives in PyTorch."""
    compiled, many = mlc.compile(f), mlc.compile(f, dynamic=True)
    for shift in SHIFTS:
        x = data(5, 4) + shift
        wanted = f(torch.tensor(x))
        same(compiled(x), wanted)
        same(many(x), wanted)
    for shape in ((1, 4), (6, 2)):
        same(many(data(*shape)), f(torch.tensor(data(*shape))))


@NATIVE
def test_one_code_for_all_sizes_none_included() -> None:
    f = mlc.compile(lambda x: (x[x > 0] * 2, x[x > 0].sum()), args=[mlc.spec("N")])
    for n in (0, 1, 2, 100):
        same(f(data(n)), (torch.tensor(data(n)[data(n) > 0] * 2), torch.tensor(data(n)[data(n) > 0].sum())))
    assert len(f.compiled.signatures) == 1 and f.compiled.peak_bytes(N=100) > 100 * 8


@pytest.mark.parametrize("key", [slice(2), slice(2, None), slice(-2, None), slice(None, -1), slice(1, 3), slice(4, 2),
                                 slice(None, None, 2), slice(1, None, 2), slice(99, None), 0, -1, (slice(1, None), 0),
                                 (0, slice(1, None)), (None, slice(2)), (..., 0)], ids=str)
def test_indices_into_what_a_mask_picks(key: Any) -> None:
    def f(x: Any) -> Any:
        return x[x[:, 0] > 0][key]

    compiled = mlc.compile(f)
    for shift in SHIFTS:
        x = data(7, 3) + shift
        try:
            wanted = f(torch.tensor(x))
        except IndexError:
            with pytest.raises(IndexError):
                compiled(x)
            continue
        same(compiled(x), wanted)


def test_nothing_at_all() -> None:
    none = np.zeros((0, 3), np.float32)
    same(mlc.nonzero(none), torch.nonzero(torch.tensor(none)))
    same(mlc.unique(none, return_counts=True), torch.unique(torch.tensor(none), return_counts=True))
    same(mlc.where(none), torch.where(torch.tensor(none)))
    same(mlc.tensor(none)[none[:, 0] > 0], torch.tensor(none)[torch.tensor(none)[:, 0] > 0])


def test_special_numbers() -> None:
    x = np.array([np.nan, 0.0, -0.0, np.inf, np.nan, -np.inf], np.float32)
    same(mlc.nonzero(x), torch.nonzero(torch.tensor(x)))
    np.testing.assert_array_equal(mlc.unique(x).numpy(), torch.unique(torch.tensor(x)).numpy())


def test_numpy_masks_and_lists() -> None:
    x = data(3)
    np.testing.assert_array_equal(mlc.tensor(x)[[True, False, True]].numpy(), x[[True, False, True]])
    np.testing.assert_array_equal(mlc.compile(lambda x: x[np.array([True, False, True])])(x).numpy(), x[::2])


STEPS: list[Callable[[Any], Any]] = [
    lambda y: y[y > -0.3], lambda y: y[y < 1], lambda y: y * y - y, lambda y: y.cumsum(0), lambda y: y.sort().values,
    lambda y: y[1:], lambda y: y[:-2], lambda y: y[::2], lambda y: y.flip(0), lambda y: y / (y.shape[0] + 1),
    lambda y: y - y.sum(), lambda y: (y[:, None] * y[None, :]).sum(1), lambda y: (y + 1).abs().sqrt(),
    lambda y: y.softmax(0) + y, lambda y: y[(y * 3).floor() != 0]]


@pytest.mark.parametrize("seed", thinned(range(12), 6))
def test_random_programs(seed: int) -> None:
    """Five steps one after the other, on what the first of them picks; and the gradient of the sum."""
    rng = np.random.default_rng(seed)
    steps = [STEPS[seed % 2], *(STEPS[i] for i in rng.integers(len(STEPS), size=4))]

    def f(x: Any) -> Any:
        return reduce(lambda y, step: step(y), steps, x)

    compiled = mlc.compile(lambda x: (f(x), mlc.grad(lambda x: f(x).sum())(x)), dynamic=True)
    for n in (9, 2, 20):
        x = rng.normal(size=n).astype(np.float32)
        primal = torch.tensor(x, requires_grad=True)
        wanted = f(primal)
        gradient, = torch.autograd.grad(wanted.sum(), primal, allow_unused=True)
        same(compiled(x), (wanted, gradient if gradient is not None else torch.zeros(n)))


# -- calls and control flow -------------------------------------------------------------------------------------------
class Picking(nn.Module):
    def __init__(self) -> None:
        self.weight = mlc.nn.Parameter(mlc.ones(4))

    def forward(self, x: Any) -> Any:
        y = x * self.weight
        return y[y > 0], y[y > 0].sum()


def test_calls_hand_on_what_a_mask_picks() -> None:
    x, model = data(5, 4), Picking()
    inner = mlc.compile(lambda x: x[x > 0])
    same(mlc.compile(model)(x), (torch.tensor(x[x > 0]), torch.tensor(x[x > 0].sum())))
    same(mlc.compile(lambda m, x: m(x)[0] * 2)(model, x), torch.tensor(x[x > 0] * 2))
    same(mlc.compile(lambda x: inner(x * 2)[:2])(x), torch.tensor(x[x > 0][:2] * 2))
    gradient = mlc.grad(lambda m, x: (m(x)[0] ** 2).sum())(model, x)
    same(gradient.weight, torch.tensor(np.where(x > 0, 2 * x * x, 0).sum(0)))


def for_loop(x: Any) -> Any:
    total = x.sum() * 0
    for _ in range(3):
        total = total + (x[x > total] ** 2).sum()
    return total


def while_loop(x: Any) -> Any:
    while x.sum() < 10:
        x = x + (x[x > 0] ** 2).sum() + 0.1
    return x.sum()


def carried(x: Any) -> Any:
    y = x[x > 0]
    for _ in range(3):
        y = y * y + 1
    return y.sum()


def carried_while(x: Any) -> Any:
    y = x[x > 0]
    while y.sum() < 100:
        y = y * y + y[:1].sum() + 1
    return y.sum()


def branch(x: Any) -> Any:
    if x.sum() > 0:
        out = (x[x > 0] ** 2).sum()
    else:
        out = x[x < 0].sum()
    return out


@pytest.mark.parametrize("f", thinned([for_loop, carried, carried_while, while_loop, branch], 3))
def test_loops_and_conditions(f: Callable[[Any], Any]) -> None:
    for sign in (1, -1):
        x = sign * np.random.default_rng(0).normal(size=7).astype(np.float32)
        primal = torch.tensor(x, requires_grad=True)
        wanted = f(primal)
        same(mlc.compile(f)(x), wanted)
        same(mlc.compile(mlc.grad(f))(x), *torch.autograd.grad(wanted, primal))


# -- derivatives ------------------------------------------------------------------------------------------------------
SMOOTH: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: (x[x > 0] ** 3).sum(),
    "quotient": lambda x: (x[x > 0].sin() * x[x > 0]).sum() / x[x > 0].shape[0],
    "twice": lambda x: (x[x > -1][x[x > -1] < 1] ** 2).sum() * x.sum(),
    "products": lambda x: ((x[x[:, 0] > 0] @ x[x[:, 1] > 0].T) ** 2).sum(),
    "sorted": lambda x: (x[x > 0].sort().values.cumsum(0) ** 2).sum(),
    "slice": lambda x: (x[x > 0][1:] * x[x > 0][:-1]).sum(),
    "columns": lambda x: (x[:, x[0] > 0].exp().sum(1) ** 2).sum(),
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_and_those_of_gradients(name: str) -> None:
    f, x = SMOOTH[name], data(5, 4)
    primal = torch.tensor(x, requires_grad=True)
    first, = torch.autograd.grad(f(primal), primal, create_graph=True)
    second, = torch.autograd.grad((first ** 2).sum(), primal)
    same(mlc.grad(f)(x), first)
    same(mlc.compile(mlc.grad(lambda x: (mlc.grad(f)(x) ** 2).sum()), dynamic=True)(x), second)
    same(mlc.jvp(f, (x,), (np.ones_like(x),))[1], first.sum())
    same(mlc.grad(mlc.checkpoint(f))(x), first)


def test_transformed_functions_that_return_what_a_mask_picks() -> None:
    x = data(7)

    def f(x: Any) -> Any:
        return x[x > 0] ** 2

    picked = torch.tensor(x[x > 0])
    result, pullback = mlc.vjp(f, x)
    same(result, picked ** 2)
    same(pullback(result)[0], torch.tensor(np.where(x > 0, 2 * x ** 3, 0)))
    with pytest.raises(AssertionError, match="as many elements"):
        pullback(np.ones(len(picked) - 1, np.float32))
    same(mlc.jvp(f, (x,), (x,)), (picked ** 2, 2 * picked ** 2))
    gradient, aux = mlc.grad(lambda x: (f(x).sum(), x[x > 0]), has_aux=True)(x)
    same((gradient, aux), (torch.tensor(np.where(x > 0, 2 * x, 0)), picked))
    np.testing.assert_allclose(mlc.hessian(lambda x: f(x).sum())(x).numpy(), np.diag(np.where(x > 0, 2.0, 0)))


# -- what is refused --------------------------------------------------------------------------------------------------
def test_vmap_needs_equally_many_rows() -> None:
    x = data(3, 4)
    with pytest.raises(mlc.UserError, match="a number of rows of its own") as caught:
        mlc.vmap(lambda x: x[x > 0].sum())(x)
    assert caught.value.code == "MLC0137" and "mlc.where" in str(caught.value) and caught.value.loc.file == __file__
    common = mlc.vmap(lambda y, x: (x[x > 0] * y).sum(), in_dims=(0, None))(x[:, 0], x)
    np.testing.assert_allclose(common.numpy(), x[:, 0] * x[x > 0].sum(), rtol=1e-5)
    with pytest.raises(mlc.UserError, match="size rows is data-dependent") as caught:
        mlc.vmap(lambda y, x: (y, x[x > 0]), in_dims=(0, None), out_dims=(0, None))(x[:, 0], x)
    assert caught.value.code == "MLC0614"


def leaking(x: Any) -> Any:
    found: list[Any] = []

    def body(i: Any, s: Any) -> Any:
        found.append(x[x > s].shape[0])
        return s

    return mlc.fori_loop(0, 3, body, x.sum()) + found[0]


@pytest.mark.parametrize("f, code, says", [
    (lambda x: x[x > 0] + x[x < 0], "MLC0111", "do not broadcast"),
    (lambda x: mlc.cond(x.sum() > 0, lambda: x[x > 0], lambda: x[x > 0]), "MLC0603", "in one branch"),
    (leaking, "MLC0600", "binds its data-dependent size rows"),
    (lambda x: x[(x > 0)[:2]], "MLC0366", "a mask of shape [2] picks from dimensions 0 to 0 of shape [7]"),
    (lambda x: x[mlc.ones((7, 1)) > 0], "MLC0366", "2 indices for 1 dimensions"),
    (lambda x: x[True, 0], "MLC0369", "one truth value is no index"),
    (lambda x: mlc.unique(mlc.zeros(2, 300), dim=0), "MLC0360", "at most 256"),
    (lambda x: mlc.masked_select(x, x), "MLC0362", "expected mlc.bool"),
    (lambda x: mlc.where(x > 0, x), "MLC0353", "both input and other"),
], ids=lambda p: p if isinstance(p, str) and p.startswith("MLC") else "")
def test_errors(f: Callable[[Any], Any], code: str, says: str) -> None:
    with pytest.raises(mlc.Error) as caught:
        mlc.compile(f)(data(7))
    assert caught.value.code == code and says in str(caught.value) and caught.value.loc.file == __file__


# -- on a device ------------------------------------------------------------------------------------------------------
@NATIVE
@pytest.mark.parametrize("f", [lambda x: x[x > 0] * 2, lambda x: x[x[:, 0] > 0].T, lambda x: (x > 0).nonzero(),
                               lambda x: (x[x > 0] ** 2).sum() / x[x > 0].shape[0]], ids=list("abcd"))
def test_a_device_tells_the_host_how_many_there_are(device: FakeDevice, f: Callable[[Any], Any]) -> None:
    compiled = mlc.compile(f, target="cuda")
    for x in (data(3, 4), data(3, 4) + 9):
        found = compiled(x)
        assert found.device == "cuda:0"
        same(found.cpu(), f(torch.tensor(x)))


@NATIVE
def test_gradients_on_a_device(device: FakeDevice) -> None:
    x = data(3, 4)
    found = mlc.compile(mlc.grad(lambda x: (x[x > 0] ** 3).sum()), target="cuda")(x)
    same(found.cpu(), torch.tensor(np.where(x > 0, 3 * x * x, 0)))
    picked = mlc.tensor(x).cuda()[mlc.tensor(x > 0).cuda()]
    assert picked.device == "cuda:0" and (picked * 2).cpu().tolist() == (x[x > 0] * 2).tolist()


# -- leaving the process ----------------------------------------------------------------------------------------------
def test_what_is_saved_gives_as_many(tmp_path: Path) -> None:
    f = mlc.compile(lambda x: {"rows": x[x[:, 0] > 0], "all": x * 2}, args=[mlc.spec("N", 3)])
    mlc.save(f, tmp_path / "f.mlc", args=[mlc.spec("N", 3)])
    loaded = mlc.load(tmp_path / "f.mlc")
    for n in (5, 0, 9):
        x = data(n, 3)
        same(loaded(x)["rows"], torch.tensor(x[x[:, 0] > 0]))


def test_an_extension_module_says_that_it_cannot(tmp_path: Path) -> None:
    f = mlc.compile(lambda x: x[x > 0], args=[mlc.spec("N")])
    with pytest.raises(mlc.UserError, match="array of data-dependent size") as caught:
        extension.source(f, [mlc.spec("N")], "picked")
    assert caught.value.code == "MLC0574"


def test_only_integers_are_counted() -> None:
    with pytest.raises(mlc.UserError, match="MLC0354"):
        mlc.bincount(mlc.ones(2))
