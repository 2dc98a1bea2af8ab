"""Determinants, ranks, norms and condition numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from mlc.dialects import tensor as T
from mlc.dialects.tensor.linalg.elimination import tiny_pivot
from mlc.frontend.axes import axis
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.index import diagonal
from mlc.frontend.functions.linalg.factorizations import eigvalsh, svdvals
from mlc.frontend.functions.linalg.matrices import as_matrix, as_square
from mlc.frontend.functions.linalg.solving import inv, least_nonzero, only_bound
from mlc.frontend.functions.reduce.moments import widened
from mlc.frontend.functions.shape import movedim
from mlc.frontend.operands import cast, floating, full, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, DTypeLike, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError
from mlc.ir.types import i64


class Slogdet(NamedTuple):
    """Result of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


def _parity(pivots: Tracer) -> Tensor:
    """1 if an even number of rows were exchanged, else -1."""
    moved = R.sum(pivots != emit(T.Iota, (pivots.shape[-1],), 0, i64), -1)
    return 1 - 2 * (moved % 2)


@operation(name="linalg.det")
def det(A: Operand) -> Tensor:
    """The determinant of matrices, by LU factorization.

    The product of the diagonal of U in P @ A = L @ U, with the sign of the permutation P. Of an empty matrix it is 1.
    The derivative is det(A) * inv(A).T. Where it may overflow or underflow, use `mlc.linalg.slogdet`.

    Args:
        A: Tensor of floats of shape (..., n, n).

    Returns:
        Tensor of shape (...).

    Raises:
        UserError: `A` is no matrix (MLC0364) or not square (MLC0367).

    Example:
        >>> mlc.linalg.det(mlc.tensor([[2.0, 1.0], [0.0, 4.0]]))
        tensor(8., dtype=mlc.float32)
    """
    a = as_square(A, complex=True)
    packed, pivots, _ = emit(T.Lu, a)
    line = tracer(diagonal(packed, 0, -2, -1))
    product, zero = R.prod(line, -1), tracer(line == 0)
    # where a pivot of 0 is not the last, cofactors come from the pivots after it: the derivative of the product has to
    # take it as the same tiny number as that of the factorization, which cancels
    near = R.prod(line + cast(zero, a.type.dtype) * tiny_pivot(a.type.dtype), -1)
    product = E.where(R.any(zero[..., :-1], -1), near - E.detach(near), product)
    return product * cast(tracer(_parity(pivots)), a.type.dtype)


@operation(name="linalg.slogdet")
def slogdet(A: Operand) -> Slogdet:
    """The sign of the determinant, and the natural logarithm of its absolute value.

    Neither overflows where the determinant would.

    Args:
        A: Tensor of floats of shape (..., n, n).

    Returns:
        Named tuple of `sign`, -1, 0 or 1, and `logabsdet`, -inf for a singular matrix, both of shape (...).

    Raises:
        UserError: `A` is no matrix (MLC0364) or not square (MLC0367).

    Example:
        >>> mlc.linalg.slogdet(mlc.tensor([[0.0, 1.0], [1.0, 0.0]]))
        Slogdet(sign=tensor(-1., dtype=mlc.float32), logabsdet=tensor(0., dtype=mlc.float32))
    """
    a = as_square(A, complex=True)
    packed, pivots, _ = emit(T.Lu, a)
    line = tracer(diagonal(packed, 0, -2, -1))
    sign = R.prod(E.sgn(line), -1) * cast(tracer(_parity(pivots)), a.type.dtype)
    return Slogdet(sign, R.sum(E.log(E.abs(line)), -1))


@operation()
def logdet(input: Operand) -> Tensor:
    """The natural logarithm of the determinant: -inf where that is 0, NaN where it is negative.

    Args:
        input: Tensor of floats of shape (..., n, n).

    Returns:
        Tensor of shape (...).

    Raises:
        UserError: `input` is no matrix (MLC0364) or not square (MLC0367).

    Example:
        >>> mlc.logdet(mlc.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor(2.0794415, dtype=mlc.float32)
    """
    sign, size = slogdet(input)
    if tracer(sign).type.dtype.is_complex:
        return E.log(sign) + size
    return E.where(sign < 0, float("nan"), size)


@operation(name="linalg.matrix_rank", autocast="fp32")
def matrix_rank(A: Operand, tol: Operand = None, hermitian: bool = False, *, atol: Operand = None,
                rtol: Operand = None) -> Tensor:
    """The rank of matrices: the number of singular values above max(atol, rtol * the greatest).

    Args:
        A: Tensor of floats of shape (..., m, n).
        tol: The only bound, as numpy's: `atol`, with an `rtol` of 0.
        hermitian: Whether A is symmetric, and given by its lower triangle.
        atol: Absolute bound, a number or a tensor of shape (...); 0 by default.
        rtol: Relative bound, likewise; by default max(m, n) times the epsilon of the dtype, or 0 where `atol` is above
            0.

    Returns:
        Tensor of int64 of shape (...).

    Raises:
        UserError: `A` is no matrix (MLC0364), or `tol` is given with another bound (MLC0702).

    Example:
        >>> mlc.linalg.matrix_rank(mlc.tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(1, dtype=mlc.int64)
    """
    if tol is not None:
        atol, rtol = only_bound("tol", atol, rtol, (tol, 0.0))
    a = as_matrix(A, complex=True)
    s = tracer(E.abs(eigvalsh(a)) if hermitian else svdvals(a))
    return R.sum(s > least_nonzero(a, s, atol, rtol), -1)


def _floats(x: Operand, dtype: DTypeLike) -> Tracer:
    """The operand of a norm, converted to `dtype` if that is given."""
    given = tracer(x)
    return floating(given) if dtype is None else widened(given, dtype)


@operation(name="linalg.vector_norm", autocast="fp32_on_cuda")
def vector_norm(x: Operand, ord: Any = 2, dim: Dims = None, keepdim: bool = False, *,
                dtype: DTypeLike = None) -> Tensor:
    """(sum_i |x[i]| ** ord) ** (1 / ord), the vector norm of the elements over `dim`.

    As `mlc.norm`, also of integers, which become float32.

    Args:
        x: Tensor or number.
        ord: The exponent; inf and -inf give the greatest and the least |x[i]|, 0 the number of elements that are not 0.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype that elements are converted to before, at least as wide; by default their own.

    Returns:
        Tensor of floats without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356), `ord` is no number (MLC0360), or `dtype` is too narrow (MLC0359).

    Example:
        >>> mlc.linalg.vector_norm(mlc.tensor([3.0, 4.0]))
        tensor(5., dtype=mlc.float32)
    """
    if isinstance(ord, str):
        raise UserError(f"ord = {ord!r} is no norm of vectors", code="MLC0360",
                        hint="use a number, or mlc.linalg.matrix_norm")
    return R.norm(_floats(x, dtype), ord, dim, keepdim)


def _greatest(x: Tensor) -> Tensor:
    """Maximum of nonnegative numbers along the last dimension; 0 if it is empty."""
    return R.sum(x, -1) if tracer(x).shape[-1] == 0 else R.amax(x, -1)


@operation(name="linalg.matrix_norm", autocast="fp32_on_cuda")
def matrix_norm(A: Operand, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *,
                dtype: DTypeLike = None) -> Tensor:
    """A norm of matrices.

    Frobenius: sqrt(sum_ij |A[i, j]|^2). Each matrix of a batch has its own norm. `mlc.linalg.vector_norm` is the norm
    of all elements as one vector.

    Args:
        A: Tensor of at least two dimensions; integers become float32.
        ord: "fro" for the Frobenius norm, "nuc" for the sum of singular values, 1 and -1 for the greatest and the least
            sum of a column's |A[i, j]|, inf and -inf for those of a row, 2 and -2 for the greatest and the least
            singular value.
        dim: The two dimensions of the matrices; negative ones count from the last.
        keepdim: Whether these dimensions stay, with size 1.
        dtype: As of `vector_norm`.

    Returns:
        Tensor of floats without the two dimensions.

    Raises:
        UserError: `dim` names no two dimensions (MLC0357), or one is out of range (MLC0356), `ord` is none of these
            (MLC0360), or `dtype` is too narrow (MLC0359).

    Example:
        >>> mlc.linalg.matrix_norm(mlc.tensor([[3.0, 0.0], [0.0, 4.0]]), "nuc")
        tensor(7., dtype=mlc.float32)
    """
    x = _floats(A, dtype)
    if len(dim) != 2:
        raise UserError(f"dim = {tuple(dim)}, expected two dimensions", code="MLC0357")
    a, b = (axis(d, x.ndim) for d in dim)
    if x.ndim < 2 or a == b:
        raise UserError(f"dim = {tuple(dim)} names no two dimensions of {x.ndim}", code="MLC0357")
    x = tracer(movedim(x, (a, b), (-2, -1)))
    if ord == "fro":
        out = R.norm(x, 2, (-2, -1))
    elif ord in (1, -1, math.inf, -math.inf) and not isinstance(ord, bool):
        sums = R.sum(E.abs(x), -2 if abs(ord) == 1 else -1)
        out = _greatest(sums) if ord > 0 else R.amin(sums, -1)
    elif ord in ("nuc", 2, -2):
        s = svdvals(x)
        out = R.sum(s, -1) if ord == "nuc" else _greatest(s) if ord == 2 else R.amin(s, -1)
    else:
        raise UserError(f"ord = {ord!r} is no norm of matrices", code="MLC0360",
                        hint='use "fro", "nuc", 1, -1, 2, -2, inf or -inf')
    result = tracer(out)
    if not keepdim:
        return result
    shape, rest = [], iter(result.shape)
    for i in range(x.ndim):
        shape.append(1 if i in (a, b) else next(rest))
    return reshape(result, shape)


@operation(name="linalg.norm", autocast="fp32_on_cuda")
def norm(A: Operand, ord: Any = None, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """A vector norm, or a norm of matrices where `ord` is given for two dimensions.

    Args:
        A: Tensor; integers become float32.
        ord: As in `vector_norm` or `matrix_norm`; None for the 2-norm of the elements.
        dim: One dimension for vectors, two for matrices; None for all.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: As of `vector_norm`.

    Returns:
        Tensor of floats without the dimensions of `dim`.

    Raises:
        UserError: `ord` is given for more than two dimensions without `dim` (MLC0364) or is no norm (MLC0360), `dim`
            is out of range (MLC0356), or `dtype` is too narrow (MLC0359).

    Example:
        >>> mlc.linalg.norm(mlc.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(5., dtype=mlc.float32)
        >>> mlc.linalg.norm(mlc.tensor([[3.0, 0.0], [0.0, 4.0]]), 2)
        tensor(4., dtype=mlc.float32)
    """
    x = _floats(A, dtype)
    both = isinstance(dim, tuple | list) and len(dim) == 2
    if ord is not None and (both or (dim is None and x.ndim == 2)):
        pair = (dim[0], dim[1]) if isinstance(dim, tuple | list) else (-2, -1)
        return matrix_norm(x, ord, pair, keepdim)
    if ord is not None and dim is None and x.ndim > 1:
        raise UserError(f"the norm of {x.ndim} dimensions needs dim", code="MLC0364")
    return vector_norm(x, 2 if ord is None else ord, dim, keepdim)


@operation(name="linalg.cond", autocast="fp32")
def cond(A: Operand, p: Any = None) -> Tensor:
    """The condition number of matrices: |A| * |inv(A)|.

    In the 2-norm it is the quotient of the greatest and the least singular value. It is inf for a singular matrix, NaN
    for one of zeros in the 2-norm.

    Args:
        A: Tensor of floats of shape (..., m, n); square, unless `p` is None, 2 or -2.
        p: The norm, as in `matrix_norm`; None for 2.

    Returns:
        Tensor of shape (...).

    Raises:
        UserError: `A` is no matrix (MLC0364) or not square (MLC0367), or `p` is no norm (MLC0360).

    Example:
        >>> mlc.linalg.cond(mlc.tensor([[3.0, 0.0], [0.0, 6.0]]))
        tensor(2., dtype=mlc.float32)
    """
    x = as_matrix(A, complex=True)
    if 0 in x.shape[-2:]:
        return E.abs(full(0, x, x.shape[:-2]))
    if p in (None, 2, -2):
        s = svdvals(x)
        large, small = R.amax(s, -1), R.amin(s, -1)
        return E.div(small, large) if p == -2 else E.div(large, small)
    out = matrix_norm(x, p) * matrix_norm(inv(x), p)
    regular = E.logical_or(R.any(E.isnan(x), (-2, -1)), E.logical_not(E.isnan(out)))
    return E.where(regular, out, math.inf)
