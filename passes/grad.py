"""Expand derivatives and batches of functions into ordinary operations.

takes  REAL
gives  DIFFERENTIATED: no operation of `autodiff` is left
why    the passes below support functions and calls only

The algorithms are in passes/differentiate. The interpreter runs this pass on a copy of the module to evaluate a
derivative that has not been expanded.
"""

from __future__ import annotations

from mlc.dialects.builtin import Module
from mlc.ir.core import Op
from mlc.ir.passes import Pass
from mlc.passes.differentiate.expand import expand
from mlc.passes.differentiate.predicated import inline_masks
from mlc.passes.forms import DIFFERENTIATED, REAL


def run(module: Op) -> None:
    """Expand every `autodiff` operation, callees first, and then the predicated regions of batched loops."""
    for inner in module.inside(Module):
        expand(inner)
        inline_masks(inner)


PASS = Pass(run, takes=REAL, gives=DIFFERENTIATED)
