"""Models in the format ONNX: `mlc.onnx.load`, the standard backend, and files that are none."""
from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontend.onnx import table
from mlc.onnx.description import describe
from mlc.tools.fuzzing.interpreted import interpreted
from tests.peers import onnx_backend as judge

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper, parser  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
NET = HEAD + """net (float[B, 3] x) => (float[B, m] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {1, -1},
    int64[1] all = {-1}> {
    n = Shape <end = 1> (x)
    size = Concat <axis = 0> (n, all)
    z = Gemm (x, w, b)
    r = Relu (z)
    y = Reshape (r, size)
}"""


def model(text: str) -> Any:
    return parser.parse_model(text)


def test_a_model_is_called_saved_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx.save(model(NET), tmp_path / "net.onnx")
    f = mlc.onnx.load(tmp_path / "net.onnx")
    x = np.arange(12, dtype=np.float32).reshape(4, 3) - 4
    wanted = np.maximum(x @ np.array([[1, 2], [3, 4], [5, 6]]) + [1, -1], 0)
    assert set(f.state_dict()) == {"w", "b"}, "the sizes are part of the program"
    assert np.allclose(f(x).numpy(), wanted)
    assert "tensor.relu" in mlc.lower(f, [mlc.spec("B", 3)]).to_text()
    mlc.save(f, tmp_path / "net.mlc")
    assert np.allclose(mlc.load(tmp_path / "net.mlc")(x).numpy(), wanted)
    mlc.extension.write(tmp_path / "written.so", f)
    monkeypatch.syspath_prepend(tmp_path)
    written = importlib.import_module("written")
    assert np.allclose(next(v for n, v in vars(written).items() if callable(v) and not n.startswith("_"))(x), wanted)


def test_weights_train() -> None:
    f = mlc.onnx.load(model(NET))
    f(mlc.ones(2, 3)).sum().backward()
    assert f.b.grad.numpy().tolist() == [2, 2]


def test_an_input_that_sizes_depend_on_is_named_and_may_be_a_constant() -> None:
    text = HEAD + "f (float[6] x, int64[2] n) => (float[a, b] y) { m = Abs(n) y = Reshape(x, m) }"
    with pytest.raises(mlc.UserError, match="known only when the model runs") as caught:
        mlc.onnx.load(model(text))
    assert caught.value.code == "MLC0843" and "give the values of n" in (caught.value.hint or "")
    assert mlc.onnx.load(model(text), constants={"n": [2, 3]})(mlc.ones(6)).shape == (2, 3)


def test_the_meaning_follows_the_version() -> None:
    text = '<ir_version: 8, opset_import: ["": %d]> f (float[2, 2, 2] x) => (float[2, 2, 2] y) { y = Softmax(x) }'
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    with interpreted():
        old, new = (mlc.onnx.load(model(text.replace("%d", v)))(x).numpy() for v in ("11", "13"))
    assert np.allclose(old.sum((1, 2)), 1) and np.allclose(new.sum(2), 1)


LOOP = HEAD + """f (int64 n, float[2] x) => (float[2] y) <bool go = {1}> {
    y = Loop (n, go, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) {
        d = Identity(c)
        w = Add(v, v)
    }>
}"""
BRANCH = HEAD + """f (bool c, float[2] x) => (float[2] y) {
    y = If (c) <then_branch = a () => (float[2] p) { p = Neg(x) }, else_branch = b () => (float[2] q) { q = Exp(x) }>
}"""


def test_loops_and_branches_of_the_code() -> None:
    with interpreted():
        f, g = mlc.onnx.load(model(LOOP)), mlc.onnx.load(model(BRANCH))
        assert f(np.array(3), np.ones(2, np.float32)).numpy().tolist() == [8, 8]
        assert g(np.array(True), np.ones(2, np.float32)).numpy().tolist() == [-1, -1]
        assert g(np.array(False), np.zeros(2, np.float32)).numpy().tolist() == [1, 1]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("image", "align"), [((3, 4), 0), ((3, 4), 1), ((2, 3, 4), 1)])
def test_grids_of_affine_maps(batch: int, image: tuple[int, ...], align: int) -> None:
    rank, size = len(image), (batch, 1, *image)
    text = f"""<ir_version: 8, opset_import: ["": 20]> f (float[{batch}, {rank}, {rank + 1}] t) => (float[a, ...] y)
        <int64[{rank + 2}] s = {{{", ".join(map(str, size))}}}> {{ y = AffineGrid<align_corners = {align}>(t, s) }}"""
    t = np.arange(batch * rank * (rank + 1), dtype=np.float32).reshape(batch, rank, rank + 1)
    with interpreted():
        found = mlc.onnx.load(model(text.replace("a, ...", ", ".join("abcde"[:rank + 2]))))(t).numpy()
        assert np.allclose(found, mlc.nn.functional.affine_grid(mlc.tensor(t), size, bool(align)).numpy(), atol=1e-4)


def test_functions_of_the_model() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "mine": 1]> f (float[2] x) => (float[2] y) {
        y = mine.twice <by = 3.0> (x)
    }
    <domain: "mine", opset_import: ["": 17]> twice <by> (v) => (w) {
        k = Constant <value_float: float = @by> ()
        w = Mul(v, k)
    }"""
    with interpreted():
        assert mlc.onnx.load(model(text))(mlc.ones(2)).numpy().tolist() == [3, 3]


def test_import_lists_all_that_is_refused(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "a": 1]> f (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) {
        p = RandomUniformLike(x) q = Neg(p) r = a.F(q) s = a.F(x) y = Softmax<axis = 7>(x) z = Add(r, y) }"""
    file = tmp_path / "model.onnx"
    onnx.save(model(text), file)
    assert len(found := describe(file).unsupported) == 3
    assert all(part in line for part, line in zip(("a.F, version 1", "random numbers", "(Softmax)"), found))


def test_all_missing_operators_are_listed() -> None:
    text = '<ir_version: 8, opset_import: ["": 17, "a": 1]> f (float[2] x) => (float[2] y) { z = a.F(x) y = a.G(z) }'
    with pytest.raises(mlc.UserError) as caught:
        mlc.onnx.load(model(text))
    assert caught.value.code == "MLC0841" and len(caught.value.notes) == 2


# -- weights in other files -------------------------------------------------------------------------------------------
def with_weight(**where: Any) -> Any:
    out = model(HEAD + "f (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    t = out.graph.initializer[0]
    t.ClearField("float_data")
    t.ClearField("raw_data")
    t.data_location = TensorProto.EXTERNAL
    for key, value in where.items():
        t.external_data.add(key=key, value=str(value))
    return out


def test_weights_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"1234" + np.array([3, 4], np.float32).tobytes())
    path = tmp_path / "f.onnx"
    path.write_bytes(with_weight(location="w.bin", offset=4, length=8).SerializeToString())
    assert mlc.onnx.load(path).w.numpy().tolist() == [3, 4]


@pytest.mark.parametrize("where", [
    {"location": "../w.bin"}, {"location": "w.bin\0"}, {"location": "a" * 5000}, {"location": "link"},
    {"location": "/etc/passwd"}, {"location": ""}, {"location": "none"},
    {"location": "w.bin", "offset": 100}, {"location": "w.bin", "offset": -4}, {"location": "w.bin", "length": 10**18},
    {"location": "w.bin", "offset": "x"}], ids=str)
def test_weights_outside_are_not_read(where: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(8))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").write_bytes(bytes(8))
    (folder / "link").symlink_to(tmp_path / "w.bin")
    (folder / "f.onnx").write_bytes(with_weight(**where).SerializeToString())
    with pytest.raises(mlc.UserError) as caught:
        mlc.onnx.load(folder / "f.onnx")
    assert caught.value.code == "MLC0845" and len(caught.value.message) < 1000


# -- files that are none ----------------------------------------------------------------------------------------------
def weight(change: Callable[[Any], None]) -> Any:
    out = model(HEAD + "f (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    change(out.graph.initializer[0])
    return out


def sizes(t: Any, *dims: int) -> None:
    del t.dims[:]
    t.dims.extend(dims)


def swapped() -> Any:
    out = model(HEAD + "f (float[2] x) => (float[2] y) { z = Neg(x) y = Neg(z) }")
    first = out.graph.node[0]
    copy = onnx.NodeProto()
    copy.CopyFrom(first)
    del out.graph.node[0]
    out.graph.node.append(copy)
    return out


def cyclic() -> Any:
    out = model(HEAD + "f (float[2] x) => (float[2] y) { z = Neg(x) y = Neg(z) }")
    out.graph.node[0].input[0] = "y"
    return out


BROKEN = {
    "no protobuf": b"\xff" * 50, "empty": b"", "half": model(NET).SerializeToString()[:60], "number": 3,
    "too many elements": weight(lambda t: sizes(t, 3)), "huge": weight(lambda t: sizes(t, 1 << 40, 1 << 40)),
    "negative": weight(lambda t: sizes(t, -2)), "unknown type": weight(lambda t: setattr(t, "data_type", 99)),
    "odd bytes": weight(lambda t: setattr(t, "raw_data", b"12345")), "unsorted": swapped(), "cyclic": cyclic(),
    "newer": '<ir_version: 8, opset_import: ["": 9999]> f (float[2] x) => (float[2] y) { y = Neg(x) }',
    "no such attribute": HEAD + "f (float[2] x) => (float[2] y) { y = Elu<beta = 3.0>(x) }",
    "text for a number": HEAD + 'f (float[2, 2] x) => (float[2, 2] y) { y = Softmax<axis = "a">(x) }',
    "flag": HEAD + "f (float[2, 2] x) => (float[2, 1] y) { y = ReduceMax<keepdims = 2>(x) }",
    "axis out of range": HEAD + "f (float[2, 2] x) => (float[2, 2] y) { y = Softmax<axis = 7>(x) }",
    "division by zero": HEAD + "f (float[2] x) => (float[a] y) <int64[1] z = {0}> "
                               "{ n = Shape(x) m = Div(n, z) y = Reshape(x, m) }",
    "absurd size": HEAD + "f (float[1] x) => (float[a, b] y) <int64[2] n = {4611686018427387904, 4611686018427387904}> "
                          "{ y = Expand(x, n) }",
    "absurd parts": '<ir_version: 8, opset_import: ["": 18]> f (float[4] x) => (float[2] y, float[2] z) '
                    "{ y, z = Split<num_outputs = 2147483647>(x) }",
    "missing input": HEAD + "f (float[2] x) => (float[2] y) { y = Add(x) }",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model_is_one_error(name: str) -> None:
    given = BROKEN[name]
    with pytest.raises(mlc.UserError) as caught:
        mlc.onnx.load(model(given) if isinstance(given, str) else given)
    assert caught.value.code, str(caught.value)


def test_functions_without_an_end() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "mine": 1]> f (float[2] x) => (float[2] y) { y = mine.g(x) }
        <domain: "mine", opset_import: ["": 17, "mine": 1]> g (v) => (w) { w = mine.g(v) }"""
    with pytest.raises(mlc.UserError):
        mlc.onnx.load(model(text))


# -- ONNX's own tests -------------------------------------------------------------------------------------------------
def test_every_row_is_an_operator() -> None:
    table.find("", "Add", 17)
    known = {(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()}
    assert set(table.TABLE) <= known


def test_rows_have_the_attributes_of_their_operators() -> None:
    """Every attribute of a version that a row is for is one of its parameters, so that no model is refused for it."""
    table.find("", "Add", 17)
    for schema in onnx.defs.get_all_schemas_with_history():
        row = table.find(schema.domain, schema.name, schema.since_version)
        if row is not None and schema.since_version >= 7 and not schema.deprecated:
            missing = set(schema.attributes) - set(row.signature.parameters)
            assert not missing, f"{schema.name} of version {schema.since_version}: {missing}"


PER_TENSOR = {"DequantizeLinear", "QuantizeLinear"}
"""Operators that have an axis of their own for some inputs only."""


@pytest.mark.slow
def test_an_axis_out_of_range_is_refused_by_every_operator() -> None:
    tried = set[str]()
    for case in judge.cases(["node"]):
        given = judge.model_of(case)
        node = given.graph.node[0]
        axes = [a for a in node.attribute if a.name in ("axis", "axes")]
        if given.functions or len(given.graph.node) > 1 or node.op_type in tried | PER_TENSOR or not axes:
            continue
        tried.add(node.op_type)
        axes[0].CopyFrom(helper.make_attribute(axes[0].name, [99] if axes[0].ints else 99))
        with pytest.raises(mlc.UserError):
            mlc.onnx.load(given)
    assert len(tried) > 20


@pytest.mark.parametrize("kind", ["pytorch-operator", pytest.param("node", marks=pytest.mark.slow)])
def test_a_sample_of_onnx_own_cases(kind: str) -> None:
    found = judge.cases([kind])[::120 if kind == "node" else 9]
    lines = [judge.judge(case, "interpreted") for case in found]
    assert not [line for line in lines if line["verdict"] in ("wrong", "error")]
    assert sum(line["verdict"] == "right" for line in lines) > len(lines) / 2


def test_the_judge_tells_right_from_wrong() -> None:
    x = np.array([1, 2], np.float32)
    assert not judge.difference(x, x * (1 + 1e-6), 1e-3, 1e-7)
    assert judge.difference(x, x * 1.1, 1e-3, 1e-7) and judge.difference(x, x.astype(np.float64), 1e-3, 1e-7)
    assert judge.difference(x, x[None], 1e-3, 1e-7) and judge.difference([x], [x, x], 1e-3, 1e-7)


def test_the_standard_backend() -> None:
    from mlc.onnx import backend
    found = backend.run_node(helper.make_node("Add", ["x", "y"], ["z"]), [np.ones(2, np.float32)] * 2)
    assert found.z.tolist() == [2, 2] and backend.supports_device("CPU") and not backend.supports_device("CUDA:0")
    assert backend.run_model(model(NET), [np.ones((2, 3), np.float32)])[0].tolist() == [[10, 11]] * 2
    assert numpy_helper.to_array(model(NET).graph.initializer[0]).shape == (3, 2)


QUANTISED = HEAD.replace("17", "21") + """net (float[1, 2, 4, 4] x) => (float[1, 5] y) <
    float s = {0.05}, TYPE z = {ZERO}, int8[3, 2, 3, 3] w = {WEIGHTS}, float[3] ws = {0.01, 0.02, 0.03},
    int8[3] none = {0, 0, 0}, float[3] b = {1, -1, 0}, int8[5, 48] m = {MATRIX}, float ms = {0.02},
    float[5] mb = {1, 2, 3, 4, 5}> {
    q = QuantizeLinear (x, s, z)
    d = DequantizeLinear (q, s, z)
    f = DequantizeLinear <axis = 0> (w, ws, none)
    c = Conv <pads = [1, 1, 1, 1]> (d, f, b)
    r = Flatten (c)
    rq = QuantizeLinear (r, s, z)
    rd = DequantizeLinear (rq, s, z)
    md = DequantizeLinear (m, ms)
    y = Gemm <transB = 1> (rd, md, mb)
}"""


@pytest.mark.parametrize(("type", "zero"), [("uint8", 120), ("int8", -3)])
def test_quantised_products_are_of_integers(type: str, zero: int) -> None:
    """Numbers that DequantizeLinear makes of bytes are multiplied as bytes: the reference's, up to their rounding."""
    rng = np.random.default_rng(0)
    text = QUANTISED.replace("TYPE", type).replace("ZERO", str(zero))
    for name, count in (("WEIGHTS", 54), ("MATRIX", 240)):
        text = text.replace(name, ", ".join(map(str, rng.integers(-127, 128, count))))
    net, x = model(text), rng.standard_normal((1, 2, 4, 4)).astype(np.float32)
    wanted, = ReferenceEvaluator(net).run(None, {"x": x})
    f = mlc.onnx.load(net)
    np.testing.assert_allclose(f(x).numpy(), wanted, rtol=1e-4, atol=1e-3)
    recorded = mlc.lower(f, [mlc.spec(1, 2, 4, 4)]).to_text()
    assert "tensor<3x2x3x3xi8>) -> tensor<1x3x4x4xi32>" in recorded and "-> tensor<1x5xi32>" in recorded
