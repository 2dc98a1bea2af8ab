"""Systems of equations, inverses and pseudoinverses."""

from __future__ import annotations

from typing import Any, NamedTuple

from mlc.dialects import tensor as T
from mlc.frontend.functions import contract
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.linalg.factorizations import svdvals
from mlc.frontend.functions.linalg.matrices import (
    as_matrix,
    as_square,
    identity_like,
    known_size,
    matrix_transpose,
    representation,
    right_sides,
    same_type_and_batch,
    symmetric_from,
    triangular_solve,
)
from mlc.frontend.functions.shape import narrow
from mlc.frontend.operands import broadcast_to, cast, full, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import ComplexType, f64


class Lstsq(NamedTuple):
    """Result of `lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


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
    a, b = as_square(A, complex=True), as_matrix(B, complex=True)
    if not left:
        b = matrix_transpose(b)
    if b.shape[-2] != a.shape[-1]:
        raise UserError(f"a matrix of {a.shape[-1]} rows does not fit right-hand sides of {b.shape[-2]}",
                        code="MLC0367", symbols=sizes.symbols(a.shape[-1], b.shape[-2]))
    a, b = same_type_and_batch(a, b)
    out = triangular_solve(a, b, bool(upper), not left, bool(unitriangular))
    return out if left else matrix_transpose(out)


@operation(name="linalg.solve", autocast="fp32")
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
    a = as_square(A, complex=True)
    if not left:
        return matrix_transpose(solve(matrix_transpose(a), matrix_transpose(as_matrix(B, complex=True))))
    b, vector = right_sides(a, B)
    a, b = same_type_and_batch(a, b)
    out = emit(T.Solve, a, b)
    return reshape(out, out.shape[:-1]) if vector else out


@operation(name="linalg.inv", autocast="fp32")
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
    a = as_square(A, complex=True)
    return emit(T.Solve, a, broadcast_to(identity_like(a.shape[-1], a), a.shape))  # type: ignore[no-any-return]


@operation(name="linalg.lstsq", static=("A",), autocast="fp32")
def lstsq(A: Operand, B: Operand, *, rcond: Any = None, driver: str | None = None) -> Lstsq:
    """The least-squares solution X of A X = B: of those with the least |A X - B| the one with the least |X|.

    It is pinv(A) @ B, for matrices of any rank, by singular value decomposition, whatever the driver is.

    Args:
        A: Tensor of floats of shape (..., m, n).
        B: Tensor of floats of shape (..., m, k), or (..., m) for vectors.
        rcond: Singular values up to this part of the greatest count as 0, as `rtol` of `pinv`.
        driver: "gels", "gelsy", "gelsd" or "gelss": what is returned besides the solution. None for "gelsy".

    Returns:
        Named tuple of `solution`, of shape (..., n, k) or (..., n); `residuals`, sums of squares of shape (..., k),
        empty unless m > n; `rank`, int64 of shape (...), empty for "gels"; and `singular_values`, of shape (...,
        min(m, n)), empty for "gels" and "gelsy". In PyTorch there are no residuals for "gelsy", nor where the rank is
        less than n.

    Raises:
        UserError: `A` is no matrix (MLC0364), shapes do not fit (MLC0367), or `driver` is another string (MLC0360).

    Example:
        >>> mlc.linalg.lstsq(mlc.tensor([[1.0], [1.0]]), mlc.tensor([1.0, 3.0])).solution
        tensor([1.9999999], dtype=mlc.float32)
    """
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise UserError(f"driver is {driver!r}, not 'gels', 'gelsy', 'gelsd' or 'gelss'", code="MLC0360")
    matrix = as_matrix(A, complex=True)
    b, vector = right_sides(matrix, B)
    a, b = same_type_and_batch(matrix, b)
    m, n = a.shape[-2:]
    x = contract.matmul(pinv(a, rtol=rcond), b)
    rest = tracer(contract.matmul(a, x) - b)
    over = isinstance(m, int) and isinstance(n, int) and m > n
    size = tracer(E.abs(rest)) if rest.type.dtype.is_complex else rest
    residuals = R.sum(size * size, -2) if over else full(0, size, [0])
    s = tracer(svdvals(a))
    rank = R.sum(s > least_nonzero(a, s, None, rcond), -1)
    rank = full(0, tracer(rank), [0]) if driver == "gels" else rank
    return Lstsq(reshape(tracer(x), tracer(x).shape[:-1]) if vector else x, residuals, rank,
                 s if driver in ("gelsd", "gelss") else full(0, s, [0]))


def least_nonzero(a: Tracer, s: Tracer, atol: Any, rtol: Any) -> Tensor:
    """Threshold up to which singular values count as zero."""
    m, n = a.shape[-2:]
    eps = 2.0 ** (-52 if s.type.dtype == f64 else -23)
    if rtol is None:
        rtol = E.mul(E.maximum(tracer(m), tracer(n)), eps)
        rtol = rtol if atol is None else E.where(tracer(atol) > 0, 0.0, rtol)
    if 0 in s.shape:
        return reshape(full(0, s, [1]), [1] * s.ndim)
    least, part = (0.0 if b is None else _column(b) for b in (atol, rtol))
    return E.maximum(E.mul(E.detach(R.amax(s, -1, keepdim=True)), part), least)


def _column(bound: Any) -> Tracer:
    """A tolerance, one number or one per matrix, shaped to broadcast against the singular values."""
    b = tracer(bound)
    return reshape(b, [*b.shape, 1]) if b.ndim else b


def only_bound(name: str, atol: Operand, rtol: Operand, bounds: tuple[Operand, Operand]) -> tuple[Operand, Operand]:
    """The bounds `atol` and `rtol` that an older parameter stands for; UserError where one of them is given, too."""
    if atol is not None or rtol is not None:
        raise UserError(f"{name} is given with {'rtol' if atol is None else 'atol'}", code="MLC0702",
                        hint="use atol and rtol alone")
    return bounds


@operation(name="linalg.pinv", literal=("atol", "rtol", "rcond"))
def pinv(A: Operand, rcond: Operand | None = None, hermitian: bool = False, *, atol: Operand | None = None,
         rtol: Operand | None = None) -> Tensor:
    """The Moore-Penrose pseudoinverse of matrices, by singular value decomposition.

    Singular values up to max(atol, rtol * the greatest) count as 0.

    Args:
        A: Tensor of floats of shape (..., m, n).
        rcond: The only bound, as numpy's: `rtol`, with an `atol` of 0.
        hermitian: Whether A is symmetric, and given by its lower triangle.
        atol: Absolute bound, a number or a tensor of a bound for each matrix; 0 by default.
        rtol: Relative bound, likewise; by default max(m, n) times the epsilon of the dtype, or 0 if `atol` is above 0.

    Returns:
        Tensor of shape (..., n, m).

    Raises:
        UserError: `A` is no matrix (MLC0364), a bound is no number or tensor (MLC0421), or `rcond` is given with
            another bound (MLC0702).

    Example:
        >>> mlc.linalg.pinv(mlc.tensor([[2.0, 0.0], [0.0, 0.0]]))
        tensor([[0.5, 0. ],
                [0. , 0. ]], dtype=mlc.float32)
    """
    if rcond is not None:
        atol, rtol = only_bound("rcond", atol, rtol, (0.0, rcond))
    for b in (atol, rtol):
        if not (b is None or isinstance(b, int | float | Tensor)):
            raise UserTypeError(f"a bound is {type(b).__name__} {b!r}, expected a number"[:200], code="MLC0421")
    x = symmetric_from(A, complex=True) if hermitian else as_matrix(A, complex=True)
    if isinstance(atol, Tensor) or isinstance(rtol, Tensor):
        return _pinv_of_bounds(x, atol, rtol)
    bounds = [None if b is None else float(b) for b in (atol, rtol)]
    return emit(T.Pinv, x, *bounds)  # type: ignore[no-any-return]


def _pinv_of_bounds(x: Tracer, atol: Operand, rtol: Operand) -> Tensor:
    """The pseudoinverse for bounds of which at least one is a tensor."""
    part: Any = x.type.dtype.part if isinstance(x.type.dtype, ComplexType) else x.type.dtype
    least = cast(tracer(0.0 if atol is None else atol), part)
    if rtol is None:
        longest = max(known_size(n, "a size of the matrix") for n in x.shape[-2:])
        rtol = E.where(least > 0, 0.0, longest * (2.0 ** -52 if part == f64 else 2.0 ** -23))
    ratio = cast(tracer(rtol), part)
    if not x.type.dtype.is_complex:
        return _pinv_within(x, least, ratio)
    out = tracer(_pinv_within(representation(x), least, ratio))        # which is the representation of the result
    rows, columns = x.shape[-1], x.shape[-2]
    left = narrow(out, -1, 0, columns)
    return emit(T.Complex, tracer(narrow(left, -2, 0, rows)), tracer(narrow(left, -2, rows, rows)))  # type: ignore[no-any-return]


def _pinv_within(x: Tracer, least: Tracer, ratio: Tracer) -> Tensor:
    """The pseudoinverse of real matrices; singular values up to `least`, or `ratio` times the greatest, count as 0."""
    u, s, v = emit(T.Svd, x)
    if isinstance(s.shape[-1], int) and s.shape[-1] == 0:
        return matrix_transpose(x)
    bound = E.maximum(least, ratio * R.amax(s, -1))
    kept = s > reshape(tracer(bound), [*tracer(bound).shape, 1])
    inverse = tracer(E.where(kept, 1.0 / E.where(kept, s, 1.0), 0.0))
    scaled = matrix_transpose(v) * reshape(inverse, [*inverse.shape[:-1], 1, inverse.shape[-1]])
    return contract.matmul(scaled, matrix_transpose(u))
