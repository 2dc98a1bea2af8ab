"""Replace derivatives by ordinary operations.

takes  TENSOR
gives  DIFFERENTIATED: no operation of `autodiff` is left
why    everything below knows functions and calls, and nothing of derivatives

The algorithms are in passes/differentiate. The interpreter runs this pass on a copy of the module where it meets a
derivative that has not been expanded.
"""

from __future__ import annotations

from mlc.dialects.builtin import Module
from mlc.ir.core import Op
from mlc.ir.passes import Pass
from mlc.passes.differentiate.expand import expand
from mlc.passes.differentiate.predicated import inline_masks
from mlc.passes.forms import DIFFERENTIATED, TENSOR


def run(module: Op) -> None:
    """Expand every `autodiff` operation, those in callees first, and then what the lanes of loops are made of."""
    for inner in module.inside(Module):
        expand(inner)
        inline_masks(inner)


PASS = Pass(run, takes=TENSOR, gives=DIFFERENTIATED)
