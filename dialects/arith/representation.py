"""arith, representation: the representation of values in numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.ir.types import (
    IntType,
    ShapedType,
    Type,
    bf16,
    element,
    i1,
    index,
    to_numpy,
)

if TYPE_CHECKING:
    pass


UNSIGNED = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def store(value: Any, type: Type) -> Any:
    """`value` in the interpreter's representation of `type`: Python int, numpy scalar, or array; rounded once."""
    dtype = element(type)
    if dtype == bf16:
        value = _odd_float32(value)
    if isinstance(type, ShapedType):
        return np.asarray(value).astype(to_numpy(dtype), copy=False)
    if isinstance(value, int) and isinstance(dtype, IntType) and dtype != i1:
        lowest = 0 if dtype.unsigned else -1 << dtype.width - 1
        value = (value - lowest) % (1 << dtype.width) + lowest
    if isinstance(value, np.ndarray) and value.ndim:         # a scalar operation on many elements at once
        return value.astype(to_numpy(dtype), copy=False)
    return int(value) if dtype == index else to_numpy(dtype).type(value)


def _odd_float32(value: Any) -> Any:
    """A wider number as a float32 that rounds to the nearest bfloat16, as ml_dtypes converts by way of float32.

    Double rounding is exact if the first step rounds to odd: if inexact, to the neighbour whose last bit is 1.
    """
    wide = np.asarray(value)
    if wide.dtype.kind in "iu":
        wide = wide_to_odd(wide)
    if wide.dtype != np.float64:
        return value
    narrow = np.asarray(wide.astype(np.float32))
    bits = narrow.view(np.int32)
    inexact = (narrow != wide) & (bits & 1 == 0) & ~np.isnan(wide)
    away = np.abs(narrow.astype(np.float64)) > np.abs(wide)
    return np.where(inexact, bits + np.where(away, -1, 1).astype(np.int32), bits).view(np.float32)


def wide_to_odd(x: Any) -> Any:
    """A 64-bit integer as a float64, exact below 2^53 and rounded to odd above: bit 11 is sticky for the lower bits."""
    collected = (x >> 11 << 11) | ((x & 2047 != 0).astype(x.dtype) << 11) if x.dtype.itemsize == 8 else x
    exact = (x < 1 << 53) & (x > -(1 << 53)) if x.dtype.kind == "i" else x < 1 << 53
    return np.where(exact, x, collected).astype(np.float64)


def unsigned(x: Any, type: Type) -> Any:
    """The bits reinterpreted as an unsigned integer."""
    return np.asarray(x, to_numpy(element(type))).view(UNSIGNED[element(type).width])
