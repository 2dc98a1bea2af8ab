"""Modules of the tensor dialect as StableHLO, for XLA."""

from mlc.backends.stablehlo.emit import emit

__all__ = ["emit"]
