"""Products of integers with quantised rows: bits are those of the reference for every level of x86-64, at odd sizes."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends.cpu.targets import LEVELS, host
from mlc.dialects import loop, tensor
from mlc.dialects.builtin import Module
from mlc.dialects.tensor.encodings import ENCODINGS
from mlc.frontend.functions.quantized import quantized_linear
from mlc.ir.interp import run_function
from mlc.ir.machine import GPU, Cpu
from mlc.passes import pipeline
from tests import redzones
from tests.arrays import Array, difference
from tests.low_programs import Program
from tests.test_gguf import blocks_of

DOT = """func.func @dot(%c: memref<?x16xi32>, %a: memref<?x64xi8>, %b: memref<?x64xi8>, %n: index) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {
    %x = vector.load %c[%i, %0] : memref<?x16xi32>, vector<16xi32>
    %y = vector.load %a[%i, %0] : memref<?x64xi8>, vector<64xi8>
    %z = vector.load %b[%i, %0] : memref<?x64xi8>, vector<64xi8>
    %r = x86vector.avx512.dot_bytes %x, %y, %z : vector<64xi8> -> vector<16xi32>
    vector.store %r, %c[%i, %0] : memref<?x16xi32>, vector<16xi32>
  }
  func.return
}"""
SHAPES = [(1, 13, 512), (3, 40, 256), (5, 1, 256), (8, 33, 768), (9, 16, 256), (37, 21, 512)]
"""Rows, columns and terms: of few rows, and of those for which columns are unpacked into panels."""


@pytest.mark.skipif(not host().has("avx512vnni"), reason="no AVX512_VNNI")
def test_the_instruction_is_what_the_interpreter_says() -> None:
    rng, n = np.random.default_rng(0), 64
    bytes = [rng.choice([*range(-128, 128), *[-128, 127, -1, 0] * 20], (n, 64)).astype(np.int8) for _ in range(2)]
    sums = rng.choice([0, 1, -1, 2**31 - 1, -2**31], (n, 16)).astype(np.int32)
    Program(DOT, [LEVELS["cooperlake"]]).check("dot", [sums, *bytes, n])


def factors(encoding: str, rows: int, columns: int, terms: int) -> list[Array]:
    """Rows with zeros and with numbers of other magnitudes among them, and blocks of arbitrary bytes."""
    rng = np.random.default_rng(rows)
    x = rng.normal(size=(rows, terms)) * 10.0 ** rng.integers(-3, 3, (rows, terms))
    x[:, : terms // 8] = 0
    return [x.astype(np.float32), blocks_of(encoding, columns, terms)]


def product(encoding: str, rows: int | str, columns: int, terms: int, bytes: int) -> Module:
    """The product as a module."""
    module = mlc.lower(lambda x, w: quantized_linear(x, w, encoding), args=[
        mlc.spec(rows, terms), mlc.spec(columns, bytes, dtype="uint8")], level="trace").module
    assert isinstance(module, Module)
    return module


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_bits_on_every_level(encoding: str) -> None:
    """Nothing outside of the buffers is touched, whatever the threads are, and the sum is what its operation says."""
    for rows, columns, terms in SHAPES[::3] if encoding in ("q4_1", "q5_k") else SHAPES:
        args = factors(encoding, rows, columns, terms)

        def make(rows: int = rows, columns: int = columns, terms: int = terms, args: list[Array] = args) -> Module:
            return product(encoding, rows, columns, terms, args[1].shape[1])

        wanted = tensor.QuantizedDot.ref(Encoded(encoding), *args)  # type: ignore[arg-type]
        for level in redzones.WIDTHS:
            found = redzones.compiled(make, level).call(args)[0]
            assert difference(found, wanted, "bits") is None, (level, rows, columns, terms)
        redzones.check(make, [args], redzones.WIDTHS, (1, 3))


class Encoded:
    def __init__(self, encoding: str) -> None:
        self.encoding = encoding


@pytest.mark.parametrize("encoding", ["q8_0", "q4_k", "q6_k"])
@pytest.mark.parametrize("rows", [2, 11])
def test_schedules_keep_the_bits(encoding: str, rows: int) -> None:
    """Interpreted without a schedule, and with those of machines with and without the instruction."""
    args = factors(encoding, rows, 21, 256)
    wanted = tensor.QuantizedDot.ref(Encoded(encoding), *args)  # type: ignore[arg-type]
    for level in ("x86-64-v2", "x86-64-v4", "cooperlake"):
        machine = LEVELS[level].machine
        assert isinstance(machine, Cpu)
        module = product(encoding, rows, 21, 256, args[1].shape[1])
        pipeline.lower(module, "loop", machine)
        assert [op.fused for op in module.inside(loop.DotQuads)] == [level == "cooperlake"]
        assert bool(list(module.inside(loop.Scratch))) == (rows > machine.vector_registers // 4)
        assert any(True for _ in module.inside(loop.Prefetch))
        found = interpreted(module, args)
        assert difference(found, wanted, "bits") is None, level


def interpreted(module: Module, args: list[Array]) -> Any:
    return run_function(module, "main", args)[0]


@pytest.mark.parametrize("rows", [1, 7, 9, 40])
def test_a_number_of_rows_that_is_known_when_it_runs(rows: int) -> None:
    args = factors("q4_0", rows, 19, 96)
    f = mlc.compile(lambda x, w: quantized_linear(x, w, "q4_0"), dynamic=True)
    wanted = tensor.QuantizedDot.ref(Encoded("q4_0"), *args)  # type: ignore[arg-type]
    assert difference(f(*map(mlc.tensor, args)).numpy(), wanted, "bits") is None


def test_products_of_gpus_add_in_lanes() -> None:
    module = pipeline.lower(product("q8_0", 3, 5, 64, 68), "loop", GPU)
    assert any(module.inside(loop.DotPairs)) and not any(module.inside(loop.DotQuads))
