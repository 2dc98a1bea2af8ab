"""The text language: which value a name stands for, and which values there are."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlc.frontend.language import ProgramError, load

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
