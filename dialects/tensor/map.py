"""tensor, map: elementwise application of a scalar function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.tensor.base import TensorOp, broadcast, broadcasting, kind, pointwise_maps
from mlc.dialects.tensor.kernel import Yield
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir.core import Block, Region, Value, at_end
from mlc.ir.types import IntType, TensorType, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame


class Map(TensorOp, name="tensor.map", isolated=True):
    """result[i] = body(xs[i] ...), where body consists of arith and math operations on scalars

        %r = tensor.map %x : tensor<3xf32> {
        ^bb0(%arg0: f32):
          %0 = arith.mulf %arg0, %arg0 : f32
          tensor.yield %0 : f32
        }
    """

    xs: tuple[Value, ...]
    body: Region
    vmap = broadcasting
    cost = Cost.EXPENSIVE
    iteration = Iteration.POINTWISE
    moves_elements = False
    checked_operand = None
    operand_maps = pointwise_maps

    def infer(self) -> TensorType:
        types, block = self.tensors(), self.body.block
        if [a.type for a in block.args] != [t.dtype for t in types]:
            self.refuse("the body's arguments are not the elements of the operands", "MLC0119")
        end = block.last
        if not isinstance(end, Yield) or len(end.operands) != 1:
            self.refuse("the body does not end by yielding one value", "MLC0119")
        dtype = end.operands[0].type
        for t in (*(t.dtype for t in types), dtype):
            if kind(t) == "index" or (isinstance(t, IntType) and t.unsigned):
                self.refuse(f"arith does not support elements of type {t}", "MLC0113")
        return TensorType(broadcast(self, types), dtype)

    def interpret(self, frame: Frame) -> Any:
        """The body runs once, on whole arrays: the references of scalar operations are elementwise in numpy."""
        arrays = np.broadcast_arrays(*frame.all(self.xs)) if self.xs else []
        value, = frame.run(self.body, arrays)
        return np.broadcast_to(np.asarray(value, to_numpy(self.result.type.dtype)), frame.shape(self.result.type.shape))


def map_elements(xs: Sequence[Value], body: Callable[..., Value]) -> Value:
    """Build a tensor.map of `xs`; `body` builds its body from one scalar per operand."""
    block = Block([x.type.dtype for x in xs])
    with at_end(block):
        Yield((body(*block.args),))
    return Map(tuple(xs), Region(block)).result
