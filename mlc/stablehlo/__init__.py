"""StableHLO in and out: the programs of JAX and of what else is compiled by XLA.

    f = mlc.stablehlo.load("model.stablehlo.mlir")         # a compiled function of arrays
    print(mlc.stablehlo.text(g, (mlc.spec(2, 3),)))        # a function of mlc's, as XLA reads it
"""

from mlc.stablehlo.loading import load
from mlc.stablehlo.writing import text

__all__ = ["load", "text"]
