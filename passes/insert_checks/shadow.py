"""Shadow memory: for each memref one of the same shape that marks which elements are initialised."""

from __future__ import annotations

from typing import Any

from mlc.dialects import amx, arith, memref, scf, vector
from mlc.ir.core import Op, Value, at_end, builder
from mlc.ir.types import MemRefType, VectorType, i8, i16, i32, i64
from mlc.passes.insert_checks.numbers import product, sizes, value

MARKS = {1: i8, 2: i16, 4: i32, 8: i64}
"""Type of the mark in a shadow, by the size of the element in bytes."""
WRITTEN, UNWRITTEN = 0, -1


def shadow_type(type: MemRefType) -> MemRefType:
    return MemRefType(type.shape, MARKS[type.dtype.itemsize], type.strides, type.offset, type.space)


def mark_type(type: Any) -> Any:
    """The marks of an element, or of a vector of them."""
    mark = MARKS[(type.dtype if isinstance(type, VectorType) else type).itemsize]
    return VectorType(type.shape, mark) if isinstance(type, VectorType) else mark


def like(op: Op, operands: list[Value]) -> Op:
    """The operation that defines a memref, repeated at the insertion point for its shadow."""
    made = type(op).make(operands, dict(op.attrs), [shadow_type(op.results[0].type)], segments=op.segments, loc=op.loc)
    assert builder.block is not None, "no insertion point"
    builder.block.insert(made, builder.before)
    return made


def allocate(memory: Value, mark: int) -> Value:
    """Allocate a contiguous shadow of a contiguous memref on the heap, with all elements set to `mark`."""
    type = shadow_type(memory.type)
    dynamic = tuple(value(n) for n, known in zip(sizes(memory), type.shape) if known is None)
    made = memref.Alloc(type, dynamic).result
    fill(made, mark)
    return made


def fill(shadow: Value, mark: int) -> None:
    """Set all elements of a contiguous shadow to `mark`."""
    count = product(sizes(shadow))
    row = memref.reinterpret(shadow, 0, [count], [1])
    loop = scf.loop(value(0), value(count), value(1), (), "mark")
    with at_end(loop.block):
        memref.Store(arith.constant(mark, shadow.type.dtype), row, (loop.counter,))
        scf.Yield(())


def mark_tile(op: amx.TileStore, marks: Value) -> None:
    """Mark the elements of the rows of a tile as initialised."""
    *leading, row, column = op.indices
    rows, columns = op.value.type.shape
    written = arith.constant(WRITTEN, VectorType((columns,), marks.type.dtype))
    for i in range(rows):
        vector.Store(written, marks, (*leading, arith.AddI(row, value(i)).result, column))
