"""Backends: code generation from the llvm dialect, linking, loading and calling."""

from mlc.backends import cudnn as cudnn
from mlc.backends import mps as mps
