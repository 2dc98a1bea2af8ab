"""Kernels of eager operations: which calls share one, and that the sizes that one was made for do not matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontend import eager

F = mlc.nn.functional

CALLS: dict[str, tuple[Callable[..., Any], list[list[tuple[int, ...]]]]] = {
    "relu": (F.relu, [[(2, 3, 4, 5)], [(4, 4, 4, 4)], [(7, 3, 3, 2)]]),
    "linear": (F.linear, [[(2, 3), (4, 3), (4,)], [(3, 3), (3, 3), (3,)], [(2, 2), (5, 2), (5,)]]),
    "add": (mlc.add, [[(2, 3, 4), (3, 4)], [(3, 3, 3), (3, 3)]]),
    "matmul": (mlc.matmul, [[(2, 3), (3, 4)], [(5, 5), (5, 5)]]),
    "conv2d": (F.conv2d, [[(2, 3, 9, 8), (4, 3, 2, 5)], [(3, 3, 7, 7), (3, 3, 3, 3)]]),
    "batch_norm": (F.batch_norm, [[(2, 3, 4, 5), (3,), (3,)], [(4, 4, 4, 4), (4,), (4,)]]),
}


def operands(shapes: list[tuple[int, ...]]) -> list[mlc.Tensor]:
    rng = np.random.default_rng(sum(map(len, shapes)))
    return [mlc.tensor(rng.random(shape, np.float32) + 0.5) for shape in shapes]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, interpreted: None) -> list[tuple[str, Any]]:
    """The kernels that are made: the name of the operation, and its shapes. There are none before."""
    found, build = list[tuple[str, Any]](), eager._build

    def noted(call: eager.Call, shapes: Any) -> eager.EagerKernel:
        kernel = build(call, shapes)
        found.append((call.op.name, shapes))
        return kernel

    monkeypatch.setattr(eager, "_build", noted)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_sizes_that_are_equal_by_chance_share_a_kernel(name: str, built: list[tuple[str, Any]]) -> None:
    f, calls = CALLS[name]
    results = [f(*operands(shapes)).numpy() for shapes in (*calls, *reversed(calls))]
    assert [found for found, _ in built] == [name]
    assert all(np.array_equal(x, y) for x, y in zip(results, reversed(results)))


@pytest.mark.parametrize("name", ["relu", "add", "batch_norm"])
def test_a_kernel_of_axes_has_the_bits_of_one_for_equal_sizes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, calls = CALLS[name]
    f(*operands(calls[0]))
    general = [f(*operands(shapes)).numpy() for shapes in calls]
    monkeypatch.setattr(eager, "_of_axes", lambda call: None)
    with eager.compiled_by(lambda module, device: mlc.frontend.compiler.compiler().compile(module, device)):
        for shapes, wanted in zip(calls, general):
            np.testing.assert_array_equal(f(*operands(shapes)).numpy(), wanted)


def test_backward_shares_kernels_as_well(built: list[tuple[str, Any]]) -> None:
    for shapes in CALLS["linear"][1]:
        given = [x.requires_grad_() for x in operands(shapes)]
        F.linear(*given).backward(mlc.ones(shapes[0][0], shapes[1][0]))
    assert [name for name, _ in built if name.endswith("_backward")] == ["linear_backward"]


def test_a_float_that_scales_a_sum_is_no_part_of_the_kernel(built: list[tuple[str, Any]]) -> None:
    x = mlc.ones(3)
    assert [mlc.add(x, x, alpha=a).tolist() for a in (0.5, 2.0)] == [[1.5] * 3, [3.0] * 3] and len(built) == 1
    assert mlc.sub(mlc.arange(3), mlc.arange(3), alpha=2).dtype == mlc.int64


def test_only_sizes_that_an_operation_names_are_numbers(built: list[tuple[str, Any]]) -> None:
    for batch in (2, 5, 4):
        F.layer_norm(mlc.ones(batch, 3, 4), (4,), mlc.ones(4))
    (_, (x, weight)), = built
    assert x[2] == weight[0] == 4 and not isinstance(x[0], int) and not isinstance(x[1], int)


def test_errors_of_a_shared_kernel_name_the_sizes_of_the_call(interpreted: None) -> None:
    x, at = mlc.ones(3, 5), mlc.tensor([7])
    x.index_select(0, mlc.tensor([2]))
    with pytest.raises(IndexError, match=r"index 7 at .* is out of range for size 3 of axis 0"):
        x.index_select(0, at)


def test_work_that_has_no_short_estimate_counts_as_unbounded() -> None:
    """Of windows of any size in images of any size: the estimate has hundreds of terms."""
    shapes = [mlc.spec("A", "B", "C", "D", "E"), mlc.spec("K", "B", "L", "M", "N")]
    assert 'work = "-1"' in str(mlc.lower(lambda x, w: F.conv3d(x, w), shapes, level="loop"))


@pytest.mark.parametrize("swapped", [False, True])
def test_a_number_and_a_tensor_of_one_have_kernels_of_their_own(swapped: bool) -> None:
    """The tensor has a type that counts."""
    for dtype, number, both in (("int8", 2, "int64"), ("float32", 2.0, "float64")):
        x = mlc.tensor(3, dtype=dtype)
        other = mlc.tensor(number, dtype=both)
        for y in (other, number) if swapped else (number, other):
            assert (x * y).dtype.name == (both if y is other else dtype)
