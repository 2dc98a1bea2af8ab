"""Linear algebra under the names of torch.linalg.

Matrices are the last two dimensions of a tensor, and all dimensions before them a batch. Decompositions have
derivatives where their results are determined; a matrix that has none, such as a singular one in `inv`, is an error at
the call's line, and the functions with `_ex` in their names tell it in a result instead.

Example:
    >>> a = mlc.tensor([[2.0, 1.0], [1.0, 3.0]])
    >>> mlc.linalg.solve(a, mlc.tensor([3.0, 5.0])).numpy().round(4)
    array([0.8, 1.4], dtype=float32)
"""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
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
