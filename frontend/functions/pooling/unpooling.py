"""The inverse of max pooling."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.functions.convolution import Ints, batched, each, unbatched
from mlc.frontend.operands import full, integer, need, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.ir import sizes
from mlc.ir.diag import UserError


def _unpooled(input: Operand, indices: Operand, kernel_size: Ints, stride: Any, padding: Ints, output_size: Any,
              spatial: int) -> Tensor:
    x, was_added = batched(tracer(input), spatial, "the input")
    at = integer(indices, "indices")
    at = reshape(at, [1, *at.shape]) if was_added else at
    if at.shape != x.shape:
        raise UserError(f"indices of shape {list(at.shape)} for an input of shape {list(x.shape)}", code="MLC0367")
    kernel = each(kernel_size, spatial, "kernel_size", 1)
    step = kernel if stride is None or stride == () else each(stride, spatial, "stride", 1)
    around = each(padding, spatial, "padding")
    image: list[Any] = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[2:], step, around, kernel)]
    if output_size is not None:
        image = _asked(list(output_size), image, step, x.ndim)
    if negative := [n for n in image if isinstance(n, int) and n < 0]:
        raise UserError(f"the result would have a dimension of size {negative[0]}", code="MLC0360",
                        hint="pad by at most half of a window, or pass the size of the result")
    columns = sizes.product(x.shape[2:])
    zeros = full(0, x, [*x.shape[:2], sizes.product(image)])
    lines = (reshape(v, [*x.shape[:2], columns]) for v in (at, x))
    out = emit(T.ScatterAlong, zeros, *lines, 2, "set")    # of which no index counts from the end, as scatter's may
    return unbatched(reshape(out, [*x.shape[:2], *image]), was_added)


def _asked(asked: list[Any], least: list[Any], step: Any, rank: int) -> list[Any]:
    """The sizes that a caller asks for: less than a step from the least, where windows are as many."""
    spatial = len(least)
    if len(asked) not in (spatial, spatial + 1, rank):
        raise UserError(f"output_size has {len(asked)} sizes for {spatial} spatial dimensions", code="MLC0357")
    for n, m, s in zip(asked[-spatial:], least, step):
        for room in (n - m + s - 1, m + s - 1 - n):
            need(room, f"output_size has {n}, where it has to be less than {s} from {m}")
    return asked[-spatial:]


@operation(autocast="fp32")
def max_unpool1d(input: Operand, indices: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                 output_size: Any = None) -> Tensor:
    """The maxima of `max_pool1d` where they were taken from, and 0 elsewhere.

    Args:
        input: Tensor of shape (n, c, w), or one signal without n.
        indices: The indices that `max_pool1d` gives with `return_indices`.
        kernel_size: Size of the windows.
        stride: Step from one window to the next; `kernel_size` by default.
        padding: Elements before and after.
        output_size: Shape of the result, or its last dimension, less than a step from the default, which is the least
            that gives windows of this number.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), the indices have another shape (MLC0367) or are out of
            range (MLC0340, an IndexError), a setting is out of range (MLC0360; `output_size` MLC0363) or has the wrong
            length (MLC0357), or the indices are not of integers (MLC0354).

    Example:
        >>> nn.functional.max_unpool1d(mlc.tensor([[4.0, 3.0]]), mlc.tensor([[1, 3]]), 2)
        tensor([[0., 4., 0., 3.]], dtype=mlc.float32)
    """
    return _unpooled(input, indices, kernel_size, stride, padding, output_size, 1)


@operation(autocast="fp32")
def max_unpool2d(input: Operand, indices: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                 output_size: Any = None) -> Tensor:
    """The maxima of `max_pool2d` where they were taken from, and 0 elsewhere.

    Args:
        input: Tensor of shape (n, c, h, w), or one image without n.
        indices: The indices that `max_pool2d` gives with `return_indices`.
        kernel_size: Size of the windows, an integer, or one for each dimension.
        stride: Step from one window to the next, likewise; `kernel_size` by default.
        padding: Elements before and after, likewise.
        output_size: Shape of the result, or its last dimensions, each less than a step from the default, which is the
            least that gives windows of this number.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), the indices have another shape (MLC0367) or are out of
            range (MLC0340, an IndexError), a setting is out of range (MLC0360; `output_size` MLC0363) or has the wrong
            length (MLC0357), or the indices are not of integers (MLC0354).

    Example:
        >>> nn.functional.max_unpool2d(mlc.tensor([[[4.0]]]), mlc.tensor([[[1]]]), 2)
        tensor([[[0., 4.],
                 [0., 0.]]], dtype=mlc.float32)
    """
    return _unpooled(input, indices, kernel_size, stride, padding, output_size, 2)


@operation(autocast="fp32")
def max_unpool3d(input: Operand, indices: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                 output_size: Any = None) -> Tensor:
    """The maxima of `max_pool3d` where they were taken from, and 0 elsewhere.

    Args:
        input: Tensor of shape (n, c, d, h, w), or one image without n.
        indices: The indices that `max_pool3d` gives with `return_indices`.
        kernel_size: Size of the windows, an integer, or one for each dimension.
        stride: Step from one window to the next, likewise; `kernel_size` by default.
        padding: Elements before and after, likewise.
        output_size: Shape of the result, or its last dimensions, each less than a step from the default, which is the
            least that gives windows of this number.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), the indices have another shape (MLC0367) or are out of
            range (MLC0340, an IndexError), a setting is out of range (MLC0360; `output_size` MLC0363) or has the wrong
            length (MLC0357), or the indices are not of integers (MLC0354).

    Example:
        >>> nn.functional.max_unpool3d(mlc.tensor([[[[4.0]]]]), mlc.tensor([[[[1]]]]), (1, 1, 2))
        tensor([[[[0., 4.]]]], dtype=mlc.float32)
    """
    return _unpooled(input, indices, kernel_size, stride, padding, output_size, 3)
