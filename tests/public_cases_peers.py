"""Cases of linear algebra, sampling, unpooling and sequence losses."""

from __future__ import annotations

import math

import numpy as np

from tests.public_case import NN, C, F, Input, K, N, P, U
from tests.public_cases_linalg import PD, W


def LP(*shape: int) -> Input:
    """Logarithms of probabilities along the last dimension."""
    def make(r: np.random.Generator) -> np.ndarray:
        x = r.normal(size=shape)
        return np.asarray(x - np.log(np.exp(x).sum(-1, keepdims=True)), np.float32)
    return Input(make)


def L(*shape: int) -> Input:
    """Lower triangular matrices."""
    return Input(lambda r: (np.tril(r.normal(size=shape) * 0.2) + np.eye(shape[-1])).astype(np.float32))


def T(*shape: int) -> Input:
    """Tensors that are regular matrices of 6 rows, with another shape."""
    return Input(lambda r: W(6, 6).make(r).reshape(shape))


THREE = K(3, 2, 2, dtype=np.int64)

CASES = [
    C("linalg.cross", F(3, 3), F(3, 3)), C("linalg.cross", F(2, 3), F(1, 3), dim=-1), C("linalg.vecdot", F(2, 3), F(3)),
    C("linalg.vecdot", F(2, 3), F(2, 3), dim=0),
    C("linalg.vander", F(2, 3)), C("linalg.vander", N(4, 3), N=4), C("linalg.tensorinv", T(2, 3, 6)),
    C("linalg.tensorsolve", T(2, 3, 6), F(2, 3)),
    C("linalg.tensorsolve", T(2, 6, 3), F(2, 3), (1,)),
    C("linalg.cholesky_ex", PD(3, 3), constant=(0,)), C("linalg.inv_ex", W(2, 3, 3)),
    C("linalg.solve_ex", W(3, 3), F(3, 2)), C("linalg.solve_ex", W(3, 3), F(2, 3), left=False),
    C("linalg.lu_factor_ex", W(3, 3)), C("linalg.lu_factor_ex", K([1, 2], [2, 4]), constant=(0,)),
    C("linalg.householder_product", U(-0.5, 0.5, 2, 4, 3), P(2, 3), constant=(0, 1)),
    C("cholesky_solve", F(3, 2), L(3, 3), constant=(1,)), C("cholesky_solve", F(2, 3, 2), W(3, 3), True, constant=(1,)),
    C("cholesky_inverse", L(3, 3), constant=(0,)), C("cholesky", PD(3, 3), constant=(0,)),
    C("pdist", F(4, 3)), C("pdist", F(4, 3), 1.5), C("pdist", F(1, 3)), C(NN + "pdist", F(4, 3), math.inf),
    *(C(NN + "grid_sample", F(2, 3, 4, 5), U(-1.6, 1.6, 2, 3, 2, 2), mode=mode, padding_mode=padding,
        align_corners=align, slow=mode == "bicubic" and padding != "zeros")
      for mode in ("bilinear", "nearest", "bicubic") for padding in ("zeros", "border", "reflection")
      for align in (False, True)),
    C(NN + "grid_sample", F(2, 2, 3, 4, 5), U(-1.2, 1.2, 2, 3, 2, 1, 3), align_corners=False),
    *(C(NN + "affine_grid", F(2, 2, 3), (2, 1, 4, 3), align_corners=align) for align in (False, True)),
    C(NN + "affine_grid", F(2, 3, 4), (2, 1, 2, 4, 3), align_corners=False),
    C(NN + "max_unpool1d", F(2, 1, 2), K([[1, 2]], [[0, 3]], dtype=np.int64), 2),
    C(NN + "max_unpool2d", F(1, 1, 2), K([[1, 6]], dtype=np.int64), 2, output_size=(3, 4)),
    C(NN + "max_unpool3d", F(1, 1, 1, 1), K([[[5]]], dtype=np.int64), 2),
    C(NN + "upsample_nearest", F(1, 2, 3, 4), 5), C(NN + "upsample_bilinear", F(1, 2, 3, 4), scale_factor=2),
    C(NN + "triplet_margin_with_distance_loss", F(5, 3), F(5, 3), F(5, 3), swap=True, margin=0.5),
    *(C(NN + "ctc_loss", LP(6, 3, 4), K([1, 2, 2], [3, 1, 0], [2, 2, 2], dtype=np.int64), K(6, 5, 4, dtype=np.int64),
        THREE, reduction=r, zero_infinity=z, constant=(0,)) for r in ("mean", "sum", "none") for z in (False, True)),
    C(NN + "ctc_loss", LP(6, 3, 4), K(1, 2, 2, 3, 1, 2, 2, dtype=np.int64), (6, 5, 6), (3, 2, 2), constant=(0,)),
    C(NN + "ctc_loss", LP(6, 4), K(1, 2, 2, dtype=np.int64), (6,), (3,), constant=(0,)),
    C("max", F(3, 4), F(4)), C("min", F(3, 4), F(3, 1)), C("rsub", F(3, 4), F(4), alpha=0.5), C("rsub", F(3), 2.0),
    C("pinverse", W(4, 3)), C("lu_solve", F(3, 2), L(3, 3), K(1, 2, 3, dtype=np.int32), constant=(1,)),
    C("logspace", -1, 2, 7), C("logspace", 0.5, 3, 4, 2.0),
    *(C(f"signal.windows.{name}", M, sym=sym) for name in (
        "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_hamming", "hamming", "hann", "kaiser",
        "nuttall") for M in (1, 6) for sym in (False, True)),
    C("fill", F(3, 4), 2.5), C("fill", F(3), F()), C("fill", N(9, 3), 2), C("split_with_sizes", F(5, 2), (1, 4)),
    C("split_with_sizes", F(2, 5), (3, 2), 1), C(NN + "rrelu", F(9)), C(NN + "rrelu", F(9), 0.1, 0.7),
    C("qr", W(4, 3)), C("qr", W(4, 3), False, constant=(0,)),
]
