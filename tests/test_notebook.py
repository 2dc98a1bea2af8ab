"""Notebooks: what objects show, the magics, and the example, which is executed by a kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import mlc
from mlc import nn
from mlc.ir import html
from mlc.ir.diag import Error
from mlc.tools import notebook

ROOT = Path(__file__).parent.parent
CELL = "def scores(x: f32[B, 16], w: f32[16, 4]) -> f32[B, 4] = softmax(x @ w, dim=1)\n"


class Balance(HTMLParser):
    """Every element is closed, in order; the texts, and how many elements of each kind there were."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(value: Any) -> Balance:
    return Balance(value._repr_html_())


def test_a_module_of_ir_folds_and_loses_nothing() -> None:
    def powers(x: Any) -> Any:
        while (x < 100).all():
            x = x * x
        return x
    lowered = mlc.lower(powers, [mlc.spec(3)])
    page = shown(lowered.module)
    regions = lowered.to_text().count("{\n")
    assert page.count["details"] == page.count["summary"] == regions >= 4
    assert "".join(page.text.split()) == "".join(lowered.to_text().split())
    assert "tensor" in shown(lowered).text and "level" in shown(lowered).text


@pytest.mark.parametrize("text", ["", "}", "a {\n", "a {\n} b {\n}\n}", "<b> & \"c\" {\n%x\n}"])
def test_any_text_gives_balanced_html(text: str) -> None:
    assert "".join(Balance(html.module(text)).text.split()) == "".join(text.split())


def test_tensors() -> None:
    page = shown(mlc.tensor([1.0, float("nan"), float("inf"), 3.0])).text
    assert "[4] mlc.float32, 16 bytes on cpu; 1 to 3, mean 2" in page and "1 NaN, 1 infinite" in page
    for x in (mlc.tensor(1), mlc.zeros(0, 3), mlc.tensor([True, False]), mlc.tensor([1j]), mlc.ones(200, 200),
              mlc.ones(3).bfloat16(), mlc.ones(2, requires_grad=True), mlc.sparse_coo_tensor([[0]], [1.0], (2,))):
        assert str(x.dtype) in shown(x).text


def test_modules() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Sequential(nn.ReLU(), nn.Linear(4, 1)))
    page = shown(model)
    assert "0: Linear(in_features=3, out_features=4, bias=True)  16 parameters" in page.text
    assert "[4, 3]" in page.text and "running_mean" in page.text and page.count["table"] == 3


def test_compiled_functions_and_profiles() -> None:
    f = mlc.compile(lambda x: mlc.exp(x) @ x)
    assert "not yet called" in shown(f).text
    f(mlc.ones(8, 8))
    with mlc.profiler.profile(kernels=True, profile_memory=True) as p:
        f(mlc.ones(8, 8))
    assert "tensor<8x8xf32>" in shown(f).text
    page = shown(p)
    assert page.count["table"] >= 2 and page.count["iframe"] == 1 and "test_notebook.py" in page.text
    assert "memory at the peak" in shown(p.memory()).text and "Self CPU" in shown(p.key_averages()).text


# -- IPython ----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    shells = pytest.importorskip("IPython.core.interactiveshell")
    found = shells.InteractiveShell.instance()
    found.run_cell("%load_ext mlc\nimport mlc")
    yield found
    shells.InteractiveShell.clear_instance()


def run(shell: Any, cell: str) -> Any:
    done = shell.run_cell(cell)
    done.raise_error()
    return done.result


def test_a_cell_defines_its_functions(shell: Any) -> None:
    assert run(shell, f"%%mlc\n{CELL}") is None
    assert run(shell, "scores(mlc.ones(2, 16), mlc.ones(16, 4)).shape") == (2, 4)


@pytest.mark.parametrize("level, holds", [
    ("trace", "tensor.softmax"), ("tensor", "tensor.softmax"), ("loop", "loop.kernel"), ("low", "scf.for"),
    ("llvm", "llvm.func"), ("llvm-ir", "define"), ("asm", ".text"), ("ptx --target=cuda:sm_90", ".visible .entry")])
def test_a_cell_is_shown_at_each_level(shell: Any, level: str, holds: str) -> None:
    found = run(shell, f"%%mlc --emit={level}\n{CELL}")
    assert holds in repr(found) and "".join(repr(found).split()) in "".join(shown(found).text.split())


def test_functions_of_the_notebook_and_mlir(shell: Any) -> None:
    run(shell, "def doubled(x): return x * 2")
    assert "tensor<5xf32>" in repr(run(shell, "%mlc doubled --args f32[5]"))
    text = "func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {\n  func.return %x : tensor<8xf32>\n}\n"
    assert "llvm.func" in repr(run(shell, f"%%mlc --mlir --emit=llvm\n{text}"))
    assert "llvm.func" in repr(run(shell, f"%%mlc --emit=llvm\n// a module\n{text}"))


@pytest.mark.parametrize("cell, code", [
    ("%mlc nothing", "MLC0932"), ("%%mlc --emit=loop\n\n", "MLC0932"), (f"%%mlc --emit=obj\n{CELL}", "MLC0391"),
    ("%%mlc\ndef f(x: f32[3]) -> f32[3] = y\n", "MLC0622"), (f"%%mlc --entry other --emit=asm\n{CELL}", "MLC0399")])
def test_mistakes_are_told_without_a_traceback(shell: Any, capsys: pytest.CaptureFixture[str], cell: str,
                                               code: str) -> None:
    assert run(shell, cell) is None
    assert code in (err := capsys.readouterr().err) and "Traceback" not in err


@pytest.mark.parametrize(("words", "cell", "place"), [
    ([], "def f(x: f32[3]) -> f32[3] = y\n", r":1:"), (["--mlir"], "func.func @f(\n", r":\d+:")])
def test_mistakes_name_a_file_that_is_there(words: list[str], cell: str, place: str) -> None:
    with pytest.raises(Error) as error:
        notebook._cell(words, cell, {})
    found = re.search(rf"(/\S*/cell-\d+\.\w+){place}", str(error.value))
    assert found and Path(found[1]).read_text() == cell


def test_nothing_imports_ipython() -> None:
    program = ("import sys, mlc, mlc.tools.notebook; mlc.ones(2)._repr_html_(); "
               "assert not {'IPython', 'ipykernel'} & sys.modules.keys()")
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0


@pytest.mark.slow
def test_the_example_runs_in_a_kernel() -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    found = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    nbclient.NotebookClient(found, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    cells = [cell for cell in found.cells if cell.cell_type == "code"]
    assert all(any("text/html" in output.get("data", {}) for output in cell.outputs) for cell in cells)
