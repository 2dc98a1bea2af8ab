"""Products of all kinds of shapes give the bits that their order of summation fixes, in any schedule."""
from __future__ import annotations

import functools
import itertools
import re
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.backends.executable import build
from mlc.dialects.loop import Kernel, Store
from mlc.dialects.tensor.orders import dot_in_order
from mlc.ir.diag import BackendError
from mlc.ir.machine import CPU, GPU, Model, x86_64
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments, Pipeline
from mlc.passes import pipeline
from mlc.passes.fix_numerics import TERMS
from mlc.passes.schedule.contraction_cpu import Shape, best_shape
from tests.arrays import difference
from tests.public_case import thinned

Array = np.ndarray[Any, Any]


def in_order(a: Array, b: Array) -> Array:
    """The product, each element summed up in ascending order, TERMS terms at a time."""
    return np.asarray(dot_in_order(a[None], b.T[None], f"blocks<{TERMS}>")[0])


@functools.cache
def product(m: int | str, n: int | str, k: int | str, turn_left: bool, turn_right: bool, bits: int = 512,
            dtype: str = "f32") -> tuple[Any, tuple[str, ...]]:
    """The compiled product of a [m, k] and b [k, n], either given transposed, and the steps of its schedule."""
    left, right = (k, m) if turn_left else (m, k), (n, k) if turn_right else (k, n)
    x, y, z = (f"tensor<{a}x{b}x{dtype}>" for a, b in (left, right, (m, n)))
    module = parse_module(f"""func.func @main(%x: {x}, %y: {y}) -> {z} {{
      %0 = tensor.dot_general %x, %y {{batch = [], contract = [[{int(not turn_left)}, {int(turn_right)}]]}}
        : ({x}, {y}) -> {z}
      func.return %0 : {z}
    }}""")
    pipeline.lower(module, "loop", machine=x86_64(bits))
    schedule = next(kernel.schedule.steps for kernel in module.inside(Kernel) if kernel.label == "dot_general")
    return build(pipeline.resume(module, machine=x86_64(bits))).entry("main"), schedule


def check(entry: Any, m: int, n: int, k: int, turn_left: bool, turn_right: bool, dtype: str = "f4") -> None:
    rng = np.random.default_rng(m + n + k)
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    found, = entry.call([a.T.copy() if turn_left else a, b.T.copy() if turn_right else b])
    assert difference(found, in_order(a, b), "bits") is None


TRANSPOSES = [(False, False), (False, True), (True, False), (True, True)]


SHAPES = [(1, 100, 33), (1, 2000, 40), (3, 70, 1030), (7, 5, 3), (37, 70, 21), (64, 64, 64), (100, 130, 64),
          (90, 200, 300), (130, 65, 801), (250, 9, 20)]


@pytest.mark.parametrize("shape, transposes", [
    pytest.param(*case, marks=[pytest.mark.slow] if i % 3 else [])
    for i, case in enumerate(itertools.product(SHAPES, TRANSPOSES))])
def test_known_sizes(shape: tuple[int, int, int], transposes: tuple[bool, bool]) -> None:
    check(product(*shape, *transposes)[0], *shape, *transposes)


@pytest.mark.parametrize("transposes", thinned(TRANSPOSES, 3))
def test_unknown_sizes(transposes: tuple[bool, bool]) -> None:
    """One function for all sizes; among them none, one of each, and more than a part of the sum."""
    entry, schedule = product("M", "N", "K", *transposes)
    assert "spill_accumulator()" in schedule
    for shape in ((0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 1, 1), (17, 70, 513), (250, 33, 5), (6, 129, 1025)):
        check(entry, *shape, *transposes)


@pytest.mark.parametrize("transposes", TRANSPOSES)
@pytest.mark.parametrize(("bits", "dtype"), [(256, "f32"), (128, "f32"), (512, "f64"), (256, "f64")])
def test_other_registers(bits: int, dtype: str, transposes: tuple[bool, bool]) -> None:
    check(product(45, 37, 50, *transposes, bits, dtype)[0], 45, 37, 50, *transposes,
          dtype.replace("f32", "f4")[:2].replace(
        "f6", "f8"))


@pytest.mark.parametrize(("shape", "transposes", "step"), [
    ((300, 300, 300), (False, False), "pack(side=rhs, vector=1)"),            # lines of memory far apart
    ((300, 300, 300), (False, True), "pack(side=rhs, vector=1, size=16)"),    # across memory: transposed
    ((300, 300, 300), (True, False), "pack(side=lhs, vector=0, size=16)"),    # down the columns
    ((300, 300, 1000), (False, False), "spill_accumulator()"),
    ((128, 768, 3072), (False, True), "pack(side=lhs, vector=2, size=16)"),   # rows that exceed the cache
    ((1, 4096, 4096), (False, False), "split_k(dim=2, size=8)"),            # one row: a few lines at a time
    ((6, 4096, 1024), (False, True), "tile(dim=1, size=16, vector=True)"),  # few rows: few streams of memory
])
def test_what_a_schedule_does(shape: tuple[int, int, int], transposes: tuple[bool, bool], step: str) -> None:
    assert step in product(*shape, *transposes)[1]


@pytest.mark.parametrize("size", [(9, 23), (30, 30), pytest.param(("H", "W"), marks=pytest.mark.slow)])
def test_the_last_lines_and_columns_of_a_panel_are_masked(size: tuple[int | str, int | str]) -> None:
    """Of an image, with and without checks of each access; there is one kind of tiles then."""
    def convolve(x: mlc.Tensor, w: mlc.Tensor) -> mlc.Tensor:
        return mlc.nn.functional.conv2d(x, w, padding=1)

    text = str(mlc.lower(convolve, [mlc.spec(1, 30, *size), mlc.spec(40, 30, 3, 3)], level="loop"))
    assert re.search(r"masked = \[2, 3\]", text)
    rng = np.random.default_rng(3)
    x, w = (mlc.tensor(rng.random(shape, np.float32)) for shape in ((1, 30, 31, 57), (40, 30, 3, 3)))
    checked = mlc.compile(convolve, checked=True, dynamic=size == ("H", "W"))
    fast = mlc.compile(convolve, dynamic=size == ("H", "W"))
    for images in (x, x[:, :, :9, :23].clone()) if size == ("H", "W") else (x[:, :, :size[0], :size[1]].clone(),):
        found = fast(images, w)
        np.testing.assert_array_equal(found, checked(images, w))
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(images.numpy()[0], ((0, 0), (1, 1), (1, 1))), (3, 3), (1, 2))
        np.testing.assert_allclose(found.numpy()[0], np.einsum("chwij,ocij->ohw", windows, w.numpy()), rtol=1e-4)


def test_shapes() -> None:
    """Blocks of sums leave little over: 6 rows of 4 vectors where nothing is special, more rows of few columns."""
    assert best_shape((512, 1, 512), 16, CPU) == Shape(6, 1, 4)
    assert best_shape((512, 1, 16), 16, CPU).rows > 8
    assert best_shape((64, 28, 28), 16, CPU).vectors == 2
    assert best_shape((512, 1, 512), 8, x86_64(256)) == Shape(6, 1, 2)
    assert best_shape((196, 1, 256), 16, CPU, panel=32).rows == 14
    assert best_shape((196, 1, 256), 16, CPU, panel=32, kept=7).rows <= 7          # rows that evict each other


@pytest.mark.parametrize("bits", [512, 256, 128])
@pytest.mark.parametrize("size", [(3, 40, 9, 17), (2, 16, 16, 16), (1, 70, 5, 33)])
def test_squares_turned_in_registers(size: tuple[int, int, int, int], bits: int) -> None:
    """Transposed copies with padding, for static and dynamic sizes."""
    n, c, h, w = size
    for known in (True, False):
        a, b, d, e = size if known else ("N", "C", "H", "W")
        around = f"{a}x{b}x{h + 2}x{w + 3}" if known else "NxCx(H+2)x(W+3)"
        last = f"{a}x{h + 2}x{w + 3}x{b}" if known else "Nx(H+2)x(W+3)xC"
        module = parse_module(f"""func.func @main(%x: tensor<{a}x{b}x{d}x{e}xf32>) -> tensor<{last}xf32> {{
          %0 = tensor.full 0.0 : tensor<f32>
          %1 = tensor.pad %x, %0 {{low = [0, 0, 1, 1], high = [0, 0, 1, 2], interior = [0, 0, 0, 0]}}
            : (tensor<{a}x{b}x{d}x{e}xf32>, tensor<f32>) -> tensor<{around}xf32>
          %2 = tensor.transpose %1 {{perm = [0, 2, 3, 1]}} : (tensor<{around}xf32>) -> tensor<{last}xf32>
          func.return %2 : tensor<{last}xf32>
        }}""")
        x = np.random.default_rng(n + c + h + w).standard_normal(size).astype("f4")
        pipeline.lower(module, "llvm", machine=x86_64(bits))
        found, = build(module).entry("main").call([x])
        expected = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 2))).transpose(0, 2, 3, 1)
        assert difference(found, expected, "bits") is None


@pytest.mark.parametrize("k", [100, 1000, 4096])
def test_rounding_errors_are_about_those_of_numpy(k: int) -> None:
    rng = np.random.default_rng(k)
    a, b = rng.standard_normal((64, k)).astype("f4"), rng.standard_normal((k, 64)).astype("f4")
    exact = a.astype("f8") @ b.astype("f8")

    def error(product: Array) -> float:
        return float(np.sqrt(np.mean((product - exact) ** 2)))

    assert error(product(64, 64, k, False, False)[0].call([a, b])[0]) <= 2 * error(a @ b)


@pytest.mark.parametrize("bits", [512, 128])
def test_backwards(bits: int) -> None:
    """Vectors of what lies in memory the other way round, the last one not full."""
    module = parse_module("""func.func @main(%x: tensor<Bx9xf32>) -> tensor<9xBxf32> {
      %0 = tensor.reverse %x {axes = [1]} : (tensor<Bx9xf32>) -> tensor<Bx9xf32>
      %1 = tensor.transpose %0 {perm = [1, 0]} : (tensor<Bx9xf32>) -> tensor<9xBxf32>
      %2 = tensor.reverse %1 {axes = [1]} : (tensor<9xBxf32>) -> tensor<9xBxf32>
      func.return %2 : tensor<9xBxf32>
    }
    func.func @row(%x: tensor<Bx23xf32>) -> tensor<Bx23xf32> {
      %0 = tensor.reverse %x {axes = [1]} : (tensor<Bx23xf32>) -> tensor<Bx23xf32>
      func.return %0 : tensor<Bx23xf32>
    }""")
    pipeline.lower(module, "llvm", machine=x86_64(bits))
    made = build(module)
    for rows in (0, 1, 5, 40):
        x, y = (np.arange(n * rows, dtype="f4").reshape(rows, n) for n in (9, 23))
        assert difference(made.entry("main").call([x])[0], x.T[::-1, ::-1], "bits") is None
        assert difference(made.entry("row").call([y])[0], y[:, ::-1], "bits") is None


SCRATCH = """func.func @f(%n: index) {
  loop.kernel %n {symbols = ["N"], domain = [4, SIZE], iterator_types = ["parallel", "reduction"],
    schedule = #loop.schedule<tile = [1, 1]>} : (index) -> () {
    %0 = loop.scratch : !loop.scratch<d1xf64>
    loop.end
  }
  func.return
}"""


@pytest.mark.parametrize(("size", "message"), [
    ('"N"', "MLC0543.*stack memory must have a static size, but d1 has N points"),
    ("1000000", "MLC0543.*the kernel takes 8000000 bytes of stack with this buffer, more than 4194304"),
])
def test_scratch_that_does_not_fit(size: str, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        Pipeline(["loop_to_scf"]).run(parse_module(SCRATCH.replace("SIZE", size)))


# -- nothing to do ----------------------------------------------------------------------------------------------------
PRODUCTS: dict[str, tuple[Any, list[tuple[int, ...]], list[tuple[int, ...]]]] = {
    "matmul": (mlc.matmul, [(0, 2, 8), (3, 0, 8), (3, 2, 0), (3, 2, 8)], [(0, 8, 4), (3, 8, 4), (3, 0, 4), (3, 8, 0)]),
    "conv2d": (functools.partial(nn.functional.conv2d, groups=2),
               [(0, 4, 5, 5), (3, 0, 5, 5), (3, 4, 5, 5)], [(2, 2, 3, 3), (2, 0, 3, 3), (0, 2, 3, 3)]),
}


@pytest.mark.parametrize("machine", (CPU, GPU))
@pytest.mark.parametrize("name", PRODUCTS)
def test_kernels_without_points(name: str, machine: Model) -> None:
    """Of products in which one size after the other is 0."""
    f, *shapes = PRODUCTS[name]
    for left, right in zip(*shapes):
        module = mlc.lower(f, args=[mlc.spec(*left), mlc.spec(*right)], level="tensor").module
        pipeline.lower(module, machine=machine, instruments=Instruments(verify_each=True))


def test_several_sums_in_lanes_lie_across_vectors_of_channels() -> None:
    """As in the gradient of a norm of an image whose channels are last: more vectors of sums than registers."""
    def f(x: mlc.Tensor, y: mlc.Tensor) -> tuple[mlc.Tensor, ...]:
        x, y = (v.permute(0, 3, 1, 2) for v in (x, y))
        return tuple(v.sum((2, 3)) for v in (x, y, x * y, x + y))

    args = [mlc.tensor(np.random.default_rng(i).random((2, 14, 18, 40), np.float32)) for i in range(2)]
    text = str(mlc.lower(f, args, level="loop"))
    assert ":4 = loop.for" in text and re.search(r"tile\(dim=1, size=\d+, vector=True\)", text)
    for found, wanted in zip(mlc.compile(f)(*args), f(*args)):
        assert difference(np.asarray(found), np.asarray(wanted), "bits") is None


def test_updates_that_lie_apart_are_in_vectors_where_much_is_computed_for_each() -> None:
    def schedule(f: Any) -> Any:
        args = [mlc.spec(64, 40), mlc.spec(64, 40, dtype="int64"), mlc.spec(64, 40)]
        module = mlc.lower(lambda x, i, u: x.scatter_add(1, i, f(u)), args, level="loop").module
        return next(k.schedule.vector for k in module.inside(Kernel) if any(op.tiles for op in k.inside(Store)))

    assert schedule(lambda u: u * 2) < 0 <= schedule(nn.functional.gelu)
