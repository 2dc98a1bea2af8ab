"""Tensors made from data, what leaves them for numpy, and what the types and masks of data do to a model."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.ir.diag import UserError, UserTypeError
from tests.public_case import thinned


def test_no_float64_goes_through_float32() -> None:
    for make in (mlc.tensor, mlc.asarray, mlc.as_tensor):
        assert make(0.1, dtype=mlc.float64).item() == 0.1 == make([0.1], dtype="float64").item()
    assert mlc.compile(lambda x: x * 1, args=[mlc.spec(dtype="float64")])(0.1).item() == 0.1


@pytest.mark.parametrize(("data", "text"), [
    ([1, None], "NoneType None is no number"),
    ([[1], [2, 3]], "different lengths"), ("abc", "str 'abc' is no number"), ([2**63, -1], "does not fit in 64 bits"),
])
def test_what_is_no_array(data: Any, text: str) -> None:
    with pytest.raises(UserError, match="(?s)" + text):
        mlc.tensor(data)
    deep: list[Any] = []
    deep.append(deep)
    with pytest.raises(UserError, match="nested more than"):
        mlc.tensor(deep)


@pytest.mark.parametrize("make", [
    lambda: mlc.full((2,), 300, dtype="uint8"), lambda: mlc.full_like(np.zeros(2, np.int8), -129),
    lambda: mlc.tensor([1, 300], dtype="int8"), lambda: mlc.full((2,), 2**63), lambda: mlc.full((2,), 10**400),
    lambda: mlc.arange(2**63, 2**63 + 3), lambda: mlc.linspace(0, 10**400, 3),
])
def test_integers_beyond_their_type_are_refused(make: Any) -> None:
    """None is cut to size, and none reaches numpy; recorded it is the same."""
    for f in (make, mlc.compile(lambda x: make() + x)):
        with pytest.raises(UserError, match=r"MLC0348.* does not fit in"):
            f(*[] if f is make else [np.ones(1, np.float32)])


@pytest.mark.parametrize(("f", "code"), [
    (lambda x: nn.functional.threshold(x, x, 0), "MLC0364"),
    (lambda x: nn.functional.threshold(x, 0, x), "MLC0364"),
    (lambda x: mlc.full_like(x, x), "MLC0364"),
    (lambda x: mlc.asarray(x, x), "MLC0342"),
])
def test_a_tensor_in_place_of_a_number_or_a_dtype_is_refused_recorded_or_not(f: Any, code: str) -> None:
    for g in (f, mlc.compile(f)):
        with pytest.raises(UserError, match=code):
            g(mlc.ones(1))


def test_to_takes_another_tensor_recorded_or_not() -> None:
    def f(x: Any, y: Any) -> Any:
        return x.to(y), x.to(y, True, copy=True), x.double(memory_format=mlc.channels_last).to(y.device)

    for g in (f, mlc.compile(f)):
        assert [t.dtype for t in g(mlc.ones(2), mlc.ones(1, dtype=mlc.float16))] == [mlc.float16] * 2 + [mlc.float64]


def test_a_0d_tensor_stands_for_the_number_that_it_is_at_the_call() -> None:
    F: Any = nn.functional
    x, y = mlc.tensor([-1.0, 3.0]), mlc.tensor(0.5)
    for number in (0.5, 2.0, -1.0):
        y.fill_(number)
        assert F.leaky_relu(x, y).tolist() == [-number, 3.0]
        assert F.threshold(x, 0, value=y).tolist() == [number, 3.0]
    with pytest.raises(UserError, match="MLC0364"):
        F.leaky_relu(x, y.clone().requires_grad_())


def test_a_0d_tensor_stands_for_a_number() -> None:
    def f(x: Any, y: Any) -> Any:
        return nn.functional.threshold(x, y, y * 2)

    for g in (f, mlc.compile(f)):
        assert g(mlc.tensor([1.0, 3.0]), mlc.tensor(2.0)).tolist() == [4.0, 3.0]


def test_full_is_the_same_recorded_or_not() -> None:
    for value, dtype in ((-1, "uint8"), (2.7, "int32"), (0.1, "bfloat16"), (2**64 - 1, "uint64")):
        def make(value: Any = value, dtype: str = dtype) -> Any:
            return mlc.full((2,), value, dtype=dtype)
        assert make().tolist() == mlc.compile(lambda x, make=make: (make(), x))(np.ones(1))[0].tolist()


def test_lists_of_tensors_are_one_tensor_recorded_or_not() -> None:
    def matrix(x: Any) -> Any:
        return mlc.tensor([[x[0], 2], [x[2], x[0] * 3]])

    x = mlc.tensor([1.0, 2.0, 3.0])
    assert matrix(x).tolist() == mlc.compile(matrix)(x).tolist() == [[1, 2], [3, 3]]
    assert matrix(x).dtype is mlc.compile(matrix)(x).dtype is mlc.float32
    with pytest.raises(UserError, match="MLC0345"):
        mlc.lower(lambda x: mlc.tensor([[x[0]], [x[1], x[2]]]), args=[x])


def test_the_array_of_a_tensor_shares_its_memory() -> None:
    x = mlc.ones(3)
    x.numpy()[0] = 5
    copy = np.array(x)
    copy[1] = 7
    assert x.tolist() == [5, 1, 1] and np.shares_memory(np.asarray(x), x.numpy())
    given = np.zeros(2)
    y = mlc.from_numpy(given)
    y += 1
    given[1] = 3
    assert given.tolist() == y.tolist() == [1, 3]


def test_products_are_of_one_float_type() -> None:
    layer = nn.Linear(3, 2)
    weight = mlc.ones(3, 2)
    for f in (lambda x: layer(x), lambda x: mlc.matmul(x, weight), lambda x: mlc.einsum("ij,jk", x, weight),
              lambda x: nn.Conv1d(3, 2, 1)(x[..., None]), nn.LayerNorm(3), nn.BatchNorm1d(3), nn.RMSNorm(3)):
        with pytest.raises(UserError, match=r"MLC0420.*float64"):
            f(np.ones((2, 3)))
    assert (mlc.arange(3) @ mlc.ones(3)).item() == 3


def test_bfloat16_states_fit_float32_modules() -> None:
    layer = nn.Linear(3, 2)
    layer.load_state_dict({n: x.bfloat16() for n, x in layer.state_dict().items()})
    assert layer.weight.dtype is mlc.float32


def test_a_known_mask_picks_a_known_number() -> None:
    mask, by = np.array([True, False, True]), np.array([2.0, 3.0], np.float32)
    x = mlc.ones(3)
    assert mlc.grad(lambda x: (x[mask] * by).sum())(x).tolist() == [2, 0, 3]
    assert mlc.compile(lambda x: x[mlc.tensor(mask)] * by)(x).tolist() == [2, 3]


def test_there_is_no_word_before_the_first() -> None:
    with pytest.raises(IndexError, match="MLC0340"):
        nn.functional.embedding(mlc.tensor([-1]), mlc.ones(3, 2))


def test_compile_decorates_with_options() -> None:
    @mlc.compile(dynamic=True)
    def f(x: Any) -> Any:
        return x + 1

    assert f(mlc.ones(2)).tolist() == [2, 2]


def test_a_frontend_without_a_compiler_says_so() -> None:
    code = "from mlc.frontend.compiler import compiler; compiler()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          cwd=Path(__file__).parent.parent)
    assert "error[MLC0685]: the frontend has been given no compiler" in done.stderr


@pytest.mark.parametrize("module", thinned(
    ["nn", "optim", "linalg", "fft", "random", "importer", "utils.data"], 7))
def test_any_module_may_be_imported_first(module: str) -> None:
    """Whichever it is gives the frontend its compiler."""
    code = f"import mlc.{module}; from mlc.frontend.compiler import compiler; compiler().compile"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent)


def test_full_of_a_symbolic_size() -> None:
    f = mlc.compile(lambda x: (mlc.full((2,), x.shape[0], dtype="float32"), mlc.full_like(x, 2 * x.shape[0])),
                    args=[mlc.spec("B")])
    assert [y.tolist() for y in f(mlc.ones(3))] == [[3.0, 3.0], [6.0, 6.0, 6.0]]


def test_none_is_no_number() -> None:
    """numpy fills with NaN for it."""
    nothing: Any = None
    for f in (lambda x: mlc.full_like(x, nothing), lambda x: mlc.full((2,), nothing)):
        for called in (f, mlc.compile(f)):
            with pytest.raises(UserTypeError, match="expected a number, found None"):
                called(mlc.ones(2))
