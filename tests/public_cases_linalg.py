"""Cases of linear algebra, Fourier transforms, sorting, products and grids against PyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from tests.public_case import B, C, Case, F, Input, K, N, P, Z

INF, NAN = math.inf, math.nan


def PD(*shape: int) -> Input:
    """Symmetric matrices with eigenvalues well above 0 and far from each other."""
    def make(r: np.random.Generator) -> np.ndarray:
        x = r.normal(size=shape)
        return (x @ np.swapaxes(x, -1, -2) * 0.1 + np.diag(np.arange(shape[-1]) + 1)).astype(np.float32)
    return Input(make)


def W(*shape: int, noise: float = 0.3) -> Input:
    """Matrices that are far from singular, their singular values far from each other."""
    def make(r: np.random.Generator) -> np.ndarray:
        scale = np.linspace(1, 3, min(shape[-2:]))
        x = r.normal(size=shape) * noise
        k = len(scale)
        x[..., range(k), range(k)] += scale
        return x.astype(np.float32)
    return Input(make)


LINALG = [
    *(C("linalg." + n, PD(*s), slow=n == "eigvalsh" and s == (3, 3)) for n in ("cholesky", "eigh", "eigvalsh")
      for s in ((3, 3), (2, 4, 4))),
    *(C("linalg." + n, W(*s), slow=s == (3, 3) or (n == "svdvals" and s == (2, 3, 4)))
      for n in ("qr", "svdvals", "lu_factor", "lu", "pinv") for s in ((3, 3), (4, 2), (2, 3, 4))),
    *(C("linalg.svd", W(*s), full_matrices=False) for s in ((4, 2), (2, 3, 4))),
    C("linalg.svd", W(3, 3, noise=0.1), full_matrices=False, slow=True),   # where PyTorch's float32 is exact enough
    C("linalg.qr", W(3, 4), mode="complete"), C("linalg.svd", W(3, 3)), C("linalg.cholesky", PD(3, 3), upper=True),
    *(C("linalg." + n, W(*s), slow=s == (3, 3)) for n in ("det", "slogdet", "inv", "matrix_exp")
      for s in ((3, 3), (2, 4, 4))),
    C("logdet", PD(3, 3)), C("linalg.solve", W(3, 3), F(3, 2)), C("linalg.solve", W(2, 3, 3), F(2, 3)),
    C("linalg.solve", W(3, 3), F(3)), C("linalg.solve", W(2, 3, 3), F(3, 2)),
    C("linalg.solve", W(3, 3), F(2, 3), left=False),
    *(C("linalg.solve_triangular", W(3, 3), F(3, 2), upper=u) for u in (False, True)),
    C("linalg.solve_triangular", W(3, 3), F(2, 3), upper=True, left=False),
    C("linalg.solve_triangular", W(3, 3), F(3, 2), upper=False, unitriangular=True),
    C("linalg.lu_solve", W(3, 3), K(2, 3, 3, dtype=np.int32), F(3, 2)),
    C("linalg.lu_solve", W(3, 3), K(2, 3, 3, dtype=np.int32), F(3, 2), adjoint=True),
    C("linalg.lu_solve", W(3, 3), K(2, 3, 3, dtype=np.int32), F(2, 3), left=False),
    C("linalg.lstsq", W(5, 3), F(5, 2)), C("linalg.lstsq", W(3, 3), F(3, 2), slow=True),
    C("linalg.matrix_rank", K((1.0, 2.0), (2.0, 4.0)), slow=True), C("linalg.matrix_rank", W(2, 3, 4), slow=True),
    *(C("linalg.cond", W(3, 3), p, slow=p is not None) for p in (None, 2, -2)),
    # of these torch has no gradient: it writes to what it saved
    *(C("linalg.cond", W(3, 3), p, constant=(0,), slow=p != INF) for p in (1, INF, "fro", "nuc")),
    *(C("linalg.matrix_norm", W(2, 3, 4), p, slow=p in (2, -2))
      for p in ("fro", "nuc", 1, -1, 2, -2, INF, -INF)),
    C("linalg.matrix_norm", F(3, 4, 2), "fro", (0, 2), keepdim=True),
    *(C("linalg.vector_norm", F(3, 4), p, dim=1) for p in (2, 1, 3, INF, -INF)), C("linalg.vector_norm", F(3, 4)),
    C("linalg.norm", F(3, 4)), C("linalg.norm", F(3, 4), 1), C("linalg.norm", F(5), 3),
    C("linalg.norm", F(2, 3, 4), "fro", (1, 2)), *(C("linalg.matrix_power", W(3, 3), n) for n in (0, 1, 2, 5, -2)),
    C("linalg.multi_dot", [F(1, 4), F(4, 3), F(3, 5), F(5, 2)], twice=False), C("linalg.diagonal", F(3, 4)),
    C("linalg.diagonal", F(3, 2, 4)), C("linalg.diagonal", F(3, 2, 4), offset=1, dim1=0, dim2=2),
    C("linalg.multi_dot", [F(4), F(4, 3), F(3, 5), F(5)], constant=(0,), twice=False),
    C("linalg.matmul", F(2, 3), F(3, 4)),
]

SORT = [
    *(C("sort", F(3, 5), dim=d, descending=x) for d in (0, -1) for x in (False, True)),
    C("sort", N(5, 3, 9), stable=True),
    C("sort", K(1.0, NAN, -INF, 2.0, NAN, INF), stable=True), C("sort", B(9), stable=True),
    C("sort", K(2.5, dtype=np.float32)),
    C("sort", F(100)), C("sort", F(2, 130, 2), dim=1, descending=True), C("argsort", F(3, 5)), C("msort", F(4, 3)),
    C("argsort", N(3, 9), stable=True), C("topk", F(3, 7), 3), C("topk", F(7, 3), 2, dim=0, largest=False),
    C("kthvalue", F(3, 7), 2), C("kthvalue", F(7, 3), 3, dim=0, keepdim=True),
    *(C(n, F(3, s)) for n in ("median", "nanmedian") for s in (4, 5)), C("median", F(3, 5), dim=1),
    C("median", F(3, 4), 0, True), C("nanmedian", K((1.0, NAN, 3.0), (NAN, NAN, NAN)), 1),
    C("median", K(1.0, NAN, 3.0)),
    C("median", N(50, 7)),
    *(C(n, F(3, 6), 0.3, dim=d) for n in ("quantile", "nanquantile") for d in (None, 0, 1)),
    *(C("quantile", F(6), 0.37, interpolation=how) for how in ("linear", "lower", "higher", "midpoint", "nearest")),
    C("quantile", F(3, 6), K(0.0, 0.2, 0.7, 1.0), 1, constant=(1,)),
    C("quantile", F(3, 6), K(0.2, 0.7), 0, True, constant=(1,)), C("quantile", K(1.0, NAN, 2.0), 0.5, constant=(0,)),
    C("nanquantile", K((1.0, NAN, 2.0), (NAN, 5.0, 4.0)), 0.4, 1), C("mode", N(3, 4, 9)),
    C("mode", N(3, 9, 4), 0, True),
    *(C("searchsorted", K(1.0, 2.0, 2.0, 5.0), K(0.0, 2.0, 9.0), right=r) for r in (False, True)),
    C("searchsorted", K((1.0, 2.0, 3.0), (2.0, 4.0, 8.0)), K((0.0, 2.0), (3.0, 4.0)), side="right", out_int32=True),
    C("bucketize", F(3, 4), K(-1.0, 0.0, 1.0)), C("bucketize", N(9, 5), K(1, 3, 5, dtype=np.int64), right=True),
    C("isin", N(9, 3, 4), N(9, 5)), C("isin", N(9, 3, 4), N(9, 5), invert=True),
    C("histc", F(50), 10), C("histc", F(50), 5, -1.0, 1.0),
]

FFT = [
    *(C("fft." + n, Z(3, k), dim=-1) for n in ("fft", "ifft") for k in (1, 2, 5, 8, 12)), C("fft.fft", F(3, 5)),
    *(C("fft." + n, Z(6, 3), k, 0, norm) for n in ("fft", "ifft")
      for k, norm in ((4, None), (9, "ortho"), (6, "forward"), (6, "backward"))),
    *(C("fft." + n, F(3, k)) for n in ("rfft", "ihfft") for k in (1, 4, 5)), C("fft.rfft", F(7, 2), 4, 0, "ortho"),
    *(C("fft." + n, Z(3, 4), k) for n in ("irfft", "hfft") for k in (None, 5, 6, 9)),
    *(C("fft." + n, Z(3, 4, 5)) for n in ("fft2", "ifft2", "fftn", "ifftn", "irfft2", "irfftn")),
    *(C("fft." + n, F(3, 4, 5)) for n in ("rfft2", "rfftn")), C("fft.fftn", Z(3, 4, 5), (2, 6), (0, 2), "ortho"),
    C("fft.rfftn", F(3, 4, 5), (2, 6), (0, 2)), C("fft.irfftn", Z(3, 4, 5), (2, 6), (0, 2)),
    C("fft.fftshift", F(4, 5)), C("fft.ifftshift", F(4, 5)), C("fft.fftshift", F(4, 5), 1),
    C("fft.ifftshift", F(4, 5), (0, 1)), C("fft.fftfreq", 5, 0.1), C("fft.rfftfreq", 6), C("fft.fftfreq", 4),
    *(C(n, k, periodic=p) for n in ("hann_window", "hamming_window", "blackman_window", "bartlett_window",
                                    "kaiser_window") for k in (1, 6, 7) for p in (False, True)),
    C("kaiser_window", 6, True, 3.0),
]

PRODUCTS = [
    C("ger", F(3), F(4)), C("addmv", F(3), F(3, 4), F(4), beta=0.5, alpha=2), C("addr", F(3, 4), F(3), F(4), alpha=3),
    C("addbmm", F(3, 5), F(2, 3, 4), F(2, 4, 5), beta=2), C("cross", F(2, 3), F(2, 3), dim=-1),
    C("cross", F(3, 4), F(3, 4), dim=0),
    C("chain_matmul", F(2, 3), F(3, 4), F(4, 2)), *(C("cdist", F(4, 3), F(5, 3), p) for p in (1.0, 2.0, 3.0, INF)),
    C("cdist", F(2, 4, 3), F(2, 5, 3)), C("cov", F(3, 6)), C("cov", F(6)), C("cov", F(3, 6), correction=0),
    C("corrcoef", F(3, 6)), C("einsum", "ij,jk,kl->il", F(9, 2), F(2, 8), F(8, 3)),
    C("einsum", "ab,bc,cd,de", F(2, 3), F(3, 4), F(4, 2), F(2, 3)),
]

GRIDS = [
    C("meshgrid", F(3), F(4), indexing="ij"), C("meshgrid", F(3), F(4), F(2), indexing="xy"),
    C("cartesian_prod", F(2), F(3)),
    C("combinations", F(4)), C("combinations", F(4), 3), C("combinations", F(3), 2, True), C("tril_indices", 3, 4),
    C("tril_indices", 4, 3, -1), C("triu_indices", 3, 4, 1), C("unravel_index", N(24, 5), (2, 3, 4)),
    C("vander", P(4), constant=(0,)),
    C("vander", P(3), 5, True, constant=(0,)), C("diag_embed", F(2, 3)), C("diag_embed", F(2, 3), 1),
    C("diag_embed", F(2, 3), -1, 0, 2),
    C("diagflat", F(2, 3)), C("diagflat", F(3), -1), C("diagflat", B(3), 1), C("diag_embed", B(2, 3)),
    C("block_diag", F(2, 3), F(1, 2), F(3)), C("atleast_1d", K(1.5)),
    C("atleast_2d", F(3)), C("atleast_3d", F(3)), C("atleast_3d", F(3, 2)), C("atleast_2d", F(3), F(2, 2)),
    C("column_stack", [F(3), F(3, 2)], twice=False), C("dstack", [F(3, 2), F(3, 2)], twice=False),
    C("concat", [F(3, 2), F(1, 2)], twice=False), C("tensor_split", F(7, 2), 3), C("tensor_split", F(7, 2), (1, 4)),
    C("tensor_split", F(2, 7), 4, dim=1), C("hsplit", F(2, 6), 3), C("vsplit", F(6, 2), (1, 4)),
    C("dsplit", F(2, 3, 4), 2),
    C("hsplit", F(6), 2), C("fliplr", F(3, 4)), C("flipud", F(3, 4)),
    *(C("rot90", F(3, 4), k) for k in (0, 1, 2, 3, -1)),
    C("rot90", F(2, 3, 4), 1, (1, 2)), C("swapaxes", F(2, 3, 4), 0, 2), C("swapdims", F(2, 3, 4), 0, -1),
    C("moveaxis", F(2, 3, 4), 0, 2), C("ravel", F(2, 3)), C("trapezoid", F(3, 5)), C("trapezoid", F(5), F(5)),
    C("trapezoid", F(3, 5), dx=0.5, dim=0), C("trapezoid", F(3, 5), F(3, 5)), C("erfinv", Input(lambda r: r.uniform(
        -0.9, 0.9, 7).astype(np.float32))),
]

CASES = [*LINALG, *SORT, *FFT, *PRODUCTS, *GRIDS]


def _once(cases: Iterable[Case]) -> Iterator[Case]:
    """Of the cases of one function, all but the first are slow."""
    seen = set[str]()
    for case in cases:
        yield replace(case, slow=case.slow or case.name in seen)
        seen |= set() if case.slow else {case.name}


TWICE = [
    *_once(c for c in (*LINALG, *PRODUCTS) if c.twice and c.name not in ("linalg.lu", "linalg.lstsq", "cdist")),
    C("fft.rfft", F(3, 5)), C("fft.irfft", Z(3, 4)), C("quantile", F(3, 6), 0.3, dim=1), C("sort", F(3, 5)),
]
"""Those whose second derivatives are compared too; PyTorch has none for cdist, the others are sums and copies."""
