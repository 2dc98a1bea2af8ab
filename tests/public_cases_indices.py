"""Cases of functions that replace elements, or take the values of a function on a grid."""

from __future__ import annotations

import numpy as np

from tests.public_case import B, C, F, K, N, P

CASES = [
    C("select_scatter", F(3, 4), F(4), 0, -1), C("select_scatter", F(3, 4), F(3), 1, 2),
    C("slice_scatter", F(5, 4), F(2, 4), 0, 1, 3), C("slice_scatter", F(5, 4), F(5, 2), 1, 0, 4, 2),
    C("slice_scatter", F(5), F(0), 0, 4, 2),
    C("diagonal_scatter", F(3, 4), F(3)), C("diagonal_scatter", F(4, 3), F(2), -2),
    C("diagonal_scatter", F(2, 4, 3), F(2, 2), 1, 1, 2), C("diagonal_scatter", F(2, 3, 4), F(3, 2), 0, 0, 2),
    C("masked_scatter", F(3, 4), B(3, 4), F(12)), C("masked_scatter", F(3, 4), B(4), F(4, 3)),
    C("index_put", F(3, 4), [N(3, 5), N(4, 5)], F(5), True, constant=(1,)),
    C("index_put", F(3, 4), [K(2, 0, dtype=np.int64)], F(2, 4), constant=(1,)),
    C("index_put", F(3, 4, 2), [K(2, 0, dtype=np.int64), K([1], [3], dtype=np.int64)], F(2, 2, 2), constant=(1,)),
    C("index_put", F(3, 4), [B(3, 4)], F(), constant=(1,)),
    C("put", F(3, 4), K(3, 0, -1, dtype=np.int64), F(3)), C("put", F(3, 4), N(12, 2, 3), F(6), True),
    C("trapezoid", F(2, 5), dim=0), C("cumulative_trapezoid", F(2, 5)), C("cumulative_trapezoid", F(2, 5), P(5)),
    C("cumulative_trapezoid", F(2, 5), dx=2.0, dim=0),
    C("gradient", F(4, 5)), C("gradient", F(4, 5), spacing=0.5, edge_order=2),
    C("gradient", np.array([1.0, np.nan, 2.0, 3.0], np.float32)),
    C("gradient", F(4, 5), spacing=(2.0, 0.5), dim=(1, 0)), C("gradient", F(2)),
    C("gradient", F(4), spacing=[np.array([0.0, 1.0, 3.0, 3.5], np.float32)], dim=(0,), edge_order=2),
    C("renorm", F(4, 5), 2, 0, 1.0), C("renorm", F(4, 5, 2), 1.5, -1, 0.5), C("isreal", F(3)),
    C("gcd", N(99, 9, low=-99), N(99, 9, low=-99)), C("lcm", N(99, 9, low=-99), N(99, 9)),
    C("gcd", K(0, 6, -7, dtype=np.int32), K(0, 0, 21, dtype=np.int32)),
    C("bincount", N(9, 7), N(5, 7)), C("var", F(3, 4), False), C("std", F(3, 4), 1, False, True),
    C("var_mean", F(3, 4), True), C("std_mean", F(3, 4), dim=0, unbiased=False, keepdim=True),
    C("searchsorted", F(6), F(3), sorter=np.arange(6)),
    C("cdist", F(2, 3), F(4, 3), 2.0, "donot_use_mm_for_euclid_dist"),
    C("linalg.pinv", F(3, 3), hermitian=True, constant=(0,)),
]
