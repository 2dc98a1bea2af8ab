"""Values of 16 bits that stay float32 between two operations, where a compiled function allows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.tools import cli


def scaled(x: Any, y: Any) -> Any:
    return (x + y) * 3 - x


@pytest.mark.parametrize("dtype", [mlc.bfloat16, mlc.float16])
def test_only_the_result_is_rounded(dtype: Any) -> None:
    x, y = (mlc.randn(4, 33).to(dtype) for _ in range(2))
    wide = scaled(x.float(), y.float()).to(dtype)
    found = mlc.compile(scaled, excess_precision=True)(x, y)
    assert found.dtype == dtype and mlc.equal(found, wide)
    assert mlc.equal(mlc.compile(scaled)(x, y), scaled(x, y)) and not mlc.equal(found, scaled(x, y))


def test_bits_of_operations_on_elements_are_those_of_all_sizes_and_of_code_that_is_checked() -> None:
    compiled = mlc.compile(scaled, excess_precision=True, dynamic=True)
    checked = mlc.compile(scaled, excess_precision=True, checked=True)
    for n in (0, 1, 7, 300):
        x, y = (mlc.randn(n).bfloat16() for _ in range(2))
        one = mlc.compile(scaled, excess_precision=True)(x, y)
        assert mlc.equal(compiled(x, y), one) and mlc.equal(checked(x, y), one)


def test_a_call_that_is_recorded_for_backward_rounds_what_that_reads_and_no_more() -> None:
    w, x = mlc.randn(16, 16), mlc.randn(8, 16, requires_grad=True)

    def f(x: Any) -> Any:
        with mlc.autocast("cpu", dtype=mlc.bfloat16):
            return mlc.nn.functional.silu(x @ w).float().sum()

    compiled = mlc.compile(f, excess_precision=True)
    product = (x.detach().bfloat16() @ w.bfloat16()).float()
    for _ in range(3):
        x.grad = None
        out = compiled(x)
        out.backward()
        np.testing.assert_allclose(out.item(), float(mlc.nn.functional.silu(product).sum()), rtol=1e-6)
        assert x.grad is not None
    assert abs(f(x).item() / out.item() - 1) > 1e-5


def test_each_pass_keeps_the_bits_that_the_first_has_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text("import mlc\n"
                       "f = mlc.compile(lambda x, y: (x + y) * 3 - x, excess_precision=True)\n"
                       "print(f(*(mlc.randn(9).bfloat16() for _ in range(2))).shape)\n")
    assert cli.main(["run", "--check", str(program)]) == 0
    assert "(9,)" in capsys.readouterr().out


def test_a_dump_has_what_the_code_has() -> None:
    x = mlc.spec(9, dtype=mlc.bfloat16)
    lowered = mlc.lower(mlc.compile(scaled, excess_precision=True), [x, x], level="loop")
    assert "excess_precision" in str(lowered) and str(lowered).count("arith.truncf") == 1
