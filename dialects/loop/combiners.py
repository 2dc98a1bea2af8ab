"""How reductions combine two elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlc.dialects import arith

COMBINERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "max": arith._maximum, "min": arith._minimum,
    "or": lambda a, b: a | b, "and": lambda a, b: a & b,
    "maxu": lambda a, b: np.maximum(_unsigned(a), _unsigned(b)).view(a.dtype),
    "minu": lambda a, b: np.minimum(_unsigned(a), _unsigned(b)).view(a.dtype),
}
"""By kind; `u` reads integers as unsigned."""


def _unsigned(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a if a.dtype == bool else a.view(f"u{a.dtype.itemsize}")
