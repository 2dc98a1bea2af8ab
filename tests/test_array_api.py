"""The array API standard: where it differs from PyTorch, what other libraries need of tensors, and what is refused.

Values of all functions are judged by the official suite: `python -m tests.peers.array_api`.
"""
from __future__ import annotations

import inspect
import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import array_api as xp
from mlc.ir.diag import UserError, UserTypeError
from tests.peers import array_api as suite

pytestmark = pytest.mark.usefixtures("execution")


def same(got: Any, want: Any, dtype: Any = None) -> None:
    np.testing.assert_array_equal(got.numpy(), np.asarray(want))
    assert dtype is None or got.dtype is dtype


# -- promotion --------------------------------------------------------------------------------------------------------
def test_a_tensor_without_dimensions_promotes_as_any_other() -> None:
    x, y = xp.asarray([1, 2], dtype=xp.int8), xp.asarray(3, dtype=xp.int64)
    same(xp.add(x, y), [4, 5], xp.int64)
    assert (x + y).dtype is mlc.int8                       # the operator is PyTorch's
    assert xp.add(x, 3).dtype is xp.int8 and xp.add(2.0, x).dtype is xp.float32
    same(xp.where(xp.asarray([True, False]), x, y), [1, 3], xp.int64)
    same(xp.concat([x, xp.asarray([5], dtype=xp.int16)]), [1, 2, 5], xp.int16)


@pytest.mark.parametrize("a, b, want", [
    ("uint8", "int8", "int16"), ("uint8", "uint32", "uint32"), ("uint32", "int8", "int64"),
    ("bool", "uint16", "uint16"), ("uint16", "int32", "int32"), ("float32", "complex128", "complex128"),
    ("float64", "complex64", "complex128")])
def test_dtypes_promote_as_in_the_standard(a: str, b: str, want: str) -> None:
    first, second = getattr(xp, a), getattr(xp, b)
    assert xp.result_type(first, second) is xp.result_type(second, first) is getattr(xp, want)
    assert (xp.ones(2, dtype=first) + xp.ones(2, dtype=second)).dtype is getattr(xp, want)


def test_no_common_dtype() -> None:
    with pytest.raises(UserTypeError, match="MLC0341"):
        xp.add(xp.ones(1, dtype=xp.uint64), xp.ones(1, dtype=xp.int64))
    assert not xp.can_cast(xp.uint64, xp.int64) and xp.can_cast(xp.uint8, xp.int16)
    with pytest.raises(UserTypeError, match="MLC0880"):
        xp.add(1, 2)


# -- functions --------------------------------------------------------------------------------------------------------
def test_sums_of_integers() -> None:
    small = xp.asarray([200, 100], dtype=xp.uint8)
    same(xp.sum(small), 300, xp.uint64)
    same(xp.cumulative_sum(small, include_initial=True), [0, 200, 300], xp.uint64)
    same(xp.sum(xp.asarray([[1, 2]]), axis=()), [[1, 2]], xp.int64)
    same(xp.prod(small, dtype=xp.uint8), 200 * 100 % 256, xp.uint8)


def test_variance() -> None:
    x = xp.asarray([1.0, 2.0, 4.0])
    np.testing.assert_allclose(xp.var(x).numpy(), np.var([1, 2, 4]), rtol=1e-6)
    np.testing.assert_allclose(xp.std(x, correction=0.5).numpy(), np.sqrt(14 / 3 / 2.5), rtol=1e-6)
    assert math.isnan(xp.var(x, correction=3))


def test_distinct_elements() -> None:
    nan = math.nan
    found = xp.unique_all(xp.asarray([[2.0, nan, 0.0], [-0.0, 2.0, nan]]))
    same(found.values, [0.0, 2.0, nan, nan])
    same(found.indices, [2, 0, 1, 5])
    same(found.inverse_indices, [[1, 2, 0], [0, 1, 3]])
    same(found.counts, [2, 2, 1, 1])
    same(xp.unique_values(xp.asarray([1 + 1j, 1 - 1j, 1 + 1j])), [1 - 1j, 1 + 1j])
    same(xp.unique_counts(xp.asarray([True, True])).counts, [2])
    assert xp.unique_all(xp.zeros(0)).counts.shape == (0,)


def test_floor_of_quotients_of_infinities() -> None:
    x, y = xp.asarray([math.inf, 5.0, 1.0]), xp.asarray([2.0, -math.inf, 0.1])
    got = xp.floor_divide(x, y).numpy()
    assert got.tolist() == [math.inf, 0.0, 9.0] and np.signbit(got[1])


def test_vectors_on_the_right_have_one_dimension() -> None:
    a, b = xp.asarray(np.eye(2) * [[2.0], [4.0]]), xp.ones((2, 2), dtype=xp.float64)
    same(xp.linalg.solve(xp.stack([a, a]), b), np.stack([np.array([[0.5, 0.5], [0.25, 0.25]])] * 2))
    same(xp.linalg.solve(a, b[0]), [0.5, 0.25])


def test_axes_and_indices() -> None:
    x = xp.asarray([[10, 20, 30]])
    same(xp.take(x, xp.asarray([-1, 0]), axis=1), [[30, 10]])
    same(xp.take_along_axis(x, xp.asarray([[-1]])), [[30]])
    same(xp.expand_dims(x, (0, -1)), np.array([[10, 20, 30]])[None, ..., None])
    same(xp.eye(2, 3, k=2**70), np.zeros((2, 3)))
    assert xp.unstack(xp.zeros((0, 2))) == ()
    assert xp.squeeze(x, ()).shape == xp.expand_dims(x, ()).shape == (1, 3)
    with pytest.raises(UserError, match="MLC0883"):
        xp.squeeze(x, 1)
    with pytest.raises(UserError, match="MLC0883"):
        xp.cumulative_sum(x)


def test_truths_of_bytes_are_bools() -> None:
    x = xp.asarray([[0, 2], [0, 0]], dtype=xp.uint8)
    same(xp.any(x, axis=1), [True, False], xp.bool)
    same(xp.all(x, axis=0, keepdims=True), [[False, False]], xp.bool)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint64"])
def test_indices_of_any_integers(dtype: str) -> None:
    x, i = xp.asarray([10.0, 20.0, 30.0]), xp.asarray(np.array([2, 0, 1], dtype))
    same(xp.take(x, i), [30, 10, 20])
    same(xp.take_along_axis(x, i), [30, 10, 20])
    same(xp.searchsorted(xp.asarray([20.0, 30.0, 10.0]), 15.0, sorter=i), 1)


def test_negative_indices_of_an_axis_that_their_dtype_does_not_hold() -> None:
    same(xp.take_along_axis(xp.arange(200), xp.asarray([-1, -2, 5], dtype=xp.int8)), [199, 198, 5])


def test_namespace_functions_compile_and_have_derivatives() -> None:
    def f(x: mlc.Tensor) -> mlc.Tensor:
        return xp.sum(xp.multiply(xp.exp(x), xp.asarray(2.0)))
    x = mlc.tensor([0.0, 1.0])
    same(mlc.compile(mlc.grad(f))(x), (2 * mlc.exp(x)).numpy())


def test_all_names_are_there() -> None:
    assert not [name for name in xp.__all__ if not hasattr(xp, name)]
    for f in (getattr(xp, name) for name in xp.__all__ if inspect.isfunction(getattr(xp, name))):
        assert "axes" in str(inspect.signature(f)) or "dim:" not in str(inspect.signature(f)), f


# -- tensors as arrays ------------------------------------------------------------------------------------------------
def test_a_tensor_names_its_namespace() -> None:
    x = mlc.ones(2)
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(UserError, match="MLC0885"):
        x.__array_namespace__(api_version="2019.12")
    info = xp.__array_namespace_info__()
    assert "cpu" in info.devices() and info.default_dtypes()["integral"] is xp.int64
    assert list(info.dtypes(kind=("bool", "real floating"))) == ["bool", "float32", "float64"]
    with pytest.raises(UserError, match="MLC0881"):
        info.dtypes(kind="float")


def test_memory_is_shared_by_dlpack_as_asked() -> None:
    x = mlc.tensor([1.0, 2.0])
    shared, own = xp.from_dlpack(x), xp.from_dlpack(x, copy=True)
    x[0] = 7
    assert shared.tolist() == [7, 2] and own.tolist() == [1, 2]
    assert np.from_dlpack(x).tolist() == [7, 2] and x.__dlpack_device__() == (1, 0)
    x.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=True)
    with pytest.raises(UserError, match="MLC0884"):
        x.__dlpack__(dl_device=(2, 0))
    for data in (x, 1):
        with pytest.raises(UserError, match="MLC0882"):
            xp.asarray(data, dtype=xp.int8, copy=False)


def test_numpy_functions_of_tensors() -> None:
    x: Any = mlc.tensor([1.0, 4.0])
    assert isinstance(np.sqrt(x), mlc.Tensor) and isinstance(np.add(np.ones(2), x), mlc.Tensor)
    array = np.ones(2)
    array += x
    assert array.tolist() == [2, 5] and isinstance(np.concatenate([x, x]), np.ndarray)
    with pytest.raises(UserTypeError, match="MLC0422"):
        np.sqrt(array, out=x)


# -- mlc's own, mended ------------------------------------------------------------------------------------------------
def test_a_number_assigned_by_a_mask_keeps_its_digits() -> None:
    x = mlc.zeros(2, dtype=mlc.float64)
    x[mlc.tensor([True, False])] = 2.0**24 + 1
    assert x.tolist() == [2.0**24 + 1, 0]


def test_large_unsigned_integers() -> None:
    x = mlc.tensor([0, 2**63], dtype=mlc.uint64)
    assert xp.add(x, 2**63 - 1).tolist() == [2**63 - 1, 2**64 - 1] and xp.equal(x, 2**63).tolist() == [False, True]
    with pytest.raises(UserError, match="MLC0348"):
        mlc.tensor([0, 2**63], dtype=mlc.int64)


def test_one_truth_value_is_an_index() -> None:
    x = mlc.tensor([1, 2])
    assert x[mlc.tensor(True)].shape == (1, 2) and x[False].shape == (0, 2)
    x[mlc.tensor(False)] = 5
    assert x.tolist() == [1, 2]
    x[mlc.tensor(True)] = 5
    assert x.tolist() == [5, 5]
    with pytest.raises(UserTypeError, match="MLC0369"):
        x[0, True]


@pytest.mark.parametrize("name, x, want", [
    ("exp", complex(-math.inf, math.inf), 0j), ("exp", complex(math.inf, 0.0), complex(math.inf, 0.0)),
    ("tanh", complex(math.inf, math.nan), 1 + 0j), ("acosh", complex(-math.inf, 1.0), complex(math.inf, math.pi)),
    ("atanh", complex(2.0, math.inf), complex(0.0, math.pi / 2)),
    ("log1p", complex(math.nan, math.inf), complex(math.inf, math.nan))])
def test_complex_functions_at_infinity(name: str, x: complex, want: complex) -> None:
    got = getattr(mlc, name)(mlc.tensor(x, dtype=mlc.complex128)).item()
    np.testing.assert_allclose([got.real, got.imag], [want.real, want.imag])


@pytest.mark.parametrize("x, want", [(complex(math.inf, 1.0), 1), (complex(-3.0, -math.inf), -1j),
                                     (complex(math.inf, math.inf), complex(math.nan, math.nan))])
def test_signs_of_infinite_complex_numbers_are_their_directions(x: complex, want: complex) -> None:
    np.testing.assert_array_equal(xp.sign(xp.asarray([x])).numpy(), [want])


def test_ranks_and_pseudoinverses_of_complex_matrices() -> None:
    x = np.array([[1, 1j], [1j, -1], [2, 2j]])
    assert mlc.linalg.matrix_rank(mlc.tensor(x)).item() == 1
    np.testing.assert_allclose(mlc.linalg.pinv(mlc.tensor(x), rtol=mlc.tensor(1e-6)).numpy(), np.linalg.pinv(x),
                               atol=1e-12)


# -- the programs of tests/peers --------------------------------------------------------------------------------------
def test_reasons_of_expected_failures() -> None:
    text = "# A reason\n# of two lines.\nt.py::test_a[1]\nt.py::test_b\n# Another.\nt.py::test_c\n"
    found = suite.expected_failures(text)
    assert found["t.py::test_b"] == "A reason of two lines." and found["t.py::test_c"] == "Another."
    assert suite.reason_of("t.py::test_b[x]", found) and suite.reason_of("t.py::test_a[2]", found) is None
    assert all(suite.expected_failures(suite.EXPECTED.read_text()).values())


def test_a_report_is_read(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(
        '<testsuites><testsuite><testcase classname="a.t" name="one"/><testcase classname="a.t.TestX" name="two">'
        '<failure message="m">  E   AssertionError: no</failure></testcase><testcase classname="a.t" name="three">'
        '<failure message="m"/></testcase></testsuite></testsuites>')
    out = suite.read(tmp_path / "r.xml", {"a/t.py::three": "known"})
    assert (out.passed, out.expected, out.unexpected) == (
        1, ["a/t.py::three"], {"a/t.py::TestX::two": "AssertionError: no"})


@pytest.mark.skipif(not (find_spec("scipy") and find_spec("sklearn")), reason="scipy or scikit-learn is not installed")
def test_scipy_and_sklearn_run_on_tensors() -> None:
    """In a process of its own, since scipy reads as it is imported whether arrays may be others than numpy's."""
    done = subprocess.run([sys.executable, "-m", "tests.peers.scientific", "--only",
                           "softmax|PCA, full|accuracy"], cwd=Path(__file__).parent.parent,
                          env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "3 agree" in done.stdout, done.stdout + done.stderr
