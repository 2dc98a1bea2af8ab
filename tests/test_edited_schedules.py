"""An edit of a schedule or of a loop in a dump is refused at its place, or the code computes what the text says."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from mlc.dialects import loop
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.dialects.loop import For, Kernel
from mlc.ir.diag import BackendError, Error, IRError
from mlc.ir.interp import run_function
from mlc.ir.machine import CPU, GPU
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline
from mlc.ir.printer import to_text
from mlc.ir.types import to_numpy
from mlc.ir.verify import verify
from mlc.passes import pipeline
from mlc.passes.schedule import transforms
from mlc.tools.fuzzing import schedules
from tests.arrays import difference

PRODUCT = """func.func @main(%x: tensor<9x11xTYPE>, %y: tensor<11x17xTYPE>) -> tensor<9x17xTYPE> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]}
    : (tensor<9x11xTYPE>, tensor<11x17xTYPE>) -> tensor<9x17xTYPE>
  func.return %0 : tensor<9x17xTYPE>
}"""
ROWS = """func.func @main(%x: tensor<5x200xf32>) -> (tensor<5x200xf32>, tensor<200xf32>) {
  %0 = tensor.reduce_max %x {axes = [1]} : (tensor<5x200xf32>) -> tensor<5xf32>
  %1 = tensor.reshape %0 : tensor<5xf32> to tensor<5x1xf32>
  %2 = tensor.sub %x, %1 : (tensor<5x200xf32>, tensor<5x1xf32>) -> tensor<5x200xf32>
  %3 = tensor.reduce_sum %2 {axes = [0]} : (tensor<5x200xf32>) -> tensor<200xf32>
  func.return %2, %3 : tensor<5x200xf32>, tensor<200xf32>
}"""
SCAN = """func.func @main(%x: tensor<3x19xf32>) -> tensor<3x19xf32> {
  %0 = tensor.cumulative %x {kind = "add", axis = 1} : tensor<3x19xf32>
  func.return %0 : tensor<3x19xf32>
}"""
FACTORS = PRODUCT.replace("TYPE", "bf16").replace("9x11", "24x32").replace("11x17", "32x24").replace("9x17", "24x24")
PROGRAMS = (PRODUCT.replace("TYPE", "f32"), FACTORS, ROWS, SCAN)
NUMBERS = (-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 128)
CODES = {"MLC0102", "MLC0150", "MLC0151", "MLC0152", "MLC0171", "MLC0543"}
"""The verifier's, and those of the passes below: what this machine, or its lowering, does not support."""


def dump(text: str, rng: random.Random, gpu: bool) -> tuple[Module, Pipeline]:
    """A program after its kernels have schedules, some of them with loops over panels, and the passes that follow."""
    module, last = parse_module(text), "distribute" if gpu else "vectorize"
    assert isinstance(module, Module)
    steps = pipeline.steps("low", machine=GPU if gpu else CPU, products=rng.choice(("fma", "mma")) if gpu else "fma")
    cut = max(i for i, step in enumerate(steps) if step.transform.name == last)
    Pipeline(steps[:cut]).run(module)
    if not gpu:
        schedules.pack_panels(module, rng)
    Pipeline(steps[cut: cut + 1]).run(module)
    return module, Pipeline(steps[cut + 1:])


def edit(module: Module, rng: random.Random) -> str:
    """Change one number of a schedule, of a loop or of an operation on tiles; returns what was changed."""
    kernel = rng.choice([*module.inside(Kernel)])
    loops = [op for op in kernel.inside(loop.InKernel) if isinstance(op, For) or rng.random() < 0.2]
    if loops and rng.random() < 0.5:
        op = rng.choice(loops)
        numbers = ("size", "size", "run", "stages", "unroll") if isinstance(op, For) else tuple(
            name for name, value in op.attrs.items() if type(value) in (int, bool))
        if numbers:
            name = rng.choice(numbers)
            value = not op.attrs[name] if type(op.attrs.get(name)) is bool else rng.choice(NUMBERS)
            op.attrs[name] = value
            return f"{op.name} {name} = {value}"
    schedule = kernel.schedule
    name = rng.choice(("tile", "tile", "lanes", *(n for n in schedule.__slots__ if n != "steps")))
    old: Any = getattr(schedule, name)
    new: Any = rng.choice(NUMBERS)
    if name in ("tile", "threads_per_cta", "threads_per_warp"):
        d = rng.randrange(len(old) + 1)
        new = (*old[:d], new, *old[d + 1:]) if d < len(old) else rng.choice(((), old[::-1]))
    elif name == "masked":
        new = (new,)
    kernel.reschedule(**{name: new})
    return f"{name} = {new}"


@pytest.mark.parametrize("gpu", [False, True], ids=["cpu", "gpu"])
@pytest.mark.parametrize("count", [5, pytest.param(2000, marks=pytest.mark.slow)])
def test_an_edit_is_refused_or_obeyed(gpu: bool, count: int) -> None:
    refused = obeyed = 0
    for seed in range(count):
        rng = random.Random(f"edit {seed}")
        text = rng.choice(PROGRAMS)
        module, rest = dump(text, rng, gpu)
        edited = edit(module, rng)
        printed = to_text(module)
        arguments = [np.random.default_rng(seed).standard_normal(a.type.shape).astype(to_numpy(a.type.dtype))
                     for a in next(parse_module(text).inside(Func)).args]
        try:
            read = parse_module(printed, "edited.mlir")
            verify(read)
            meaning = run_function(read, "main", arguments)
            rest.run(read)
        except (IRError, BackendError) as error:
            assert error.code in CODES and error.loc.line, (seed, edited, error)
            refused += 1
            continue
        except Error as error:
            pytest.fail(f"{seed}: {edited}: {error}")
        found = run_function(read, "main", arguments)
        assert all(difference(a, b, "bits") is None for a, b in zip(found, meaning, strict=True)), (seed, edited)
        obeyed += 1
    assert refused > count // 8 and obeyed > count // 8, (refused, obeyed)


@pytest.mark.parametrize(("text", "edits", "message"), [
    pytest.param(ROWS, {"lanes = 1": "lanes = 24"}, "MLC0151.*lanes = 24 divides the tile of d1, 64", id="lanes"),
    pytest.param(ROWS, {"unroll = 8": "unroll = 8, size = 16"}, "MLC0152.*blocks of 16 of d1", id="blocks"),
    pytest.param(ROWS, {"tiles_per_cta = 256": "tiles_per_cta = 0"}, "MLC0171.*tiles_per_cta = 0", id="tiles"),
    pytest.param(ROWS, {"registers = true": "", "tile = [1, 64]": "tile = [4, 64]"},
                 "MLC0171.*tiles of 4 do not divide d0", id="points outside"),
    pytest.param(PROGRAMS[0], {"per_cta = [16, 8]": "per_cta = []"}, "MLC0151.*fill a panel", id="panel"),
    pytest.param(FACTORS, {"tile = [2, 2, 32]": "tile = []"}, "MLC0150.*has 0 sizes", id="no tile"),
    pytest.param(FACTORS, {"tile = [2, 2, 32]": "tile = [2, 32, 32]"}, "MLC0151.*2 x 2 sums", id="tensor cores")])
def test_what_a_gpu_cannot_do(text: str, edits: dict[str, str], message: str) -> None:
    """Each gave wrong numbers, or an exception of the compiler's own."""
    module = parse_module(text)
    steps = pipeline.steps("low", machine=GPU, products="mma")
    cut = next(i for i, step in enumerate(steps) if step.transform.name == "loop_to_gpu")
    Pipeline(steps[:cut]).run(module)
    printed = to_text(module)
    for old, new in edits.items():
        assert old in printed, printed
        printed = printed.replace(old, new)
    with pytest.raises(IRError, match=message):
        edited = parse_module(printed, "edited.mlir")
        verify(edited)
        Pipeline(steps[cut:]).run(edited)


def test_tiles_that_loops_inside_do_not_divide() -> None:
    module = parse_module(PROGRAMS[0])
    steps = pipeline.steps("low")
    cut = next(i for i, step in enumerate(steps) if step.transform.name == "vectorize")
    Pipeline(steps[:cut]).run(module)
    kernel = next(module.inside(Kernel))
    transforms.tile(kernel, 0, 8)
    transforms.strip_mine(kernel, 0, 4)
    for old, new in (("size = 4", "size = 3"), ("tile = [8,", "tile = [6,")):
        assert old in to_text(module)
        with pytest.raises(IRError, match=r"MLC0152.*do not divide the enclosing block"):
            verify(parse_module(to_text(module).replace(old, new)))
