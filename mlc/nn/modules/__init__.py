"""The modules of `mlc.nn` under the names of files that PyTorch has."""

from mlc.nn.modules import module

__all__ = ["module"]
