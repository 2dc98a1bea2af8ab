"""Reductions over ranks, as a left fold in the order of positions: the same bits whatever carries the messages.

Sums of f16 and narrower floats accumulate in f32 and are rounded once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from mlc.backends.transport.errors import RankError
from mlc.backends.transport.transport import Array
from mlc.dialects import arith

KINDS = ("add", "mean", "mul", "max", "min", "and", "or", "xor")
"""The generic names of `mlc.dialects.combining.CombiningKind` that collectives have, and the mean of floats."""


def check_kind(kind: str, dtype: np.dtype[Any]) -> None:
    """RankError if elements of this type cannot be combined so."""
    numbers, integers = {"add", "mean", "mul"}, {*KINDS} - {"mean"}
    allowed = {"b": {"and", "or", "xor", "max", "min"}, "i": integers, "u": integers, "f": {*numbers, "max", "min"},
               "c": numbers}[_family(dtype)]
    if kind not in allowed:
        raise RankError(f"{kind} does not combine elements of {dtype}", code="MLC0973",
                        hint=f"it has {', '.join(k for k in KINDS if k in allowed)}")


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The element type in which a reduction is computed."""
    narrow = _family(dtype) == "f" and dtype.itemsize < 4
    return np.dtype(np.float32) if narrow else dtype


def fold(pieces: Iterator[Array], kind: str, dtype: np.dtype[Any], out: Array | None = None) -> Array:
    """((x0 + x1) + x2) + ... of equally shaped arrays, which are asked for one by one; into `out`, if it is given.

    A mean is that of the sum, divided before it is rounded.
    """
    into, count = accumulator(dtype), 1
    left = next(pieces).astype(into, copy=False)
    result = out if out is not None and out.dtype == into else np.empty(left.shape, into)
    for piece in pieces:
        _COMBINE[kind, _family(into)](left, piece.astype(into, copy=False), result)
        left, count = result, count + 1
    if left is not result:
        result[...] = left
    if kind == "mean":
        np.divide(result, count, out=result, dtype=into)
    if out is None or result is out:
        return result.astype(dtype, copy=False)
    out[...] = result
    return out


def _family(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "biufc":
        return dtype.kind
    try:
        ml_dtypes.finfo(dtype)               # type: ignore[no-untyped-call]
    except ValueError:
        raise RankError(f"elements of {dtype} cannot be combined", code="MLC0973",
                        hint="convert them to a type of numbers first") from None
    return "f"


def _by_ufunc(ufunc: np.ufunc) -> Callable[[Array, Array, Array], None]:
    def combine(a: Array, b: Array, out: Array) -> None:
        ufunc(a, b, out=out)
    return combine


def _exact(f: Callable[[Any, Any], Any]) -> Callable[[Array, Array, Array], None]:
    """By the definition of IEEE 754-2019, which tells zeros apart."""
    def combine(a: Array, b: Array, out: Array) -> None:
        out[...] = f(a, b)
    return combine


_UFUNCS = {"add": np.add, "mean": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
           "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_COMBINE = {(kind, family): _by_ufunc(ufunc) for kind, ufunc in _UFUNCS.items() for family in "biufc"} | {
    ("max", "f"): _exact(arith.MaximumF.f), ("min", "f"): _exact(arith.MinimumF.f)}
