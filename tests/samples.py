"""The files that the help and the error codes of the mlc command use in their examples."""
from __future__ import annotations

from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]
"""A command line, run: the exit status, stdout and stderr."""

MODEL_PY = '''\
import mlc


def predict(x: mlc.spec("B", 16), w: mlc.spec(16, 3)):
    return mlc.softmax(x @ w, dim=1)


def scale(x):
    return x * 2.0


if __name__ == "__main__":
    print(mlc.compile(predict)(mlc.ones(2, 16), mlc.ones(16, 3)))
'''

MODEL_MLIR = '''\
func.func @main(%x: tensor<Bx16xf32>, %w: tensor<16x3xf32>) -> tensor<Bx3xf32> {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]}
       : (tensor<Bx16xf32>, tensor<16x3xf32>) -> tensor<Bx3xf32>
  %1 = tensor.add %0, %0 : tensor<Bx3xf32>
  %2 = tensor.exp %1 : tensor<Bx3xf32>
  func.return %2 : tensor<Bx3xf32>
}
'''

SCALARS_MLIR = '''\
func.func @main(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  func.return %0 : i32
}
'''

BAD_MLIR = """\
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tensor.exp %x : tensor<3xf32>
  %1 = func.call @missing(%0) : (tensor<3xf32>) -> tensor<3xf32>
  %2 = tensor.add %1, %0 : tensor<3xf32>
  func.return %2 : tensor<3xf32>
}
"""

CRASH_MLIR = MODEL_MLIR + """
{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(canonicalize,cse)",
      disable_threading: true,
      verify_each: true
    }
  }
#-}
"""

SWAP_PY = '''"""Swap the operands of subtractions, which is wrong."""

from mlc.dialects import tensor
from mlc.ir.changes import allowed
from mlc.ir.core import before
from mlc.ir.passes import Pass


def run(module):
    """x - y becomes y - x."""
    for op in list(module.inside(tensor.Sub)):
        if allowed("swap", op):
            with before(op):
                op.replace_by(tensor.Sub(op.rhs, op.lhs).result)


PASS = Pass(run, whole=False)
'''

WRONG_MLIR = """\
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tensor.sub %x, %y : tensor<2xf32>
  %1 = tensor.abs %0 : tensor<2xf32>
  %2 = tensor.sub %1, %x : tensor<2xf32>
  func.return %2 : tensor<2xf32>
}

{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(canonicalize,mine.swap)",
      disable_threading: true,
      verify_each: true
    },
    mlc_check: {
      entry: "main",
      exact: false,
      arg0: "2xf32 0x0000803F00000040",
      arg1: "2xf32 0x000040400000A040"
    }
  }
#-}
"""

SAMPLES = {"bad.mlir": BAD_MLIR, "crash.mlir": CRASH_MLIR,
           "model.py": MODEL_PY, "model.mlir": MODEL_MLIR, "scalars.mlir": SCALARS_MLIR,
           "wrong.mlir": WRONG_MLIR, "mine/swap.py": SWAP_PY,
           "fails.py": "print('one')\n1 / 0\n"}
