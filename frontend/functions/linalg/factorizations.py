"""Factorizations of matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.linalg.matrices import (
    as_matrix,
    as_square,
    every_second,
    matrix_transpose,
    representation,
    same_type_and_batch,
    symmetric_from,
    triangular_solve,
)
from mlc.frontend.functions.shape import cat, narrow, tril, triu
from mlc.frontend.operands import broadcast_to, cast, conjugate, full, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import i32, i64


class Qr(NamedTuple):
    """Result of `qr`."""

    Q: Tensor
    R: Tensor


class Eigh(NamedTuple):
    """Result of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Svd(NamedTuple):
    """Result of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class LuFactor(NamedTuple):
    """Result of `lu_factor`."""

    LU: Tensor
    pivots: Tensor


class Lu(NamedTuple):
    """Result of `lu`."""

    P: Tensor
    L: Tensor
    U: Tensor


@operation(name="linalg.cholesky", autocast="fp32")
def cholesky(input: Operand, *, upper: bool = False) -> Tensor:
    """The Cholesky factor: the lower triangular L with input = L L^T and a positive diagonal.

    A matrix that is not positive definite gives NaN, where PyTorch raises an error: in the columns from the first on
    whose leading minor is not positive. The derivative is symmetric.

    Args:
        input: Tensor of floats of shape (..., n, n), of which only the lower triangle counts.
        upper: Whether to read the upper triangle and return L^T.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `input` is no matrix (MLC0364) or not square (MLC0367).

    Example:
        >>> mlc.linalg.cholesky(mlc.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]], dtype=mlc.float32)
    """
    out = emit(T.Cholesky, symmetric_from(input, bool(upper), complex=True))
    return conjugate(matrix_transpose(out)) if upper else out


@operation(name="linalg.qr", autocast="fp32")
def qr(A: Operand, mode: str = "reduced") -> Qr:
    """The QR factorization: A = Q R with orthonormal columns in Q and upper triangular R, by Householder reflections.

    Args:
        A: Tensor of floats of shape (..., m, n).
        mode: "reduced" for min(m, n) columns of Q, "complete" for m of them, "r" for R alone.

    Returns:
        Named tuple of `Q`, of shape (..., m, k), and `R`, of shape (..., k, n). Signs of rows of R are not fixed.

    Raises:
        UserError: `A` is no matrix (MLC0364), or `mode` is another string (MLC0360).

    Example:
        >>> mlc.linalg.qr(mlc.tensor([[3.0, 1.0], [4.0, 2.0]])).R
        tensor([[-5.        , -2.2       ],
                [ 0.        ,  0.39999998]], dtype=mlc.float32)
    """
    x = as_matrix(A)
    if mode not in ("reduced", "complete", "r"):
        raise UserError(f"mode = {mode!r}", code="MLC0360", hint='use "reduced", "complete" or "r"')
    q, r = emit(T.Qr, x, mode == "complete")
    return Qr(full(0, x, [0]) if mode == "r" else q, r)


@operation(name="linalg.eigh", autocast="fp32")
def eigh(A: Operand, UPLO: str = "L") -> Eigh:
    """Eigenvalues, in ascending order, and eigenvectors of symmetric matrices: A = V diag(w) V^T.

    Signs of eigenvectors are not fixed, nor which vectors of the space of equal eigenvalues are given, so that these
    have no derivative. Its terms 1 / (w[j] - w[i]) are left out where eigenvalues are exactly equal, which keeps that
    of functions of whole spaces, such as V V^T of some columns, where PyTorch gives NaN; but it loses a part of that of
    V f(w) V^T. Where they are nearly equal, rounding errors are divided by their difference.

    Args:
        A: Tensor of floats of shape (..., n, n), of which only one triangle counts.
        UPLO: "L" for the lower triangle, "U" for the upper one.

    Returns:
        Named tuple of `eigenvalues`, of shape (..., n), and `eigenvectors`, orthonormal columns of a (..., n, n)
        tensor.

    Raises:
        UserError: `A` is no matrix (MLC0364) or not square (MLC0367), or `UPLO` is another string (MLC0360).

    Example:
        >>> mlc.linalg.eigh(mlc.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        tensor([1., 2.], dtype=mlc.float32)
    """
    if UPLO not in ("L", "U"):
        raise UserError(f"UPLO = {UPLO!r}", code="MLC0360", hint='use "L" or "U"')
    return Eigh(*emit(T.Eigh, symmetric_from(A, UPLO == "U")))


@operation(name="linalg.eigvalsh", autocast="fp32")
def eigvalsh(A: Operand, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, in ascending order.

    The numbers w for which A @ v = w * v has a solution v != 0; they are real. Only one triangle is read, and whether
    the other one is its mirror image is not checked. `mlc.linalg.eigh` gives the vectors too.

    Args:
        A: Tensor of floats of shape (..., n, n), of which only one triangle counts.
        UPLO: "L" for the lower triangle, "U" for the upper one.

    Returns:
        Tensor of shape (..., n).

    Raises:
        UserError: `A` is no matrix (MLC0364) or not square (MLC0367), or `UPLO` is another string (MLC0360).

    Example:
        >>> mlc.linalg.eigvalsh(mlc.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([1., 2.], dtype=mlc.float32)
    """
    if not tracer(A).type.dtype.is_complex:
        return eigh(A, UPLO).eigenvalues
    if UPLO not in ("L", "U"):
        raise UserError(f"UPLO = {UPLO!r}", code="MLC0360", hint='use "L" or "U"')
    return every_second(emit(T.Eigh, representation(symmetric_from(A, UPLO == "U", complex=True)))[0])


@operation(name="linalg.svd", autocast="fp32")
def svd(A: Operand, full_matrices: bool = True, *, driver: str | None = None) -> Svd:
    """The singular value decomposition: A = U diag(S) Vh with orthonormal U and Vh, and S in descending order.

    Derivatives reach the first min(m, n) columns of U and rows of Vh, and leave out terms 1 / (S[j] - S[i]) of equal
    singular values, as those of `eigh`. Signs of singular vectors are not fixed.

    Args:
        A: Tensor of floats of shape (..., m, n).
        full_matrices: Whether U and Vh are square; otherwise they have min(m, n) columns and rows.
        driver: Accepted for PyTorch's sake: None, "gesvd", "gesvdj" or "gesvda", routines with the same results.

    Returns:
        Named tuple of `U`, of shape (..., m, m or k), `S`, of shape (..., k), and `Vh`, of shape (..., n or k, n).

    Raises:
        UserError: `A` is no matrix (MLC0364), or `driver` is another string (MLC0360).

    Example:
        >>> mlc.linalg.svd(mlc.tensor([[3.0, 0.0], [0.0, 4.0]])).S
        tensor([4., 3.], dtype=mlc.float32)
    """
    _check_driver(driver)
    x = as_matrix(A)
    u, s, v = emit(T.Svd, x)
    if full_matrices:
        u, v = _completed(u), matrix_transpose(_completed(matrix_transpose(v)))
    return Svd(u, s, v)


def _check_driver(driver: str | None) -> None:
    if driver not in (None, "gesvd", "gesvdj", "gesvda"):
        raise UserError(f"driver = {driver!r}", code="MLC0360", hint='use None, "gesvd", "gesvdj" or "gesvda"')


def _completed(u: Tracer) -> Tracer:
    """Extend orthonormal columns to an orthogonal square matrix."""
    m, k = u.shape[-2:]
    if m == k:
        return u
    q, _ = emit(T.Qr, tracer(E.detach(u)), True)
    return tracer(cat([u, E.detach(narrow(q, -1, k, m - k))], -1))


@operation(name="linalg.svdvals", autocast="fp32")
def svdvals(A: Operand, *, driver: str | None = None) -> Tensor:
    """The singular values of matrices, in descending order.

    The square roots of the eigenvalues of A.T @ A, all at least 0: those of `mlc.linalg.svd`, without the vectors. The
    first of them is the matrix norm of order 2, and their number above rounding errors the rank.

    Args:
        A: Tensor of floats of shape (..., m, n).
        driver: As of `svd`.

    Returns:
        Tensor of shape (..., min(m, n)).

    Raises:
        UserError: `A` is no matrix (MLC0364), or `driver` is another string (MLC0360).

    Example:
        >>> mlc.linalg.svdvals(mlc.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor([4., 3.], dtype=mlc.float32)
    """
    _check_driver(driver)
    x = as_matrix(A, complex=True)
    if x.type.dtype.is_complex:
        return every_second(emit(T.Svd, representation(x))[1])
    return tracer(emit(T.Svd, x)[1])


@operation(name="linalg.lu_factor")
def lu_factor(A: Operand, *, pivot: bool = True) -> LuFactor:
    """The LU factorization with partial pivoting, in one matrix, as LAPACK's getrf has it.

    Args:
        A: Tensor of floats of shape (..., m, n).
        pivot: Must be True.

    Returns:
        Named tuple of `LU`, of the shape of `A`, with the unit lower factor below the diagonal and the upper one on and
        above it, and `pivots`, int32 of shape (..., min(m, n)): row i was exchanged with row pivots[i] - 1.

    Raises:
        UserError: `A` is no matrix (MLC0364), or `pivot` is False (MLC0360).

    Example:
        >>> mlc.linalg.lu_factor(mlc.tensor([[1.0, 2.0], [4.0, 4.0]]))
        LuFactor(LU=tensor([[4.  , 4.  ],
                [0.25, 1.  ]], dtype=mlc.float32), pivots=tensor([2, 2], dtype=mlc.int32))
    """
    if not pivot:
        raise UserError("pivot = False: not every matrix has such a factorisation", code="MLC0360")
    lu, pivots, _ = emit(T.Lu, as_matrix(A, complex=True))
    return LuFactor(lu, cast(tracer(pivots + 1), i32))


def permutation_matrix(order: Tracer, like: Tracer) -> Tracer:
    """P with P[order[i], i] = 1."""
    n = order.shape[-1]
    rows = emit(T.Iota, (n, 1), 0, i64)
    return cast(tracer(reshape(order, [*order.shape[:-1], 1, n]) == rows), like.type.dtype)


@operation(name="linalg.lu")
def lu(A: Operand, *, pivot: bool = True) -> Lu:
    """The LU factorization with partial pivoting: A = P L U.

    Args:
        A: Tensor of floats of shape (..., m, n).
        pivot: Must be True.

    Returns:
        Named tuple of `P`, a permutation matrix of size m, `L`, of shape (..., m, k), with ones on the diagonal, and
        `U`, of shape (..., k, n), for k = min(m, n).

    Raises:
        UserError: `A` is no matrix (MLC0364), or `pivot` is False (MLC0360).

    Example:
        >>> mlc.linalg.lu(mlc.tensor([[1.0, 2.0], [4.0, 4.0]])).L
        tensor([[1.  , 0.  ],
                [0.25, 1.  ]], dtype=mlc.float32)
    """
    if not pivot:
        raise UserError("pivot = False: not every matrix has such a factorisation", code="MLC0360")
    x = as_matrix(A, complex=True)
    factors = emit(T.Lu, x)
    packed = factors[0]
    m, k = x.shape[-2], factors[1].shape[-1]
    lower = tracer(tril(narrow(packed, -1, 0, k), -1))
    one = cast(tracer(emit(T.Iota, (m, k), 0, i64) == emit(T.Iota, (m, k), 1, i64)), x.type.dtype)
    return Lu(permutation_matrix(factors[2], x), lower + one, triu(narrow(packed, -2, 0, k)))


@operation(name="linalg.lu_solve")
def lu_solve(LU: Operand, pivots: Operand, B: Operand, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """The solution X of A X = B from the LU factorization of A.

    Args:
        LU: Tensor of floats of shape (..., n, n), of `lu_factor`.
        pivots: Tensor of integers of shape (..., n), of `lu_factor`.
        B: Tensor of floats of shape (..., n, k), or (..., k, n) if not `left`.
        left: Whether to solve A X = B; otherwise X A = B.
        adjoint: Whether to take A^T in place of A.

    Returns:
        Tensor of the broadcast shape of `B`.

    Raises:
        UserError: an operand is no matrix (MLC0364), shapes do not fit (MLC0367), or the shapes do not broadcast
            (MLC0111).

    Example:
        >>> mlc.linalg.lu_solve(*mlc.linalg.lu_factor(mlc.tensor([[1.0, 2.0], [4.0, 4.0]])), mlc.tensor([[3.0], [8.0]]))
        tensor([[1.],
                [1.]], dtype=mlc.float32)
    """
    a = as_square(LU, complex=True)
    b, at = as_matrix(B, complex=True), cast(tracer(pivots), i64)
    if at.shape[-1:] != a.shape[-1:]:
        raise UserError(f"pivots of shape [{', '.join(map(str, at.shape))}] do not fit {a.shape[-1]} rows",
                        code="MLC0367", symbols=sizes.symbols(*at.shape[-1:], a.shape[-1]))
    if adjoint and (a.type.dtype.is_complex or b.type.dtype.is_complex):
        return conjugate(tracer(_solution_by_lu(a, at, conjugate(b), left, left)))
    return _solution_by_lu(a, at, b, left, left == adjoint)


def _solution_by_lu(a: Tracer, at: Tracer, b: Tracer, left: bool, transposed: bool) -> Tensor:
    """The solution of A X = B, or A^T X = B; of X A^T = B, or X A = B, if not `left`."""
    if not left:
        return matrix_transpose(_solution_by_lu(a, at, matrix_transpose(b), True, transposed))
    order = emit(order_of, at)
    order = broadcast_to(order, [*a.shape[:-1]])
    if not transposed:
        a, b = same_type_and_batch(a, b)
        y = triangular_solve(a, _taken(b, order), False, unit=True)
        return triangular_solve(a, y, True)
    a, b = same_type_and_batch(a, b)
    y = triangular_solve(a, triangular_solve(a, b, True, True), False, True, True)
    return _taken(y, emit(T.ArgSort, order, order.ndim - 1))


def order_of(pivots: Any) -> Any:
    """The permutation that results from exchanging row i and row pivots[i] - 1 for each i."""
    from mlc.dialects.tensor.linalg.elimination import order_of_pivots
    return order_of_pivots(pivots)


def _taken(x: Tracer, order: Tracer) -> Tracer:
    """Permute the rows of a matrix."""
    index = broadcast_to(reshape(order, [*order.shape, 1]), [*x.shape[:-2], order.shape[-1], 1])
    return emit(T.TakeAlong, x, broadcast_to(index, x.shape), x.ndim - 2)  # type: ignore[no-any-return]
