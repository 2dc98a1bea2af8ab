"""Python's own control flow on tensors: compiled functions do what they do in plain Python."""

from __future__ import annotations

import functools
import linecache
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlc
from mlc.frontend import tree
from mlc.ir.diag import UserError
from mlc.ir.interp import run_function
from tests.execution import NATIVE
from tests.script_programs import PROGRAMS

pytestmark = pytest.mark.usefixtures("execution")


def agree(plain: Any, compiled: Any) -> None:
    """Results agree, except that a returned Python number is a tensor if it depends on one."""
    first, structure = tree.flatten(plain)
    for a, b in zip(first, tree.matching_leaves(structure, compiled)):
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=1e-6, atol=1e-6)
        assert np.shape(a) == np.shape(b)
        if isinstance(a, mlc.Tensor):
            assert a.dtype == b.dtype


@pytest.mark.parametrize("f, calls", PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_compiled_as_in_python(f: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    compiled = mlc.compile(f)
    for args in calls:
        given = [mlc.tensor(x) if isinstance(x, np.ndarray | np.generic) else x for x in args]
        agree(f(*given), compiled(*given))


# -- programs nobody wrote ---------------------------------------------------------------------------------------------
NAMES = ("a", "b", "c")


@st.composite
def expressions(draw: st.DrawFn) -> str:
    x, y = draw(st.sampled_from(NAMES)), draw(st.sampled_from([*NAMES, "1", "2", "5"]))
    return draw(st.sampled_from([
        f"{x} + {y}", f"{x} - {y}", f"{x} * {y}", f"({x} if {x} > {y} else 1 - {y})", f"max({x}, {y})", y]))


@st.composite
def conditions(draw: st.DrawFn) -> str:
    x, y = draw(st.sampled_from(NAMES)), draw(st.sampled_from([*NAMES, "0", "3"]))
    one = f"{x} {draw(st.sampled_from(['<', '>=', '==', '!=']))} {y}"
    return draw(st.sampled_from([one, f"not {one}", f"{one} and {y} < 5", f"{one} or not {x} % 3 == 1",
                                 f"0 < {x} <= {y} + 2", "a != a"]))


@st.composite
def blocks(draw: st.DrawFn, depth: int, looped: bool, width: int = 3) -> list[str]:
    """Statements; variables stay between -16 and 16, and loops end."""
    out = list[str]()
    for _ in range(draw(st.integers(1, width))):
        kind = draw(st.sampled_from([
            "assign", "assign", "augment", "swap", "return", *(["if", "if", "for", "while"] if depth else []),
            *(["break", "continue"] if looped else [])]))
        x = draw(st.sampled_from(NAMES))
        if kind == "assign":
            out.append(f"{x} = ({draw(expressions())}) % 17")
        elif kind == "augment":
            out += [f"{x} += {draw(expressions())}", f"{x} %= 13"]
        elif kind == "swap":
            out.append("a, b = b, a")
        elif kind == "return":
            out += [f"if {draw(conditions())}:", f"    return {draw(expressions())}, {x}"]
        elif kind in ("break", "continue"):
            out += [f"if {draw(conditions())}:", f"    {kind}"]
        elif kind == "if":
            out += [f"if {draw(conditions())}:", *_indented(draw(blocks(depth - 1, looped)))]
            if draw(st.booleans()):
                out += [f"elif {draw(conditions())}:", *_indented(draw(blocks(depth - 1, looped)))]
            if draw(st.booleans()):
                out += ["else:", *_indented(draw(blocks(depth - 1, looped)))]
        else:
            i = f"i{depth}"
            span = draw(st.sampled_from([f"{x} % 4", f"2, {x} % 7, 2", "3", f"{x} % 5, 0, -1"]))
            head = [f"for {i} in range({span}):"] if kind == "for" else [f"{i} = 0", f"while {draw(conditions())}:"]
            first = f"{x} = ({x} + {i}) % 11" if kind == "for" else f"{i} += 1"
            stop = [] if kind == "for" else [f"    if {i} > 4:", "        break"]
            out += [*head, "    " + first, *stop, *_indented(draw(blocks(depth - 1, True)))]
            if draw(st.booleans()):
                out += ["else:", *_indented(draw(blocks(depth - 1, looped, 1)))]
    return out


def changes_and_rebinds(body: list[str]) -> bool:
    """Whether a loop changes a variable's tensor in place and has the variable stand for another one, so that only the
    first turn changes the tensor of outside."""
    indents = [len(line) - len(line.lstrip()) for line in body]
    for at, line in enumerate(body):
        if line.lstrip().startswith(("for ", "while ")):
            end = next((i for i in range(at + 1, len(body)) if indents[i] <= indents[at]), len(body))
            inside = [row.split()[:2] for row in body[at + 1:end]]
            if any([v, "+="] in inside and [v, "="] in inside for v in NAMES):
                return True
    return False


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def defined(source: str, name: str = "f") -> Callable[..., Any]:
    """A function of a file that is only in memory."""
    file = f"<program {abs(hash(source))}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {"mlc": mlc, "__name__": "programs"}
    exec(compile(source, file, "exec"), namespace)  # noqa: S102 (a program of this test)
    return namespace[name]  # type: ignore[no-any-return]


@settings(max_examples=15, deadline=None)
@given(body=blocks(2, False), calls=st.lists(st.tuples(*[st.integers(-9, 9)] * 3), min_size=3, max_size=3))
def test_random_programs(body: list[str], calls: list[tuple[int, int, int]]) -> None:
    own = "    a, b, c = a + 0, b + 0, c + 0"              # `b += a` in a loop must not change an argument
    f = defined("\n".join(["def f(a, b, c):", own, *_indented(body), "    return a, b + c", ""]))
    compiled = mlc.compile(f)
    for args in calls:
        given = [mlc.tensor(x) for x in args]
        try:
            found = compiled(*given)
        except UserError as error:                         # which tensor `a += b` changes depends on how often
            assert error.code == "MLC0756"
            text = "\n".join(body)                         # after a `return`, the rest is the other branch of its `if`
            assert changes_and_rebinds(body) or "a, b = b, a" in text or ("return" in text and "+=" in text)
            return
        agree(f(*given), found)


# -- what is refused, and what is told ---------------------------------------------------------------------------------
def refusal(source: str, *args: Any, name: str = "f", **options: Any) -> UserError:
    """The error of compiling a function for these arguments; its line is marked `#!`."""
    source = "\n".join(line[4:] for line in source.strip("\n").split("\n")) + "\n"
    f = defined(source, name)
    with pytest.raises(UserError) as info:
        mlc.compile(f, **options)(*args)
    line = next((n for n, text in enumerate(source.split("\n"), 1) if text.endswith("#!")), 0)
    assert info.value.loc.line == line and info.value.loc.file == f.__code__.co_filename, info.value
    return info.value


X, N = np.float32(3), np.int64(3)
REFUSALS = [
    ("MLC0350", "its number is only known when", "outside mlc.compile", """
    def f(x, n):
        return mlc.zeros(n.item())  #!
    """),
    ("MLC0350", "its truth is only known when", "let pieces return a list or use mlc.scan: it is a generator", """
    def pieces(x):
        for i in range(3):
            if x > i:  #!
                yield x

    def f(x, n):
        return sum(pieces(x))
    """),
    ("MLC0350", "its truth is only known when", "write it as an `if` statement or a loop", """
    def f(x, n):
        return [y for y in (1, 2) if x > y]  #!
    """),
    ("MLC0608", r"a list is changed by append\(\)", "mlc.scan, which stacks", """
    def f(x, n):
        ys = []
        for i in range(n):
            ys.append(x * i)  #!
        return mlc.stack(ys)
    """),
    ("MLC0608", "a list is changed", "mlc.scan", """
    def f(x, n):
        ys = [x]
        if x > 0:
            ys += [x]  #!
        return ys[0]
    """),
    ("MLC0608", "a dict is changed", "assign the object after the loop", """
    def f(x, n):
        state = {"x": x}
        while x < 9:
            inner = {}
            inner["y"] = x
            x = x + inner["y"]
            state["x"] = x  #!
        return x
    """),
    ("MLC0608", r"print\(\)", "return what you want to see", """
    def f(x, n):
        while x < 9:
            x = x + 1
            print(x)  #!
        return x
    """),
    ("MLC0608", r"a list_iterator goes on by next\(\)", "assign the object after", """
    def f(x, n):
        steps = iter([1, 2, 3])
        while x < 9:
            x = x + next(steps)  #!
        return x
    """),
    ("MLC0608", "a Meter is changed", "assign the object after", """
    class Meter:
        total = 0

        def add(self, x):
            self.total = self.total + x  #!

    def f(x, n):
        meter = Meter()
        if x > 0:
            meter.add(x)
        return meter.total
    """),
    ("MLC0607", "y may have no value here: the loop at .*:2:14 gives it a value", "give y a value before", """
    def f(x, n):
        for i in range(n):
            y = x * i
        return y  #!
    """),
    ("MLC0607", "y may have no value here: only one branch of the `if` at .*:2:8", "give y a value before", """
    def f(x, n):
        if x > 0:
            y = 1
        return y  #!
    """),
    ("MLC0610", "the `if` stands within `try`", "move it out of the `try`", """
    def f(x, n):
        try:
            if x > 0:  #!
                x = x + 1
        except ValueError:
            pass
        return x
    """),
    ("MLC0611", "this `raise` depends on a tensor", "use `assert condition, message`", """
    def f(x, n):
        if x > 0:
            raise ValueError("bad")  #!
        return x
    """),
    ("MLC0611", "raises KeyError: 'b'", "choose among values that there are", """
    def f(x, n):
        if x > 0:  #!
            return x * {"a": 1}["b"]
        return x
    """),
    ("MLC0611", "raises ZeroDivisionError", "choose among values that there are", """
    def f(x, n):
        return x * (1 / len([])) if x > 0 else x  #!
    """),
    ("MLC0608", r"exit\(\) in a loop or branch that depends on a tensor", "outside of the function", """
    def f(x, n):
        if x > 1e9:
            __import__("sys").exit("diverged")  #!
        return x
    """),
    ("MLC0608", r"warning\(\) in a loop or branch", "outside of the function", """
    def f(x, n):
        if x > 1e9:
            __import__("logging").warning("large")  #!
        return x
    """),
    ("MLC0608", "count is changed in a loop or branch", "carry what changes", """
    def each(n, act):
        for i in range(n):  #!
            act(i)
    def f(x, n):
        count = 0
        def act(i):
            nonlocal count
            count += 1
        each(n, act)
        return x * count
    """),
    ("MLC0608", "count is changed in a loop or branch", "carry what changes", """
    def f(x, n):
        count = 0
        def act():
            nonlocal count
            count += 1
            return x
        y = act() if x > 0 else -x  #!
        return y * count
    """),
    ("MLC0608", "the test of the `while` loop assigns count", "`while True`", """
    def f(x, n):
        count = 0
        def more():
            nonlocal count
            count += 1
            return x < 100
        while more():  #!
            x = x * 2
        return x * count
    """),
    ("MLC0609", "goes through more than 1000 items", "a counter", """
    def f(x, n):
        for i in iter(int, 1):  #!
            x = x + 1
            if x > 5:
                break
        return x
    """),
    ("MLC0613", "infinite recursion while recording", "write a loop", """
    def f(x, n):
        return x if n <= 1 else n * f(x, n - 1)  #!
    """),
    ("MLC0613", "infinite recursion while recording", "write a loop", """
    def f(x, n):
        return mlc.cond(n <= 1, lambda: x, lambda: n * f(x, n - 1))  #!
    """),
    ("MLC0601", "the `for` loop carries s, which begins as tensor<f32> and is tensor<2xf32> after", "begin with", """
    def f(x, n):
        s = x
        for i in range(n):  #!
            s = mlc.stack([x, x])
        return s
    """),
    ("MLC0601", r"the `while` loop carries s\['a'\]\[1\], which begins as tensor<f32> and is the str 'b'", "", """
    def f(x, n):
        s = {"a": [x, x]}
        while x < 5:  #!
            x, s = x + 1, {"a": [s["a"][0], "b"]}
        return s
    """),
    ("MLC0603", "what is returned is a tuple in one branch of the `if` and tensor<f32> in the other", "the same", """
    def f(x, n):
        if x > 0:  #!
            return x, x
        return x
    """),
    ("MLC0602", "the condition of the `if` is tensor<2xi1>", r"mlc.all\(...\)", """
    def f(x, n):
        y = mlc.stack([x, x])
        if y > 0:  #!
            return y
        return x + y
    """),
    ("MLC0605", r"a bound of range\(\) is a tensor of mlc.float32", "", """
    def f(x, n):
        for i in range(x):  #!
            n = n + i
        return n
    """),
    ("MLC0606", "a tensor<f32> has no rows", "", """
    def f(x, n):
        for y in x:  #!
            n = n + y
        return n
    """),
    ("MLC0609", "only a `for` loop can iterate over it", "mlc.scan", """
    def f(x, n):
        return [x * i for i in range(n)]  #!
    """),
]


@pytest.mark.parametrize("code, message, way_out, source", REFUSALS, ids=lambda x: x if x[:3] == "MLC" else "")
def test_refusals_have_a_line_a_reason_and_a_hint(code: str, message: str, way_out: str, source: str) -> None:
    error = refusal(source, X, N)
    assert error.code == code and re.search(message, error.message) and re.search(way_out, error.hint or ""), error


def test_a_function_without_source_keeps_pythons_control_flow() -> None:
    f, g = (eval(f"lambda x: {body}") for body in ("x if x > 0 else -x", "x + 1"))  # noqa: S307 (of this test)
    with pytest.raises(UserError, match="define <lambda> in a file: its source is not at hand"):
        mlc.compile(f)(X)
    assert float(mlc.compile(g)(X)) == 4


def test_reading_an_unassigned_variable_is_pythons_error() -> None:
    f = defined("def f(x, y):\n    if y:\n        z = x\n    return z\n")
    with pytest.raises(UnboundLocalError, match="'z'"):
        mlc.compile(f)(X, False)
    assert float(mlc.compile(f)(X, True)) == 3


def test_fallback_runs_plain_python() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(type(x))
        return mlc.ones(int(x.sum()))

    compiled = mlc.compile(f, fallback=True)
    for n in (2, 3):
        assert compiled(mlc.ones(n)).shape == (n,)
        assert compiled(mlc.ones(n)).shape == (n,)
    assert calls[1:3] == [mlc.Tensor, mlc.Tensor]
    text = compiled.compiled.report()
    assert "f: 2 specialisations" in text and "runs as Python" in text and "MLC0350" in text


def test_a_report_lists_specialisations() -> None:
    known = mlc.tensor(True)

    def f(x: Any, mode: str, n: int) -> Any:
        if mode == "half":
            x = x / 2
        if known:
            x = x + 1
        for _ in range(n):
            x = x + 1 if x > 2 else x
        while x < 9:
            x = x * 2
        return x

    compiled = mlc.compile(f, static="n")
    compiled(X, "half", 2)
    compiled(X, "whole", 0)
    first = f.__code__.co_firstlineno
    text = compiled.compiled.report()
    assert "f: 2 specialisations" in text and "(tensor<f32>)" in text
    for part in ("mode = 'half'", "mode = 'whole'", "n = 2",
                 f"{__file__}:{first + 3}:12: a tensor from outside is True",
                 f"{__file__}:{first + 6}:17: the conditional expression is recorded",
                 f"{__file__}:{first + 7}:15: the `while` loop is recorded"):
        assert part in text, text


def test_rewritten_functions_share_globals_and_closure_cells() -> None:
    """Globals are live, cells are shared, and errors name the line."""
    source = "SCALE = 2\ndef f(x):\n    if x > 0:\n        return x * SCALE\n    return x @ x\n"
    f = defined(source)
    with pytest.raises(UserError) as info:
        mlc.compile(f)(X)
    assert info.value.loc.line == 5
    g = defined("SCALE = 2\ndef f(x):\n    if x > 0:\n        return x * SCALE\n    return x\n")
    assert float(mlc.compile(g)(X)) == 6
    g.__globals__["SCALE"] = 5
    assert float(mlc.compile(g)(X)) == 15


def test_arguments_that_are_one_tensor() -> None:
    def f(q: Any, k: Any) -> Any:
        return q * 2 if q is k else q + k

    compiled, x, y = mlc.compile(f), mlc.tensor([1.0, 2.0]), mlc.tensor([3.0, 4.0])
    for args in ((x, x), (x, y), (y, y), (y, x), (x, x)):
        assert compiled(*args).tolist() == f(*args).tolist()
    with pytest.raises(UserError, match="MLC0616"):
        mlc.compile(lambda q: q if q is x else -q)(y)


def test_a_range_of_a_number_is_one() -> None:
    def f(x: Any, n: int) -> Any:
        steps = range(0, n, 2)
        return (x * len(steps) + range(n).stop, list(range(n)[::-1])) if range(n) else x

    compiled, x = mlc.compile(f), mlc.tensor(3.0)
    for n in (5, 0, 2):
        assert str(compiled(x, n)) == str(f(x, n))


@functools.lru_cache
def mask(n: int) -> Any:
    return mlc.tril(mlc.ones(n, n))


def test_caches_of_functions_keep_no_tensors_of_a_recording() -> None:
    f = mlc.compile(lambda x: (mask(2) * x).sum())
    for x in (mlc.tensor(3.0), mlc.tensor(3.0).double(), mlc.tensor(4.0)):
        assert f(x).item() == 3 * x.item() and mask(2).sum().item() == 3


class Gate(mlc.nn.Module):
    def forward(self, x: Any) -> Any:
        if x.sum() > 0:
            return x * 2
        return -x


def test_modules_are_captured() -> None:
    for x in (X, -X):
        assert float(mlc.compile(mlc.nn.Sequential(Gate(), Gate()))(x)) == (12 if x > 0 else 6)


class Exits(mlc.nn.Module):
    """Leaves at the first layer that is sure."""

    def __init__(self) -> None:
        self.layers = mlc.nn.ModuleList([mlc.nn.Linear(4, 4) for _ in range(4)])
        self.heads = [mlc.nn.Linear(4, 3) for _ in range(4)]

    def forward(self, x: Any) -> Any:
        for depth, (layer, head) in enumerate(zip(self.layers, self.heads)):  # noqa: B007 (it is returned)
            x = mlc.tanh(layer(x))
            p = mlc.softmax(head(x), -1)
            if p.max() > 0.5:
                break
        return p, depth


def test_loops_over_layers_are_unrolled() -> None:
    mlc.manual_seed(0)
    net, found = Exits(), set[int]()
    compiled = mlc.compile(net)
    for x in np.random.default_rng(0).normal(0, 2, (12, 4)).astype(np.float32):
        plain = net(mlc.tensor(x))
        agree(plain, compiled(x))
        found.add(int(plain[1]))
    assert len(found) > 1 and "one `if` for each of the 3 steps that are left" in compiled.report()


def test_loops_that_use_rows_in_python_are_unrolled() -> None:
    def f(x: Any) -> Any:
        kept = []
        for i, row in enumerate(x):
            kept.append(row * i)
        return mlc.cat(kept)

    compiled = mlc.compile(f)
    x = np.ones((3, 2), np.float32)
    np.testing.assert_array_equal(np.asarray(compiled(x)), [0, 0, 1, 1, 2, 2])
    assert "is written out, 3 times its body: a list is changed by append()" in compiled.compiled.report()


class Tally(mlc.nn.Module):
    """Counts how often it sees a positive number, and sums those."""

    count: Any
    total: Any

    def __init__(self) -> None:
        self.register_buffer("count", mlc.tensor(0))
        self.register_buffer("total", mlc.tensor(0.0))

    def forward(self, x: Any) -> Any:
        if x > 0:
            self.count = self.count + 1
            self.total = self.total + x
        return self.total


def test_branches_and_loops_assign_buffers() -> None:
    def f(tally: Any, xs: Any, n: Any) -> Any:
        for i in range(n):
            tally(xs[i])
        while tally(xs[0]) < 9:
            n = n + 1
        return n

    xs, n = mlc.tensor([2.0, -1.0, 3.0]), mlc.tensor(3)
    with pytest.raises(UserError, match="the condition of the `while` loop assigns a buffer") as info:
        mlc.compile(f)(Tally(), xs, n)
    assert info.value.code == "MLC0608"

    def g(tally: Any, xs: Any, n: Any) -> Any:
        for i in range(n):
            y = tally(xs[i])
            if y > 4:
                tally(y)
        return xs

    plain, compiled = Tally(), Tally()
    g(plain, xs, n)
    mlc.compile(g)(compiled, xs, n)
    agree(plain.state_dict(), compiled.state_dict())
    assert int(compiled.count) == 3 and float(compiled.total) == 10


def test_loops_carry_the_state_of_modules() -> None:
    def f(norm: Any, x: Any, n: Any) -> Any:
        for i in range(n):
            if i % 2 == 0:
                x = norm(x) + 1
        return x

    plain, compiled = mlc.nn.BatchNorm1d(2), mlc.nn.BatchNorm1d(2)
    x, n = mlc.tensor(np.arange(6, dtype=np.float32).reshape(3, 2)), mlc.tensor(np.int64(5))
    run = mlc.compile(f)
    for _ in range(2):
        agree(f(plain, x, n), run(compiled, x, n))
    agree(plain.state_dict(), compiled.state_dict())
    assert compiled.running_mean is not None and float(compiled.running_mean[1]) > 0


def checked(x: Any, n: Any) -> Any:
    assert x > 0, f"x of {x.ndim} dimensions is not positive"
    for i in range(n):
        x = x * 2
        if i > 1:
            assert x < 100
    return x


@pytest.mark.parametrize("x, n, line, message", [
    (-1, 0, 1, "x of 0 dimensions is not positive"), (1, 9, 5, "assertion"), (-1, 9, 1, "is not pos"), (90, 1, 0, "")])
def test_a_failed_assert_is_an_error_at_its_line(x: float, n: int, line: int, message: str) -> None:
    args = mlc.tensor(np.float32(x)), mlc.tensor(np.int64(n))
    for f in (mlc.compile(checked), mlc.compile(lambda x, n: mlc.grad(checked)(x, n))):
        if not line:
            checked(*args), f(*args)
            continue
        with pytest.raises(AssertionError):
            checked(*args)
        with pytest.raises(AssertionError, match=message) as info:
            f(*args)
        assert isinstance(info.value, UserError) and info.value.code == "MLC0612"
        assert info.value.loc.line == checked.__code__.co_firstlineno + line


def test_an_assert_ends_a_loop_that_would_not_end() -> None:
    def f(y: Any) -> Any:
        while y < 20:
            assert y > -9, "y falls"
            y = y * 3 + 1
        return y

    assert float(mlc.compile(f)(np.float32(1))) == 40
    with pytest.raises(AssertionError, match="y falls"):
        mlc.compile(f)(np.float32(-2))


def test_asserts_are_checked_for_each_batch_element() -> None:
    def f(x: Any) -> Any:
        assert x < 7, "x is too large"
        return x * 2

    run = mlc.compile(lambda x: mlc.vmap(f)(x))
    assert np.asarray(run(np.array([1, 6], np.float32))).tolist() == [2, 12]
    with pytest.raises(AssertionError, match="x is too large"):
        run(np.array([1, 8], np.float32))


@pytest.mark.parametrize("level", ["trace", "tensor", "loop", "low", "llvm"])
def test_an_assert_is_checked_at_every_level(level: str) -> None:
    module = mlc.compile(checked).compiled.lower(np.float32(1), np.int64(9), level=level).module
    assert run_function(module, "main", [np.float32(1), np.int64(3)])[0] == 8
    with pytest.raises(AssertionError, match="assertion failed") as info:
        run_function(module, "main", [np.float32(1), np.int64(9)])
    assert isinstance(info.value, UserError) and info.value.loc.line == checked.__code__.co_firstlineno + 5


def test_an_assert_on_a_device(device: Any) -> None:
    f = mlc.compile(checked, target="cuda")
    assert float(f(np.float32(3), np.int64(2))) == 12
    with pytest.raises(AssertionError, match="is not positive"):
        f(np.float32(-3), np.int64(2))


@NATIVE
def test_sizes_may_be_symbols() -> None:
    def f(x: Any) -> Any:
        total = mlc.zeros(2)
        for i in range(len(x)):
            total = total + x[i] * i
        for i, row in enumerate(reversed(x)):
            if row[0] > 3:
                break
            total = total - row * i
        return total

    compiled = mlc.compile(f, args=[mlc.spec("N", 2)])
    for n in (0, 1, 2, 5):
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        agree(f(mlc.tensor(x)), compiled(x))
    assert len(compiled.compiled.signatures) == 1


def test_names_that_a_statement_deletes() -> None:
    def f(x: Any) -> Any:
        p, q = x * 2, x
        del (p, [q])
        if x.sum() > 0:
            p = x
        else:
            p = -x
        return p

    for x in (mlc.tensor([1.0, 2.0]), mlc.tensor([-1.0, -2.0])):
        assert mlc.compile(f)(x).tolist() == f(x).tolist()


def test_errors_of_what_may_not_be_evaluated_have_a_code() -> None:
    nothing: Any = None

    def asserts(x: Any) -> Any:
        assert x.sum() > 0, nothing.name
        return x

    f: Any
    for f in (lambda x: x * 2 if x.sum() < 0 and nothing < 3 else x, lambda x: x if x.sum() > 0 or 1 / 0 else -x,
              lambda x: x if x.sum() > 0 else nothing + 1, asserts):
        assert f(mlc.ones(2)).tolist() == [1.0, 1.0]
        with pytest.raises(UserError, match="MLC0611"):
            mlc.compile(f)(mlc.ones(2))
