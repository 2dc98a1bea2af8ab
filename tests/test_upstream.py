"""Upstream MLIR reads the low level and the llvm dialect, and lowers and runs the low level to our numbers."""

from __future__ import annotations

import ctypes
import itertools
import re
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mlc.backends.cpu.targets import host
from mlc.backends.link import link
from mlc.backends.load import load
from mlc.backends.object_code import compile_object
from mlc.ir.core import Op
from mlc.ir.printer import to_text
from mlc.ir.types import MemRefType
from tests.arrays import difference
from tests.low_corpus import PROGRAMS
from tests.low_ops import build_module, cases, operation
from tests.low_programs import Argument, bytes_of, fresh, function_types, interpret, lowered, parsed
from tests.public_case import thinned
from tests.test_scf_to_llvm import ENTRY
from tests.upstream import verify_text

TOOLS = {name: shutil.which(f"{name}-19") or shutil.which(name, path="/usr/lib/llvm-19/bin")
         for name in ("mlir-opt", "mlir-translate")}


def _both_levels(module: Op) -> None:
    for level in (module, lowered(module)):
        verify_text(to_text(level, generic=True))
        verify_text(to_text(level, generic=True, locations=True))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_verify(name: str) -> None:
    _both_levels(parsed(PROGRAMS[name][0]))


def test_entry_verifies() -> None:
    _both_levels(parsed(ENTRY))


@pytest.mark.parametrize("op", thinned(sorted({operation(c[0]) for c in cases()}), 2))
def test_operations_verify(op: str) -> None:
    module = build_module([c for c in cases() if operation(c[0]) == op])
    for level in (module, lowered(module)):
        verify_text(to_text(level, generic=True))


def test_upstream_refuses_what_is_wrong() -> None:
    """The verifier behind `verify_text` is awake."""
    text = to_text(parsed(PROGRAMS["matmul"][0]), generic=True)
    with pytest.raises(Exception, match="error"):
        verify_text(text.replace('"memref.load"(%', '"memref.load"(%c0, %', 1))
    with pytest.raises(Exception, match="error"):
        verify_text('"mlc.tensor.add"() : () -> ()')


# -- lowered and run by upstream --------------------------------------------------------------------------------------
LOWERED_UPSTREAM = ("matmul", "clamp and count", "steps to one", "masked tail", "gather f32 at i32", "arena", "windows",
                    "globals", "scratch on the stack", "shared iterations", "counter of 32 bits",
                    "memory carried round a loop", "reductions of i32")
PIPELINE = ("--arith-expand", "--expand-strided-metadata", "--lower-affine", "--convert-scf-to-cf",
            "--convert-vector-to-llvm", "--convert-math-to-llvm", "--convert-arith-to-llvm",
            "--finalize-memref-to-llvm", "--convert-func-to-llvm", "--convert-cf-to-llvm", "--convert-index-to-llvm",
            "--reconcile-unrealized-casts")


def _descriptor(array: np.ndarray[Any, Any]) -> list[Any]:
    """A memref as upstream's functions take it: two pointers, an offset, sizes and strides."""
    strides = [s // array.itemsize for s in array.strides]
    return [ctypes.c_void_p(array.ctypes.data)] * 2 + [ctypes.c_int64(n) for n in (0, *array.shape, *strides)]


def run_upstream(module: Op, types: Sequence[Any], args: Sequence[Argument]) -> None:
    """Call @main as upstream's passes compile it; results are written into the arrays among `args`."""
    opt, translate = TOOLS["mlir-opt"], TOOLS["mlir-translate"]
    assert opt and translate
    # version 19 still spells the lanes of a shuffle as a list of numbers, which jaxlib's newer one refuses
    text = re.sub(r"mask = array<i64: ([\d, ]+)>", r"mask = [\1]", to_text(module, generic=True))
    dialect = subprocess.run([opt, *PIPELINE], input=text, capture_output=True, text=True, check=True).stdout
    ir = subprocess.run([translate, "--mlir-to-llvmir"], input=dialect, capture_output=True, text=True,
                        check=True).stdout
    library = load(link(compile_object(ir, host(), 2), ["main"]))
    values: list[Any] = []
    for kind, arg in zip(types, args):
        values += _descriptor(arg) if isinstance(kind, MemRefType) else [ctypes.c_int64(arg)]  # type: ignore[arg-type]
    library.function("main", None, [type(v) for v in values])(*values)


@pytest.mark.slow
@pytest.mark.skipif(not all(TOOLS.values()), reason="mlir-opt and mlir-translate of LLVM 19 are not installed")
@pytest.mark.parametrize("name", LOWERED_UPSTREAM)
def test_upstream_computes_our_numbers(name: str) -> None:
    text, calls = PROGRAMS[name]
    module = parsed(text)
    types = function_types(module, "main")
    for args in itertools.islice(calls, 3):
        want, got = fresh(args), fresh(args)
        interpret(module, "main", want)
        run_upstream(module, types, got)
        for a, b in zip(got, want):
            if isinstance(a, np.ndarray):
                assert difference(bytes_of(a), bytes_of(np.asarray(b)), "bits") is None
