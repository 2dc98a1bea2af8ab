"""Linear algebra under the names of torch.linalg.

Matrices are the last two dimensions of a tensor, and all dimensions before them a batch. Decompositions have
derivatives where their results are determined. A matrix that has no result, such as a singular one in `inv`, gives NaN
or infinities, where PyTorch raises an error; the functions with `_ex` in their names say which one it is.

Example:
    >>> a = mlc.tensor([[2.0, 1.0], [1.0, 3.0]])
    >>> mlc.linalg.solve(a, mlc.tensor([3.0, 5.0])).numpy().round(4)
    array([0.8, 1.4], dtype=float32)
"""

from typing import NoReturn

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.frontend import unsupported_api
from mlc.frontend.functions.contract import matmul
from mlc.frontend.functions.linalg import (
    cholesky,
    cholesky_ex,
    cond,
    cross,
    det,
    diagonal,
    eigh,
    eigvalsh,
    householder_product,
    inv,
    inv_ex,
    lstsq,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_solve,
    matrix_exp,
    matrix_norm,
    matrix_power,
    matrix_rank,
    multi_dot,
    norm,
    pinv,
    qr,
    slogdet,
    solve,
    solve_ex,
    solve_triangular,
    svd,
    svdvals,
    tensorinv,
    tensorsolve,
    vander,
    vecdot,
    vector_norm,
)

__all__ = ["cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eigh", "eigvalsh", "householder_product",
           "inv", "inv_ex", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp",
           "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve",
           "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot",
           "vector_norm"]

_GENERAL = "eigenvalues of matrices that are not symmetric are not computed", "mlc.linalg.eigh, or numpy.linalg.eig"
_LDL = "there is no factorization of indefinite matrices by itself", "mlc.linalg.lu_factor and lu_solve"
_WHY = {**dict.fromkeys(("eig", "eigvals"), _GENERAL),
        **dict.fromkeys(("ldl_factor", "ldl_factor_ex", "ldl_solve"), _LDL)}
"""Why a name of torch.linalg is missing, and what to use."""


def __getattr__(name: str) -> NoReturn:
    raise unsupported_api.error("mlc.linalg", name, _WHY.get(name))
