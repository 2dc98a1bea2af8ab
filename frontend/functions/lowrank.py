"""Approximations of low rank, by products with random matrices.

Halko, Martinsson and Tropp 2009, "Finding structure with randomness", algorithms 4.4 and 5.1. What is drawn comes from
the default generator.
"""

from __future__ import annotations

from mlc.frontend.axes import plain_int
from mlc.frontend.dtypes import float32
from mlc.frontend.functions.contract import matmul
from mlc.frontend.functions.create import asarray, creation
from mlc.frontend.functions.linalg import ThinSvd, qr, svd
from mlc.frontend.functions.random_sampling import randn
from mlc.frontend.functions.reduce import mean
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError, UserTypeError


def _as_matrix(A: Operand) -> Tensor:
    """Matrices of float32 or float64, to which those of 16 bits are converted."""
    x = asarray(A)
    if x.ndim < 2:
        raise UserError(f"expected matrices, found {x.ndim} dimensions", code="MLC0364")
    if x.dtype.is_complex:
        raise UserTypeError(f"A is of {x.dtype.name}: the function is not defined on complex elements", code="MLC0785",
                            hint="[[A.real, -A.imag], [A.imag, A.real]] has each singular value twice")
    if not x.dtype.is_floating_point:
        raise UserTypeError(f"A is of {x.dtype.name}, expected floats", code="MLC0359", hint="A.float()")
    return x if x.dtype.itemsize >= 4 else x.to(float32)


def _range(A: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns that span nearly what the q greatest singular vectors span."""
    found = qr(matmul(A, randn(A.shape[-1], q, dtype=A.dtype))).Q
    for _ in range(niter):
        found = qr(matmul(A, qr(matmul(A.mT, found)).Q)).Q
    return found


@creation
def svd_lowrank(A: Operand, q: int = 6, niter: int = 2, M: Operand | None = None) -> ThinSvd:
    """The greatest singular values and their vectors, by subspace iteration from a random matrix.

    Args:
        A: Tensor of floats of shape (..., m, n); those of 16 bits become float32.
        q: Number of singular values, somewhat more than the rank that matters; of a smaller matrix all.
        niter: Number of iterations.
        M: Tensor to subtract from `A` first, which broadcasts; None for 0.

    Returns:
        Named tuple of `U`, of shape (..., m, q), `S`, of shape (..., q), and `V`, of shape (..., n, q), where A is
        nearly U diag(S) V^T.

    Raises:
        UserError: `A` is no matrix (MLC0364), or `q` or `niter` is negative (MLC0360).
        UserTypeError: Elements are no floats (MLC0359), or complex (MLC0785).

    Example:
        >>> mlc.svd_lowrank(mlc.tensor([[3.0, 0.0], [0.0, 0.0]]), 1).S
        tensor([3.], dtype=mlc.float32)
    """
    x = _as_matrix(A)
    x = x if M is None else _as_matrix(x - M)
    if (count := plain_int(q, "q")) < 0 or plain_int(niter, "niter") < 0:
        raise UserError(f"q = {q} and niter = {niter}", code="MLC0360", hint="neither may be negative")
    count = min(count, *x.shape[-2:])
    if x.shape[-2] < x.shape[-1]:
        u, s, v = svd_lowrank(x.mT, q, niter)
        return ThinSvd(v, s, u)
    basis = _range(x, count, niter)
    found = svd(matmul(basis.mT, x), False)
    return ThinSvd(matmul(basis, found.U), found.S, found.Vh.mT)


@creation
def pca_lowrank(A: Operand, q: int | None = None, center: bool = True, niter: int = 2) -> ThinSvd:
    """Principal components: `svd_lowrank` of the deviations of the rows from their mean.

    Args:
        A: Tensor of floats of shape (..., m, n), of m observations of n variables; those of 16 bits become float32.
        q: Number of components; min(6, m, n) by default.
        center: Whether to subtract the mean of the rows.
        niter: Number of iterations.

    Returns:
        Named tuple of `U`, `S` and `V`; the columns of `V` are the principal directions.

    Raises:
        UserError: `A` is no matrix (MLC0364), or `q` or `niter` out of range (MLC0360).
        UserTypeError: Elements are no floats (MLC0359), or complex (MLC0785).

    Example:
        >>> mlc.pca_lowrank(mlc.tensor([[1.0, 5.0], [3.0, 5.0]]), 1).S
        tensor([1.4142135], dtype=mlc.float32)
    """
    x = _as_matrix(A)
    count = min(6, *x.shape[-2:]) if q is None else q
    return svd_lowrank(x, count, niter, mean(x, -2, True) if center else None)
