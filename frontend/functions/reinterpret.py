"""The bits of elements read as elements of another dtype, of any width."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.dtypes import as_dtype, as_ir
from mlc.frontend.functions.elementwise import bitwise_left_shift, bitwise_or, bitwise_right_shift
from mlc.frontend.functions.shape import flatten, stack, unflatten
from mlc.frontend.location import user_loc
from mlc.frontend.operands import cast, number, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import ScalarType, to_numpy


def _check(x: Tracer, to: ScalarType) -> None:
    """UserError if the elements cannot be read as those of a dtype, wherever they lie in memory."""
    old, new = x.type.dtype.itemsize, to.itemsize
    title = f"{x.dtype.name} as {as_dtype(to).name}"
    if to.is_bool and not x.type.dtype.is_bool:
        raise UserTypeError(f"{title}: the bits of an element need not be those of a bool", code="MLC0113",
                            hint="compare instead: x != 0")
    if old == new:
        return
    if not x.ndim:
        raise UserError(f"{title}, of another width: a tensor of 0 dimensions has no last dimension to change",
                        code="MLC0364", hint="x.unsqueeze(0).view(...)")
    last = x.shape[-1]
    if old < new and isinstance(last, int) and last % (new // old):
        raise UserError(f"{title}: the last dimension is {last}, and {new // old} elements make one", code="MLC0358",
                        hint="pad the last dimension, or cut it")


def _of_array(array: Any, dtype: DTypeLike) -> Any:
    """The view of a numpy array."""
    to = to_numpy(as_ir(dtype))
    old, new = array.itemsize, to.itemsize
    apart = array.size and array.shape[-1:] != (1,) and array.strides[-1:] != (old,)
    whole = [array.__array_interface__["data"][0], *(s for s, n in zip(array.strides[:-1], array.shape) if n > 1)]
    if old != new and (apart or (array.size and new > old and any(at % new for at in whole))):
        raise UserError(f"the elements of a tensor of shape {list(array.shape)} do not lie in memory in such an order "
                        f"that {as_dtype(dtype).name} could be a view of them", code="MLC0751", loc=user_loc(),
                        hint="copy them before: x.clone().view(...)")
    if array.shape[-1:] == (0,) and old != new:
        return array.reshape(-1).view(to).reshape(array.shape)             # which numpy refuses
    return array.view(to)


def _of_width(x: Tracer, to: ScalarType) -> Tracer:
    """The bits of integers, floats or bools as integers or floats of the same width."""
    if x.type.dtype.is_bool:
        x = cast(x, as_ir("uint8"))
    return x if x.type.dtype == to else emit(T.Bitcast, x, to)


def _resized(x: Tracer, to: ScalarType) -> Tracer:
    """The bits of integers, floats or bools as integers or floats of another width, the lowest ones first."""
    old, new = x.type.dtype.itemsize, to.itemsize
    unsigned, count = as_ir(f"uint{8 * max(old, new)}"), max(old, new) // min(old, new)
    parts, bits = _of_width(x, as_ir(f"uint{8 * old}")), 8 * min(old, new)
    if old > new:
        pieces = [bitwise_right_shift(parts, number(bits * i, unsigned)) for i in range(count)]
        return _of_width(cast(tracer(flatten(stack(pieces, -1), -2)), as_ir(f"uint{bits}")), to)
    groups = unflatten(cast(parts, unsigned), -1, (-1, count))
    found: Any = groups[..., 0]
    for i in range(1, count):
        found = bitwise_or(found, bitwise_left_shift(groups[..., i], number(bits * i, unsigned)))
    return _of_width(tracer(found), to)


@operation(view=_of_array, name="Tensor.view")
def view_as_dtype(input: Operand, dtype: DTypeLike) -> Tensor:
    """The bits of the elements as elements of another dtype."""
    x, to = tracer(input), as_ir(dtype)
    _check(x, to)
    if x.type.dtype.is_inexact:
        x = emit(T.StopGradient, x)
    if x.type.dtype == to:
        return x
    found = x if x.ndim else reshape(x, (1,))
    if x.type.dtype.is_complex:
        found = tracer(flatten(emit(T.ViewAsReal, found), -2))
    part = as_dtype(to).to_real().ir
    found = _of_width(found, part) if found.type.dtype.itemsize == part.itemsize else _resized(found, part)
    if to.is_complex:
        found = emit(T.ViewAsComplex, tracer(unflatten(found, -1, (-1, 2))))
    return found if x.ndim else reshape(found, ())
