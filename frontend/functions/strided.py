"""Views and tensors by strides: the distances in memory between neighbours along each dimension, in elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.arguments import coded
from mlc.frontend.axes import plain_int
from mlc.frontend.dtypes import float32
from mlc.frontend.functions.create import creation, empty
from mlc.frontend.functions.scatter import scatter
from mlc.frontend.functions.shape import permute
from mlc.frontend.in_place_methods import check_alone
from mlc.frontend.location import user_loc
from mlc.frontend.methods import listed
from mlc.frontend.operands import broadcast_to, cast, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import OPERATIONS, DTypeLike, Operand, Tensor, wrap
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.frontend.views import ADDRESSING
from mlc.ir import sizes
from mlc.ir.bounds import MAX_ELEMENTS
from mlc.ir.diag import UserError, UserMemoryError


def _numbers(values: Sequence[Any], what: str) -> tuple[int, ...]:
    found = tuple(plain_int(v, what) for v in values)
    if any(n < 0 for n in found):
        raise UserError(f"{what} = {found}, of which none may be negative", code="MLC0358")
    return found


def _layout(size: Sequence[Any], stride: Sequence[Any],
            storage_offset: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    shape, strides = _numbers(size, "size"), _numbers(stride, "stride")
    if len(shape) != len(strides):
        raise UserError(f"{len(strides)} strides for {len(shape)} dimensions", code="MLC0357")
    return shape, strides, 0 if storage_offset is None else _numbers([storage_offset], "storage_offset")[0]


def _extent(shape: Sequence[int], strides: Sequence[int], offset: int) -> int:
    """Number of elements of memory up to the last one that is used."""
    return offset + sum((n - 1) * s for n, s in zip(shape, strides)) + 1 if all(shape) else 0


def _check_extent(shape: Sequence[int], strides: Sequence[int], offset: int, count: Any) -> None:
    needed = _extent(shape, strides, offset)
    if not isinstance(count, int) or needed > count:
        raise UserError(f"size {list(shape)}, stride {list(strides)} and offset {offset} reach over {needed} elements, "
                        f"and the tensor has {count}", code="MLC0770", symbols=sizes.symbols(count))


def _strided(array: Any, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None) -> Any:
    """The view of a numpy array."""
    if not array.flags.c_contiguous:
        raise UserError("the elements of the tensor do not lie in memory in row-major order, which is the order that "
                        "strides are given for", code="MLC0771", loc=user_loc(), hint="x.contiguous().as_strided(...)")
    shape, strides, offset = _layout(size, stride, storage_offset)
    flat = array.reshape(-1)[offset:] if all(shape) else array.reshape(-1)[:0]
    return np.lib.stride_tricks.as_strided(flat, shape, [s * array.itemsize for s in strides])


def _positions(shape: Sequence[int], strides: Sequence[int], offset: int) -> Tracer:
    """Where the elements of the view lie in memory."""
    steps = [np.arange(n).reshape(-1, *[1] * (len(shape) - a - 1)) * s for a, (n, s) in enumerate(zip(shape, strides))]
    found = np.broadcast_to(np.asarray(sum(steps, np.asarray(offset)), np.int64), shape)
    return emit(T.Constant, np.ascontiguousarray(found).reshape(-1))  # type: ignore[no-any-return]


@operation(view=_strided, name="as_strided")
def _as_strided(input: Operand, size: Sequence[int], stride: Sequence[int], start: int | None) -> Tensor:
    x = tracer(input)
    shape, strides, offset = _layout(size, stride, start)
    count = sizes.product(x.shape)
    _check_extent(shape, strides, offset, count)
    return reshape(emit(T.Take, reshape(x, [count]), _positions(shape, strides, offset), 0), shape)


def _within(input: Operand, storage_offset: Any) -> int | None:
    """A position in the memory that a tensor shares, counted from the first element of the tensor."""
    if storage_offset is None:
        return None
    start, = _numbers([storage_offset], "storage_offset")
    if isinstance(input, Tracer):
        if isinstance(input.value.op, ADDRESSING):
            raise UserError("where a view begins in memory is not known in a recorded function", code="MLC0771",
                            loc=user_loc(), hint="call as_strided of the whole tensor, or without storage_offset")
    elif isinstance(input, Tensor):
        start -= input.storage_offset()
    if start < 0:
        raise UserError(f"storage_offset = {storage_offset} lies before the first element of the tensor, which is a "
                        f"view of memory from {storage_offset - start} on", code="MLC0770", loc=user_loc(),
                        hint="call as_strided of the whole tensor")
    return start


@coded
def as_strided(input: Operand, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """The view of the memory of a tensor with a shape and strides of its own.

    It stays within the elements of the tensor, which have to lie in memory in row-major order. Elements may overlap; a
    view with such elements cannot be written to.

    Args:
        input: Tensor.
        size: Shape of the view.
        stride: Distance between neighbours along each dimension, in elements.
        storage_offset: Position of the first element in the memory that `input` is, or is a view of, as
            `Tensor.storage_offset` gives it; by default that of `input`. A compiled function counts from the first
            element of its argument.

    Returns:
        Tensor of shape `size` and the dtype of `input`, which shares its memory.

    Raises:
        UserError: a number is negative (MLC0358), there are not as many strides as sizes (MLC0357), the view reaches
            beyond the tensor (MLC0770), or elements are not in row-major order, or of a view in a recorded function
            (MLC0771).

    Example:
        >>> mlc.as_strided(mlc.arange(5), (3, 3), (1, 1))
        tensor([[0, 1, 2],
                [1, 2, 3],
                [2, 3, 4]], dtype=mlc.int64)
    """
    return _as_strided(input, size, stride, _within(input, storage_offset))


OPERATIONS["as_strided"] = as_strided


@operation(name="as_strided_scatter")
def _as_strided_scatter(input: Operand, src: Operand, size: Sequence[int], stride: Sequence[int],
                        start: int | None) -> Tensor:
    x = tracer(input)
    shape, strides, offset = _layout(size, stride, start)
    count = sizes.product(x.shape)
    _check_extent(shape, strides, offset, count)
    new = reshape(broadcast_to(cast(tracer(src), x.type.dtype), shape), [sizes.product(shape)])
    return reshape(tracer(scatter(reshape(x, [count]), 0, _positions(shape, strides, offset), new)), x.shape)


@coded
def as_strided_scatter(input: Operand, src: Operand, size: Sequence[int], stride: Sequence[int],
                       storage_offset: int | None = None) -> Tensor:
    """A copy of the tensor with other elements in place of those of a view by strides.

    Args:
        input: Tensor.
        src: Tensor of shape `size`.
        size: Shape of the view, as of `as_strided`.
        stride: Distance between neighbours along each dimension, in elements.
        storage_offset: Position of the first element, as of `as_strided`.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: a number is negative (MLC0358), there are not as many strides as sizes (MLC0357), the view reaches
            beyond the tensor (MLC0770), the shapes do not broadcast (MLC0111), or there is an offset in a view in a
            recorded function (MLC0771).

    Example:
        >>> mlc.as_strided_scatter(mlc.zeros(4), mlc.ones(2), (2,), (2,))
        tensor([1., 0., 1., 0.], dtype=mlc.float32)
    """
    return _as_strided_scatter(input, src, size, stride, _within(input, storage_offset))


OPERATIONS["as_strided_scatter"] = as_strided_scatter


@creation
def empty_strided(size: Sequence[int], stride: Sequence[int], *, dtype: DTypeLike = float32, device: Any = None,
                  requires_grad: bool = False) -> Tensor:
    """A tensor with strides of its own, whose elements are to be replaced; here they are 0.

    Args:
        size: Shape.
        stride: Distance between neighbours along each dimension, in elements.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result, "cpu" or "cuda"; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: a number is negative (MLC0358), or there are not as many strides as sizes (MLC0357).

    Example:
        >>> mlc.empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
    """
    shape, strides, _ = _layout(size, stride, None)
    return as_strided(empty(_extent(shape, strides, 0), dtype=dtype), shape, strides)


@creation
def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], *, dtype: DTypeLike = float32,
                   device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor whose dimensions lie in memory in another order; its elements are to be replaced, and 0 here.

    Args:
        size: Shape.
        physical_layout: The dimensions in the order of their strides, the longest first.
        dtype: Dtype of the result; float32 by default.
        device: Device of the result, "cpu" or "cuda"; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: a size is negative (MLC0358), or `physical_layout` is no permutation (MLC0357).

    Example:
        >>> mlc.empty_permuted((2, 3), (1, 0)).stride()
        (1, 2)
    """
    shape, order = _numbers(size, "size"), _numbers(physical_layout, "physical_layout")
    if sorted(order) != list(range(len(shape))):
        raise UserError(f"physical_layout = {order} is no order of {len(shape)} dimensions", code="MLC0357")
    return permute(empty(*(shape[d] for d in order), dtype=dtype), [order.index(d) for d in range(len(shape))])


def resize_(self: Tensor, *sizes: Any) -> Tensor:
    """Change the shape in place: the first elements stay, in row-major order, and new ones are 0.

    Args:
        sizes: Sizes, as separate arguments or as one sequence.

    Returns:
        The tensor itself.

    Raises:
        UserError: a size is negative (MLC0358), the tensor would be beyond all memory (MLC0328), it is recorded, a view
            or has views (MLC0760), or the write would go unrecorded (MLC0439).

    Example:
        >>> mlc.tensor([[1, 2], [3, 4]]).resize_(3)
        tensor([1, 2, 3], dtype=mlc.int64)
    """
    shape = _numbers(listed(sizes), "sizes")
    if math.prod(d for d in shape if d) >= MAX_ELEMENTS:
        raise UserMemoryError(f"shape {list(shape)} is beyond all memory", code="MLC0328", loc=user_loc())
    check_alone(self, "resize_", "make a new tensor")
    if self.requires_grad:
        raise UserError("a tensor that requires a gradient cannot be resized", code="MLC0439", loc=user_loc(),
                        hint="x.detach().resize_(...)")
    old = self.array.reshape(-1)
    new = np.zeros(shape, old.dtype)
    kept = min(old.size, new.size)
    new.reshape(-1)[:kept] = old[:kept]
    self.replace_elements(wrap(new).to_device(self.device))
    return self


def resize_as_(self: Tensor, the_template: Tensor) -> Tensor:
    """Change the shape in place to that of another tensor, as `resize_`.

    Args:
        the_template: The other tensor.

    Returns:
        The tensor itself.

    Raises:
        UserError: the tensor is recorded, a view or has views (MLC0760), or the write would go unrecorded (MLC0439).

    Example:
        >>> mlc.arange(4).resize_as_(mlc.ones(2, 2))
        tensor([[0, 1],
                [2, 3]], dtype=mlc.int64)
    """
    return resize_(self, tuple(the_template.shape))


for _f in (resize_, resize_as_):
    setattr(Tensor, _f.__name__, _f)
