"""The access properties of the factors of a contraction, on which its schedule depends."""

from __future__ import annotations

from dataclasses import dataclass

from mlc.dialects import arith, loop
from mlc.ir.affine import step_along
from mlc.ir.core import Value
from mlc.ir.types import bf16, f32, i8, i32
from mlc.passes.analysis.accesses import contiguity, position, stride


@dataclass(frozen=True)
class Factor:
    """Access properties of a factor of a contraction."""

    plain: bool                          # from memory, as it is
    along: frozenset[int]                # the dimensions along which it is contiguous
    panels: int | None = None            # the columns that are in panels, if they are (tensor.unpack)


def factor(value: Value) -> Factor:
    """Access properties of the factor `value`."""
    loads = loads_of(value)
    along = frozenset(d for d in value.type.dims if loads and all(is_contiguous(op, d) for op in loads
                                                                  if d in op.result.type.dims))
    narrow = extended(value)
    load = value.op if narrow is None else narrow.op
    if not isinstance(load, loop.Load) or load.mask is not None or load.tiles:
        return Factor(False, along)
    columns = (d for d in range(load.enclosing(loop.Kernel).parallel) if stride(load, d) in (1, terms_of_word(load)))
    return Factor(narrow is None, along, next((d for d in columns if step_along(position(load), d) is None), None))


def terms_of_word(load: loop.Load) -> int:
    """How many elements that a load reads share a word of 32 bits, or 1."""
    return max(1, i32.width // int(load.result.type.dtype.width))


def loads_of(factor: Value) -> list[loop.Load]:
    """The loads that a factor is computed from."""
    seen: set[Value] = set()
    work = [factor]
    while work:
        if (v := work.pop()) not in seen:
            seen.add(v)
            work += v.op.operands if v.op is not None else ()
    return [v.op for v in seen if isinstance(v.op, loop.Load)]


def extended(factor: Value) -> Value | None:
    """The tile of bf16, or of bytes, that a factor is, extended to f32, or to i32; None if it is anything else."""
    return factor.op.operands[0] if factor.op is not None and extension_of(factor) is not None else None


def extension_of(factor: Value) -> arith.ExtF | arith.ExtSI | arith.ExtUI | None:
    """How the elements of a factor are extended from bf16 to f32, or from bytes to i32, if that is all it does."""
    op = factor.op
    if not isinstance(op, loop.Map) or len(op.operands) != 1:
        return None
    first, *rest = op.body.block.ops
    if len(rest) != 1 or not isinstance(first, arith.ExtF | arith.ExtSI | arith.ExtUI):
        return None
    return first if (first.operands[0].type, first.result.type) in ((bf16, f32), (i8, i32)) else None


def is_contiguous(load: loop.Load, d: int) -> bool:
    """Whether an unmasked load is contiguous along a dimension."""
    return load.mask is None and contiguity(load, d) == 1
