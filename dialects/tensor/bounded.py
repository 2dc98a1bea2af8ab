"""tensor, bounded: values of data-dependent sizes, padded to the upper bounds and unpadded to the true sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlc.dialects.tensor.slicing import Slice, pad
from mlc.ir.bounds import Bounds, most
from mlc.ir.core import Value
from mlc.ir.diag import IRError
from mlc.ir.sizes import Dim, symbols
from mlc.ir.types import TensorType, Type


def named(type: Type, bounds: Bounds) -> list[str]:
    """The bounded sizes that a type depends on, in order."""
    return list(dict.fromkeys(n for d in _shape(type) for n in sorted(symbols(d)) if n in bounds))


def to_bounds(x: Value, bounds: Bounds) -> Value:
    """x padded with zeros at the end, to the upper bound of each size."""
    return up_to(x, [_greatest(d, bounds) for d in x.type.shape])


def up_to(x: Value, shape: Sequence[Dim]) -> Value:
    """x padded with zeros at the end, to `shape`."""
    high = tuple(n - d for n, d in zip(shape, x.type.shape))
    return pad(x, (0,) * len(high), high, (0,) * len(high))


def first_of(x: Value, shape: Sequence[Dim]) -> Value:
    """The leading elements of x along each axis, of this shape: undoes to_bounds."""
    if x.type.shape == tuple(shape):
        return x
    return Slice(x, (0,) * len(shape), tuple(shape), (1,) * len(shape)).result


def _greatest(size: Dim, bounds: Bounds) -> Dim:
    bound = most(size, bounds)
    if bound is None:
        raise IRError(f"the data-dependent size {size} has no upper bound", code="MLC0161")
    return bound


def _shape(type: Type) -> Iterator[Dim]:
    return iter(type.shape if isinstance(type, TensorType) else ())
