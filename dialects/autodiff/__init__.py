"""autodiff: derivatives of functions as operations, and the reverse walk that gives them their meaning.

`expand` replaces every derivative in a module by calls of two ordinary functions per differentiated function, its
forward and its backward half (reverse.py). Nothing is taken apart twice: halves are memoised by (function, primals,
results).
"""

from mlc.dialects.autodiff.operations import Grad, Vjp, expand, grad, vjp
from mlc.dialects.autodiff.reverse import Derivative, Halves, Request, has_cotangent, take_apart

__all__ = ["Derivative", "Grad", "Halves", "Request", "Vjp", "expand", "grad", "has_cotangent", "take_apart", "vjp"]
