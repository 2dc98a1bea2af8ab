"""Cases of masked operations, views by strides, factorizations under LAPACK's names, histograms and segments."""

from __future__ import annotations

import math

from tests.public_case import B, C, F, K, N, P
from tests.public_cases_linalg import W

NAN, INF = math.nan, math.inf
MASKED = ("sum", "prod", "amax", "amin", "mean", "norm", "var", "std")

CASES = [
    *(C(f"masked.{name}", F(3, 4), *([2.0] if name == "norm" else []), dim=1, mask=B(3, 4)) for name in MASKED),
    *(C(f"masked.{name}", F(3, 4), 1, mask=B(3, 4)) for name in ("cumsum", "cumprod", "softmax", "log_softmax",
                                                                 "softmin", "median", "logsumexp")),
    *(C(f"masked.{name}", F(3, 4), 0, mask=B(4)) for name in ("argmax", "argmin")),
    C("masked.normalize", F(3, 4), 2.0, 1, mask=B(3, 4)),
    C("masked.logaddexp", F(4), F(4), input_mask=B(4), other_mask=B(4)),
    C("angle", F(5)), C("real", F(5)), C("conj", F(5)), C("adjoint", F(2, 3, 4)),
    C("frexp", F(9)), C("frexp", K(0.0, -0.0, 1e-45, 3e38, INF, -INF, NAN, 0.5, 1.0, -2.0), constant=(0,)),
    C("nextafter", F(9), F(9), constant=(0, 1)),
    C("nextafter", K(0.0, 0.0, 1.0, 1.0, 3.4028235e38, INF, NAN, 1e-45, 1.0),
      K(1.0, -1.0, 2.0, 0.0, INF, 0.0, 1.0, -1.0, 1.0),
      constant=(0, 1)),
    C("nextafter", K(0.0, 1.0, 1.0, -2.0, 1e-310, dtype="float64"), K(-1.0, 2.0, 0.0, 0.0, 0.0, dtype="float64"),
      constant=(0, 1)),
    C("as_strided", F(3, 3), (2, 2), (1, 2)), C("as_strided", F(9), (3, 3), (1, 2), 2),
    C("as_strided_copy", F(5), (2,), (3,)), C("as_strided_scatter", F(6), F(2), (2,), (3,), constant=(0,)),
    *(C(f"{name}_copy", F(3, 4), *args) for name, args in (
        ("permute", ((1, 0),)), ("transpose", (0, 1)), ("narrow", (1, 1, 2)), ("unfold", (1, 2, 1)), ("diagonal", ()))),
    C("lu_unpack", F(4, 3), K(1, 3, 3, dtype="int32")), C("geqrf", F(5, 3), constant=(0,)),
    C("geqrf", F(2, 3, 4), constant=(0,)), C("ormqr", F(4, 3), F(3), F(4, 2)),
    C("ormqr", F(4, 3), F(3), F(2, 4), False, True),
    C("triangular_solve", F(3, 2), W(3, 3)), C("triangular_solve", F(3, 2), W(3, 3), False, True),
    C("norm", W(4, 4), "nuc"),
    C("histogram", F(20), 4, constant=(0,)), C("histogram", F(20), 4, range=(-1.0, 1.0), density=True, constant=(0,)),
    C("histogram", F(20), K(-1.0, 0.0, 2.0), weight=P(20), constant=(0, 1)),
    C("nonzero_static", N(2, 3, 4), size=5),
    C("segment_reduce", F(6, 2), "mean", lengths=K(2, 0, 4, dtype="int64"), constant=()),
    *(C("segment_reduce", F(6, 2), kind, lengths=K(2, 0, 4, dtype="int64"), initial=0.5)
      for kind in ("mean", "sum", "max", "min", "prod")),
    C("segment_reduce", F(6, 2), "max", offsets=K(0, 2, 6, dtype="int64")),
    C("repeat_interleave", F(3, 2), K(2, 0, 3, dtype="int64"), 0), C("tensor_split", F(7), K(2, 5, dtype="int64")),
    C("native_layer_norm", F(3, 4), (4,), P(4), F(4), 1e-5),
    C("native_group_norm", F(2, 4, 3), P(4), F(4), 2, 4, 3, 2, 1e-5),
    C("constant_pad_nd", F(2, 3), (1, 2), 0.5),
    C("nn.functional.embedding_bag", N(5, 6), F(5, 3), K(0, 2, 2, dtype="int64"), mode="mean"),
    C("nn.functional.embedding_bag", N(5, 6), F(5, 3), K(0, 2, 6, dtype="int64"), mode="max", include_last_offset=True),
    C("nn.functional.embedding", N(5, 6), F(5, 3), None, 1.0, constant=(1,)),
    C("nn.functional.linear_cross_entropy", F(4, 3), F(5, 3), N(5, 4)),
    C("nn.functional.interpolate", F(1, 2, 9, 7), (4, 3), mode="bilinear", antialias=True),
    C("nn.functional.interpolate", F(1, 2, 9, 7), (4, 3), mode="bicubic", antialias=True),
    C("nn.functional.max_pool2d_with_indices", F(1, 2, 6, 6), 2), C("nn.functional.relu_", F(5), constant=(0,)),
]
