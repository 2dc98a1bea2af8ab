"""The IR itself: uses, clones, sizes, locations, the verifier, and a parser that is robust against any text."""
from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlc.dialects import arith, func
from mlc.dialects.builtin import Module
from mlc.dialects.builtin import module as empty_module
from mlc.dialects.func import Func
from mlc.ir import sizes
from mlc.ir.affine_syntax import parse_size
from mlc.ir.core import REGISTRY, Block, Op, Region, Symbol, Value, after, at_end, before, builder
from mlc.ir.diag import MOST_FUSED, Error, IRError, Loc, ParseError, UserError
from mlc.ir.parser import parse_file, parse_module
from mlc.ir.printer import loc_text, to_text
from mlc.ir.sizes import Dim, sym
from mlc.ir.symbols import lookup
from mlc.ir.types import (
    FunctionType,
    TensorType,
    Type,
    bind_symbols,
    f32,
    f64,
    from_numpy,
    i1,
    i32,
    substitute,
    to_numpy,
)
from mlc.ir.verify import immediate_dominators, verify
from mlc.tools.fuzzing.texts import mutated

HERE = Loc("model.py", 3, 5)


def chain(count: int = 4) -> tuple[Module, Func]:
    """A module of one function: x + x, then that plus itself, and so on."""
    module, f = empty_module(), func.function("f", [i32], ["x"])
    module.body.block.insert(f)
    with at_end(f.block, HERE):
        value = f.args[0]
        for _ in range(count):
            value = arith.AddI(value, value).result
        func.Return((value,))
    f.update_type()
    verify(module)
    return module, f


def check_links(root: Op) -> None:
    """Every operand knows its use, every use is an operand, and blocks are lists in both directions."""
    for op in root.walk():
        for i, value in enumerate(op.operands):
            assert (op, i) in value.uses
        for r in op.results:
            for user, i in r.uses:
                assert user.operands[i] is r
        for region in op.regions:
            assert region.parent is op
            for block in region.blocks:
                assert block.region is region
                ops = block.ops
                assert [o.prev for o in ops] == [None, *ops][:len(ops)]
                assert all(o.parent is block for o in ops) and block.last is (ops[-1] if ops else None)


# -- uses, insertion, erasing, cloning ---------------------------------------------------------------------------------
def test_use_lists_are_updated_by_every_mutation() -> None:
    module, f = chain(3)
    a, b, c = (op.results[0] for op in f.block.ops[:3])
    assert list(a.uses) == [(b.op, 0), (b.op, 1)] and a.users == [b.op]
    b.op.set_operand(1, f.args[0])
    check_links(module)
    c.op.set_operands([a, a])
    assert not b.uses and len(a.users) == 2
    b.op.erase()
    check_links(module)
    a.replace_by(f.args[0])
    assert not a.uses
    check_links(module)
    verify(module)


def test_replace_by_transfers_the_name_and_all_uses() -> None:
    module, f = chain(2)
    first = f.block.ops[0]
    first.results[0].name = "twice"
    with before(first):
        made = arith.MulI(f.args[0], arith.constant(2, i32)).result
    first.replace_by(made)
    assert made.name == "twice"
    assert [op.loc for op in f.block][:2] == [HERE, HERE]
    verify(module)


def test_erasing_a_used_operation_is_an_error() -> None:
    _, f = chain(2)
    with pytest.raises(AssertionError, match=r"erasing arith\.addi, whose result is used"):
        f.block.ops[0].erase()


def test_erasing_an_operation_erases_its_regions() -> None:
    module, f = chain(3)
    inside = f.block.ops
    f.erase()
    assert len(module.body.block) == 0 and all(op.parent is None and op.operands == [] for op in inside)
    assert not f.args[0].uses


def test_insertion_points() -> None:
    _, f = chain(1)
    op = f.block.ops[0]
    with after(op):
        last = arith.constant(1, i32)
        with before(op):
            first = arith.constant(2, i32)
        also_last = arith.constant(3, i32)
    assert [o.results[0] for o in f.block.ops[:4]] == [first, op.results[0], last, also_last]
    assert builder.block is None


def test_a_block_may_be_modified_during_a_walk() -> None:
    _, f = chain(4)
    seen = []
    for op in f.block:
        seen.append(op.name)
        if op.name == "arith.addi" and len(seen) == 1:
            with after(op):
                arith.constant(0, i32)
        if op.name == "arith.constant":
            op.erase()
    assert seen == ["arith.addi", "arith.constant", "arith.addi", "arith.addi", "arith.addi", "func.return"]


def test_a_clone_shares_nothing_but_the_location() -> None:
    module, _ = chain(3)
    text = to_text(module, locations=True)
    copy = module.clone()
    assert to_text(copy, locations=True) == text
    check_links(copy)
    verify(copy)
    originals = set(module.walk())
    assert not originals & set(copy.walk())
    next(copy.inside(Func)).erase()
    assert to_text(module, locations=True) == text
    verify(module)


def test_clone_remaps_values_across_blocks() -> None:
    module = parse_module(BRANCHES)
    copy = module.clone()
    verify(copy)
    assert to_text(copy) == to_text(module)


def test_clone_substitutes_sizes() -> None:
    module = parse_module("""
      func.func @f(%x: tensor<Bx4xf32>) -> tensor<Bx4xf32> attributes {rows = 2} {
        func.return %x : tensor<Bx4xf32>
      }""")
    copy = module.clone(env={"B": sym("N") * 2})
    verify(copy)
    assert "tensor<(2*N)x4xf32>" in to_text(copy) and "B" not in to_text(copy)


def test_building_an_ill_typed_operation_is_an_error() -> None:
    _, f = chain(1)
    with at_end(f.block), pytest.raises(IRError) as caught:
        arith.AddI(f.args[0], arith.constant(1.0, f32))
    assert caught.value.code == "MLC0109" and caught.value.loc.file.endswith("test_ir.py")
    with pytest.raises(TypeError, match="has no field wrong"):
        arith.AddI(f.args[0], f.args[0], wrong=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="needs rhs"):
        arith.AddI(f.args[0])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="not an IR value"):
        arith.AddI(f.args[0], 3)  # type: ignore[arg-type]


def test_attributes_are_read_and_set_as_fields() -> None:
    op = arith.Constant(3, i32)
    assert (op.value, op.type) == (3, i32)
    op.value = 4
    assert op.attrs["value"] == 4
    with pytest.raises(AttributeError, match="not an attribute"):
        op.type = f32


# -- sizes -------------------------------------------------------------------------------------------------------------
NAMES = ("A", "B", "C")
Pair = tuple[Dim, Callable[[dict[str, int]], int]]
"""A size, and how to compute the same from numbers without it."""


def sum_of(a: Pair, b: Pair) -> Pair:
    return a[0] + b[0], lambda env: a[1](env) + b[1](env)


def difference_of(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0], lambda env: a[1](env) - b[1](env)


def product_of(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0], lambda env: a[1](env) * b[1](env)


def quotient_of(a: Pair, b: Pair) -> Pair:
    positive = b[0] * b[0] + 1, lambda env: b[1](env) ** 2 + 1
    return sizes.divide(a[0], positive[0]), lambda env: a[1](env) // positive[1](env)


def rest_of(a: Pair, b: Pair) -> Pair:
    positive = b[0] * b[0] + 1, lambda env: b[1](env) ** 2 + 1
    return sizes.modulo(a[0], positive[0]), lambda env: a[1](env) % positive[1](env)


def by_constant(a: Pair, k: int) -> Pair:
    return sizes.divide(a[0], k), lambda env: a[1](env) // k


def rest_by_constant(a: Pair, k: int) -> Pair:
    return sizes.modulo(a[0], k), lambda env: a[1](env) % k


def leaf_symbol(name: str) -> Pair:
    return sym(name), lambda env: env[name]


def leaf_number(n: int) -> Pair:
    return n, lambda env: n


def deeper(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    two = st.tuples(inner, inner)
    small = st.tuples(inner, st.integers(1, 6))
    return st.one_of(two.map(lambda t: sum_of(*t)), two.map(lambda t: difference_of(*t)),
                     two.map(lambda t: product_of(*t)), two.map(lambda t: quotient_of(*t)),
                     two.map(lambda t: rest_of(*t)), small.map(lambda t: by_constant(*t)),
                     small.map(lambda t: rest_by_constant(*t)))


PAIRS = st.recursive(st.one_of(st.sampled_from(NAMES).map(leaf_symbol), st.integers(-5, 5).map(leaf_number)), deeper,
                     max_leaves=6)
ENVS = st.fixed_dictionaries({name: st.integers(0, 9) for name in NAMES})


@pytest.mark.parametrize("shape", [(7,), (5, 7), (3, 5, 7), (2, 3, 5, 7), "HW", "BHW", (4, "H", 7)])
def test_delinearized_index_simplifies_to_the_linear_index(shape: Any) -> None:
    dims = [sizes.sym(n) if isinstance(n, str) else n for n in shape]
    x: sizes.Dim = sizes.sym("d0")
    rest, place = x, 0 * x
    at: list[sizes.Dim] = []
    for n in reversed(dims[1:]):
        at.insert(0, rest % n)
        rest = rest // n
    for i, n in zip([rest, *at], dims):
        place = place * n + i
    assert sizes.joined(place) == x
    assert sizes.joined(place + 3 * sizes.sym("d1")) == x + 3 * sizes.sym("d1")
    if len(dims) > 2:                                      # of all but the first coordinate
        inner = sizes.product(dims[1:])
        assert sizes.joined(place - rest * inner) == x % inner


@given(PAIRS, ENVS)
@settings(max_examples=300, deadline=None)
def test_symbolic_arithmetic_agrees_with_integers(pair: Pair, env: dict[str, int]) -> None:
    size, number = pair
    assert sizes.evaluate(size, env) == number(env)
    assert parse_size(str(size)) == size
    assert sizes.substitute(size, {}) == size
    assert sizes.symbols(size) <= set(NAMES)
    assert sizes.evaluate(sizes.joined(size), env) == number(env)
    half = {name: env[name] for name in NAMES[:2]}
    assert sizes.evaluate(sizes.substitute(size, half), env) == number(env)


@given(PAIRS, PAIRS, PAIRS)
@settings(max_examples=200, deadline=None)
def test_equal_polynomials_have_one_normal_form(a: Pair, b: Pair, c: Pair) -> None:
    x, y, z = a[0], b[0], c[0]
    assert x + y == y + x and x * y == y * x
    assert (x + y) + z == x + (y + z) and (x * y) * z == x * (y * z)
    assert x * (y + z) == x * y + x * z
    assert x - x == 0 and x + 0 == x and x * 1 == x and x * 0 == 0
    assert hash(x + y) == hash(y + x)
    assert (x == y) is not (x != y)


def test_floordiv_and_mod_simplify_exact_multiples() -> None:
    b, c = sym("B"), sym("C")
    assert (4 * b) // 4 == b and (4 * b) % 4 == 0
    assert (4 * b + 6) // 4 == b + 1 and (4 * b + 6) % 4 == 2
    assert (b * c) // b == c and (b * c + b) // b == c + 1 and (b * c) % c == 0
    assert (4 * b + c) // 4 == b + c // 4 and (4 * b + c) % 4 == c % 4
    assert b // 1 == b and b % 1 == 0 and (b + c) // (b + c) == 1 and (b + c) % (c + b) == 0
    assert str((b + 1) // 2) == "((B + 1) floordiv 2)" and str(b * b - c) == "B*B - C"


@pytest.mark.parametrize("text", ["", "B +", "* B", "(B", "B)", "B // 2", "1.5", "B floordiv 0", "B mod 0", "B B", "é#",
                                  "(" * 500 + "B" + ")" * 500, "-" * 500 + "B", "B+" * 2000 + "B"])
def test_a_bad_size_is_a_parse_error(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_size(text)
    assert caught.value.code in ("MLC0204", "MLC0205")


def test_symbolic_sizes_of_exponential_length_are_refused() -> None:
    """Sizes of exponential length are refused with a location before memory is spent on them."""
    n, m = sym("N"), sym("M")
    squares: list[Dim] = [n]
    halves: list[Dim] = [n]
    nested: list[Dim] = [n]
    with pytest.raises(UserError, match=r"test_ir.py:\d+: error\[MLC0450\].*a power of more than 64"):
        while True:
            squares.append(squares[-1] * squares[-1])
    with pytest.raises(UserError, match=r"MLC0450.*4096 symbols"):
        while True:
            halves.append((halves[-1] + 1) // 2 + (halves[-1] + 2) // 3)
    with pytest.raises(UserError, match=r"MLC0450.*64 nested divisions"):
        while True:
            nested.append((nested[-1] + 1) // 2)
    assert len(squares) == 7 and len(nested) == 65 and len(halves) < 20
    with pytest.raises(UserError, match=r"MLC0450.*terms"):
        sizes.product(sym(f"A{i}") + sym(f"B{i}") for i in range(40))
    assert len(str(sizes.product([n + m] * 64))) < 10_000              # 65 terms


def test_symbols_are_bound_by_the_types_of_arguments() -> None:
    b, n = sym("B"), sym("N")
    env = bind_symbols([TensorType((b * 2, 4), f32), TensorType((b,), f32)],
                       [TensorType((n * 2 + 2, 4), f32), TensorType((n + 1,), f32)])
    assert env == {"B": n + 1}
    assert substitute(FunctionType((TensorType((b,), f32),), (f32,)), env) == FunctionType(
        (TensorType((n + 1,), f32),), (f32,))
    for wrong in ([TensorType((6, 4), f32), TensorType((4,), f32)], [TensorType((8, 4), f64), TensorType((4,), f32)],
                  [TensorType((8, 4), f32)], [TensorType((8, 4), f32), f32]):
        with pytest.raises(IRError) as caught:
            bind_symbols([TensorType((b * 2, 4), f32), TensorType((b,), f32)], wrong)
        assert caught.value.code == "MLC0120"


def test_element_types_and_numpy() -> None:
    for dtype in (np.bool_, np.int8, np.uint16, np.float16, np.float64, np.complex64, ">c16", ">f4"):
        assert to_numpy(from_numpy(np.dtype(dtype))) == np.dtype(dtype).newbyteorder("=")
    with pytest.raises(IRError, match="timedelta64") as caught:
        from_numpy(np.dtype(np.timedelta64))
    assert caught.value.code == "MLC0110"


# -- locations and text ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loc", [Loc("", 0), Loc("m.py", 3, 7), Loc('a "b"\n\\é.py', 1, 1),
                                 Loc("m.py", 3, 7, ("grad",)), Loc("m.py", 3, 7, ("grad", "canonicalize/fold")),
                                 Loc("m.py", 3, 7, ("grad",), (Loc("m.py", 4, 1), Loc("n.py", 1, 2, ("inline",))))])
def test_locations_print_and_parse(loc: Loc) -> None:
    module, f = chain(1)
    f.block.ops[0].loc = loc
    for generic in (False, True):
        again = parse_module(to_text(module, generic=generic, locations=True))
        read = next(again.inside(arith.AddI)).loc
        assert read == loc and loc_text(read) == loc_text(loc)


def test_a_location_names_a_pass_once_in_a_row() -> None:
    assert HERE.through("a").through("a").through("b").through("a").via == ("a", "b", "a")
    assert str(HERE.through("a")) == "model.py:3:5" and str(Loc("", 0)) == "<unknown>"


def test_fused_locations_are_distinct_known_and_few() -> None:
    other = Loc("model.py", 9)
    fused = HERE.with_fused(other).with_fused(other).with_fused(HERE).with_fused(Loc("", 0))
    assert fused.fused == (other,) and fused.through("a").fused == (other,)
    assert HERE.with_fused(Loc("model.py", 7).with_fused(other)).fused == (Loc("model.py", 7), other)
    for line in range(100):
        fused = fused.with_fused(Loc("model.py", line))
    assert len(fused.fused) == MOST_FUSED


BRANCHES = """
func.func @f(%x: i32, %c: i1) -> i32 {
  test_ir.jump ^bb2, ^bb1
^bb1:
  %b = arith.addi %x, %x : i32
  test_ir.jump ^bb2
^bb2:
  func.return %x : i32
}
"""
MODULES = {
    "scalars": """
module attributes {note = "x\\0A\\22", list = [1, 2.5, true, @f, "s", [], {a = 1}], kind = f32} {
  func.func private @g(%x: tensor<Bx4xf32>, %i: index) -> (tensor<Bx4xf32>, index) attributes {donate = [0]} {
    %c = arith.constant 3 : index
    %j = arith.addi %i, %c : index
    func.return %x, %j : tensor<Bx4xf32>, index
  }
  func.func @f(%x: tensor<Bx4xf32>, %i: index) -> tensor<Bx4xf32> {
    %0:2 = func.call @g(%x, %i) : (tensor<Bx4xf32>, index) -> (tensor<Bx4xf32>, index)
    %1 = arith.cmpi slt, %0#1, %i : index
    %2 = arith.select %1, %i, %0#1 : index
    func.return %0#0 : tensor<Bx4xf32>
  }
}
""",
    "vectors": """
func.func @"strange name"(%x: f32, %v: vector<4xf32>, %m: memref<?x4xf32, strided<[4, 1], offset: ?>>) -> f32 {
  %0 = arith.constant 0x7FC00000 : f32
  %1 = arith.addf %x, %0 : f32
  %2 = arith.constant dense<[1.0, 2.0, -0.0, 0xFF800000]> : vector<4xf32>
  %3 = arith.addf %v, %2 : vector<4xf32>
  %4 = arith.cmpf olt, %x, %0 : f32
  func.return %1 : f32
}
""",
    "tensors": """
func.func @f(%x: tensor<Bx3xf32>, %w: tensor<3x(2*B+1)xf32>) -> tensor<(2*B+1)xf32> {
  %c = tensor.full 2.0 : tensor<f32>
  %0 = tensor.mul %x, %c : (tensor<Bx3xf32>, tensor<f32>) -> tensor<Bx3xf32>
  %1 = tensor.exp %0 : tensor<Bx3xf32>
  %2 = tensor.reduce_sum %w {axes = [0]} : (tensor<3x(2*B+1)xf32>) -> tensor<(2*B+1)xf32>
  func.return %2 : tensor<(2*B+1)xf32>
}
""",
}


@pytest.mark.parametrize("name", MODULES)
def test_print_parse_print_is_a_fixpoint(name: str) -> None:
    module = parse_module(MODULES[name])
    verify(module)
    for generic in (False, True):
        text = to_text(module, generic)
        again = parse_module(text)
        verify(again)
        assert to_text(again, generic) == text
        assert to_text(again, not generic) == to_text(module, not generic)


# -- hostile text ------------------------------------------------------------------------------------------------------
def returning(body: str, type: str = "f32") -> str:
    return f"func.func @f(%x: {type}) -> {type} {{\n{body}\n  func.return %x : {type}\n}}\n"


HOSTILE = {
    "truncated": (returning("")[:30], "MLC0203"),
    "braces": ("{" * 20_000, "MLC0203"),
    "nested modules": ("module {" * 20_000, "MLC0204"),
    "nested types": ("func.func @f(%x: " + "(" * 20_000 + ") {}", "MLC0204"),
    "nested attributes": ("module attributes {a = " + "[" * 20_000 + "} {}", "MLC0204"),
    "nested dictionaries": ("module attributes {a = " + "{a = " * 20_000 + "} {}", "MLC0204"),
    "nested elements": (returning("  %0 = arith.constant dense<" + "[" * 20_000), "MLC0204"),
    "nested locations": (returning("  %0 = arith.constant 1 : i32 loc(" + '"a"(' * 20_000), "MLC0204"),
    "nested sizes": ("func.func @f(%x: tensor<" + "(" * 20_000 + "xf32>) {}", "MLC0206"),
    "a size of 2^20 terms": ("func.func @f(%x: tensor<(" + "*".join(f"(A{i} + B{i})" for i in range(20)) + ")xf32>) {}",
                             "MLC0450"),
    "a size of high power": ("func.func @f(%x: tensor<(" + "*".join("N" * 100) + ")xf32>) {}", "MLC0450"),
    "absurd size": ("func.func @f(%x: tensor<99999999999999999999999xf32>) {}", "MLC0204"),
    "absurd product": ("func.func @f(%x: tensor<1048576x1048576x1048576xf32>) {}", "MLC0204"),
    "many dimensions": ("func.func @f(%x: tensor<" + "1x" * 100 + "f32>) {}", "MLC0204"),
    "huge constant": (returning("  %0 = arith.constant dense<1.0> : vector<99999999999xf32>"), "MLC0204"),
    "long number": (returning(f"  %0 = arith.constant {'9' * 5000} : i32"), "MLC0204"),
    "number too large": (returning("  %0 = arith.constant 300 : i8"), "MLC0109"),
    "bits too many": (returning("  %0 = arith.constant 0x7FC000000 : f32"), "MLC0207"),
    "many results": ("%0:99999 = arith.constant 1 : i32", "MLC0204"),
    "wrong character": (returning("  ;"), "MLC0203"),
    "unclosed string": ('module attributes {a = "x} {}', "MLC0203"),
    "unclosed resources": ("{-# external", "MLC0203"),
    "unknown type": ("func.func @f(%x: i7) {}", "MLC0206"),
    "sizes of an encoding": ("func.func @f(%x: tensor<2xf32, #mlc.enc<{dims = true}>>) {}", "MLC0206"),
    "unknown dialect type": ("func.func @f(%x: !nobody.knows<3>) {}", "MLC0206"),
    "run-time size in a tensor": ("func.func @f(%x: tensor<?xf32>) {}", "MLC0206"),
    "element type": ("func.func @f(%x: tensor<3xtensor<f32>>) {}", "MLC0206"),
    "unknown operation": (returning("  %0 = arith.adf %x, %x : f32"), "MLC0211"),
    "unknown generic operation": ('"no.such"() : () -> ()', "MLC0211"),
    "unknown value": (returning("  %0 = arith.addf %x, %y : f32"), "MLC0208"),
    "unknown block": (returning("  test_ir.jump ^nowhere"), "MLC0208"),
    "defined twice": (returning("  %x = arith.constant 1.0 : f32"), "MLC0210"),
    "too many names": (returning("  %a, %b = arith.constant 1.0 : f32"), "MLC0210"),
    "wrong operand type": (returning("  %0 = func.call @g(%x) : (i32) -> i32"), "MLC0209"),
    "operand count": (returning('  %0 = "arith.addf"(%x) : (f32) -> f32'), "MLC0101"),
    "type count": (returning('  %0 = "arith.addf"(%x, %x) : (f32) -> f32'), "MLC0209"),
    "result type": (returning('  %0 = "arith.addf"(%x, %x) : (f32, f32) -> f64'), "MLC0102"),
    "operand kind": (returning("  %0 = arith.addi %x, %x : f32"), "MLC0109"),
    "missing attribute": (returning('  %0 = "arith.cmpf"(%x, %x) : (f32, f32) -> i1'), "MLC0212"),
    "attribute out of range": (
        returning('  %0 = "arith.cmpf"(%x, %x) <{predicate = 99 : i64}> : (f32, f32) -> i1'), "MLC0101"),
    "attribute given twice": ("module attributes {a = 1, a = 2} {}", "MLC0203"),
    "constant without type": (returning("  %0 = arith.constant 1.0"), "MLC0203"),
    "elements do not fit": (returning("  %0 = arith.constant dense<[1.0, 2.0]> : vector<3xf32>"), "MLC0207"),
    "ragged elements": (returning("  %0 = arith.constant dense<[[1.0], [2.0, 3.0]]> : vector<2x2xf32>"), "MLC0207"),
    "odd hexadecimal": (returning('  %0 = arith.constant dense<"0x123"> : vector<2xf32>'), "MLC0207"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_one_error_with_a_location(name: str) -> None:
    text, code = HOSTILE[name]
    with pytest.raises(IRError) as caught:
        parse_module(text, "hostile.mlir")
    error = caught.value
    assert error.code == code, error
    assert error.loc.file == "hostile.mlir" and 1 <= error.loc.line <= text.count("\n") + 1 and error.loc.col >= 1
    assert str(error).startswith(f"hostile.mlir:{error.loc.line}:{error.loc.col}: error[{code}]: ")


def test_an_error_names_line_and_column() -> None:
    with pytest.raises(ParseError) as caught:
        parse_module("func.func @f(%x: f32) -> f32 {\n  %0 = arith.addf %x, %why : f32\n  func.return %0 : f32\n}")
    assert (caught.value.loc.line, caught.value.loc.col) == (2, 23)
    with pytest.raises(ParseError) as caught:
        parse_module("func.func @f(%x: f32) -> f32 {\n  %0 = arith.adf %x, %x : f32\n}")
    assert caught.value.hint == "did you mean arith.addf?"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "missing.mlir", "MLC0201"), (tmp_path, "MLC0201")):
        with pytest.raises(ParseError) as caught:
            parse_file(path)
        assert caught.value.code == code
    broken = tmp_path / "broken.mlir"
    broken.write_bytes(b"module { \xff }")
    with pytest.raises(ParseError, match="byte 0xff at offset 9") as caught:
        parse_file(broken)
    assert caught.value.code == "MLC0202"
    empty = tmp_path / "empty.mlir"
    empty.write_bytes(b"")
    assert len(parse_file(empty).regions[0].block) == 0


@pytest.mark.parametrize("seed", range(4))
def test_mutated_text_parses_or_is_refused(seed: int) -> None:
    """500 texts a seed: the result is IR that round-trips, or an Error with a location."""
    rng = random.Random(seed)
    corpus = [text for name in MODULES for text in (MODULES[name], to_text(parse_module(MODULES[name]), True))]
    accepted = 0
    for _ in range(500):
        text = mutated(rng, rng.choice(corpus))
        try:
            module = parse_module(text)
            verify(module)
            printed = to_text(module)
            assert to_text(parse_module(printed)) == printed
            accepted += 1
        except Error as error:
            assert re.fullmatch(r"MLC0[12]\d\d", error.code), error
            assert error.loc.line >= 1, f"{error}\n{text}"
            assert str(error)
    assert accepted >= 10


# -- the verifier ------------------------------------------------------------------------------------------------------
def broken(change: Callable[[Module, Func], None]) -> IRError:
    """Diagnostic of the verifier after `change`."""
    module, f = chain(2)
    change(module, f)
    with pytest.raises(IRError) as caught:
        verify(module)
    assert caught.value.loc.file or caught.value.message
    return caught.value


def test_a_use_before_the_definition_is_refused() -> None:
    def change(module: Module, f: Func) -> None:
        first, second = f.block.ops[:2]
        first.set_operand(0, second.results[0])
    assert broken(change).code == "MLC0103"


def test_a_value_of_another_function_is_refused() -> None:
    def change(module: Module, f: Func) -> None:
        other = module.body.block.ops[0].clone()
        other.attrs["sym_name"] = "g"
        module.body.block.insert(other)
        other.regions[0].block.ops[0].set_operand(0, f.args[0])
    assert broken(change).code == "MLC0103"


def test_an_inconsistent_use_list_is_refused() -> None:
    def change(module: Module, f: Func) -> None:
        f.args[0].uses.clear()
    assert broken(change).code == "MLC0107"


def test_a_result_of_another_type_than_inferred_is_refused() -> None:
    def change(module: Module, f: Func) -> None:
        f.block.ops[1].results[0].type = f32
    assert broken(change).code == "MLC0102"


def test_a_block_without_terminator_is_refused() -> None:
    def change(module: Module, f: Func) -> None:
        f.block.terminator.erase()
    assert broken(change).code == "MLC0104"


def test_an_operation_after_the_terminator_is_refused() -> None:
    def change(module: Module, f: Func) -> None:
        with at_end(f.block):
            arith.constant(1, i32)
    assert broken(change).code == "MLC0104"


def test_duplicate_symbols_are_refused() -> None:
    def change(module: Module, f: Func) -> None:
        module.body.block.insert(f.clone())
    assert broken(change).code == "MLC0105"


def test_a_call_of_an_undefined_function_is_refused() -> None:
    def change(module: Module, f: Func) -> None:
        with before(f.block.terminator, HERE):
            func.Call(Symbol("g"), (), ())
    assert broken(change).code == "MLC0106"


def test_a_function_type_that_contradicts_the_body_is_refused() -> None:
    def change(module: Module, f: Func) -> None:
        f.function_type = FunctionType((f32,), (i32,))
    assert broken(change).code == "MLC0108"

    def returns(module: Module, f: Func) -> None:
        f.function_type = FunctionType((i32,), (f32,))
    assert broken(returns).code == "MLC0108"


@pytest.mark.parametrize("donated", [(1,), (-1,), (0, 0), (0.0,), 0])
def test_donated_arguments_out_of_range_are_refused(donated: object) -> None:
    def change(module: Module, f: Func) -> None:
        f.attrs["donate"] = donated
    assert broken(change).code == "MLC0116"


@pytest.mark.parametrize("inputs, results", [((f32,), (i32,)), ((), (i32,)), ((i32,), (f32,)), ((i32,), ())])
def test_a_call_with_other_types_is_refused(inputs: tuple[Type, ...], results: tuple[Type, ...]) -> None:
    module, _ = chain(1)
    g = func.function("g", inputs)
    module.body.block.insert(g)
    with at_end(g.block, HERE):
        func.Call(Symbol("f"), tuple(g.args), results)
        func.Return(())
    g.update_type()
    with pytest.raises(IRError) as caught:
        verify(module)
    assert caught.value.loc == HERE and caught.value.code == "MLC0120"


def test_a_detached_function_is_verified_without_a_symbol_table() -> None:
    module = parse_module("""func.func @f() -> i64 {
  %0 = func.call @f() : () -> i64
  func.return %0 : i64
}""")
    verify(next(iter(module.regions[0].block)))


def test_a_definition_reaches_the_blocks_that_it_dominates() -> None:
    """entry -> a -> c and entry -> b -> c: the entry's values reach c, those of a do not."""
    entry, a, b, c = Block(), Block(), Block(), Block()
    region = Region(entry, a, b, c)
    for block, successors in ((entry, [a, b]), (a, [c]), (b, [c]), (c, [])):
        block.insert(Jump.make([], {}, [], [], successors))
    tree = immediate_dominators(region)
    assert tree == {entry: None, a: entry, b: entry, c: entry}
    verify_text = BRANCHES.replace("func.return %x", "func.return %b")
    verify(parse_module(BRANCHES))
    with pytest.raises(IRError) as caught:
        verify(parse_module(verify_text))
    assert caught.value.code == "MLC0103"


class Jump(Op, name="test_ir.jump", terminator=True, pure=False):
    """Go to one of several blocks."""

    to: tuple[Block, ...]


del REGISTRY[Jump.name]


@pytest.fixture(autouse=True)
def own_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operation defined here exists while tests of this module run: others walk the registry."""
    monkeypatch.setitem(REGISTRY, Jump.name, Jump)


def test_values_are_described_in_messages_of_invalid_ir() -> None:
    _, f = chain(1)
    op = f.block.ops[0]
    assert "arith.addi" in str(op)
    op.drop_uses()
    assert "arith.addi" in str(op)


def test_operators_build_operations_of_the_type() -> None:
    _, f = chain(1)
    x: Value = f.args[0]
    with before(f.block.ops[0]):
        made = [v.op for v in (x + x, x - x, x * x, 1 + x, x + 1, -x)]
    assert [op.name for op in made if op is not None] == [
        "arith.addi", "arith.subi", "arith.muli", "arith.addi", "arith.addi", "arith.subi"]
    assert i1.is_bool and not i32.is_bool


# -- symbol tables -----------------------------------------------------------------------------------------------------
def test_symbol_lookup_sees_every_change_of_the_module() -> None:
    module = parse_module("func.func @f() { func.return }\nfunc.func @g() { func.return }\n")
    f, g = module.regions[0].block
    assert lookup(module, "f") is f and lookup(module, "g") is g and lookup(module, "h") is None
    f.attrs["sym_name"] = Symbol("h")
    assert lookup(module, "f") is None and lookup(module, "h") is f
    g.erase()
    assert lookup(module, "g") is None


def test_verifying_many_functions_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each function calls another: the symbol table is built a few times in all, not once for each call."""
    count = 300
    text = "".join(f"func.func @f{i}() {{\n  func.call @f{max(i - 1, 0)}() : () -> ()\n  func.return\n}}\n"
                   for i in range(count))
    module = parse_module(text)
    body, read, original = module.regions[0].block, [0], Block.__iter__

    def counted(block: Block) -> Iterator[Op]:
        for op in original(block):
            read[0] += block is body
            yield op

    monkeypatch.setattr(Block, "__iter__", counted)
    verify(module)
    assert read[0] < 10 * count
