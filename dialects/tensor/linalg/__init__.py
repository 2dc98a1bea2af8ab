"""tensor, linear algebra: matrix factorisations, solvers and matrix functions, as composites."""

from mlc.dialects.tensor.linalg.elimination import Lu, Qr, Solve
from mlc.dialects.tensor.linalg.functions import MatrixExp, Pinv
from mlc.dialects.tensor.linalg.spectral import Eigh, Svd
from mlc.dialects.tensor.linalg.triangular import Cholesky, TriangularSolve

__all__ = ["Cholesky", "Eigh", "Lu", "MatrixExp", "Pinv", "Qr", "Solve", "Svd", "TriangularSolve"]
