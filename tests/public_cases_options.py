"""Cases of parameters that no other case gives: what is not the default leads other ways."""

from __future__ import annotations

import math

import numpy as np

from tests.public_case import NN, B, C, F, K, N, P, S, U, Z
from tests.public_cases_linalg import PD, W

REDUCED = ("mean", "sum", "none")
CASES = [
    # factors and offsets
    C("addbmm", F(3, 5), F(2, 3, 4), F(2, 4, 5), beta=0.5, alpha=2), C("addr", F(3, 4), F(3), F(4), beta=0.5, alpha=2),
    C("baddbmm", F(2, 3, 5), F(2, 3, 4), F(2, 4, 5), beta=0.5, alpha=-2), C("sub", F(3), F(3), alpha=2.5),
    C("sub", N(9, 4), N(9, 4), alpha=3), C("celu", F(9), 0.5), C(NN + "hardshrink", F(9), 0.9),
    C(NN + "softshrink", F(9), 0.9), C("as_strided_copy", F(12), (2, 3), (4, 1), 1),
    # PyTorch's gradient is that of an offset of 0
    C("as_strided_scatter", F(12), F(2, 3), (2, 3), (4, 1), 2, constant=(0, 1)),
    C("diagonal_copy", F(2, 4, 5), 1, 1, 2),
    C("isclose", K(1.0, 2.0, 3.0), K(1.04, 2.2, 3.5), 0.05), C("isclose", K(1.0, 2.0), K(1.5, 2.2), 0, 0.3),
    C("Tensor.index_add", F(4, 3), 0, N(4, 6), F(6, 3), alpha=2.5),
    C("Tensor.scatter_reduce", F(4, 3), 0, N(4, 6, 3), F(6, 3), "mean", include_self=False),
    C("cov", F(3, 6), aweights=P(6)), C("cov", F(3, 6), correction=2, fweights=N(4, 6), aweights=P(6)),
    # axes
    C("Tensor.diff", F(3, 4), dim=0), C("diff", F(3, 4), 1, 0, F(1, 4), F(2, 4)), C("chunk", F(2, 7), 3, 1),
    C("aminmax", F(3, 4), dim=1, keepdim=True), C("argsort", F(3, 5), 0, True), C("argsort", F(3, 5), descending=True),
    C("concat", [F(2, 3), F(2, 1)], dim=1), C("cosine_similarity", F(3, 4), F(3, 4), 0),
    C("cosine_similarity", F(3, 4), F(3, 4), 1, 10.0, constant=(0, 1)),     # whose gradient there is another
    C("flatten", F(2, 3, 4, 2), 1, 2), C("unbind", F(3, 2), 1),
    C("norm", F(3, 4), 2, 1, True), C("linalg.norm", F(3, 4), 2, 1, True), C("linalg.vector_norm", F(3, 4), 3, 0, True),
    C("nanmedian", K([1.0, math.nan, 3.0], [4.0, 2.0, 0.0]), 1, True, constant=(0,)),
    C("nanquantile", K([1.0, math.nan, 3.0], [4.0, 2.0, 0.5]), 0.3, 1, True, constant=(0,)),
    *(C("nanquantile", K([1.0, math.nan, 3.0], [4.0, 2.0, 0.5]), 0.3, 1, interpolation=how, constant=(0,))
      for how in ("lower", "higher", "nearest", "midpoint")),
    C("pairwise_distance", F(3, 4), F(3, 4), 1), C("pairwise_distance", F(3, 4), F(3, 4), 3.0, 0.5, True),
    C("var", F(3, 4), 1, unbiased=False), C("var", F(3, 4), 0, keepdim=True), C("std", F(3, 4), 1, unbiased=False),
    C("var_mean", F(3, 4), 1, unbiased=False, keepdim=True), C("max", F(4), F(4)), C("min", F(4), F(4)),
    C("Tensor.unique", N(4, 6, 2), True, True, True), C("Tensor.unique", B(6, 2), dim=0),
    C("Tensor.unique_consecutive", N(2, 6, 2), True, True, 0), C("Tensor.nonzero", N(3, 4, 5), as_tuple=True),
    C("nonzero_static", N(2, 9), size=12, fill_value=-7), C("repeat_interleave", F(2, 3), 2, 1, output_size=6),
    C("isin", K(3, 1, 4, dtype=np.int64), K(4, 1, 5, 9, dtype=np.int64), assume_unique=True),
    C("topk", F(3, 7), 4, 1, True, True),
    C("bucketize", F(7), K(-1.0, 0.0, 1.0), out_int32=True, constant=(0, 1)),
    # Fourier transforms
    *(C("fft." + n, Z(3, 4), dim=(1, 0), norm="ortho") for n in ("fft2", "ifft2", "ifftn", "irfft2", "irfftn")),
    *(C("fft." + n, Z(3, 4), s=(5, 2)) for n in ("fft2", "ifft2", "ifftn", "irfft2", "irfftn")),
    *(C("fft." + n, F(3, 4), dim=(1, 0), norm="forward") for n in ("rfft2", "rfftn")),
    C("fft.rfft2", F(3, 4), s=(5, 2)), C("fft.hfft", Z(3, 4), 5, 0, "ortho"), C("fft.ihfft", F(3, 4), 5, 0, "forward"),
    C("fft.irfft", Z(3, 4), 5, 0, "ortho"), C("fft.rfftfreq", 7, d=0.5),
    # factorisations and solutions
    C("linalg.tensorinv", F(4, 2, 2), ind=1), C("linalg.pinv", F(3, 4), atol=0.1, rtol=0.5, constant=(0,)),
    C("linalg.pinv", F(3, 4), 0.5, constant=(0,)), C("linalg.matrix_rank", K([[1, 0.2], [0.2, 1]]), 0.9),
    C("linalg.svdvals", W(3, 4), driver=None), C("linalg.svd", W(3, 4), False, driver=None),
    C("linalg.matrix_rank", K([[1, 0.2], [0.2, 1]]), rtol=0.9), C("linalg.matrix_rank", K([[2, 0], [0, -2]]),
                                                                  hermitian=True),
    C("pinverse", F(3, 4), 0.6, constant=(0,)), C("triangular_solve", F(3, 2), F(3, 3), unitriangular=True),
    C("cholesky", PD(3, 3), True, constant=(0,)), C("cholesky_inverse", PD(3, 3), True, constant=(0,)),
    C("linalg.cholesky_ex", PD(3, 3), upper=True, check_errors=True, constant=(0,)),
    C("linalg.inv_ex", W(3, 3), check_errors=True), C("linalg.solve_ex", W(3, 3), F(3, 2), check_errors=True),
    C("linalg.lu_factor_ex", F(3, 3), check_errors=True, constant=(0,)),
    C("lu_unpack", F(4, 3), K(1, 3, 3, dtype="int32"), unpack_pivots=False),
    # losses
    *(C(NN + n, U(0.1, 0.9, 5), U(0, 1, 5), weight=P(5), reduction=r, constant=(1,)) for r in REDUCED
      for n in ("binary_cross_entropy", "binary_cross_entropy_with_logits")),
    *(C(NN + n, F(5), F(5), weight=P(5), reduction=r) for n in ("mse_loss", "l1_loss", "huber_loss") for r in REDUCED),
    *(C(NN + n, F(5), S(5), reduction=r, constant=(1,)) for n in ("hinge_embedding_loss", "soft_margin_loss")
      for r in ("sum", "none")), C(NN + "hinge_embedding_loss", F(5), S(5), margin=0.3, constant=(1,)),
    *(C(NN + "margin_ranking_loss", F(5), F(5), S(5), reduction=r, constant=(2,)) for r in ("sum", "none")),
    *(C(NN + "cosine_embedding_loss", F(5, 3), F(5, 3), S(5), margin=0.2, reduction=r, constant=(2,)) for r in REDUCED),
    *(C(NN + "triplet_margin_loss", F(5, 3), F(5, 3), F(5, 3), 0.5, 1, 0.1, True, reduction=r) for r in REDUCED),
    *(C(NN + "triplet_margin_with_distance_loss", F(5, 3), F(5, 3), F(5, 3), margin=0.5, swap=True, reduction=r)
      for r in REDUCED),
    *(C(NN + "gaussian_nll_loss", F(5), F(5), P(5), True, 0.5, r) for r in REDUCED),
    *(C(NN + "poisson_nll_loss", P(5), U(0, 5, 5), log_input=False, eps=0.5, reduction=r, constant=(1,))
      for r in REDUCED),
    C(NN + "nll_loss", F(6, 4), N(4, 6), ignore_index=2),
    C(NN + "ctc_loss", F(6, 3, 4), K([1, 2, 2], [3, 1, 0], [0, 1, 2], dtype=np.int64), (6, 5, 6), (1, 2, 1), 3,
      constant=(0,)),
    *(C(NN + "linear_cross_entropy", F(4, 3), F(5, 3), N(5, 4), linear_bias=F(5), weight=P(5), reduction=r,
        ignore_index=2, label_smoothing=0.1) for r in REDUCED),
    # pooling and convolution
    C(NN + "avg_pool1d", F(2, 3, 9), 3, 2, 1, True, False),
    C(NN + "avg_pool3d", F(1, 2, 5, 6, 7), 3, 2, 1, True, False), C(NN + "avg_pool3d", F(1, 2, 4, 5, 6), 2,
                                                                    divisor_override=3),
    C(NN + "lp_pool2d", P(2, 3, 7, 8), 2, 3, 2, True), C(NN + "lp_pool3d", P(1, 2, 5, 6, 7), 2, 3, 2, True),
    C(NN + "max_pool1d", F(2, 3, 10), 3, 2, 1, ceil_mode=True),
    C(NN + "max_pool2d_with_indices", F(2, 3, 7, 8), 2, 3, 1, 2, True),
    C(NN + "max_pool3d", F(1, 2, 5, 6, 7), 2, 3, 1, 2, True),
    C(NN + "conv3d", F(2, 4, 6, 7, 5), F(6, 2, 2, 2, 2), F(6), 2, 1, (2, 1, 1), 2),
    C(NN + "conv_transpose1d", F(2, 4, 5), F(4, 3, 3), F(6), 2, 1, 1, 2, 2),
    C(NN + "conv_transpose3d", F(1, 4, 2, 3, 2), F(4, 3, 2, 2, 2), F(6), 2, 1, 1, 2, 2),
    C(NN + "max_unpool1d", F(2, 1, 2), K([[1, 3]], [[0, 2]], dtype=np.int64), 3, 2, 1, (4,)),
    C(NN + "max_unpool2d", F(1, 2, 2), K([[1, 3], [6, 8]], dtype=np.int64), 3, 2, 1, (4, 3)),
    C(NN + "max_unpool3d", F(1, 1, 2, 2), K([[[1, 3], [6, 8]]], dtype=np.int64), 3, 2, 1, (1, 4, 3)),
    # norms and embeddings
    C(NN + "instance_norm", F(2, 3, 5), None, None, F(3), F(3), True, 0.3, 0.1),
    C(NN + "embedding", N(5, 3, 2), F(5, 4), scale_grad_by_freq=True, twice=False),
    # PyTorch's gradient of indices that are not all different is another one than that of embedding
    C(NN + "embedding_bag", K([0, 3], [1, 4], dtype=np.int64), F(5, 4), mode="sum", scale_grad_by_freq=True),
    C(NN + "embedding_bag", N(5, 3, 2), F(5, 4), None, None, 2.0, False, "sum", False, F(3, 2)),
    C(NN + "normalize", F(3, 4), eps=5.0), C(NN + "upsample_bilinear", F(1, 2, 3, 4), (5, 6)),
    C(NN + "upsample_nearest", F(1, 2, 3, 4), scale_factor=2),
    # masks
    *(C("masked." + n, F(3, 4), 1, keepdim=True, mask=B(3, 4)) for n in ("sum", "prod", "mean", "amax", "amin")),
    *(C("masked." + n, F(3, 4), 1, keepdim=True, mask=B(3, 4)) for n in ("argmax", "argmin", "logsumexp", "median")),
    *(C("masked." + n, F(3, 4), 1, unbiased=False, keepdim=True, mask=K([1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1],
                                                                       dtype=bool)) for n in ("std", "var")),
    *(C("masked." + n, F(3, 4), 1, correction=2, mask=K([1, 1, 0, 1], [1, 1, 1, 1], [0, 1, 1, 1], dtype=bool))
      for n in ("std", "var")),
    C("masked.norm", F(3, 4), 2, 1, keepdim=True, mask=B(3, 4)),
    C("masked.normalize", F(3, 4), 2.0, 1, eps=9.0, mask=B(3, 4)),
    # windows
    C("hamming_window", 7, True, 0.4, 0.6), C("signal.windows.gaussian", 7, std=2.5),
    C("signal.windows.exponential", 7, tau=2.5), C("signal.windows.exponential", 7, center=0, sym=False),
    C("signal.windows.kaiser", 7, beta=5.0), C("signal.windows.general_hamming", 7, alpha=0.7),
    C("segment_reduce", F(6, 3), "sum", lengths=np.array([2, 3, 1]), axis=0, unsafe=True, initial=1.5),
]
