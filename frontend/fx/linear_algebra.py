"""Products of matrices, factorizations and solvers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.fx.refusing import refuse
from mlc.frontend.fx.table import renamed, row, same
from mlc.frontend.tensor import OPERATIONS as O

same("addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "dot", "mm", "mv", "vdot", "linear", "matmul", "cdist",
     "cholesky_inverse", "cholesky_solve", "ormqr", "lu_unpack", "geqrf", "triangular_solve")
renamed(linalg_cross="linalg.cross", linalg_solve_triangular="linalg.solve_triangular", _cdist_forward="cdist",
        linalg_householder_product="linalg.householder_product", linalg_qr="linalg.qr", linalg_lu="linalg.lu",
        linalg_matrix_exp="linalg.matrix_exp", _pdist_forward="pdist")


@row("_cdist_forward.default")
def cdist(a: Any, b: Any, p: float, mode: int | None = None) -> Any:
    return O["cdist"](a, b, p)


@row("linalg_eigh", "_linalg_eigh")
def eigh(x: Any, uplo: str = "L", compute_v: bool = True) -> Any:
    return tuple(O["linalg.eigh"](x, uplo))


@row("linalg_inv_ex")
def inv_ex(x: Any, *, check_errors: bool = False) -> Any:
    return tuple(O["linalg.inv_ex"](x, check_errors=check_errors))


@row("linalg_cholesky_ex")
def cholesky_ex(x: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    return tuple(O["linalg.cholesky_ex"](x, upper=upper, check_errors=check_errors))


@row("linalg_lu_factor_ex")
def lu_factor_ex(x: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
    return tuple(O["linalg.lu_factor_ex"](x, pivot=pivot, check_errors=check_errors))


@row("linalg_lu_solve")
def lu_solve(lu: Any, pivots: Any, b: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    return O["linalg.lu_solve"](lu, pivots, b, left=left, adjoint=adjoint)


def _factors(contiguous: bool, x: Any) -> tuple[Any, Any]:
    """The factors of a matrix, or of its transpose, as PyTorch has it for one that is contiguous and real."""
    found = O["linalg.lu_factor_ex"](O["transpose"](x, -2, -1) if contiguous and not x.dtype.is_complex else x)
    return found[0], found[1]


def _sign(pivots: Any) -> Any:
    """1 or -1 for permutations given by exchanges: rows are exchanged with later ones, counted from 1."""
    moved = O["ne"](pivots, O["arange"](1, pivots.shape[-1] + 1, dtype=pivots.dtype))
    return 1 - 2 * O["remainder"](O["sum"](moved, -1), 2)


@row("_linalg_det", contiguous=True)
def det(contiguous: bool, x: Any) -> Any:
    """The product of the diagonal of U, and the factors, which the backward graph uses."""
    lu, pivots = _factors(contiguous, x)
    diagonal = O["diagonal"](lu, 0, -2, -1)
    return O["prod"](diagonal, -1) * O["cast"](_sign(pivots), x.dtype), lu, pivots


@row("_linalg_slogdet", contiguous=True)
def slogdet(contiguous: bool, x: Any) -> Any:
    lu, pivots = _factors(contiguous, x)
    diagonal = O["diagonal"](lu, 0, -2, -1)
    sign = O["prod"](O["sgn"](diagonal), -1) * O["cast"](_sign(pivots), x.dtype)
    return sign, O["sum"](O["log"](O["abs"](diagonal)), -1), lu, pivots


@row("_linalg_solve_ex")
def solve_ex(a: Any, b: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    if check_errors:
        refuse("an error for a singular matrix")
    lu, pivots, info = O["linalg.lu_factor_ex"](a)
    is_vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and tuple(b.shape) == tuple(a.shape[:-1]))
    right = O["unsqueeze"](b, -1) if is_vector else b
    found = O["linalg.lu_solve"](lu, pivots, right, left=left)
    return O["squeeze"](found, -1) if is_vector else found, lu, pivots, info


@row("_linalg_svd")
def svd(x: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None) -> Any:
    if not compute_uv:
        refuse("singular values without vectors")
    return tuple(O["linalg.svd"](x, full_matrices))


@row("linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float")
def pinv(x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    return O["linalg.pinv"](x, atol=atol, rtol=rtol, hermitian=hermitian)


@row("_trilinear")
def trilinear(a: Any, b: Any, c: Any, expand1: Sequence[int], expand2: Sequence[int], expand3: Sequence[int],
              sumdim: Sequence[int], unroll_dim: int = 1) -> Any:
    """The product of three tensors that get further dimensions, summed over some."""
    for dims, n in ((expand1, 0), (expand2, 1), (expand3, 2)):
        for d in sorted(dims):
            a, b, c = (O["unsqueeze"](x, d) if k == n else x for k, x in enumerate((a, b, c)))
    product = a * b * c
    return O["sum"](product, tuple(sumdim)) if sumdim else product


@row("cholesky")
def cholesky(x: Any, upper: bool = False) -> Any:
    return O["cholesky"](x, upper)
