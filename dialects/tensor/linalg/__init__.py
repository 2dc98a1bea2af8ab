"""tensor, linear algebra: factorisations of matrices and solving with triangular ones, as composites with rules."""

from mlc.dialects.tensor.linalg.elimination import Lu, Qr, Solve
from mlc.dialects.tensor.linalg.functions import MatrixExp, Pinv
from mlc.dialects.tensor.linalg.spectral import Eigh, Svd
from mlc.dialects.tensor.linalg.triangular import Cholesky, TriangularSolve

__all__ = ["Cholesky", "Eigh", "Lu", "MatrixExp", "Pinv", "Qr", "Solve", "Svd", "TriangularSolve"]
