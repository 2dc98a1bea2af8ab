"""Values of 16 bits that stay float32 between two operations, where a compiled function allows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc


def scaled(x: Any, y: Any) -> Any:
    return (x + y) * 3 - x


@pytest.mark.parametrize("dtype", [mlc.bfloat16, mlc.float16])
def test_only_the_result_is_rounded(dtype: Any) -> None:
    x, y = (mlc.randn(4, 33).to(dtype) for _ in range(2))
    wide = scaled(x.float(), y.float()).to(dtype)
    found = mlc.compile(scaled, excess_precision=True)(x, y)
    assert found.dtype == dtype and mlc.equal(found, wide)
    assert mlc.equal(mlc.compile(scaled)(x, y), scaled(x, y)) and not mlc.equal(found, scaled(x, y))


def test_bits_are_those_of_all_sizes_and_of_code_that_is_checked() -> None:
    compiled = mlc.compile(scaled, excess_precision=True, dynamic=True)
    checked = mlc.compile(scaled, excess_precision=True, checked=True)
    for n in (0, 1, 7, 300):
        x, y = (mlc.randn(n).bfloat16() for _ in range(2))
        one = mlc.compile(scaled, excess_precision=True)(x, y)
        assert mlc.equal(compiled(x, y), one) and mlc.equal(checked(x, y), one)


def test_a_call_that_is_recorded_for_backward_rounds_what_it_keeps() -> None:
    w = mlc.randn(16, 16)

    def f(x: Any) -> Any:
        with mlc.autocast("cpu", dtype=mlc.bfloat16):
            return mlc.nn.functional.silu(x @ w).float().sum()

    compiled, x = mlc.compile(f, excess_precision=True), mlc.randn(8, 16)
    plain = compiled(x)
    leaf = x.clone().requires_grad_()
    for _ in range(3):
        leaf.grad = None
        out = compiled(leaf)
        out.backward()
        assert leaf.grad is not None
        np.testing.assert_allclose(out.detach().numpy(), plain.numpy(), rtol=1e-2)
    own = x.clone().requires_grad_()
    f(own).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), own.grad.numpy(), atol=0.1)
