"""Models in the format ONNX: `load` makes a compiled module of one, `mlc.onnx.backend` is the standard interface."""

from __future__ import annotations

from mlc.onnx.exporting import export
from mlc.onnx.module import load

__all__ = ["export", "load"]
