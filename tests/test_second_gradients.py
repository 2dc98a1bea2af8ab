"""Second derivatives of the public functions against PyTorch, in float64."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontend import tree
from tests.public_case import Case, look_up, made, marked, torch_function
from tests.public_cases_linalg import TWICE
from tests.public_cases_windows import CASES

torch = pytest.importorskip("torch")


def wide(x: Any) -> Any:
    return x.astype(np.float64) if isinstance(x, np.ndarray) and x.dtype == np.float32 else x


def differentiable(case: Case) -> bool:
    """Whether some argument and some result holds floats."""
    args = [made(x, np.random.default_rng(0)) for x in case.args]
    if not case.twice or not any(isinstance(x, np.ndarray) and x.dtype == np.float32 and i not in case.constant
                                 for i, x in enumerate(args)):
        return False
    out = torch_function(case.name)(*[torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in args],
                                    **case.keywords)
    return any(y.is_floating_point() for y in (out if isinstance(out, tuple | list) else [out]))


@pytest.mark.parametrize("case", marked((c for c in (*CASES, *TWICE) if differentiable(c)), 3), ids=str)
@pytest.mark.usefixtures("interpreted")
def test_second_gradients(case: Case) -> None:
    """The gradient of <gradient of <f, w>, v>."""
    rng = np.random.default_rng(len(str(case)))
    args = [wide(made(x, rng)) for x in case.args]
    places = [i for i, x in enumerate(args) if i not in case.constant and isinstance(x, np.ndarray)
              and x.dtype == np.float64]
    directions = [rng.normal(size=args[i].shape) for i in places]
    theirs, ours = torch_function(case.name), look_up(mlc, case.name)

    leaves = [torch.from_numpy(args[i]).requires_grad_() for i in places]
    given = [torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in args]
    for i, x in zip(places, leaves):
        given[i] = x
    out = theirs(*given, **case.keywords)
    outputs = [y for y in (out if isinstance(out, tuple | list) else [out]) if y.is_floating_point()]
    weights = [rng.normal(size=tuple(y.shape)) for y in outputs]
    first = torch.autograd.grad(sum((y * torch.from_numpy(w)).sum() for y, w in zip(outputs, weights)), leaves,
                                create_graph=True)
    inner = sum((g * torch.from_numpy(v)).sum() for g, v in zip(first, directions))
    wanted = torch.autograd.grad(inner, leaves, allow_unused=True) if inner.requires_grad else [None] * len(leaves)

    def weighted(*xs: Any) -> Any:
        full = [mlc.tensor(x) if isinstance(x, np.ndarray) else x for x in args]
        for i, x in zip(places, xs):
            full[i] = x
        found = [y for y in tree.leaves(ours(*full, **case.keywords)) if y.dtype is mlc.float64]
        return sum((y * mlc.tensor(w)).sum() for y, w in zip(found, weights, strict=True))

    numbers = tuple(range(len(places)))

    def along(*xs: Any) -> Any:
        return sum((g * mlc.tensor(v)).sum() for g, v in zip(mlc.grad(weighted, numbers)(*xs), directions))

    found = mlc.grad(along, numbers)(*[mlc.tensor(args[i]) for i in places])
    for a, b, x in zip(found, wanted, leaves):
        torch.testing.assert_close(torch.from_numpy(np.array(a)), torch.zeros_like(x) if b is None else b,
                                   rtol=1e-7, atol=1e-9)


@pytest.mark.usefixtures("interpreted")
def test_second_gradients_of_complex_singular_values() -> None:
    """Each is that of two equal singular values of a real matrix, whose vectors turn with each other."""
    rng = np.random.default_rng(0)
    x, v = (rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) for _ in range(2))
    w = rng.normal(size=3)
    found = []
    for framework in (mlc, torch):
        f: Any = framework
        a = f.tensor(x, requires_grad=True)
        first, = f.autograd.grad((f.linalg.svdvals(a) * f.tensor(w)).sum(), a, create_graph=True)
        second, = f.autograd.grad((first * f.tensor(v)).real.sum(), a)
        found.append(np.array(second.numpy()))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-8)


@pytest.mark.parametrize("u", [(0.0, 0.0, 5.0, 2.0), (0.0, 3.0, 5.0, 2.0), (2.0, 3.0, 5.0, 2.0), (0.0, 0.0, 0.0, 1.0)])
def test_second_gradients_of_products_of_scattered_zeros(u: tuple[float, ...]) -> None:
    at, ones = mlc.tensor([0, 0, 0, 1]), mlc.ones(2, dtype=mlc.float64)

    def product(u: Any) -> Any:
        return mlc.scatter_reduce(ones, 0, at, u, "prod").sum()

    want = np.zeros((4, 4))
    for i, j, k in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        want[i, j] = want[j, i] = u[k]
    np.testing.assert_allclose(mlc.hessian(product)(np.array(u)).numpy(), want)
