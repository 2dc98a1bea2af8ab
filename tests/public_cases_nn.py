"""Functions of neural networks that nn's layers use, against PyTorch."""

from __future__ import annotations

import numpy as np

from tests.public_case import NN, C, F, K, N, P

LABELS = K([3, 0, -1, 1], [-1, 0, 1, 2], [2, 1, 0, 3], dtype=np.int64)
CASES = [
    C(NN + "embedding", N(5, 3, 2), F(5, 4), 1), C(NN + "embedding", N(5, 3, 2), F(5, 4), padding_idx=-2),
    C(NN + "bilinear", F(2, 3, 4), F(2, 3, 5), F(6, 4, 5)), C(NN + "bilinear", F(3, 4), F(3, 5), F(6, 4, 5), F(6)),
    *(C(NN + "embedding_bag", N(5, 3, 2), F(5, 4), mode=m) for m in ("sum", "mean", "max")),
    *(C(NN + "embedding_bag", K([1, 2, 1], [1, 1, 1], dtype=np.int64), F(5, 4), mode=m, padding_idx=1)
      for m in ("sum", "mean", "max")),
    C(NN + "pixel_shuffle", F(2, 8, 3, 4), 2), C(NN + "pixel_shuffle", F(9, 2, 1), 3),
    C(NN + "pixel_unshuffle", F(2, 2, 4, 6), 2),
    *(C(NN + n, F(3, 4), training=False) for n in ("dropout", "alpha_dropout")), C(NN + "dropout", F(3, 4), 0.0),
    *(C(NN + "multi_margin_loss", F(3, 4), N(4, 3), p, margin, reduction=r)
      for p, margin, r in ((1, 1.0, "mean"), (2, 0.5, "none"), (1, 1.0, "sum"))),
    C(NN + "multi_margin_loss", F(3, 4), N(4, 3), weight=None), C(NN + "multi_margin_loss", F(4), N(4)),
    C(NN + "multi_margin_loss", F(3, 4), N(4, 3), 1, 1.0, P(4), constant=(4,)),
    *(C(NN + "multilabel_margin_loss", F(3, 4), LABELS, reduction=r) for r in ("mean", "none")),
    C(NN + "multilabel_margin_loss", F(4), K(1, -1, 3, 0, dtype=np.int64)),
    *(C(NN + "multilabel_soft_margin_loss", F(3, 4), N(2, 3, 4), reduction=r) for r in ("mean", "sum", "none")),
    C(NN + "multilabel_soft_margin_loss", F(3, 4), N(2, 3, 4), P(4), constant=(2,)),
    C(NN + "triplet_margin_loss", F(5, 3), F(5, 3), F(5, 3), swap=True),
]
