"""FX graphs of PyTorch's ATen operators as functions on mlc's tensors; README.md describes the folder."""

from mlc.frontend.fx.interpreter import Interpreter, Refusal
from mlc.frontend.fx.support import supports, unsupported
from mlc.frontend.fx.table import find

__all__ = ["Interpreter", "Refusal", "find", "supports", "unsupported"]
