"""Programs of StableHLO: reading, running, describing and writing them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.checked import Meaning
from mlc.frontend import eager
from mlc.frontend.stablehlo.reader import read
from mlc.frontend.stablehlo.table import TABLE, load
from mlc.ir.diag import UserError
from mlc.stablehlo import loading
from mlc.stablehlo.description import describe

PRETTY = """
module @net attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%x: tensor<3x4xf32> {jax.arg_info = "x"} loc("x"), %w: tensor<4x2xf32>) -> tensor<2xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
    %1 = call @relu(%0) : (tensor<3x2xf32>) -> tensor<3x2xf32>
    %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [0]
      : (tensor<3x2xf32>, tensor<f32>) -> tensor<2xf32>
    return %2 : tensor<2xf32>
  }
  func.func private @relu(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
    %0 = stablehlo.constant dense<0.0> : tensor<3x2xf32>
    %1 = stablehlo.maximum %x, %0 : tensor<3x2xf32>
    return %1 : tensor<3x2xf32>
  }
}
#loc = loc("net.py":1:2)
"""


def run(source: str | Path, *args: Any) -> Any:
    """The results, operation by operation, without machine code."""
    with eager.compiled_by(lambda module, where: Meaning(module)):
        found = loading.run(loading.program_of(source)[0], [mlc.tensor(x) for x in args])
    return [x.numpy() for x in found] if isinstance(found, tuple) else found.numpy()


def body(lines: str, arguments: str, result: str) -> str:
    """A program with one function."""
    return f"func.func @main({arguments}) -> {result} {{\n{lines}\n}}"


def test_a_network_in_the_pretty_form_runs_as_native_code() -> None:
    x, w = np.ones((3, 4), np.float32), np.arange(8, dtype=np.float32).reshape(4, 2) - 3
    f = mlc.stablehlo.load(PRETTY)
    np.testing.assert_array_equal(f(x, w).numpy(), np.maximum(x @ w, 0).sum(0))
    assert f.signatures == ["(tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<2xf32>"]


def test_what_is_written_is_read_again() -> None:
    def f(x: Any, i: Any) -> Any:
        y = mlc.cumsum(mlc.sort(x, 0).values, 1)
        return mlc.softmax(y[i], -1), mlc.while_loop(lambda z: z.sum() < 10, lambda z: z * 2 + 1, mlc.abs(y[0]))

    x, i = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32), np.array([3, 0])
    found = run(mlc.stablehlo.text(f, [x, i]), x, i)
    for a, b in zip(found, f(mlc.tensor(x), mlc.tensor(i)), strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-5)


def test_a_size_that_is_not_known_is_a_symbol() -> None:
    f = mlc.stablehlo.load(body("""
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
      %c = stablehlo.constant dense<2> : tensor<i32>
      %m = stablehlo.multiply %n, %c : tensor<i32>
      %s = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
      %0 = stablehlo.dynamic_reshape %x, %s : (tensor<?x2xf32>, tensor<1xi32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>""", "%x: tensor<?x2xf32>", "tensor<?xf32>"))
    assert [f(np.ones((n, 2), np.float32)).shape for n in (1, 3)] == [(2,), (6,)]
    assert len(f.signatures) == 1


def test_regions_that_are_no_reduction_of_mlc() -> None:
    text = body("""
      %0 = "stablehlo.reduce"(%x, %c) <{dimensions = array<i64: 0>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.multiply %a, %b : tensor<f32>
        %2 = stablehlo.add %a, %b : tensor<f32>
        %3 = stablehlo.add %1, %2 : tensor<f32>
        stablehlo.return %3 : tensor<f32>
      }) : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>""", "%x: tensor<5xf32>, %c: tensor<f32>", "tensor<f32>")
    x = np.array([1, 2, 3, 0, 1], np.float32)
    assert run(text, x, np.float32(0)) == np.prod(x + 1) - 1         # a + b + ab has ab + 1 of a + 1 and b + 1


def test_a_comparator_of_two_keys_keeps_the_order_of_equal_elements() -> None:
    text = body("""
      %0:3 = "stablehlo.sort"(%a, %b, %i) <{dimension = 0 : i64, is_stable = true}> ({
      ^bb0(%a0: tensor<i32>, %a1: tensor<i32>, %b0: tensor<i32>, %b1: tensor<i32>, %i0: tensor<i32>, %i1: tensor<i32>):
        %1 = stablehlo.compare LT, %a0, %a1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %2 = stablehlo.compare EQ, %a0, %a1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %3 = stablehlo.compare GT, %b0, %b1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %4 = stablehlo.and %2, %3 : tensor<i1>
        %5 = stablehlo.or %1, %4 : tensor<i1>
        stablehlo.return %5 : tensor<i1>
      }) : (tensor<11xi32>, tensor<11xi32>, tensor<11xi32>) -> (tensor<11xi32>, tensor<11xi32>, tensor<11xi32>)
      return %0#2 : tensor<11xi32>""", "%a: tensor<11xi32>, %b: tensor<11xi32>, %i: tensor<11xi32>", "tensor<11xi32>")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, n, 11).astype(np.int32) for n in (3, 2))
    i = np.arange(11, dtype=np.int32)
    np.testing.assert_array_equal(run(text, a, b, i), np.lexsort((i, -b, a)))


@pytest.mark.parametrize(("text", "code", "message"), [
    ("func.func @main() -> tensor<f32> { return %x : tensor<f32> }", "MLC0860", "%x is not defined here"),
    ("func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f64> }", "MLC0860", "has the type"),
    ("func.func @main(%x: tensor<4xi4>) -> tensor<4xi4> { return %x : tensor<4xi4> }", "MLC0861", "elements of i4"),
    ("func.func @main(%x: tensor<2x!quant.uniform<i8:f32, 0.1>>) -> () { return }", "MLC0861", "quantized types"),
    (body('%0 = "stablehlo.all_gather"(%x) : (tensor<2xf32>) -> tensor<2xf32>\nreturn %0 : tensor<2xf32>',
          "%x: tensor<2xf32>", "tensor<2xf32>"), "MLC0861", "does not run 1 operation"),
    (body('%0 = "stablehlo.custom_call"(%x) {call_target_name = "mine"} : (tensor<2xf32>) -> tensor<2xf32>\n'
          "return %0 : tensor<2xf32>", "%x: tensor<2xf32>", "tensor<2xf32>"), "MLC0861", "does not run 1 operation"),
    ("module {" * 100, "MLC0860", "nesting deeper"),
    ("func.func @main(%x: tensor<99999999999999999999xf32>) -> () { return }", "MLC0860", "too large"),
    (body("%0 = stablehlo.add %x : tensor<2xf32>\nreturn %0 : tensor<2xf32>", "%x: tensor<2xf32>", "tensor<2xf32>"),
     "MLC0860", "it has 1 operands, and takes 2"),
    (body('%0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 1>, '
          'padding = dense<1> : tensor<1x2xcomplex<f32>>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
          '%1 = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %1 : tensor<f32>\n}) : '
          '(tensor<2xf32>, tensor<f32>) -> tensor<2xf32>\nreturn %0 : tensor<2xf32>',
          "%x: tensor<2xf32>, %c: tensor<f32>", "tensor<2xf32>"), "MLC0860", "no pair of integers"),
    (body("%0 = stablehlo.constant dense<1> : tensor<4xi32>\n%1 = stablehlo.reshape %0 : (tensor<4xi32>) -> "
          "tensor<3xi32>\nreturn %1 : tensor<3xi32>", "", "tensor<3xi32>"), "MLC0358", "reshape"),
    (body('%0 = "stablehlo.constant"(%x) <{value = dense<1> : tensor<i32>}> : (tensor<i32>) -> tensor<i32>\n'
          "return %0 : tensor<i32>", "%x: tensor<i32>", "tensor<i32>"), "MLC0860", "it has 1 operands, and takes 0"),
    (body("%0 = stablehlo.constant dense<1> : tensor<i32>\n%1 = stablehlo.add %0, %0 : (tensor<i32>, tensor<i32>) -> "
          "tensor<2xi32>\nreturn %1 : tensor<2xi32>", "", "tensor<2xi32>"), "MLC0860", "result 0 is int32"),
    ("func.func @main(%x: tensor<2xi" + "9" * 5000 + ">) -> () { return }", "MLC0861", "elements of i999"),
    ("\0", "MLC0860", "unexpected character"), ("", "MLC0860", "no function main")])
def test_a_faulty_text_is_one_error(text: str, code: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        mlc.lower(mlc.stablehlo.load(text))
    assert caught.value.code == code and message in caught.value.message and len(caught.value.message) < 1000


def test_a_wrong_type_of_a_result_is_an_error_at_its_line() -> None:
    text = body("%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>\n"
                "return %0 : tensor<2x3xf32>", "%x: tensor<2x3xf32>", "tensor<2x3xf32>")
    with pytest.raises(UserError, match=r"result 0 is float32\['3', '2'\]") as caught:
        run(text, np.ones((2, 3), np.float32))
    assert caught.value.code == "MLC0860" and caught.value.loc.line == 2


def test_arguments_of_other_types_are_refused_within_other_functions() -> None:
    with pytest.raises(UserError) as caught:
        mlc.compile(mlc.stablehlo.load(PRETTY))(np.ones((3, 4), np.float32), np.ones((4, 3), np.float32))
    assert caught.value.code == "MLC0862"


def test_a_large_constant_of_equal_elements_takes_no_memory() -> None:
    text = body("%0 = stablehlo.constant dense<1> : tensor<65536x65535xui8>\nreturn %0 : tensor<65536x65535xui8>",
                "", "tensor<65536x65535xui8>")
    assert read(text).main().body.operations[0].attrs["value"].strides == (0, 0)  # type: ignore[union-attr]
    assert "tensor.broadcast_to" in str(mlc.lower(mlc.stablehlo.load(text), level="trace"))


def test_damaged_texts_are_never_more_than_an_error() -> None:
    rng = random.Random(0)
    generic = mlc.stablehlo.text(lambda x: mlc.softmax(x, -1), [mlc.spec(2, 3)])
    for text in (PRETTY, generic):
        for _ in range(150):
            at, n = rng.randrange(len(text)), rng.randrange(1, 12)
            put = rng.choice(["", "%", "<", ")", "9" * 30, '"', "tensor<", text[at // 2:][:n]])
            damaged = text[:at] + put + text[at + n:]
            try:
                read(damaged)
            except UserError as error:
                assert error.code in ("MLC0860", "MLC0861")


def test_the_description_lists_what_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "net.stablehlo.mlir"
    path.write_text(PRETTY.replace("stablehlo.maximum %x, %0 :", "stablehlo.unheard_of %x, %0 :"))
    found = describe(path)
    assert found.inputs == ["x: tensor<3x4xf32>", "w: tensor<4x2xf32>"] and found.outputs == ["tensor<2xf32>"]
    assert found.unsupported == [f"stablehlo.unheard_of: mlc has no such operation ({path}:14:10)"]
    with pytest.raises(UserError) as caught:
        mlc.stablehlo.load(path)
    assert caught.value.code == "MLC0861" and caught.value.notes


def test_mlc_import_writes_the_tensor_dialect(tmp_path: Path) -> None:
    (tmp_path / "net.stablehlo.mlir").write_text(PRETTY)
    done = subprocess.run([sys.executable, "-m", "mlc.tools.cli", "import", "net.stablehlo.mlir", "-o", "net.mlir"],
                          cwd=tmp_path, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)})
    assert done.returncode == 0, done.stderr
    assert "tensor.dot_general" in (tmp_path / "net.mlir").read_text() and "not supported: none" in done.stdout


def test_portable_artifacts_are_read_by_jaxlib(tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    from jaxlib.mlir.dialects import stablehlo
    path = tmp_path / "net.mlirbc"
    path.write_bytes(stablehlo.serialize_portable_artifact_str(PRETTY, stablehlo.get_current_version()))
    x, w = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
    np.testing.assert_array_equal(run(path, x, w), [12, 12])
    whole = path.read_bytes()
    flipped = bytes([*whole[:44], 69, *whole[45:]])        # jaxlib 0.10 aborts on this one
    for damaged in (whole[:60], flipped):
        path.write_bytes(damaged)
        with pytest.raises(UserError) as caught:
            mlc.stablehlo.load(path)
        assert caught.value.code == "MLC0863"


def test_jaxlib_verifies_what_is_written() -> None:
    pytest.importorskip("jax")
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    def f(x: Any, i: Any) -> Any:
        return (mlc.grad(lambda x: mlc.nn.functional.gelu(x @ x).sum())(x), mlc.index_add(x, 0, i, x[:2]), mlc.erf(x),
                mlc.fori_loop(0, 3, lambda i, x: x * i, x), mlc.argmax(x, 1), x.to(mlc.bfloat16).sum())

    text = mlc.stablehlo.text(f, [mlc.spec(3, 3), mlc.spec(2, dtype="int64")])
    with mlir.make_ir_context(), ir.Location.unknown():
        assert ir.Module.parse(text).operation.verify()


def test_every_row_is_an_operation_that_jaxlib_knows() -> None:
    pytest.importorskip("jaxlib")
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import chlo, stablehlo
    load()
    with ir.Context() as context:
        stablehlo.register_dialect(context)
        chlo.register_dialect(context)
        unknown = [n for n in TABLE if n.partition(".")[0] in ("stablehlo", "chlo")
                   and not context.is_registered_operation(n)]
    assert not unknown


SIZED = (lambda x, y: (x + y, mlc.softmax(x, -1).reshape(-1), x[1::2], mlc.cumsum(x, 0), mlc.arange(x.shape[0])),
         [mlc.spec("B", "N"), mlc.spec("N")])


def test_symbolic_sizes_are_read_again() -> None:
    f = mlc.stablehlo.load(mlc.stablehlo.text(*SIZED))
    for b, n in ((3, 4), (6, 1)):
        x, y = np.random.default_rng(b).normal(size=(b, n)).astype(np.float32), np.ones(n, np.float32)
        for found, wanted in zip(f(x, y), SIZED[0](mlc.tensor(x), mlc.tensor(y)), strict=True):
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)
    assert len(f.signatures) == 1 and f.signatures[0].startswith("(tensor<N0_0xN0_1xf32>, tensor<N0_1xf32>) -> ")


def test_a_size_that_is_even_is_so_when_it_is_read_again() -> None:
    f = mlc.stablehlo.load(mlc.stablehlo.text(lambda x, y: x[::2] + y, [mlc.spec("2*N"), mlc.spec("N")]))
    np.testing.assert_array_equal(f(np.ones(6, np.float32), np.ones(3, np.float32)).numpy(), [2, 2, 2])
    with pytest.raises(UserError):
        f(np.ones(5, np.float32), np.ones(3, np.float32))


def test_xla_refines_symbolic_sizes() -> None:
    pytest.importorskip("jax")
    from tests.peers.jax_programs import refined
    text = mlc.stablehlo.text(*SIZED)
    x, y = np.ones((3, 4), np.float32), np.ones(4, np.float32)
    assert "tensor<12xf32>" in refined(text, [x, y])
    with pytest.raises(Exception, match="Error refining shapes"):
        refined(text, [x, np.ones(5, np.float32)])


def checked(x: Any) -> Any:
    assert x.sum() > 0
    return x


@pytest.mark.parametrize(("f", "code"), [(checked, "MLC0866"), (lambda x: x[x > 0], "MLC0865")])
def test_what_elements_decide_is_refused(f: Any, code: str) -> None:
    with pytest.raises(UserError) as caught:
        mlc.stablehlo.text(f, [mlc.spec(3)])
    assert caught.value.code == code and caught.value.hint


def test_complex_constants_have_all_of_their_bits() -> None:
    from mlc.backends.stablehlo.writer import Writer
    from mlc.ir.types import ComplexType, TensorType, f32
    z = np.array([1 + 2j, complex(np.inf, -0.0)], np.complex64)
    w = Writer({})
    w.constant(z, TensorType((2,), ComplexType(f32)))
    w.constant(z[0], TensorType((), ComplexType(f32)))
    array, number = (line.split('"stablehlo.constant"')[1] for line in w.lines)
    text = body(f'%0 = "stablehlo.constant"{array}\n%1 = "stablehlo.constant"{number}\n'
                "return %0, %1 : tensor<2xcomplex<f32>>, tensor<complex<f32>>", "",
                "(tensor<2xcomplex<f32>>, tensor<complex<f32>>)")
    found = run(text)
    assert found[0].tobytes() == z.tobytes() and found[1] == z[0]
    pytest.importorskip("jax")
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    with mlir.make_ir_context(), ir.Location.unknown():
        assert ir.Module.parse(text).operation.verify()


def test_the_command_line_writes_stablehlo_and_onnx(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    from mlc.tools.cli import main
    (tmp_path / "net.mlc").write_text("def f(x: f32[N, 4]) = x * 2 + 1\n")
    assert main(["compile", f"{tmp_path}/net.mlc:f", "--emit=stablehlo,onnx,tensor", "-o", str(tmp_path / "out")]) == 0
    x = np.ones((3, 4), np.float32)
    assert mlc.stablehlo.load(tmp_path / "out/f.stablehlo.mlir")(x).shape == mlc.onnx.load(tmp_path / "out/f.onnx")(
        x).shape == (3, 4)
    for file in ("f.tensor.mlir", "f.stablehlo.mlir", "f.onnx"):
        for level in ("stablehlo", "onnx"):
            out = str(tmp_path / f"again.{level}")
            assert main(["compile", str(tmp_path / "out" / file), f"--emit={level}", "-o", out]) == 0
