"""Factorizations and solutions that say where they failed, and products of what a factorization left."""

from __future__ import annotations

from typing import NamedTuple

from mlc.dialects import tensor as T
from mlc.frontend.functions import contract
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.index import diagonal
from mlc.frontend.functions.linalg.factorizations import Qr, cholesky, lu_factor, lu_solve, qr
from mlc.frontend.functions.linalg.matrices import (
    as_matrix,
    as_square,
    identity_like,
    known_size,
    matrix_transpose,
    same_type_and_batch,
    triangular_solve,
)
from mlc.frontend.functions.linalg.solving import inv, pinv, solve
from mlc.frontend.operands import broadcast_to, cast, conjugate, floating, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import i32, i64


class CholeskyEx(NamedTuple):
    """Result of `cholesky_ex`."""

    L: Tensor
    info: Tensor


class InvEx(NamedTuple):
    """Result of `inv_ex`."""

    inverse: Tensor
    info: Tensor


class SolveEx(NamedTuple):
    """Result of `solve_ex`."""

    result: Tensor
    info: Tensor


class LuFactorEx(NamedTuple):
    """Result of `lu_factor_ex`."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


def _first(bad: Tensor) -> Tensor:
    """One more than the first true index of the last dimension, 0 if there is none, as LAPACK's info."""
    if bad.shape[-1] == 0:
        return cast(tracer(R.sum(bad, -1)), i32)
    return cast(tracer(E.where(R.any(bad, -1), R.argmax(cast(tracer(bad), i64), -1) + 1, 0)), i32)


def _singular(A: Operand) -> Tensor:
    return _first(diagonal(lu_factor(A).LU, 0, -2, -1) == 0)


@operation(name="linalg.cholesky_ex", autocast="fp32")
def cholesky_ex(input: Operand, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """The Cholesky factor, as `cholesky`, and where a matrix is not positive definite.

    Args:
        input: Tensor of floats of shape (..., n, n).
        upper: Whether to give the upper factor, from the upper triangle.
        check_errors: Accepted for PyTorch's sake; no error is raised.

    Returns:
        Named tuple of `L`, and `info`, int32 of shape (...): 0, or the order of the first leading minor that is not
        positive, from whose column on `L` is NaN.

    Raises:
        UserError: `input` is no matrix (MLC0364) or not square (MLC0367).

    Example:
        >>> mlc.linalg.cholesky_ex(mlc.tensor([[4.0, 0.0], [0.0, 9.0]])).info
        tensor(0, dtype=mlc.int32)
    """
    factor = cholesky(input, upper=upper)
    return CholeskyEx(factor, _first(E.logical_not(E.abs(diagonal(factor, 0, -2, -1)) > 0)))


@operation(name="linalg.inv_ex", autocast="fp32")
def inv_ex(A: Operand, *, check_errors: bool = False) -> InvEx:
    """The inverse, as `inv`, and where a matrix is singular.

    Args:
        A: Tensor of floats of shape (..., n, n).
        check_errors: Accepted for PyTorch's sake; no error is raised.

    Returns:
        Named tuple of `inverse`, and `info`, int32 of shape (...): 0, or the first pivot that is 0, counted from 1.

    Raises:
        UserError: `A` is no matrix (MLC0364) or not square (MLC0367).

    Example:
        >>> mlc.linalg.inv_ex(mlc.tensor([[1.0, 0.0], [0.0, 0.0]])).info
        tensor(2, dtype=mlc.int32)
    """
    return InvEx(inv(A), _singular(A))


@operation(name="linalg.solve_ex", autocast="fp32")
def solve_ex(A: Operand, B: Operand, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """The solution X of A X = B, as `solve`, and where a matrix is singular.

    Args:
        A: Tensor of floats of shape (..., n, n).
        B: Tensor of floats of shape (..., n, k), or (..., n) for vectors.
        left: Whether to solve A X = B; otherwise X A = B, for matrices only.
        check_errors: Accepted for PyTorch's sake; no error is raised.

    Returns:
        Named tuple of `result`, and `info`, int32 of the shape of the batch: 0, or the first pivot that is 0, counted
        from 1.

    Raises:
        UserError: an operand is no matrix (MLC0364), or shapes do not fit (MLC0367).

    Example:
        >>> mlc.linalg.solve_ex(mlc.tensor([[2.0, 0.0], [1.0, 4.0]]), mlc.tensor([2.0, 9.0])).result
        tensor([1., 2.], dtype=mlc.float32)
    """
    a = as_square(A, complex=True)
    a = a if left else matrix_transpose(a)
    return SolveEx(solve(A, B, left=left), _singular(a))


@operation(name="linalg.lu_factor_ex")
def lu_factor_ex(A: Operand, *, pivot: bool = True, check_errors: bool = False) -> LuFactorEx:
    """The LU factorization in one matrix, as `lu_factor`, and where the upper factor is singular.

    Args:
        A: Tensor of floats of shape (..., m, n).
        pivot: Must be True.
        check_errors: Accepted for PyTorch's sake; no error is raised.

    Returns:
        Named tuple of `LU` and `pivots`, as of `lu_factor`, and `info`, int32 of shape (...): 0, or the first pivot
        that is 0, counted from 1.

    Raises:
        UserError: `A` is no matrix (MLC0364), or `pivot` is False (MLC0360).

    Example:
        >>> mlc.linalg.lu_factor_ex(mlc.tensor([[1.0, 2.0], [2.0, 4.0]])).info
        tensor(2, dtype=mlc.int32)
    """
    factor = lu_factor(A, pivot=pivot)
    return LuFactorEx(*factor, _first(diagonal(factor.LU, 0, -2, -1) == 0))


@operation(name="cholesky", autocast="fp32")
def cholesky_factor(input: Operand, upper: bool = False) -> Tensor:
    """The Cholesky factor, as `linalg.cholesky`.

    Args:
        input: Tensor of floats of shape (..., n, n), of which only one triangle counts.
        upper: Whether to read the upper triangle and return the upper factor.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `input` is no matrix (MLC0364) or not square (MLC0367).

    Example:
        >>> mlc.cholesky(mlc.tensor([[4.0, 2.0], [2.0, 5.0]]), True)
        tensor([[2., 1.],
                [0., 2.]], dtype=mlc.float32)
    """
    return cholesky(input, upper=upper)


@operation(autocast="fp32")
def cholesky_solve(B: Operand, L: Operand, upper: bool = False) -> Tensor:
    """The solution X of A X = B, from the Cholesky factor of A.

    Args:
        B: Tensor of floats of shape (..., n, k).
        L: Tensor of floats of shape (..., n, n), the factor; the other triangle does not count.
        upper: Whether it is the upper factor, with A = L^T L; otherwise A = L L^T.

    Returns:
        Tensor of the broadcast shape of `B`.

    Raises:
        UserError: an operand is no matrix (MLC0364), or shapes do not fit (MLC0367).

    Example:
        >>> mlc.cholesky_solve(mlc.tensor([[8.0], [18.0]]), mlc.tensor([[2.0, 0.0], [0.0, 3.0]]))
        tensor([[2.],
                [2.]], dtype=mlc.float32)
    """
    a, b = as_square(L, complex=True), as_matrix(B, complex=True)
    if not sizes.is_equal(a.shape[-1], b.shape[-2]):
        raise UserError(f"a matrix of {a.shape[-1]} rows does not fit right-hand sides of {b.shape[-2]}",
                        code="MLC0367", symbols=sizes.symbols(a.shape[-1], b.shape[-2]))
    a, b = same_type_and_batch(a, b)
    if a.type.dtype.is_complex:
        other = conjugate(matrix_transpose(a))
        first, second = (other, a) if upper else (a, other)
        return triangular_solve(second, triangular_solve(first, b, False), True)
    return triangular_solve(a, triangular_solve(a, b, bool(upper), bool(upper)), bool(upper), not upper)


@operation(autocast="fp32")
def cholesky_inverse(input: Operand, upper: bool = False) -> Tensor:
    """The inverse of A, from its Cholesky factor.

    Args:
        input: Tensor of floats of shape (..., n, n), the factor; the other triangle does not count.
        upper: Whether it is the upper factor; otherwise the lower one.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `input` is no matrix (MLC0364) or not square (MLC0367).

    Example:
        >>> mlc.cholesky_inverse(mlc.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([[0.25, 0.  ],
                [0.  , 1.  ]], dtype=mlc.float32)
    """
    a = as_square(input, complex=True)
    return cholesky_solve(broadcast_to(identity_like(a.shape[-1], a), a.shape), a, upper)


@operation(name="qr", autocast="fp32")
def thin_qr(input: Operand, some: bool = True) -> Qr:
    """The QR factorization, as `linalg.qr`.

    Args:
        input: Tensor of floats of shape (..., m, n).
        some: Whether Q has min(m, n) columns; otherwise it has m.

    Returns:
        Named tuple of `Q` and `R`.

    Raises:
        UserError: `input` is no matrix (MLC0364).

    Example:
        >>> mlc.qr(mlc.tensor([[2.0, 0.0], [0.0, 3.0]])).R
        tensor([[2., 0.],
                [0., 3.]], dtype=mlc.float32)
    """
    return qr(input, "reduced" if some else "complete")


@operation(autocast="fp32")
def pinverse(input: Operand, rcond: float = 1e-15) -> Tensor:
    """The Moore-Penrose pseudoinverse of matrices, as `linalg.pinv` with `rtol` = `rcond`.

    Args:
        input: Tensor of floats of shape (..., m, n).
        rcond: Singular values up to this part of the greatest count as 0.

    Returns:
        Tensor of shape (..., n, m).

    Raises:
        UserError: `input` is no matrix (MLC0364).

    Example:
        >>> mlc.pinverse(mlc.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5 , 0.  ],
                [0.  , 0.25]], dtype=mlc.float32)
    """
    return pinv(input, rtol=rcond)


@operation(name="lu_solve", autocast="fp32")
def solve_by_lu(b: Operand, LU_data: Operand, LU_pivots: Operand) -> Tensor:
    """The solution X of A X = b from the LU factorization of A, as `linalg.lu_solve` with `b` first.

    Args:
        b: Tensor of floats of shape (..., n, k).
        LU_data: Tensor of floats of shape (..., n, n), of `linalg.lu_factor`.
        LU_pivots: Tensor of integers of shape (..., n), of `linalg.lu_factor`.

    Returns:
        Tensor of the broadcast shape of `b`.

    Raises:
        UserError: an operand is no matrix (MLC0364), shapes do not fit (MLC0367), or the shapes do not broadcast
            (MLC0111).

    Example:
        >>> mlc.lu_solve(mlc.tensor([[3.0], [8.0]]), *mlc.linalg.lu_factor(mlc.tensor([[1.0, 2.0], [4.0, 4.0]])))
        tensor([[1.],
                [1.]], dtype=mlc.float32)
    """
    return lu_solve(LU_data, LU_pivots, b)


@operation(name="linalg.householder_product", autocast="fp32")
def householder_product(A: Operand, tau: Operand) -> Tensor:
    """The first n columns of a product of Householder reflections I - tau[i] * v v^T, as LAPACK's orgqr.

    Args:
        A: Tensor of floats of shape (..., m, n) with m >= n. Vector i is column i below the diagonal, after zeros and a
            one on it.
        tau: Tensor of shape (..., k) with k <= n.

    Returns:
        Tensor of the shape of `A`.

    Raises:
        UserError: `A` is no matrix (MLC0364), shapes do not fit (MLC0367), or a size is symbolic (MLC0365).

    Example:
        >>> mlc.linalg.householder_product(mlc.tensor([[1.0], [1.0]]), mlc.tensor([1.0]))
        tensor([[ 0.],
                [-1.]], dtype=mlc.float32)
    """
    x, factors = as_matrix(A), floating(tau)
    m, n, k = (known_size(d, "a size") for d in (*x.shape[-2:], factors.shape[-1] if factors.ndim else 0))
    if not m >= n >= k or factors.shape[:-1] != x.shape[:-2]:
        raise UserError(f"{k} reflections for a matrix of {m} rows and {n} columns", code="MLC0367")
    row, column = (emit(T.Iota, (m, n), a, i64) for a in range(2))
    vectors = tracer(E.where(row > column, x, cast(tracer(row == column), x.type.dtype)))
    out: Tensor = broadcast_to(cast(tracer(row == column), x.type.dtype), x.shape)
    batch = x.shape[:-2]
    for i in reversed(range(k)):
        v = reshape(tracer(vectors[..., i]), [*batch, m, 1])
        t = reshape(tracer(factors[..., i]), [*batch, 1, 1])
        out = out - t * v * contract.matmul(matrix_transpose(v), out)
    return out
