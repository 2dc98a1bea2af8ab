"""The text language: which value a name stands for, and which values there are."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontend.language import ProgramError, load
from mlc.ir.diag import UserError

pytestmark = pytest.mark.usefixtures("execution")


@pytest.fixture
def program(tmp_path: Path) -> Any:
    """Load a text."""
    def make(text: str) -> Any:
        path = tmp_path / "program.mlc"
        path.write_text(text, encoding="utf-8")
        return load(path)
    return make


@pytest.fixture
def wrong(program: Any) -> Any:
    """The diagnostics of a text, as LINE:COLUMN CODE message."""
    def found(text: str) -> list[str]:
        with pytest.raises(ProgramError) as caught:
            program(text)
        return [f"{e.loc.line}:{e.loc.col} {e.code} {e.message}" for e in caught.value.diagnostics]
    return found


def vector(*numbers: float) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.float32)


# -- calls of functions that have a meaning for numbers ---------------------------------------------------------------
def test_methods_are_not_functions_of_their_arguments(program: Any, wrong: Any) -> None:
    """x.max(1, true) is the maximum along an axis, and not Python's max(1, True)."""
    p = program("def f(x: f32[2, 2]):\n    values, at = x.max(1, true)\n    return values, at, x.min(0)[0]\n")
    values, at, least = p.f(np.array([[1, 5], [7, 2]], np.float32))
    np.testing.assert_array_equal(values, [[5], [7]])
    np.testing.assert_array_equal(at, [[1], [0]])
    np.testing.assert_array_equal(least, [1, 2])
    assert wrong("def f(x: f32[2, 2]) = x * x.max(3, 2)\n")[0].startswith("1:")
    assert wrong("def f(x: f32[2]) = x * x.round(1)\n")[0].startswith("1:")


def test_functions_of_numbers_go_by_what_a_name_stands_for(program: Any) -> None:
    p = program('''
def rounded(round, x: f32) -> f32 = x + round(2.7)
def f(x: f32) -> f32:
    abs, root, greatest = relu, sqrt, max
    assert root(4) == 2 and greatest(2, 7) == 7
    return x + abs(-3)
def g(x: f32) -> f32 = rounded(floor, x)
''')
    assert (p.f(1.0).item(), p.g(1.0).item()) == (1, 3)


def test_zip_is_a_name_like_others(program: Any, wrong: Any) -> None:
    p = program("def zip(a: f32, b: f32) -> f32 = a + b\ndef f(x: f32) -> f32 = zip(x, x)\n")
    assert p.f(1.0).item() == 2
    text = "def f(x: f32[2]):\n    t = 0.0\n    for a, b in zip(x, x, strict=true):\n        t += a\n    return t\n"
    assert wrong(text) == ["3:17 MLC0627 zip has no parameter strict"]


# -- known values -----------------------------------------------------------------------------------------------------
def test_powers_of_one_are_small(program: Any) -> None:
    p = program("a, b = 1 ** 200, (-1) ** 129\ndef f(x: f32) -> f32 = x + a + 10 * b\n")
    assert p.f(1.0).item() == -8


def test_and_and_or_stop_at_an_operand_that_decides(program: Any, wrong: Any) -> None:
    p = program("def g(n, x: f32) -> f32 = x if n != 0 and 10 / n > 1 else 2 * x\n"
                "def h(n, x: f32) -> f32 = x if n == 0 or 10 / n > 1 else 2 * x\n"
                "def f(x: f32) = g(0, x), g(4, x), g(20, x), h(0, x), h(20, x)\n")
    assert [y.item() for y in p.f(3.0)] == [6, 3, 6, 3, 6]
    assert wrong("def f(n, x: f32) = x if n and y else x\n") == ["1:31 MLC0622 there is no y here"]


def test_an_index_that_python_refuses(wrong: Any) -> None:
    assert wrong("def f(x: f32) -> f32 = x + [1, 2, 3][::0][0]\n")[0].startswith("1:38 MLC0635 ")


def test_ranges_are_no_results(wrong: Any) -> None:
    assert wrong("def f(x: f32) = 0..3\ndef g(x: f32[2]) = x, zip(x, x)\ndef h(x: f32):\n    y = x, [0..3]\n"
                 "    return x\n") == ["1:18 MLC0632 a range stands alone", "2:20 MLC0632 a zip stands alone",
                                       "4:9 MLC0632 a range stands alone"]


# -- buffers ----------------------------------------------------------------------------------------------------------
def test_a_parameter_hides_a_buffer(program: Any) -> None:
    p = program('''
model M:
    buffer seen: i64 = 5
    def forward(x: f32, seen: i64) -> f32:
        seen = seen + 1
        return x + seen
    def counted(x: f32) -> f32:
        unroll for seen in 0..3:
            seen = seen + 1
            x = x + seen
        return x
''')
    m = p.M()
    assert (m(mlc.tensor(1.0), mlc.tensor(100)).item(), m.counted(mlc.tensor(1.0)).item(), m.seen.item()) == (102, 7, 5)


def test_functions_of_a_model_see_its_buffers_as_they_are(program: Any) -> None:
    p = program('''
model M:
    buffer count: i64 = 0
    def bump(x: f32) -> f32:
        count = count + 1
        return x
    def forward(x: f32) -> f32:
        count = count + 1
        y = bump(x)
        count += 1
        return y * count
''')
    m = p.M()
    assert (m(mlc.tensor(1.0)).item(), m.count.item()) == (3, 3)


def test_buffers_after_branches_and_loops(program: Any) -> None:
    p = program('''
model M:
    buffer count: i64 = 0
    def once(x: f32) -> f32:
        if x > 0:
            count = count + 1
        return x * count
    def rows(x: f32[3]) -> f32:
        for v in x:
            if v > 1:
                count = count + 1
        while count < 5:
            count = count + 2
        return sum(x) * count
def f(m: M, x: f32[3]):
    for v in x:
        y = m.once(v)
    return m, m.count
''')
    m = p.M()
    assert (m.once(mlc.tensor(3.0)).item(), m.once(mlc.tensor(-3.0)).item(), m.count.item()) == (3, -3, 1)
    assert m.rows(mlc.tensor([1.0, 2, 3])).item() == 30
    after, count = p.f(p.M(), vector(1, -1, 2))
    assert (after.count.item(), count.item()) == (2, 2)


def test_collected_values_are_assigned_as_others(program: Any, wrong: Any) -> None:
    p = program("model M:\n    buffer rows: f32[3] = 0\n    def forward(x: f32[3]) -> f32[3]:\n"
                "        rows = for v in x:\n            yield v * 2\n        return x\n")
    m = p.M()
    m(mlc.tensor([1.0, 2, 3]))
    np.testing.assert_array_equal(m.rows, [2, 4, 6])
    assert wrong("model M:\n    rows: f32[3] = 0\n    def forward(x: f32[3]) -> f32[3]:\n"
                 "        rows = for v in x:\n            yield v * 2\n        return x\n")[0].startswith("4:9 MLC0640")


# -- names of branches and loops --------------------------------------------------------------------------------------
def test_loops_and_branches_change_names_of_the_file(program: Any) -> None:
    p = program('''
scale, step = 1.0, 1
def rows(xs: f32[3]) -> f32:
    out = 0.0
    for x in xs:
        scale = scale * 2
        out = out + scale * x
    return out + 0 * scale
def powers(n: i64) -> i64:
    out, i = 0, 0
    while i < n:
        step = step * 2
        out, i = out + step, i + 1
    return out
def chosen(x: f32) -> f32:
    if x > 0:
        scale = scale * 2
    return scale * x
def turns(n: i64) -> f32:
    for i in 0..n:
        pi = pi * 2
    return pi
''')
    assert (p.rows(vector(1, 1, 1)).item(), p.powers(3).item()) == (14, 14)
    assert (p.chosen(3.0).item(), p.chosen(-3.0).item()) == (6, -3)
    assert p.turns(2).item() == pytest.approx(4 * np.pi)
    assert p.scale == 1


def test_the_name_of_a_loop_after_it(program: Any, wrong: Any) -> None:
    """The last value, or that of before a loop of no steps; none at all if it has none before."""
    p = program('''
def counted(n: i64) -> i64:
    i = 7
    for i in 0..n:
        j = i
    return i
def rows(xs: f32[N]) -> f32:
    x = 0.0
    for x, k in zip(xs, 0..N):
        y = x
    return x
''')
    assert [p.counted(n).item() for n in (0, 3)] == [7, 2]
    assert [p.rows(x).item() for x in (vector(), vector(1, 2, 3))] == [0, 3]
    assert wrong("i = 7\ndef f(n: i64) -> i64:\n    for i in 0..n:\n        j = i\n    return i\n") == [
        "5:12 MLC0623 i has a value within the loop only"]
    assert wrong("def f(x: f32[3]) -> f32[3]:\n    for x in x:\n        j = x\n    return x\n")[0].startswith("2:")


def test_a_name_without_a_value_on_one_way(program: Any, wrong: Any) -> None:
    """Where a branch leaves a name without a value, it has none afterwards, and the loss is named where it is read."""
    text = "def f(x: f32, n: i64, flag) -> f32:\n    if x > 0:\n        {}:\n            t = x * 2\n    else:\n"
    text += "        t = x\n    return t\n"
    for inner in ("for i in 0..n", "if n > 0", "while n > 3"):
        assert wrong(text.format(inner)) == ["7:12 MLC0623 t has a value in one branch only"], inner
    for inner in ("if flag", "unroll for i in 0..0"):
        call = "def g(x: f32, n: i64) -> f32 = f(x, n, false)\n"
        assert "7:12 MLC0623 t has a value in one branch only" in wrong(text.format(inner) + call), inner



def test_a_loop_in_a_branch_in_a_loop(program: Any) -> None:
    p = program("def f(x: f32) -> f32:\n    i = 3\n    while x < 30:\n        x = x * i\n        if x > 3:\n"
                "            for i in 0..3:\n                x = x + 1\n    return x + 100 * i\n")
    x, i = 1, 3
    while x < 30:
        x = x * i
        if x > 3:
            for i in range(3):  # noqa: B007
                x = x + 1
    assert p.f(1.0).item() == x + 100 * i

def test_a_declared_value_may_be_made_of_the_one_before(program: Any) -> None:
    p = program("def f(x: f32) -> f64:\n    x: f64 = cast(x, f64) + 1\n    return x\n")
    assert p.f(1.0).item() == 2


def test_declared_values_of_buffers_are_kept(program: Any) -> None:
    p = program("model M:\n    buffer n: i64 = 0\n    def forward(x: f32) -> f32:\n        n: i64 = n + 2\n"
                "        return x * n\n")
    m = p.M()
    assert (m(mlc.tensor(3.0)).item(), m.n.item()) == (6, 2)


# -- values never change ----------------------------------------------------------------------------------------------
def test_functions_that_write_to_arguments_are_refused(wrong: Any) -> None:
    text = "def f(x: f32[4, 2], i: i64[1], m: f32[2], v: f32[2]):\n    y = {}\n    return m\n"
    for call in ("batch_norm(x, m, v, training=true)", "nn.functional.batch_norm(x, m, v, none, none, true)",
                 "x.batch_norm(m, v, training=true)", "native_batch_norm(x, none, none, m, v, true, 0.1, 1e-5)",
                 "instance_norm(x[none].mT, m, v)", "embedding(i, x, max_norm=1.0)", "embedding_bag(i, x, i, 1.0)"):
        error, = wrong(text.format(call))
        assert error.startswith("2:") and "MLC0629" in error and error.endswith(
            "the values of a program never change"), error
    assert wrong(text.format("nn.functional.relu_(x)")) == ["2:23 MLC0622 nn.functional has no relu_ for programs"]


def test_functions_that_could_write_to_arguments_but_do_not(program: Any) -> None:
    p = program("def f(x: f32[4, 2], i: i64[1], m: f32[2], v: f32[2]):\n    bn = batch_norm\n"
                "    return bn(x, m, v), batch_norm(x, training=true), x.batch_norm(m, v), embedding(i, x), "
                "instance_norm(x.T[none]), optim.clip_by_global_norm(x, 1.0)\n")
    x = mlc.tensor(np.arange(8, dtype=np.float32).reshape(4, 2))
    results = p.f(x, mlc.tensor([1]), mlc.zeros(2), mlc.ones(2))
    np.testing.assert_allclose(results[0], x.numpy() / np.sqrt(1 + 1e-5), rtol=1e-5)
    np.testing.assert_array_equal(results[2], results[0])


# -- declared sizes and numbers ---------------------------------------------------------------------------------------
def test_sizes_of_later_parameters_are_compared(program: Any, wrong: Any) -> None:
    """A size of several names, or of one that it does not determine, is compared when the names are known."""
    call = "def f(x: f32[{}], a: f32[2], b: f32[3]) -> f32 = {}\n"
    for size, right in (("N + M", 5), ("N * N", 4), ("N // 2", 1), ("M - N", 1)):
        text = f"def g(x: f32[{size}], a: f32[N], b: f32[M]) -> f32 = sum(x)\n"
        assert program(text + call.format(right, "g(x, a, b)")).f(
            np.ones(right, np.float32), vector(1, 2), vector(1, 2, 3)).item() == right
        error, = wrong(text + call.format(7, "g(x, a, b)"))
        assert f"2:49 MLC0626 g: x is f32[7], declared f32[{size}], where " in error
    text = "def g(p: (f32[N + M], f32[N]), b: f32[M]) -> f32 = sum(p[0])\n"
    assert "part 0 of p is f32[7], declared f32[N + M], where N is 2, M is 3" in wrong(
        text + call.format(7, "g((x, a), b)"))[0]


def test_sizes_are_not_negative(program: Any, wrong: Any) -> None:
    assert wrong("def g(x: f32[N + 3]) -> f32 = sum(x) * N\ndef f(x: f32[1]) -> f32 = g(x)\n") == [
        "2:27 MLC0626 g: x is f32[1], declared f32[N + 3]"]
    with pytest.raises(UserError, match=r"MLC0626.*x is f32\[0\], declared f32\[N \+ 1\]"):
        program("def f(x: f32[N + 1]) -> i64 = cast(0, i64) + N\n").f(vector())


def test_numbers_fit_their_declared_type(program: Any, wrong: Any) -> None:
    for value in ("u8 = -1", "u8 = 300", "i32 = 2 ** 40", "i64 = 0.5", "bool = 2", "i8 = -129"):
        number = value.partition(" = ")[0]
        assert "MLC0626" in wrong(f"def f(x: f32) -> f32:\n    y: {value}\n    return x + y\n")[0], value
        assert "MLC0626" in wrong(f"def f(x: f32, y: {value}) -> f32 = x + y\n")[0], value
        for kind in ("", "buffer "):
            assert "MLC0626" in wrong(f"model M:\n    {kind}y: {value}\n    def forward(x: f32) -> f32 = x + y\n")[0]
        assert "MLC0639" in wrong(f"def f(x: f32) -> {number} = {value.partition(' = ')[2]}\n")[0], value
    p = program("model M(n):\n    buffer y: i8 = n\n    w: f32[2] = -1\n    buffer on: bool = true\n"
                "    def forward(x: f32) -> f32 = x + y\n")
    assert p.M(-128)(mlc.tensor(1.0)).item() == -127
    with pytest.raises(UserError, match=r"MLC0626.*128"):
        p.M(128)


# -- calls ------------------------------------------------------------------------------------------------------------
def test_a_function_may_be_given_one_that_calls_it(program: Any) -> None:
    """With another argument that is no recursion, which is one of the same function of the same functions."""
    p = program('''
def apply(f, x: f32) -> f32 = f(x)
model Inner:
    w: f32 = 2
    def forward(x: f32) -> f32 = w * x
model Outer:
    inner = Inner()
    def forward(x: f32) -> f32 = apply(inner, x) + 1
def g(x: f32) -> f32 = apply(y => apply(z => z * 2, y) + 1, x)
def h(net: Outer, x: f32) -> f32 = apply(net, x)
''')
    assert p.g(3.0).item() == 7
    assert p.h(p.Outer(), 3.0).item() == 7


def test_recursion_by_a_function_that_is_given(wrong: Any) -> None:
    for text in ("def apply(f, x: f32) -> f32 = apply(y => f(y), x)\ndef g(x: f32) -> f32 = apply(relu, x)\n",
                 "def g(x: f32) -> f32 = (f => f(f))(f => f(f)) + x\n"):
        assert {e.split()[1] for e in wrong(text)} == {"MLC0628"}, text
    text = "def apply(f, x: f32) -> f32 = apply(f', x)\ndef g(x: f32) -> f32 = apply(relu, x)\n"
    assert {e.split()[1] for e in wrong(text)} <= {"MLC0628", "MLC0621"}


def test_a_slice_that_is_empty_for_all_sizes(program: Any) -> None:
    p = program("def f(x: f32[N]) -> f32 = sum(x[3:1]) + sum(x[-1:-2]) + sum(x[2:2])\n")
    assert [p.f(vector(*range(n))).item() for n in (1, 2, 5)] == [0, 0, 0]


def test_names_of_functions_within_loops(program: Any, wrong: Any) -> None:
    """A loop may call its own value as a function of outside, in each step anew; but it makes no new function."""
    p = program("def f(xs: f32[2, 3]) -> f32:\n    out = 0.0\n    for x in xs:\n        mean = mean(x)\n"
                "        double = y => 2 * y\n        out = out + double(mean)\n    return out\n")
    assert p.f(np.array([[1, 2, 3], [4, 5, 6]], np.float32)).item() == 14
    assert wrong("def g(x: f32) -> f32 = x\ndef f(n: i64, x: f32) -> f32:\n    for i in 0..n:\n"
                 "        g = y => 2 * g(y)\n        x = g(x)\n    return x\n") == [
        "3:9 MLC0646 g is a function outside of the loop, which gives the name to another one"]
