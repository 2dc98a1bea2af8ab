"""Layers under the name of the file that PyTorch has them in."""

from mlc.nn.linear import Embedding, EmbeddingBag

__all__ = ["Embedding", "EmbeddingBag"]
