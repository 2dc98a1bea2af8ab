"""Operations that move elements, and constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.dtypes import of_ir
from mlc.frontend.stablehlo.elementwise import bitcast_any, full
from mlc.frontend.stablehlo.interpreter import MAX_CONSTANT, constant
from mlc.frontend.stablehlo.table import row
from mlc.frontend.tensor import OPERATIONS as O

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step


@row("stablehlo.constant", "chlo.constant")
def literal(step: Step) -> Any:
    value = step.op.need("value")
    if not isinstance(value, np.ndarray):
        step.op.wrong("its value is no dense array")
    if value.nbytes > MAX_CONSTANT and not any(value.strides):   # all the same: no memory is taken for them
        return O["broadcast_to"](constant(value.reshape(-1)[:1].reshape(())), value.shape)
    return constant(value)


@row("stablehlo.iota")
def iota(step: Step) -> Any:
    type = step.op.array
    return counted(step, step.op.need("iota_dimension"), list(type.shape), of_ir(type.dtype))


def counted(step: Step, axis: Any, shape: Sequence[Any], dtype: Any) -> Any:
    """The index along an axis, as elements of a dtype."""
    if not isinstance(axis, int) or not 0 <= axis < len(shape):
        step.op.wrong(f"there is no dimension {axis} of {len(shape)}")
    found = O["arange"](shape[axis])
    found = O["cast"](O["ne"](found, 0), "bool") if dtype.name == "bool" else O["cast"](found, dtype)
    middle = [1] * len(shape)
    middle[axis] = shape[axis]
    return O["broadcast_to"](O["reshape"](found, middle), tuple(shape))


@row("stablehlo.broadcast_in_dim")
def broadcast_in_dim(step: Step, x: Any) -> Any:
    return broadcast(step, x, list(step.op.array.shape))


def broadcast(step: Step, x: Any, shape: Sequence[Any]) -> Any:
    """A tensor whose axes are those of `broadcast_dimensions` in the result."""
    axes = step.op.ints("broadcast_dimensions", [])
    if len(axes) != len(x.shape) or len(set(axes)) != len(axes) or any(not 0 <= a < len(shape) for a in axes):
        step.op.wrong(f"the dimensions {axes} are none of {len(shape)}, for an operand of {len(x.shape)}")
    order = sorted(range(len(axes)), key=lambda i: axes[i])
    x = O["permute"](x, order) if order != list(range(len(axes))) else x
    middle: list[Any] = [1] * len(shape)
    for axis, n in zip(sorted(axes), x.shape):
        middle[axis] = n
    return O["broadcast_to"](O["reshape"](x, middle), tuple(shape))


@row("stablehlo.reshape")
def reshape(step: Step, x: Any) -> Any:
    return O["reshape"](x, tuple(step.op.array.shape))


@row("stablehlo.transpose")
def transpose(step: Step, x: Any) -> Any:
    return O["permute"](x, step.op.ints("permutation"))


@row("stablehlo.reverse")
def reverse(step: Step, x: Any) -> Any:
    axes = step.op.ints("dimensions")
    return O["flip"](x, axes) if axes else x


@row("stablehlo.concatenate")
def concatenate(step: Step, *xs: Any) -> Any:
    return O["cat"](xs, int(step.op.get("dimension", 0)))


@row("stablehlo.slice")
def sliced(step: Step, x: Any) -> Any:
    starts, limits = step.op.ints("start_indices"), step.op.ints("limit_indices")
    strides = step.op.ints("strides", [1] * len(starts))
    if not len(starts) == len(limits) == len(strides) == len(x.shape):
        step.op.wrong(f"it has not one range for each of {len(x.shape)} dimensions")
    for a, b, s, n in zip(starts, limits, strides, x.shape):
        if not 0 <= a <= b or s < 1 or (isinstance(n, int) and b > n):
            step.op.wrong(f"{a}:{b}:{s} is no range of {n} elements")
    return x[tuple(slice(*r) for r in zip(starts, limits, strides))] if starts else x


@row("stablehlo.pad")
def pad(step: Step, x: Any, value: Any) -> Any:
    low, high = step.op.ints("edge_padding_low"), step.op.ints("edge_padding_high")
    return padded(step, x, value, low, high, step.op.ints("interior_padding"))


def padded(step: Step, x: Any, value: Any, low: Sequence[Any], high: Sequence[Any], interior: Sequence[Any]) -> Any:
    """Elements between, before and behind those of a tensor; negative numbers cut elements off."""
    if not len(low) == len(high) == len(interior) == len(x.shape) or any(isinstance(n, int) and n < 0
                                                                         for n in interior):
        step.op.wrong(f"it has not one padding for each of {len(x.shape)} dimensions")
    for axis, gap in enumerate(interior):
        x = spread(x, value, axis, gap)
    ends: list[Any] = []
    for a, b in reversed(list(zip(low, high))):
        ends += [a if a is None else _positive(a), _positive(b)]
    if any(not isinstance(n, int) or n for n in ends):
        x = O["pad"](x, ends, value=value) if all(isinstance(n, int) for n in ends) else \
            _joined(x, value, [_positive(n) for n in low], [_positive(n) for n in high])
    cuts = tuple(slice(_cut(a), n - _cut(b)) for a, b, n in zip(low, high, x.shape))
    return x[cuts] if any(_cut(n) for n in (*low, *high)) else x


def _positive(n: Any) -> Any:
    return max(n, 0) if isinstance(n, int) else n


def _cut(n: Any) -> int:
    return max(-n, 0) if isinstance(n, int) else 0


def _joined(x: Any, value: Any, low: Sequence[Any], high: Sequence[Any]) -> Any:
    """Padding by sizes that are symbols."""
    for axis, (a, b) in enumerate(zip(low, high)):
        parts = [O["broadcast_to"](value, (*x.shape[:axis], n, *x.shape[axis + 1:])) for n in (a, b)]
        x = O["cat"]([parts[0], x, parts[1]], axis)
    return x


def spread(x: Any, value: Any, axis: int, gap: Any) -> Any:
    """A tensor with `gap` elements between neighbours along an axis."""
    n = x.shape[axis]
    if (isinstance(gap, int) and gap == 0) or (isinstance(n, int) and n <= 1):
        return x
    column = O["unsqueeze"](x, axis + 1)
    shape = list(column.shape)
    shape[axis + 1] = gap
    found = O["cat"]([column, O["broadcast_to"](value, tuple(shape))], axis + 1)
    length = n * (gap + 1)
    found = O["reshape"](found, (*x.shape[:axis], length, *x.shape[axis + 1:]))
    return found[(slice(None),) * axis + (slice(0, length - gap),)]


@row("stablehlo.bitcast_convert")
def bitcast_convert(step: Step, x: Any) -> Any:
    """The same bits as elements of another type; of another width, the last dimension is of the parts."""
    wanted = of_ir(step.op.array.dtype)
    if "bool" in (wanted.name, x.dtype.name) and wanted is not x.dtype:
        step.op.refuse("bools have no bits of their own")
    if wanted.is_complex or x.dtype.is_complex:
        if wanted is x.dtype:
            return x
        step.op.refuse("the bits of complex numbers")
    return bitcast_any(x, wanted)


@row("stablehlo.tuple")
def make_tuple(step: Step, *xs: Any) -> Any:
    return tuple(xs)


@row("stablehlo.get_tuple_element")
def tuple_element(step: Step, x: Any) -> Any:
    index = step.op.need("index")
    if not isinstance(index, int) or not 0 <= index < len(x):
        step.op.wrong(f"there is no element {index} of {len(x)}")
    return x[index]


@row("stablehlo.dynamic_slice")
def dynamic_slice(step: Step, x: Any, *starts: Any) -> Any:
    return O["dynamic_slice"](x, [_start(s) for s in starts], step.op.ints("slice_sizes")) if starts else x


@row("stablehlo.dynamic_update_slice")
def dynamic_update_slice(step: Step, x: Any, update: Any, *starts: Any) -> Any:
    return O["dynamic_update_slice"](x, update, [_start(s) for s in starts]) if starts else update


def _start(x: Any) -> Any:
    """A start as an int64; that of an unsigned integer which is larger is the largest."""
    if x.dtype.name == "uint64":
        largest = full(2 ** 63 - 1, x)
        x = O["minimum"](x, largest)
    return O["cast"](x, "int64")
