"""vector, memory: vector loads and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.memref import Array, check_bounds, check_indices, strides_of
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import (
    IndexType,
    IntType,
    MemRefType,
    Type,
    VectorType,
    i1,
    like,
)

if TYPE_CHECKING:
    from mlc.ir.interp import Frame


# -- memory -----------------------------------------------------------------------------------------------------------
class Access(Op):
    """A memory access along the last dimension, one lane per element."""

    pure = False
    if TYPE_CHECKING:                                # each class declares them, in its own order
        @property
        def base(self) -> Value: ...
        @property
        def indices(self) -> tuple[Value, ...]: ...

    def check_access(self, type: Type) -> MemRefType:
        """The type of `base`; IRError unless a vector of `type` can be loaded from or stored to it."""
        memory = check_indices(self, self.base, self.indices)
        if not isinstance(type, VectorType) or type.rank != 1 or type.dtype != memory.dtype:
            self.fail(f"moves vectors of one dimension over {memory.dtype}, not {type}", code="MLC0164")
        if not memory.rank or strides_of(memory)[-1] != 1:
            self.fail(f"the last dimension of {memory} is not contiguous", code="MLC0164")
        return memory

    def lanes(self, frame: Frame, offsets: Array, mask: Array | None = None) -> tuple[Array, Array]:
        """The accessed row of memory, and the position in it of each active lane."""
        array, indices = frame[self.base], frame.all(self.indices)
        if mask is not None and not mask.any():          # no lane is active: the indices may be out of bounds
            return np.zeros(0, array.dtype), np.zeros(0, np.int64)
        row = array[check_bounds(self, array, indices[:-1])]
        at = offsets.astype(np.int64) + indices[-1]
        at = at if mask is None else at[mask]
        if at.size and not 0 <= at.min() <= at.max() < row.size:
            self.fail(f"elements {at.min()}..{at.max()} of a dimension of size {row.size}", code="MLC0163")
        return row, at


    def piece(self, frame: Frame, count: int) -> Array:
        """The accessed elements, if they are adjacent."""
        array, indices = frame[self.base], frame.all(self.indices)
        row, at = array[check_bounds(self, array, indices[:-1])], int(indices[-1])
        if not 0 <= at <= row.size - count:
            self.fail(f"elements {at}..{at + count - 1} of a dimension of size {row.size}", code="MLC0163")
        out: Array = row[at: at + count]
        return out


def _check_lanes(op: Op, type: VectorType, **values: Value) -> None:
    """Check that `mask`, `pass_thru` and others fit a vector of `type`."""
    for name, value in values.items():
        if value.type != (like(type, i1) if name == "mask" else type):
            op.fail(f"{name} is {value.type}, which does not fit {type}", code="MLC0164")


class Load(Access, name="vector.load", reads=True):
    """result[l] = base[indices + l], in the last dimension"""

    base: Value
    indices: tuple[Value, ...]
    type: ResultType
    alignment: int | None = None
    format = "$base `[` $indices `]` attr-dict `:` type($base) `,` type(result)"

    def infer(self) -> Type:
        self.check_access(self.results[0].type)
        return self.results[0].type  # type: ignore[no-any-return]

    def interpret(self, frame: Frame) -> Any:
        return self.piece(frame, self.result.type.shape[0]).copy()


class Store(Access, name="vector.store"):
    """base[indices + l] = value[l], in the last dimension"""

    value: Value
    base: Value
    indices: tuple[Value, ...]
    alignment: int | None = None
    format = "$value `,` $base `[` $indices `]` attr-dict `:` type($base) `,` type($value)"

    def infer(self) -> tuple[Type, ...]:
        self.check_access(self.value.type)
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        self.piece(frame, self.value.type.shape[0])[:] = frame[self.value]
        return []


class MaskedLoad(Access, name="vector.maskedload", reads=True):
    """result[l] = mask[l] ? base[indices + l] : pass_thru[l]"""

    base: Value
    indices: tuple[Value, ...]
    mask: Value
    pass_thru: Value
    format = ("$base `[` $indices `]` `,` $mask `,` $pass_thru attr-dict `:` type($base) `,` type($mask) `,` "
              "type($pass_thru) `into` type(result)")

    def infer(self) -> Type:
        self.check_access(self.pass_thru.type)
        _check_lanes(self, self.pass_thru.type, mask=self.mask)
        return self.pass_thru.type  # type: ignore[no-any-return]

    def interpret(self, frame: Frame) -> Any:
        mask, out = frame[self.mask], np.array(frame[self.pass_thru])
        row, at = self.lanes(frame, np.arange(mask.size), mask)
        out[mask] = row[at]
        return out


class MaskedStore(Access, name="vector.maskedstore"):
    """where mask[l]: base[indices + l] = value[l]"""

    base: Value
    indices: tuple[Value, ...]
    mask: Value
    value: Value
    format = ("$base `[` $indices `]` `,` $mask `,` $value attr-dict `:` type($base) `,` type($mask) `,` "
              "type($value)")

    def infer(self) -> tuple[Type, ...]:
        self.check_access(self.value.type)
        _check_lanes(self, self.value.type, mask=self.mask)
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        mask = frame[self.mask]
        row, at = self.lanes(frame, np.arange(mask.size), mask)
        row[at] = frame[self.value][mask]
        return []


class Gather(Access, name="vector.gather", reads=True):
    """result[l] = mask[l] ? base[indices + lanes_at[l]] : pass_thru[l], in the last dimension"""

    base: Value
    indices: tuple[Value, ...]
    lanes_at: Value
    mask: Value
    pass_thru: Value
    format = ("$base `[` $indices `]` `[` $lanes_at `]` `,` $mask `,` $pass_thru attr-dict `:` type($base) `,` "
              "type($lanes_at) `,` type($mask) `,` type($pass_thru) `into` type(result)")

    def infer(self) -> Type:
        type = self.pass_thru.type
        self.check_access(type)
        _check_lanes(self, type, mask=self.mask)
        at = self.lanes_at.type
        if not isinstance(at, VectorType) or at.shape != type.shape or not isinstance(at.dtype, IntType | IndexType):
            self.fail(f"positions {at} do not fit {type}", code="MLC0164")
        return type  # type: ignore[no-any-return]

    def interpret(self, frame: Frame) -> Any:
        mask, out = frame[self.mask], np.array(frame[self.pass_thru])
        row, at = self.lanes(frame, frame[self.lanes_at], mask)
        out[mask] = row[at]
        return out
