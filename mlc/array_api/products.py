"""Products of vectors and matrices."""

from __future__ import annotations

from collections.abc import Sequence

import mlc
from mlc.array_api.data_types import tensors_in_one_dtype
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of matrices, or of a matrix and a vector, in the common dtype.

    Args:
        x1: Tensor of matrices, in its last two dimensions, or a vector.
        x2: Tensor of matrices, or a vector.

    Returns:
        Tensor.

    Raises:
        UserError: The shapes do not fit together (MLC0364), or there is no common dtype (MLC0341).

    Example:
        >>> xp.matmul(xp.ones((2, 3)), xp.ones(3))
        tensor([3., 3.], dtype=mlc.float32)
    """
    return mlc.matmul(*tensors_in_one_dtype(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The transpose of each matrix.

    Args:
        x: Tensor of matrices, in its last two dimensions.

    Returns:
        Tensor that shares the memory of x.

    Raises:
        UserError: x has fewer than two dimensions (MLC0356).

    Example:
        >>> xp.matrix_transpose(xp.ones((2, 3))).shape
        (3, 2)
    """
    return mlc.transpose(x, -2, -1)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sums of products over axes, in the common dtype.

    Args:
        x1: Tensor of numbers.
        x2: Tensor of numbers.
        axes: How many of the last axes of x1 and of the first of x2, or the axes of each.

    Returns:
        Tensor with the other axes of x1, then those of x2.

    Raises:
        UserError: The shapes do not fit together (MLC0364), or there is no common dtype (MLC0341).

    Example:
        >>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 2)), axes=1)
        tensor([[3., 3.],
                [3., 3.]], dtype=mlc.float32)
    """
    a, b = tensors_in_one_dtype(x1, x2)
    return mlc.tensordot(a, b, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The scalar products of vectors along an axis, of which the first are conjugated, in the common dtype.

    Args:
        x1: Tensor of numbers.
        x2: Tensor of numbers.
        axis: The axis, counted from the end.

    Returns:
        Tensor of the broadcast shape without the axis.

    Raises:
        UserError: The vectors are of different lengths (MLC0363), the shapes do not broadcast (MLC0111), or there is no
            common dtype (MLC0341).

    Example:
        >>> xp.vecdot(xp.asarray([1, 2]), xp.asarray([3, 4]))
        tensor(11, dtype=mlc.int64)
    """
    a, b = tensors_in_one_dtype(x1, x2)
    if a.shape[axis] != b.shape[axis]:
        raise UserError(f"vectors of lengths {a.shape[axis]} and {b.shape[axis]}", code="MLC0363", loc=user_loc())
    a, b = mlc.broadcast_tensors(a, b)
    return mlc.sum(mlc.conj(a) * b, axis, dtype=a.dtype)
