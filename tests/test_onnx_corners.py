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


def test_a_shape_that_depends_on_a_comparison_of_sizes_is_refused() -> None:
    net = model("(float[N, 2] x) => (float[a, b] y) <int64[2] other = {3, 2}>", """
        s = Shape(x) c = Equal(s, other) m = Mul(s, other) w = Where(c, other, s) y = Reshape(x, w)""")
    error = refused(net)
    assert error.code == "MLC0843" and "numbers in place of the symbolic sizes" in (error.hint or "")


# -- constants --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("type", ["int32", "int64"])
def test_the_least_integer_keeps_its_sign_when_it_is_divided(type: str) -> None:
    least = np.iinfo(type).min
    net = model(f"({type}[3] x) => ({type}[3] y) <{type}[3] a = {{{least}, -7, 7}}, {type} b = {{2}}>",
                "q = Div(a, b) y = Add(q, x)")
    check(run(net, np.zeros(3, type)), np.array([least // 2, -3, 3], type))


@pytest.mark.parametrize(("axis", "sizes"), [(0, "1, 0"), (1, "0, 3"), (2, "0, 1")])
def test_a_constant_without_elements_is_flattened(axis: int, sizes: str) -> None:
    net = model(f"(float[1] x) => (float[{sizes}] y, float[1] z)", f"k = Constant<value = float[0, 3] {{}}>() "
                f"y = Flatten<axis = {axis}>(k) z = Neg(x)")
    assert run(net, ONES[0, :1])[0].shape == tuple(map(int, sizes.split(", ")))


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


# -- integers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("type", ["uint8", "int8", "int32"])
def test_images_of_integers_are_resized_by_fractions(type: str, mode: str) -> None:
    net = model(f"({type}[1, 1, 2, 3] x) => ({type}[1, 1, 4, 6] y) <float[4] s = {{1, 1, 2, 2}}>",
                f'y = Resize<mode = "{mode}">(x, , s)')
    as_reference(net, np.array([[[[0, 100, 7], [120, 40, 90]]]], type))


@pytest.mark.parametrize("type", ["int32", "int64"])
@pytest.mark.parametrize("exponent", ["float", "double"])
def test_powers_of_integers_by_floats(type: str, exponent: str) -> None:
    net = model(f"({type}[5] x, {exponent}[5] e) => ({type}[5] y)", "y = Pow(x, e)")
    as_reference(net, np.array([16777217, 123456789, -2, 3, 2], type),
                 np.array([1, 1, 3, 0.5, -1], "float32" if exponent == "float" else "float64"))


@pytest.mark.parametrize(("bias", "limit"), [(1.5, 1.0), (0.5, 1.5), (1.0, 1.5)])
def test_shrink_of_integers(bias: float, limit: float) -> None:
    net = model("(int32[6] x) => (int32[6] y)", f"y = Shrink<lambd = {limit}, bias = {bias}>(x)")
    as_reference(net, np.array([-3, -1, 0, 1, 2, 3], np.int32))


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.5), (-0.5, 1.0), (2.0, 3.0)])
def test_a_product_of_integer_matrices_with_factors(alpha: float, beta: float) -> None:
    net = model("(int32[1, 2] a, int32[2, 1] b, int32[1, 1] c) => (int32[1, 1] y)",
                f"y = Gemm<alpha = {alpha}, beta = {beta}>(a, b, c)")
    as_reference(net, np.array([[2, 5]], np.int32), np.array([[1], [1]], np.int32), np.array([[9]], np.int32))


# -- empty tensors, missing axes, ends of ranges ----------------------------------------------------------------------
@pytest.mark.parametrize("reverse", [0, 1])
def test_exclusive_sums_along_an_empty_axis(reverse: int) -> None:
    text = f"y = CumSum<exclusive = 1, reverse = {reverse}>(x, one)"
    check(run(model("(float[2, 0] x) => (float[2, 0] y) <int64 one = {1}>", text), ONES[:, :0]), ONES[:, :0])
    as_reference(model("(float[2, N] x) => (float[2, N] y) <int64 one = {1}>", text), ONES.cumsum(1))


def test_squeeze_without_axes_of_a_symbolic_size() -> None:
    net = model("(float[N, 1, 3] x) => (float[a, 3] y)", "y = Squeeze(x)")
    check(run(net, ONES[:, None]), ONES)
    check(run(net, ONES[:0, None]), ONES[:0])
    assert "keeps an axis of N, which may not be 1, where N = 1" in refused(net, ONES[:1, None]).message


def test_the_results_of_no_steps_of_a_symbolic_size_are_refused() -> None:
    net = model("(float[N] x) => (float[a, N] y) <int64 n = {0}, bool go = {1}>", """
        y = Loop(n, go) <body = b (int64 i, bool c) => (bool d, float[N] o) { d = Identity(c) o = Identity(x) }>""")
    assert "sizes are not given" in refused(net, ONES[0]).message


def test_upsample_of_the_first_versions() -> None:
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    for opset, attributes in ((7, "scales = [1.0, 1.0, 3.0, 2.0]"), (1, "height_scale = 3.0, width_scale = 2.0")):
        net = model("(float[1, 1, 2, 2] x) => (float[1, 1, 6, 4] y)", f"y = Upsample<{attributes}>(x)", opset)
        net.ir_version = 4
        check(run(net, x), x.repeat(3, 2).repeat(2, 3))


def test_softplus_of_large_numbers_in_double_precision() -> None:
    x = np.array([20.5, 25, 800, -800])
    check(run(model("(double[4] x) => (double[4] y)", "y = Softplus(x)"), x), np.logaddexp(x, 0), 1e-15)


@pytest.mark.parametrize(("type", "least"), [("float", -np.inf), ("int8", -128)])
@pytest.mark.parametrize("order", [0, 1])
def test_positions_of_maxima_are_not_those_of_the_padding(type: str, least: float, order: int) -> None:
    net = model(f"({type}[1, 2, 3, 2] x) => ({type}[1, 2, 2, 2] y, int64[1, 2, 2, 2] i)",
                f"y, i = MaxPool<kernel_shape = [2, 2], pads = [1, 1, 0, 1], strides = [2, 2], "
                f"storage_order = {order}>(x)")
    x = np.full((1, 2, 3, 2), least, np.float32 if type == "float" else np.int8)
    _, found = run(net, x)
    check(found, np.array([[[0, 1], [2, 3]]] * 2 if not order else [[[0, 3], [1, 4]]] * 2)[None]
          + np.arange(2).reshape(1, 2, 1, 1) * 6)


@pytest.mark.parametrize(("signature", "node"), [
    ("(float[2, 3] x) => (float[2, 3] y)", "y = GlobalAveragePool(x)"),
    ("(float[2, 3] x) => (float[2, 3] y)", "y = GlobalMaxPool(x)"),
    ("(float[2] x) => (float[a] y, int64[a] i) <int64[1] k = {3}>", "y, i = TopK(x, k)"),
    ("(float[2] x) => (float[2] y) <int64 k = {2}>", "s = SequenceConstruct(x, x) t = SequenceErase(s, k) "
                                                     "z = Identity(k) y = ConcatFromSequence<axis = 0>(t)"),
    ("(float[2] x) => (float[2] y) <int64 k = {-3}>", "s = SequenceConstruct(x, x) y = SequenceAt(s, k)")])
def test_what_is_not_there_is_refused(signature: str, node: str) -> None:
    assert refused(model(signature, node)).code in ("MLC0842", "MLC0363")


def test_more_elements_are_asked_for_than_a_symbolic_axis_has() -> None:
    net = model("(float[N] x) => (float[a] y, int64[a] i) <int64[1] k = {3}>", "y, i = TopK(x, k)")
    check(run(net, np.arange(4, dtype=np.float32))[1], np.array([3, 2, 1]))
    assert "TopK of 3 elements" in refused(net, ONES[:, 0]).message
