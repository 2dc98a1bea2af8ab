"""Products of bf16 on the tiles of AMX: the instruction, and the code around it, which has the bits of the interpreter.

Every level is interpreted everywhere; native code needs a processor with AMX, and Linux's permission to use it.
"""
from __future__ import annotations

import itertools
from functools import cache
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlc
from mlc.backends.cpu.targets import LEVELS, host
from mlc.backends.executable import Entry, build
from mlc.dialects import loop
from mlc.dialects.loop import Kernel
from mlc.dialects.tensor.orders import dot_in_order
from mlc.ir.interp import run_function
from mlc.ir.parser import parse_module
from mlc.passes import pipeline
from mlc.passes.analysis import kernel_cost
from mlc.passes.fix_numerics import sizes_of_rows
from tests.arrays import Array, difference
from tests.low_programs import Program
from tests.public_case import thinned
from tests.test_interleaved import KINDS, TRANSPOSES, numbers, of_exponents, text

native = pytest.mark.skipif(not host().has("amx-bf16"), reason="no AMX-BF16, or no permission to use it")
MACHINE: Any = LEVELS["sapphirerapids"].machine

MULTIPLY = """
func.func @multiply(%c: memref<?x16x16xf32>, %a: memref<?x16x32xbf16>, %b: memref<?x16x32xbf16>, %n: index) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {
    %x = amx.tile_load %c[%i, %0, %0] : memref<?x16x16xf32> into !amx.tile<16x16xf32>
    %y = amx.tile_load %a[%i, %0, %0] : memref<?x16x32xbf16> into !amx.tile<16x32xbf16>
    %z = amx.tile_load %b[%i, %0, %0] : memref<?x16x32xbf16> into !amx.tile<16x32xbf16>
    %r = amx.tile_mulf %y, %z, %x : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
    amx.tile_store %c[%i, %0, %0], %r : memref<?x16x16xf32>, !amx.tile<16x16xf32>
  }
  func.return
}"""


@native
@pytest.mark.parametrize("low, high", [(110, 140), (0, 255), (0, 3), (60, 70), (50, 70), (188, 192)])
def test_the_instruction_is_what_the_interpreter_says(low: int, high: int) -> None:
    rng, n = np.random.default_rng(low), 4
    factors = [of_exponents(rng, (n, 16, 32), low, high) for _ in range(2)]
    sums = of_exponents(rng, (n, 16, 16), max(0, 2 * low - 127), min(255, max(1, 2 * high - 127))).astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        sums[::2] *= (1 + rng.random((n // 2, 16, 16))).astype(np.float32)
        Program(MULTIPLY, [host()]).check("multiply", [sums, *factors, n])


# -- products ---------------------------------------------------------------------------------------------------------
def wanted(a: Array, b: Array) -> Array:
    """The product in the order of tiles."""
    rows, columns = (x.astype(np.float32).reshape(prod(a.shape[:-2]), *x.shape[-2:])
                     for x in (a, np.swapaxes(b, -1, -2)))
    with np.errstate(all="ignore"):
        return dot_in_order(rows, columns, "pairs<32>").astype(ml_dtypes.bfloat16).reshape(*a.shape[:-1], b.shape[-1])


@cache
def product(*what: Any) -> Entry:
    """The compiled product."""
    module = pipeline.lower(parse_module(text(*what)), "loop", machine=host().machine)
    return build(pipeline.resume(module, machine=host().machine), host()).entry("main")


def check(what: tuple[Any, ...], m: int, n: int, k: int, kind: str = "normal", other: str = "normal") -> None:
    """The native product has the bits that the order says."""
    _, _, _, turn_left, turn_right, *batch = what
    a, b = numbers(kind, (*batch, m, k), 1), numbers(other, (*batch, k, n), 2)
    expected = wanted(*(np.pad(x, [(0, -k % 32 * (i == axis)) for i in range(x.ndim)])
                        for x, axis in ((a, a.ndim - 1), (b, b.ndim - 2))))
    args = [np.swapaxes(a, -1, -2).copy() if turn_left else a, np.swapaxes(b, -1, -2).copy() if turn_right else b]
    assert difference(product(*what).call(args)[0], expected, "bits") is None


SHAPES = [(40, 64, 64), (64, 40, 32), (100, 130, 288), (33, 40, 32), (40, 33, 64), (5, 33, 64), (3, 70, 64),
          (1, 70, 64), (17, 16, 1600), (300, 200, 64), (40, 33, 197), (1, 33, 40), (64, 64, 16)]


@native
@pytest.mark.parametrize("case", thinned(itertools.product(SHAPES, TRANSPOSES), 3))
def test_known_sizes(case: tuple[tuple[int, int, int], tuple[bool, bool]]) -> None:
    shape, transposes = case
    check((*shape, *transposes), *shape)


@native
@pytest.mark.parametrize("shape", [(5, 64, 64), (16, 33, 320), (33, 40, 192), (300, 64, 96), (40, 17, 1600)])
def test_rows_that_lie_across_memory_are_turned(shape: tuple[int, int, int]) -> None:
    check((*shape, True, False), *shape)
    module = pipeline.lower(parse_module(text(*shape, True, False)), "loop", machine=host().machine)
    sizes = [around.step for around in module.inside(loop.For) if around.dim == 0 and any(around.inside(loop.Load))]
    assert 16 in sizes                                       # squares that are transposed in registers


@native
def test_very_many_terms_are_added_in_slices() -> None:
    check((16, 33, 1 << 16, False, False), 16, 33, 1 << 16)            # all of a panel's do not fit onto the stack


@native
@pytest.mark.parametrize("kind", KINDS)
def test_numbers(kind: str) -> None:
    check((70, 80, 320, False, False), 70, 80, 320, kind, "normal")
    check((70, 80, 320, False, False), 70, 80, 320, "small", kind)


@native
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_symbolic_sizes(transposes: tuple[bool, bool]) -> None:
    for m, n in [(5, 6), (0, 3), (1, 1), (2, 70), (100, 130), (64, 64)]:
        check(("M", "N", 64, *transposes), m, n, 64)


@native
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_batches(transposes: tuple[bool, bool]) -> None:
    check((50, 40, 320, *transposes, 3), 50, 40, 320)


@native
def test_a_factor_may_be_multiplied_by_itself() -> None:
    x = numbers("normal", (70, 64), 1)                   # the instruction may not be given one register twice
    found = mlc.compile(lambda x: x @ x.T)(mlc.tensor(x))
    assert difference(np.asarray(found), wanted(x, x.T), "bits") is None


@native
@pytest.mark.parametrize("rows", [1, 5, 70])
@pytest.mark.parametrize("transposed", [False, True])
def test_constant_factors_are_read_where_they_are(rows: int, transposed: bool) -> None:
    x, w = numbers("normal", (rows, 320), 1), numbers("normal", (320, 100), 2)
    weights = mlc.tensor(w.T.copy() if transposed else w)
    f = mlc.compile(lambda x: x @ (weights.T if transposed else weights), freeze=True)
    assert difference(np.asarray(f(mlc.tensor(x))), wanted(x, w), "bits") is None


@native
@pytest.mark.parametrize("shape", [(40, 64, 64), (5, 33, 64), (17, 16, 1600)])
def test_checked_code_knows_tiles(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    x, y = numbers("normal", (m, k), 1), numbers("normal", (k, n), 2)
    found = mlc.compile(lambda x, y: x @ y, checked=True)(mlc.tensor(x), mlc.tensor(y))
    assert difference(np.asarray(found), wanted(x, y), "bits") is None


@native
@pytest.mark.parametrize("m, k, shared", [(64, 2048, True), (16, 64, False)])
def test_products_of_enough_work_are_shared_out(m: int, k: int, shared: bool) -> None:
    x, w = (mlc.tensor(numbers("normal", shape, 1)) for shape in ((m, k), (k, 512)))
    lowered = mlc.lower(mlc.compile(lambda x: x @ w, freeze=True), [x], level="loop")
    product = next(lowered.module.inside(loop.ContractPanels)).enclosing(Kernel)
    assert (product.schedule.thread_dims > 0) == shared


# -- convolutions -----------------------------------------------------------------------------------------------------
IMAGES = [(1, 64, 32, 14, 14, 3, 1, 1), (2, 32, 40, 7, 7, 3, 1, 1), (1, 64, 32, 28, 28, 3, 2, 1),
          (1, 96, 64, 9, 30, 3, 1, 1), (1, 32, 32, 20, 56, 5, 1, 2), (1, 256, 64, 15, 7, 3, 1, 1),
          (1, 64, 32, 14, 14, 1, 2, 0), (1, 48, 32, 8, 8, 3, 1, 1), (3, 32, 32, 1, 40, 3, 1, 1),
          (1, 64, 32, 3, 3, 3, 1, 1), (1, 64, 32, 17, 19, 2, 2, 0), (1, 3, 64, 40, 38, 7, 2, 3),
          (2, 3, 32, 17, 17, 3, 2, 1), (1, 1, 32, 28, 28, 5, 1, 0),
          (1, 24, 32, 9, 9, 3, 1, 1), (1, 40, 32, 9, 9, 3, 1, 0)]
"""Samples, channels, those of the result, height, width, size of a window, stride and padding."""


def check_convolution(image: tuple[int, ...], after: bool, checked: bool = False) -> None:
    """A window's terms are added row by row, each channel after the other: those of a point together. Rows of blocks
    that are not whole are longer, and have more channels, of zeros. The image that another convolution gives has its
    channels last, and its rows are read where they are."""
    samples, channels, out, *sides, size, stride, padding = image
    x, w = numbers("normal", (samples, channels, *sides), 1), numbers("normal", (out, channels, size, size), 2)
    weights, same = mlc.tensor(w), mlc.tensor(np.eye(channels, dtype=w.dtype).reshape(channels, channels, 1, 1))

    def convolution(x: Any) -> Any:
        x = mlc.nn.functional.conv2d(x, same) if after else x
        return mlc.relu(mlc.nn.functional.conv2d(x, weights, stride=stride, padding=padding))

    f = mlc.compile(convolution, freeze=True, checked=checked)
    longer, wider = sizes_of_rows(size, channels)
    more, zeros = longer - size, (0, wider - channels)
    around = np.pad(x, ((0, 0), zeros, (padding, padding), (padding, padding + more)))
    windows = np.lib.stride_tricks.sliding_window_view(around, (size, longer), (2, 3))[:, :, ::stride, ::stride]
    rows = windows.transpose(0, 2, 3, 4, 5, 1)
    w = np.pad(w, ((0, 0), zeros, (0, 0), (0, more)))
    product = wanted(rows.reshape(-1, size * longer * wider), w.transpose(2, 3, 1, 0).reshape(-1, out))
    expected = np.moveaxis(product.reshape(*rows.shape[:3], out), -1, 1)
    assert difference(np.asarray(f(mlc.tensor(x))), np.maximum(expected, 0), "bits") is None


@native
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("image", IMAGES)
def test_convolutions(image: tuple[int, ...], after: bool) -> None:
    check_convolution(image, after)


@native
@pytest.mark.parametrize("image", thinned(IMAGES, 4))
def test_checked_convolutions(image: tuple[int, ...]) -> None:
    check_convolution(image, after=True, checked=True)


@native
@pytest.mark.parametrize("shape", [(16, 1, 1, 1), (16, 3, 1, 3), (3, 3, 3), (3,)])
def test_weights_may_be_expanded(shape: tuple[int, ...]) -> None:
    """Axes that are padded are those of the convolution, of which the weights may have one element."""
    x, w = mlc.tensor(numbers("normal", (1, 3, 40, 40), 1)), mlc.tensor(numbers("normal", shape, 2))
    f = mlc.compile(lambda x, w: mlc.nn.functional.conv2d(x, w.expand(16, 3, 3, 3), padding=1))
    g = mlc.compile(lambda x, w: mlc.nn.functional.conv2d(x, w, padding=1))
    assert difference(np.asarray(f(x, w)), np.asarray(g(x, w.expand(16, 3, 3, 3).clone())), "bits") is None


@native
@pytest.mark.parametrize("width, pitch", [(30, 32), (510, 512), (600, 0)])
def test_lines_of_an_image_are_multiplied_as_one_if_they_are_short(width: int, pitch: int) -> None:
    first, second = (mlc.tensor(numbers("normal", (32, 32, n, n), i)) for i, n in enumerate((1, 3)))

    def f(x: Any) -> Any:
        return mlc.nn.functional.conv2d(mlc.nn.functional.conv2d(x, first), second, padding=1)

    x = mlc.tensor(numbers("normal", (1, 32, 2, width), 3))
    lowered = mlc.lower(mlc.compile(f, freeze=True), [x], level="loop")
    *_, product = lowered.module.inside(loop.ContractPanels)
    assert isinstance(product.rows.op, loop.Words) and product.pitch == pitch


@native
@pytest.mark.parametrize("size, stride", [(3, 1), (1, 1), (3, 2), (1, 2)])
def test_convolutions_between_others_pack_nothing(size: int, stride: int) -> None:
    """Weights are in panels, and an image has its channels last."""
    first, second = (mlc.tensor(numbers("normal", (64, 64, n, n), i)) for i, n in enumerate((3, size)))

    def f(x: Any) -> Any:
        y = mlc.relu(mlc.nn.functional.conv2d(x, first, padding=1))
        return mlc.relu(mlc.nn.functional.conv2d(y, second, stride=stride, padding=size // 2))

    x = mlc.tensor(numbers("normal", (1, 64, 14, 14), 3))
    lowered = mlc.lower(mlc.compile(f, freeze=True), [x], level="loop")
    *_, product = lowered.module.inside(loop.ContractPanels)
    assert [type(v.op) for v in (product.rows, product.columns)] == [loop.Words, loop.Words]


@native
@pytest.mark.parametrize("rows, columns, terms", [
    (40, 1024, 512), (5, 1040, 512), (190, 1024, 512), (300, 1024, 544), (1100, 512, 1024), (40, 512, 512)])
def test_large_panels_are_prefetched(rows: int, columns: int, terms: int) -> None:
    """The lines of panels that are next, also those beyond the last one."""
    x, w = numbers("normal", (rows, terms), 1), numbers("normal", (columns, terms), 2)
    model = mlc.nn.Linear(terms, columns, bias=False)
    model.weight = mlc.nn.Parameter(mlc.tensor(w))
    f = mlc.compile(model, freeze=True)
    product, = mlc.lower(f, [mlc.tensor(x)], level="loop").module.inside(loop.ContractPanels)
    assert product.prefetch is (columns * terms >= 1 << 19)
    lines = sum(op.name == "memref.prefetch" for op in mlc.lower(f, [mlc.tensor(x)], level="low").module.walk())
    turns = -(-min(rows, product.enclosing(Kernel).schedule.tile[0]) // 32)
    assert lines * turns >= 2 * 16 * product.prefetch                                      # of two tiles of words
    assert difference(np.asarray(f(mlc.tensor(x))), wanted(x, w.T), "bits") is None


def rounded(shapes: list[tuple[int, ...]], f: Any) -> tuple[int, list[bool]]:
    """How many kernels only round, and for each product whether its rows are read where they are, of f under autocast,
    with factors of these shapes."""
    def narrow(*args: Any) -> Any:
        with mlc.autocast("cpu", dtype=mlc.bfloat16):
            return f(*args)

    args = [mlc.tensor(np.ones(shape, np.float32)) for shape in shapes]
    module = pipeline.lower(mlc.lower(mlc.compile(narrow), args, level="trace").module, "loop", machine=MACHINE)
    calls = [op.attrs["callee"] for op in module.walk() if op.name == "func.call"]
    return sum(str(name).startswith("kernel_cast") and "dot" not in str(name) and "pack" not in str(name)
               for name in calls), [isinstance(op.rows.op, loop.Words) for op in module.inside(loop.ContractPanels)]


def test_rows_are_rounded_once_for_many_columns() -> None:
    linear = mlc.nn.functional.linear
    assert rounded([(40, 64), (64, 64)], linear) == (0, [False])
    assert rounded([(40, 64), (1024, 64)], linear) == (1, [True])
    assert rounded([(40, 64), *[(1024, 64)] * 3], lambda x, *w: [linear(x, v) for v in w]) == (1, [True])


@native
@pytest.mark.parametrize("samples, terms, zeros", [
    (4, 197, 27), (3, 24, 8), (4, 14, 2), (3, 14, 0), (4, 7, 0), (2, 64, 0)])
def test_terms_along_two_axes_are_padded_along_the_last(samples: int, terms: int, zeros: int) -> None:
    """As those of the gradient of a weight, unless there were many zeros: to whole blocks, or to halves of them."""
    a, b = (numbers("normal", (samples, terms, n), n) for n in (40, 48))
    f = mlc.compile(lambda a, b: mlc.einsum("stm,stn->mn", a, b))
    args = [mlc.tensor(a), mlc.tensor(b)]
    count = len(list(mlc.lower(f, args, level="loop").module.inside(loop.ContractPanels)))
    assert count == (samples * (terms + zeros) % 32 == 0)
    if count:
        left, right = (np.pad(x, [(0, 0), (0, zeros), (0, 0)]).reshape(-1, x.shape[-1]) for x in (a, b))
        assert difference(np.asarray(f(*args)), wanted(left.T.copy(), right), "bits") is None


@pytest.mark.parametrize("shape", [("S", 128, 256), ("S", 197, 256), (0, 197, 256), (4, 197, 256)])
def test_tensor_cores_too_take_terms_along_two_axes(shape: tuple[int | str, ...]) -> None:
    """Of a known number: other products have the order of all."""
    f = mlc.compile(lambda a, b: mlc.einsum("stm,stn->mn", a, b), target="cuda:sm_90")
    text = str(mlc.lower(f, [mlc.spec(*shape, dtype="bfloat16")] * 2, level="loop"))
    assert ("loop.mma" in text) == (shape[0] == 4)


def test_what_is_no_rows_is_rounded_where_it_is_packed() -> None:
    assert rounded([(4096, 64), (64, 64)], mlc.nn.functional.linear) == (0, [False])
    assert rounded([(64, 4096), (64, 64)], lambda x, w: x.T @ w) == (0, [False])
    casts, _ = rounded([(2, 64, 32, 32), (64, 64, 3, 3)], mlc.nn.functional.conv2d)
    assert casts == 0


# -- everywhere -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", pipeline.LEVELS)
def test_every_level_has_the_same_bits(level: str) -> None:
    m, n, k = 20, 33, 64
    module = parse_module(text(m, n, k, False, True))
    pipeline.lower(module, level, machine=MACHINE)
    a, b = numbers("few small", (m, k), 1), numbers("normal", (k, n), 2)
    found, = run_function(module, "main", [a, b.T.copy()])
    assert difference(found, wanted(a, b), "bits") is None


def panels(machine: Any, rows: int | str) -> int:
    """How many products with so many rows are on tiles."""
    module = pipeline.lower(parse_module(text(rows, 64, 64, False, False)), "loop", machine=machine)
    return sum(len(list(kernel.inside(loop.ContractPanels))) for kernel in module.inside(Kernel))


@pytest.mark.parametrize("terms", [64, 3200])
def test_operations_are_counted(terms: int) -> None:
    module = pipeline.lower(parse_module(text(128, 64, terms, False, False)), "loop", machine=MACHINE)
    kernel = next(module.inside(Kernel))
    product, = kernel.inside(loop.ContractPanels)
    assert kernel_cost.operations(kernel, product) == 2 * 128 * 64 * terms


def test_tiles_are_those_of_the_machine() -> None:
    assert {name: panels(target.machine, 40) for name, target in LEVELS.items()} == {
        **dict.fromkeys(LEVELS, 0), "sapphirerapids": 1}


def test_tiles_are_for_more_than_a_few_rows() -> None:
    assert [panels(MACHINE, rows) for rows in (3, 4, "M")] == [0, 1, 1]
