"""Layers under the name of the file that PyTorch has them in."""

from mlc.nn.distances import CosineSimilarity, PairwiseDistance

__all__ = ["CosineSimilarity", "PairwiseDistance"]
