"""Judge `mlc.onnx.export`: programs go out, through ONNX's checker and ONNX Runtime, and come in again.

    python -m tests.peers.onnx_export [--only REGEX]

Every program of `tests/corpus.py` is written from the tensor dialect, and compared with the interpreter; those of
`tests/peers/onnx_programs.py` are written by `mlc.onnx.export`.
"""

from __future__ import annotations

import argparse
import re
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx

import mlc
from mlc.ir.interp import run_function
from mlc.onnx.exporting import module_model
from tests.corpus import PROGRAMS as CORPUS
from tests.peers import onnx_programs


def corpus_difference(name: str) -> str:
    """The first difference of a program of the corpus; empty if there is none."""
    module, arrays = CORPUS[name]()
    wanted = [np.asarray(x) for x in run_function(module, "main", [np.array(a) for a in arrays])]
    model = module_model(module)
    onnx.checker.check_model(model, full_check=True)
    again = mlc.tree.leaves(mlc.onnx.load(model)(*arrays))
    judged: list[tuple[str, list[Any]]] = [("mlc.onnx.load", [np.asarray(x.numpy()) for x in again])]
    narrow = any(a.dtype.name == "bfloat16" for a in (*arrays, *wanted))
    if not narrow:                                         # ONNX Runtime takes no such arrays of numpy's
        judged.append(("ONNX Runtime", onnx_programs.outputs(model, arrays)))
    for where, found in judged:
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            if a.dtype != b.dtype or a.shape != b.shape:
                return f"result {i} of {where} is a {a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}"
            close = 2e-2 if b.dtype.itemsize == 2 else 1e-4
            if not np.allclose(a.astype(float), b.astype(float), rtol=close, atol=close, equal_nan=True):
                return f"result {i} of {where} is {np.abs(a.astype(float) - b.astype(float)).max()} off"
    return ""


def main() -> int:
    """Run the programs, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression of names")
    options = parser.parse_args()
    tests: list[tuple[str, Callable[[], str]]] = [(f"corpus/{n}", partial(corpus_difference, n)) for n in CORPUS]
    tests += [(f"programs/{n}", partial(onnx_programs.difference, n)) for n in onnx_programs.PROGRAMS]
    right = count = 0
    for name, once in tests:
        if not re.search(options.only, name):
            continue
        try:
            found = once()
        except Exception as error:                         # the judge reports what a program does
            found = f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"
        count, right = count + 1, right + (not found)
        print(name, found or "right", flush=True)
    print(f"{right} of {count} right")
    return 0 if right == count else 1


if __name__ == "__main__":
    sys.exit(main())
