"""Sizes that make no sense of a function: refused with the user's line on every way into compiled code, never run."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends.executable import Entry, build
from mlc.dialects.func import Func
from mlc.ir.affine_syntax import parse_size
from mlc.ir.diag import IRError, UserError
from mlc.ir.interp import run_function
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments
from mlc.passes import pipeline
from mlc.passes.analysis.size_constraints import size_constraints
from mlc.passes.bufferize import kernel_names

SLICE = """
func.func @f(%x: tensor<Nxf32>) -> tensor<10xf32> {
  %0 = tensor.slice %x {starts = [0], stops = [10], steps = [1]} : (tensor<Nxf32>) -> tensor<10xf32>
  func.return %0 : tensor<10xf32>
}
"""
BACKWARDS = """
func.func @f(%x: tensor<Nxf32>) -> tensor<10xf32> {
  %0 = tensor.slice %x {starts = [9], stops = [-1], steps = [-1]} : (tensor<Nxf32>) -> tensor<10xf32>
  func.return %0 : tensor<10xf32>
}
"""
# The rest is a temporary of negative size, after which the next would lie before the arena.
TEMPORARY = """
func.func @f(%x: tensor<Nxf32>, %y: tensor<Mx8xf32>) -> (tensor<f32>, tensor<Mx8xf32>) {
  %0 = tensor.slice %x {starts = [10], stops = ["N"], steps = [1]} : (tensor<Nxf32>) -> tensor<(N - 10)xf32>
  %1 = tensor.exp %0 : tensor<(N - 10)xf32>
  %2 = tensor.reduce_sum %1 {axes = [0]} : (tensor<(N - 10)xf32>) -> tensor<f32>
  %3 = tensor.reduce_max %1 {axes = [0]} : (tensor<(N - 10)xf32>) -> tensor<f32>
  %4 = tensor.add %2, %3 : tensor<f32>
  %5 = tensor.reduce_sum %y {axes = [1]} : (tensor<Mx8xf32>) -> tensor<Mxf32>
  %6 = tensor.exp %5 : tensor<Mxf32>
  %7 = tensor.reshape %6 : tensor<Mxf32> to tensor<Mx1xf32>
  %8 = tensor.add %y, %7 : (tensor<Mx8xf32>, tensor<Mx1xf32>) -> tensor<Mx8xf32>
  func.return %4, %8 : tensor<f32>, tensor<Mx8xf32>
}
"""
PADDING = """
func.func @f(%x: tensor<Nxf32>) -> tensor<(N + M)xf32> {
  %v = tensor.full 0.0 : tensor<f32>
  %0 = tensor.pad %x, %v {low = ["M"], high = [0], interior = [0]} : (tensor<Nxf32>, tensor<f32>) -> tensor<(N + M)xf32>
  func.return %0 : tensor<(N + M)xf32>
}
"""
DIVISION = """
func.func @f(%x: tensor<Nxf32>, %y: tensor<Mxf32>) -> tensor<f32> {
  %0 = tensor.iota {axis = 0} : tensor<(N floordiv M)xf32>
  %1 = tensor.reduce_sum %0 {axes = [0]} : (tensor<(N floordiv M)xf32>) -> tensor<f32>
  func.return %1 : tensor<f32>
}
"""
# N x N numbers made from no bytes at all: for N = 2^32 their number of bytes is 0 modulo 2^64.
OVERFLOW = """
func.func @f(%x: tensor<Nx0xf32>) -> tensor<f32> {
  %0 = tensor.dot_general %x, %x {batch = [], contract = [[1, 1]]} : (tensor<Nx0xf32>, tensor<Nx0xf32>) -> tensor<NxNxf32>
  %1 = tensor.exp %0 : tensor<NxNxf32>
  %2 = tensor.reduce_max %1 {axes = [0, 1]} : (tensor<NxNxf32>) -> tensor<f32>
  %3 = tensor.reduce_sum %1 {axes = [1]} : (tensor<NxNxf32>) -> tensor<Nxf32>
  %4 = tensor.reduce_sum %3 {axes = [0]} : (tensor<Nxf32>) -> tensor<f32>
  %5 = tensor.add %2, %4 : tensor<f32>
  func.return %5 : tensor<f32>
}
"""  # noqa: E501


def zeros(*shapes: tuple[int, ...]) -> list[Any]:
    return [np.zeros(shape, np.float32) for shape in shapes]


REFUSED = {
    "slice": (SLICE, zeros((9,)), r"f\.mlir:3:3: .*axis 0: 0:10:1 does not lie within size N, where N = 9"),
    "backwards": (BACKWARDS, zeros((9,)), r"f\.mlir:3:3: .*axis 0: 9:-1:-1 does not lie within size N"),
    "temporary": (TEMPORARY, zeros((1,), (500, 8)), r"f\.mlir:3:3: .*axis 0: 10:N:1 does not lie within size N"),
    "division": (DIVISION, zeros((7,), (0,)), r"f\.mlir:3:3: .*divides by M, which is not positive, where N = 7, M = 0"
                 ),
}
TAKEN = {"slice": zeros((10,)), "backwards": zeros((10,)), "temporary": zeros((11,), (3, 8)),
         "division": zeros((7,), (7,))}


def lowered(text: str, level: str) -> Any:
    return pipeline.lower(parse_module(text, "f.mlir"), level, instruments=Instruments(verify_each=True))


def entry(text: str) -> Entry:
    return build(lowered(text, "llvm")).entry("f")


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_compiled_code(name: str) -> None:
    from mlc.backends.cpu.callable import make_callable
    text, arguments, message = REFUSED[name]
    compiled = entry(text)
    slow: list[Any] = []

    def slow_path(*xs: Any) -> Any:
        slow.append(xs)
        return compiled.call(xs)
    fast = make_callable(compiled, slow_path, "ndarray")
    for call in (compiled.call, lambda xs: fast(*xs)):
        with pytest.raises(UserError, match=message) as caught:
            call(arguments)
        assert caught.value.code == "MLC0328"
    assert slow and compiled.calls == 0
    slow.clear()
    fast(*TAKEN[name])
    assert not slow, "sizes that fit take the fast path"


@pytest.mark.parametrize("level", ("loop", "low", "llvm"))
@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_the_interpreter(name: str, level: str) -> None:
    text, arguments, message = REFUSED[name]
    with pytest.raises(UserError, match=message):
        run_function(lowered(text, level), "f", arguments)


def test_temporaries_larger_than_memory() -> None:
    compiled = entry(OVERFLOW)
    assert compiled.call([np.zeros((8, 0), np.float32)])[0] == 65
    for n in (1 << 31, 1 << 32, 1 << 33):
        with pytest.raises(UserError, match=r"MLC0328.*temporary values would take \d{20,21} bytes"):
            compiled.call([np.zeros((n, 0), np.float32)])


def test_what_holds_for_certain_is_not_asked() -> None:
    module = parse_module("""
func.func @f(%x: tensor<(N + 3)xf32>) -> tensor<(N + 1)xf32> {
  %0 = tensor.slice %x {starts = [2], stops = ["N + 3"], steps = [1]} : (tensor<(N + 3)xf32>) -> tensor<(N + 1)xf32>
  func.return %0 : tensor<(N + 1)xf32>
}""")
    assert size_constraints(next(module.inside(Func))) == {}


CALLS = """
func.func private @g(%x: tensor<Sxf32>) -> tensor<(S - 5)xf32> {
  %0 = tensor.slice %x {starts = [5], stops = ["S"], steps = [1]} : (tensor<Sxf32>) -> tensor<(S - 5)xf32>
  func.return %0 : tensor<(S - 5)xf32>
}
func.func @f(%x: tensor<(2*N)xf32>) -> tensor<(2*N - 5)xf32> {
  %0 = func.call @g(%x) : (tensor<(2*N)xf32>) -> tensor<(2*N - 5)xf32>
  func.return %0 : tensor<(2*N - 5)xf32>
}
"""


def test_sizes_of_a_call_are_the_callers() -> None:
    module = parse_module(CALLS)
    g, f = module.inside(Func)
    (site, _), = size_constraints(f, {"g": ([a.type for a in g.args], size_constraints(g))}).values()
    assert site.endswith("does not lie within size S (S = 2*N in this call)")


def test_each_condition_once() -> None:
    function = next(parse_module(TEMPORARY).inside(Func))
    assert list(size_constraints(function)) == [parse_size("N - 10")]


@pytest.mark.parametrize("text", [PADDING, """
func.func @f(%x: tensor<Nxf32>) -> tensor<i64> {
  %0 = tensor.size "M" : tensor<i64>
  func.return %0 : tensor<i64>
}"""])
def test_sizes_that_no_argument_tells(text: str) -> None:
    """... also where they stand in attributes alone."""
    with pytest.raises(IRError, match=r"MLC0161.*size M is no size of an argument"):
        pipeline.lower(parse_module(text))
    with pytest.raises(IRError, match=r"MLC0161.*size M is no size of an argument"):
        run_function(parse_module(text), "f", zeros((2,)))


def test_the_interpreter_solves_linear_sizes() -> None:
    """The body of a loop as a function may take a tensor of 2 N + 3 elements, and none of N."""
    module = parse_module("""
func.func private @body(%x: tensor<(2*N + 3)xf32>) -> tensor<Nxf32> {
  %0 = tensor.slice %x {starts = [0], stops = ["N"], steps = [1]} : (tensor<(2*N + 3)xf32>) -> tensor<Nxf32>
  func.return %0 : tensor<Nxf32>
}
func.func @f(%x: tensor<Mxf32>, %y: tensor<(2*M + 3)xf32>) -> tensor<Mxf32> {
  %0 = func.call @body(%y) : (tensor<(2*M + 3)xf32>) -> tensor<Mxf32>
  func.return %0 : tensor<Mxf32>
}""")
    assert run_function(module, "f", zeros((4,), (11,)))[0].shape == (4,)
    with pytest.raises(UserError, match="MLC0323"):
        run_function(module, "body", zeros((4,)))
    with pytest.raises(UserError, match="MLC0323"):
        run_function(module, "body", zeros((1,)))          # N = -1


def test_the_interpreter_solves_sizes_in_any_order() -> None:
    """Each size follows from those of the arguments after it."""
    module = parse_module("""
func.func @f(%x: tensor<(A + B + C)xf32>, %y: tensor<(B + C)xf32>, %z: tensor<(2*C + 1)xf32>) -> tensor<Axf32> {
  %0 = tensor.slice %x {starts = [0], stops = ["A"], steps = [1]} : (tensor<(A + B + C)xf32>) -> tensor<Axf32>
  func.return %0 : tensor<Axf32>
}""")
    assert run_function(module, "f", zeros((9,), (5,), (5,)))[0].shape == (4,)
    with pytest.raises(UserError, match=r"MLC0323.*argument 0 has size 4 on axis 0"):
        run_function(module, "f", zeros((4,), (5,), (5,)))                 # A = -1


def test_the_interpreter_does_not_take_other_sizes_for_linear_ones() -> None:
    module = parse_module("""
func.func private @square(%x: tensor<(N*N)xf32>, %y: tensor<(2*N)xf32>) -> tensor<(N*N)xf32> {
  func.return %x : tensor<(N*N)xf32>
}""")
    assert run_function(module, "square", zeros((4,), (4,)))[0].shape == (4,)


def test_names_in_kernels() -> None:
    assert kernel_names(["B", "d0", "t", "t12", "d0_", "v0"]) == ("B", "d0__", "t", "t12_", "d0_", "v0")


@pytest.mark.parametrize("name", ["d0", "d1", "t0", "t1", "o0", "o1", "v0", "n0_0", "i0"])
def test_sizes_may_be_called_as_coordinates_are(name: str) -> None:
    text = """
func.func @f(%x: tensor<(S)x3xf32>, %i: tensor<2xi64>) -> (tensor<2x3xf32>, tensor<3x(S)xf32>, tensor<(S)xf32>) {
  %0 = tensor.take %x, %i {axis = 0} : (tensor<(S)x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %1 = tensor.transpose %x {perm = [1, 0]} : (tensor<(S)x3xf32>) -> tensor<3x(S)xf32>
  %2 = tensor.reverse %x {axes = [0]} : tensor<(S)x3xf32>
  %3 = tensor.reduce_sum %2 {axes = [1]} : (tensor<(S)x3xf32>) -> tensor<(S)xf32>
  func.return %0, %1, %3 : tensor<2x3xf32>, tensor<3x(S)xf32>, tensor<(S)xf32>
}""".replace("(S)", f"({name})")
    x, i = np.arange(15, dtype=np.float32).reshape(5, 3), np.array([4, 1])
    for results in (entry(text).call([x, i]), run_function(lowered(text, "loop"), "f", [x, i])):
        for found, wanted in zip(results, (x[i], x.T, x[::-1].sum(1)), strict=True):
            np.testing.assert_array_equal(found, wanted)


# -- numbers that do not fit in 64 bits -------------------------------------------------------------------------------
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("f", [
    lambda x: mlc.nn.functional.pad(x, (0, 2**63 - 1)).sum(),
    lambda x: mlc.nn.functional.pad(x, (0, 2**63 - 1)).mean(),
    lambda x: mlc.full((x.shape[0] * 2**59,), 1.0).sum(),
    lambda x: mlc.full((), x.shape[0] * 2**59),
    lambda x: x.repeat(2**62).sum(),
    lambda x: mlc.arange(2**63 - 1, 2**63 - 1 + x.shape[0]),
    lambda x: x[2**64],
])
def test_no_size_wraps_around(f: Any, dynamic: bool) -> None:
    """A sum over `N + 2**63 - 1` elements has none in 64 bits, and was a sum of some of them."""
    with pytest.raises(UserError, match=r"beyond all memory|does not fit|out of range"):
        mlc.compile(f, dynamic=dynamic)(mlc.ones(17))


def test_sizes_of_a_call_are_refused_where_a_computed_one_would_wrap_around() -> None:
    """The product of the sizes of two arguments is no size of an array, so that only the call knows it."""
    source = """
func.func @f(%x: tensor<Nx0xf32>, %y: tensor<Mx0xf32>) -> tensor<i64> {
  %0 = tensor.size "N*M" : tensor<i64>
  func.return %0 : tensor<i64>
}
"""
    code = entry(source)

    def product(n: int, m: int) -> Any:
        return code.call([np.zeros((n, 0), np.float32), np.zeros((m, 0), np.float32)])[0]

    assert product(1 << 30, 1 << 30) == 1 << 60 and product(1 << 40, 3) == 3 << 40
    with pytest.raises(UserError, match=r"the size M\*N is beyond 64 bits"):
        product(1 << 40, 1 << 40)
    with pytest.raises(UserError, match="too large"):
        product(1 << 50, 1)


def test_a_data_dependent_size_beyond_64_bits_is_refused_when_compiled() -> None:
    """It cannot be checked before the function runs."""
    def f(x: mlc.Tensor) -> mlc.Tensor:
        return mlc.full((), mlc.nonzero(x).shape[0] * 2**59)

    with pytest.raises(IRError, match="MLC0161"):
        mlc.compile(f, dynamic=True)(mlc.ones(17))


def test_a_part_of_an_argument_is_no_larger_than_that() -> None:
    x = mlc.tensor([[1.0, 2.0], [-1.0, 3.0], [0.5, 4.0]])
    assert mlc.compile(lambda x: x[x[:, 0] > 0].reshape(-1), dynamic=True)(x).tolist() == [1.0, 2.0, 0.5, 4.0]


@pytest.mark.parametrize("mode", ["nearest", "bicubic", "area"])
def test_images_beyond_memory(mode: str) -> None:
    """Places were counted by numpy, which makes nothing of 2**63 - 1 of them."""
    for size in (2**46, 2**62, 2**63 - 1, 2**64):
        with pytest.raises(UserError, match=r"is no size|beyond all memory|64 bits"):
            mlc.nn.functional.interpolate(mlc.ones(1, 1, 4, 4), size=(size, 4), mode=mode)


@pytest.mark.parametrize("index", [2**63, 2**64, -2**63 - 1])
def test_indices_beyond_64_bits(index: int) -> None:
    x = mlc.ones(4)
    with pytest.raises(UserError, match="MLC0366"):
        x[index]
    with pytest.raises(UserError, match="MLC0366"):
        x[index] = 1


def test_attributes_beyond_64_bits() -> None:
    """Pooling itself does not look at its stride: the windows that it is decomposed into did, as an error of a pass."""
    with pytest.raises(UserError, match=r"MLC0348.*max_pool.*9223372036854775808 does not fit in 64 bits"):
        mlc.nn.functional.max_pool1d(mlc.ones(1, 1, 16), 1, 2**63)


@pytest.mark.parametrize("number", [2**63, 2**64, 2**64 + 1, -2**63 - 1])
@pytest.mark.parametrize("f", [
    lambda x, n: x == n,
    lambda x, n: x + n,
    lambda x, n: mlc.maximum(x, n),
    lambda x, n: mlc.where(x > 1, x, n),
    lambda x, n: mlc.clamp(x, max=n),
    lambda x, n: mlc.tril(x, n),
    lambda x, n: mlc.tril_indices(3, 3, n),
    lambda x, n: mlc.vander(x[0], n),
    lambda x, n: mlc.roll(x, n, 0),
])
def test_numbers_beyond_64_bits(f: Any, number: int) -> None:
    """Eager code refused them as operands; what was recorded computed with their last 64 bits."""
    for dtype in (mlc.int64, mlc.float32):
        x = mlc.ones(3, 3, dtype=dtype)
        for g in (f, mlc.compile(f)):
            with pytest.raises(UserError, match="MLC0348"):
                g(x, number)
        with pytest.raises(UserError, match="MLC0348"):
            mlc.compile(lambda x: f(x, number), dynamic=True)(x)


def test_unsigned_numbers_have_64_bits() -> None:
    largest = mlc.compile(lambda: mlc.full((1,), 2**64 - 1, dtype=mlc.uint64))()
    assert int(largest.numpy()[0]) == 2**64 - 1
