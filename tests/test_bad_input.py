"""Mistakes and unusual input in users' programs: one coded error at the user's line, or the right numbers."""
from __future__ import annotations

import copy
import os
import pickle
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.ir.diag import Error, UserError
from tests.samples import Run

F = nn.functional
A, B = np.ones((3, 4), np.float32), np.ones((5, 6), np.float32)
I = np.array([0, 9])
IN_ITSELF: list[Any] = []
IN_ITSELF.append(IN_ITSELF)


# -- programs: the code, the line, the operands -----------------------------------------------------------------------
MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "shape": (lambda: mlc.tensor(A) + B, r"MLC0111.*\[3, 4\] and \[5, 6\].*operand 0: tensor<3x4xf32>.*operand 1"),
    "shape, numpy first": (lambda: B + mlc.tensor(A), r"MLC0111.*operand 0: tensor<5x6xf32>"),
    "matmul": (lambda: mlc.compile(lambda a, b: a @ b)(A, B), r"MLC0367.*4 and 5.*<3x4xf32> from the argument a"),
    "size of a symbol": (lambda: mlc.compile(lambda x, y: x + y, args=[mlc.spec("N"), mlc.spec("N")])(A[0], B[0]),
                         r"MLC0323.*argument y has size 6.*N = 4"),
    "symbol in a product": (lambda: mlc.compile(lambda x: x, args=[mlc.spec("2*N")])(A[0]), "MLC0371.*the size N"),
    "rank": (lambda: mlc.compile(lambda x: x, args=[mlc.spec("N")])(A), r"MLC0322.*argument x"),
    "dtype of an argument": (lambda: mlc.compile(lambda x: x, args=[mlc.spec(3, 4)])(A.astype("f8")),
                             r"MLC0325.*argument x.*float64"),
    "dtype of operands": (lambda: mlc.tensor(A) & mlc.tensor(A), r"MLC0359.*operand 1: tensor<3x4xf32>"),
    "no element type": (lambda: mlc.exp(np.ones(2, np.clongdouble)), r"MLC0345.*complex256"),
    "no element type, compiled": (lambda: mlc.compile(lambda x: x)(np.ones(2, np.longdouble)), r"MLC0345.*float128"),
    "text": (lambda: mlc.exp("abc"), "MLC0345.*str .abc. is no number"),
    "name of a dtype": (lambda: mlc.tensor(A).to("float33"), "MLC0342.*'float33'"),
    "device": (lambda: mlc.tensor(A).to("mps"), "MLC0337.*'mps'"),
    "device of a new tensor": (lambda: mlc.zeros(3, device="xpu"), "MLC0337.*'xpu'"),
    "index": (lambda: mlc.tensor(A)[7], r"MLC0366.*index 7.*size 3"),
    "index array": (lambda: mlc.index_select(A, 0, I), r"MLC0340.*index_select: index \d+ .*size 3"),
    "index array, compiled": (lambda: mlc.compile(lambda a, i: a[i])(A, I), r"MLC0340.*axis 0 of size 3 "),
    "class out of range": (lambda: F.cross_entropy(A, np.array([0, 1, 9])),
                           r"MLC0340.*cross_entropy: index 9 is out of range for axis 1 of size 4"),
    "a donated tensor": (lambda: (lambda w: (mlc.compile(lambda w: w, donate="w")(w), w + 1))(mlc.tensor(A)),
                         "MLC0343"),
    "donated twice": (lambda: mlc.compile(lambda w, v: w + v, donate="w")(A, A), r"MLC0329.*argument w.*argument v"),
    "too few arguments": (lambda: mlc.compile(lambda x, y: x)(A), "MLC0321.*'y'"),
    "too many arguments": (lambda: mlc.compile(lambda x: x)(A, A), "MLC0321.*too many"),
    "an unknown option": (lambda: mlc.sum(A, along=0), "MLC0321.*sum.*'along'"),  # type: ignore[call-arg]
    "too few, differentiated": (lambda: mlc.grad(lambda x, y: x)(1.0), "MLC0321.*'y'"),
    "no function": (lambda: mlc.compile(3), "MLC0380.*int"),  # type: ignore[call-overload]
    "beyond all memory": (lambda: mlc.zeros(10**10, 10**10), "MLC0328"),
    "beyond this memory": (lambda: mlc.zeros(10**15), "MLC0328"),
    "truth of many": (lambda: bool(mlc.tensor(A)), r"MLC0344.*\[3, 4\]"),
    "number of many": (lambda: mlc.tensor(A).item(), r"MLC0344.*\[3, 4\]"),
    "gradients of another tree": (lambda: mlc.optim.SGD().update({"a": A}, {"step": 0}, {"b": A}),
                                  "MLC0377.*grads is not.*'b' and .*'a'"),
    "the state of another optimiser": (lambda: mlc.optim.Adam().update({"a": A}, mlc.optim.SGD().init({}), {"a": A}),
                                       "MLC0377.*'exp_avg'.*one of Adam"),
    "no parameters for an optimiser": (lambda: mlc.optim.Adam("model"), "MLC0383.*found str"),
    "a list for a tensor": (lambda: mlc.add([1, 2], [3, 4]), r"MLC0353.*found a list.*mlc\.tensor"),
    "an unknown option of few": (lambda: mlc.softmax(A, along=1), "MLC0321.*'along'.*input, dim, dtype=None"),  # type: ignore[call-arg]
    "a state that is not there": (lambda: nn.load_safetensors("none"), "MLC0392.*cannot read none: No such file"),
    "a float for an integer": (lambda: mlc.compile(lambda n: n, args=[mlc.spec(dtype="int64")])(2.5),
                               r"MLC0352.*2\.5 is no int64"),
    "another state": (lambda: nn.Linear(3, 4).load_state_dict({"weight": A}), "MLC0382.*bias"),
    "a state that is none": (lambda: nn.Linear(3, 4).load_state_dict(5), "MLC0382.*int"),  # type: ignore[arg-type]
    "a size below 0": (lambda: nn.Linear(-1, 3), r"MLC0358.*\[-1\]"),
    "a size that is a float": (lambda: nn.Linear(2.5, 3), "MLC0355.*Linear.*2.5"),  # type: ignore[arg-type]
    "a kernel of no size": (lambda: nn.Conv2d(3, 4, 0), "MLC0360.*Conv2d: kernel_size = 0"),
    "an unknown setting": (lambda: nn.Conv2d(3, 4, 3, pad=1), "MLC0321.*Conv2d.*'pad'"),  # type: ignore[call-arg]
    "too many inputs": (lambda: nn.Linear(4, 3)(A, A), "MLC0321.*Linear.*too many"),
    "no forward": (lambda: nn.ModuleList([nn.ReLU()])(A), "MLC0349.*ModuleList"),
    "no layer": (lambda: nn.Sequential(nn.ReLU(), 5)(A), "MLC0349.*layer 1"),
    "a position that is text": (lambda: nn.ModuleList([nn.ReLU()])["a"], "MLC0355.*'a'"),  # type: ignore[call-overload]
    "a buffer with a taken name": (lambda: nn.Linear(4, 3).register_buffer("weight", mlc.ones(2)), "MLC0386.*weight"),
    "a buffer with a dot": (lambda: nn.ReLU().register_buffer("a.b", mlc.ones(2)), "MLC0386.*a.b"),
    "a module of integers": (lambda: nn.Linear(4, 3).to(mlc.int64), "MLC0342.*int64"),
    "a module on a device": (lambda: nn.Linear(4, 3).to("mps"), "MLC0337.*'mps'"),
    "one tensor in two places": (lambda: mlc.optim.SGD().init({"a": (w := mlc.ones(2)), "b": w}), "MLC0378.*a and b"),
    "weights of other classes": (lambda: F.cross_entropy(A, I[:1].repeat(3), weight=B[0]),
                                 r"MLC0367.*\[6\].*\[4\]"),
    "smoothing beyond 1": (lambda: F.cross_entropy(A, I[:1].repeat(3), label_smoothing=2.0), "MLC0360.*from 0 to 1"),
    "a loss of no width": (lambda: F.huber_loss(A, A, delta=0), "MLC0360.*delta"),
    "slices of a number": (lambda: mlc.unbind(1.0), "MLC0364"),
    "a dimension twice": (lambda: mlc.flip(A, (0, 0)), "MLC0357"),
    "repeats in a tensor": (lambda: mlc.repeat_interleave(A, mlc.tensor(I)), "MLC0365"),
    "a range without an end": (lambda: mlc.arange(), "MLC0321"),
    "more reflected than there is": (lambda: F.pad(A, (4, 0), mode="reflect"), "MLC0360.*at most 3"),
    "a container in itself": (lambda: mlc.compile(lambda x: x)(IN_ITSELF), "MLC0376"),
    "bfloat16 has no DLPack": (lambda: np.from_dlpack(mlc.ones(2, dtype="bfloat16")), "MLC0346.*bfloat16"),
    "an array as an element type": (lambda: mlc.asarray(A, A), "MLC0342.*is no element type"),
    "DLPack passes on no gradient": (lambda: mlc.from_dlpack(mlc.ones(2, requires_grad=True)), "MLC0346.*detach"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_programs(name: str) -> None:
    f, wanted = MISTAKES[name]
    with pytest.raises(Error) as caught:
        f()
    text, first = str(caught.value), f.__code__.co_firstlineno
    assert re.search(wanted, text, re.S), text
    assert text.count("error[") == 1
    assert caught.value.loc.file == __file__ and first <= caught.value.loc.line <= first + 1, text
    assert isinstance(caught.value, UserError)
    assert (mlc.ones(2) + 1).tolist() == [2, 2], "something was left behind"


def test_torch_tensors_that_cannot_be_shared() -> None:
    torch = pytest.importorskip("torch")
    for x in (torch.ones(3, device="meta"), torch.eye(3).to_sparse()):
        with pytest.raises(UserError, match=r"MLC034[56]") as caught:
            mlc.exp(x)
        assert caught.value.loc.file == __file__


def test_mistakes_in_programs_are_no_defects_of_mlc(run: Run) -> None:
    for line in ("mlc.compile(lambda x, y: x)(mlc.ones(2))", "mlc.sum(mlc.ones(2), along=0)", "mlc.compile(3)",
                 "mlc.zeros(3, device='cuda')", "mlc.zeros(10**10, 10**10)", "bool(mlc.ones(2))", "mlc.ones(2).item()",
                 "mlc.grad(lambda x, y: x)(1.0)", "mlc.nn.Linear(3)", "mlc.ones(2)[2] = 1", "mlc.relux",
                 "mlc.compile(lambda m, x: m())(mlc.nn.Linear(2, 2), mlc.ones(2))"):
        Path("program.py").write_text(f"import mlc\n{line}\n")
        status, _, err = run("run", "program.py")
        assert status == 1 and "program.py:2" in err and err.count("error[") == 1 and "Traceback" not in err, err


# -- what is compiled for what ----------------------------------------------------------------------------------------
class Scaled(nn.Module):
    def __init__(self, by: Any) -> None:
        self.weight = nn.Parameter(mlc.ones(2, dtype="int32"), requires_grad=False)
        self.by = by

    def forward(self) -> Any:
        return self.weight * self.by


def test_equal_constants_of_different_types_are_distinguished() -> None:
    f = mlc.compile(lambda m: m())
    assert [f(Scaled(by)).dtype for by in (2, 2.0, 1, True, 1.0)] == [
        mlc.int32, mlc.float32, mlc.int32, mlc.int32, mlc.float32]
    g = mlc.compile(lambda s: mlc.full((1,), s), static="s")
    assert [str(g(s).tolist()) for s in (0.0, -0.0, 0, False)] == ["[0.0]", "[-0.0]", "[0]", "[False]"]


def test_a_captured_array_is_read_where_it_is_used() -> None:
    def f(x: Any) -> Any:
        buffer = np.zeros(2, np.float32)
        for i in range(3):
            buffer[:] = i
            x = x + buffer
        return x

    assert mlc.compile(f)(mlc.zeros(2)).tolist() == [3, 3]


def test_tensors_are_copied_and_pickled() -> None:
    x = mlc.tensor([1.0, 2.0])
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):                            # noqa: S301
        other.array[0] = 5
        assert type(other) is mlc.Tensor and x.tolist() == [1, 2]
    f = mlc.compile(lambda m, x: copy.deepcopy(m)(copy.copy(x)))
    assert f(nn.Linear(2, 3), x).shape == (3,)
    with pytest.raises(UserError, match="MLC0350"):
        mlc.compile(pickle.dumps)(x)


def test_an_exception_while_recording_leaves_no_trace_in_progress() -> None:
    fail = True

    def f(x: Any) -> Any:
        if fail:
            raise KeyError("mine")
        return x * 2

    for g in (f, mlc.grad(f), lambda x: mlc.grad(f)(x), lambda x: nn.Sequential(f)(x), lambda x: mlc.vjp(f, x)):
        with pytest.raises(KeyError, match="mine"):
            mlc.compile(g)(1.0)
    compiled = mlc.compile(f)
    with pytest.raises(KeyError):
        compiled(A)
    fail = False
    assert compiled(A).tolist() == (A * 2).tolist() and type(mlc.ones(2) * 2) is mlc.Tensor


# -- arrays -----------------------------------------------------------------------------------------------------------
def read_only(x: Any) -> Any:
    x = x.copy()
    x.flags.writeable = False
    return x


def misaligned(x: Any) -> Any:
    out = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    out[...] = x
    return out


LAYOUTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "read-only": (read_only, "read-only"),
    "misaligned": (misaligned, "not aligned"),
    "negative strides": (lambda x: x.copy()[::-1, ::-1], "not contiguous"),
    "fortran": (lambda x: np.asfortranarray(x), "not contiguous"),
    "byte-swapped": (lambda x: x.astype(">f4"), ""),                       # converted, so the copy is what is donated
    "size 0": (lambda x: x[:0].copy(), ""),
    "part of another": (lambda x: np.tile(x, (2, 2))[::2, ::2], "not contiguous"),
    "repeated": (lambda x: np.broadcast_to(x[0], x.shape), "read-only|not contiguous"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str) -> None:
    make, why = LAYOUTS[layout]
    x = make(np.arange(12, dtype=np.float32).reshape(3, 4))
    wanted = (x * 2 + 1).tolist()
    f = mlc.compile(lambda x: x * 2 + 1)
    for _ in range(2):                                                     # the second call is the fast one
        assert f(x).tolist() == wanted == f(mlc.asarray(x)).tolist()
    assert (mlc.asarray(x) * 2 + 1).tolist() == wanted
    assert mlc.grad(lambda x: (x * x).sum())(x).tolist() == (2 * x).tolist()
    donated = mlc.compile(lambda x: x * 2 + 1, donate="x")
    if not why:
        assert donated(x).tolist() == wanted
        return
    before = x.tolist()
    for _ in range(2):
        with pytest.raises(UserError, match=f"MLC0326.*(x).*({why})"):
            donated(x)
        donated(np.zeros((3, 4), np.float32))
    assert x.tolist() == before


def test_aliased_arguments() -> None:
    x = np.arange(12, dtype=np.float32)
    f, g = mlc.compile(lambda a, b: a - 2 * b), mlc.compile(lambda a, b: a - 2 * b, donate="a")
    g(x.copy(), x)
    assert f(x, x[::-1]).tolist() == (x - 2 * x[::-1]).tolist()
    for a, b in ((x, x), (x[:8], x[4:])):
        assert f(a, b).tolist() == (a - 2 * b).tolist()
        with pytest.raises(UserError, match=r"MLC0329.*argument a is donated, but shares memory with .*argument b"):
            g(a, b)
    assert x.tolist() == list(range(12))


# -- threads and processes --------------------------------------------------------------------------------------------
def test_eight_threads_call_one_function_for_the_first_time() -> None:
    results, start = [], threading.Barrier(8)

    @mlc.compile
    def f(x: Any, y: Any) -> Any:
        return mlc.softmax(x @ y, dim=1)

    def work(k: int) -> None:
        x = np.random.default_rng(k).standard_normal((16, 16)).astype(np.float32)
        start.wait()
        many = [f(x, x).numpy() for _ in range(20)]
        alone = mlc.softmax(mlc.matmul(x, x), dim=1).numpy()
        e = np.exp(x @ x - (x @ x).max(1, keepdims=True))
        results.append(all(np.array_equal(many[0], y) for y in many) and np.allclose(alone, many[0], atol=1e-6)
                       and np.allclose(many[0], e / e.sum(1, keepdims=True), atol=1e-5))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert results == [True] * 8 and f.report().startswith("f: 1 specialisation\n")


def in_child(f: Callable[[], Any]) -> str:
    """Result of f in a forked process, as text."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        import signal
        signal.alarm(60)                                                   # a child that hangs ends
        try:
            os.write(writer, str(f()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        out = pipe.read().decode()
    os.waitpid(child, 0)
    return out


def test_calls_after_fork() -> None:
    f = mlc.compile(lambda x: (x * 3).sum())
    assert f(A).tolist() == 36
    assert in_child(lambda: f(A).tolist()) == "36.0"
    assert in_child(lambda: f(A[:2]).tolist()) == "24.0"                   # compiled in the child
    assert in_child(lambda: (mlc.tensor(A) / 2).sum().tolist()) == "6.0"
    assert f(A).tolist() == 36


def test_fork_while_another_thread_records_and_compiles() -> None:
    recording, go_on = threading.Semaphore(0), threading.Semaphore(0)

    @mlc.compile
    def f(x: Any) -> Any:
        recording.release()
        go_on.acquire(timeout=30)
        for i in range(20):
            x = mlc.tanh(x + i)
        return x.sum()

    thread = threading.Thread(target=f, args=(A,))
    thread.start()
    recording.acquire()

    def in_the_child() -> Any:
        go_on.release(100)
        return f(A).shape                                                  # a thread of the parent holds its lock

    assert in_child(in_the_child) == "()"
    go_on.release(100)
    for _ in range(3):                                                     # at other moments of the compilation
        assert in_child(lambda: mlc.compile(lambda x: x * 9)(A).sum().tolist()) == "108.0"
    thread.join()


# -- the command ------------------------------------------------------------------------------------------------------
GOOD = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  func.return %x : tensor<2xf32>\n}\n"
MALFORMED: dict[str, tuple[str | bytes, str]] = {
    "truncated": (GOOD[:60], "MLC02"),
    "braces": ("{" * 20_000, "MLC0203"),
    "regions": ("module {" * 20_000, "MLC0204"),
    "lists": ("func.func @main() attributes {a = " + "[" * 20_000, "MLC0204"),
    "types": ("func.func @main(%x: " + "tuple<" * 20_000, "MLC0206"),
    "an absurd size": (GOOD.replace("2xf32", "9" * 5000 + "xf32"), "MLC0204"),
    "an absurd shape": (GOOD.replace("2xf32", "x".join(["1000000"] * 9) + "xf32"), "MLC0204"),
    "an unknown type": (GOOD.replace("2xf32", "2xf33"), "MLC0206"),
    "a wrong type": (GOOD.replace("-> tensor<2xf32>", "-> tensor<3xf32>"), "MLC01"),
    "an unknown value": (GOOD.replace("return %x", "return %y"), "MLC0208"),
    "an unknown operation": (GOOD.replace("func.return", "func.retrun"), "MLC0211.*func.return"),
    "two of a name": (GOOD + GOOD, "MLC0105"),
    "not UTF-8": (b"module {\xff\xfe}", "MLC0202"),
    "zeros": (bytes(1000), "MLC0203"),
}


@pytest.mark.parametrize("command", ["opt bad.mlir -p canonicalize -o out", "run bad.mlir -o out.npz",
                                     "compile bad.mlir:main --emit=obj -o out.o"])
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_ir(name: str, command: str, run: Run) -> None:
    text, wanted = MALFORMED[name]
    Path("bad.mlir").write_bytes(text if isinstance(text, bytes) else text.encode())
    before = sorted(Path().iterdir())
    status, out, err = run(*command.split())
    assert status == 1 and not out and re.search(wanted, err, re.S), err
    assert err.count("error[") == 1 and "Traceback" not in err and "bad.mlir" in err and len(err) < 2000
    assert sorted(Path().iterdir()) == before, "something was left behind"


def test_a_check_without_compiled_functions_is_an_error(run: Run) -> None:
    Path("program.py").write_text("import mlc\n")
    status, out, err = run("run", "--check", "program.py")
    assert status == 1 and not out and "MLC0453" in err and "--check program.py:FUNCTION" in err


@pytest.mark.parametrize("words, status, wanted", [
    ("run model.mlir --seed -1", 2, "MLC0391.*--seed"),
    ("run model.mlir --args f32[B,16]", 2, r"MLC0397.*tensor<Bx16xf32>, tensor<16x3xf32>"),
    ("run model.mlir --args f32[B,16],f32[16,4]", 2, "MLC0397"),
    ("run model.mlir --args f32[B,16],f64[16,3]", 2, "MLC0397"),
    ("run model.mlir --sizes B=999999999999", 2, "MLC0328.*memory"),
    ("run model.mlir --exec=interp --sizes B=999999999999", 2, "MLC0328.*memory"),
    ("compile model.py:scale --args f32[3],f32[3]", 2, "MLC0397.*too many"),
    ("compile model.py:predict --args f32[3]", 2, "MLC0397.*'w'"),
    ("compile classes.py:Net", 2, "MLC0399"),
    ("run model.py --entry predict", 2, "MLC0391.*--entry has no meaning.*model.py:FUNCTION"),
    ("run model.py --exec=interp", 2, "MLC0391.*--exec"), ("run model.py -o x.npy", 2, "MLC0391.*--output"),
    ("run model.py --args f32[3]", 2, "MLC0391.*--args"), ("run model.py --seed 0", 2, "MLC0391.*--seed"),
    ("run model.py --sizes B=3", 2, "MLC0391.*--sizes"), ("run model.py -p cse", 2, "MLC0391.*--pipeline"),
    ("run model.py --inputs x.npy", 2, "MLC0391.*--inputs"), ("run model.mlir one", 2, "MLC0391.*'one'.*--args"),
    ("run model.mlir:main --entry other", 2, "MLC0391.*two functions"),
    ("run model.mlir --inputs x.npy --seed 3", 2, "MLC0391.*--seed.*--inputs gives"),
    ("run model.py:predikt", 2, "MLC0399.*did you mean model.py:predict"),
    ("run model.py:scale", 2, "MLC0388.*--args"), ("run model.mlir:mian", 2, "MLC0399.*did you mean @main"),
    ("opt model.mlir --color", 2, "MLC0391.*--color"),
    ("opt model.mlir --color=red", 2, "MLC0391.*red.*auto"),
])
def test_mistakes_on_the_command_line(words: str, status: int, wanted: str, run: Run) -> None:
    Path("classes.py").write_text("class Net: pass\n")
    before = {p: p.read_bytes() for p in Path().iterdir() if p.is_file()}
    found, out, err = run(*words.split())
    assert found == status and not out and re.search(wanted, err, re.S), err
    assert err.count("error[") == 1 and "Traceback" not in err
    assert {p: p.read_bytes() for p in Path().iterdir() if p.is_file()} == before, "something was left behind"


def test_a_captured_array_has_the_elements_it_had_when_it_was_read() -> None:
    """An array that a differentiated function writes to between its uses counts with what it held at each use."""
    buffer = np.zeros(2, np.float32)

    def f(x: Any) -> Any:
        out: Any = 0
        for i in range(3):
            buffer[:] = i
            out = out + (x * buffer).sum()
        return out

    assert mlc.grad(f)(np.ones(2, np.float32)).tolist() == [3.0, 3.0]


def test_a_size_of_many_digits_is_refused() -> None:
    with pytest.raises(Error, match="bad size"):
        mlc.spec("9" * 5000)


def test_mistakes_are_runtime_errors_as_in_pytorch() -> None:
    with pytest.raises(RuntimeError, match="MLC"):
        mlc.ones(2) @ mlc.ones(3)
    x = mlc.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="MLC0431"):
        y.backward()
