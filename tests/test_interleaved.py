"""Products of bf16 by AVX512_BF16: the instruction, and the code around it, which has the bits of the interpreter.

Numbers decide which code adds them: what is subnormal, or may become it, takes the one without the instruction.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlc
from mlc.backends.cpu.targets import LEVELS, host
from mlc.backends.executable import Entry, build
from mlc.dialects import loop
from mlc.dialects.loop import Kernel
from mlc.ir.parser import parse_module
from mlc.passes import pipeline
from mlc.passes.analysis import kernel_cost
from tests.arrays import Array, difference
from tests.low_programs import Program
from tests.public_case import thinned
from tests.test_vectorize import in_order

BF16 = np.dtype(ml_dtypes.bfloat16)
native = pytest.mark.skipif(not host().has("avx512bf16"), reason="no AVX512_BF16")

DOT = """func.func @dot(%c: memref<?x16xf32>, %a: memref<?x32xbf16>, %b: memref<?x32xbf16>, %n: index) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {
    %x = vector.load %c[%i, %0] : memref<?x16xf32>, vector<16xf32>
    %y = vector.load %a[%i, %0] : memref<?x32xbf16>, vector<32xbf16>
    %z = vector.load %b[%i, %0] : memref<?x32xbf16>, vector<32xbf16>
    %r = x86vector.avx512.dot %x, %y, %z : vector<32xbf16> -> vector<16xf32>
    vector.store %r, %c[%i, %0] : memref<?x16xf32>, vector<16xf32>
  }
  func.return
}"""


def numbers(kind: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Elements of bf16: of a range of exponents, or with corners among them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if kind == "small":                                  # whose products are around the least normal number
        x = x * 2.0 ** rng.integers(-70, -55, shape)
    elif kind == "cancelling":                             # normal products, whose sums may be subnormal
        x = np.copysign(1 + rng.random(shape), x) * 2.0**-62
    elif kind == "subnormal":
        x = np.where(rng.random(shape) < 0.1, x * 2.0**-130, x)
    elif kind == "few small":                            # in some blocks of terms, for some rows
        x[..., : shape[-1] // 2] *= 2.0**-100
    elif kind == "corners":
        corners = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-38, -1e-40], shape)
        x = np.where(rng.random(shape) < 0.02, corners, x)
    elif kind == "zeros":
        x = np.where(rng.random(shape) < 0.7, np.copysign(0.0, x), x)
    return x.astype(BF16)


KINDS = ("normal", "small", "cancelling", "subnormal", "few small", "corners", "zeros")


# -- the instruction --------------------------------------------------------------------------------------------------
def of_exponents(rng: np.random.Generator, shape: tuple[int, ...], low: int, high: int) -> Array:
    """Numbers of bf16 with exponent fields from a range, some of them zeros, infinities and NaN."""
    fields = rng.integers(low, high, shape)
    fields = np.where(rng.random(shape) < 0.05, rng.choice([0, 255], shape), fields)
    mantissas = np.where(rng.random(shape) < 0.2, 0, rng.integers(0, 128, shape))
    return np.asarray((rng.integers(0, 2, shape) << 15 | fields << 7 | mantissas).astype(np.uint16).view(BF16))


@native
@pytest.mark.parametrize("low, high", [(110, 140), (0, 255), (0, 3), (60, 70), (50, 70), (188, 192)])
def test_the_instruction_is_what_the_interpreter_says(low: int, high: int) -> None:
    rng, n = np.random.default_rng(low), 64
    factors = [of_exponents(rng, (n, 32), low, high) for _ in range(2)]
    sums = of_exponents(rng, (n, 16), max(0, 2 * low - 127), min(255, max(1, 2 * high - 127))).astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        sums[::2] *= (1 + rng.random((n // 2, 16))).astype(np.float32)
        Program(DOT, [LEVELS["cooperlake"]]).check("dot", [sums, *factors, n])


# -- products ---------------------------------------------------------------------------------------------------------
def text(m: int | str, n: int | str, k: int | str, turn_left: bool, turn_right: bool, batch: int = 0) -> str:
    """The product of a [m, k] and b [k, n], either given transposed, of batches if there are any."""
    of = [str(batch)] if batch else []
    left, right = (k, m) if turn_left else (m, k), (n, k) if turn_right else (k, n)
    x, y, z = (f"tensor<{'x'.join([*of, str(a), str(b)])}xbf16>" for a, b in (left, right, (m, n)))
    first = len(of)
    return f"""func.func @main(%x: {x}, %y: {y}) -> {z} {{
      %0 = tensor.dot_general %x, %y {{batch = {[[0, 0]] if of else []},
        contract = [[{first + int(not turn_left)}, {first + int(turn_right)}]]}} : ({x}, {y}) -> {z}
      func.return %0 : {z}
    }}"""


@cache
def product(*what: Any, level: str = "cooperlake") -> tuple[Entry, bool]:
    """The compiled product, and whether it is one of pairs."""
    machine = LEVELS[level].machine
    module = pipeline.lower(parse_module(text(*what)), "loop", machine=machine)
    pairs = any(next(kernel.inside(loop.ContractInterleaved), None) is not None for kernel in module.inside(Kernel))
    return build(pipeline.resume(module, machine=machine), LEVELS[level]).entry("main"), pairs


def check(what: tuple[Any, ...], m: int, n: int, k: int, kind: str = "normal", other: str = "normal") -> None:
    """The product has the bits of code without the instruction, and is what the order of the sum says."""
    _, _, _, turn_left, turn_right, *batch = what
    of = tuple(b for b in batch if b)
    a, b = numbers(kind, (*of, m, k), 1), numbers(other, (*of, k, n), 2)
    args = [np.swapaxes(a, -1, -2).copy() if turn_left else a, np.swapaxes(b, -1, -2).copy() if turn_right else b]
    (fast, pairs), (slow, other_pairs) = product(*what), product(*what, level="x86-64-v4")
    assert pairs and not other_pairs
    found, wanted = fast.call(args)[0], slow.call(args)[0]
    assert difference(found, wanted, "bits") is None
    if not of:
        with np.errstate(all="ignore"):
            sums = in_order(a.astype(np.float32), b.astype(np.float32))
            assert difference(found, sums.astype(BF16), "bits") is None


SHAPES = [(40, 64, 64), (64, 40, 7), (100, 130, 301), (250, 200, 513), (130, 65, 256), (33, 40, 3), (40, 33, 2)]
TRANSPOSES = [(False, False), (False, True), (True, False), (True, True)]


@native
@pytest.mark.parametrize("case", thinned(itertools.product(SHAPES, TRANSPOSES), 3))
def test_known_sizes(case: tuple[tuple[int, int, int], tuple[bool, bool]]) -> None:
    shape, transposes = case
    check((*shape, *transposes), *shape)


@native
@pytest.mark.parametrize("kinds", itertools.product(KINDS, KINDS))
def test_numbers(kinds: tuple[str, str]) -> None:
    check((70, 80, 300, False, False), 70, 80, 300, *kinds)


@native
@pytest.mark.parametrize("transposes", TRANSPOSES)
@pytest.mark.parametrize("shape", [(5, 6, 7), (0, 3, 2), (1, 1, 1), (2, 70, 0), (100, 130, 301), (64, 64, 255)])
def test_symbolic_sizes(shape: tuple[int, int, int], transposes: tuple[bool, bool]) -> None:
    for kind in ("normal", "small"):
        check(("M", "N", "K", *transposes), *shape, kind)


@native
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_batches(transposes: tuple[bool, bool]) -> None:
    check((50, 40, 300, *transposes, 3), 50, 40, 300, "few small")


def test_its_operations_are_counted() -> None:
    for k in (64, 512):
        module = pipeline.lower(parse_module(text(128, 64, k, False, False)), "loop", LEVELS["cooperlake"].machine)
        kernel = next(module.inside(Kernel))
        product, = kernel.inside(loop.ContractInterleaved)
        assert kernel_cost.operations(kernel, product) == 2 * 128 * 64 * k


# -- what is around them ----------------------------------------------------------------------------------------------
def layers(x: Any, w: Any, b: Any, v: Any) -> Any:
    return mlc.nn.functional.gelu(mlc.nn.functional.linear(x, w, b)) @ v.T


def attention(q: Any, k: Any, v: Any) -> Any:
    return mlc.softmax(q @ k.transpose(-1, -2), dim=-1) @ v


def rounded(x: Any, w: Any) -> Any:
    with mlc.autocast("cpu"):
        return mlc.nn.functional.relu(x) @ w.T


def concatenated(x: Any, y: Any, w: Any) -> Any:
    return mlc.cat([x, y], dim=1)[3:] @ w + 1


PROGRAMS: dict[Callable[..., Any], tuple[int, Any, list[tuple[int, ...]]]] = {
    layers: (2, mlc.bfloat16, [(37, 96), (200, 96), (200,), (70, 200)]),
    attention: (2, mlc.bfloat16, [(2, 3, 65, 32)] * 3),
    rounded: (1, mlc.float32, [(100, 96), (200, 96)]),
    concatenated: (1, mlc.bfloat16, [(60, 40), (60, 31), (71, 64)])}
"""Programs, with the number of their products, and the type and the shapes of their arguments."""


@native
@pytest.mark.parametrize("kind", ["normal", "few small"])
@pytest.mark.parametrize("f", PROGRAMS)
def test_programs(f: Callable[..., Any], kind: str) -> None:
    count, dtype, shapes = PROGRAMS[f]
    sizes = ["B", *shapes[0][1:]] if f is layers else [*shapes[0]]
    specs = [mlc.spec(*s, dtype=dtype) for s in (sizes, *shapes[1:])]
    tensors, found = mlc.lower(f, specs).to_text(), []
    for level, pairs in (("cooperlake", count), ("x86-64-v4", 0)):
        machine = LEVELS[level].machine
        module = pipeline.lower(parse_module(tensors), "loop", machine=machine)
        assert sum(len(list(kernel.inside(loop.ContractInterleaved))) for kernel in module.inside(Kernel)) == pairs
        entry = build(pipeline.resume(module, machine=machine), LEVELS[level]).entry("main")
        args = [numbers(kind, shape, i) for i, shape in enumerate(shapes)]
        found.append(entry.call([a.astype(np.float32) for a in args] if dtype == mlc.float32 else args)[0])
    assert difference(found[0], found[1], "bits") is None
