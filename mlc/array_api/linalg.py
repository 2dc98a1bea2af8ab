"""Linear algebra, the extension `linalg` of the array API standard.

The functions of `mlc.linalg` under the standard's rules: matrices are the last two dimensions and the others a batch,
results of several tensors are named tuples, and `solve` takes only a tensor of one dimension as a vector.

Example:
    >>> xp.linalg.det(xp.asarray([[2.0, 1.0], [1.0, 3.0]]))
    tensor(5., dtype=mlc.float32)
    >>> xp.linalg.slogdet(xp.eye(2)).sign
    tensor(1., dtype=mlc.float32)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mlc
from mlc.array_api.data_types import tensors_in_one_dtype
from mlc.array_api.products import matmul, matrix_transpose, tensordot, vecdot
from mlc.array_api.statistics import sum
from mlc.frontend.dtypes import DType
from mlc.frontend.tensor import Tensor

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "trace", "vecdot", "vector_norm",
]


class Eigh(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Qr(NamedTuple):
    """An orthogonal and an upper triangular matrix."""

    Q: Tensor
    R: Tensor


class Slogdet(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


class Svd(NamedTuple):
    """Left singular vectors in columns, singular values in descending order, and right singular vectors in rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factor of each positive definite matrix; NaN for another one.

    Args:
        x: Tensor of matrices of floats or complex numbers.
        upper: Whether it is the upper triangular factor.

    Returns:
        Tensor of triangular matrices.

    Example:
        >>> xp.linalg.cholesky(xp.asarray([[4.0, 0.0], [0.0, 9.0]]))
        tensor([[2., 0.],
                [0., 3.]], dtype=mlc.float32)
    """
    return mlc.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three elements, in the common dtype.

    Args:
        x1: Tensor of numbers, with size 3 along the axis.
        x2: Tensor of numbers, with size 3 along the axis.
        axis: The axis, counted from the end.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        UserError: The size is not 3 (MLC0363), or the shapes do not broadcast (MLC0111).

    Example:
        >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
        tensor([0, 0, 1], dtype=mlc.int64)
    """
    a, b = mlc.broadcast_tensors(*tensors_in_one_dtype(x1, x2))
    return mlc.linalg.cross(a, b, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant of each matrix.

    Args:
        x: Tensor of square matrices of floats or complex numbers.

    Returns:
        Tensor without the last two dimensions.

    Example:
        >>> xp.linalg.det(xp.asarray([[2.0, 0.0], [0.0, 3.0]]))
        tensor(6., dtype=mlc.float32)
    """
    return mlc.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A diagonal of each matrix.

    Args:
        x: Tensor of matrices.
        offset: Which diagonal, above the main one; below it if negative.

    Returns:
        Tensor of the diagonals, in the last dimension.

    Example:
        >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]]))
        tensor([1, 4], dtype=mlc.int64)
    """
    return mlc.diagonal(x, offset, -2, -1)


def eigh(x: Tensor, /) -> Eigh:
    """The eigenvalues and eigenvectors of each Hermitian matrix.

    Args:
        x: Tensor of matrices of floats or complex numbers.

    Returns:
        Named tuple of `eigenvalues`, in ascending order, and `eigenvectors`, in columns.

    Example:
        >>> xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        tensor([1., 2.], dtype=mlc.float32)
    """
    return Eigh(*mlc.linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of each Hermitian matrix.

    Args:
        x: Tensor of matrices of floats or complex numbers.

    Returns:
        Tensor of floats, in ascending order.

    Example:
        >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
        tensor([1., 2.], dtype=mlc.float32)
    """
    return mlc.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse of each matrix; infinite or NaN for a singular one.

    Args:
        x: Tensor of square matrices of floats or complex numbers.

    Returns:
        Tensor of matrices.

    Example:
        >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5 , 0.  ],
                [0.  , 0.25]], dtype=mlc.float32)
    """
    return mlc.linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of each matrix.

    Args:
        x: Tensor of matrices of floats or complex numbers.
        keepdims: Whether the result has the last two dimensions, with size 1.
        ord: Which norm: "fro", "nuc", 1, 2, inf, or one of these numbers negated.

    Returns:
        Tensor of floats.

    Example:
        >>> xp.linalg.matrix_norm(xp.ones((2, 2)))
        tensor(2., dtype=mlc.float32)
    """
    return mlc.linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The power of each matrix; of its inverse if n is negative.

    Args:
        x: Tensor of square matrices of floats or complex numbers.
        n: The exponent.

    Returns:
        Tensor of matrices.

    Example:
        >>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3)
        tensor([[1., 3.],
                [0., 1.]], dtype=mlc.float32)
    """
    return mlc.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The number of singular values of each matrix that are not small.

    Args:
        x: Tensor of matrices of floats or complex numbers.
        rtol: What is small, as a fraction of the largest; the number of rows or columns times eps by default.

    Returns:
        Tensor of int64.

    Example:
        >>> xp.linalg.matrix_rank(xp.ones((2, 2)))
        tensor(1, dtype=mlc.int64)
    """
    return mlc.linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of all elements of two vectors, in the common dtype.

    Args:
        x1: Tensor of one dimension.
        x2: Tensor of one dimension.

    Returns:
        Tensor of two dimensions.

    Example:
        >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4]))
        tensor([[3, 4],
                [6, 8]], dtype=mlc.int64)
    """
    return mlc.outer(*tensors_in_one_dtype(x1, x2))


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudo-inverse of each matrix.

    Args:
        x: Tensor of matrices of floats or complex numbers.
        rtol: Singular values up to this fraction of the largest are taken for zeros; the number of rows or columns
            times eps by default.

    Returns:
        Tensor of matrices.

    Example:
        >>> xp.linalg.pinv(xp.asarray([[2.0], [0.0]]))
        tensor([[0.5, 0. ]], dtype=mlc.float32)
    """
    return mlc.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> Qr:
    """The QR decomposition of each matrix.

    Args:
        x: Tensor of matrices of floats or complex numbers.
        mode: "reduced", or "complete" for a square Q.

    Returns:
        Named tuple of `Q` and `R`.

    Example:
        >>> xp.linalg.qr(xp.ones((3, 2))).R.shape
        (2, 2)
    """
    return Qr(*mlc.linalg.qr(x, mode))


def slogdet(x: Tensor, /) -> Slogdet:
    """The sign and the logarithm of the absolute value of the determinant of each matrix.

    Args:
        x: Tensor of square matrices of floats or complex numbers.

    Returns:
        Named tuple of `sign` and `logabsdet`.

    Example:
        >>> xp.linalg.slogdet(xp.asarray([[-1.0, 0.0], [0.0, 1.0]])).sign
        tensor(-1., dtype=mlc.float32)
    """
    return Slogdet(*mlc.linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solutions of x1 @ x == x2; infinite or NaN where a matrix is singular.

    Args:
        x1: Tensor of square matrices of floats or complex numbers.
        x2: Tensor of matrices, or one vector if it has one dimension.

    Returns:
        Tensor of the common dtype.

    Example:
        >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0]))
        tensor([1. , 0.5], dtype=mlc.float32)
    """
    a, b = tensors_in_one_dtype(x1, x2)
    columns = b.unsqueeze(1) if b.ndim == 1 else b
    batch = mlc.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    out = mlc.linalg.solve(mlc.broadcast_to(a, (*batch, *a.shape[-2:])),
                           mlc.broadcast_to(columns, (*batch, *columns.shape[-2:])))
    return out[..., 0] if b.ndim == 1 else out


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Svd:
    """The singular value decomposition of each matrix.

    Args:
        x: Tensor of matrices of floats or complex numbers.
        full_matrices: Whether `U` and `Vh` are square.

    Returns:
        Named tuple of `U`, `S` and `Vh`.

    Example:
        >>> xp.linalg.svd(xp.asarray([[3.0, 0.0], [0.0, 4.0]])).S
        tensor([4., 3.], dtype=mlc.float32)
    """
    return Svd(*mlc.linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of each matrix.

    Args:
        x: Tensor of matrices of floats or complex numbers.

    Returns:
        Tensor of floats, in descending order.

    Example:
        >>> xp.linalg.svdvals(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
        tensor([4., 3.], dtype=mlc.float32)
    """
    return mlc.linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """The sum of a diagonal of each matrix.

    Args:
        x: Tensor of matrices of numbers.
        offset: Which diagonal, above the main one; below it if negative.
        dtype: Dtype of the result; that of `xp.sum` by default.

    Returns:
        Tensor without the last two dimensions.

    Example:
        >>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]]))
        tensor(5, dtype=mlc.int64)
    """
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False,
                ord: float = 2) -> Tensor:
    """The norm of vectors along one or several axes.

    Args:
        x: Tensor of floats or complex numbers.
        axis: One or several axes; all by default.
        keepdims: Whether the result has the axes, with size 1.
        ord: Which norm: the power of the absolute values whose sum's root it is, 0 for how many are not zero, inf or
            -inf for the largest or smallest.

    Returns:
        Tensor of floats.

    Raises:
        UserError: An axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0]))
        tensor(5., dtype=mlc.float32)
    """
    if axis == ():                                         # vectors of one element each
        size = mlc.abs(x)
        return (size != 0).to(size.dtype) if ord == 0 else size
    return mlc.linalg.vector_norm(x, ord, axis, keepdims)
