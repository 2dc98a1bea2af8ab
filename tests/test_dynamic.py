"""Sizes as symbols: one code for many sizes, asked for or found out, with the bits of the code for one."""

from __future__ import annotations

import math
import operator
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.dialects import tensor
from mlc.ir import sizes
from mlc.ir.core import Op
from mlc.ir.diag import InternalError, IRError, UserError
from mlc.ir.passes import Step
from mlc.ir.printer import to_text
from mlc.passes import fix_numerics
from tests.execution import NATIVE

pytestmark = pytest.mark.usefixtures("execution")


def rows(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_the_second_size_leads_to_code_for_all() -> None:
    @mlc.compile
    def f(x: Any, w: Any) -> Any:
        return mlc.softmax(x @ w, dim=1)

    w = rows(3, 4)
    for n in (5, 6, 1, 0, 9, 5):
        want = mlc.softmax(mlc.tensor(rows(n, 3)) @ w, dim=1).numpy()
        np.testing.assert_array_equal(f(rows(n, 3), w).numpy(), want)
    assert f.report().startswith("f: 2 specialisations") and len(set(f.compiled.signatures)) == 2


def test_all_sizes_at_once_and_what_they_have_to_be() -> None:
    f = mlc.compile(lambda x, w: x @ w, dynamic=True)
    for n, k, m in ((5, 3, 4), (1, 1, 1), (0, 3, 2), (7, 2, 2)):
        np.testing.assert_allclose(f(rows(n, k), rows(k, m)).numpy(), rows(n, k) @ rows(k, m), rtol=1e-5)
    signature, = set(f.compiled.signatures)
    assert signature == "(tensor<(x_0)x(x_1)xf32>, tensor<(x_1)xw_1xf32>) -> tensor<(x_0)xw_1xf32>"
    with pytest.raises(mlc.UserError, match="inner sizes differ: 4 and 3"):
        f(rows(5, 4), rows(3, 4))


def test_a_size_that_decides_what_python_does_is_a_number() -> None:
    @mlc.compile
    def f(x: Any) -> Any:
        return x.sum() if x.shape[0] > 3 else x.mean()

    assert [float(f(np.ones(n, np.float32))) for n in (2, 5, 1, 7)] == [1.0, 5.0, 1.0, 7.0]

    @mlc.compile
    def g(x: Any) -> Any:
        one = x.shape == (1,)
        return x.sum() * 10 if one else x.sum()

    assert [float(g(np.ones(n, np.float32))) for n in (2, 5, 1, 7)] == [2.0, 5.0, 10.0, 7.0]


@pytest.mark.parametrize("f", [
    lambda x: x.sum() if x.shape[0] else x.sum() - 1,
    lambda x: x.sum() if x.shape[0] in (1, 4) else x.sum() - 1,
    lambda x: x.sum() if 4 not in x.shape else x.sum() - 1,
    lambda x: x / math.sqrt(x.shape[0] + 1),
    lambda x: x * (1 / (x.shape[0] + 1)),
    lambda x: x * [1.0, 2.0, 3.0, 4.0, 5.0][x.shape[0]],
    lambda x: x + np.zeros(x.shape, np.float32),
    lambda x: (x, x.shape[0]),
    lambda x: x.reshape(1, -1).squeeze(),
    lambda x: x[:2],
])
def test_a_size_that_python_asks_for_is_a_number(f: Any) -> None:
    compiled = mlc.compile(f)
    for n in (3, 4, 1, 0, 2, 4):
        found, want = compiled(rows(n)), f(mlc.tensor(rows(n)))
        assert [type(v) for v in leaves(found)] == [type(v) for v in leaves(want)]
        for a, b in zip(leaves(found), leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def without_source(body: str) -> Any:
    """f(x, y) as typed at a prompt: its source is not at hand."""
    scope: dict[str, Any] = {"mlc": mlc, "operator": operator, "Fraction": Fraction}
    exec(f"def f(x, y):\n    {body}", scope)  # noqa: S102
    return scope["f"]


@pytest.mark.parametrize("body", [
    "return x + y if x.shape[0] == y.shape[0] else x * 100",
    "return x * {2: 10, 3: 20}.get(x.shape[0], 100)",
    "return x * len({x.shape[0], y.shape[0]})",
    "return x * len(f'{x.shape}')",
    "return x * (10 if operator.eq(x.shape[0], 3) else 1)",
    "return x * [*range(9)].index(x.shape[0])",
    "return x * (x.shape[0] in (3, 4))",
    "return x * (x.shape == (3,)) + (x.size(0) > 2.5)",
    "return x * max(x.shape[0], 3) / x.shape[0] + x.numel() ** 2",
    "return x[5:][-2:]",
    "return x.sum() / x[2:].shape[0]",
    "return mlc.zeros_like(x[:3])",
    "return x[: x.shape[0] // 2] * x.shape[0]",
    "return x * 5 if isinstance(x.shape[0], int) else x",
    "return x * (5 if hasattr(x.shape[0], 'bit_length') else 1) * round(x.shape[0])",
    "return x * (x.shape[0] == Fraction(3))",
    "return x * (x.shape[0] // y.shape[0]) - x.shape[0] * y.shape[0] + x.shape[0] % y.shape[0]",
    "\n    try: k = x.shape[0] * 1.5\n    except TypeError: k = 100\n    return x * k",
    "\n    try: k = x.shape[0] << 1\n    except Exception: k = 100\n    return x * k",
    "\n    match x.shape:\n        case (int(n),): return x * n\n    return x",
])
@pytest.mark.parametrize("dynamic", [None, True])
def test_every_size_as_without_compiling(body: str, dynamic: bool | None) -> None:
    f = without_source(body)
    compiled = mlc.compile(f, dynamic=dynamic)
    for n, m in ((5, 5), (3, 3), (4, 4), (4, 1), (2, 2), (1, 1), (7, 7), (8, 8)):
        x, y = (np.arange(1, k + 1, dtype=np.float32) for k in (n, m))
        want = f(mlc.tensor(x), mlc.tensor(y))
        np.testing.assert_allclose(compiled(x, y).numpy(), want.numpy(), rtol=1e-6, err_msg=f"{n}, {m}")


def test_the_type_of_a_size_is_int() -> None:
    compiled = mlc.compile(lambda x: x * 5 if type(x.shape[0]) is int else x, dynamic=True)
    assert compiled(np.ones(2, np.float32)).tolist() == [5, 5]


@pytest.mark.parametrize("f", [lambda x: x.amax(0), lambda x: x.argmax(0), lambda x: x.max()])
def test_nothing_has_no_greatest_element_whatever_the_code(f: Any) -> None:
    compiled = mlc.compile(f, dynamic=True)
    for n in (3, 5):
        compiled(np.ones(n, np.float32))
    with pytest.raises(UserError, match="of no elements is not defined"):
        compiled(np.ones(0, np.float32))


def test_the_report_says_why_a_size_became_a_number() -> None:
    def f(x: Any) -> Any:
        for _ in range(3):
            x = x * 2
        return x if x.shape[0] == 3 else x + 1

    compiled = mlc.compile(f)
    for n in (3, 4):
        compiled(np.ones(n, np.float32))
    text = compiled.report()
    assert "whether x_0 == 3 is known only when the compiled function runs; so there is x_0 = 4" in text
    assert "the `for` loop is written out, 3 times its body" in text


def test_an_error_about_a_size_may_not_be_caught() -> None:
    def f(x: Any) -> Any:
        try:
            return x * 2 if x.shape[0] == 3 else x
        except UserError:
            return x * 100

    compiled = mlc.compile(f, dynamic=True)
    assert [compiled(np.ones(n, np.float32)).tolist()[0] for n in (2, 3, 4)] == [1, 2, 1]


def test_what_is_said_of_a_size_that_is_no_number() -> None:
    for f in (lambda x: x.shape[0], lambda x: float(x.shape[0]), lambda x: x if x.shape[0] else 2 * x):
        with pytest.raises(mlc.UserError, match=r"B.* known only when the compiled function runs"):
            mlc.compile(f, args=[mlc.spec("B")])(rows(3))


def test_an_error_says_which_sizes_it_is_about() -> None:
    for f in (lambda x: x if x.shape[1] > 3 else 2 * x, lambda x: float(x.shape[1]), lambda x: x.shape[1]):
        with pytest.raises(mlc.UserError) as caught:
            mlc.compile(f, args=[mlc.spec("B", "T")])(rows(3, 4))
        assert caught.value.symbols == {"T"}


@pytest.mark.parametrize("f, shapes, left_open", [
    (nn.functional.conv2d, [(2, 3, 8, 8), (4, 3, 3, 3)], "a_0xa_1xa_2xa_3 b_0xa_1xb_2xb_3"),
    (lambda a, b: nn.functional.conv2d(a, b, groups=2), [(2, 4, 8, 8), (6, 2, 3, 3)], "a_0x4xa_2xa_3 6x2xb_2xb_3"),
    (mlc.matmul, [(4, 4), (4, 4)], "a_0xa_1 a_1xb_1"),
    (mlc.matmul, [(4, 4, 4), (4, 4)], "a_0xa_1xa_2 a_2xb_1"),
    (mlc.add, [(4, 4), (4, 4)], "a_0xa_1 a_0xa_1"),
    (mlc.add, [(4, 4), (1, 4)], "4xa_1 1xa_1"),
    (lambda a, b: mlc.cat([a, b]), [(4, 4), (4, 4)], "a_0xa_1 b_0xa_1"),
    (lambda a, b: mlc.stack([a, b]), [(4, 4), (4, 4)], "a_0xa_1 a_0xa_1"),
    (mlc.linalg.solve, [(4, 4, 4), (4, 4, 4)], "a_0xa_1xa_1 a_0xa_1xb_2"),
    (nn.functional.linear, [(4, 4), (4, 4)], "a_0xa_1 b_0xa_1"),
    (nn.functional.mse_loss, [(4, 4), (4, 4)], "a_0xa_1 a_0xa_1"),
    (lambda a, b: mlc.einsum("ij,kj->ik", a, b), [(4, 4), (4, 4)], "a_0xa_1 b_0xa_1"),
    (lambda a, b: (mlc.fft.rfft(a), b + 1), [(4, 4), (4, 4)], "a_0x4 b_0xb_1"),
    (lambda a, b: (nn.functional.interpolate(a, 8), b + 1), [(4, 4, 4), (4,)], "a_0xa_1x4 b_0"),
])
def test_sizes_that_an_error_is_not_about_stay_symbols(f: Any, shapes: list[tuple[int, ...]], left_open: str) -> None:
    compiled = mlc.compile(lambda a, b: f(a, b), dynamic=True)
    compiled(*(rows(*shape) for shape in shapes))
    signature, = compiled.compiled.signatures
    found = re.findall(r"tensor<([^>]*)xf32>", signature.partition("->")[0])
    assert " ".join(re.sub(r"[()]", "", shape) for shape in found) == left_open


@NATIVE
def test_a_defect_of_a_pass_is_no_reason_for_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = Step.apply

    def broken(self: Step, module: Op, *args: Any) -> Any:
        if self.transform.name == "decompose" and "x_0" in to_text(module):
            sizes.evaluate(sizes.sym("n"), {})             # KeyError
        return apply(self, module, *args)

    monkeypatch.setattr(Step, "apply", broken)
    for dynamic in (None, True):
        f = mlc.compile(lambda x: mlc.softmax(x * 3, dim=1), dynamic=dynamic, fallback=True)
        with pytest.raises(InternalError, match="pass decompose failed: KeyError"):
            for n in (2, 5):
                f(rows(n, 3))
        assert len(f.compiled.reports) == (dynamic is None)


@NATIVE
def test_sizes_that_do_not_fit_in_a_pass_are_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = Step.apply

    def broken(self: Step, module: Op, *args: Any) -> Any:
        if self.transform.name == "decompose":
            next(module.inside(tensor.Add)).refuse("sizes differ", "MLC0115")
        return apply(self, module, *args)

    monkeypatch.setattr(Step, "apply", broken)
    f = mlc.compile(lambda x, y: x + y, dynamic=True, fallback=True)
    with pytest.raises(IRError, match="MLC0115"):
        f(rows(2, 3), rows(2, 3))
    assert not f.compiled.reports


def test_a_defect_while_recording_is_no_reason_for_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(x: Any) -> Any:
        return x if x.type.is_static else sizes.evaluate(sizes.sym("n"), {})

    monkeypatch.setattr("mlc.frontend.recorded_function.to_default_dtype", broken)
    f = mlc.compile(lambda x: x * 2, dynamic=True)
    with pytest.raises(KeyError, match="n"):
        f(rows(3))
    assert not f.compiled.reports


def test_an_operation_within_another_that_needs_numbers_gets_them() -> None:
    f = mlc.compile(lambda x: mlc.linalg.pinv(x), dynamic=True)
    assert f(np.ones((3, 2), np.float32)).shape == (2, 3)
    assert "it is not known statically whether x_0 rows or x_1 columns are fewer" in f.report()


def test_an_error_of_the_program_makes_a_size_a_number() -> None:
    f = mlc.compile(lambda x: x * int.__add__(x.shape[0], 1), dynamic=True)
    assert f(np.ones(2, np.float32)).tolist() == [3, 3]
    assert "TypeError: descriptor '__add__' requires a 'int' object" in f.report()


def test_dynamic_false_makes_code_for_each_size() -> None:
    f = mlc.compile(lambda x: x.sum(), dynamic=False)
    for n in (2, 3, 4):
        f(rows(n))
    assert len(f.compiled.signatures) == 3


def test_memory_is_known_before_running() -> None:
    f = mlc.compile(lambda x: (mlc.exp(x) @ mlc.exp(x).T).sum(), args=[mlc.spec("B", 4)])
    b = 32                                         # x, the result, e^x, and the product
    assert f.compiled.peak_bytes(B=b) <= 4 * (4 * b + 1 + 4 * b + b * b) + 2 * 64
    assert f.compiled.peak_bytes(B=2 * b) > f.compiled.peak_bytes(B=b)
    with pytest.raises(mlc.UserError, match="no code whose symbolic sizes are T"):
        f.compiled.peak_bytes(T=3)


def test_the_statistics_of_a_batch_of_any_size() -> None:
    one, many = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    f = mlc.compile(lambda layer, x: layer(x), args=[None, mlc.spec("B", 3)])
    for n in (5, 2, 7):
        np.testing.assert_array_equal(f(many, rows(n, 3)).numpy(), mlc.compile(one, dynamic=False)(rows(n, 3)).numpy())
    before = np.asarray(many.running_var)
    with pytest.raises(mlc.UserError, match="more than one value for each channel"):
        f(many, rows(1, 3))
    np.testing.assert_array_equal(np.asarray(many.running_var), before)
    np.testing.assert_array_equal(np.asarray(one.running_var), before)


@pytest.mark.parametrize("pairs, execution", [(4, "interpreted"), (4, "native"), (200, "native")],
                         indirect=["execution"])           # the interpreter takes over 6 minutes for 200
@pytest.mark.slow
def test_a_transformer_block_and_its_gradient_for_every_batch_and_length(pairs: int, execution: str) -> None:
    """One code, with about the memory of the code for each pair of sizes, and its bits unless sums are very long."""
    mlc.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()

    def step(layer: Any, x: Any) -> Any:
        return mlc.value_and_grad(lambda layer, x: (layer(x) ** 2).mean())(layer, x)

    many = mlc.compile(step, args=[None, mlc.spec("B", "T", 16)])
    rng = np.random.default_rng(0)
    chosen = [(0, 3), (1, 1), (64, 1),
              *((int(rng.integers(1, 65)), int(rng.integers(1, 513 if pairs > 4 else 33))) for _ in range(pairs)),
              (3, 0), (1, 5)]
    compared = 14 if pairs > 4 else 3
    for n, (batch, length) in enumerate(chosen):
        x = rows(batch, length, 16)
        found = many(layer, x)
        if n >= compared:
            continue
        one = mlc.compile(step, dynamic=False)
        for a, b in zip(leaves(found), leaves(one(layer, x)), strict=True):
            if x.size <= fix_numerics.LONG:
                np.testing.assert_array_equal(a, b)
            else:                                          # code for one size adds up so many numbers in parts
                np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
        if execution == "native":
            assert many.compiled.peak_bytes(B=batch, T=length) <= 1.1 * one.compiled.peak_bytes() + 64 * 40
    assert len(set(many.compiled.signatures)) == 1


def leaves(tree: Any) -> list[Any]:
    from mlc.frontend.tree import leaves
    return [np.asarray(x) for x in leaves(tree) if x is not None]


def test_which_dimension_has_size_3_is_not_decided_for_all_sizes() -> None:
    """Of two dimensions of 3, the vectors lie along the first."""
    cross = mlc.compile(mlc.cross, dynamic=True)
    for n in (4, 3):
        a, b = rows(n, 3), rows(n, 3)[::-1].copy()
        np.testing.assert_array_equal(cross(a, b).numpy(), mlc.cross(a, b, dim=0 if n == 3 else 1).numpy())
