"""The text language: results of programs, and properties of all diagnostics."""
from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontend.language import Program, ProgramError, functions_of, load
from mlc.frontend.language.diagnostics import Diagnostics, Source
from mlc.frontend.language.parser import parse
from mlc.ir.diag import Error, UserError
from mlc.tools.cli import main
from mlc.tools.fuzzing.language_texts import SOUND, mutated
from tests.execution import NATIVE
from tests.test_language_page import BLOCKS

pytestmark = pytest.mark.usefixtures("execution")

EXAMPLES = Path(__file__).parent.parent / "examples"
rng = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return rng.normal(size=shape).astype(np.float32)


def vector(numbers: list[float]) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.float32)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs of the page."""
    folder = tmp_path_factory.mktemp("page")
    for kind, text in BLOCKS:
        if kind == "mlc":
            (folder / text.split("\n", 1)[0].removeprefix("# ")).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def program(tmp_path: Path) -> Any:
    """Load a text."""
    def make(text: str, name: str = "program.mlc") -> Any:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return load(path)
    return make


def wrong(text: str, folder: Path) -> tuple[Error, ...]:
    """The diagnostics of a text."""
    path = folder / "wrong.mlc"
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(ProgramError) as caught:
        load(path)
    return caught.value.diagnostics


def lines(text: str, folder: Path) -> list[str]:
    return [f"{e.loc.line}:{e.loc.col} {e.code} {e.message}" for e in wrong(text, folder)]


# -- what programs compute --------------------------------------------------------------------------------------------
def test_sizes(page: Path) -> None:
    p, x = load(page / "sizes.mlc"), floats(2, 3)
    np.testing.assert_allclose(p.rows(x), x.sum(1) / 3, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(p.pairs(x[0, :2]), x[0, :2].reshape(1, 2))
    np.testing.assert_allclose(p.scaled(x, 5.0), x * 5 + 1e-6, rtol=1e-6)
    np.testing.assert_allclose(p.scaled(x[0]), x[0] * 2 + 1e-6, rtol=1e-6)
    np.testing.assert_allclose(p.scaled(x, eps=1.0), x * 2 + 1, rtol=1e-6)
    np.testing.assert_allclose(p.fourth(x[0]), x[0] ** 4, rtol=1e-5)
    np.testing.assert_allclose(p.both((x[0], np.float32(2)), (x[1], np.float32(3))), x[0] + 3 * x[1], rtol=1e-6)


def test_expressions(page: Path) -> None:
    p, x = load(page / "expressions.mlc"), floats(5, 3)
    assert (p.width, p.greeting) == (3, "texts stand in quotes")
    np.testing.assert_allclose(p.gelu_by_hand(x[0]), mlc.nn.functional.gelu(x[0]), atol=1e-6)
    np.testing.assert_array_equal(p.clipped(vector([-1, 0.5, 2])), [0, 0.5, 0])
    slope = np.cos(x) * np.exp(-x) - np.sin(x) * np.exp(-x)
    np.testing.assert_allclose(p.slope(x[0, 0]), slope[0, 0], rtol=1e-4)
    np.testing.assert_allclose(p.slopes(x[:, 0]), slope[:, 0], rtol=1e-4)
    first, parts, transposed, squares = p.windows(x)
    np.testing.assert_array_equal(first, x[0])
    np.testing.assert_array_equal(parts, x[1:].T)
    np.testing.assert_array_equal(transposed, x[..., None].swapaxes(-1, -2))
    np.testing.assert_allclose(squares, -x[:, -1] ** 2)


def test_statements(page: Path) -> None:
    p = load(page / "statements.mlc")
    assert [p.collatz(n).item() for n in (1, 2, 7, 27)] == [0, 1, 16, 111]
    assert [p.power(2.0, n).item() for n in (0, 1, 10, -2)] == [1, 2, 1024, 0.25]
    xs = floats(4, 2)
    means, mean = p.running_mean(xs, keep=0.5)
    expected = np.zeros(2, np.float32)
    for x, found in zip(xs, means.numpy()):
        expected = 0.5 * expected + 0.5 * x
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(mean, means[-1])
    np.testing.assert_allclose(p.dot(xs[0], xs[1]), xs[0] @ xs[1] + 1, rtol=1e-5)
    with pytest.raises(UserError, match="keep is a share"):
        p.running_mean(xs, keep=2)


def test_models(page: Path) -> None:
    p = load(page / "net.mlc")
    mlc.manual_seed(0)
    net = p.Net()
    assert list(net.state_dict())[:3] == ["seen", "hidden.0.w", "hidden.0.b"]
    assert net.state_dict()["last.w"].shape == (64, 10)
    x, y = floats(5, 64), np.arange(5)
    state = p.optimizer.init(net)
    first = p.loss(net, x, y).item()
    for _ in range(5):
        net, state, value = p.step(net, state, x, y)
    assert net.seen.item() == 30 and value.item() < first
    eager = net.eval()(x)
    np.testing.assert_allclose(eager, mlc.compile(net)(x), rtol=1e-5)
    assert net.seen.item() == 30
    np.testing.assert_allclose(net.features(x).numpy() @ net.last.w.numpy() + net.last.b.numpy(), eager, rtol=1e-4,
                               atol=1e-5)
    other = p.Net(3, depth=1)
    assert other(x).shape == (5, 3) and other.num_parameters() < net.num_parameters()


def test_training(page: Path) -> None:
    """On digits: the step of the example learns as that in Python does, to the bit."""
    p = load(EXAMPLES / "digits.mlc")
    from tests.test_language_ir import Classifier, optimizer, step
    mlc.manual_seed(1)
    net = p.Classifier()
    twin = Classifier()
    twin.load_state_dict(net.state_dict())
    state, other = p.optimizer.init(net), optimizer.init(twin)
    train = mlc.compile(step)
    for _ in range(3):
        x, y = floats(8, 64), rng.integers(0, 10, 8)
        net, state, a = p.step(net, state, x, y)
        twin, other, b = train(twin, other, x, y)
        assert a.item() == b.item()
    for name, value in net.state_dict().items():
        np.testing.assert_array_equal(value, twin.state_dict()[name])


def test_control_flow_of_every_kind(program: Any) -> None:
    p = program('''
def early(x: f32) -> f32:
    if x < 0:
        return -1
    elif x < 1:
        y = x
    else:
        if x > 10:
            return 10
        else:
            return x * 2
    return y + 100

def swapped(a: f32, b: f32, n: i64):
    for i in 0..n:
        a, b = b, a
    return a, b

def nested(n: i64) -> i64:
    total = 0
    for i in 0..n:
        j = 0
        while j < i:
            if (i + j) % 2 == 0:
                total += j
            j += 1
    return total

def outer(a: f32[N], b: f32[M]):
    rows = for x in a:
        row = for y in b:
            yield x * y
        yield row, x
    return rows

def chosen(x: f32[N], which = "sum"):
    if which == "sum":
        return sum(x)
    return mean(x)

def shifted(n: i64):
    out = for i, j in zip(2..5, 7..10):
        yield i * j + n
    return out
''')
    assert [p.early(x).item() for x in (-3.0, 0.5, 3.0, 20.0)] == [-1, 100.5, 6, 10]
    assert [x.item() for x in p.swapped(1.0, 2.0, 3)] == [2, 1]
    assert p.nested(6).item() == sum(j for i in range(6) for j in range(i) if (i + j) % 2 == 0)
    table, xs = p.outer(vector([1, 2]), vector([3, 4, 5]))
    np.testing.assert_array_equal(table, np.outer([1, 2], [3, 4, 5]))
    np.testing.assert_array_equal(xs, [1, 2])
    assert (p.chosen(vector([1, 2])).item(), p.chosen(vector([1, 2]), "mean").item()) == (3, 1.5)
    np.testing.assert_array_equal(p.shifted(1), [15, 25, 37])


def test_models_within_functions(program: Any) -> None:
    """Loops carry models, parameters begin as functions say, tuples hold models, numbers may be known."""
    p = program('''
def angles(T, d) -> f32[T, d]:
    rows = for t in 0..T:
        yield t / 10 ** (arange(d) / d)
    return sin(rows)

model Net(d = 4, T = 6):
    places: f32[T, d] = angles(T, d)
    w: f32[d, d] ~ normal(0, 1)
    def forward(x: f32[B, d]) -> f32[B, d] = x @ w + places[0]

def loss(net: Net, x: f32[B, 4]) -> f32 = mean(net(x) ** 2)

def train(net: Net, x: f32[B, 4], steps: i64, rate: f32) -> (Net, f32):
    value: f32 = 0
    for i in 0..steps:
        value, gradient = value_and_grad(loss)(net, x)
        net = net - rate * gradient
    return net, value

def sum_of(nets: (Net, Net), x: f32[B, 4]) -> f32 = loss(nets[0], x) + loss(nets[1], x)

def power(x: f32[N], n) -> f32[N]:
    out = ones(N)
    unroll for i in 0..n:
        out = out * x
    return out

def limits(x: f32[N]) = min(N, 3), max(N, 3), min(4, 2.5)
''')
    mlc.manual_seed(0)
    net, x = p.Net(), floats(5, 4)
    np.testing.assert_allclose(net.places, np.sin(np.arange(6)[:, None] / 10 ** (np.arange(4) / 4)), rtol=1e-5)
    losses = [p.train(net, x, n, 0.1)[1].item() for n in (1, 5, 50)]
    assert losses[0] == p.loss(net, x).item() and losses[0] > losses[1] > losses[2]
    one = p.train(net, x, 1, 0.1)[0]
    gradient = mlc.grad(p.loss)(net, x)
    np.testing.assert_allclose(one.w, net.w.numpy() - np.float32(0.1) * gradient.w.numpy(), rtol=1e-5)
    assert p.sum_of((net, one), x).item() == pytest.approx(p.loss(net, x).item() + p.loss(one, x).item())
    np.testing.assert_allclose(p.power(x[0], 3), x[0] ** 3, rtol=1e-5)
    np.testing.assert_array_equal(p.power(x[0], n=0), np.ones(4))
    assert [y if isinstance(y, float) else y.item() for y in p.limits(x[0])] == [3, 4, 2.5]


def test_derivatives_and_batches(program: Any) -> None:
    p = program('''
def f(x: f32, k: f32) -> f32:
    while x < 10:
        x = x * k
    return x

def both(x: f32[N], k: f32) = vmap(value_and_grad(f), in_dims=(0, none))(x, k)
def hessian_of(x: f32[N]) -> f32[N, N] = hessian(x => sum(x ** 3))(x)
''')
    x = vector([1, 3, 20])
    value, slope = p.both(x, 2.0)
    np.testing.assert_array_equal(value, [16, 12, 20])
    np.testing.assert_array_equal(slope, [16, 4, 1])
    np.testing.assert_allclose(p.hessian_of(x), np.diag(6 * x))


def test_imports(tmp_path: Path) -> None:
    (tmp_path / "a.mlc").write_text("scale = 2\ndef f(x: f32) -> f32 = scale * x\nmodel M(n):\n    w: f32[n] = 1\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.mlc").write_text(
        'import "../a.mlc" as first\nfrom "../a.mlc" import M, f\n'
        "def g(m: first.M(3), other: M(3)) = first.f(m.w[0]) + f(other.w[1]) + first.scale\n")
    p = load(tmp_path / "sub" / "b.mlc")
    m = p.M(3)
    assert p.g(m, m).item() == 6 and p.first.f(4.0).item() == 8 and p.f(1.0).item() == 2
    assert functions_of(p) == ["g"] and type(m) is p.first.M


def test_bindings_of_a_file(program: Any) -> None:
    """Models of the file are made once; tensors are what they are wherever they are used."""
    p = program('''
model Net(n = 3):
    w: f32[n] ~ normal(0, 1)
    def forward(x: f32[n]) -> f32[n] = x * w

net = Net()
first, second = 2, arange(3) * 2.0
scale: f64 = first
def f(x: f32[3]) -> f32[3] = net(x)
def g(x: f32[3]) -> f32[3] = net(x) + second * first
''')
    x = vector([1, 2, 3])
    np.testing.assert_array_equal(p.f(x), p.net.w.numpy() * x)
    np.testing.assert_allclose(p.g(x), p.f(x).numpy() + vector([0, 4, 8]), rtol=1e-6)
    assert p.scale.dtype is mlc.float64 and p.first == 2 and isinstance(p.net, p.Net)


@NATIVE
def test_the_python_interface_of_a_program(page: Path) -> None:
    p = load(str(page / "line.mlc"))
    assert type(p) is Program and dir(p) == ["Line", "loss", "step"]
    assert p.__doc__ == "A line through points, by gradient descent." and p.Line.__doc__ == "y = a x + b"
    assert p.step.__doc__ == "One step downhill, and the loss before it." and p.step.__name__ == "step"
    assert issubclass(p.Line, mlc.nn.Module) and p.step is p.step
    with pytest.raises(AttributeError, match="did you mean step"):
        p.stepp  # noqa: B018
    with pytest.raises(TypeError, match="x"):
        p.loss(p.Line(), np.zeros(3), np.zeros(3, np.float32))                # float64
    with pytest.raises(ValueError, match="N"):
        p.loss(p.Line(), np.zeros(3, np.float32), np.zeros(4, np.float32))
    assert "scf.while" in mlc.lower(load(EXAMPLES / "newton.mlc").root).to_text()


def test_locations(page: Path) -> None:
    text = mlc.lower(load(page / "sizes.mlc").rows, level="trace").to_text(locations=True)
    assert re.search(r"tensor\.reduce_sum .*sizes\.mlc.*:2:36", text), text


def test_commands(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(page / "sizes.mlc") + ":rows", "--emit=tensor"]) == 0
    assert "tensor.reduce_sum" in capsys.readouterr().out
    shown = []
    for how in ("interp", "native"):
        assert main(["run", str(page / "statements.mlc"), "--entry", "dot", "--args", "f32[4],f32[4]",
                     f"--exec={how}"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] and "f32" in shown[0]
    assert main(["run", str(page / "sizes.mlc"), "--entry", "rows", "--sizes", "B=2,N=3"]) == 0
    assert "f32[2]" in capsys.readouterr().out
    assert main(["compile", str(page / "sizes.mlc") + ":row", "--emit=tensor"]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert main(["compile", str(page / "wrong.mlc") + ":f", "--emit=tensor"]) == 1
    assert capsys.readouterr().err.count("error[") == 2


def test_the_name_of_an_import_may_be_no_path(tmp_path: Path) -> None:
    (tmp_path / "a.mlc").write_text('from "b\0.mlc" import f\n')
    with pytest.raises(UserError, match="MLC0645"):
        load(tmp_path / "a.mlc")


def test_lark_is_imported_when_a_program_is_loaded() -> None:
    code = "import sys, mlc.tools.cli as c; c.main(['--help']); import mlc.api; sys.exit('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_threads_load_at_the_same_time(page: Path) -> None:
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for _ in range(3):
                load(page / name)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in ("sizes.mlc", "expressions.mlc", "net.mlc") * 2]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


# -- what is wrong ----------------------------------------------------------------------------------------------------
def test_columns_count_characters(tmp_path: Path) -> None:
    assert lines("def f(x: f32):\n\té = x +\ty\n\tab, 名 = z, 名前\n\treturn é\n", tmp_path) == [
        "2:10 MLC0622 there is no y here", "3:10 MLC0622 there is no z here", "3:13 MLC0622 there is no 名前 here"]


def test_carets_stand_below_wide_characters_and_tabs(tmp_path: Path) -> None:
    error, = wrong("def f(x: f32):\n\t名前 = é(x)\n\treturn 1\n", tmp_path)
    text = str(error)
    assert text.splitlines()[1:3] == ["        名前 = é(x)", "               ^"]


def test_control_characters_are_not_printed(tmp_path: Path) -> None:
    """A quoted line neither clears the terminal nor moves the caret's line."""
    error, = wrong('def f(x: f32) = "\x1b[2J" + z\n', tmp_path)
    quoted, caret = str(error).splitlines()[1:3]
    assert "\x1b" not in quoted and quoted[caret.index("^")] == "z"


def test_line_ends_of_other_systems(tmp_path: Path) -> None:
    for end in ("\n", "\r\n", "\r"):
        assert lines(end.join(["\ufeffdef f(x: f32):", "    y = 1", "    return z", ""]), tmp_path) == [
            "3:12 MLC0622 there is no z here"]


def test_all_mistakes_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "other.mlc").write_text("def g(x: f32) = y\ndef h(x: f32) = x +\n")
    found = wrong('import "other.mlc" as o\ndef f(x: f32) = o.g(x) + o.h(x) + o.k(x) + z\n', tmp_path)
    assert sorted((Path(e.loc.file).name, e.loc.line) for e in found) == [
        ("other.mlc", 1), ("other.mlc", 2), ("wrong.mlc", 2), ("wrong.mlc", 2)]


def test_a_mistake_is_reported_once(tmp_path: Path) -> None:
    """A call of an erroneous function is not reported as another error."""
    text = "def f(x: f32[N]) = x @ y\n" + "".join(f"def g{i}(x: f32[{i}]) = f(x) + f(x)\n" for i in range(1, 9))
    assert lines(text, tmp_path) == ["1:24 MLC0622 there is no y here"]


def test_mistakes_that_depend_on_the_caller(tmp_path: Path) -> None:
    """A function that is right for all sizes it was checked with may be wrong for others; its own line is shown."""
    text = "def f(g, x: f32[N]) = g(x) @ x\ndef h(x: f32[3]) = f(x => x[1:], x)\n"
    error, = wrong(text, tmp_path)
    assert f"{error.loc.line}:{error.loc.col} {error.message}" == "1:28 matmul: inner sizes differ: 2 and 3"
    assert error.notes[-1].endswith("wrong.mlc:2:20") and error.notes[-1].startswith("in the call at")


def test_uncalled_definitions_are_checked(tmp_path: Path) -> None:
    assert lines("def f(g, n, x: f32[N]) = g(x, a) + b[n] + zeros(n) @ x\n"
                 "def h(x: f32[N]):\n    k = y => y + c\n    return x\n"
                 "model M(act, n):\n    w: f32[n] = d\n    def forward(x: f32[n]) = act(x) + e\n", tmp_path) == [
        f"{at} MLC0622 there is no {name} here" for at, name in (
            ("1:31", "a"), ("1:36", "b"), ("3:18", "c"), ("6:17", "d"), ("7:39", "e"))]


def test_deep_and_long_texts(tmp_path: Path) -> None:
    deep = ["(" * 30_000, "-" * 30_000 + "x", "x" + "'" * 20_000, "not " * 20_000 + "x", "x" + "[0]" * 20_000,
            "x" + " if x else x" * 10_000, "x" + ".T" * 20_000, "x" + " ** x" * 20_000]
    for text in deep:
        assert {e.code for e in wrong(f"def f(x: f32) = {text}\n", tmp_path)} == {"MLC0621"}, text[:20]
    assert "MLC0621" in {e.code for e in wrong("".join(" " * i + f"if x{i}:\n" for i in range(500)), tmp_path)}
    (tmp_path / "long.mlc").write_text("def f(x: f32) = x" + " + x" * 500 + "\n")
    assert load(tmp_path / "long.mlc").f(1.0).item() == 501
    calls = "".join(f"def f{i}(x: f32) = f{i + 1}(x) + f{i + 1}(x)\n" for i in range(40))
    assert {e.code for e in wrong(calls + "def f40(x: f32) = x\n", tmp_path)} == {"MLC0621"}


def test_files_that_are_not_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bytes.mlc"
    path.write_bytes(b"def f(x: f32) = \xff")
    with pytest.raises(UserError, match="not UTF-8: byte 0xff at offset 16") as caught:
        load(path)
    assert caught.value.code == "MLC0645"
    with pytest.raises(UserError, match="No such file"):
        load(tmp_path / "none.mlc")
    path.write_bytes(b"")
    assert dir(load(path)) == []
    with pytest.raises(UserError, match="it is no file"):
        load(tmp_path)
    for i in range(100):
        (tmp_path / f"{i}.mlc").write_text(f'import "{i + 1}.mlc" as next\n')
    with pytest.raises(UserError, match="import each other in a row"):
        load(tmp_path / "0.mlc")
    assert wrong("\0", tmp_path)[0].code == "MLC0620"


def test_programs_cannot_access_python(tmp_path: Path) -> None:
    for text in ("x.__class__", "x.numpy()", "nn.init.np", "optim.os", "grad.__globals__", "load(x)", "mlc",
                 "nn.Module", "relu.__wrapped__(x)", "manual_seed(0)", "x.shape.__class__",
                 "nn.functional.__builtins__", "cuda", "from_numpy(x)", "nn.Linear(1, 1).__init__",
                 "nn.Linear(1, 1).load_state_dict", "optim.SGD(1).lr"):
        found = wrong(f"def f(x: f32) = {text}\n", tmp_path)
        assert found[0].code in ("MLC0622", "MLC0624", "MLC0625"), (text, str(found[0]))


def survives(text: str, folder: Path) -> float:
    """Load a text, which must succeed or give diagnostics with locations; returns the seconds it takes."""
    path = folder / "mutated.mlc"
    path.write_text(text, encoding="utf-8", newline="")
    started = time.process_time()
    try:
        load(path)
    except ProgramError as error:
        assert str(error)
        faults = [str(e) for e in error.diagnostics if not (e.loc.line and e.hint)]
        assert not faults, faults[0]
    return time.process_time() - started


def check_mutations(first: int, last: int, folder: Path) -> None:
    shutil.copy(EXAMPLES / "layers.mlc", folder)
    for seed in range(first, last):
        seconds = survives(mutated(seed), folder)
        assert seconds < 20, f"mutation {seed} takes {seconds:.2f} s"


def test_mutations(tmp_path: Path) -> None:
    check_mutations(0, 50, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_mutations(part: int, tmp_path: Path) -> None:
    check_mutations(1000 * part, 1000 * (part + 1), tmp_path)


def test_a_syntax_error_does_not_affect_other_lines() -> None:
    """An erroneous line does not change how the others are parsed."""
    for text in SOUND:
        rows = text.split("\n")
        for i, row in enumerate(rows):
            if not row.strip() or row.lstrip().startswith(("#", '"""')):
                continue
            broken = [*rows[:i], row + " $", *rows[i + 1:]]
            diagnostics = Diagnostics()
            parse(Source("<text>", "\n".join(broken)), diagnostics)
            assert [loc.line for loc, _ in diagnostics.found] in ([i + 1], []), row
