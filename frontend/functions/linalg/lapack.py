"""Factorizations under PyTorch's older names, most of which are those of LAPACK's routines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mlc.dialects import tensor as T
from mlc.frontend.functions import contract
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.linalg.checked import lu_factor_ex
from mlc.frontend.functions.linalg.factorizations import Svd, lu_factor, order_of, permutation_matrix, svd
from mlc.frontend.functions.linalg.matrices import as_matrix, known_size, matrix_transpose
from mlc.frontend.functions.linalg.solving import solve_triangular
from mlc.frontend.functions.shape import cat, narrow, stack, tril, triu
from mlc.frontend.operands import broadcast_shapes, broadcast_to, cast, floating, full, integer, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import i64


class Geqrf(NamedTuple):
    """Result of `geqrf`."""

    a: Tensor
    tau: Tensor


class LuUnpack(NamedTuple):
    """Result of `lu_unpack`."""

    P: Tensor
    L: Tensor
    U: Tensor


class ThinSvd(NamedTuple):
    """Result of `mlc.svd`."""

    U: Tensor
    S: Tensor
    V: Tensor


class TriangularSolve(NamedTuple):
    """Result of `triangular_solve`."""

    solution: Tensor
    cloned_coefficient: Tensor


@operation(name="lu")
def packed_lu(A: Operand, pivot: bool = True, get_infos: bool = False) -> Any:
    """The LU factorization with partial pivoting, in one matrix, as `linalg.lu_factor`.

    Args:
        A: Tensor of floats of shape (..., m, n).
        pivot: Must be True.
        get_infos: Whether to return also where a diagonal element of U is 0.

    Returns:
        `LU`, of the shape of `A`, `pivots`, int32 of shape (..., min(m, n)), and with `get_infos` a tensor of int32 of
        shape (...): 0, or the position of the first zero of the diagonal, counted from 1.

    Raises:
        UserError: `A` is no matrix (MLC0364), or `pivot` is False (MLC0360).

    Example:
        >>> mlc.lu(mlc.tensor([[1.0, 2.0], [4.0, 4.0]]))[0]
        tensor([[4.  , 4.  ],
                [0.25, 1.  ]], dtype=mlc.float32)
    """
    return tuple(lu_factor_ex(A, pivot=pivot)) if get_infos else tuple(lu_factor(A, pivot=pivot))


def _check_pivots(found: Sequence[Dim], wanted: Sequence[Dim]) -> None:
    """UserError unless the pivots have the shape that belongs to that of the matrices."""
    if tuple(found) != tuple(wanted):
        raise UserError(f"LU_pivots has shape [{', '.join(map(str, found))}], expected [{', '.join(map(str, wanted))}]",
                        code="MLC0367", symbols=sizes.differing(found, wanted),
                        hint="pass both results of one call of linalg.lu_factor")


@operation()
def lu_unpack(LU_data: Operand, LU_pivots: Operand, unpack_data: bool = True, unpack_pivots: bool = True) -> LuUnpack:
    """The factors P, L and U from what `linalg.lu_factor` gives.

    Args:
        LU_data: Tensor of floats of shape (..., m, n).
        LU_pivots: Tensor of integers of shape (..., min(m, n)).
        unpack_data: Whether to give L and U; otherwise they are empty.
        unpack_pivots: Whether to give P; otherwise it is empty.

    Returns:
        Named tuple of `P`, a permutation matrix of size m, `L`, of shape (..., m, k), with ones on the diagonal, and
        `U`, of shape (..., k, n), for k = min(m, n).

    Raises:
        UserError: `LU_data` is no matrix (MLC0364), `LU_pivots` is of another shape (MLC0367) or not of integers
            (MLC0354), or a size is symbolic (MLC0365).

    Example:
        >>> mlc.lu_unpack(*mlc.linalg.lu_factor(mlc.tensor([[1.0, 2.0], [4.0, 4.0]]))).U
        tensor([[4., 4.],
                [0., 1.]], dtype=mlc.float32)
    """
    x, at = as_matrix(LU_data, complex=True), cast(integer(LU_pivots, "LU_pivots"), i64)
    m, n = (known_size(d, "a size of the matrix") for d in x.shape[-2:])
    k, batch, empty = min(m, n), x.shape[:-2], full(0, x, [0])
    p: Tensor = empty
    lower: Tensor = empty
    upper: Tensor = empty
    if unpack_data:
        diagonal = cast(tracer(emit(T.Iota, (m, k), 0, i64) == emit(T.Iota, (m, k), 1, i64)), x.type.dtype)
        lower, upper = tracer(tril(narrow(x, -1, 0, k), -1)) + diagonal, triu(narrow(x, -2, 0, k))
    if unpack_pivots:
        _check_pivots(at.shape, (*batch, k))
        rest = broadcast_to(tracer(emit(T.Iota, (m - k,), 0, i64) + (k + 1)), [*batch, m - k])
        p = permutation_matrix(emit(order_of, tracer(cat([at, rest], -1))), x)
    return LuUnpack(p, lower, upper)


def _reflection(column: Tensor, at: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of the reflection that maps a column of shape (..., m), from row `at` on, to a multiple of a unit vector: the
    vector, its factor tau, and the multiple, as LAPACK's larfg gives them."""
    x = tracer(column)
    below = tracer(emit(T.Iota, x.shape[-1:], 0, i64) > at)
    first = tracer(x[..., at])
    rest = E.where(below, x, 0.0)
    squares = R.sum(rest * rest, -1)
    zero = squares == 0
    size = E.sqrt(E.where(zero, 1.0, first * first + squares))
    beta = E.where(zero, first, E.where(first < 0, size, -size))
    tau = E.where(zero, 0.0, (beta - first) / E.where(zero, 1.0, beta))
    scaled = rest / reshape(tracer(E.where(zero, 1.0, first - beta)), [*x.shape[:-1], 1])
    one = cast(tracer(emit(T.Iota, x.shape[-1:], 0, i64) == at), x.type.dtype)
    return scaled + one, tau, beta


@operation()
def geqrf(input: Operand) -> Geqrf:
    """The QR factorization by Householder reflections, as LAPACK's geqrf leaves it.

    Args:
        input: Tensor of floats of shape (..., m, n).

    Returns:
        Named tuple of `a`, of the shape of `input`, with R on and above the diagonal and the vectors of the reflections
        below, without their first elements, which are 1, and `tau`, of shape (..., min(m, n)), with their factors.

    Raises:
        UserError: `input` is no matrix (MLC0364), or a size is symbolic (MLC0365).

    Example:
        >>> mlc.geqrf(mlc.tensor([[3.0, 1.0], [4.0, 2.0]])).tau
        tensor([1.6, 0. ], dtype=mlc.float32)
    """
    x = as_matrix(input)
    m, n = (known_size(d, "a size of the matrix") for d in x.shape[-2:])
    rows, columns = (emit(T.Iota, (m, n), a, i64) for a in range(2))
    out: Tensor = x
    factors = []
    for i in range(min(m, n)):
        v, tau, beta = _reflection(out[..., i], i)
        vector = reshape(tracer(v), [*x.shape[:-2], m, 1])
        factor = reshape(tracer(tau), [*x.shape[:-2], 1, 1])
        applied = out - factor * vector * contract.matmul(matrix_transpose(vector), out)
        stored = E.where(rows > i, vector, reshape(tracer(beta), [*x.shape[:-2], 1, 1]))
        out = E.where(tracer(columns > i) & (rows >= i), applied, E.where((columns == i) & (rows >= i), stored, out))
        factors.append(tau)
    return Geqrf(out, stack(factors, -1) if factors else full(0, x, [*x.shape[:-2], 0]))


@operation()
def ormqr(input: Operand, tau: Operand, other: Operand, left: bool = True, transpose: bool = False) -> Tensor:
    """The product of a matrix and the square orthogonal Q of `geqrf`, as LAPACK's ormqr.

    Args:
        input: Tensor of floats of shape (..., m, k), whose columns below the diagonal are the vectors of reflections.
        tau: Tensor of shape (..., r) with r <= k, their factors.
        other: Tensor of floats of shape (..., m, n), or (..., n, m) if not `left`.
        left: Whether to compute Q @ other; otherwise other @ Q.
        transpose: Whether to take Q^T in place of Q.

    Returns:
        Tensor of the shape of `other`.

    Raises:
        UserError: an operand is no matrix (MLC0364), shapes do not fit (MLC0367), a size is symbolic (MLC0365), or the
            operands have different float dtypes (MLC0420).

    Example:
        >>> mlc.ormqr(mlc.tensor([[1.0], [1.0]]), mlc.tensor([1.0]), mlc.eye(2))
        tensor([[ 0., -1.],
                [-1.,  0.]], dtype=mlc.float32)
    """
    x, factors, out = as_matrix(input), floating(tau), as_matrix(other)
    m, k = (known_size(d, "a size of the matrix") for d in x.shape[-2:])
    count = known_size(factors.shape[-1] if factors.ndim else 0, "the number of reflections")
    if not left:
        return matrix_transpose(ormqr(x, factors, matrix_transpose(out), True, not transpose))
    if out.shape[-2] != m or count > min(m, k):
        raise UserError(f"{count} reflections of {m} rows for a matrix of {out.shape[-2]} rows", code="MLC0367")
    rows, columns = (emit(T.Iota, (m, k), a, i64) for a in range(2))
    vectors = tracer(E.where(rows > columns, x, cast(tracer(rows == columns), x.type.dtype)))
    batch = broadcast_shapes(x.shape[:-2], out.shape[:-2])
    found: Tensor = broadcast_to(out, [*batch, *out.shape[-2:]])
    for i in range(count) if transpose else reversed(range(count)):
        v = tracer(narrow(vectors, -1, i, 1))
        t = reshape(tracer(factors[..., i]), [*factors.shape[:-1], 1, 1])
        found = found - t * v * contract.matmul(matrix_transpose(v), found)
    return found


@operation(name="triangular_solve")
def solve_by_triangle(b: Operand, A: Operand, upper: bool = True, transpose: bool = False,
                      unitriangular: bool = False) -> TriangularSolve:
    """The solution X of A X = b for a triangular A, as `linalg.solve_triangular` with `b` first.

    Args:
        b: Tensor of floats of shape (..., n, k).
        A: Tensor of floats of shape (..., n, n), of which only one triangle counts.
        upper: Whether A is the upper triangle; otherwise the lower one.
        transpose: Whether to take A^T in place of A.
        unitriangular: Whether the diagonal is taken as ones.

    Returns:
        Named tuple of `solution`, of the broadcast shape of `b`, and `cloned_coefficient`, a copy of `A`.

    Raises:
        UserError: an operand is no matrix (MLC0364), or shapes do not fit (MLC0367).

    Example:
        >>> mlc.triangular_solve(mlc.tensor([[4.0], [8.0]]), mlc.tensor([[2.0, 1.0], [0.0, 4.0]])).solution
        tensor([[1.],
                [2.]], dtype=mlc.float32)
    """
    a, right = as_matrix(A, complex=True), as_matrix(b, complex=True)
    batch = broadcast_shapes(a.shape[:-2], right.shape[:-2])
    a, right = (broadcast_to(x, [*batch, *x.shape[-2:]]) for x in (a, right))
    given: Tracer = matrix_transpose(a) if transpose else a
    solution = solve_triangular(given, right, upper=upper != transpose, unitriangular=unitriangular)
    return TriangularSolve(solution, a)


@operation(name="svd")
def thin_svd(input: Operand, some: bool = True, compute_uv: bool = True) -> ThinSvd:
    """The singular value decomposition, as `linalg.svd`, with V in place of its transpose.

    Args:
        input: Tensor of floats of shape (..., m, n).
        some: Whether U and V have min(m, n) columns; otherwise they are square.
        compute_uv: Whether to give U and V; otherwise they are zeros.

    Returns:
        Named tuple of `U`, `S` and `V`: input = U diag(S) V^T.

    Raises:
        UserError: `input` is no matrix (MLC0364).

    Example:
        >>> mlc.svd(mlc.tensor([[3.0, 0.0], [0.0, 4.0]])).S
        tensor([4., 3.], dtype=mlc.float32)
    """
    found: Svd = svd(input, not some)
    if compute_uv:
        return ThinSvd(found.U, found.S, matrix_transpose(found.Vh))
    x = as_matrix(input)
    left, right = (full(0, x, [*x.shape[:-2], n, n]) for n in x.shape[-2:])
    return ThinSvd(left, found.S, right)
