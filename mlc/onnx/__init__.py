"""Models in the format ONNX: `load` makes a compiled module of one, `mlc.onnx.backend` is the standard interface.

`load` makes a module of a file, whose weights are its parameters, and which compiles, trains and is exported like any
other; `export` writes a function or a module for other runtimes. They need the package onnx (`pip install mlc[onnx]`).

Example:
    >>> import io
    >>> file = io.BytesIO()
    >>> _ = mlc.onnx.export(nn.Linear(3, 2), (mlc.ones(1, 3),), file)
    >>> mlc.onnx.load(file.getvalue())(mlc.ones(1, 3)).shape
    (1, 2)
"""

from __future__ import annotations

from mlc.onnx.exporting import export
from mlc.onnx.module import load

__all__ = ["export", "load"]
