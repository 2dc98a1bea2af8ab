"""Programs of the text language as modules."""
from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mlc
from mlc import importer
from mlc.frontend.language import ProgramError

PROGRAM = '''"""Two functions and a model."""

model Line(n):
    w: f32[n] = 2
    def forward(x: f32[B, n]) -> f32[B, n] = x * w

def double(x: f32[N]) -> f32[N] = 2 * x
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    importer.install()
    importer.install()
    yield tmp_path
    importer.remove()
    for name in {name for name in sys.modules if name.startswith("imported_")}:
        del sys.modules[name]


def test_a_program_is_a_module(folder: Path) -> None:
    (folder / "imported_program.mlc").write_text(PROGRAM)
    module = importlib.import_module("imported_program")
    assert module.__doc__ == "Two functions and a model." and module.__file__ == str(folder / "imported_program.mlc")
    assert {"Line", "double"} <= set(dir(module)) and module.double is module.double
    x = np.arange(3, dtype=np.float32)
    assert module.double(x).numpy().tolist() == [0, 2, 4]
    assert module.Line(3)(x[None]).numpy().tolist() == [[0, 2, 4]]
    assert importlib.import_module("imported_program") is module
    with pytest.raises(AttributeError, match=r"has no dubble(?s:.*)did you mean double"):
        module.dubble  # noqa: B018


def test_in_a_package(folder: Path) -> None:
    (folder / "imported_package").mkdir()
    (folder / "imported_package" / "__init__.py").write_text("")
    (folder / "imported_package" / "inner.mlc").write_text(PROGRAM)
    assert importlib.import_module("imported_package.inner").__name__ == "imported_package.inner"


def test_python_goes_first_and_nothing_is_found_where_nothing_is(folder: Path) -> None:
    (folder / "imported_both.mlc").write_text(PROGRAM)
    (folder / "imported_both.py").write_text("here = 1")
    assert importlib.import_module("imported_both").here == 1
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("imported_nothing")
    importer.remove()
    (folder / "imported_late.mlc").write_text(PROGRAM)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("imported_late")


def test_mistakes_are_told_at_the_import(folder: Path) -> None:
    (folder / "imported_wrong.mlc").write_text("def f(x: f32[N]) -> f32[N] = x + y\n")
    with pytest.raises(ProgramError, match=r"imported_wrong.mlc:1:34"):
        importlib.import_module("imported_wrong")
    assert "imported_wrong" not in sys.modules
    mlc.save(mlc.compile(lambda x: x + x), folder / "imported_saved.mlc", args=[mlc.spec(2)])
    with pytest.raises(ImportError, match=r"is a saved model and no program: mlc.load\("):
        importlib.import_module("imported_saved")
