"""mlc run --check: finds planted faults, names the pass and the rule, and writes a reproducer."""
from __future__ import annotations

import ctypes
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import checked_paths
from mlc.backends.cpu import threads
from mlc.backends.cpu.targets import host
from mlc.dialects import arith, loop, tensor
from mlc.dialects.tensor.composite import sum_kept
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.dialects.tensor.kernel import Kernel
from mlc.ir.core import REGISTRY, Op, Value
from mlc.ir.diag import InternalError, IRError
from mlc.ir.interp import run_function
from mlc.ir.parser import parse_module
from mlc.ir.passes import parse_pipeline
from mlc.ir.rewrite import RULES, Outcome, rewrite
from mlc.ir.types import TensorType, f32
from mlc.passes import pipeline
from mlc.passes.lower_kernel.nest import Lowering
from mlc.tools import check, cli, derivatives, expansions, inputs, otherwise, outcome, redzones
from tests.op_samples import samples_of
from tests.samples import MODEL_MLIR

Plant = Callable[..., Callable[[Callable[[Any], Outcome]], Callable[[Any], Outcome]]]

WRONG_PASS = '''"""A wrong pass: additions become subtractions."""
from mlc.dialects import tensor
from mlc.ir.core import before
from mlc.ir.passes import Pass


def run(module):
    """x + y becomes x - y."""
    for op in list(module.inside(tensor.Add)):
        with before(op):
            op.replace_by(tensor.Sub(op.lhs, op.rhs).result)


PASS = Pass(run)
'''

MANY_ADDITIONS = """func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.sub %x, %y : tensor<4xf32>
  %1 = tensor.mul %0, %y : tensor<4xf32>
  %2 = tensor.add %1, %x : tensor<4xf32>
  %3 = tensor.mul %2, %1 : tensor<4xf32>
  %4 = tensor.add %3, %y : tensor<4xf32>
  func.return %4 : tensor<4xf32>
}
"""


@pytest.fixture
def planted() -> Iterator[Plant]:
    """Registers rules that are forgotten afterwards."""
    before = {cls: list(rules) for cls, rules in RULES.items()}
    yield rewrite
    RULES.clear()
    RULES.update(before)


@pytest.fixture
def wrong_pass(sample_folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    Path("wrong_pass_package").mkdir()
    Path("wrong_pass_package/negate.py").write_text(WRONG_PASS)
    monkeypatch.setattr(sys, "path", [*sys.path, str(sample_folder)])
    return "wrong_pass_package.negate"


def replayed(err: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The status and messages of the reproducing command in an error."""
    line = re.search(r"replay it with: mlc (.*)", err)
    assert line, err
    before = set(Path().iterdir())
    status = cli.main(shlex.split(line[1]))
    assert set(Path().iterdir()) == before, "a replay leaves nothing"
    return status, capsys.readouterr().err


def test_a_correct_compilation_passes(sample_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "model.mlir", "--check"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("result 0: f32[3, 3]")
    for _, text, _ in pipeline.ORDER:
        assert f"  {text.split('{')[0]}" in err
    assert re.search(r"fix_numerics({[^}]*})?: same within the tolerance", err)
    assert re.search(r"  fuse(\{.*\})?: same to the bit", err)         # with what this machine has
    assert "native code: same to the bit" in err


def test_a_wrong_pass_is_named(wrong_pass: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "model.mlir", "--check", "-p", f"canonicalize,{wrong_pass},cse"]) == 101
    out, err = capsys.readouterr()
    assert not out and f"error[MLC0901]: pass {wrong_pass} changes the answer of @main: result 0 is " in err
    assert "canonicalize: same" in err and "cse" not in err.split(wrong_pass)[0]
    text = Path(f"mlc-wrong-{wrong_pass}.mlir").read_text()
    assert f'pipeline: "builtin.module({wrong_pass})"' in text and "tensor.add" in text
    status, again = replayed(err, capsys)
    assert status == 101 and f"pass {wrong_pass} changes the answer" in again


def test_a_wrong_rule_is_named(planted: Plant, sample_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @planted(tensor.Add)
    def add_is_commutative(op: tensor.Add) -> Value | None:
        """(x * y) + z == z + (x * y), which is right"""
        if op.lhs.op is None or op.lhs.op.name != "tensor.mul" or op.rhs.op is not None:
            return None
        return tensor.Add(op.rhs, op.lhs).result

    @planted(tensor.Mul)
    def mul_is_add(op: tensor.Mul) -> Value | None:
        """x * y == x + y, where x is a sum: wrong"""
        return tensor.Add(op.lhs, op.rhs).result if op.lhs.op is not None and op.lhs.op.name == "tensor.add" else None

    Path("many.mlir").write_text(MANY_ADDITIONS)
    assert cli.main(["run", "many.mlir", "--check"]) == 101
    err = capsys.readouterr().err
    assert "pass canonicalize changes the answer" in err
    assert re.search(r"note: rule mul_is_add at many.mlir:5:3 does it: firing \d", err), err
    assert re.search(r"builtin.module\(canonicalize\{limit=\d\}\)", Path("mlc-wrong-canonicalize.mlir").read_text())
    status, again = replayed(err, capsys)
    assert status == 101 and "rule mul_is_add at many.mlir:5:3" in again


def test_ill_formed_input_is_blamed_on_no_pass() -> None:
    """A module that mixes levels is refused before the first pass runs."""
    mixed = parse_module("func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
                         "  %0 = tensor.map %x : tensor<3xf32> {\n"
                         "  ^bb0(%a: f32):\n    %1 = math.fma %a, %a, %a : f32\n    tensor.yield %1 : f32\n  }\n"
                         "  func.return %0 : tensor<3xf32>\n}\n")
    with pytest.raises(IRError, match=r"math\.fma is not allowed in the form"):
        check.Check(mixed, "main", [np.ones(3, np.float32)]).run(parse_pipeline("grad"))


def test_bisection_finds_the_firing(planted: Plant) -> None:
    """Of many firings of one rule, one is wrong."""
    @planted(arith.SubF)
    def sub_is_add(op: arith.SubF) -> Value | None:
        """x - y == x + -y; wrong where x is the constant 7"""
        wrong = op.lhs.op is not None and float(getattr(op.lhs.op, "value", 0)) == 7
        return arith.AddF(op.lhs, op.rhs if wrong else arith.NegF(op.rhs).result).result

    lines = "\n".join(f"  %c{i} = arith.constant {i}.0 : f32\n  %{i + 1} = arith.subf %c{i}, %{i} : f32"
                      for i in range(20))
    text = f"func.func @main(%0: f32) -> f32 {{\n{lines}\n  func.return %20 : f32\n}}"
    module = parse_module(text, "chain.mlir")
    run = check.Check(module, "main", [np.float32(1.25)], exact=True, keep=False)
    with pytest.raises(InternalError) as caught:
        run.run(parse_pipeline("canonicalize"))
    assert "rule sub_is_add at chain.mlir:17:3" in caught.value.notes[0]


def test_a_pass_that_breaks_the_form_is_named(sample_folder: Path, monkeypatch: pytest.MonkeyPatch,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    Path("breaking_pass_package").mkdir()
    Path("breaking_pass_package/stale.py").write_text(WRONG_PASS.replace(
        "op.replace_by(tensor.Sub(op.lhs, op.rhs).result)", "op.operands[0] = op.operands[1]"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(sample_folder)])
    Path("many.mlir").write_text(MANY_ADDITIONS)
    assert cli.main(["run", "many.mlir", "--check", "-p", "breaking_pass_package.stale"]) == 101
    err = capsys.readouterr().err
    assert "pass breaking_pass_package.stale changes the answer" in err and "MLC0107" in err


def test_a_wrong_backend_is_named(sample_folder: Path, monkeypatch: pytest.MonkeyPatch,
                                  capsys: pytest.CaptureFixture[str]) -> None:
    from mlc.backends import compilation_units
    emit = vars(compilation_units)["emit_part"]
    monkeypatch.setattr(compilation_units, "emit_part", lambda *args: emit(*args).replace(" fadd ", " fsub "))
    assert cli.main(["run", "model.mlir", "--check"]) == 101
    err = capsys.readouterr().err
    assert "error[MLC0902]: native code of @main differs from its meaning" in err
    status, again = replayed(err, capsys)
    assert status == 101 and "MLC0902" in again


def planted_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for narrow vectors subtracts where it should add."""
    from mlc.backends import compilation_units
    emit = vars(compilation_units)["emit_part"]

    def emit_wrong(*args: Any) -> str:
        text = str(emit(*args))
        return text.replace(" fadd ", " fsub ") if otherwise.narrow_target() in args else text

    monkeypatch.setattr(compilation_units, "emit_part", emit_wrong)


def planted_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two threads the first result differs."""
    call = redzones.FencedEntry.call

    def call_wrong(self: redzones.FencedEntry, arrays: Any, sizes: Any = None) -> Any:
        return [-r if threads.get_num_threads() == 2 else r for r in call(self, arrays, sizes)]

    monkeypatch.setattr(redzones.FencedEntry, "call", call_wrong)


def planted_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call writes past the end of its last buffer."""
    run = vars(redzones.FencedEntry)["_run"]

    def run_wrong(self: redzones.FencedEntry, *args: Any) -> Any:
        _, storage, _, end = self.memory.zones[-1]
        storage[end + 3] = 0
        return run(self, *args)

    monkeypatch.setattr(redzones.FencedEntry, "_run", run_wrong)


WIDE = host().vector_bits
NARROW = otherwise.narrow_target().vector_bits


def test_the_second_lowering_packs_small_products() -> None:
    a, b = np.ones((33, 70), np.float32), np.ones((70, 37), np.float32)
    module = mlc.lower(lambda a, b: a @ b, args=[a, b], level="trace").module
    for number, step in enumerate(otherwise.other_steps(module), 1):
        step.apply(module, number)
        if step.transform.name == otherwise.SCHEDULED:
            break
    assert any(isinstance(op, loop.Scratch) for op in module.walk())


@pytest.mark.parametrize("plant, message", [
    pytest.param(planted_width, f"with {NARROW}-bit vectors and 1 thread differs from its meaning: result 0 is",
                 marks=pytest.mark.skipif(NARROW == WIDE, reason="there is one width here")),
    (planted_threads, f"with {WIDE}-bit vectors and 2 threads differs from its meaning: result 0 is"),
    (planted_store, f"with {WIDE}-bit vectors and 1 thread leaves its memory: byte 3 behind result 0 is written to"),
])
def test_the_failing_vector_width_or_thread_count_is_named(plant: Callable[[pytest.MonkeyPatch], None], message: str,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    x = np.ones((2, 16), np.float32)
    with pytest.raises(InternalError) as caught:
        check.check(parse_module(MODEL_MLIR), "main", [x, np.ones((16, 3), np.float32)], keep=False)
    assert caught.value.code == "MLC0902" and message in caught.value.message


def test_special_values_are_tried_besides_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """relu(-inf) is 0, and -inf * 0 is not; no argument is infinite."""
    x = np.random.default_rng(0).uniform(-1, 1, (40, 40)).astype(np.float32)
    module = mlc.lower(lambda x: mlc.relu(x) + 1, args=[x], level="trace").module
    check.check(module.clone(), "main", [x], keep=False)

    def decompose(self: tensor.Relu) -> Any:
        zero = tensor.Full(0.0, (), self.x.type.dtype).result
        positive = tensor.Cast(tensor.Compare("gt", self.x, zero).result, self.x.type.dtype).result
        return tensor.Mul(self.x, positive).result + zero

    monkeypatch.setattr(tensor.Relu, "decompose", decompose)
    with pytest.raises(InternalError, match=r"pass decompose changes the answer of @main: .*nan"):
        check.check(module, "main", [x], keep=False)


def test_a_cache_key_shared_by_two_modules_is_found(sample_folder: Path, monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    from mlc.backends import fingerprint
    Path("sums.py").write_text("import mlc\nx = mlc.ones(3, 3)\n"
                               "for d in (0, 1):\n    mlc.compile(lambda x, d=d: x.cumsum(d), static='d')(x)\n")
    assert cli.main(["run", "--check", "sums.py"]) == 0
    monkeypatch.setattr(fingerprint, "_MESSAGES_ONLY", frozenset({"arg_names", "axis"}))
    assert cli.main(["run", "--check", "sums.py"]) == 101
    assert "error[MLC0904]" in capsys.readouterr().err


def test_programs_are_checked(planted: Plant, sample_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = Path("checked.py")
    program.write_text("import mlc, numpy as np\nx = np.arange(4, dtype=np.float32)\n"
                       "f = mlc.compile(lambda x, y: mlc.tanh(x * 3.0) - y)\nprint(f(x, x + 1))\n")
    assert cli.main(["run", "--check", str(program)]) == 0
    assert "compiled functions, every pass: no difference" in capsys.readouterr().err

    @planted(tensor.Tanh)
    def tanh_is_identity(op: tensor.Tanh) -> Value | None:
        """tanh(x) == x (wrong)"""
        return op.x

    program.write_text(program.read_text().replace("3.0", "2.0"))
    assert cli.main(["run", str(program), "--check"]) == 101
    err = capsys.readouterr().err
    assert "rule tanh_is_identity at" in err and "checked.py:3:" in err
    assert replayed(err, capsys)[0] == 101


def test_frozen_functions_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As what they were before they were split, with the tensors that they reach."""
    (tmp_path / "frozen.py").write_text("import mlc\nlayer = mlc.nn.Linear(5, 16)\n"
                                        "f = mlc.compile(layer.eval(), freeze=True)\n"
                                        "with mlc.no_grad():\n    f(mlc.tensor([[1.0] * 5] * 4))\n")
    assert cli.main(["run", "--check", str(tmp_path / "frozen.py")]) == 0
    assert "frozen.py:5" in (said := capsys.readouterr().err) and "checked 1 of 1 compiled functions" in said


def test_a_pass_that_is_wrong_at_some_sizes_is_named(sample_folder: Path, monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    """The passes are checked on the arrays of a function's first call, which has no remainder: the second one has."""
    monkeypatch.setattr(Lowering, "leftover", lambda self, d, start, end, size, carried, body, whole: carried)
    # the wrong code is in the cache: no other test has this function
    Path("sized.py").write_text("import mlc\nf = mlc.compile(lambda x: x * 17.25 + 3.5, dynamic=True)\n"
                                "f(mlc.ones(1024))\nf(mlc.ones(1027))\n")
    assert cli.main(["run", "--check", "sized.py"]) == 101
    assert "pass loop_to_scf changes the answer of @main" in capsys.readouterr().err


def test_a_failure_that_the_program_catches_is_reported(planted: Plant, sample_folder: Path,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    @planted(tensor.Tanh)
    def tanh_is_identity(op: tensor.Tanh) -> Value | None:
        """tanh(x) == x (wrong)"""
        return op.x

    Path("catching.py").write_text("import mlc\ntry:\n    mlc.compile(lambda x: mlc.tanh(x))(mlc.ones(3))\n"
                                   "except mlc.Error:\n    print('caught')\n")
    assert cli.main(["run", "--check", "catching.py"]) == 101
    out, err = capsys.readouterr()
    assert out == "caught\n" and "rule tanh_is_identity at" in err


def test_calls_without_python_are_compared(sample_folder: Path, monkeypatch: pytest.MonkeyPatch,
                                           capsys: pytest.CaptureFixture[str]) -> None:
    Path("calls.py").write_text("import mlc\nt = mlc.zeros(2)\n"
                                "mlc.compile(lambda x: x * 2)(mlc.ones(3))\n"
                                "mlc.compile(lambda x: t.add_(x).sum())(mlc.ones(2))\n")
    monkeypatch.setattr(checked_paths, "refused", lambda *args: mlc.ones(1))           # as if it took all calls
    for line in ("x * 2", "add_"):
        Path("call.py").write_text("\n".join(x for x in Path("calls.py").read_text().splitlines()
                                             if "lambda" not in x or line in x))
        assert cli.main(["run", "--check", "call.py"]) == 101
        assert "its emitted wrapper" in capsys.readouterr().err


def test_a_rule_may_look_at_operations_around_its_loop_or_branch() -> None:
    module = parse_module("""func.func @main(%x: tensor<8xf32>, %c: tensor<i1>) -> tensor<2xf32> {
  %0 = tensor.slice %x {starts = [1], stops = [7], steps = [1]} : (tensor<8xf32>) -> tensor<6xf32>
  %1 = tensor.item %c : (tensor<i1>) -> i1
  %2 = scf.if %1 -> (tensor<2xf32>) {
    %3 = tensor.slice %0 {starts = [2], stops = [4], steps = [1]} : (tensor<6xf32>) -> tensor<2xf32>
    scf.yield %3 : tensor<2xf32>
  } else {
    %4 = tensor.slice %0 {starts = [0], stops = [2], steps = [1]} : (tensor<6xf32>) -> tensor<2xf32>
    scf.yield %4 : tensor<2xf32>
  }
  func.return %2 : tensor<2xf32>
}""")
    check.Check(module, "main", [np.arange(8, dtype=np.float32), np.array(True)], keep=False).run(
        parse_pipeline("canonicalize"))
    assert len(list(module.inside(tensor.Slice))) == 2


def test_rewrites_are_checked_on_special_values(planted: Plant) -> None:
    """x + 0 is x for every x but -0, which is not among the arguments."""
    @planted(tensor.Add)
    def add_of_zero(op: tensor.Add) -> Value | None:
        """x + 0 == x (wrong of -0)"""
        return op.lhs if isinstance(op.rhs.op, tensor.Full) and op.rhs.op.value == 0 else None

    module = parse_module("""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = tensor.full 0.0 : tensor<4xf32>
  %0 = tensor.add %x, %z : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}""", "zero.mlir")
    run = check.Check(module, "main", [np.ones(4, np.float32)], keep=False)
    with pytest.raises(InternalError, match=r"0.0 in place of 0.0|-0.0 in place of 0.0") as caught:
        run.run(parse_pipeline("canonicalize"))
    assert caught.value.code == "MLC0661" and "rule add_of_zero at zero.mlir:3:3" in caught.value.notes[0]


def test_a_pass_that_fails_is_named_with_its_rule(planted: Plant) -> None:
    @planted(tensor.Mul)
    def broken(op: tensor.Mul) -> Value | None:
        """x * y (fails)"""
        return op.attrs["none"]  # type: ignore[no-any-return]

    run = check.Check(parse_module(MANY_ADDITIONS, "many.mlir"), "main", [np.ones(4, np.float32)] * 2, keep=False)
    with pytest.raises(InternalError, match="pass canonicalize fails on @main: KeyError") as caught:
        run.run(parse_pipeline("canonicalize"))
    assert caught.value.code == "MLC0660" and "rule broken fails at many.mlir" in caught.value.notes[0]


DERIVED = """func.func private @f(%x: tensor<3xf32>) -> tensor<f32> {
  %0 = tensor.cos %x : tensor<3xf32>
  %1 = tensor.reduce_max %0 {axes = [0]} : (tensor<3xf32>) -> tensor<f32>
  func.return %1 : tensor<f32>
}
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y, %d = autodiff.grad @f(%x) wrt [0] : (tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>)
  func.return %d : tensor<3xf32>
}
"""


@pytest.mark.parametrize("x", [[1.0, 2.0, 0.5], [0.5, 0.5, 2.0]])
def test_a_wrong_derivative_is_found_by_differences(x: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where two elements are equal maxima, so that the slopes to both sides differ."""
    def run() -> None:
        check.Check(parse_module(DERIVED, "derived.mlir"), "main", [np.array(x, np.float32)], keep=False).run(
            parse_pipeline("grad"))

    run()
    with monkeypatch.context() as m:
        m.setattr(tensor.Cos, "partial", lambda self, ct: ct * tensor.Sin(self.x).result)
        with pytest.raises(InternalError, match=r"pass grad: the vjp of tensor\.cos gives operand 0") as caught:
            run()
        assert caught.value.code == "MLC0662" and caught.value.loc.line == 2
    right = tensor.ReduceMax.vjp
    monkeypatch.setattr(tensor.ReduceMax, "vjp", lambda self, ct: [v + v for v in right(self, ct) if v is not None])
    with pytest.raises(InternalError, match=r"pass grad: the vjp of tensor\.reduce_max gives operand 0"):
        run()


@pytest.mark.parametrize("op", [tensor.LogCumSumExp, tensor.MatrixExp])
def test_the_rule_of_tangents_is_checked_too(op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a program takes the other derivative."""
    f = {tensor.LogCumSumExp: lambda x: mlc.logcumsumexp(x, 0), tensor.MatrixExp: mlc.matrix_exp}[op]
    x = np.random.default_rng(0).standard_normal((3, 3))
    module = mlc.lower(mlc.grad(lambda x: f(x).sum()), args=[x], level="trace").module
    assert derivatives.mistake(module.clone(), "main", [x]) is None
    right = op.jvp
    monkeypatch.setattr(op, "jvp", lambda self, tangent: [2 * t for t in right(self, tangent)])
    found = derivatives.mistake(module, "main", [x])
    assert found is not None and f"the jvp of {op.name} is" in found[0]


def test_derivatives_with_data_dependent_sizes_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns of a loop, say, of which the derivative keeps one value each."""
    def doubled(x: Any, n: Any) -> Any:
        return mlc.fori_loop(0, n, lambda i, s: s * 2.0, x)

    x, n = np.ones(3, np.float32), np.array([1, 2, 3])
    module = mlc.lower(mlc.grad(lambda x, n: mlc.vmap(doubled)(x, n).sum()), args=[x, n], level="trace").module
    assert derivatives.mistake(module, "main", [x, n]) is None
    monkeypatch.setattr(tensor.Mul, "vjp", lambda self, ct: [ct, ct])
    found = derivatives.mistake(module, "main", [x, n])
    assert found is not None and "tensor.mul" in found[0]


def test_an_error_of_the_program_is_no_difference(sample_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An index out of range is an error before and after every pass."""
    Path("take.mlir").write_text(
        "func.func @main(%x: tensor<4xf32>, %i: tensor<2xi64>) -> tensor<2xf32> {\n"
        "  %0 = tensor.take %x, %i {axis = 0} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>\n"
        "  func.return %0 : tensor<2xf32>\n}\n")
    np.savez("in.npz", np.ones(4, np.float32), np.array([1, 9]))
    assert cli.main(["run", "take.mlir", "--check", "--inputs", "in.npz"]) == 1
    err = capsys.readouterr().err
    assert "take.mlir:2:" in err and "MLC0340" in err and "native code: same" in err


@pytest.mark.parametrize("got, want, exact, agree", [
    ([1.0, np.nan], [1.0, np.nan], True, True),
    ([0.0], [-0.0], True, False),
    ([0.0], [-0.0], False, False),
    ([1.0], [1.0 + 2e-7], True, False),
    ([1.0], [1.0 + 2e-7], False, True),
    ([1.0], [1.001], False, False),
    ([np.inf], [1.0], False, False),
])
def test_difference(got: list[float], want: list[float], exact: bool, agree: bool) -> None:
    a, b = np.array(got, np.float32), np.array(want, np.float32)
    assert (outcome.difference(a, b, exact) is None) is agree


CANCELLING = """func.func @main(%x: tensor<1000xf32>, %y: tensor<f32>) -> tensor<f32> {{
{sum}
  %1 = tensor.sub %0, %y : tensor<f32>
  %2 = tensor.abs %1 : tensor<f32>
  %3 = tensor.div %1, %2 : tensor<f32>
  func.return %3 : tensor<f32>
}}
"""
SUMS = {
    "reduce_sum": "%0 = tensor.reduce_sum %x {axes = [0]} : (tensor<1000xf32>) -> tensor<f32>",
    "cumulative": """%s = tensor.cumulative %x {kind = "add", axis = 0} : tensor<1000xf32>
  %l = tensor.slice %s {starts = [999], stops = [1000], steps = [1]} : (tensor<1000xf32>) -> tensor<1xf32>
  %0 = tensor.reshape %l : tensor<1xf32> to tensor<f32>""",
    "scatter": """%i = tensor.full 0 : tensor<1000xi64>
  %z = tensor.full 0.0 : tensor<1xf32>
  %s = tensor.scatter %z, %i, %x {axis = 0} : (tensor<1xf32>, tensor<1000xi64>, tensor<1000xf32>) -> tensor<1xf32>
  %0 = tensor.reshape %s : tensor<1xf32> to tensor<f32>""",
}


@pytest.mark.parametrize("kind", SUMS)
def test_differences_within_rounding_error_pass(kind: str) -> None:
    """Only the sign of a sum that cancels depends on the order of summation."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(1000).astype(np.float32)
    exact = x.astype(np.float64).sum()
    near, far = np.float32(exact + 2e-4), np.float32(exact + 1)          # 2e-4: some roundings of the sum
    for y, uncertain in ((near, True), (far, False)):
        run = check.Check(parse_module(CANCELLING.format(sum=SUMS[kind])), "main", [x, y], keep=False)
        other = outcome.Outcome([-run.outcome.results[0]])
        found = other.difference(run.outcome, False, run._slack)
        assert (found is None) is uncertain, found


def test_a_remainder_by_rounding_alone_may_be_any_zero_or_nan() -> None:
    """x rem x is 0 with the sign of x, and NaN of 0: of a sum that cancels, each is right."""
    text = CANCELLING.format(sum=SUMS["reduce_sum"]).replace("tensor.div %1, %2", "tensor.rem %1, %1")
    x = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
    exact = x.astype(np.float64).sum()
    for y, uncertain in ((np.float32(exact), True), (np.float32(exact + 1), False)):
        run = check.Check(parse_module(text), "main", [x, y], keep=False)
        for value in (0.0, -0.0, np.nan):
            found = outcome.Outcome([np.array(value, np.float32)]).difference(run.outcome, False, run._slack)
            same = str(np.float32(value)) == str(run.outcome.results[0])
            assert (found is None) is (uncertain or same), found


def test_a_comparison_is_as_certain_as_what_it_compares() -> None:
    text = CANCELLING.format(sum=SUMS["reduce_sum"]).replace(
        "%3 = tensor.div %1, %2 : tensor<f32>", "%c = tensor.compare gt, %0, %y : (tensor<f32>, tensor<f32>) -> "
        "tensor<i1>\n  %3 = tensor.cast %c : tensor<i1> to tensor<i64>")
    text = text.replace("-> tensor<f32> {\n", "-> tensor<i64> {\n")
    text = text.replace("return %3 : tensor<f32>", "return %3 : tensor<i64>")
    x = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
    exact = x.astype(np.float64).sum()
    for y, uncertain in ((np.float32(exact), True), (np.float32(exact + 1), False)):
        run = check.Check(parse_module(text), "main", [x, y], keep=False)
        found = outcome.Outcome([1 - run.outcome.results[0]]).difference(run.outcome, False, run._slack)
        assert (found is None) is uncertain, found


def test_the_sign_of_a_nan_that_an_operation_makes_is_free() -> None:
    """And that of one that is given is not."""
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xi32> {{
      {made}
      %1 = tensor.bitcast {read} : tensor<2xf32> to tensor<2xi32>
      func.return %1 : tensor<2xi32>
    }}"""
    for made, read, free in (("%0 = tensor.log %x : tensor<2xf32>", "%0", True), ("", "%x", False)):
        run = check.Check(parse_module(text.format(made=made, read=read)), "main",
                          [np.array([-1.0, np.nan], np.float32)], keep=False)
        other = outcome.Outcome([run.outcome.results[0] ^ np.int32(-1 << 31)])
        assert (other.difference(run.outcome, False, run._slack) is None) is free


def test_rounding_of_what_is_standardized_is_that_of_its_operands() -> None:
    """Numbers that differ in their last digits only are certain to as many digits as they differ in."""
    text = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %0 = tensor.standardize %x {axes = [0], eps = 0.001} : tensor<3xf32>
      func.return %0 : tensor<3xf32>
    }"""
    for x, uncertain in (([-3.0, -3.01, -3.02], True), ([-3.0, 0.0, 3.0], False)):
        run = check.Check(parse_module(text), "main", [np.array(x, np.float32)], keep=False)
        other = outcome.Outcome([run.outcome.results[0] * np.float32(1 + 4e-5)])
        assert (other.difference(run.outcome, False, run._slack) is None) is uncertain


def test_a_part_of_a_complex_product_is_as_certain_as_its_modulus() -> None:
    """(x + iy)(x - iy) has an imaginary part of 0, or what its terms are off by."""
    text = """func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4x2xf32> {
      %0 = tensor.complex %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
      %1 = tensor.complex %x, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
      %2 = tensor.mul %0, %1 : tensor<4xcomplex<f32>>
      %3 = tensor.view_as_real %2 : (tensor<4xcomplex<f32>>) -> tensor<4x2xf32>
      func.return %3 : tensor<4x2xf32>
    }"""
    x, y = np.random.default_rng(0).uniform(100, 1000, (2, 4)).astype(np.float32)
    run = check.Check(parse_module(text), "main", [x, y, -y], keep=False)
    for off, uncertain in ((0.01, True), (10.0, False)):
        other = outcome.Outcome([run.outcome.results[0] + np.array([0, off], np.float32)])
        assert (other.difference(run.outcome, False, run._slack) is None) is uncertain


def test_a_product_that_overflows_in_another_order_may_be_anything() -> None:
    text = """func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
      %0 = tensor.reduce_prod %x {axes = [1]} : (tensor<2x3xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }"""
    x = np.array([[1e30, 0, 1e30], [1e10, 0, 1e10]], np.float32)
    run = check.Check(parse_module(text), "main", [x], keep=False)
    for found, uncertain in (([np.nan, 0], True), ([0, np.nan], False)):
        other = outcome.Outcome([np.array(found, np.float32)])
        assert (other.difference(run.outcome, False, run._slack) is None) is uncertain


LOOP = """
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 2 : index
  %2 = arith.constant 1 : index
  %3 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]}
    : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %4 = scf.for %i = %0 to %1 step %2 iter_args(%z = %3) -> (tensor<2x2xf32>) {
    %5 = tensor.tanh %z : tensor<2x2xf32>
    scf.yield %5 : tensor<2x2xf32>
  }
  func.return %4 : tensor<2x2xf32>
}
"""


def test_rounding_of_programs_with_loops() -> None:
    """The bounds of a loop are no arrays."""
    arrays = [np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)]
    run = check.Check(parse_module(LOOP), "main", arrays, keep=False)
    slack, = run._slack()
    assert 0 < slack.max() < 1e-5


def test_reproducers_hold_arrays_of_every_type() -> None:
    from mlc.ir.types import SCALARS, to_numpy
    rng = np.random.default_rng(0)
    scalars = [s for s in SCALARS.values() if str(s) != "index"]
    arrays = [rng.integers(0, 2, (2, 3)).astype(to_numpy(s)) for s in scalars]
    arrays += [np.zeros((0, 3), np.float32), np.array(2, np.float32), np.ones((3, 2), np.float32)[::2].T]
    types = [TensorType(a.shape, s) for a, s in zip(arrays, [*scalars, f32, f32, f32])]
    text = inputs.reproducer(MODEL_MLIR, "cse", "main", arrays, types, True)
    held = inputs.held_call(text)
    assert held is not None and held[0] == "main" and held[2]
    for a, b in zip(arrays, held[1]):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    module: Op = parse_module(text)              # MLIR's resources do not disturb the parser
    assert run_function(module, "main", [np.ones((2, 16), np.float32), np.ones((16, 3), np.float32)])

# -- other numbers ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(), (3,), (40, 5)])
def test_every_argument_gets_every_special_value(shape: tuple[int, ...]) -> None:
    """Zeros by their sign; in the first rounds nothing is infinite."""
    x, i = np.linspace(5.0, 6.0, int(np.prod(shape))).reshape(shape), np.arange(7)
    tried = [*otherwise.rounds([x, x, i])]
    for k in (0, 1):
        seen = {str(float(n)) for given in tried for n in given[k].reshape(-1)}
        assert {str(n) for group in otherwise.PECULIAR for n in group} <= seen
        assert np.isfinite(tried[0][k]).all() and tried[0][k].shape == shape
    of_integers = [given[2] for given in tried if (given[0] == x).all()]
    assert {*otherwise.INTEGERS} <= {int(n) for given in of_integers for n in given}
    assert all((given[2] == i).all() for given in tried[:-len(of_integers)])


SOFTMAX = """func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = tensor.softmax %x {axis = 1} : tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}
"""


def test_a_transform_of_infinite_numbers_is_unspecified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each formula of the Fourier transform makes other numbers of them; of finite ones, one that differs is wrong."""
    def run(number: float) -> None:
        module = parse_module("""func.func @main(%x: tensor<6x2xf32>) -> tensor<6x2xf32> {
          %0 = tensor.dft %x {axis = 0} : tensor<6x2xf32>
          func.return %0 : tensor<6x2xf32>
        }""")
        check.Check(module, "main", [np.full((6, 2), number, np.float32)], keep=False).run(parse_pipeline("decompose"))

    run(np.inf)
    monkeypatch.setattr(tensor.Dft, "decompose", lambda self: self.x)
    with pytest.raises(InternalError, match="decompose"):
        run(1.0)


def test_a_softmax_that_overflows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program's numbers are small, and a whole program of numbers that are not is excused."""
    def run() -> None:
        check.Check(parse_module(SOFTMAX, "softmax.mlir"), "main", [np.zeros((2, 3), np.float32)], keep=False).run(
            parse_pipeline("decompose"))

    run()

    def decompose(self: tensor.Softmax) -> Value:
        e = tensor.Exp(self.x).result
        return e / sum_kept(e, (self.axis,))

    monkeypatch.setattr(tensor.Softmax, "decompose", decompose)
    with pytest.raises(InternalError, match=r"decompose: tensor\.softmax becomes what gives nan in place of") as caught:
        run()
    assert caught.value.code == "MLC0663" and caught.value.loc.line == 2


def test_elementary_functions_are_held_to_their_accuracy_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five units of the last place: five parts in ten million."""
    right = tensor.Tanh.expand
    module = parse_module("""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tensor.tanh %x : tensor<2xf32>
  func.return %0 : tensor<2xf32>
}""", "tanh.mlir")
    step, = parse_pipeline("fix_numerics")
    assert expansions.mistake(module, step, {}) is None
    monkeypatch.setattr(tensor.Tanh, "expand", staticmethod(lambda b, x: b.mul(right(b, x), b.const(1 + 5e-7, x))))
    found = expansions.mistake(module, step, {})
    assert found is not None and re.search(r"tensor\.tanh of .* units of the last place off", found[0])
    assert found[1].line == 2


def test_messages_print_enough_digits_to_tell_numbers_apart() -> None:
    assert expansions.told_apart(0.25, 0.5) == ("0.25", "0.5")
    assert expansions.told_apart(1.0, 1 + 2.0**-52) == ("1", "1.0000000000000002")
    assert expansions.told_apart(float("nan"), 1.0) == ("nan", "1")


def test_expansions_match_the_semantics_of_operations() -> None:
    """All composites and elementary functions, in each float type that one of their samples has."""
    classes = [c for c in REGISTRY.values() if c.name.startswith("tensor.") and (
        hasattr(c, "decompose") or (issubclass(c, Elementwise) and c.has_expansion()))]
    assert len(classes) > 60
    for cls in classes:
        samples = {str(sample.types[:1] and sample.types[0].dtype): sample for sample in samples_of(cls.name)}
        for sample in samples.values():
            module, _ = sample.build()
            for step in parse_pipeline("decompose,fix_numerics"):
                assert (str(sample), expansions.mistake(module, step, {})) == (str(sample), None)


# -- what ends the process --------------------------------------------------------------------------------------------
def test_a_crash_of_native_code_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    call = redzones.FencedEntry.call

    def call_wrong(self: redzones.FencedEntry, arrays: Any, sizes: Any = None) -> Any:
        if threads.get_num_threads() == 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        return call(self, arrays, sizes)

    monkeypatch.setattr(redzones.FencedEntry, "call", call_wrong)
    with pytest.raises(InternalError, match="and 2 threads ends the process by SIGSEGV") as caught:
        check.check(parse_module(MODEL_MLIR), "main", [np.ones((2, 16), np.float32), np.ones((16, 3), np.float32)],
                    keep=False)
    assert caught.value.code == "MLC0905"


def test_a_read_out_of_bounds_in_native_code_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stray read does not change the result, so only a guard page detects it."""
    call = vars(redzones.FencedEntry)["_run"]

    def run_wrong(self: redzones.FencedEntry, inputs: Any, *more: Any) -> Any:
        ctypes.string_at(inputs[0], 2 * 16 * 4 + 1)
        return call(self, inputs, *more)

    monkeypatch.setattr(redzones.FencedEntry, "_run", run_wrong)
    with pytest.raises(InternalError, match="its memory at the end of a page ends the process by SIG"):
        check.check(parse_module(MODEL_MLIR), "main", [np.ones((2, 16), np.float32), np.ones((16, 3), np.float32)],
                    keep=False)


# -- who decided ------------------------------------------------------------------------------------------------------
def test_the_pass_that_overwrites_a_live_operand_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter copies the operands of a kernel, so the fault shows only after lowering to loops."""
    def f(x: Any) -> Any:
        a = x @ x
        return (a.flip(0) + a) @ x

    x = np.random.default_rng(0).standard_normal((5, 5))
    module = mlc.lower(f, args=[x], level="trace").module
    check.check(module.clone(), "main", [x], keep=False)
    monkeypatch.setattr(Kernel, "may_overwrite", lambda self, operand, result: True)
    with pytest.raises(InternalError, match="pass bufferize changes the answer of @main") as caught:
        check.check(module, "main", [x], keep=False)
    assert "goes right where bufferize lets no two values share memory" in caught.value.notes[0]
