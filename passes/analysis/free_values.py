"""The values that an operation takes from around it."""

from __future__ import annotations

from mlc.ir.core import Op, Value


def free_values(op: Op) -> list[Value]:
    """The values that an operation and all inside it use and do not define, in order of use."""
    if not op.regions:
        return list(dict.fromkeys(op.operands))
    inside: set[Value] = {r for o in op.walk() for r in o.results}
    inside |= {a for o in op.walk() for region in o.regions for block in region.blocks for a in block.args}
    return [v for v in dict.fromkeys(v for o in op.walk() for v in o.operands) if v not in inside]
