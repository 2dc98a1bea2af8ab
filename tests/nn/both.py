"""Programs that run with PyTorch and with mlc: what they append to `out` agrees."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")


def run(program: str, package: str) -> list[Any]:
    """Run a program, and give what it appends to `out`.

    The random numbers of `T(*sizes)` and of `filled(module)` are the same in each run.
    """
    library: Any = importlib.import_module(package)
    rng = np.random.default_rng(0)
    out: list[Any] = []

    def numbers(*shape: int) -> Any:
        return library.tensor(rng.standard_normal(shape).astype("float32"))

    def filled(module: Any) -> Any:
        for p in module.parameters():
            p.data = numbers(*p.shape) * 0.5
        return module

    names = {"torch": library, "nn": library.nn, "T": numbers, "filled": filled, "out": out}
    for name in ("prune", "parametrize", "parametrizations", "fusion", "rnn"):
        names[name] = importlib.import_module(f"{package}.nn.utils.{name}")
    exec(compile(program, "program.py", "exec"), names)  # noqa: S102
    return out


def same(program: str, rtol: float = 1e-5, atol: float = 2e-6) -> None:
    """Tensors agree within the tolerances, texts of everything else in every letter."""
    theirs, ours = run(program, "torch"), run(program, "mlc")
    assert len(ours) == len(theirs)
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if isinstance(b, torch.Tensor):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol, atol, err_msg=str(i))
        else:
            assert str(a) == str(b), i
