"""Reverse-mode differentiation: against finite differences, of its own output, through calls, and its errors."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlc.dialects import func, tensor
from mlc.dialects.autodiff import Grad, Vjp, grad, vjp
from mlc.dialects.builtin import Module
from mlc.dialects.builtin import module as empty_module
from mlc.ir.core import REGISTRY, Op, Value, at_end
from mlc.ir.diag import Error, IRError, Loc, UserError
from mlc.ir.interp import Interpreter
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline, find_pass
from mlc.ir.printer import to_text
from mlc.ir.types import TensorType, Type, f32, f64, i64
from mlc.ir.verify import verify
from mlc.passes.differentiate.expand import expand
from mlc.passes.forms import DIFFERENTIATED, REAL, TENSOR
from tests.timing import assert_linear, seconds_by_count

Array = np.ndarray[Any, Any]
HERE = Loc("model.py", 7, 3)


def parse(text: str) -> Module:
    module = parse_module(text)
    verify(module)
    assert isinstance(module, Module)
    return module


def run(module: Op, name: str, *args: Any) -> list[Any]:
    return Interpreter(module).call(name, args)


def expanded(module: Module) -> Module:
    """A copy without derivatives."""
    copy = module.clone()
    assert isinstance(copy, Module)
    find_pass("grad").run(copy)
    verify(copy)
    DIFFERENTIATED.check(copy)
    return copy


def with_gradient(text: str, name: str = "f", wrt: tuple[int, ...] = (0,), result: str = "g") -> Module:
    """The module with a public @g that returns the results and gradients of @f."""
    module = parse(text)
    f = next(f for f in func.functions(module) if f.sym_name == name)
    g = func.function(result, [a.type for a in f.args])
    module.body.block.insert(g)
    with at_end(g.block, HERE):
        func.Return(tuple(grad(f, g.args, wrt)))
    g.update_type()
    verify(module)
    return module


def differences(module: Op, name: str, args: list[Any], i: int, step: float = 1e-6) -> Array:
    """d f[0] / d args[i] by central differences in float64."""
    out = np.zeros(np.shape(args[i]))
    for at in np.ndindex(out.shape):
        sides = []
        for sign in (1, -1):
            moved = [np.array(a) for a in args]
            moved[i][at] += sign * step
            sides.append(float(run(module, name, *moved)[0]))
        out[at] = (sides[0] - sides[1]) / (2 * step)
    return out


def check(text: str, args: list[Any], wrt: tuple[int, ...] = (0,), tolerance: float = 1e-7) -> Module:
    """The gradients of @f equal differences, before and after expansion, and after simplification; the expansion."""
    module = with_gradient(text, wrt=wrt)
    before = run(module, "g", *args)
    after = expanded(module)
    values = run(module, "f", *args)
    for results in (before, run(after, "g", *args)):
        for got, want in zip(results, values):
            np.testing.assert_array_equal(got, want)
        for got, i in zip(results[len(values):], wrt):
            np.testing.assert_allclose(got, differences(module, "f", args, i), rtol=tolerance, atol=tolerance)
    simple = after.clone()
    for name in ("canonicalize", "cse", "inline", "canonicalize", "cse", "dce"):
        find_pass(name).run(simple)
        verify(simple)
    for got, want in zip(run(simple, "g", *args), before):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    return after


RNG = np.random.default_rng(3)
X, W = RNG.standard_normal((3, 4)), RNG.standard_normal((4, 4))

LAYER = """
func.func private @layer(%x: tensor<Bx4xf64>, %w: tensor<4x4xf64>) -> tensor<Bx4xf64> {
  %c = tensor.full 0.5 : tensor<f64>
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]}
      : (tensor<Bx4xf64>, tensor<4x4xf64>) -> tensor<Bx4xf64>
  %1 = tensor.tanh %0 : tensor<Bx4xf64>
  %2 = tensor.mul %1, %c : (tensor<Bx4xf64>, tensor<f64>) -> tensor<Bx4xf64>
  func.return %2 : tensor<Bx4xf64>
}
"""


def deep(layers: int) -> str:
    """A loss that calls one layer `count` times."""
    type = "(tensor<Nx4xf64>, tensor<4x4xf64>) -> tensor<Nx4xf64>"
    calls = "".join(f"  %{i + 1} = func.call @layer(%{i}, %w) : {type}\n" for i in range(layers))
    return LAYER + f"""
func.func @f(%0: tensor<Nx4xf64>, %w: tensor<4x4xf64>) -> tensor<f64> {{
{calls}  %r = tensor.reduce_sum %{layers} {{axes = [0, 1]}} : (tensor<Nx4xf64>) -> tensor<f64>
  func.return %r : tensor<f64>
}}
"""


# -- values ------------------------------------------------------------------------------------------------------------
def test_a_value_used_twice_gets_both_cotangents() -> None:
    check("""
      func.func @f(%x: tensor<5xf64>) -> tensor<f64> {
        %0 = tensor.sin %x : tensor<5xf64>
        %1 = tensor.mul %0, %x : tensor<5xf64>
        %2 = tensor.add %1, %0 : tensor<5xf64>
        %3 = tensor.mul %2, %2 : tensor<5xf64>
        %4 = tensor.reduce_sum %3 {axes = [0]} : (tensor<5xf64>) -> tensor<f64>
        func.return %4 : tensor<f64>
      }""", [RNG.standard_normal(5)])


@pytest.mark.parametrize("rows", [0, 1, 3, 7])
def test_symbolic_sizes_and_broadcasting(rows: int) -> None:
    check("""
      func.func @f(%x: tensor<Bx4xf64>, %b: tensor<4xf64>, %s: tensor<f64>) -> tensor<f64> {
        %0 = tensor.add %x, %b : (tensor<Bx4xf64>, tensor<4xf64>) -> tensor<Bx4xf64>
        %1 = tensor.exp %0 : tensor<Bx4xf64>
        %2 = tensor.reduce_sum %1 {axes = [1]} : (tensor<Bx4xf64>) -> tensor<Bxf64>
        %3 = tensor.log %2 : tensor<Bxf64>
        %4 = tensor.mul %3, %s : (tensor<Bxf64>, tensor<f64>) -> tensor<Bxf64>
        %5 = tensor.reduce_sum %4 {axes = [0]} : (tensor<Bxf64>) -> tensor<f64>
        func.return %5 : tensor<f64>
      }""", [RNG.standard_normal((rows, 4)), RNG.standard_normal(4), np.array(0.7)], (0, 1, 2))


def test_several_results_and_arguments_without_influence() -> None:
    module = check("""
      func.func @f(%x: tensor<3xf64>, %unused: tensor<Bxf64>, %n: tensor<3xi64>)
          -> (tensor<f64>, tensor<3xi64>, tensor<3xf64>) {
        %0 = tensor.mul %x, %x : tensor<3xf64>
        %1 = tensor.reduce_sum %0 {axes = [0]} : (tensor<3xf64>) -> tensor<f64>
        %2 = tensor.exp %x : tensor<3xf64>
        func.return %1, %n, %2 : tensor<f64>, tensor<3xi64>, tensor<3xf64>
      }""", [RNG.standard_normal(3), np.ones(2), np.arange(3)], (1, 0))
    backward = to_text(next(f for f in func.functions(module) if f.sym_name == "f_backward"))
    assert "tensor.full 0.0 : tensor<Bxf64>" in backward and "tensor.exp" not in backward


def test_an_index_gets_no_cotangent() -> None:
    check("""
      func.func @f(%x: tensor<5xf64>, %i: tensor<4xi64>) -> tensor<f64> {
        %0 = tensor.take %x, %i {axis = 0} : (tensor<5xf64>, tensor<4xi64>) -> tensor<4xf64>
        %1 = tensor.mul %0, %0 : tensor<4xf64>
        %2 = tensor.reduce_sum %1 {axes = [0]} : (tensor<4xf64>) -> tensor<f64>
        func.return %2 : tensor<f64>
      }""", [RNG.standard_normal(5), np.array([1, 4, 1, 0])])


def test_comparison_and_choice() -> None:
    check("""
      func.func @f(%x: tensor<6xf64>, %y: tensor<6xf64>) -> tensor<f64> {
        %0 = tensor.compare gt, %x, %y : (tensor<6xf64>, tensor<6xf64>) -> tensor<6xi1>
        %1 = tensor.exp %x : tensor<6xf64>
        %2 = tensor.select %0, %1, %y : (tensor<6xi1>, tensor<6xf64>, tensor<6xf64>) -> tensor<6xf64>
        %3 = tensor.reduce_sum %2 {axes = [0]} : (tensor<6xf64>) -> tensor<f64>
        func.return %3 : tensor<f64>
      }""", [RNG.standard_normal(6), RNG.standard_normal(6)], (0, 1))


def test_a_result_that_is_an_argument_or_a_constant() -> None:
    assert run(with_gradient("""
      func.func @f(%x: tensor<f64>) -> tensor<f64> {
        func.return %x : tensor<f64>
      }"""), "g", np.array(3.0)) == [3.0, 1.0]
    assert run(with_gradient("""
      func.func @f(%x: tensor<f64>) -> tensor<f64> {
        %c = tensor.full 5.0 : tensor<f64>
        func.return %c : tensor<f64>
      }"""), "g", np.array(3.0)) == [5.0, 0.0]


def test_one_value_returned_twice_gets_both_cotangents() -> None:
    module = parse("""
      func.func private @f(%x: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
        %0 = tensor.exp %x : tensor<3xf64>
        func.return %0, %0 : tensor<3xf64>, tensor<3xf64>
      }
      func.func @g(%x: tensor<3xf64>, %a: tensor<3xf64>, %b: tensor<3xf64>) -> tensor<3xf64> {
        %0:3 = autodiff.vjp @f(%x, %a, %b) wrt [0] : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
            -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
        func.return %0#2 : tensor<3xf64>
      }""")
    x, a, b = (RNG.standard_normal(3) for _ in range(3))
    for m in (module, expanded(module)):
        np.testing.assert_allclose(run(m, "g", x, a, b)[0], (a + b) * np.exp(x), rtol=1e-14)


def test_vjp_takes_one_cotangent_per_float_result() -> None:
    module = parse("""
      func.func private @f(%x: tensor<Bxf64>, %n: tensor<Bxi64>) -> (tensor<Bxf64>, tensor<Bxi64>, tensor<f64>) {
        %0 = tensor.sin %x : tensor<Bxf64>
        %1 = tensor.reduce_sum %0 {axes = [0]} : (tensor<Bxf64>) -> tensor<f64>
        func.return %0, %n, %1 : tensor<Bxf64>, tensor<Bxi64>, tensor<f64>
      }""")
    f = func.functions(module)[0]
    vector, number = TensorType(f.args[0].type.shape, f64), TensorType((), f64)
    g = func.function("g", [vector, f.args[1].type, vector, number])
    module.body.block.insert(g)
    with at_end(g.block, HERE):
        func.Return(tuple(vjp(f, g.args[:2], g.args[2:], [0])))
    g.update_type()
    verify(module)
    x, n, ct, total = RNG.standard_normal(4), np.arange(4), RNG.standard_normal(4), np.array(2.0)
    for m in (module, expanded(module)):
        y, same, total_sine, dx = run(m, "g", x, n, ct, total)
        np.testing.assert_array_equal(y, np.sin(x))
        np.testing.assert_array_equal(same, n)
        np.testing.assert_allclose(total_sine, np.sin(x).sum(), rtol=1e-14)
        np.testing.assert_allclose(dx, (ct + 2) * np.cos(x), rtol=1e-14)


# -- calls -------------------------------------------------------------------------------------------------------------
def test_a_callee_is_differentiated_once_for_all_calls() -> None:
    module = check(deep(6), [X, 0.5 * W], (0, 1))
    names = [f.sym_name for f in func.functions(module)]
    assert sorted(names) == ["f", "f_backward", "f_forward", "g", "layer", "layer_backward", "layer_forward"]
    calls = [str(op.callee) for op in module.inside(func.Call)]
    assert calls.count("layer_forward") == 6 and calls.count("layer_backward") == 6 and calls.count("layer") == 6


def test_backward_functions_return_only_the_needed_cotangents() -> None:
    """By the weights alone: the first layer's input is data, so its backward function has one result less."""
    module = check(deep(3), [X, 0.5 * W], (1,))
    results = {f.sym_name: len(f.function_type.results) for f in func.functions(module) if "backward" in f.sym_name}
    assert sorted(results.values()) == [1, 1, 2]
    find_pass("cse").run(module)
    assert len([f for f in func.functions(module) if "layer_forward" in f.sym_name]) == 1


def test_arguments_and_results_are_not_saved_twice() -> None:
    module = expanded(with_gradient(deep(2), wrt=(0, 1)))
    forward = next(f for f in func.functions(module) if f.sym_name == "layer_forward")
    assert len(forward.function_type.results) == 2, "the result, and the tanh; neither an argument nor the constant"


def test_calls_with_different_sizes_and_active_arguments() -> None:
    check("""
      func.func private @norm(%v: tensor<Mxf64>) -> (tensor<f64>, tensor<Mxf64>) {
        %0 = tensor.mul %v, %v : tensor<Mxf64>
        %1 = tensor.reduce_sum %0 {axes = [0]} : (tensor<Mxf64>) -> tensor<f64>
        %2 = tensor.sqrt %1 : tensor<f64>
        %3 = tensor.div %v, %2 : (tensor<Mxf64>, tensor<f64>) -> tensor<Mxf64>
        func.return %2, %3 : tensor<f64>, tensor<Mxf64>
      }
      func.func @f(%x: tensor<Bxf64>, %y: tensor<3xf64>) -> tensor<f64> {
        %0:2 = func.call @norm(%x) : (tensor<Bxf64>) -> (tensor<f64>, tensor<Bxf64>)
        %1:2 = func.call @norm(%y) : (tensor<3xf64>) -> (tensor<f64>, tensor<3xf64>)
        %2:2 = func.call @norm(%x) : (tensor<Bxf64>) -> (tensor<f64>, tensor<Bxf64>)
        %3 = tensor.mul %0#0, %1#0 : tensor<f64>
        %4 = tensor.exp %2#1 : tensor<Bxf64>
        %5 = tensor.reduce_sum %4 {axes = [0]} : (tensor<Bxf64>) -> tensor<f64>
        %6 = tensor.sin %1#1 : tensor<3xf64>
        %7 = tensor.reduce_sum %6 {axes = [0]} : (tensor<3xf64>) -> tensor<f64>
        %8 = tensor.mul %5, %7 : tensor<f64>
        %9 = tensor.add %3, %8 : tensor<f64>
        func.return %9 : tensor<f64>
      }""", [RNG.standard_normal(4), RNG.standard_normal(3)], (0, 1), 1e-6)


def test_a_call_with_a_repeated_argument() -> None:
    check("""
      func.func private @product(%a: tensor<3xf64>, %b: tensor<3xf64>) -> tensor<3xf64> {
        %0 = tensor.mul %a, %b : tensor<3xf64>
        func.return %0 : tensor<3xf64>
      }
      func.func @f(%x: tensor<3xf64>) -> tensor<f64> {
        %0 = func.call @product(%x, %x) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
        %1 = tensor.reduce_sum %0 {axes = [0]} : (tensor<3xf64>) -> tensor<f64>
        func.return %1 : tensor<f64>
      }""", [RNG.standard_normal(3)])


def test_a_backward_function_gets_an_argument_that_binds_its_sizes() -> None:
    """The sum's cotangent is spread over B, which no saved value shows: forward's argument is passed for it."""
    module = check("""
      func.func private @total(%x: tensor<(2*B)xf64>, %like: tensor<Bxf64>) -> tensor<f64> {
        %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<(2*B)xf64>) -> tensor<f64>
        func.return %0 : tensor<f64>
      }
      func.func @f(%x: tensor<(2*B)xf64>, %like: tensor<Bxf64>) -> tensor<f64> {
        %0 = func.call @total(%x, %like) : (tensor<(2*B)xf64>, tensor<Bxf64>) -> tensor<f64>
        %1 = tensor.mul %0, %0 : tensor<f64>
        func.return %1 : tensor<f64>
      }""", [RNG.standard_normal(6), np.ones(3)])
    backward = next(f for f in func.functions(module) if f.sym_name == "total_backward")
    assert [str(t) for t in backward.function_type.inputs] == ["tensor<f64>", "tensor<Bxf64>"]


def test_a_deep_chain_of_calls_is_differentiated_without_recursion() -> None:
    parts = ["""
      func.func private @f0(%x: tensor<f64>) -> tensor<f64> {
        %0 = tensor.sin %x : tensor<f64>
        func.return %0 : tensor<f64>
      }"""]
    for i in range(1, 400):
        parts.append(f"""
          func.func private @f{i}(%x: tensor<f64>) -> tensor<f64> {{
            %0 = func.call @f{i - 1}(%x) : (tensor<f64>) -> tensor<f64>
            func.return %0 : tensor<f64>
          }}""")
    module = with_gradient("".join(parts), "f399")
    find_pass("grad").run(module)
    find_pass("inline").run(module)
    find_pass("dce").run(module)
    verify(module)
    assert len(func.functions(module)) == 1
    np.testing.assert_allclose(run(module, "g", np.array(0.5))[1], np.cos(0.5), rtol=1e-15)


# -- derivatives of derivatives ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_of_any_order(order: int) -> None:
    """d^n/dx^n of sin(x) * exp(2 x), each a grad of the gradient before it, against the complex formula."""
    module = parse("""
      func.func private @d0(%x: tensor<f64>) -> tensor<f64> {
        %c = tensor.full 2.0 : tensor<f64>
        %0 = tensor.sin %x : tensor<f64>
        %1 = tensor.mul %x, %c : tensor<f64>
        %2 = tensor.exp %1 : tensor<f64>
        %3 = tensor.mul %0, %2 : tensor<f64>
        func.return %3 : tensor<f64>
      }""")
    scalar = TensorType((), f64)
    for n in range(1, order + 1):
        function = func.function(f"d{n}", [scalar])
        module.body.block.insert(function)
        inner = func.functions(module)[n - 1]
        with at_end(function.block, HERE):
            func.Return((grad(inner, function.args, [0])[-1],))
        function.update_type()
    verify(module)
    want = ((2 + 1j) ** order * np.exp((2 + 1j) * 0.3)).imag
    after = expanded(module)
    for m in (module, after):
        np.testing.assert_allclose(run(m, f"d{order}", np.array(0.3))[0], want, rtol=1e-12)
    find_pass("inline").run(after, all=True)
    for name in ("canonicalize", "cse", "dce"):
        find_pass(name).run(after)
    np.testing.assert_allclose(run(after, f"d{order}", np.array(0.3))[0], want, rtol=1e-12)


def test_a_second_derivative_through_calls_and_sizes() -> None:
    """The gradient of |grad f|^2 by differences of the gradient."""
    module = with_gradient(deep(2), wrt=(1,), result="first")
    for f in func.functions(module):
        f.sym_visibility = "private"
    first = func.functions(module)[-1]
    square = func.function("square", [a.type for a in first.args])
    module.body.block.insert(square)
    with at_end(square.block, HERE):
        gradient = func.call(first, square.args)[1]
        func.Return((tensor.ReduceSum(gradient * gradient, (0, 1)).result,))
    square.update_type()
    second = func.function("second", [a.type for a in first.args])
    module.body.block.insert(second)
    with at_end(second.block, HERE):
        func.Return(tuple(grad(square, second.args, [0, 1])))
    second.update_type()
    verify(module)
    args = [X, 0.5 * W]
    want = [differences(module, "square", args, i) for i in (0, 1)]
    for m in (module, expanded(module)):
        for got, expected in zip(run(m, "second", *args)[1:], want):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


# -- composites, and operations without a rule -------------------------------------------------------------------------
class Cube(Op, name="test_grad.cube", pure=True):
    """result = x * x * x, a composite without a rule of its own."""

    x: Value

    def infer(self) -> Type:
        kind: Type = self.x.type
        return kind

    def ref(self, x: Array) -> Array:
        return np.asarray(x * x * x)

    def decompose(self) -> Value:
        return Square(self.x).result * self.x


class Square(Op, name="test_grad.square", pure=True):
    """result = x * x, a composite inside another."""

    x: Value

    def infer(self) -> Type:
        kind: Type = self.x.type
        return kind

    def ref(self, x: Array) -> Array:
        return np.asarray(x * x)

    def decompose(self) -> Value:
        return self.x * self.x


class Own(Cube, name="test_grad.own"):
    """result = x * x * x, a composite with a rule of its own, which is told apart by a factor of 10."""

    def vjp(self, *cts: Value) -> list[Value | None]:
        return [cts[0] * self.x * self.x * 30]


class Opaque(Op, name="test_grad.opaque", pure=True):
    """result = x, without a rule."""

    x: Value

    def infer(self) -> Type:
        kind: Type = self.x.type
        return kind

    def ref(self, x: Array) -> Array:
        return x


OWN_OPERATIONS = {cls.name: REGISTRY.pop(cls.name) for cls in (Cube, Square, Own, Opaque)}


@pytest.fixture(autouse=True)
def own_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operations defined here exist while tests of this module run: others walk the registry."""
    for name, cls in OWN_OPERATIONS.items():
        monkeypatch.setitem(REGISTRY, name, cls)


def of_one_operation(name: str) -> str:
    return f"""
      func.func @f(%x: tensor<f64>) -> tensor<f64> {{
        %0 = {name} %x : tensor<f64>
        func.return %0 : tensor<f64>
      }}"""


def test_composites_without_a_rule_are_decomposed_first() -> None:
    module = with_gradient(of_one_operation("test_grad.cube"))
    after = expanded_only(module)
    assert run(after, "g", np.array(2.0)) == [8.0, 12.0] == run(module, "g", np.array(2.0))
    forward = next(f for f in func.functions(after) if f.sym_name == "f_forward")
    assert [op.name for op in forward.block] == ["tensor.mul", "tensor.mul", "func.return"]


def expanded_only(module: Module) -> Module:
    copy = module.clone()
    assert isinstance(copy, Module)
    expand(copy)
    verify(copy)
    return copy


def test_composites_with_a_rule_are_not_decomposed() -> None:
    after = expanded_only(with_gradient(of_one_operation("test_grad.own")))
    assert run(after, "g", np.array(2.0)) == [8.0, 120.0]
    forward = next(f for f in func.functions(after) if f.sym_name == "f_forward")
    assert [op.name for op in forward.block] == ["test_grad.own", "func.return"]


def test_an_operation_without_derivative_is_named_with_its_line() -> None:
    module = with_gradient(of_one_operation("test_grad.opaque"))
    with pytest.raises(UserError) as caught:
        expand(module)
    error = caught.value
    assert error.code == "MLC0130" and error.loc.line == 3 and "test_grad.opaque" in error.message
    assert str(HERE) in error.notes[0]
    with pytest.raises(UserError):
        run(with_gradient(of_one_operation("test_grad.opaque")), "g", np.array(1.0))


def test_stop_gradient_makes_a_constant_even_where_nothing_has_a_rule() -> None:
    module = with_gradient("""
      func.func @f(%x: tensor<f64>) -> tensor<f64> {
        %0 = tensor.stop_gradient %x : tensor<f64>
        %1 = test_grad.opaque %0 : tensor<f64>
        %2 = tensor.mul %1, %x : tensor<f64>
        func.return %2 : tensor<f64>
      }""")
    assert run(module, "g", np.array(3.0)) == [9.0, 3.0] == run(expanded_only(module), "g", np.array(3.0))


def test_values_captured_by_a_region_get_cotangents() -> None:
    module = with_gradient("""
      func.func @f(%x: tensor<f64>) -> tensor<f64> {
        %c = arith.constant true
        %0 = scf.if %c -> (tensor<f64>) {
          %1 = tensor.mul %x, %x : tensor<f64>
          scf.yield %1 : tensor<f64>
        } else {
          scf.yield %x : tensor<f64>
        }
        func.return %0 : tensor<f64>
      }""")
    assert run(expanded_only(module), "g", np.array(3.0)) == [9.0, 6.0]


def test_an_inactive_operation_needs_no_derivative() -> None:
    module = with_gradient("""
      func.func @f(%x: tensor<f64>, %y: tensor<f64>) -> (tensor<f64>, tensor<f64>) {
        %0 = test_grad.opaque %y : tensor<f64>
        %1 = tensor.mul %x, %0 : tensor<f64>
        %2 = test_grad.opaque %x : tensor<f64>
        func.return %1, %2 : tensor<f64>, tensor<f64>
      }""")
    after = expanded_only(module)
    assert run(after, "g", np.array(2.0), np.array(5.0)) == [10.0, 2.0, 5.0]


# -- what is refused ---------------------------------------------------------------------------------------------------
IDENTITY = """
func.func private @f(%x: tensor<3xf64>, %n: tensor<3xi64>) -> tensor<3xf64> {
  func.return %x : tensor<3xf64>
}
func.func private @s(%x: tensor<3xf64>) -> tensor<f64> {
  %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<3xf64>) -> tensor<f64>
  func.return %0 : tensor<f64>
}
func.func @g(%x: tensor<3xf64>, %n: tensor<3xi64>) {
  OP
  func.return
}
"""
XN, X3, S = "tensor<3xf64>, tensor<3xi64>", "tensor<3xf64>", "tensor<f64>"


@pytest.mark.parametrize("op, code", [
    (f"%0:2 = autodiff.grad @f(%x, %n) wrt [0] : ({XN}) -> ({X3}, {X3})", "MLC0131"),               # no scalar
    (f"%0:2 = autodiff.grad @s(%x) wrt [1] : ({X3}) -> ({S}, {X3})", "MLC0131"),                    # no such argument
    (f"%0:2 = autodiff.grad @s(%x) wrt [-1] : ({X3}) -> ({S}, {X3})", "MLC0131"),
    (f"%0:3 = autodiff.grad @s(%x) wrt [0, 0] : ({X3}) -> ({S}, {X3}, {X3})", "MLC0131"),           # twice
    (f"%0:2 = autodiff.vjp @f(%x, %n, %x) wrt [1] : ({XN}, {X3}) -> ({X3}, tensor<3xi64>)", "MLC0131"),  # an integer
    (f"%0:2 = autodiff.vjp @f(%x, %n) wrt [0] : ({XN}) -> ({X3}, {X3})", "MLC0131"),                # no cotangent
    (f"%0:2 = autodiff.vjp @f(%x, %n, %n) wrt [0] : ({XN}, tensor<3xi64>) -> ({X3}, {X3})", "MLC0131"),
    (f"%0:2 = autodiff.grad @s(%x) wrt [0] : ({X3}) -> ({S}, {S})", "MLC0131"),                     # a result type
    (f"%0 = autodiff.grad @s(%x) wrt [0] : ({X3}) -> {S}", "MLC0131"),                              # a result missing
    (f"%0:2 = autodiff.grad @s(%n) wrt [0] : (tensor<3xi64>) -> ({S}, tensor<3xi64>)", "MLC0120"),  # an argument type
    (f"%0:2 = autodiff.grad @nobody(%x) wrt [0] : ({X3}) -> ({S}, {X3})", "MLC0106"),
])
def test_ill_formed_requests_are_refused_by_verifier_and_pass(op: str, code: str) -> None:
    module = parse_module(IDENTITY.replace("OP", op))
    for step in (verify, find_pass("grad").run):
        with pytest.raises(IRError) as caught:
            step(module)
        assert caught.value.code == code and caught.value.loc.line == 10


@pytest.mark.parametrize("body", [
    "%0 = func.call @f(%x) : (tensor<f64>) -> tensor<f64>",
    "%0:2 = autodiff.grad @f(%x) wrt [0] : (tensor<f64>) -> (tensor<f64>, tensor<f64>)\n  %1 = tensor.neg %0#0 "
    ": tensor<f64>",
])
def test_recursive_functions_are_refused(body: str) -> None:
    module = with_gradient(f"""
      func.func private @f(%x: tensor<f64>) -> tensor<f64> {{
        {body}
        func.return %x : tensor<f64>
      }}""".replace("func.return %x", "func.return %1" if "%1" in body else "func.return %0"))
    with pytest.raises(UserError) as caught:
        expand(module)
    assert caught.value.code == "MLC0132" and caught.value.loc.line == 3


def test_a_recursive_function_that_is_not_differentiated_is_allowed() -> None:
    module = parse("""
      func.func @f(%x: tensor<f64>) -> tensor<f64> {
        %0 = func.call @f(%x) : (tensor<f64>) -> tensor<f64>
        func.return %0 : tensor<f64>
      }""")
    for name in ("grad", "canonicalize", "cse", "inline", "dce"):
        find_pass(name).run(module)
    verify(module)


def test_a_wrong_rule_is_an_internal_error_and_not_a_wrong_number() -> None:
    class Wrong(Opaque, name="test_grad.wrong"):
        def vjp(self, *cts: Value) -> list[Value | None]:
            return [tensor.Cast(cts[0], f32).result]
    with pytest.raises(IRError) as caught:
        expand(with_gradient(of_one_operation("test_grad.wrong")))
    del REGISTRY["test_grad.wrong"]
    assert caught.value.code == "MLC0133"


# -- the pass ----------------------------------------------------------------------------------------------------------
def test_operations_of_a_derivative_name_the_line_and_the_pass() -> None:
    module = with_gradient("""
      func.func @f(%x: tensor<f64>) -> tensor<f64> {
        %0 = tensor.tanh %x : tensor<f64>
        func.return %0 : tensor<f64>
      }""")
    expand(module)
    backward = next(f for f in func.functions(module) if f.sym_name == "f_backward")
    for op in backward.block:
        assert op.loc.via == ("grad",) and op.loc.line in (2, 3, 4), str(op)
    entry = next(f for f in func.functions(module) if f.sym_name == "g")
    assert entry.block.ops[0].loc == HERE.through("grad")


def test_differentiation_is_deterministic() -> None:
    texts = {to_text(expanded(with_gradient(deep(3), wrt=(0, 1))), locations=True) for _ in range(3)}
    assert len(texts) == 1


def test_forms() -> None:
    assert find_pass("grad").takes is REAL and find_pass("grad").gives is DIFFERENTIATED
    assert DIFFERENTIATED.implies(REAL) and REAL.implies(TENSOR) and not TENSOR.implies(REAL)
    with pytest.raises(Error) as caught:
        Pipeline(["decompose"], REAL)
    assert caught.value.code == "MLC0331"
    Pipeline(["decompose_complex", "grad", "decompose"], TENSOR)
    with pytest.raises(IRError) as refused:
        DIFFERENTIATED.check(with_gradient(deep(1)))
    assert refused.value.code == "MLC0140"


def test_generated_functions_avoid_existing_names() -> None:
    module = with_gradient(deep(1) + """
      func.func @f_forward(%x: tensor<i64>) -> tensor<i64> {
        func.return %x : tensor<i64>
      }
      func.func @derivative(%x: tensor<i64>) -> tensor<i64> {
        func.return %x : tensor<i64>
      }""", wrt=(0, 1))
    before = run(module, "g", X, W)
    assert run(module, "derivative", np.array(3)) == [3]
    for got, want in zip(run(expanded(module), "g", X, W), before):
        np.testing.assert_array_equal(got, want)


def elementwise_chain(count: int) -> Module:
    """Sum of a chain of so many operations."""
    module, kind = empty_module(), TensorType((8,), f64)
    f = func.function("f", [kind])
    module.body.block.insert(f)
    with at_end(f.block, HERE):
        x = f.args[0]
        for i in range(count // 2):
            x = tensor.Tanh(x * f.args[0]).result if i % 2 else tensor.Exp(x + x).result
        func.Return((tensor.ReduceSum(x, (0,)).result,))
    f.update_type()
    g = func.function("g", [kind])
    module.body.block.insert(g)
    with at_end(g.block, HERE):
        func.Return(tuple(grad(f, g.args, [0])))
    g.update_type()
    return module


@pytest.mark.slow
def test_time_is_linear_in_the_number_of_operations() -> None:
    seconds = seconds_by_count(elementwise_chain, lambda module: expand(module))
    assert_linear(seconds)


def test_operations_print_and_parse() -> None:
    module = with_gradient(deep(1), wrt=(0, 1))
    for generic in (False, True):
        text = to_text(module, generic)
        again = parse_module(text)
        verify(again)
        assert to_text(again, generic) == text
    assert [type(op) for op in module.walk() if isinstance(op, Grad | Vjp)] == [Grad]
    assert i64 not in [r.type for op in module.inside(Grad) for r in op.results]
