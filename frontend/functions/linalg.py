"""Linear algebra under the names of torch.linalg: on the last two dimensions, the others a batch.

Where PyTorch raises an error for a matrix that is singular or not positive definite, results here are infinite or NaN:
compiled code does not stop in the middle. Integer and 16-bit operands are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from mlc.dialects import tensor as T
from mlc.frontend.functions import contract
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.index import diagonal
from mlc.frontend.functions.shape import cat, movedim, narrow, tril, triu
from mlc.frontend.operands import (
    axis,
    broadcast_shapes,
    broadcast_to,
    cast,
    floating,
    full,
    plain_int,
    reshape,
    same_shape,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import f32, f64, i32, i64


class Qr(NamedTuple):
    """What `qr` returns."""

    Q: Tensor
    R: Tensor


class Eigh(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Svd(NamedTuple):
    """What `svd` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class LuFactor(NamedTuple):
    """What `lu_factor` returns."""

    LU: Tensor
    pivots: Tensor


class Lu(NamedTuple):
    """What `lu` returns."""

    P: Tensor
    L: Tensor
    U: Tensor


class Slogdet(NamedTuple):
    """What `slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor


class Lstsq(NamedTuple):
    """What `lstsq` returns."""

    solution: Tensor
    residuals: Tensor


# -- operands ---------------------------------------------------------------------------------------------------------
def _matrix(input: Operand) -> Tracer:
    x = floating(input)
    if x.ndim < 2:
        raise UserError(f"expected matrices, found {x.ndim} dimensions", code="MLC0364")
    return x if x.type.dtype in (f32, f64) else cast(x, f32)


def _square(input: Operand) -> Tracer:
    x = _matrix(input)
    if x.shape[-1] != x.shape[-2]:
        raise UserError(f"the matrix has {x.shape[-2]} rows and {x.shape[-1]} columns, which must be equal",
                        code="MLC0367")
    return x


def _symmetric(input: Operand, upper: bool = False) -> Tracer:
    """The symmetric matrix one of whose triangles is that of a square one; derivatives reach both alike."""
    x = _square(input)
    y = _mt(x)
    row, column = (emit(T.Iota, x.shape[-2:], a, i64) for a in range(2))
    kept = tracer(E.where((row <= column) if upper else (row >= column), x, y))
    even = tracer((x + y) * 0.5)
    return tracer(even + E.detach(kept - even))


def _together(a: Tracer, b: Tracer) -> tuple[Tracer, Tracer]:
    """Matrices of one element type and batch."""
    dtype = f64 if f64 in (a.type.dtype, b.type.dtype) else f32
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = cast(a, dtype), cast(b, dtype)
    return broadcast_to(a, [*batch, *a.shape[-2:]]), broadcast_to(b, [*batch, *b.shape[-2:]])


def _right_sides(a: Tracer, other: Operand) -> tuple[Tracer, bool]:
    """What is solved for, as matrices; whether it was vectors, which PyTorch tells by the shape."""
    b = floating(other)
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and same_shape(b.shape, a.shape[:-1]))
    b = reshape(b, [*b.shape, 1]) if vector else b
    if b.ndim < 2 or b.shape[-2] != a.shape[-2]:
        raise UserError(f"right-hand sides of shape [{', '.join(map(str, b.shape))}] do not fit {a.shape[-2]} rows",
                        code="MLC0367")
    return b, vector


def _known(n: Any, what: str) -> int:
    if not isinstance(n, int):
        raise UserError(f"{what} must be known, found {n}", code="MLC0365")
    return n


def _eye(n: Any, like: Tracer) -> Tracer:
    """The identity as a matrix of the element type."""
    row, column = (emit(T.Iota, (n, n), a, i64) for a in range(2))
    return cast(tracer(row == column), like.type.dtype)


def _mt(x: Tensor) -> Tracer:
    y = tracer(x)
    return emit(T.Transpose, y, (*range(y.ndim - 2), y.ndim - 1, y.ndim - 2))  # type: ignore[no-any-return]


def _solve(a: Tracer, b: Tracer, upper: bool, transposed: bool = False, unit: bool = False) -> Tracer:
    return emit(T.TriangularSolve, a, b, upper, transposed, unit)  # type: ignore[no-any-return]


# -- factorisations ---------------------------------------------------------------------------------------------------
@operation(name="linalg.cholesky")
def cholesky(input: Operand, *, upper: bool = False) -> Tensor:
    """The Cholesky factor: the lower triangular L with input = L L^T and a positive diagonal.

    A matrix that is not positive definite gives NaN, where PyTorch raises an error. The derivative is symmetric.

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
    out = emit(T.Cholesky, _symmetric(input, bool(upper)))
    return _mt(out) if upper else out


@operation(name="linalg.qr")
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
    x = _matrix(A)
    if mode not in ("reduced", "complete", "r"):
        raise UserError(f"mode = {mode!r}", code="MLC0360", hint='use "reduced", "complete" or "r"')
    q, r = emit(T.Qr, x, mode == "complete")
    return Qr(full(0, x, [0]) if mode == "r" else q, r)


@operation(name="linalg.eigh")
def eigh(A: Operand, UPLO: str = "L") -> Eigh:
    """Eigenvalues, in ascending order, and eigenvectors of symmetric matrices: A = V diag(w) V^T.

    Derivatives of eigenvectors are infinite where eigenvalues are equal. Signs of eigenvectors are not fixed.

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
    return Eigh(*emit(T.Eigh, _symmetric(A, UPLO == "U")))


@operation(name="linalg.eigvalsh")
def eigvalsh(A: Operand, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, in ascending order.

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
    return eigh(A, UPLO).eigenvalues


@operation(name="linalg.svd")
def svd(A: Operand, full_matrices: bool = True) -> Svd:
    """The singular value decomposition: A = U diag(S) Vh with orthonormal U and Vh, and S in descending order.

    Derivatives reach the first min(m, n) columns of U and rows of Vh, and are infinite where singular values are equal.
    Signs of singular vectors are not fixed.

    Args:
        A: Tensor of floats of shape (..., m, n).
        full_matrices: Whether U and Vh are square; otherwise they have min(m, n) columns and rows.

    Returns:
        Named tuple of `U`, of shape (..., m, m or k), `S`, of shape (..., k), and `Vh`, of shape (..., n or k, n).

    Raises:
        UserError: `A` is no matrix (MLC0364).

    Example:
        >>> mlc.linalg.svd(mlc.tensor([[3.0, 0.0], [0.0, 4.0]])).S
        tensor([4., 3.], dtype=mlc.float32)
    """
    x = _matrix(A)
    u, s, v = emit(T.Svd, x)
    if full_matrices:
        u, v = _completed(u), _mt(_completed(_mt(v)))
    return Svd(u, s, v)


def _completed(u: Tracer) -> Tracer:
    """Orthonormal columns and further ones, up to a square matrix."""
    m, k = u.shape[-2:]
    if m == k:
        return u
    q, _ = emit(T.Qr, tracer(E.detach(u)), True)
    return tracer(cat([u, E.detach(narrow(q, -1, k, m - k))], -1))


@operation(name="linalg.svdvals")
def svdvals(A: Operand) -> Tensor:
    """The singular values of matrices, in descending order.

    Args:
        A: Tensor of floats of shape (..., m, n).

    Returns:
        Tensor of shape (..., min(m, n)).

    Raises:
        UserError: `A` is no matrix (MLC0364).

    Example:
        >>> mlc.linalg.svdvals(mlc.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor([4., 3.], dtype=mlc.float32)
    """
    return tracer(emit(T.Svd, _matrix(A))[1])


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
    lu, pivots, _ = emit(T.Lu, _matrix(A))
    return LuFactor(lu, cast(tracer(pivots + 1), i32))


def _permutation_matrix(order: Tracer, like: Tracer) -> Tracer:
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
    x = _matrix(A)
    factors = emit(T.Lu, x)
    packed = factors[0]
    m, k = x.shape[-2], factors[1].shape[-1]
    lower = tracer(tril(narrow(packed, -1, 0, k), -1))
    one = cast(tracer(emit(T.Iota, (m, k), 0, i64) == emit(T.Iota, (m, k), 1, i64)), x.type.dtype)
    return Lu(_permutation_matrix(factors[2], x), lower + one, triu(narrow(packed, -2, 0, k)))


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
        UserError: an operand is no matrix (MLC0364), or shapes do not fit (MLC0367).

    Example:
        >>> mlc.linalg.lu_solve(*mlc.linalg.lu_factor(mlc.tensor([[1.0, 2.0], [4.0, 4.0]])), mlc.tensor([[3.0], [8.0]]))
        tensor([[1.],
                [1.]], dtype=mlc.float32)
    """
    a = _square(LU)
    b, at = _matrix(B), cast(tracer(pivots), i64)
    if at.shape[-1:] != a.shape[-1:]:
        raise UserError(f"pivots of shape [{', '.join(map(str, at.shape))}] do not fit {a.shape[-1]} rows",
                        code="MLC0367")
    if not left:
        return _mt(lu_solve(a, at, _mt(b), adjoint=not adjoint))
    order = emit(_order, at)
    order = broadcast_to(order, [*a.shape[:-1]])
    if not adjoint:
        a, b = _together(a, b)
        y = _solve(a, _taken(b, order), False, unit=True)
        return _solve(a, y, True)
    a, b = _together(a, b)
    y = _solve(a, _solve(a, b, True, True), False, True, True)
    return _taken(y, emit(T.ArgSort, order, order.ndim - 1))


def _order(pivots: Any) -> Any:
    """The permutation that exchanges of row i and row pivots[i] - 1 amount to."""
    from mlc.dialects.tensor.linalg.elimination import order_of_pivots
    return order_of_pivots(pivots)


def _taken(x: Tracer, order: Tracer) -> Tracer:
    """Rows in another order."""
    index = broadcast_to(reshape(order, [*order.shape, 1]), [*x.shape[:-2], order.shape[-1], 1])
    return emit(T.TakeAlong, x, broadcast_to(index, x.shape), x.ndim - 2)  # type: ignore[no-any-return]


# -- solving ----------------------------------------------------------------------------------------------------------
@operation(name="linalg.solve_triangular")
def solve_triangular(A: Operand, B: Operand, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """The solution X of A X = B for a triangular A, by substitution.

    Args:
        A: Tensor of floats of shape (..., n, n), of which only one triangle counts.
        B: Tensor of floats of shape (..., n, k), or (..., k, n) if not `left`.
        upper: Whether A is the upper triangle; otherwise the lower one.
        left: Whether to solve A X = B; otherwise X A = B.
        unitriangular: Whether the diagonal is taken as ones.

    Returns:
        Tensor of the broadcast shape of `B`; infinite or NaN where a diagonal has a 0.

    Raises:
        UserError: an operand is no matrix (MLC0364), or shapes do not fit (MLC0367).

    Example:
        >>> mlc.linalg.solve_triangular(mlc.tensor([[2.0, 1.0], [0.0, 4.0]]), mlc.tensor([[4.0], [8.0]]), upper=True)
        tensor([[1.],
                [2.]], dtype=mlc.float32)
    """
    a, b = _square(A), _matrix(B)
    if not left:
        b = _mt(b)
    if b.shape[-2] != a.shape[-1]:
        raise UserError(f"a matrix of {a.shape[-1]} rows does not fit right-hand sides of {b.shape[-2]}",
                        code="MLC0367")
    a, b = _together(a, b)
    out = _solve(a, b, bool(upper), not left, bool(unitriangular))
    return out if left else _mt(out)


@operation(name="linalg.solve")
def solve(A: Operand, B: Operand, *, left: bool = True) -> Tensor:
    """The solution X of A X = B, by LU factorization with partial pivoting.

    A singular A gives infinities or NaN, where PyTorch raises an error.

    Args:
        A: Tensor of floats of shape (..., n, n).
        B: Tensor of floats of shape (..., n, k), or (..., n) for vectors: 1-D, or of the shape of `A` without its last
            dimension.
        left: Whether to solve A X = B; otherwise X A = B, for matrices only.

    Returns:
        Tensor of the broadcast shape of `B`.

    Raises:
        UserError: an operand is no matrix (MLC0364), or shapes do not fit (MLC0367).

    Example:
        >>> mlc.linalg.solve(mlc.tensor([[2.0, 0.0], [1.0, 4.0]]), mlc.tensor([2.0, 9.0]))
        tensor([1., 2.], dtype=mlc.float32)
    """
    a = _square(A)
    if not left:
        return _mt(solve(_mt(a), _mt(_matrix(B))))
    b, vector = _right_sides(a, B)
    a, b = _together(a, b)
    out = emit(T.Solve, a, b)
    return reshape(out, out.shape[:-1]) if vector else out


@operation(name="linalg.inv")
def inv(A: Operand) -> Tensor:
    """The inverse of matrices, by LU factorization with partial pivoting.

    A singular matrix gives infinities or NaN, where PyTorch raises an error.

    Args:
        A: Tensor of floats of shape (..., n, n).

    Returns:
        Tensor of the shape of `A`.

    Raises:
        UserError: `A` is no matrix (MLC0364) or not square (MLC0367).

    Example:
        >>> mlc.linalg.inv(mlc.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5 , 0.  ],
                [0.  , 0.25]], dtype=mlc.float32)
    """
    a = _square(A)
    return emit(T.Solve, a, broadcast_to(_eye(a.shape[-1], a), a.shape))  # type: ignore[no-any-return]


@operation(name="linalg.lstsq")
def lstsq(A: Operand, B: Operand, *, rcond: Any = None, driver: str | None = None) -> Lstsq:
    """The least-squares solution X of A X = B: of those with the least |A X - B| the one with the least |X|.

    It is pinv(A) @ B, for matrices of any rank. PyTorch returns rank and singular values, too.

    Args:
        A: Tensor of floats of shape (..., m, n).
        B: Tensor of floats of shape (..., m, k), or (..., m) for vectors.
        rcond: Singular values up to this part of the greatest count as 0, as `rtol` of `pinv`.
        driver: Accepted for PyTorch's sake.

    Returns:
        Named tuple of `solution`, of shape (..., n, k) or (..., n), and `residuals`, sums of squares of shape (..., k),
        empty unless m > n.

    Raises:
        UserError: `A` is no matrix (MLC0364), or shapes do not fit (MLC0367).

    Example:
        >>> mlc.linalg.lstsq(mlc.tensor([[1.0], [1.0]]), mlc.tensor([1.0, 3.0])).solution
        tensor([1.9999999], dtype=mlc.float32)
    """
    b, vector = _right_sides(_matrix(A), B)
    a, b = _together(_matrix(A), b)
    m, n = a.shape[-2:]
    x = contract.matmul(pinv(a, rtol=rcond), b)
    rest = tracer(contract.matmul(a, x) - b)
    over = isinstance(m, int) and isinstance(n, int) and m > n
    residuals = R.sum(rest * rest, -2) if over else full(0, b, [0])
    return Lstsq(reshape(tracer(x), tracer(x).shape[:-1]) if vector else x, residuals)


@operation(name="linalg.pinv")
def pinv(A: Operand, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False) -> Tensor:
    """The Moore-Penrose pseudoinverse of matrices, by singular value decomposition.

    Singular values up to max(atol, rtol * the greatest) count as 0.

    Args:
        A: Tensor of floats of shape (..., m, n).
        atol: Absolute bound; 0 by default.
        rtol: Relative bound; by default max(m, n) times the epsilon of the dtype, or 0 if `atol` is above 0.
        hermitian: Accepted for PyTorch's sake; the result is the same.

    Returns:
        Tensor of shape (..., n, m).

    Raises:
        UserError: `A` is no matrix (MLC0364), or a bound is no number (MLC0421).

    Example:
        >>> mlc.linalg.pinv(mlc.tensor([[2.0, 0.0], [0.0, 0.0]]))
        tensor([[0.5, 0. ],
                [0. , 0. ]], dtype=mlc.float32)
    """
    for b in (atol, rtol):
        if not (b is None or isinstance(b, int | float)):
            raise UserTypeError(f"a bound is {type(b).__name__} {b!r}, expected a number"[:200], code="MLC0421")
    bounds = [None if b is None else float(b) for b in (atol, rtol)]
    return emit(T.Pinv, _matrix(A), *bounds)  # type: ignore[no-any-return]


def _cut(a: Tracer, s: Tracer, atol: Any, rtol: Any) -> Tensor:
    """Which singular values count as zero: those up to this."""
    m, n = a.shape[-2:]
    eps = 2.0 ** (-52 if a.type.dtype == f64 else -23)
    if rtol is None:
        rtol = E.mul(E.maximum(tracer(m), tracer(n)), eps)
        rtol = rtol if atol is None else E.where(tracer(atol) > 0, 0.0, rtol)
    if 0 in s.shape:
        return reshape(full(0, s, [1]), [1] * s.ndim)
    least, part = (0.0 if b is None else _column(b) for b in (atol, rtol))
    return E.maximum(E.mul(E.detach(R.amax(s, -1, keepdim=True)), part), least)


def _column(bound: Any) -> Tracer:
    """A number, or one for each matrix of a batch, beside that matrix's singular values."""
    b = tracer(bound)
    return reshape(b, [*b.shape, 1]) if b.ndim else b


# -- numbers of a matrix ----------------------------------------------------------------------------------------------
def _parity(order: Tracer, pivots: Tracer) -> Tensor:
    """1 if an even number of rows were exchanged, else -1."""
    moved = R.sum(pivots != emit(T.Iota, (pivots.shape[-1],), 0, i64), -1)
    return 1 - 2 * (moved % 2)


@operation(name="linalg.det")
def det(A: Operand) -> Tensor:
    """The determinant of matrices, by LU factorization.

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
    a = _square(A)
    packed, pivots, order = emit(T.Lu, a)
    return R.prod(diagonal(packed, 0, -2, -1), -1) * cast(tracer(_parity(order, pivots)), a.type.dtype)


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
    a = _square(A)
    packed, pivots, order = emit(T.Lu, a)
    line = tracer(diagonal(packed, 0, -2, -1))
    sign = R.prod(E.sign(line), -1) * cast(tracer(_parity(order, pivots)), a.type.dtype)
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
    return E.where(sign < 0, float("nan"), size)


@operation(name="linalg.matrix_rank")
def matrix_rank(A: Operand, *, atol: Operand = None, rtol: Operand = None, hermitian: bool = False) -> Tensor:
    """The rank of matrices: the number of singular values above max(atol, rtol * the greatest).

    Args:
        A: Tensor of floats of shape (..., m, n).
        atol: Absolute bound, a number or a tensor of shape (...); 0 by default.
        rtol: Relative bound, likewise; by default max(m, n) times the epsilon of the dtype, or 0 where `atol` is above
            0.
        hermitian: Accepted for PyTorch's sake; the result is the same.

    Returns:
        Tensor of int64 of shape (...).

    Raises:
        UserError: `A` is no matrix (MLC0364).

    Example:
        >>> mlc.linalg.matrix_rank(mlc.tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(1, dtype=mlc.int64)
    """
    a = _matrix(A)
    s = tracer(emit(T.Svd, a)[1])
    return R.sum(s > _cut(a, s, atol, rtol), -1)


@operation(name="linalg.vector_norm")
def vector_norm(x: Operand, ord: Any = 2, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """(sum_i |x[i]| ** ord) ** (1 / ord), the vector norm of the elements over `dim`.

    As `mlc.norm`, also of integers, which become float32.

    Args:
        x: Tensor or number.
        ord: The exponent; inf and -inf give the greatest and the least |x[i]|, 0 the number of elements that are not 0.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Tensor of floats without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356), or `ord` is no number (MLC0360).

    Example:
        >>> mlc.linalg.vector_norm(mlc.tensor([3.0, 4.0]))
        tensor(5., dtype=mlc.float32)
    """
    return R.norm(floating(x), ord, dim, keepdim)


def _greatest(x: Tensor) -> Tensor:
    """The greatest of numbers that are not negative, along the last dimension; 0 of none."""
    return R.sum(x, -1) if tracer(x).shape[-1] == 0 else R.amax(x, -1)


@operation(name="linalg.matrix_norm")
def matrix_norm(A: Operand, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False) -> Tensor:
    """A norm of matrices.

    Args:
        A: Tensor of at least two dimensions; integers become float32.
        ord: "fro" for the Frobenius norm, "nuc" for the sum of singular values, 1 and -1 for the greatest and the least
            sum of a column's |A[i, j]|, inf and -inf for those of a row, 2 and -2 for the greatest and the least
            singular value.
        dim: The two dimensions of the matrices; negative ones count from the last.
        keepdim: Whether these dimensions stay, with size 1.

    Returns:
        Tensor of floats without the two dimensions.

    Raises:
        UserError: `dim` names no two dimensions (MLC0357), or one is out of range (MLC0356), or `ord` is none of these
            (MLC0360).

    Example:
        >>> mlc.linalg.matrix_norm(mlc.tensor([[3.0, 0.0], [0.0, 4.0]]), "nuc")
        tensor(7., dtype=mlc.float32)
    """
    x = floating(A)
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


@operation(name="linalg.norm")
def norm(A: Operand, ord: Any = None, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """A vector norm, or a norm of matrices where `ord` is given for two dimensions.

    Args:
        A: Tensor; integers become float32.
        ord: As in `vector_norm` or `matrix_norm`; None for the 2-norm of the elements.
        dim: One dimension for vectors, two for matrices; None for all.
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Tensor of floats without the dimensions of `dim`.

    Raises:
        UserError: `ord` is given for more than two dimensions without `dim` (MLC0364) or is no norm (MLC0360), or `dim`
            is out of range (MLC0356).

    Example:
        >>> mlc.linalg.norm(mlc.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(5., dtype=mlc.float32)
        >>> mlc.linalg.norm(mlc.tensor([[3.0, 0.0], [0.0, 4.0]]), 2)
        tensor(4., dtype=mlc.float32)
    """
    x = floating(A)
    both = isinstance(dim, tuple | list) and len(dim) == 2
    if ord is not None and (both or (dim is None and x.ndim == 2)):
        pair = (dim[0], dim[1]) if isinstance(dim, tuple | list) else (-2, -1)
        return matrix_norm(x, ord, pair, keepdim)
    if ord is not None and dim is None and x.ndim > 1:
        raise UserError(f"the norm of {x.ndim} dimensions needs dim", code="MLC0364")
    return vector_norm(x, 2 if ord is None else ord, dim, keepdim)


@operation(name="linalg.cond")
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
    x = _matrix(A)
    if 0 in x.shape[-2:]:
        return full(0, x, x.shape[:-2])
    if p in (None, 2, -2):
        s = svdvals(x)
        large, small = R.amax(s, -1), R.amin(s, -1)
        return E.div(small, large) if p == -2 else E.div(large, small)
    out = matrix_norm(x, p) * matrix_norm(inv(x), p)
    regular = E.logical_or(R.any(E.isnan(x), (-2, -1)), E.logical_not(E.isnan(out)))
    return E.where(regular, out, math.inf)


# -- powers -----------------------------------------------------------------------------------------------------------
@operation(name="linalg.matrix_power")
def matrix_power(A: Operand, n: int) -> Tensor:
    """A @ A @ ... @ A, n times; for a negative n, the power of the inverse; for 0, the identity.

    It takes about log2(n) products, by repeated squaring.

    Args:
        A: Tensor of shape (..., m, m); integers become float32.
        n: Python integer.

    Returns:
        Tensor of the shape of `A`.

    Raises:
        UserError: `A` is no matrix (MLC0364) or not square (MLC0367), or `n` is no integer (MLC0355).

    Example:
        >>> mlc.linalg.matrix_power(mlc.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
        tensor([[1., 3.],
                [0., 1.]], dtype=mlc.float32)
    """
    a, power = _square(A), plain_int(n, "n")
    if power == 0:
        return broadcast_to(_eye(a.shape[-1], a), a.shape)
    base: Tensor = a if power > 0 else inv(a)
    result, left = None, abs(power)
    while left:
        if left & 1:
            result = base if result is None else contract.matmul(result, base)
        left >>= 1
        base = contract.matmul(base, base) if left else base
    assert result is not None
    return result


@operation(name="linalg.multi_dot")
def multi_dot(tensors: Sequence[Operand]) -> Tensor:
    """The product of several matrices, in the order that takes the fewest multiplications.

    The order is found by dynamic programming (Cormen, Leiserson, Rivest and Stein, matrix-chain multiplication).

    Args:
        tensors: At least two matrices of known sizes; the first may be a row and the last a column, as vectors.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        UserError: there are fewer than two (MLC0353), one is no matrix (MLC0364), a size is symbolic (MLC0365), or
            inner sizes differ (MLC0367).

    Example:
        >>> mlc.linalg.multi_dot([mlc.ones(2, 3), mlc.ones(3, 4), mlc.ones(4, 1)])
        tensor([[12.],
                [12.]], dtype=mlc.float32)
    """
    xs = [tracer(x) for x in tensors]
    if len(xs) < 2:
        raise UserError(f"multi_dot of {len(xs)} tensors, expected at least 2", code="MLC0353")
    for i, x in enumerate(xs):
        if x.ndim != 2 and not (x.ndim == 1 and i in (0, len(xs) - 1)):
            raise UserError(f"operand {i} has {x.ndim} dimensions, expected a matrix", code="MLC0364")
    first, last = xs[0].ndim == 1, xs[-1].ndim == 1
    xs[0] = reshape(xs[0], [1, *xs[0].shape]) if first else xs[0]
    xs[-1] = reshape(xs[-1], [*xs[-1].shape, 1]) if last else xs[-1]
    sides = [_known(d, "a size") for d in (xs[0].shape[0], *(x.shape[-1] for x in xs))]
    out = _product(xs, sides, _best_splits(sides), 0, len(xs) - 1)
    shape = tracer(out).shape
    return reshape(tracer(out), [*(() if first else shape[:1]), *(() if last else shape[1:])])


def _best_splits(sides: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where each product of matrices i to j is split for the least work: sides[i] are the rows of matrix i."""
    n = len(sides) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            work = {k: cost[i, k] + cost[k + 1, j] + sides[i] * sides[k + 1] * sides[j + 1] for k in range(i, j)}
            split[i, j] = min(work, key=lambda k: work[k])
            cost[i, j] = work[split[i, j]]
    return split


def _product(xs: Sequence[Tracer], sides: Sequence[int], split: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return xs[i]
    k = split[i, j]
    return contract.matmul(_product(xs, sides, split, i, k), _product(xs, sides, split, k + 1, j))


@operation(name="linalg.matrix_exp")
def matrix_exp(A: Operand) -> Tensor:
    """The matrix exponential: 1 + A + A A / 2! + A A A / 3! + ...

    Args:
        A: Tensor of floats of shape (..., n, n).

    Returns:
        Tensor of the shape of `A`.

    Raises:
        UserError: `A` is no matrix (MLC0364) or not square (MLC0367).

    Example:
        >>> mlc.linalg.matrix_exp(mlc.tensor([[0.0, 1.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [0., 1.]], dtype=mlc.float32)
    """
    return emit(T.MatrixExp, _square(A))  # type: ignore[no-any-return]
