"""Machine code: what LLVM must not do to ours."""

from __future__ import annotations

import numpy as np
import pytest

from mlc.backends.executable import build
from mlc.backends.target import Target, host
from mlc.ir import types
from mlc.ir.parser import parse_module
from mlc.ir.types import to_numpy
from mlc.passes import pipeline

PAD = """
func.func @main(%x: tensor<1x1xf64>, %filler: tensor<f64>) -> tensor<5x8xf64> {
  %0 = tensor.pad %x, %filler {low = [3, 2], high = [1, 5], interior = [0, 0]}
      : (tensor<1x1xf64>, tensor<f64>) -> tensor<5x8xf64>
  func.return %0 : tensor<5x8xf64>
}"""


@pytest.mark.parametrize("level", (0, 1, 2))
@pytest.mark.parametrize("bits", (128, 256, 512))
@pytest.mark.parametrize("name", ("x86-64-v3", "host"))
def test_masked_load_whose_upper_lanes_are_never_wanted(name: str, bits: int, level: int) -> None:
    """LLVM 22.1 without mask registers read those lanes from memory and kept them in place of the filler."""
    target = Target.parse(name)
    if not host().runs(target):
        pytest.skip(f"this machine cannot run {name}")
    module = pipeline.lower(parse_module(PAD), "llvm", bits)
    found, = build(module, target, opt_level=level).entry("main").call([np.full((1, 1), 7.5), np.array(-0.5)])
    wanted = np.full((5, 8), -0.5)
    wanted[3, 2] = 7.5
    assert (found == wanted).all()


@pytest.mark.parametrize("name", ("x86-64-v3", "host"))
@pytest.mark.parametrize(("wide", "narrow"), [("i64", "i32"), ("i32", "i8"), ("f32", "bf16"), ("f64", "f16")])
@pytest.mark.parametrize("count", (1, 9, 17, 33))
def test_a_store_of_one_lane_leaves_its_neighbours(count: int, wide: str, narrow: str, name: str) -> None:
    """LLVM 22.1 with mask registers narrowed nothing where one lane was left: it wrote over what comes after."""
    target = Target.parse(name)
    if not host().runs(target):
        pytest.skip(f"this machine cannot run {name}")
    module = pipeline.lower(parse_module(f"""
func.func @main(%to: tensor<{count}x{narrow}>, %x: tensor<{count}x16x{wide}>, %y: tensor<16x{wide}>)
    -> tensor<{count}x{narrow}> attributes {{donate = [0]}} {{
  %d = tensor.dot_general %x, %y {{batch = [], contract = [[1, 0]]}}
      : (tensor<{count}x16x{wide}>, tensor<16x{wide}>) -> tensor<{count}x{wide}>
  %0 = tensor.cast %d : tensor<{count}x{wide}> to tensor<{count}x{narrow}>
  func.return %0 : tensor<{count}x{narrow}>
}}"""), "llvm", target.vector_bits)
    to, source = (to_numpy(getattr(types, n)) for n in (narrow, wide))
    memory, x = np.full(count + 8, 3, to), np.arange(count)
    rows = np.broadcast_to(x[:, None], (count, 16)).astype(source)
    found, = build(module, target).entry("main").call([memory[:count], rows, np.eye(16, dtype=source)[3]])
    assert np.shares_memory(found, memory)
    assert (memory == np.append(x, [3] * 8).astype(to)).all()
