"""Products of bytes on the tiles of AMX: the instruction, and the code around it, which has the bits of any other.

Every level is interpreted everywhere; native code needs a processor with AMX, and Linux's permission to use it.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends.cpu.targets import LEVELS, host
from mlc.backends.executable import Entry, build
from mlc.dialects import loop
from mlc.frontend.functions.quantized import conv_integer
from mlc.ir.interp import run_function
from mlc.ir.parser import parse_module
from mlc.passes import pipeline
from tests.arrays import Array
from tests.low_programs import Program
from tests.public_case import thinned

native = pytest.mark.skipif(not host().has("amx-int8"), reason="no AMX-INT8, or no permission to use it")
MACHINE: Any = LEVELS["sapphirerapids"].machine
SIGNS = list(itertools.product(("i8", "ui8"), repeat=2))
TRANSPOSES = list(itertools.product((False, True), repeat=2))


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Bytes, with many of the least and the greatest ones."""
    info = np.iinfo("uint8" if dtype == "ui8" else "int8")
    rng = np.random.default_rng(seed)
    x = rng.integers(info.min, info.max, shape, endpoint=True)
    return np.where(rng.random(shape) < 0.2, rng.choice([info.min, info.max, 0], shape), x).astype(info.dtype)


def multiply(left: str, right: str) -> str:
    zext = [name for name, dtype in (("isZextLhs", left), ("isZextRhs", right)) if dtype == "ui8"]
    attributes = f" {{{', '.join(f'{name} = true' for name in zext)}}}" if zext else ""
    return f"""
func.func @multiply(%c: memref<?x16x16xi32>, %a: memref<?x16x64xi8>, %b: memref<?x16x64xi8>, %n: index) {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {{
    %x = amx.tile_load %c[%i, %0, %0] : memref<?x16x16xi32> into !amx.tile<16x16xi32>
    %y = amx.tile_load %a[%i, %0, %0] : memref<?x16x64xi8> into !amx.tile<16x64xi8>
    %z = amx.tile_load %b[%i, %0, %0] : memref<?x16x64xi8> into !amx.tile<16x64xi8>
    %r = amx.tile_muli %y, %z, %x{attributes} : !amx.tile<16x64xi8>, !amx.tile<16x64xi8>, !amx.tile<16x16xi32>
    amx.tile_store %c[%i, %0, %0], %r : memref<?x16x16xi32>, !amx.tile<16x16xi32>
  }}
  func.return
}}"""


@native
@pytest.mark.parametrize("signs", SIGNS)
def test_the_instruction_is_what_the_interpreter_says(signs: tuple[str, str]) -> None:
    n = 4
    sums = np.random.default_rng(0).choice([0, 1, -1, 2**31 - 1, -2**31], (n, 16, 16)).astype(np.int32)
    factors = [numbers(dtype, (n, 16, 64), i).view(np.int8) for i, dtype in enumerate(signs)]
    Program(multiply(*signs), [host()]).check("multiply", [sums, *factors, n])


# -- products ---------------------------------------------------------------------------------------------------------
def text(signs: tuple[str, str], m: int | str, n: int | str, k: int, turn_left: bool, turn_right: bool,
         batch: int = 0) -> str:
    """The product of a [m, k] and b [k, n], either given transposed, of batches if there are any."""
    of = [str(batch)] if batch else []
    left, right = (k, m) if turn_left else (m, k), (n, k) if turn_right else (k, n)
    x, y, z = ("x".join([*of, str(a), str(b)]) for a, b in (left, right, (m, n)))
    first = len(of)
    return f"""func.func @main(%x: tensor<{x}x{signs[0]}>, %y: tensor<{y}x{signs[1]}>) -> tensor<{z}xi32> {{
      %0 = tensor.cast %x : tensor<{x}x{signs[0]}> to tensor<{x}xi32>
      %1 = tensor.cast %y : tensor<{y}x{signs[1]}> to tensor<{y}xi32>
      %2 = tensor.dot_general %0, %1 {{batch = {[[0, 0]] if of else []},
        contract = [[{first + int(not turn_left)}, {first + int(turn_right)}]]}}
        : (tensor<{x}xi32>, tensor<{y}xi32>) -> tensor<{z}xi32>
      func.return %2 : tensor<{z}xi32>
    }}"""


def factors(what: tuple[Any, ...], m: int, n: int, k: int) -> tuple[list[Array], Array]:
    """The arguments of a product, and its result."""
    signs, _, _, _, turn_left, turn_right, *batch = what
    a, b = numbers(signs[0], (*batch, m, k), 1), numbers(signs[1], (*batch, k, n), 2)
    args = [np.swapaxes(a, -1, -2).copy() if turn_left else a, np.swapaxes(b, -1, -2).copy() if turn_right else b]
    return args, np.matmul(a.astype(np.int32), b.astype(np.int32))


@cache
def product(*what: Any) -> tuple[Entry, bool]:
    """The compiled product, and whether it is on tiles."""
    module = pipeline.lower(parse_module(text(*what)), "loop", machine=host().machine)
    on_tiles = any(module.inside(loop.ContractPanels))
    return build(pipeline.resume(module, machine=host().machine), host()).entry("main"), on_tiles


def check(what: tuple[Any, ...], m: int, n: int, k: int, on_tiles: bool = True) -> None:
    args, wanted = factors(what, m, n, k)
    entry, found = product(*what)
    assert found == on_tiles
    np.testing.assert_array_equal(entry.call(args)[0], wanted, strict=True)


SHAPES = [(40, 64, 64), (64, 40, 128), (100, 130, 576), (33, 40, 64), (5, 33, 64), (3, 70, 64), (1, 70, 128),
          (17, 16, 3200), (300, 200, 64), (40, 33, 197), (1, 33, 40), (64, 64, 48), (64, 64, 47), (20, 30, 1300)]


@native
@pytest.mark.parametrize("case", thinned(itertools.product(SHAPES, TRANSPOSES, SIGNS), 6))
def test_known_sizes(case: tuple[tuple[int, int, int], tuple[bool, bool], tuple[str, str]]) -> None:
    shape, transposes, signs = case
    check((signs, *shape, *transposes), *shape, on_tiles=shape[0] >= 4 and -shape[2] % 64 <= shape[2] // 3)


@native
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_symbolic_sizes(transposes: tuple[bool, bool]) -> None:
    for m, n in [(5, 6), (0, 3), (1, 1), (2, 70), (100, 130), (64, 64)]:
        check((("ui8", "i8"), "M", "N", 64, *transposes), m, n, 64)


@native
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_batches(transposes: tuple[bool, bool]) -> None:
    check((("i8", "ui8"), 50, 40, 320, *transposes, 3), 50, 40, 320)


def multiplied(x: Any, y: Any) -> Any:
    return x.int() @ y.int()


@native
@pytest.mark.parametrize("shape", [(40, 64, 64), (5, 33, 128), (17, 16, 3200)])
def test_checked_code_knows_tiles(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    x, y = (mlc.tensor(v) for v in (numbers("ui8", (m, k), 1), numbers("i8", (k, n), 2)))
    f = mlc.compile(multiplied, checked=True)
    np.testing.assert_array_equal(np.asarray(f(x, y)), np.asarray(multiplied(x, y)), strict=True)


@native
@pytest.mark.parametrize("rows", [1, 5, 70])
@pytest.mark.parametrize("transposed", [False, True])
def test_constant_factors_are_read_where_they_are(rows: int, transposed: bool) -> None:
    x = mlc.tensor(numbers("ui8", (rows, 320), 1))
    w = mlc.tensor(numbers("i8", (100, 320) if transposed else (320, 100), 2))

    def f(x: Any) -> Any:
        return multiplied(x, w.T if transposed else w)

    compiled = mlc.compile(f, freeze=True)
    np.testing.assert_array_equal(np.asarray(compiled(x)), np.asarray(f(x)), strict=True)
    products = list(mlc.lower(compiled, [x], level="loop").module.inside(loop.ContractPanels))
    assert [type(op.columns.op) for op in products] == [loop.Words] * (rows >= 4)


@native
def test_a_factor_may_be_multiplied_by_itself() -> None:
    x = mlc.tensor(numbers("i8", (70, 64)))                # the instruction may not be given one register twice
    found = mlc.compile(lambda x: multiplied(x, x.T))(x)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(multiplied(x, x.T)), strict=True)


@pytest.mark.parametrize("level", pipeline.LEVELS)
@pytest.mark.parametrize("what", [
    (("ui8", "i8"), 20, 33, 64, False, True), (("i8", "i8"), 18, 17, 128, True, False),
    (("ui8", "ui8"), 5, 20, 3200, False, False), (("i8", "ui8"), 20, 17, 50, False, False, 2)])
def test_every_level_has_the_same_bits(what: tuple[Any, ...], level: str) -> None:
    module = parse_module(text(*what))
    pipeline.lower(module, level, machine=MACHINE)
    args, wanted = factors(what, *what[1:4])
    np.testing.assert_array_equal(run_function(module, "main", args)[0], wanted, strict=True)


def panels(machine: Any, rows: int | str) -> int:
    """How many products with so many rows are on tiles."""
    module = pipeline.lower(parse_module(text(("ui8", "i8"), rows, 64, 64, False, False)), "loop", machine=machine)
    return sum(1 for _ in module.inside(loop.ContractPanels))


def test_tiles_are_those_of_the_machine() -> None:
    assert {name: panels(target.machine, 40) for name, target in LEVELS.items()} == {
        **dict.fromkeys(LEVELS, 0), "sapphirerapids": 1}


def test_tiles_are_for_more_than_a_few_rows() -> None:
    assert [panels(MACHINE, rows) for rows in (3, 4, "M")] == [0, 1, 1]


# -- convolutions -----------------------------------------------------------------------------------------------------
IMAGES = [(1, 64, 32, 14, 14, 3, 1, 1), (2, 64, 40, 7, 7, 3, 1, 1), (1, 128, 32, 28, 28, 3, 2, 1),
          (1, 192, 64, 9, 30, 1, 1, 0), (1, 256, 64, 15, 7, 3, 1, 1), (1, 64, 32, 14, 14, 1, 2, 0),
          (1, 3, 64, 40, 38, 7, 2, 3), (2, 3, 32, 17, 17, 3, 2, 1), (1, 24, 32, 9, 9, 3, 1, 1),
          (1, 160, 64, 7, 7, 1, 1, 0), (1, 32, 32, 7, 7, 3, 1, 1), (1, 96, 32, 12, 12, 3, 1, 1),
          (1, 64, 32, 3, 3, 3, 1, 1)]
"""Samples, channels, those of the result, height, width, size of a window, stride and padding."""


def convolution(image: tuple[int, ...], after: bool) -> tuple[Callable[[Any, Any], Any], list[Array], Array]:
    """A function of an image and of filters, arguments, and its result. After another convolution, an image has its
    channels last."""
    samples, channels, out, *sides, size, stride, padding = image
    x, w = numbers("ui8", (samples, channels, *sides), 1), numbers("i8", (out, channels, size, size), 2)
    same = mlc.tensor(np.eye(channels, dtype=np.int8).reshape(channels, channels, 1, 1))

    def f(x: Any, w: Any) -> Any:
        zero = mlc.tensor(np.uint8(3))
        if after:
            x = mlc.clamp(conv_integer(x, same, zero), 0, 255).byte()
        return conv_integer(x, w, zero, stride=stride, padding=padding)

    around = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=3)
    windows = np.lib.stride_tricks.sliding_window_view(around, (size, size), (2, 3))[:, :, ::stride, ::stride]
    return f, [x, w], np.einsum("nchwij,ocij->nohw", windows.astype(np.int32), w.astype(np.int32))


@native
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("image", IMAGES)
def test_convolutions(image: tuple[int, ...], after: bool) -> None:
    f, (x, w), wanted = convolution(image, after)
    weights = mlc.tensor(w)
    compiled = mlc.compile(lambda x: f(x, weights), freeze=True)
    np.testing.assert_array_equal(np.asarray(compiled(mlc.tensor(x))), wanted, strict=True)
    module = mlc.lower(compiled, [mlc.tensor(x)], level="loop").module
    _, channels, *_, size, _, _ = image
    terms = [channels * size**2] + [channels] * after
    assert len(list(module.inside(loop.ContractPanels))) == sum(-n % 64 <= n // 3 for n in terms)


WINDOWS = """func.func @main(%x: tensor<14x14x{0}xui8>, %w: tensor<40x3x3x{0}xi8>) -> tensor<40x12x12xi32> {{
  %0 = tensor.windows %x {{axis = 0, size = 3}} : (tensor<14x14x{0}xui8>) -> tensor<12x3x14x{0}xui8>
  %1 = tensor.windows %0 {{axis = 2, size = 3}} : (tensor<12x3x14x{0}xui8>) -> tensor<12x3x12x3x{0}xui8>
  %2 = tensor.cast %1 : tensor<12x3x12x3x{0}xui8> to tensor<12x3x12x3x{0}xi32>
  %3 = tensor.cast %w : tensor<40x3x3x{0}xi8> to tensor<40x3x3x{0}xi32>
  %4 = tensor.dot_general %3, %2 {{batch = [], contract = [[1, 1], [2, 3], [3, 4]]}}
    : (tensor<40x3x3x{0}xi32>, tensor<12x3x12x3x{0}xi32>) -> tensor<40x12x12xi32>
  func.return %4 : tensor<40x12x12xi32>
}}"""


@pytest.mark.parametrize("level", ["cascadelake", "sapphirerapids"])
@pytest.mark.parametrize("channels", [16, 32, 64, 96])
def test_no_more_of_a_row_of_windows_is_read_than_it_has(channels: int, level: str) -> None:
    """A row of three elements of 32 channels has 96 bytes, one and a half times as many as are read at a time."""
    if not host().runs(LEVELS[level]):
        pytest.skip(f"no {level}")
    x, w = numbers("ui8", (14, 14, channels), 1), numbers("i8", (40, 3, 3, channels), 2)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int32), (3, 3), (0, 1))
    module = pipeline.lower(parse_module(WINDOWS.format(channels)), machine=LEVELS[level].machine)
    found = build(module, LEVELS[level]).entry("main").call([x, w])[0]
    np.testing.assert_array_equal(found, np.einsum("yxcij,oijc->oyx", windows, w.astype(np.int32)), strict=True)


@native
@pytest.mark.parametrize("size, stride", [(3, 1), (1, 1), (3, 2), (1, 2)])
def test_convolutions_between_others_pack_nothing(size: int, stride: int) -> None:
    """Weights are in panels, and an image has its channels last."""
    model = mlc.nn.Sequential(mlc.nn.Conv2d(64, 64, 3, padding=1), mlc.nn.ReLU(),
                              mlc.nn.Conv2d(64, 64, size, stride, size // 2), mlc.nn.ReLU()).eval()
    x = mlc.tensor(np.random.default_rng(0).standard_normal((1, 64, 14, 14)).astype(np.float32))
    quantized = mlc.quantization.quantize(model, [(x,)])
    lowered = mlc.lower(mlc.compile(quantized, freeze=True), [x], level="loop")
    *_, product = lowered.module.inside(loop.ContractPanels)
    assert [type(v.op) for v in (product.rows, product.columns)] == [loop.Words, loop.Words]
    assert (product.pitch > 0) == ((size, stride) != (1, 1))


@pytest.mark.parametrize(("keep", "kept"), [((), [False, False]), (("0",), [True, False]), (("",), [True, True])])
def test_layers_that_are_kept(keep: tuple[str, ...], kept: list[bool]) -> None:
    linear = mlc.nn.Linear
    small: Any = mlc.quantization.quantize(mlc.nn.Sequential(linear(4, 4), mlc.nn.Sequential(linear(4, 4))),
                                           [mlc.ones(8, 4)], keep=keep)
    assert [type(x) is linear for x in (small[0], small[1][0])] == kept
