"""The operations that combine two elements in a reduction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlc.dialects import arith
from mlc.ir.core import Value
from mlc.ir.types import FloatType, element


def _combiner(floats: Any, integers: Any) -> Callable[[Value, Value], Value]:
    return lambda a, b: (floats if isinstance(element(a.type), FloatType) else integers)(a, b).result


COMBINERS: dict[str, Callable[[Value, Value], Value]] = {
    "add": _combiner(arith.AddF, arith.AddI), "mul": _combiner(arith.MulF, arith.MulI),
    "max": _combiner(arith.MaximumF, arith.MaxSI), "min": _combiner(arith.MinimumF, arith.MinSI),
    "maxu": _combiner(arith.MaxUI, arith.MaxUI), "minu": _combiner(arith.MinUI, arith.MinUI),
    "or": _combiner(arith.OrI, arith.OrI), "and": _combiner(arith.AndI, arith.AndI),
}
"""By kind, for elements or vectors of them, floats or integers."""
