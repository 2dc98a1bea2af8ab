"""The elementary functions keep to the errors that dialects/tensor/ACCURACY.md states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import mlc
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.ir.core import REGISTRY
from mlc.ir.diag import UserError
from mlc.ir.interp import Interpreter
from mlc.ir.passes import Pipeline, parse_pipeline
from mlc.tools import accuracy
from tests.arrays import Array

BOUNDS = accuracy.bounds()
EXACT = {"floordiv", "fmod", "rem"}


def interpreted(name: str, xs: Sequence[Array]) -> Array:
    """The bits that native code gives, without making any."""
    inside = mlc.lower(accuracy.function(name), xs, level="tensor").module
    Pipeline(parse_pipeline("fix_numerics")).run(inside)
    return np.asarray(Interpreter(inside).call("main", list(xs))[0])


def test_the_page_has_every_function() -> None:
    assert sorted(BOUNDS) == accuracy.NAMES == sorted(
        {n.removeprefix("tensor.") for n, c in REGISTRY.items() if issubclass(c, Elementwise) and c.has_expansion()}
        - EXACT)
    assert all(row.keys() == accuracy.FORMATS.keys() for row in BOUNDS.values())


def stated(name: str, format: str) -> float:
    assert name in BOUNDS, f"dialects/tensor/ACCURACY.md has no row for {name}: mlc accuracy {name} --write adds it"
    return BOUNDS[name][format]


def test_the_page_promises_enough() -> None:
    """float32 within 1.7 units of the last place, and within 1.5 but for erfc; float64 within 2."""
    for name, row in BOUNDS.items():
        assert row["float32"] <= (1.7 if name == "erfc" else 1.5) and row["float64"] <= 2, name


@pytest.mark.parametrize("format", accuracy.FORMATS)
@pytest.mark.parametrize("name", accuracy.NAMES)
def test_errors_are_within_those_stated(name: str, format: str) -> None:
    """At samples of all exponents; 0.02 more, as these are others than the page's."""
    count = {"float64": 60, "float32": 4000}.get(format, 2000)
    found = accuracy.measure(name, accuracy.FORMATS[format], interpreted, count)
    assert found.ulps <= stated(name, format) + 0.02, found


@pytest.mark.slow
@pytest.mark.parametrize("format", accuracy.FORMATS)
@pytest.mark.parametrize("name", accuracy.NAMES)
def test_the_page_is_what_is_measured(name: str, format: str) -> None:
    """All of what the command measures, in native code."""
    found = accuracy.measure(name, accuracy.FORMATS[format], accuracy.native)
    assert accuracy.rounded_up(found.ulps) <= stated(name, format), found


def test_an_error_is_counted() -> None:
    """A result that is off by one place, a wrong infinity and a lost NaN are seen."""
    single, exp = accuracy.FORMATS["float32"], accuracy.native
    near = accuracy.measure("exp", single, exp, 100)
    assert 0.4 < near.ulps < 1
    wrong = accuracy.measure("exp", single, lambda name, xs: np.nextafter(exp(name, xs), np.float32(np.inf)), 100)
    assert 1 < wrong.ulps <= 3
    assert accuracy.measure("sin", single, lambda name, xs: np.full_like(xs[0], np.inf), 100).ulps == np.inf
    assert accuracy.measure("sin", single, lambda name, xs: np.full_like(xs[0], np.nan), 100).ulps == np.inf


def test_rows_are_written_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of other functions stay as they are."""
    written, before = tmp_path / "ACCURACY.md", accuracy.page().read_text(encoding="utf-8")
    written.write_text(re.sub(r"(?m)^\| exp .*\n", "", before), encoding="utf-8")
    monkeypatch.setattr(accuracy, "page", lambda: written)
    monkeypatch.setattr(accuracy, "measure", lambda *args: accuracy.Error(0.5, (1.0,)))
    assert accuracy.main(accuracy.parser().parse_args(["exp", "--write"])) == 0
    after = written.read_text(encoding="utf-8")
    assert "| exp | 0.50 | 0.50 | 0.50 | 0.50 | 1 | 1 |\n" in after
    assert re.sub(r"(?m)^\| exp .*\n", "", after) == re.sub(r"(?m)^\| exp .*\n", "", before)
    with pytest.raises(UserError, match="errors of all types"):
        accuracy.main(accuracy.parser().parse_args(["exp", "--write", "--type", "float32"]))
