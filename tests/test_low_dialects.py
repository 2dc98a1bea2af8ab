"""math, scf, memref, vector and llvm: what their operations mean where file cases cannot say it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc.dialects import arith, llvm, memref
from mlc.dialects.arith import constant
from mlc.dialects.builtin import module
from mlc.dialects.func import Return, function
from mlc.ir.core import REGISTRY, Op, at_end
from mlc.ir.diag import IRError
from mlc.ir.interp import Interpreter
from mlc.ir.parser import parse_module
from mlc.ir.printer import to_text
from mlc.ir.types import MemRefType, VectorType, bf16, f16, f32, f64, i1, i8, i32, i64, index
from tests.low_programs import parsed, specials
from tests.upstream import verify_text

DIALECTS = ("arith", "math", "scf", "memref", "vector", "llvm")


def run(text: str, *args: Any) -> list[Any]:
    return Interpreter(parsed(text)).call("f", args)


# -- every operation --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(n for n in REGISTRY if n.startswith(DIALECTS)))
def test_every_operation_says_what_it_is(name: str) -> None:
    cls = REGISTRY[name]
    assert cls.__doc__, name
    assert "\n\n" not in cls.__doc__.split("\n")[0]


# -- memory -----------------------------------------------------------------------------------------------------------
def test_fresh_memory_shows_that_nobody_wrote_it() -> None:
    text = """
func.func @f(%n: index) -> (f32, i64, bf16) {
  %c0 = arith.constant 0 : index
  %a = memref.alloc(%n) : memref<?xf32>
  %x = memref.load %a[%c0] : memref<?xf32>
  %bytes = memref.alloca() : memref<64xi8>
  %any = memref.cast %bytes : memref<64xi8> to memref<?xi8>
  %b = memref.view %any[%c0][] : memref<?xi8> to memref<4xi64>
  %y = memref.load %b[%c0] : memref<4xi64>
  %c = memref.view %any[%c0][] : memref<?xi8> to memref<4xbf16>
  %z = memref.load %c[%c0] : memref<4xbf16>
  memref.dealloc %a : memref<?xf32>
  func.return %x, %y, %z : f32, i64, bf16
}"""
    x, y, z = run(text, 3)
    assert np.isnan(x) and y == -1 and np.isnan(z)


@pytest.mark.parametrize(("body", "message"), [
    ("%v = memref.load %m[%i, %n] : memref<?x4xf32>", "index 9 on axis 1 is outside of size 4"),
    ("%v = memref.load %m[%minus, %i] : memref<?x4xf32>", "index -1 on axis 0 is outside of size 3"),
    ("memref.store %x, %m[%n, %i] : memref<?x4xf32>", "index 9 on axis 0 is outside of size 3"),
    ("%v = vector.load %m[%i, %i] : memref<?x4xf32>, vector<4xf32>", "elements 1..4 of a dimension of size 4"),
    ("%v = memref.view %b[%n][] : memref<?xi8> to memref<4xf32>", "bytes 9..25 of a buffer of 16"),
    ("%v = memref.subview %m[%i, 1] [3, 1] [1, 1] : memref<?x4xf32> to memref<3x1xf32, strided<[4, 1], offset: ?>>",
     "3 elements from 1 in steps of 1 on axis 0 of size 3"),
    ("%v = memref.reinterpret_cast %m to offset: [%n], sizes: [4], strides: [1] : memref<?x4xf32> to "
     "memref<4xf32, strided<[1], offset: ?>>", "elements 9..12 of a memref of 12"),
    ("%v = memref.cast %m : memref<?x4xf32> to memref<5x4xf32>", r"a memref of sizes \[3, 4\] is no memref<5x4xf32>"),
    ("%v = memref.dim %m, %n : memref<?x4xf32>", "axis 9 of memref"),
    ("%v = memref.alloc(%minus) : memref<?xf32>", r"sizes \[-1\]"),
    ("scf.for %j = %i to %n step %minus {\n }", "the step is -1, not positive"),
])
def test_accesses_outside(body: str, message: str) -> None:
    text = f"""
func.func @f(%m: memref<?x4xf32>, %b: memref<?xi8>, %i: index, %n: index, %minus: index, %x: f32) {{
  {body}
  func.return
}}"""
    args = (np.zeros((3, 4), np.float32), np.zeros(16, np.int8), 1, 9, -1, np.float32(1))
    with pytest.raises(IRError, match=message) as caught:
        run(text, *args)
    assert caught.value.loc.line == 3


def test_masked_lanes_may_lie_outside() -> None:
    text = """
func.func @f(%m: memref<?xf32>, %n: index) -> vector<8xf32> {
  %c0 = arith.constant 0 : index
  %none = arith.constant dense<-1.0> : vector<8xf32>
  %mask = vector.create_mask %n : vector<8xi1>
  %v = vector.maskedload %m[%c0], %mask, %none : memref<?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  func.return %v : vector<8xf32>
}"""
    assert run(text, np.arange(3, dtype=np.float32), 3)[0].tolist() == [0, 1, 2, -1, -1, -1, -1, -1]
    with pytest.raises(IRError, match="of a dimension of size 3"):
        run(text, np.arange(3, dtype=np.float32), 4)


def test_iterations_of_a_parallel_loop_run_in_another_order_than_they_are_written() -> None:
    """So that one which reads what another one writes does not mean what it means in a loop."""
    text = """
func.func @f(%m: memref<4xf32>, %zero: index, %one: index, %n: index) {
  scf.parallel (%i) = (%zero) to (%n) step (%one) {
    %j = arith.addi %i, %one : index
    %v = memref.load %m[%i] : memref<4xf32>
    memref.store %v, %m[%j] : memref<4xf32>
    scf.reduce
  }
  func.return
}"""
    memory = np.arange(4, dtype=np.float32)
    run(text, memory, 0, 1, 3)
    assert memory.tolist() == [0, 0, 1, 2]                 # in order it would be four zeros


def test_windows_are_views() -> None:
    memory = np.arange(20, dtype=np.float32).reshape(4, 5)
    out = module()
    f = function("f", [MemRefType((4, 5), f32), index], ["m", "i"])
    out.body.block.insert(f)
    with at_end(f.block):
        window = memref.subview(f.args[0], [1, f.args[1]], [2, 2], [2, 1])
        diagonal = memref.reinterpret(f.args[0], 1, [3], [6])
        Return((window, diagonal))
    f.update_type()
    verify_text(to_text(out, generic=True))
    window, diagonal = Interpreter(out).call("f", [memory, 3])
    assert window.tolist() == [[8, 9], [18, 19]]
    assert diagonal.tolist() == [1, 7, 13]
    window[0, 0] = 99
    assert memory[1, 3] == 99


def test_address_arithmetic_and_stored_pointers() -> None:
    text = """
llvm.func @f(%table: !llvm.ptr, %n: i64) -> f32 {
  %p = llvm.getelementptr %table[%n, 1, 2] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.struct<(ptr, array<4 x i16>)>
  %at = llvm.load %p {alignment = 2} : !llvm.ptr -> i16
  %slot = llvm.getelementptr %table[%n, 0] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.struct<(ptr, array<4 x i16>)>
  %data = llvm.load %slot {alignment = 8} : !llvm.ptr -> !llvm.ptr
  %q = llvm.getelementptr %data[%at] : (!llvm.ptr, i16) -> !llvm.ptr, f32
  %x = llvm.load %q {alignment = 4} : !llvm.ptr -> f32
  llvm.return %x : f32
}"""
    data = np.arange(5, dtype=np.float32)
    table = np.zeros(4, np.int64)
    table[2] = data.ctypes.data
    table[3:].view(np.int16)[2] = 4
    interpreter = Interpreter(parsed(text))
    memory = llvm.heap(interpreter)
    memory.pointer(data)
    assert interpreter.call("f", [memory.pointer(table), np.int64(1)]) == [4.0]
    with pytest.raises(IRError, match="access to bytes"):
        table[3:].view(np.int16)[2] = 5
        interpreter.call("f", [memory.pointer(table), np.int64(1)])


def test_alignments_are_checked() -> None:
    text = """
llvm.func @f(%p: !llvm.ptr, %n: i64) -> f32 {
  %q = llvm.getelementptr %p[%n] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %x = llvm.load %q {alignment = 4} : !llvm.ptr -> f32
  llvm.return %x : f32
}"""
    interpreter = Interpreter(parsed(text))
    pointer = llvm.heap(interpreter).pointer(np.arange(4, dtype=np.float32))
    assert interpreter.call("f", [pointer, np.int64(4)]) == [1.0]
    with pytest.raises(IRError, match="no multiple of 4"):
        interpreter.call("f", [pointer, np.int64(2)])


def test_sizes_in_memory_are_llvms() -> None:
    assert [llvm.size_of(t) for t in (i1, i8, i64, f16, llvm.ptr)] == [1, 1, 8, 2, 8]
    assert llvm.size_of(VectorType((3,), f32)) == 16
    assert llvm.stored_bytes(VectorType((3,), f32)) == 12
    assert llvm.size_of(llvm.StructType((i8, f64, i8))) == 24
    assert llvm.member_offset(llvm.StructType((i8, i32, i8, i64)), 3) == 16
    assert llvm.size_of(llvm.ArrayType(3, llvm.StructType((i32, i8)))) == 24


# -- numbers ----------------------------------------------------------------------------------------------------------
def _nearest(x: float, dtype: Any) -> Any:
    """The 16-bit float nearest to a number, ties to even, by looking at all of them."""
    table = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    with np.errstate(invalid="ignore"):                 # signalling NaNs
        wide = table.astype(np.float64)
    finite = np.isfinite(wide)
    values = wide[finite]
    distance = np.abs(values - x)
    best = np.flatnonzero(distance == distance.min())
    codes = np.arange(1 << 16)[finite][best]
    same_sign = [c for c in codes if bool(c >> 15) == bool(np.signbit(x))] or list(codes)
    return table[next((c for c in same_sign if c & 1 == 0), same_sign[0])]


@pytest.mark.parametrize("type", [bf16, f16], ids=str)
def test_narrowing_rounds_once(type: Any) -> None:
    """Through float32 these would round twice."""
    from mlc.ir.types import to_numpy
    dtype = to_numpy(type)
    step = 2.0**-8 if type == bf16 else 2.0**-11
    rng = np.random.default_rng(0)
    values = [1 + step, 1 + step + 2.0**-40, 1 + step - 2.0**-40, 1 + 3 * step, 1 + 3 * step - 2.0**-45, 3e-39,
              2.0**-134, *rng.standard_normal(20),
              *(1 + rng.integers(1, 9, 9) * step + rng.integers(-1, 2, 9) * 2.0**-44)]
    for x in values:
        for v in (x, -x):
            got = np.asarray(arith.store(np.float64(v), type))
            assert got.view(np.uint16) == np.asarray(_nearest(v, dtype)).view(np.uint16), v


def test_integers_to_bfloat16_round_once() -> None:
    for n in (2**40 + 2**32 + 1, 2**40 + 2**32, -(2**40 + 2**32 + 1), 2**62 + 2**54 + 1, 2**63 - 1, -(2**63)):
        got = np.asarray(arith.store(np.int64(n), bf16))
        around = np.asarray(got.view(np.uint16) + np.array([-1, 0, 1]), np.uint16).view(got.dtype)
        exact = [int(float(x)) for x in around]
        assert min(exact, key=lambda e: abs(e - n)) == exact[1]


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize(("name", "type"), [("float16", f16), ("bfloat16", bf16), ("float32", f32), ("float64", f64)])
def test_integers_become_floats_in_native_code_as_they_do_here(dtype: str, name: str, type: Any) -> None:
    numbers = [2**40 + 2**32 + 1, 2**62 + 2**54 + 1, 2**62 + 2**54, 2**53 + 1, 2**24 + 1, 65519, 2**63 - 1, 0, 1]
    x = np.array([*numbers, *(-n for n in numbers)] if dtype == "int64" else [*numbers, 2**64 - 1], dtype)
    found = mlc.compile(lambda x: x.to(name))(x).numpy()
    with np.errstate(over="ignore"):                       # of float16
        want = [arith.store(n, type) for n in x]
    np.testing.assert_array_equal(found.astype(np.float64), np.array(want).astype(np.float64))


def test_arithmetic_of_one_bit() -> None:
    text = """
func.func @f(%a: i1, %b: i1) -> (i1, i1, i1, i1, i1, i1) {
  %s = arith.addi %a, %b : i1
  %d = arith.subi %a, %b : i1
  %p = arith.muli %a, %b : i1
  %l = arith.cmpi slt, %a, %b : i1
  %m = arith.maxsi %a, %b : i1
  %u = arith.maxui %a, %b : i1
  func.return %s, %d, %p, %l, %m, %u : i1, i1, i1, i1, i1, i1
}"""
    for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        s, d, p, less, m, u = map(bool, run(text, np.bool_(a), np.bool_(b)))
        assert (s, d, p) == (bool(a ^ b), bool(a ^ b), bool(a & b))
        assert (less, m, u) == (-a < -b, bool(max(-a, -b)), bool(max(a, b)))


@pytest.mark.parametrize("type", [f16, bf16, f32, f64], ids=str)
def test_constants_print_and_parse_to_the_bit(type: Any) -> None:
    values = specials(type)
    out = module()
    f = function("f", [])
    out.body.block.insert(f)
    with at_end(f.block):
        whole = arith.Constant(values, VectorType(values.shape, type)).result
        Return((*(constant(v.item(), type) for v in values), whole))
    f.update_type()
    for generic in (False, True):
        *scalars, array = Interpreter(parse_module(to_text(out, generic=generic))).call("f", [])
        assert np.array(scalars, values.dtype).tobytes() == values.tobytes()
        assert np.asarray(array).tobytes() == values.tobytes()
    verify_text(to_text(out, generic=True))


def test_zeros_of_both_signs_stay_apart() -> None:
    text = "func.func @f() -> vector<2xf32> {\n  %v = arith.constant dense<[0.0, -0.0]> : vector<2xf32>\n" \
           "  func.return %v : vector<2xf32>\n}"
    assert np.signbit(run(text)[0]).tolist() == [False, True]


@pytest.mark.filterwarnings("error")
def test_a_number_beyond_the_largest_one_is_infinite() -> None:
    op = arith.Constant.make([], {"value": 1e39}, [VectorType((2,), f32)])
    assert op.ref().tolist() == [np.inf, np.inf] and "0x7F800000" in str(op)


# -- text -------------------------------------------------------------------------------------------------------------
def test_a_declaration_has_no_body() -> None:
    text = 'llvm.func @g(!llvm.ptr) -> i32\n'
    for generic in (False, True):
        found = parsed(to_text(parsed(text), generic=generic)).regions[0].block.first
        assert isinstance(found, Op) and not found.regions[0].blocks
    with pytest.raises(IRError, match="only declared"):
        Interpreter(parsed(text + "llvm.func @f(%p: !llvm.ptr) -> i32 {\n  %r = llvm.call @g(%p) : (!llvm.ptr) -> i32\n"
                                  "  llvm.return %r : i32\n}")).call("f", [llvm.NULL])


def test_an_else_region_may_be_missing() -> None:
    """Upstream writes a condition without a second branch with an empty region."""
    text = '''
"func.func"() <{function_type = (i1, memref<f32>, f32) -> (), sym_name = "f"}> ({
^bb0(%c: i1, %m: memref<f32>, %x: f32):
  "scf.if"(%c) ({
    "memref.store"(%x, %m) : (f32, memref<f32>) -> ()
    "scf.yield"() : () -> ()
  }, {
  }) : (i1) -> ()
  "func.return"() : () -> ()
}) : () -> ()'''
    verify_text(text)
    memory = np.zeros((), np.float32)
    run(text, np.bool_(False), memory, np.float32(2))
    assert memory == 0
    run(text, np.bool_(True), memory, np.float32(2))
    assert memory == 2
    verify_text(to_text(parsed(text), generic=True))


def test_elements_of_every_type_parse() -> None:
    for type in ("memref<?x4xindex>", "vector<8xindex>", "memref<2x?xbf16, strided<[?, 1], offset: ?>>"):
        text = f"func.func @f(%x: {type}) {{\n  func.return\n}}"
        assert type in to_text(parsed(text))
    addresses = "llvm.func @f(%x: vector<8x!llvm.ptr>) {\n  llvm.return\n}"
    assert "vector<8x!llvm.ptr>" in to_text(parsed(addresses))
