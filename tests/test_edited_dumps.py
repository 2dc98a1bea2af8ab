"""Levels are not decoration: what one edits in a dump changes the result or the code, and schedules change no bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mlc.backends.executable import Executable, build
from mlc.dialects.loop import Kernel
from mlc.ir.core import Op
from mlc.ir.diag import IRError
from mlc.ir.interp import run_function
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments, Pipeline, Step
from mlc.ir.printer import to_text
from mlc.ir.verify import verify
from mlc.passes import pipeline
from tests.arrays import difference

Array = np.ndarray[Any, Any]

SCALED = """func.func @main(%x: tensor<5x40xf32>) -> tensor<5x40xf32> {
  %c = tensor.full 2.5 : tensor<f32>
  %0 = tensor.mul %x, %c : (tensor<5x40xf32>, tensor<f32>) -> tensor<5x40xf32>
  %1 = tensor.sqrt %0 : tensor<5x40xf32>
  func.return %1 : tensor<5x40xf32>
}"""
PRODUCT = """func.func @main(%x: tensor<Bx21xf32>, %y: tensor<21x70xf32>, %z: tensor<70xf32>)
    -> (tensor<Bx70xf32>, tensor<Bxf32>) {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]}
    : (tensor<Bx21xf32>, tensor<21x70xf32>) -> tensor<Bx70xf32>
  %1 = tensor.add %0, %z : (tensor<Bx70xf32>, tensor<70xf32>) -> tensor<Bx70xf32>
  %2 = tensor.reduce_sum %1 {axes = [1]} : (tensor<Bx70xf32>) -> tensor<Bxf32>
  func.return %1, %2 : tensor<Bx70xf32>, tensor<Bxf32>
}"""


def dumps(text: str) -> dict[str, str]:
    """The module after each pass, by pass; a pass that runs several times counts where it runs last."""
    out: dict[str, str] = {}

    def after(step: Step, module: Op) -> None:
        out[step.transform.name] = to_text(module)

    pipeline.build().run(parse_module(text), Instruments(after=after))
    return out


def compiled(dump: str) -> Executable:
    module = parse_module(dump)
    verify(module)
    return build(pipeline.resume(module))


def call(dump: str, *arguments: Array) -> list[Array]:
    return compiled(dump).entry("main").call(list(arguments))


def same(found: Sequence[Array], wanted: Sequence[Array]) -> bool:
    return all(difference(a, b, "bits") is None for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("name", ["fix_numerics", "fuse", "bufferize", "tensor_to_loop", "coalesce_dimensions",
                                  "vectorize", "loop_to_scf", "dce", "scf_to_llvm"])
def test_a_constant(name: str) -> None:
    """2.5 edited to 3.5 after any pass is what native code multiplies by."""
    dump = dumps(SCALED)[name]
    assert "2.5" in dump
    x = np.random.default_rng(0).uniform(0, 1, (5, 40)).astype("f4")
    assert same(call(dump, x), [np.sqrt(x * np.float32(2.5))])
    assert same(call(dump.replace("2.5", "3.5"), x), [np.sqrt(x * np.float32(3.5))])


def test_block_sizes() -> None:
    """Other blocks and vectors for a product give other code and the same bits."""
    dump = dumps(PRODUCT)["vectorize"]
    rng = np.random.default_rng(1)
    arguments = [rng.standard_normal(s).astype("f4") for s in ((13, 21), (21, 70), (70,))]
    wanted, images = call(dump, *arguments), {compiled(dump).image}
    old = "tile = [8, 48, 1], vector = 1"
    assert old in dump
    for tile, vector in (("1, 16, 1", 1), ("4, 8, 3", 1), ("5, 7, 1", 1), ("16, 2, 2", 0), ("3, 2, 21", -1)):
        edited = dump.replace(old, f"tile = [{tile}], vector = {vector}")
        assert same(call(edited, *arguments), wanted), (tile, vector)
        images.add(compiled(edited).image)
    assert len(images) == 6


def test_lanes_are_the_order_of_summation() -> None:
    """A sum by lanes says so in its block size: fewer lanes is another sum, equal up to rounding."""
    dump = dumps(PRODUCT)["vectorize"]
    rng = np.random.default_rng(2)
    arguments = [rng.standard_normal(s).astype("f4") for s in ((13, 21), (21, 70), (70,))]
    old = "tile = [1, 64], vector = 1"
    assert old in dump
    wanted, found = call(dump, *arguments), call(dump.replace(old, "tile = [1, 16], vector = 1"), *arguments)
    assert not same(found, wanted)
    assert same(call(dump.replace(old, "tile = [4, 64], vector = 0"), *arguments), wanted)     # a vector for each lane
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-4, atol=1e-5)


NUMBERS = """
func.func @numbers(%x: memref<70xf32>, %y: memref<16xf32>, %z: memref<16xf32>) {
  loop.kernel {symbols = [], domain = [16, 70], iterator_types = ["parallel", "reduction"],
               schedule = #loop.schedule<tile = [16, 16], vector = 0>} {
    %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xd1xf32>
    %1 = loop.for %0 {dim = 1} : !loop.tile<d0xd1xf32> {
    ^bb0(%sum: !loop.tile<d0xd1xf32>):
      %2 = loop.load %x {map = affine_map<(d0, d1) -> (d1)>, operandSegmentSizes = [1, 0, 0]}
        : (memref<70xf32>) -> !loop.tile<d1xf32>
      %3 = loop.map %sum, %2 : (!loop.tile<d0xd1xf32>, !loop.tile<d1xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb1(%a: f32, %b: f32):
        %4 = arith.addf %a, %b : f32
        loop.yield %4 : (f32) -> ()
      }
      loop.yield %3 : (!loop.tile<d0xd1xf32>) -> ()
    }
    %5 = loop.reduce %1 {dim = 1, kind = "add"} : (!loop.tile<d0xd1xf32>) -> !loop.tile<d0xf32>
    loop.store %5, %z {map = affine_map<(d0, d1) -> (d0)>, operandSegmentSizes = [1, 1, 0, 0]}
      : (!loop.tile<d0xf32>, memref<16xf32>) -> ()
    loop.end
  }
  func.return
}"""


def test_numbers_along_the_dimension_of_lanes_are_refused() -> None:
    """They are no vectors, of which those beyond the end could be masked."""
    with pytest.raises(IRError, match=r"MLC0171.*carried along its own dimension d1"):
        compiled(NUMBERS)


@pytest.mark.parametrize(("old", "new", "message"), [
    ("tile = [1, 64], vector = 1", "tile = [1, 48], vector = 1", "MLC0151.*not a power of two"),
    ("tile = [8, 48, 1], vector = 1", "tile = [8, 48, 4], vector = 2", "MLC0171.*its sum is one chain"),
    ("tile = [8, 48, 1], vector = 1", "tile = [8, 48], vector = 1", "MLC0150.*has 2 sizes, the domain has 3"),
    ("tile = [8, 48, 1], vector = 1", "tile = [8, 48, 1], vector = 3", "MLC0150.*is neither one of"),
])
def test_impossible_schedules_are_refused(old: str, new: str, message: str) -> None:
    dump = dumps(PRODUCT)["vectorize"]
    assert old in dump
    with pytest.raises(IRError, match=message):
        compiled(dump.replace(old, new))


MASKED = """func.func @main(%x: memref<20xf32>, %m: memref<20xi8>, %y: memref<20xf32>) {
  loop.kernel {symbols = [], domain = [20], iterator_types = ["parallel"],
               schedule = #loop.schedule<tile = [TILE], vector = VECTOR>} {
    %0 = loop.load %m {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 0, 0]}
      : (memref<20xi8>) -> !loop.tile<d0xi8>
    %1 = loop.map %0 : (!loop.tile<d0xi8>) -> !loop.tile<d0xi1> {
    ^bb0(%a: i8):
      %c = arith.constant 1 : i8
      %2 = arith.cmpi eq, %a, %c : i8
      loop.yield %2 : (i1) -> ()
    }
    %3 = loop.load %x, %1 {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 0, 1]}
      : (memref<20xf32>, !loop.tile<d0xi1>) -> !loop.tile<d0xf32>
    loop.store %3, %y, %1 {map = affine_map<(d0) -> (MAP)>, operandSegmentSizes = [1, 1, 0, 1]}
      : (!loop.tile<d0xf32>, memref<20xf32>, !loop.tile<d0xi1>) -> ()
    loop.end
  }
  func.return
}"""


@pytest.mark.parametrize("place", ["d0", "-d0 + 19", "(d0 floordiv 2)"])
@pytest.mark.parametrize(("tile", "vector"), [(1, -1), (3, -1), (16, 0), (8, 0)])
def test_masked_stores(place: str, tile: int, vector: int) -> None:
    """A store touches nothing where its mask fails, be it of scalars, of vectors or lane by lane."""
    text = MASKED.replace("TILE", str(tile)).replace("VECTOR", str(vector)).replace("MAP", place)
    rng = np.random.default_rng(3)
    x, m = rng.standard_normal(20).astype("f4"), (rng.random(20) < 0.5).astype("i1")
    out = []
    for passes in ((), ("loop_to_scf",)):
        module = parse_module(text)
        verify(module)
        Pipeline(passes).run(module)
        y = np.full(20, -1, "f4")
        run_function(module, "main", [x.copy(), m.copy(), y])
        out.append(y)
    assert same([out[1]], [out[0]])
    assert (out[0] == -1).any() and (out[0] != -1).any()


def test_kernels_keep_their_schedule() -> None:
    """A dump that has been vectorized is not vectorized again."""
    module = parse_module(dumps(PRODUCT)["vectorize"].replace("tile = [8, 48, 1]", "tile = [2, 32, 1]"))
    Pipeline(["vectorize"]).run(module)
    assert next(k.schedule.tile for k in module.inside(Kernel)) == (2, 32, 1)
