"""The error record as kernels write it: which failing index counts, and which lanes of a partial vector may fail."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends.cpu.targets import host
from mlc.backends.executable import Entry, build
from mlc.dialects.builtin import Module
from mlc.dialects.loop import Kernel, Load
from mlc.ir.diag import UserIndexError
from mlc.ir.interp import run_function
from mlc.ir.machine import CPU
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline
from mlc.nn import functional
from mlc.passes import pipeline
from mlc.passes.lower_kernel.memory import lane_index
from mlc.passes.lower_kernel.nest import Lowering

# Where an index is computed, it is -1 in the lanes of a partial vector that stick out.
COMPUTED = """
func.func @f(%x: tensor<10xf32>, %i: tensor<Nxi64>) -> tensor<Nxf32> {
  %one = tensor.full 1 : tensor<i64>
  %0 = tensor.sub %i, %one : (tensor<Nxi64>, tensor<i64>) -> tensor<Nxi64>
  %1 = tensor.take %x, %0 {axis = 0} : (tensor<10xf32>, tensor<Nxi64>) -> tensor<Nxf32>
  func.return %1 : tensor<Nxf32>
}
"""
# Two sites in one kernel, and two in kernels that run one after the other.
TWO_SITES = """
func.func @f(%x: tensor<10xf32>, %i: tensor<Nxi64>, %j: tensor<Nxi64>) -> (tensor<Nxf32>, tensor<f32>) {
  %0 = tensor.take %x, %i {axis = 0} : (tensor<10xf32>, tensor<Nxi64>) -> tensor<Nxf32>
  %1 = tensor.take %x, %j {axis = 0} : (tensor<10xf32>, tensor<Nxi64>) -> tensor<Nxf32>
  %2 = tensor.add %0, %1 : tensor<Nxf32>
  %3 = tensor.reduce_max %2 {axes = [0]} : (tensor<Nxf32>) -> tensor<f32>
  func.return %2, %3 : tensor<Nxf32>, tensor<f32>
}
"""


def entry(text: str) -> Entry:
    return build(pipeline.lower(parse_module(text, "f.mlir"))).entry("f")


@pytest.mark.parametrize("n", [1, 15, 16, 17, 63, 64, 65])
def test_lanes_past_the_end_do_not_fail(n: int) -> None:
    x, i = np.arange(10, dtype=np.float32), np.arange(n) % 10 + 1
    np.testing.assert_array_equal(entry(COMPUTED).call([x, i])[0], x[i - 1])


@pytest.mark.parametrize("failing", [(0,), (16,), (69,), (5, 40), (69, 64)])
def test_the_first_element_that_fails_is_named(failing: tuple[int, ...]) -> None:
    i = np.ones(70, np.int64)
    i[list(failing)] = 0
    with pytest.raises(UserIndexError, match=rf"\(element {min(failing)} of the kernel\)"):
        entry(COMPUTED).call([np.zeros(10, np.float32), i])


@pytest.mark.parametrize(("first", "second", "line"), [([3], [1], 3), ([3], [], 3), ([], [1], 4)])
def test_the_first_site_that_fails_is_named(first: list[int], second: list[int], line: int) -> None:
    """... whichever element fails there, by native code and by the interpreter at every level."""
    i, j = np.zeros(70, np.int64), np.zeros(70, np.int64)
    i[first], j[second] = 10, -1
    arguments: list[Any] = [np.zeros(10, np.float32), i, j]
    with pytest.raises(UserIndexError, match=rf"f\.mlir:{line}:") as caught:
        entry(TWO_SITES).call(arguments)
    for level in ("loop", "low", "llvm"):
        with pytest.raises(UserIndexError) as interpreted:
            run_function(pipeline.lower(parse_module(TWO_SITES, "f.mlir"), level), "f", arguments)
        assert str(interpreted.value) == str(caught.value)


def test_what_points_share_is_built_once() -> None:
    """Common subexpressions are few after the pass: building, rewriting and merging them cost more than it does."""
    def f(x: Any, w: Any, b: Any) -> Any:
        return functional.gelu(functional.conv2d(x, w, stride=2, padding=1) + b).sum(2)

    module = mlc.lower(f, [mlc.spec(1, 8, 33, 37), mlc.spec(16, 8, 3, 3), mlc.spec(16, 1, 1)], "loop").module
    lower, canonicalize, cse, dce = pipeline.below_loop(host().machine)[:4]
    Pipeline([lower]).run(module)
    built = sum(1 for _ in module.walk())
    Pipeline([canonicalize, cse, dce]).run(module)
    assert sum(1 for _ in module.walk()) > 0.8 * built


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("side", [32, 28])
def test_images_of_a_batch_are_read_along_their_pixels(side: int, size: int) -> None:
    """The terms of a gradient of weights are the pixels of all images, of which a panel has the channels as rows."""
    def f(x: Any, w: Any, ct: Any) -> Any:
        return mlc.grad(lambda w: (functional.conv2d(x, w, padding=size // 2) * ct).sum())(w)

    operands = [mlc.spec(4, 256, side, side), mlc.spec(32, 256, size, size), mlc.spec(4, 32, side, side)]
    module = mlc.lower(f, operands, "trace").module
    steps = pipeline.steps("low", CPU)
    cut = next(i for i, step in enumerate(steps) if str(step) == "loop_to_scf")
    Pipeline(steps[:cut]).run(module)
    kernel, = (op for op in module.walk() if isinstance(op, Kernel) and "dot_general" in op.label)
    assert any(step.startswith("pack(") for step in kernel.schedule.steps)
    Pipeline(steps[cut:]).run(module)
    assert not any(op.name == "vector.gather" for op in module.walk())


def test_vectors_begin_at_multiples_of_their_lanes() -> None:
    """So that a quotient is the same for all lanes, or for none."""
    text = Path(__file__).with_name("cases").joinpath("loop_to_scf", "lanes.mlir").read_text(encoding="utf-8")
    kernel = next(iter(parse_module(text, "lanes.mlir").inside(Kernel)))
    low = Lowering(kernel.enclosing(Module), kernel)
    quotient = next(iter(kernel.inside(Load))).map.result
    low.scope.lanes = 5                                    # which do not divide the tile
    with pytest.raises(AssertionError, match="vectors along d0 begin at multiples of their 5 lanes"):
        lane_index(low, quotient, (), (0,))
