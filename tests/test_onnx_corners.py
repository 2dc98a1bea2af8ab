"""Operators of ONNX where an import errs easily: symbolic sizes, integers, empty tensors, other versions."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc.tools.fuzzing.interpreted import interpreted

onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper, parser  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

Array = np.ndarray[Any, Any]


def model(signature: str, nodes: str, opset: int = 21) -> Any:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> f {signature} {{ {nodes} }}')


def run(net: Any, *inputs: Any) -> Any:
    """The results of a model, as an array or several."""
    with interpreted():
        out = mlc.onnx.load(net)(*inputs)
    return tuple(x.numpy() for x in out) if isinstance(out, tuple) else out.numpy()


def check(found: Any, wanted: Any, tolerance: float = 0) -> None:
    """Assert that an array has these elements, shape and type."""
    wanted = np.asarray(wanted)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=tolerance)


def as_reference(net: Any, *inputs: Any) -> None:
    """Assert that a model gives what ONNX's reference evaluator gives."""
    wanted = ReferenceEvaluator(net).run(None, dict(zip([i.name for i in net.graph.input], inputs)))
    found = run(net, *inputs)
    for x, y in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        check(x, y)


def refused(net: Any, *inputs: Any) -> mlc.UserError:
    """The error of loading or calling a model."""
    with pytest.raises(mlc.UserError) as caught:
        run(net, *inputs)
    return caught.value


ONES = np.ones((2, 3), np.float32)


# -- sizes that are symbols -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("nodes", "wanted"), [
    ("c = Equal(n, two)", True), ("c = Equal(n, m)", False), ("s = Size(x) c = Equal(s, six)", True),
    ("d = Sub(n, three) c = Equal(d, minus)", True), ("r = Mod(n, two) c = Equal(r, zero)", True),
    ("c = Less(n, three)", True), ("c = Equal(n, minus)", False)])
def test_a_comparison_of_symbolic_sizes_is_not_settled_while_recording(nodes: str, wanted: bool) -> None:
    net = model("(float[N, M] x) => (float[N, M] y) <int64[1] zero = {0}, int64[1] two = {2}, int64[1] three = {3}, "
                "int64[1] six = {6}, int64[1] minus = {-1}>", f"""
        n = Shape<start = 0, end = 1>(x) m = Shape<start = 1>(x) {nodes}
        y = If(c) <then_branch = a () => (float[N, M] p) {{ p = Neg(x) }},
                   else_branch = b () => (float[N, M] q) {{ q = Exp(x) }}>""")
    check(run(net, ONES), -ONES if wanted else np.exp(ONES), 1e-6)


def test_a_quotient_of_symbolic_sizes_is_rounded_toward_zero() -> None:
    net = model("(float[N] x) => (int64[1] y, int64[1] z) <int64[1] four = {4}, int64[1] minus = {-2}>",
                "n = Shape(x) d = Sub(n, four) y = Div(d, minus) z = Div(n, minus)")
    for found, wanted in zip(run(net, np.ones(7, np.float32)), (-1, -3)):
        check(found, [wanted])
    assert "not negative, where N = 3" in refused(net, np.ones(3, np.float32)).message


def test_sizes_are_cast_to_other_integers() -> None:
    net = model("(float[N, 2] x, int32[2] k) => (int32[2] y, int32[2] z, float[a, b] r)", """
        s = Shape(x) y = Cast<to = 6>(s) z = Add(y, k) w = Cast<to = 7>(y) r = Reshape(x, w)""")
    y, z, r = run(net, ONES.T, np.array([1, 2], np.int32))
    check(y, np.array([3, 2], np.int32))
    check(z, np.array([4, 4], np.int32))
    check(r, ONES.T)


# -- constants --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("type", ["int32", "int64"])
def test_the_least_integer_keeps_its_sign_when_it_is_divided(type: str) -> None:
    least = np.iinfo(type).min
    net = model(f"({type}[3] x) => ({type}[3] y) <{type}[3] a = {{{least}, -7, 7}}, {type} b = {{2}}>",
                "q = Div(a, b) y = Add(q, x)")
    check(run(net, np.zeros(3, type)), np.array([least // 2, -3, 3], type))


@pytest.mark.parametrize(("type", "unit"), [("int16", 10000), ("int32", 10**9)])
def test_a_range_is_longer_than_its_type_has_numbers(type: str, unit: int) -> None:
    net = model(f"({type}[1] x) => ({type}[4] y) <{type} s = {{{-2 * unit}}}, {type} e = {{{2 * unit}}}, "
                f"{type} d = {{{unit}}}>", "r = Range(s, e, d) y = Add(r, x)")
    check(run(net, np.zeros(1, type)), np.arange(-2, 2).astype(type) * np.array(unit, type))


@pytest.mark.parametrize("at", [[[0, 5]], [[0, -1]], [[0, 0, 0]], [[0, 0], [1, 1]], [4], [-1]])
def test_indices_of_a_sparse_weight_are_checked(at: Any) -> None:
    net = model("(float[2, 2] x) => (float[2, 2] y)", "y = Identity(x)")
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    net.graph.sparse_initializer.append(helper.make_sparse_tensor(
        values, numpy_helper.from_array(np.array(at, np.int64), "at"), [2, 2]))
    net.graph.node[0].CopyFrom(helper.make_node("Add", ["x", "w"], ["y"]))
    assert refused(net).code == "MLC0840"


def test_a_small_weight_that_meets_a_constant_stays_a_parameter() -> None:
    net = model("(float[2] x) => (float[2] y) <float[2] w = {1, 2}>", """
        k = Constant<value_float = 2.0>() s = Mul(w, k) r = Sqrt(s) v = Mul(r, r) y = Add(x, v)""")
    f = mlc.onnx.load(net)
    f(mlc.zeros(2)).sum().backward()
    assert f.w.grad.numpy().tolist() == [2, 2] and np.allclose(f(mlc.zeros(2)).numpy(), [2, 4])


def test_a_small_weight_that_a_size_is_computed_of_is_a_constant() -> None:
    net = model("(float[2] x) => (float[2, n] y) <float[1] w = {1.5}, float[1] v = {3}>", """
        k = Constant<value_floats = [2.0]>() p = Mul(w, k) f = Floor(p) i = Cast<to = 7>(f) two = Shape(x)
        size = Concat<axis = 0>(two, i) u = Unsqueeze(x, one) e = Expand(u, size) y = Mul(e, v)""")
    net.graph.initializer.append(numpy_helper.from_array(np.array([1]), "one"))
    f = mlc.onnx.load(net)
    assert set(f.state_dict()) == {"v"} and f(mlc.ones(2)).shape == (2, 3)


def test_functions_of_one_name_differ_by_their_overload() -> None:
    net = model("(float[2] x) => (float[2] y, float[2] z)", "y = Identity(x) z = Identity(x)")
    net.opset_import.append(helper.make_opsetid("mine", 1))
    for node, overload, op in zip(net.graph.node, "ab", ("Neg", "Abs")):
        node.domain, node.op_type, node.overload = "mine", "F", overload
        net.functions.append(helper.make_function("mine", "F", ["v"], ["w"], [helper.make_node(op, ["v"], ["w"])],
                                                  [helper.make_opsetid("", 21)], overload=overload))
    for found, wanted in zip(run(net, np.array([1, -2], np.float32)), ([-1, 2], [1, 2])):
        check(found, np.array(wanted, np.float32))
