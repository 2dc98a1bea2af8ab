"""Linear algebra under the names of torch.linalg."""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.frontend.functions.contract import matmul
from mlc.frontend.functions.index import diagonal
from mlc.frontend.functions.linalg import (
    cholesky,
    cond,
    det,
    eigh,
    eigvalsh,
    inv,
    lstsq,
    lu,
    lu_factor,
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
    solve_triangular,
    svd,
    svdvals,
    vector_norm,
)

__all__ = ["cholesky", "cond", "det", "diagonal", "eigh", "eigvalsh", "inv", "lstsq", "lu", "lu_factor", "lu_solve",
           "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr",
           "slogdet", "solve", "solve_triangular", "svd", "svdvals", "vector_norm"]
