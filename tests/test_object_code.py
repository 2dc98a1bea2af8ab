"""Machine code: what LLVM must not do to ours."""

from __future__ import annotations

import numpy as np
import pytest

from mlc.backends.executable import build
from mlc.backends.target import Target, host
from mlc.ir.parser import parse_module
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
