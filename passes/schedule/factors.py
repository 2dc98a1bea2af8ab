"""The access properties of the factors of a contraction, on which its schedule depends."""

from __future__ import annotations

from dataclasses import dataclass

from mlc.dialects import loop
from mlc.ir.affine import step_along
from mlc.ir.core import Value
from mlc.passes.analysis.accesses import contiguity, position


@dataclass(frozen=True)
class Factor:
    """Access properties of a factor of a contraction."""

    plain: bool                          # from memory, as it is
    along: frozenset[int]                # the dimensions along which it is contiguous
    panels: int | None = None            # the columns that are in panels, if they are (tensor.unpack)


def factor(value: Value) -> Factor:
    """Access properties of the factor `value`."""
    seen: set[Value] = set()
    work = [value]
    while work:
        if (v := work.pop()) not in seen:
            seen.add(v)
            work += v.op.operands if v.op is not None else ()
    loads = [v.op for v in seen if isinstance(v.op, loop.Load)]
    along = frozenset(d for d in value.type.dims if loads and all(is_contiguous(op, d) for op in loads
                                                                  if d in op.result.type.dims))
    load = value.op
    if not isinstance(load, loop.Load) or load.mask is not None or load.tiles:
        return Factor(False, along)
    columns = sorted(d for d in along if d < load.enclosing(loop.Kernel).parallel)
    return Factor(True, along, next((d for d in columns if step_along(position(load), d) is None), None))


def is_contiguous(load: loop.Load, d: int) -> bool:
    """Whether an unmasked load is contiguous along a dimension."""
    return load.mask is None and contiguity(load, d) == 1
