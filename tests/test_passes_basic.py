"""Canonicalize, cse, dce, inline, decompose: preserved results, effects on the IR, and compile time."""
from __future__ import annotations

import importlib
import re
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from mlc.dialects import arith, func, tensor
from mlc.dialects.builtin import Module
from mlc.dialects.builtin import module as empty_module
from mlc.ir.core import Op, Value, at_end
from mlc.ir.diag import InternalError, IRError, Loc, UserError
from mlc.ir.interp import run_function
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pass, Pipeline, Step, find_pass, parse_pipeline, pass_names
from mlc.ir.printer import to_text
from mlc.ir.rewrite import RULES, Counters, Rule, apply_rules
from mlc.ir.types import TensorType, f32, i32
from mlc.ir.verify import verify
from mlc.passes import canonicalize
from mlc.passes.analysis.effects import is_pure, pure_functions
from mlc.passes.analysis.structural_key import attribute_key, operation_key
from mlc.passes.forms import DECOMPOSED, FUSED, no_composites
from tests.arrays import difference
from tests.casefile import random_arguments
from tests.timing import COUNTS, assert_linear, seconds_by_count

GENERIC = ("canonicalize", "cse", "dce", "inline")
HERE = Loc("model.py", 3, 5)

PROGRAM = """
func.func private @scale(%x: tensor<Nx4xf32>, %by: tensor<f32>) -> tensor<Nx4xf32> {
  %one = tensor.full 1.0 : tensor<f32>
  %0 = tensor.mul %one, %by : tensor<f32>
  %1 = tensor.mul %x, %0 : (tensor<Nx4xf32>, tensor<f32>) -> tensor<Nx4xf32>
  func.return %1 : tensor<Nx4xf32>
}
func.func private @never(%x: tensor<Nx4xf32>) -> tensor<Nx4xf32> {
  func.return %x : tensor<Nx4xf32>
}
func.func @main(%x: tensor<Bx4xf32>, %w: tensor<4x4xf32>, %c: i1) -> (tensor<Bx4xf32>, tensor<Bxf32>, tensor<Bx4xf32>) {
  %k = tensor.constant dense<[0.5, -0.0, 2.0, 1.0]> : tensor<4xf32>
  %two = tensor.full 2.0 : tensor<f32>
  %four = tensor.mul %two, %two : tensor<f32>
  %0 = tensor.add %x, %k : (tensor<Bx4xf32>, tensor<4xf32>) -> tensor<Bx4xf32>
  %1 = tensor.add %k, %x : (tensor<4xf32>, tensor<Bx4xf32>) -> tensor<Bx4xf32>
  %2 = func.call @scale(%0, %four) : (tensor<Bx4xf32>, tensor<f32>) -> tensor<Bx4xf32>
  %3 = func.call @scale(%1, %four) : (tensor<Bx4xf32>, tensor<f32>) -> tensor<Bx4xf32>
  %4 = tensor.transpose %2 {perm = [1, 0]} : (tensor<Bx4xf32>) -> tensor<4xBxf32>
  %5 = tensor.transpose %4 {perm = [1, 0]} : (tensor<4xBxf32>) -> tensor<Bx4xf32>
  %6 = scf.if %c -> (tensor<Bx4xf32>) {
    %7 = tensor.add %x, %k : (tensor<Bx4xf32>, tensor<4xf32>) -> tensor<Bx4xf32>
    %8 = tensor.sub %7, %5 : tensor<Bx4xf32>
    scf.yield %8 : tensor<Bx4xf32>
  } else {
    scf.yield %3 : tensor<Bx4xf32>
  }
  %9 = tensor.reduce_sum %6 {axes = [1]} : (tensor<Bx4xf32>) -> tensor<Bxf32>
  %10 = tensor.exp %9 : tensor<Bxf32>
  func.return %6, %9, %5 : tensor<Bx4xf32>, tensor<Bxf32>, tensor<Bx4xf32>
}
"""


def same_meaning(before: Op, after: Op, name: str = "main") -> None:
    """@name gives the same bits in both modules, for several sizes."""
    for seed, size in enumerate((3, 1, 0, 7)):
        args = random_arguments(next(f for f in func.functions(before) if f.sym_name == name), seed, {}, (size,))
        for want, got in zip(run_function(before, name, args), run_function(after, name, args), strict=True):
            assert not (message := difference(np.asarray(got), np.asarray(want), "bits")), message


@pytest.mark.parametrize("first", GENERIC)
@pytest.mark.parametrize("second", GENERIC)
def test_rewriting_in_any_order_preserves_results(first: str, second: str) -> None:
    before, after = parse_module(PROGRAM), parse_module(PROGRAM)
    verify(before)
    for name in (first, second, "canonicalize", "cse", "dce"):
        find_pass(name).run(after)
        verify(after)
        same_meaning(before, after)


@pytest.mark.parametrize("name", GENERIC)
def test_passes_are_idempotent(name: str) -> None:
    module = parse_module(PROGRAM)
    find_pass(name).run(module)
    text = to_text(module)
    find_pass(name).run(module)
    assert to_text(module) == text


def test_the_passes_together_leave_only_live_operations() -> None:
    module = parse_module(PROGRAM)
    for name in ("inline", "canonicalize", "cse", "dce"):
        find_pass(name).run(module)
    names = [op.name for op in module.walk()]
    assert names.count("tensor.add") == 1 and names.count("func.func") == 1
    assert not {"func.call", "tensor.exp", "tensor.transpose"} & set(names)


def test_every_pass_documents_its_purpose() -> None:
    for name in pass_names():
        found = find_pass(name)
        assert found.name == name
        text = sys.modules[found.run.__module__].__doc__ or ""
        assert found.summary.endswith("."), name
        for word in ("takes", "gives", "why"):
            assert re.search(rf"^{word}\s", text, re.M), f"{name}: the docstring does not say what it {word}"


# -- canonicalize and the rewriter -------------------------------------------------------------------------------------
def test_every_rule_has_an_equation() -> None:
    parse_module(PROGRAM)
    for rules in RULES.values():
        for rule in rules:
            assert rule.equation and rule.name.isidentifier()


def test_locations_of_rewritten_operations_name_pass_and_rule() -> None:
    module = parse_module("""
      func.func @main(%x: i32) -> i32 {
        %a = arith.constant 1 : i32
        %b = arith.addi %a, %a : i32
        %c = arith.muli %x, %b : i32
        func.return %c : i32
      }""")
    find_pass("canonicalize").run(module)
    made = next(module.inside(arith.Constant))
    assert made.value == 2 and made.loc.via == ("canonicalize/fold",) and made.loc.line == 4


def test_counters_and_the_limit_for_bisection() -> None:
    full = canonicalize.run(parse_module(PROGRAM))
    assert full.total == sum(full.fired.values()) == len(full.log) > 3
    seen = []
    for limit in range(full.total + 1):
        module = parse_module(PROGRAM)
        counters = canonicalize.run(module, limit=limit)
        verify(module)
        assert counters.total == limit and counters.log == full.log[:limit]
        same_meaning(parse_module(PROGRAM), module)
        seen.append(to_text(module))
    assert len(set(seen)) > 3


def test_rules_that_undo_each_other_are_reported() -> None:
    def swap(op: Op) -> bool:
        """a + b == b + a"""
        op.set_operands(op.operands[::-1])
        return True
    module = parse_module("""
      func.func @main(%x: i32, %y: i32) -> i32 {
        %c = arith.addi %x, %y : i32
        func.return %c : i32
      }""")
    with pytest.raises(IRError, match="the rule that fires most is swap") as caught:
        apply_rules(module, "test", lambda cls: [Rule("swap", arith.AddI, swap)] if cls is arith.AddI else [])
    assert caught.value.code == "MLC0142" and caught.value.loc.line == 3


def test_rules_that_change_ieee_values_are_off_unless_asked_for() -> None:
    fast = [rule for rules in RULES.values() for rule in rules if rule.fast]
    module = parse_module(PROGRAM)
    counters = canonicalize.run(module)
    assert not {rule.name for rule in fast} & set(counters.tried)


def test_folding_does_not_create_large_constants() -> None:
    module = parse_module("""
      func.func @main() -> tensor<1000x1000xf32> {
        %a = tensor.full 1.0 : tensor<1000x1xf32>
        %b = tensor.iota {axis = 1} : tensor<1000x1000xf32>
        %c = tensor.add %a, %b : (tensor<1000x1xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
        func.return %c : tensor<1000x1000xf32>
      }""")
    find_pass("canonicalize").run(module)
    assert not list(module.inside(tensor.Constant))


def test_erased_operations_are_removed_from_the_worklist() -> None:
    """A rule removes a region whose operations are still on the worklist."""
    def empty(op: Op) -> list[Value]:
        """if c { ... } == x"""
        return [op.operands[0]]
    module = parse_module("""
      func.func @main(%c: i1, %x: i1) -> i1 {
        %r = scf.if %c -> (i1) {
          %0 = arith.andi %c, %x : i1
          %1 = arith.ori %0, %x : i1
          scf.yield %1 : i1
        } else {
          scf.yield %x : i1
        }
        func.return %r : i1
      }""")
    rules = [Rule("empty", Op, empty)]
    apply_rules(module, "test", lambda cls: rules if cls.name == "scf.if" else [], Counters(),
                lambda op: op.operands[0] if op.name == "arith.andi" and len(op.operands) == 3 else None)
    assert "scf.if" not in to_text(module)
    verify(module)


# -- cse ---------------------------------------------------------------------------------------------------------------
def test_attributes_are_equal_only_if_semantically_equal() -> None:
    different: list[Any] = [1, 1.0, True, -0.0, 0.0, 0, False, "1", (1,), (1.0,), ((1,),), None, float("nan"), {"a": 1},
                            {"a": 1.0}, f32, i32, np.float32(1), np.array(1), np.array([1]),
                            np.array([1], np.int32), np.array([0.0]), np.array([-0.0])]
    keys = [attribute_key(v) for v in different]
    assert len(set(keys)) == len(keys)
    for v in different:
        copy = np.array(v, v.dtype) if isinstance(v, np.ndarray) else v
        assert attribute_key(copy) == attribute_key(v)
    assert attribute_key([1, 2]) == attribute_key((1, 2))


def test_equality_ignores_value_names() -> None:
    module = parse_module("""
      func.func @main(%x: i32) -> (i32, i32) {
        %first = arith.addi %x, %x : i32
        %second = arith.addi %x, %x : i32
        func.return %first, %second : i32, i32
      }""")
    first, second = module.inside(arith.AddI)
    assert operation_key(first) == operation_key(second)


BLOCKS = """
llvm.func @main(%c: i1, %x: i32) -> i32 {
  %a = llvm.add %x, %x : i32
  llvm.cond_br %c, ^bb1, ^bb2
^bb1:
  %b = llvm.add %x, %x : i32
  %d = llvm.mul %b, %b : i32
  llvm.br ^bb3(%d : i32)
^bb2:
  %e = llvm.mul %a, %a : i32
  llvm.br ^bb3(%e : i32)
^bb3(%p: i32):
  %f = llvm.mul %a, %a : i32
  %g = llvm.add %f, %p : i32
  llvm.return %g : i32
}
"""


def test_values_reach_the_blocks_they_dominate_and_no_others() -> None:
    module = parse_module(BLOCKS)
    verify(module)
    find_pass("cse").run(module)
    verify(module)
    names = [op.name for op in module.walk()]
    assert names.count("llvm.add") == 2 and names.count("llvm.mul") == 3


def test_dominance_of_many_blocks_needs_no_recursion() -> None:
    blocks = "".join(f"^bb{i}:\n  %a{i} = llvm.add %x, %x : i32\n  llvm.br ^bb{i + 1}\n" for i in range(1, 2000))
    module = parse_module("llvm.func @main(%x: i32) -> i32 {\n  llvm.br ^bb1\n" + blocks
                          + "^bb2000:\n  llvm.return %a1999 : i32\n}\n")
    for name in ("cse", "dce", "canonicalize"):
        find_pass(name).run(module)
        verify(module)
    assert sum(op.name == "llvm.add" for op in module.walk()) == 1


# -- effects, dce, inline ----------------------------------------------------------------------------------------------
def test_effects_are_seen_through_regions_and_calls() -> None:
    module = parse_module("""
      func.func private @pure(%x: f32) -> f32 {
        %0 = arith.addf %x, %x : f32
        func.return %0 : f32
      }
      func.func private @calls_pure(%x: f32) -> f32 {
        %0 = func.call @pure(%x) : (f32) -> f32
        func.return %0 : f32
      }
      func.func private @stores(%m: memref<4xf32>, %i: index, %x: f32) {
        memref.store %x, %m[%i] : memref<4xf32>
        func.return
      }
      func.func private @calls_stores(%m: memref<4xf32>, %i: index, %x: f32) {
        func.call @stores(%m, %i, %x) : (memref<4xf32>, index, f32) -> ()
        func.return
      }
      func.func private @loads(%m: memref<4xf32>, %i: index) -> f32 {
        %0 = memref.load %m[%i] : memref<4xf32>
        func.return %0 : f32
      }
      func.func private @circle(%x: f32) -> f32 {
        %0 = func.call @circle(%x) : (f32) -> f32
        func.return %0 : f32
      }""")
    verify(module)
    pure = pure_functions(module)
    assert pure == {"pure", "calls_pure"}
    load = next(op for op in module.walk() if op.name == "memref.load")
    assert not is_pure(load, pure) and is_pure(load, pure, reading=True)


def test_inlined_operations_keep_their_location() -> None:
    module = parse_module("""
      func.func private @f(%x: f32) -> f32 {
        %0 = arith.addf %x, %x : f32
        func.return %0 : f32
      }
      func.func @main(%x: f32) -> f32 {
        %0 = func.call @f(%x) : (f32) -> f32
        func.return %0 : f32
      }""", "model.mlir")
    find_pass("inline").run(module)
    add = next(module.inside(arith.AddF))
    assert (add.loc.file, add.loc.line, add.loc.via) == ("model.mlir", 3, ("inline",))


def test_a_function_referenced_other_than_by_a_call_is_kept() -> None:
    module = parse_module("""
      func.func private @f(%x: tensor<f32>) -> tensor<f32> {
        func.return %x : tensor<f32>
      }
      func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
        %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
        %1:2 = autodiff.grad @f(%x) wrt [0] : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
        func.return %0, %1#1 : tensor<f32>, tensor<f32>
      }""")
    for name in ("inline", "dce", "cse"):
        find_pass(name).run(module)
        verify(module)
    assert [f.sym_name for f in func.functions(module)] == ["f", "main"]


def test_options_are_given_by_name() -> None:
    steps = parse_pipeline("inline{all=true small=3},canonicalize{fast limit=7}")
    assert [step.options for step in steps] == [(("all", True), ("small", 3)), (("fast", True), ("limit", 7))]


def with_options(module: Op, ratio: float = 0.5, most: int | None = None, name: str = "", by: int | float = 1) -> None:
    """A pass with options of each kind."""


OPTIONS = Pass(with_options)


def test_options_are_read_as_the_annotations_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "own.options", own := ModuleType("own.options"))
    own.PASS = OPTIONS  # type: ignore[attr-defined]
    step, = parse_pipeline("own.options{ratio=2,most=none,name=3,by=0.5}")
    assert step.options == (("ratio", 2.0), ("most", None), ("name", "3"), ("by", 0.5))
    assert type(step.options[0][1]) is float and "{ratio=2.0,most=none,name=3,by=0.5}" in str(step)
    assert parse_pipeline("own.options{name=,most=4}")[0].options == (("name", ""), ("most", 4))
    for text, kind in (("ratio=z", "'z' is not a number"), ("most=1.5", "'1.5' is not a whole number or none"),
                       ("name", "name needs a value: a text")):
        with pytest.raises(UserError, match=rf"MLC0333.*{kind}"):
            parse_pipeline(f"own.options{{{text}}}")
    for option in (("most", 1.5), ("most", True), ("ratio", "1"), ("name", None)):
        with pytest.raises(UserError, match=rf"MLC0333.*{option[0]} = {option[1]!r} is not "):
            Step(OPTIONS, (option,))


@pytest.mark.parametrize("name", pass_names())
def test_documentation_and_declaration_name_the_same_forms(name: str) -> None:
    said = find_pass(name)
    text = importlib.import_module(f"mlc.passes.{name}").__doc__ or ""
    takes, gives = (re.search(rf"^{word} +([\w ]+)", text, re.MULTILINE) for word in ("takes", "gives"))
    assert takes and gives, "the documentation of a pass says `takes` and `gives`"
    assert takes[1].startswith("any form" if said.takes is None else said.takes.name.upper())
    if gives[1].startswith("the same form"):
        assert said.gives in (None, said.takes)
    else:
        assert said.gives is not None and gives[1].startswith(said.gives.name.upper())


def test_a_module_that_defines_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "own.fast", ModuleType("own.fast"))
    with pytest.raises(UserError, match=r"the module own\.fast defines no pass\n  help: .* ends with PASS = Pass"):
        find_pass("own.fast")


def test_where_a_pass_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(module: Op) -> None:
        {}["missing"]  # type: ignore[index]

    own = ModuleType("own.fast")
    own.PASS = Pass(run)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "own.fast", own)
    line = run.__code__.co_firstlineno + 1
    with pytest.raises(InternalError, match=rf"KeyError: 'missing'\n  note: raised at line {line} of .*, in run"):
        Pipeline(parse_pipeline("own.fast")).run(empty_module())


# -- decompose ---------------------------------------------------------------------------------------------------------
def test_decomposed_operations_keep_their_location() -> None:
    module = parse_module("""
      func.func @main(%x: tensor<Bx4xf32>) -> tensor<Bx4xf32> {
        %0 = tensor.softmax %x {axis = 1} : (tensor<Bx4xf32>) -> tensor<Bx4xf32>
        func.return %0 : tensor<Bx4xf32>
      }""", "model.mlir")
    with pytest.raises(IRError) as caught:
        DECOMPOSED.check(module)
    assert caught.value.code == "MLC0141" and caught.value.loc.line == 3
    find_pass("decompose").run(module)
    verify(module)
    no_composites(module)
    DECOMPOSED.check(module)
    made = func.functions(module)[0].block.ops[:-1]
    assert len(made) > 3 and all(op.loc.line == 3 and op.loc.via == ("decompose",) for op in made)


# -- orders of addition ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op, type", [
    ("tensor.reduce_sum %x {axes = [1]}", "(tensor<8x8xf32>) -> tensor<8xf32>"),
    ("tensor.cumulative %x {kind = \"add\", axis = 1}", "tensor<8x8xf32>"),
    ("tensor.dot_general %x, %x {batch = [], contract = [[1, 0]]}",
     "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"),
])
def test_no_pass_chooses_an_order_again(op: str, type: str) -> None:
    """An order that is deleted from a dump is missed."""
    module = parse_module(f"""
      func.func @main(%x: tensor<8x8xf32>) -> {type.split("-> ")[-1]} {{
        %0 = {op} : {type}
        func.return %0 : {type.split("-> ")[-1]}
      }}""", "model.mlir")
    for name in ("fix_numerics", "fuse"):
        find_pass(name).run(module)
    FUSED.check(module)
    for found in module.walk():
        if found.name == op.split()[0]:
            del found.attrs["order"]
    for run in (FUSED.check, Pipeline(parse_pipeline("bufferize,tensor_to_loop")).run):
        with pytest.raises(IRError) as caught:
            run(module)
        assert caught.value.code == "MLC0145" and caught.value.loc.line == 3


# -- what they cost ----------------------------------------------------------------------------------------------------
def scalars(count: int) -> Module:
    """A function of `count` scalar operations, a third of which can be simplified and a third shared."""
    module, f = empty_module(), func.function("main", [f32, i32])
    module.body.block.insert(f)
    with at_end(f.block, HERE):
        x, n = f.args
        for i in range(count // 6):
            m = arith.AddI(arith.constant(i % 7, i32), n).result
            n = arith.MulI(m, arith.constant(1, i32)).result
            y = arith.AddF(x, x).result
            x = arith.MulF(y, y).result
        func.Return((x, n))
    f.update_type()
    return module


def tensors(count: int) -> Module:
    """A function of `count` tensor operations."""
    module, kind = empty_module(), TensorType((4,), f32)
    f = func.function("main", [kind])
    module.body.block.insert(f)
    with at_end(f.block, HERE):
        x = f.args[0]
        for _ in range(count // 3):
            x = tensor.Tanh(x * f.args[0]).result + tensor.Full(1.0, (), f32).result
        func.Return((x,))
    f.update_type()
    return module


def composites(count: int) -> Module:
    module, kind = empty_module(), TensorType((4,), f32)
    f = func.function("main", [kind])
    module.body.block.insert(f)
    with at_end(f.block, HERE):
        x = f.args[0]
        for _ in range(count // 5):
            x = tensor.Silu(x).result
        func.Return((x,))
    f.update_type()
    return module


def functions(count: int) -> Module:
    """A function that calls `count` / 5 others, one after the other, once each."""
    module, kind = empty_module(), TensorType((4,), f32)
    made = []
    for i in range(count // 5):
        g = func.function(f"g{i}", [kind], private=True)
        module.body.block.insert(g)
        with at_end(g.block, HERE):
            func.Return((tensor.Exp(g.args[0] * float(i)).result,))
        g.update_type()
        made.append(g)
    f = func.function("main", [kind])
    module.body.block.insert(f)
    with at_end(f.block, HERE):
        x = f.args[0]
        for g in made:
            x = func.call(g, (x,))[0]
        func.Return((x,))
    f.update_type()
    return module


@pytest.mark.parametrize("name, build", [(name, build) for name in GENERIC for build in (scalars, tensors, functions)]
                         + [("decompose", composites)])
@pytest.mark.slow
def test_time_is_linear_in_the_number_of_operations(name: str, build: Any) -> None:
    seconds = seconds_by_count(build, lambda module: find_pass(name).run(module))
    assert_linear(seconds)
    per_operation = seconds[COUNTS[-1]] / COUNTS[-1]
    assert per_operation < 100e-6, f"{per_operation * 1e6:.0f} us per operation"
