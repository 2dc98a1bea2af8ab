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
