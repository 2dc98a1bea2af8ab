"""Checked code: what it reports, at which line, and that it does not change what is right."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends.cpu.targets import host
from mlc.backends.executable import build
from mlc.dialects import arith, memref, vector
from mlc.dialects.builtin import Module
from mlc.ir.core import Op, before
from mlc.ir.diag import InternalError, UserError, UserIndexError
from mlc.ir.instrumentation import CHECKS
from mlc.ir.interp import run_function
from mlc.ir.machine import GPU
from mlc.ir.parser import parse_module
from mlc.ir.passes import find_pass
from mlc.ir.types import index
from mlc.ir.verify import verify
from mlc.passes import pipeline
from mlc.tools.cli import main
from tests.arrays import Array, difference
from tests.corpus import PROGRAMS
from tests.op_samples import ONCE_COMPOSITES, Sample

DUMP = """\
func.func @main(%N: index, %x: memref<?xf32>, %out0: memref<?xf32>, %arena: memref<?xi8>, %errors: memref<1xi64>)
    attributes {interface = "(tensor<Nxf32>) -> tensor<Nxf32>", symbols = ["N"], aliases = [-1], error_sites = []} {
  %0 = arith.constant 0 : index
  %bytes = arith.constant 16 : index
  %t = memref.view %arena[%0][%N] : memref<?xi8> to memref<?xf32>
  %s = memref.view %arena[%bytes][%N] : memref<?xi8> to memref<?xf32>
  func.call @double(%N, %x, %t) : (index, memref<?xf32>, memref<?xf32>) -> ()
  func.call @double(%N, %t, %out0) : (index, memref<?xf32>, memref<?xf32>) -> ()
  func.return
}
func.func @main_arena_bytes(%N: index) -> index {
  %0 = arith.constant 4 : index
  %1 = arith.constant 16 : index
  %2 = arith.muli %N, %0 : index
  %3 = arith.addi %2, %1 : index
  func.return %3 : index
}
func.func private @double(%N: index, %x: memref<?xf32>, %y: memref<?xf32>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %rest = arith.remui %N, %4 : index
  %whole = arith.subi %N, %rest : index
  scf.for %i = %0 to %whole step %4 {
    %at = arith.addi %i, %0 : index
    %v = vector.load %x[%at] : memref<?xf32>, vector<4xf32>
    %w = arith.addf %v, %v : vector<4xf32>
    vector.store %w, %y[%i] : memref<?xf32>, vector<4xf32>
  }
  %mask = vector.create_mask %rest : vector<4xi1>
  %v = vector.maskedload %x[%whole], %mask, %zero : memref<?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  %w = arith.addf %v, %v : vector<4xf32>
  vector.maskedstore %y[%whole], %mask, %w : memref<?xf32>, vector<4xi1>, vector<4xf32>
  %last = arith.subi %N, %1 : index
  %e = memref.load %x[%last] : memref<?xf32>
  %f = arith.addf %e, %e : f32
  memref.store %f, %y[%last] : memref<?xf32>
  func.return
}
"""

EDITS = {
    "an index map off by one block": ("%at = arith.addi %i, %0", "%at = arith.addi %i, %4", "%v = vector.load",
                                "vector.load of 4 elements outside of memref<?xf32>, at index 4"),
    "a swapped bound": ("subi %N, %1 : index\n  %e", "subi %1, %N : index\n  %e", "%e = memref.load",
                        "memref.load outside of memref<?xf32>, at index -6"),
    "a loop that ends late": ("%i = %0 to %whole", "%i = %0 to %N", "%v = vector.load",
                              "vector.load of 4 elements outside of memref<?xf32>, at index 4"),
    "a mask of all lanes": ("create_mask %rest", "create_mask %4", "%v = vector.maskedload",
                            "vector.maskedload of 4 elements outside of memref<?xf32>, at index 4"),
    "a masked store that is late": ("vector.maskedstore %y[%whole]", "vector.maskedstore %y[%N]",
                                    "vector.maskedstore",
                                    "vector.maskedstore of 4 elements outside of memref<?xf32>, at index 7"),
    "a missing store": ("    vector.store %w, %y[%i] : memref<?xf32>, vector<4xf32>\n", "", "%v = vector.load",
                        "vector.load of memref<?xf32> reads uninitialised memory, at index 0"),
    "a missing call": ("  func.call @double(%N, %t, %out0) : (index, memref<?xf32>, memref<?xf32>) -> ()\n", "",
                       "func.func @main(", "a result memref<?xf32> is not written at element 0"),
    "another buffer": ("@double(%N, %t, %out0)", "@double(%N, %s, %out0)", "%v = vector.load",
                       "vector.load of memref<?xf32> reads uninitialised memory, at index 0"),
    "a view that is too far": ("%bytes = arith.constant 16", "%bytes = arith.constant 1024", "%s = memref.view",
                               "memref.view outside of memref<?xi8>, at 1024"),
    "a view between elements": ("%bytes = arith.constant 16", "%bytes = arith.constant 6", "%s = memref.view",
                                "memref.view outside of memref<?xi8>, at 6"),
    "a product that overflows": ("%whole = arith.subi %N, %rest : index", "%far = arith.constant 9223372036854775807 "
                                 ": index\n  %large = arith.muli %N, %far : index\n  %whole = arith.subi %N, %rest "
                                 ": index", "%large =", "arith.muli overflows the bits of an index: 64"),
    "an alignment that is not there": ("vector.load %x[%at] :", "vector.load %x[%last] {alignment = 32 : i64} :",
                                       "%v = vector.load", "vector.load of memref<?xf32> not aligned to 32 bytes"),
}


def edited(old: str, new: str) -> str:
    assert DUMP.count(old) == 1, f"{old!r} stands there {DUMP.count(old)} times"
    text = DUMP.replace(old, new)
    if "%x[%last] {" in new:                               # not at a multiple of 32 bytes, wherever %x is
        text = text.replace("  scf.for", "  %last = arith.subi %whole, %1 : index\n  scf.for", 1).replace(
            "  %last = arith.subi %N, %1 : index\n", "").replace("%y[%last]", "%y[%whole]").replace(
            "%e = memref.load %x[%last]", "%e = memref.load %x[%whole]")
    return text


def checked(module: Op) -> Op:
    find_pass("insert_checks").run(module)
    verify(module)
    return module


def native(module: Op, arrays: list[Array]) -> list[Array]:
    find_pass("scf_to_llvm").run(module)
    return build(module, host()).entry("main").call([a.copy() for a in arrays])


def test_a_dump_that_is_right_gives_the_same_bits() -> None:
    x = np.arange(7, dtype=np.float32)
    module = checked(parse_module(DUMP))
    interpreted, = run_function(module, "main", [x])
    result, = native(module, [x])
    assert np.array_equal(interpreted, 4 * x) and np.array_equal(result, 4 * x)


@pytest.mark.parametrize("edit", EDITS)
def test_edits_are_reported_at_their_line(edit: str) -> None:
    """By the interpreter and by native code alike; what is outside does not happen."""
    old, new, line, message = EDITS[edit]
    text = edited(old, new)
    module = checked(parse_module(text, "dump.mlir"))
    expected = next(n for n, found in enumerate(text.splitlines(), 1) if line in found)
    x = np.arange(7, dtype=np.float32)
    runs: list[Callable[[], Any]] = [lambda: run_function(module, "main", [x]), lambda: native(module, [x])]
    for run in runs if "a view" not in edit else runs[1:]:             # the interpreter refuses such a view by itself
        with pytest.raises(InternalError) as caught:
            run()
        assert caught.value.code == "MLC0480" and message in caught.value.message
        assert (caught.value.loc.file, caught.value.loc.line) == ("dump.mlir", expected)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_report_does_not_depend_on_threads(threads: int) -> None:
    """Every row is wrong; the least index of the first place is reported."""
    def f(x: mlc.Tensor) -> mlc.Tensor:
        return mlc.exp(x)

    module = mlc.lower(f, [mlc.spec(5000, 40)], level="low").module
    found = next(op for op in module.walk() if op.name == "vector.store")
    assert any(op.name == "scf.parallel" for op in module.walk())
    found.erase()
    before = mlc.get_num_threads()
    mlc.set_num_threads(threads)
    try:
        with pytest.raises(InternalError, match="is not written at element 0") as caught:
            native(checked(module), [np.ones((5000, 40), np.float32)])
    finally:
        mlc.set_num_threads(before)
    assert caught.value.loc.file == __file__


def test_the_line_of_the_model_is_named() -> None:
    """A lowering that is wrong by one is reported where the model asked for what it lowers."""
    def f(x: mlc.Tensor) -> mlc.Tensor:
        y = mlc.exp(x)
        return mlc.cumsum(y, 0)                                                  # here

    module = mlc.lower(f, [mlc.spec("B", 3)], level="low").module
    access = next(op for op in module.walk() if op.loc.line == f.__code__.co_firstlineno + 2 and isinstance(
        op, memref.Load | vector.Access))
    with before(access):
        at = next(i for i, v in enumerate(access.operands) if v is access.indices[0])
        access.set_operand(at, arith.AddI(access.indices[0], arith.constant(1, index)).result)
    with pytest.raises(InternalError, match="MLC0480") as caught:
        native(checked(module), [np.ones((4, 3), np.float32)])
    here = next(n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.endswith("# here"))
    assert caught.value.loc.line == here


# -- what is right ----------------------------------------------------------------------------------------------------
def same_bits(module: Module, arrays: list[Array]) -> None:
    pipeline.lower(module, "low", host().machine)
    other = checked(module.clone())
    for got, want in zip(native(other, arrays), native(module, arrays)):
        assert difference(got, want, "bits") is None


QUICK = ("symbolic_rows_and_columns", "constants", "loop_while_something_is_large")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in PROGRAMS])
def test_programs_keep_their_bits(name: str) -> None:
    module, arrays = PROGRAMS[name]()
    same_bits(module, arrays)


@pytest.mark.slow
@pytest.mark.parametrize("sample", ONCE_COMPOSITES, ids=str)
def test_operations_keep_their_bits(sample: Sample) -> None:
    same_bits(sample.build()[0], sample.arguments())


def test_memory_of_sizes_that_only_the_data_tell() -> None:
    def f(x: mlc.Tensor, mask: mlc.Tensor) -> tuple[mlc.Tensor, mlc.Tensor]:
        chosen = x[mask]
        return chosen, mlc.cumsum(chosen, 0)

    x, mask = np.arange(20, dtype=np.float32).reshape(10, 2), np.arange(10) % 3 == 0
    for got, want in zip(mlc.compile(f, checked=True)(x, mask), (x[mask], np.cumsum(x[mask], 0))):
        assert np.array_equal(got.numpy(), want)


# -- what users write -------------------------------------------------------------------------------------------------
def test_compile_checked() -> None:
    def f(x: mlc.Tensor, i: mlc.Tensor) -> mlc.Tensor:
        return mlc.take(x, i)

    plain, careful = mlc.compile(f), mlc.compile(f, checked=True)
    x, i = np.arange(5, dtype=np.float32), np.array([1, 4])
    assert np.array_equal(plain(x, i).numpy(), careful(x, i).numpy())
    assert not any("trap" in site for e in plain.entries for site in e.interface.error_sites)
    assert any("trap" in site for e in careful.entries for site in e.interface.error_sites)
    with pytest.raises(UserIndexError):                    # an error of the program stays what it is
        careful(x, np.array([1, 5]))
    with pytest.raises(UserError, match="GPU cannot be checked"):
        pipeline.order(GPU, added=CHECKS)


def test_nothing_is_added_where_nothing_is_asked_for() -> None:
    """The passes are those of always, so the code is, and what the compile cache knows it by."""
    assert pipeline.order() == pipeline.ORDER
    assert "insert_checks" not in str(pipeline.build())
    assert [str(s) for s in pipeline.steps(added=CHECKS) if s not in pipeline.steps()] == ["insert_checks"]


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
                             ) -> None:
    monkeypatch.chdir(tmp_path)
    Path("right.mlir").write_text(DUMP)
    Path("wrong.mlir").write_text(edited(*EDITS["a loop that ends late"][:2]))
    assert main(["run", "--checked", "right.mlir", "--sizes", "N=5"]) == 0
    assert main(["run", "--checked", "wrong.mlir", "--sizes", "N=5"]) == 101
    err = capsys.readouterr().err
    assert "wrong.mlir:27:5: error[MLC0480]: vector.load of 4 elements outside of memref<?xf32>, at index 4" in err
    assert main(["compile", "--checked", "right.mlir:main", "--emit=low", "-o", "-"]) == 0
    assert "trap: vector.load of 4 elements outside" in capsys.readouterr().out
    assert main(["run", "--checked", "--check", "right.mlir"]) == 1
    Path("program.py").write_text("import mlc, numpy as np\nf = mlc.compile(lambda x: mlc.exp(x).sum())\n"
                                  "f(np.ones(3, np.float32))\n"
                                  "print('trap' in f.entries[0].interface.error_sites[0])\n")
    assert main(["run", "--checked", "program.py"]) == 0
    assert capsys.readouterr().out.endswith("True\n")
