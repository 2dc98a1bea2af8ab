"""Modules of the tensor dialect as graphs of ONNX."""

from mlc.backends.onnx.emit import Result, emit

__all__ = ["Result", "emit"]
