"""tensor, kernel regions: which operations become one kernel, and what it reads and writes."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.tensor.traits import HostOp
from mlc.ir.core import Op, Region, ResultType, Value
from mlc.ir.types import MemRefType, TensorType, Type, i1, i8

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.types import ScalarType


def stored(dtype: ScalarType) -> ScalarType:
    """The element of a buffer of tensors of `dtype`: a bool is a byte, and integers have no sign of their own."""
    from mlc.ir.types import IntType
    return i8 if dtype == i1 else IntType(dtype.width) if isinstance(dtype, IntType) else dtype


@lru_cache(1 << 12)
def buffer_type(type: TensorType) -> MemRefType:
    """The row-major buffer of a tensor."""
    return MemRefType(tuple(d if isinstance(d, int) else None for d in type.shape), stored(type.dtype))


class Yield(Op, name="tensor.yield", terminator=True, pure=False):
    """Hand values to the enclosing tensor.kernel or tensor.map."""

    values: tuple[Value, ...]
    format = "$values attr-dict `:` type($values)"


class Kernel(HostOp, name="tensor.kernel", isolated=True, pure=False):
    """results = body(ins); with buffers: outs[...] = body(ins)

    Before bufferization `ins` are tensors, there are no `outs`, and the results are tensors. After it, both are
    memrefs and there are no results. The body, on tensors, is the same: all of it becomes one kernel.
    """

    ins: tuple[Value, ...]
    outs: tuple[Value, ...]
    sizes: tuple[Value, ...]                    # after bufferization: the numbers of `symbols`
    errors: Value | None                        # after bufferization: the error record, where an op can fail
    body: Region
    types: tuple[ResultType, ...]
    symbols: tuple[str, ...] = ()
    label: str = ""
    unfused: tuple[str, ...] = ()               # why a producer or consumer is in another kernel

    @property
    def is_bufferized(self) -> bool:
        return not self.results

    def infer(self) -> tuple[Type, ...]:
        block = self.body.block
        yielded = tuple(v.type for v in block.terminator.operands)
        args = [a.type for a in block.args]
        if self.outs:
            pairs = [*zip(self.ins, args), *zip(self.outs, yielded)]
            if len(self.ins) != len(args) or len(self.outs) != len(yielded) or any(
                    v.type != buffer_type(t) for v, t in pairs):
                self.fail("the buffers are not those of the body's tensors", code="MLC0153")
            return ()
        if [v.type for v in self.ins] != args:
            self.fail("the body's arguments are not the operands", code="MLC0153")
        return yielded

    def interpret(self, frame: Frame) -> list[Any]:
        args = frame.all(self.ins)
        if not self.outs:
            return frame.run(self.body, args)
        frame.sizes.update(zip(self.symbols, frame.all(self.sizes)))
        if self.errors is not None:
            frame.state[self] = frame[self.errors]
        # copies: a result may share its buffer with an operand
        tensors = [from_buffer(x, a.type).copy() for x, a in zip(args, self.body.block.args)]
        results = frame.run(self.body, tensors)
        for out, value in zip(frame.all(self.outs), results):
            out[...] = to_buffer(value, out.dtype)
        return []


def from_buffer(buffer: np.ndarray[Any, Any], type: TensorType) -> np.ndarray[Any, Any]:
    """A buffer's elements read as those of a tensor type."""
    from mlc.ir.types import to_numpy
    return buffer != 0 if type.dtype == i1 else buffer.view(to_numpy(type.dtype))


def to_buffer(value: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A tensor's elements as they lie in a buffer of `dtype`."""
    return value.astype(dtype) if value.dtype == bool else value.view(dtype)
