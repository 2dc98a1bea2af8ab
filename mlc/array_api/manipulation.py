"""Functions that join, split, move and repeat elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlc
from mlc.array_api.data_types import tensors_in_one_dtype
from mlc.frontend.axes import axes as normal_axes
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis",
    "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "take", "take_along_axis", "tile", "unstack",
]

Axes = int | tuple[int, ...]


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Tensors in their common shape, whose memory they share.

    Args:
        arrays: Tensors.

    Returns:
        Tuple of as many tensors.

    Raises:
        UserError: The shapes do not broadcast (MLC0111).

    Example:
        >>> xp.broadcast_arrays(xp.asarray([1, 2]), xp.asarray(3))[1]
        tensor([3, 3], dtype=mlc.int64)
    """
    return tuple(mlc.broadcast_tensors(*arrays)) if arrays else ()


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape of several.

    Args:
        shapes: Shapes.

    Returns:
        The shape.

    Raises:
        UserError: The shapes do not broadcast (MLC0111).

    Example:
        >>> xp.broadcast_shapes((3, 1), (1, 4))
        (3, 4)
    """
    return tuple(mlc.broadcast_shapes(*shapes))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """x in a larger shape, whose memory it shares.

    Args:
        x: Tensor.
        shape: The shape.

    Returns:
        Tensor of the shape.

    Raises:
        UserError: The shape of x does not broadcast to it (MLC0111).

    Example:
        >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]], dtype=mlc.int64)
    """
    return mlc.broadcast_to(x, shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors one after the other, in their common dtype.

    Args:
        arrays: Tensors of the same sizes, except along the axis.
        axis: The axis; None for the elements of all, in one dimension.

    Returns:
        Tensor.

    Raises:
        UserError: The shapes do not fit together (MLC0364), or the axis is out of range (MLC0356).

    Example:
        >>> xp.concat([xp.asarray([1, 2]), xp.asarray([3])])
        tensor([1, 2, 3], dtype=mlc.int64)
    """
    xs = tensors_in_one_dtype(*arrays)
    return mlc.cat([x.reshape(-1) for x in xs]) if axis is None else mlc.cat(xs, axis)


def expand_dims(x: Tensor, /, axis: Axes) -> Tensor:
    """x with dimensions of size 1 inserted.

    Args:
        x: Tensor.
        axis: Their positions in the result; negative ones are counted from its end.

    Returns:
        Tensor that shares the memory of x.

    Raises:
        UserError: An axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.expand_dims(xp.asarray([1, 2]), axis=0)
        tensor([[1, 2]], dtype=mlc.int64)
    """
    if isinstance(axis, tuple):
        for position in normal_axes(axis, x.ndim + len(axis)) if axis else ():
            x = mlc.unsqueeze(x, position)
        return x
    return mlc.unsqueeze(x, axis)


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """The elements in reverse order.

    Args:
        x: Tensor.
        axis: One or several axes; all by default.

    Returns:
        Tensor of the shape and the dtype of x.

    Raises:
        UserError: An axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.flip(xp.asarray([1, 2, 3]))
        tensor([3, 2, 1], dtype=mlc.int64)
    """
    return mlc.flip(x, tuple(range(x.ndim)) if axis is None else axis)


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """x with axes moved to other positions.

    Args:
        x: Tensor.
        source: One or several axes.
        destination: Their positions in the result.

    Returns:
        Tensor that shares the memory of x.

    Raises:
        UserError: An axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    return mlc.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """x with its axes in another order.

    Args:
        x: Tensor.
        axes: For each axis of the result that of x.

    Returns:
        Tensor that shares the memory of x.

    Raises:
        UserError: An axis is out of range (MLC0356), given twice, or left out (MLC0357).

    Example:
        >>> xp.permute_dims(xp.ones((2, 3)), (1, 0)).shape
        (3, 2)
    """
    return mlc.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element several times.

    Args:
        x: Tensor.
        repeats: How many times; a tensor of integers has a number for each element along the axis.
        axis: The axis; None for the elements of all of x, in one dimension.

    Returns:
        Tensor of the dtype of x.

    Raises:
        UserError: The axis is out of range (MLC0356).

    Example:
        >>> xp.repeat(xp.asarray([1, 2]), 2)
        tensor([1, 1, 2, 2], dtype=mlc.int64)
    """
    if axis is None:
        x, axis = x.reshape(-1), 0
    if isinstance(repeats, Tensor) and repeats.numel() == 1 and repeats.ndim == 1:
        repeats = repeats[0]
    return mlc.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape, in the same order.

    Args:
        x: Tensor.
        shape: The shape; one size may be -1.
        copy: True for memory of its own, False to refuse where that of x cannot be shared, None to share it where it
            can be.

    Returns:
        Tensor of the shape.

    Raises:
        UserError: The elements do not fit in the shape (MLC0358), or the memory cannot be shared with `copy=False`
            (MLC0443).

    Example:
        >>> xp.reshape(xp.asarray([1, 2, 3, 4]), (2, 2))
        tensor([[1, 2],
                [3, 4]], dtype=mlc.int64)
    """
    if copy:
        return mlc.reshape(x.clone(), shape)
    return x.view(shape) if copy is False else mlc.reshape(x, shape)


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """The elements moved along axes; those that leave at the end enter at the start.

    Args:
        x: Tensor.
        shift: By how many positions, for all axes or each.
        axis: One or several axes; None for the elements of all of x as one row.

    Returns:
        Tensor of the shape and the dtype of x.

    Raises:
        UserError: An axis is out of range (MLC0356).

    Example:
        >>> xp.roll(xp.asarray([1, 2, 3]), 1)
        tensor([3, 1, 2], dtype=mlc.int64)
    """
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    if isinstance(shift, tuple) and isinstance(axis, int):
        axis = (axis,) * len(shift)
    return mlc.roll(x, shift, axis)


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """x without axes of size 1.

    Args:
        x: Tensor.
        axis: One or several axes.

    Returns:
        Tensor that shares the memory of x.

    Raises:
        UserError: A size is not 1 (MLC0883), or an axis is out of range (MLC0356).

    Example:
        >>> xp.squeeze(xp.asarray([[1, 2]]), axis=0)
        tensor([1, 2], dtype=mlc.int64)
    """
    axes = () if axis == () else normal_axes(axis, x.ndim)
    for i in axes:
        if x.shape[i] != 1:
            raise UserError(f"axis {i} of size {x.shape[i]} cannot be removed", code="MLC0883", loc=user_loc(),
                            hint="only axes of size 1 can; mlc.squeeze leaves the others")
    return mlc.squeeze(x, axes) if axes else x


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape, along a new axis, in their common dtype.

    Args:
        arrays: The tensors.
        axis: Position of the new axis.

    Returns:
        Tensor.

    Raises:
        UserError: The shapes differ (MLC0364), or the axis is out of range (MLC0356).

    Example:
        >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])])
        tensor([[1, 2],
                [3, 4]], dtype=mlc.int64)
    """
    return mlc.stack(tensors_in_one_dtype(*arrays), axis)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The elements at indices along an axis.

    Args:
        x: Tensor.
        indices: Tensor of integers; negative ones are counted from the end.
        axis: The axis; None if x has only one.

    Returns:
        Tensor of the shape of x, with that of the indices in the place of the axis.

    Raises:
        UserError: The axis is out of range, or left out for several (MLC0356), or an index is (MLC0340).

    Example:
        >>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([2, 0]))
        tensor([30, 10], dtype=mlc.int64)
    """
    if axis is None:
        if x.ndim != 1:
            raise UserError(f"take from a tensor of {x.ndim} dimensions, of no axis", code="MLC0356", loc=user_loc(),
                            hint="pass the axis")
        axis = 0
    place = normal_axes(axis, x.ndim)[0]
    key: Any = (*(slice(None),) * place, indices.to(mlc.int64))         # a key of uint8 is a mask
    return x[key]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at indices along an axis, with indices of their own for each row.

    Args:
        x: Tensor.
        indices: Tensor of integers, of the shape of x except along the axis; negative ones are counted from the end.
        axis: The axis.

    Returns:
        Tensor of the shape of the indices.

    Raises:
        UserError: The axis is out of range (MLC0356).

    Example:
        >>> xp.take_along_axis(xp.asarray([[10, 20], [30, 40]]), xp.asarray([[1], [0]]), axis=1)
        tensor([[20],
                [30]], dtype=mlc.int64)
    """
    place = normal_axes(axis, x.ndim)[0]
    indices = indices.to(mlc.int64)
    return mlc.take_along_dim(x, mlc.where(indices < 0, indices + x.shape[place], indices), dim=place)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """x repeated along its axes.

    Args:
        x: Tensor.
        repetitions: How many times, for each of the last axes; the result has further axes if these are more.

    Returns:
        Tensor of the dtype of x.

    Example:
        >>> xp.tile(xp.asarray([1, 2]), (2,))
        tensor([1, 2, 1, 2], dtype=mlc.int64)
    """
    return mlc.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of x along an axis.

    Args:
        x: Tensor.
        axis: The axis.

    Returns:
        Tuple of tensors without the axis, that share the memory of x.

    Raises:
        UserError: The axis is out of range (MLC0356).

    Example:
        >>> xp.unstack(xp.asarray([[1, 2], [3, 4]]))[1]
        tensor([3, 4], dtype=mlc.int64)
    """
    return tuple(mlc.unbind(x, axis))
