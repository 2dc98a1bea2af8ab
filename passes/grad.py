"""Replace derivatives by ordinary operations.

takes  TENSOR
gives  DIFFERENTIATED: no operation of `autodiff` is left
why    everything below knows functions and calls, and nothing of derivatives

Reverse mode, one walk per differentiated function; dialects/autodiff has the algorithm, because the interpreter
needs it for the meaning of a derivative that has not been expanded.
"""

from __future__ import annotations

from mlc.dialects import autodiff
from mlc.dialects.builtin import Module
from mlc.ir.core import Op
from mlc.ir.passes import Pass
from mlc.passes.forms import DIFFERENTIATED, TENSOR


def run(module: Op) -> None:
    """Expand every `autodiff` operation, those in callees first, and then what the lanes of loops are made of."""
    for inner in module.inside(Module):
        autodiff.expand(inner)
        autodiff.inline_masks(inner)


PASS = Pass(run, takes=TENSOR, gives=DIFFERENTIATED)
