"""Distances and similarities as layers."""

from __future__ import annotations

from mlc.frontend.functions import neural
from mlc.frontend.tensor import Operand, Tensor
from mlc.nn.module import Module


class CosineSimilarity(Module):
    """Cosine similarity: x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)) along a dimension.

    The cosine of the angle between two vectors, from -1 (opposite) to 1 (same direction), whatever their lengths.
    Vectors shorter than `eps` are treated as if of that length.

    Shape:
        Two inputs of shapes that broadcast -> their shape without the dimension.

    Args:
        dim: The dimension.
        eps: Least norm.

    Raises:
        UserError: `dim` is out of range (MLC0356), or shapes do not broadcast (MLC0111).

    Example:
        >>> nn.CosineSimilarity()(mlc.ones(3, 2), mlc.ones(3, 2)).shape
        (3,)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim, self.eps = dim, eps

    def forward(self, x1: Operand, x2: Operand) -> Tensor:
        return neural.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """Distance of vectors: norm(x1 - x2 + eps, p) along the last dimension.

    With p=2 it is the Euclidean distance sqrt(sum_i (x1[i] - x2[i] + eps)^2), with p=1 the sum of absolute differences.
    Vector i of x1 is compared with vector i of x2; `mlc.cdist` compares all pairs.

    Shape:
        Two inputs [..., d] of shapes that broadcast -> [...], or [..., 1] with keepdim.

    Args:
        p: Exponent of the norm.
        eps: Added to each difference, so that the norm has a derivative at 0.
        keepdim: Whether the dimension stays, with size 1.

    Raises:
        UserError: Shapes do not broadcast (MLC0111).

    Example:
        >>> nn.PairwiseDistance()(mlc.tensor([[3.0, 4.0]]), mlc.zeros(1, 2))
        tensor([5.0000014], dtype=mlc.float32)
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Operand, x2: Operand) -> Tensor:
        return neural.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
