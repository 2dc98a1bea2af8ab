"""scf_to_llvm and emit_llvm: the low level, the llvm dialect and native code write the same bits."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mlc.backends.cpu.targets import LEVELS, host
from mlc.backends.emit_llvm import emit
from mlc.backends.object_code import assembly
from mlc.backends.target import Target
from mlc.dialects.llvm import Func, heap
from mlc.ir.diag import BackendError
from mlc.ir.interp import Interpreter
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline, parse_pipeline
from mlc.ir.printer import to_text
from mlc.ir.verify import verify
from tests.arrays import difference
from tests.low_corpus import PROGRAMS, stored
from tests.low_ops import WIDTHS, Case, build_module, call_arguments, cases, casts_of_signed, operation, two_widths
from tests.low_programs import ENDS, TARGETS, Program, compiled, lowered, parsed
from tests.public_case import thinned

OPERATIONS = {op: list(group) for op, group in itertools.groupby(cases(), key=lambda c: operation(c[0]))}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, calls = PROGRAMS[name]
    program = Program(text)
    for args in calls:
        program.check("main", args)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_however_optimised(name: str) -> None:
    text, calls = PROGRAMS[name]
    program = Program(text, TARGETS, opt_levels=(0, 1, 2, 3))
    for args in calls:
        program.check("main", args, slow=False)


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_levels_print_and_parse(name: str) -> None:
    low = parsed(PROGRAMS[name][0])
    for module in (low, lowered(low)):
        pretty = to_text(module)
        for options in ({}, {"generic": True}, {"locations": True}, {"generic": True, "locations": True}):
            text = to_text(module, **options)
            again = parse_module(text)
            verify(again)
            assert to_text(again, **options) == text
            assert to_text(again) == pretty


def _sweep(group: list[Case], count: int, targets: Sequence[Target] = TARGETS,
           widths: Callable[[int], Sequence[int]] = lambda i: WIDTHS) -> None:
    """Apply every operation of a group to special and random values."""
    program = Program(build_module(group, widths), targets)
    for i, case in enumerate(group):
        n, *arrays = call_arguments(case)
        chosen = np.random.default_rng(1).permutation(n)[:count]
        args = [len(chosen), *(a[chosen] for a in arrays)]
        for width in widths(i):
            program.check(f"{case[0]}_{width}", args, slow=width in (0, 16))


@pytest.mark.parametrize("op", [*thinned([op for op in OPERATIONS if op != "arith.remf"], 3), "arith.remf"])
def test_operation(op: str) -> None:
    """On the least of all targets and on the greatest in turn; the remainder has code of its own."""
    group, turn = OPERATIONS[op], list(OPERATIONS).index(op) % len(ENDS)
    _sweep(group[::6] if op in ("arith.cmpf", "arith.cmpi") else group,
           60, ENDS[turn: turn + 1], two_widths)


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATIONS)
def test_operation_on_all_special_values(op: str) -> None:
    _sweep(OPERATIONS[op], 300 if op == "arith.remf" else 1800)


@pytest.mark.parametrize("level", [t for t in TARGETS if t != host()], ids=str)
def test_no_cast_of_a_signed_number_is_a_call(level: Target) -> None:
    """LLVM casts the number that gives the sign from its own type, which no instruction may do."""
    _sweep(list(casts_of_signed()), 60, [level], two_widths)


# -- entries ----------------------------------------------------------------------------------------------------------
ENTRY = stored("entry")


class _Call:
    """The memory of one call of an entry, and what came of it."""

    def __init__(self, B: int, capacity: int, negative: bool = False) -> None:
        self.x = np.arange(2 * B, dtype=np.float32).reshape(B, 2)
        if negative:
            self.x[B - 1, 1] = -1
        self.w = np.zeros(2 * B + 1, np.float32)
        self.half = np.zeros(B // 2, np.float32)
        self.y = np.zeros(B, np.float32)
        self.arena = np.zeros(max(capacity, 8), np.int8)
        self.ctx = np.array([self.arena.ctypes.data, capacity, 99, 5], np.int64)
        self.args = np.array([self.x.ctypes.data, self.w.ctypes.data], np.int64)
        self.results = np.array([self.half.ctypes.data, 0, self.y.ctypes.data], np.int64)
        self.sizes = np.array([B], np.int64)

    @property
    def pointers(self) -> list[Any]:
        return [self.ctx, self.args, self.sizes, self.results]

    def interpret(self, module: Any) -> int:
        interpreter = Interpreter(module)
        memory = heap(interpreter)
        for array in (self.x, self.w, self.half, self.y, self.arena):
            memory.pointer(array)
        status, = interpreter.call("f_entry", [memory.pointer(p) for p in self.pointers])
        return int(status)

    def native(self, library: Any) -> int:
        entry = library.function("f_entry", ctypes.c_int32, [ctypes.c_void_p] * 4)
        return int(entry(*(p.ctypes.data for p in self.pointers)))


@pytest.mark.parametrize("way", ["llvm", "native"])
def test_entry(way: str) -> None:
    module = lowered(parsed(ENTRY))
    library = compiled(module, ["f_entry"], host())

    def run(call: _Call) -> int:
        return call.interpret(module) if way == "llvm" else call.native(library)

    call = _Call(5, 40)
    assert run(call) == 0
    assert call.ctx[2:].tolist() == [40, -1]
    assert call.y.tolist() == call.x[:, 1].tolist() == call.w[:5].tolist()
    assert call.half.tolist() == [13.0, 13.0]                # 5 // 2 + 2 * 5 + 1

    call = _Call(5, 39)
    assert run(call) == 1
    assert call.ctx[2] == 40
    assert not call.y.any()

    call = _Call(3, 24, negative=True)
    assert run(call) == 2
    assert call.ctx[3] == 2                     # element 2 of site 0

    call = _Call(0, 0)
    assert run(call) == 0


def test_entry_is_the_only_name_of_a_module() -> None:
    linkage = {op.sym_name: op.linkage for op in lowered(parsed(ENTRY)).walk() if isinstance(op, Func)}
    assert linkage == {"f": "internal", "f_arena_bytes": "internal", "f_entry": "external"}


# -- what is kept and what is refused ---------------------------------------------------------------------------------
def test_locations_are_kept() -> None:
    low = parsed(PROGRAMS["matmul"][0])
    lines = {op.loc.line for op in low.walk() if op.name in ("math.fma", "memref.store")}
    made = {op.loc.line: op.loc.via for op in lowered(low).walk() if op.name in ("llvm.intr.fma", "llvm.store")}
    assert set(made) == lines
    assert set(made.values()) == {("scf_to_llvm",)}


@pytest.mark.parametrize(("body", "message", "code"), [
    ("%m = memref.alloca(%n) : memref<?xf32>", "stack memory must have a static size", "MLC0543"),
    ("%b = memref.view %a[%n][] : memref<?xi8> to memref<4xi1>\n %v = memref.load %b[%n] : memref<4xi1>",
     "i1 has no place in memory", "MLC0542"),
    ("%v = arith.constant dense<0.0> : vector<2x4xf32>\n %e = vector.extract %v[%n, 1] : f32 from vector<2x4xf32>",
     "only the last index of a position", "MLC0544"),
])
def test_refusals(body: str, message: str, code: str) -> None:
    module = parsed(f"func.func @f(%n: index, %a: memref<?xi8>) {{\n {body}\n func.return\n}}")
    with pytest.raises(BackendError, match=message) as caught:
        lowered(module)
    assert caught.value.code == code
    assert caught.value.loc.line in (2, 3)


def test_no_row() -> None:
    module = parsed("func.func @f() {\n  func.return\n}")
    with pytest.raises(BackendError, match=r"func.func cannot be written as LLVM IR"):
        emit(module, host())


# -- instructions -----------------------------------------------------------------------------------------------------
def _assembly(body: str, level: str) -> str:
    module = lowered(parsed(f"func.func @f(%x: memref<16xf32>, %y: memref<16xf32>) {{\n{body}\n func.return\n}}"))
    return assembly(emit(module, LEVELS[level]), LEVELS[level])


def test_products_and_sums_are_not_contracted() -> None:
    text = """%c0 = arith.constant 0 : index
      %a = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
      %b = vector.load %y[%c0] : memref<16xf32>, vector<16xf32>
      %p = arith.mulf %a, %b : vector<16xf32>
      %s = arith.addf %p, %b : vector<16xf32>
      vector.store %s, %y[%c0] : memref<16xf32>, vector<16xf32>"""
    assert "vfmadd" not in _assembly(text, "x86-64-v4")
    fused = text.replace("%s = arith.addf %p, %b : vector", "%s = math.fma %a, %b, %p : vector")
    assert "vfmadd" in _assembly(fused, "x86-64-v4")
    assert "zmm" in _assembly(text, "x86-64-v4")
    assert "zmm" not in _assembly(text, "x86-64-v3")


def test_masks_become_mask_registers() -> None:
    text = """%c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<16xf32>
      %zero = arith.constant dense<0.0> : vector<16xf32>
      %one = arith.constant 5 : index
      %m = vector.create_mask %one : vector<16xi1>
      %a = vector.maskedload %x[%c0], %m, %zero : memref<16xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      vector.maskedstore %y[%c0], %m, %a : memref<16xf32>, vector<16xi1>, vector<16xf32>"""
    assert "{%k1}" in _assembly(text, "x86-64-v4")


def test_masks_of_more_lanes_than_32_bits_count() -> None:
    module = parse_module("""
func.func @f(%n: index) -> i8 {
  %m = vector.create_mask %n : vector<8xi1>
  %one = arith.constant dense<1> : vector<8xi8>
  %zero = arith.constant dense<0> : vector<8xi8>
  %v = arith.select %m, %one, %zero : vector<8xi1>, vector<8xi8>
  %s = vector.reduction <add>, %v : vector<8xi8> into i8
  func.return %s : i8
}""")
    Pipeline(parse_pipeline("scf-to-llvm")).run(module)
    for n, lanes in ((-(1 << 32) + 3, 0), (-1, 0), (3, 3), ((1 << 32) + 2, 8), ((1 << 63) - 1, 8)):
        assert Interpreter(module).call("f", [np.int64(n)]) == [lanes]


def test_one_block_entered_twice_from_another() -> None:
    """LLVM's phi knows one value per predecessor: the second edge gets a block of its own."""
    text = """
llvm.func @f(%c: i1, %n: i32) -> i32 {
  %1 = llvm.mlir.constant(1 : i32) : i32
  %2 = llvm.mlir.constant(2 : i32) : i32
  llvm.cond_br %c, ^a(%1 : i32), ^a(%2 : i32)
^a(%x: i32):
  llvm.switch %n : i32, ^b(%x : i32) [7: ^b(%1 : i32), 8: ^b(%2 : i32), -1: ^c]
^b(%y: i32):
  %s = llvm.add %x, %y : i32
  llvm.return %s : i32
^c:
  llvm.return %n : i32
}"""
    module = parsed(text)
    call = compiled(module, ["f"], host()).function("f", ctypes.c_int32, [ctypes.c_bool, ctypes.c_int32])
    for c, n in itertools.product((False, True), (7, 8, -1, 0)):
        want, = Interpreter(module).call("f", [np.bool_(c), np.int32(n)])
        x = 1 if c else 2
        assert call(c, n) == want == {7: x + 1, 8: x + 2, -1: -1, 0: 2 * x}[n]


def test_constants_keep_their_bits() -> None:
    values = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 0x00000001, 0x7F800000, 0x3DCCCCCD], np.uint32)
    text = "".join(f"  %v{i} = arith.constant 0x{v:08X} : f32\n  %i{i} = arith.constant {i} : index\n"
                   f"  memref.store %v{i}, %y[%i{i}] : memref<6xf32>\n" for i, v in enumerate(values))
    module = parsed(f"func.func @f(%y: memref<6xf32>) {{\n{text}  func.return\n}}")
    out = np.zeros(6, np.float32)
    compiled(lowered(module), ["f"], host()).function("f", None, [ctypes.c_void_p])(out.ctypes.data)
    assert difference(out, values.view(np.float32), "bits") is None
    assert out.view(np.uint32).tolist() == values.tolist()
