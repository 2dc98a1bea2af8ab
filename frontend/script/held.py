"""Whether an object holds tensors that are being recorded, which no other call may see."""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping
from typing import Any

from mlc.frontend import tree
from mlc.frontend.tracer import Tracer
from mlc.ir.sizes import Size


def holds_tracers(x: Any) -> bool:
    """Whether tensors or sizes that are being recorded are in an object or collection."""
    seen, work = dict[int, Any](), [x]
    while work:
        x = work.pop()
        if isinstance(x, Tracer | Size):
            return True
        if id(x) in seen or isinstance(x, tree.Leaf | type | types.ModuleType | types.FunctionType | str | bytes
                                       | bytearray):
            continue
        seen[id(x)] = x
        if isinstance(x, Mapping):
            work += [*x.keys(), *x.values()]
        elif isinstance(x, Collection):
            work += x
        work += getattr(x, "__dict__", {}).values()
    return False
