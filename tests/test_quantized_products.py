"""Products of integers with quantised rows: bits are those of the reference for every level of x86-64, at odd sizes."""
from __future__ import annotations

import numpy as np
import pytest

import mlc
from mlc.backends.cpu.targets import LEVELS, host
from mlc.backends.executable import build
from mlc.dialects import loop, tensor
from mlc.dialects.builtin import Module
from mlc.dialects.tensor.encodings import ENCODINGS
from mlc.frontend.functions.quantized import quantized_linear
from mlc.ir.interp import run_function
from mlc.ir.machine import GPU, Cpu
from mlc.ir.verify import verify
from mlc.passes import pipeline
from tests import redzones
from tests.arrays import Array, difference
from tests.low_programs import Program
from tests.test_gguf import blocks_of


def through(instruction: str, types: str, count: int, sums: str) -> str:
    """A function that applies an instruction to rows of two matrices of bytes, and of sums."""
    own = "%x, " if "dot" in instruction else ""
    return f"""func.func @dot(%c: memref<?x{sums}>, %a: memref<?x{count}xi8>, %b: memref<?x{count}xi8>, %n: index) {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {{
    %x = vector.load %c[%i, %0] : memref<?x{sums}>, vector<{sums}>
    %y = vector.load %a[%i, %0] : memref<?x{count}xi8>, vector<{count}xi8>
    %z = vector.load %b[%i, %0] : memref<?x{count}xi8>, vector<{count}xi8>
    %r = x86vector.{instruction} {own}%y, %z : {types}
    vector.store %r, %c[%i, %0] : memref<?x{sums}>, vector<{sums}>
  }}
  func.return
}}"""


SHAPES = [(1, 13, 512), (3, 40, 256), (5, 1, 256), (8, 33, 768), (9, 16, 256), (37, 21, 512)]
"""Rows, columns and terms: of few rows, and of those for which columns are unpacked into panels."""


def bytes_with_corners(rng: np.random.Generator, rows: int, count: int) -> list[Array]:
    return [rng.choice([*range(-128, 128), *[-128, 127, -1, 0] * 20], (rows, count)).astype(np.int8) for _ in range(2)]


@pytest.mark.skipif(not host().has("avx512vnni"), reason="no AVX512_VNNI")
@pytest.mark.parametrize("count", [16, 32, 64])
def test_dot_bytes_is_what_the_interpreter_says(count: int) -> None:
    rng, lanes = np.random.default_rng(0), count // 4
    sums = rng.choice([0, 1, -1, 2**31 - 1, -2**31], (64, lanes)).astype(np.int32)
    text = through("avx512.dot_bytes", f"vector<{count}xi8> -> vector<{lanes}xi32>", count, f"{lanes}xi32")
    Program(text, [LEVELS["cooperlake"]]).check("dot", [sums, *bytes_with_corners(rng, 64, count), 64])


@pytest.mark.parametrize("count, level", [(16, "x86-64-v2"), (32, "x86-64-v3"), (64, "x86-64-v4")])
def test_pairs_of_bytes_are_what_the_interpreter_says(count: int, level: str) -> None:
    if not host().runs(LEVELS[level]):
        pytest.skip(f"no {level}")
    text = through("pairs_of_bytes", f"vector<{count}xi8>", count, f"{count // 2}xi16")
    sums, factors = np.zeros((64, count // 2), np.int16), bytes_with_corners(np.random.default_rng(0), 64, count)
    Program(text, [LEVELS[level]]).check("dot", [sums, *factors, 64])


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


@pytest.mark.parametrize("encoding, shape", [
    ("q8_0", (5, 21, 64)), ("q4_0", (9, 16, 64)), ("q4_1", (1, 13, 96)), ("q4_k", (3, 13, 256)), ("q5_k", (11, 5, 256)),
    ("q6_k", (1, 7, 256))])
def test_bits_on_every_level(encoding: str, shape: tuple[int, int, int]) -> None:
    """The sum is what its operation says."""
    args = factors(encoding, *shape)
    wanted = tensor.QuantizedDot.ref(Encoded(encoding), *args)  # type: ignore[arg-type]
    for level in redzones.WIDTHS:
        found = redzones.compiled(lambda: product(encoding, *shape, args[1].shape[1]), level).call(args)[0]
        assert difference(found, wanted, "bits") is None, level


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_nothing_outside_of_the_buffers_is_touched(encoding: str, shape: tuple[int, int, int]) -> None:
    args = factors(encoding, *shape)
    wanted = tensor.QuantizedDot.ref(Encoded(encoding), *args)  # type: ignore[arg-type]

    def make() -> Module:
        return product(encoding, *shape, args[1].shape[1])

    assert difference(redzones.compiled(make, host()).call(args)[0], wanted, "bits") is None
    redzones.check(make, [args], redzones.WIDTHS, (1, 3))


class Encoded:
    def __init__(self, encoding: str) -> None:
        self.encoding = encoding


@pytest.mark.parametrize("encoding", ["q8_0", "q4_k", "q6_k"])
@pytest.mark.parametrize("rows", [2, 11])
def test_schedules_keep_the_bits(encoding: str, rows: int) -> None:
    """Interpreted, and in code, with the schedules of machines with and without instructions for bytes."""
    args = factors(encoding, rows, 21, 256)
    wanted = tensor.QuantizedDot.ref(Encoded(encoding), *args)  # type: ignore[arg-type]
    plain = Cpu(vector_bits=128, vector_registers=16, byte_pairs=False)
    for machine, by in ((plain, "none"), *((LEVELS[level].machine, by) for level, by in (
            ("x86-64-v2", "pairs"), ("x86-64-v4", "pairs"), ("cooperlake", "quads")))):
        assert isinstance(machine, Cpu)
        module = product(encoding, rows, 21, 256, args[1].shape[1])
        pipeline.lower(module, "loop", machine)
        assert [op.instruction for op in module.inside(loop.DotQuads)] == [by]
        assert bool(list(module.inside(loop.Scratch))) == (rows > machine.vector_registers // 4)
        assert any(True for _ in module.inside(loop.Prefetch))
        found = run_function(module, "main", args)[0]
        assert difference(found, wanted, "bits") is None, by
        if by == "none":
            entry = build(pipeline.resume(module, machine=machine), LEVELS["x86-64-v2"]).entry("main")
            assert difference(entry.call(args)[0], wanted, "bits") is None


@pytest.mark.parametrize("rows", [1, 7, 9, 40])
def test_a_number_of_rows_that_is_known_when_it_runs(rows: int) -> None:
    args = factors("q4_0", rows, 19, 96)
    f = mlc.compile(lambda x, w: quantized_linear(x, w, "q4_0"), dynamic=True)
    wanted = tensor.QuantizedDot.ref(Encoded("q4_0"), *args)  # type: ignore[arg-type]
    assert difference(f(*map(mlc.tensor, args)).numpy(), wanted, "bits") is None


def test_products_of_gpus_add_in_lanes() -> None:
    module = pipeline.lower(product("q8_0", 3, 5, 64, 68), "loop", GPU)
    assert any(module.inside(loop.DotPairs)) and not any(module.inside(loop.DotQuads))


@pytest.mark.parametrize("rows", [1, 11])
@pytest.mark.parametrize("encoding", ["q4_k", "q6_k"])
def test_unrolled_groups_of_a_block_pass_the_verifier(encoding: str, rows: int) -> None:
    bytes = ENCODINGS[encoding].bytes
    verify(pipeline.lower(product(encoding, rows, 2, 256, bytes), "loop", Cpu(vector_bits=512, byte_dot=True)))
