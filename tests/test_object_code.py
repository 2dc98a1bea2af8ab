"""Machine code: what LLVM must not do to ours."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from mlc.backends import available
from mlc.backends.cpu.targets import host
from mlc.backends.executable import build
from mlc.backends.target import Target
from mlc.ir import types
from mlc.ir.machine import x86_64
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
    module = pipeline.lower(parse_module(PAD), "llvm", x86_64(bits))
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
}}"""), "llvm", target.machine)
    to, source = (to_numpy(getattr(types, n)) for n in (narrow, wide))
    memory, x = np.full(count + 8, 3, to), np.arange(count)
    rows = np.broadcast_to(x[:, None], (count, 16)).astype(source)
    found, = build(module, target).entry("main").call([memory[:count], rows, np.eye(16, dtype=source)[3]])
    assert np.shares_memory(found, memory)
    assert (memory == np.append(x, [3] * 8).astype(to)).all()


# -- memory -----------------------------------------------------------------------------------------------------------
LITTLE_MEMORY = """
import resource, sys
import numpy as np
import mlc
f = mlc.compile(mlc.grad(lambda x: mlc.softmax(x @ x, dim=1).sum()))  # what is imported when it is needed
np.ones((64, 64), np.float32) @ np.ones((64, 64), np.float32)         # its library allocates at its first call
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + (int(sys.argv[1]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    f(np.ones((64, 64), np.float32))
except mlc.Error as error:
    print(error.code)
"""


@pytest.mark.parametrize("free", [200, *(pytest.param(n, marks=pytest.mark.slow) for n in range(20, 500, 20))])
def test_little_memory_is_an_error_and_not_the_end_of_the_process(free: int) -> None:
    """LLVM aborts where it gets none. Recording may run out of memory first: MLC0328."""
    run = subprocess.run([sys.executable, "-c", LITTLE_MEMORY, str(free)], capture_output=True, text=True,
                         env={**os.environ, "MLC_CACHE": "0", "OPENBLAS_NUM_THREADS": "1"})
    assert run.returncode == 0 and run.stdout in ("", "MLC0328\n", "MLC0451\n", "MLC0452\n"), run.stderr


def test_memory_is_asked_for_before_llvm_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(available, "available", lambda limit: 100 << 20)
    available.check_memory(available.CERTAIN - 1)
    with pytest.raises(MemoryError, match=r"MLC0451.*LLVM needs about 128 MB.*100 MB are free"):
        available.check_memory(available.CERTAIN)
    monkeypatch.undo()
    assert 0 <= available.available(1 << 20) < 1 << 20 < available.available(1 << 62)
