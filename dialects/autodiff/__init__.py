"""autodiff: derivatives of functions as operations, and the reverse walk that gives them their meaning.

`expand` replaces every derivative in a module by calls of two ordinary functions per differentiated function, its
forward and its backward half (reverse.py). Nothing is taken apart twice: halves are memoised by (function, primals,
results).
"""

from mlc.dialects.autodiff.activity import RECOMPUTE, Halves, Request, has_cotangent
from mlc.dialects.autodiff.batch import Vmap, vmap
from mlc.dialects.autodiff.custom import CUSTOM_ARGS, CUSTOM_JVP, CUSTOM_VJP
from mlc.dialects.autodiff.lanes import Masked, inline_masks, masked
from mlc.dialects.autodiff.operations import Grad, Jvp, Vjp, expand, grad, jvp, saved_bytes, vjp
from mlc.dialects.autodiff.reverse import Derivative, take_apart

__all__ = [
    "CUSTOM_ARGS", "CUSTOM_JVP", "CUSTOM_VJP", "RECOMPUTE", "Derivative", "Grad", "Halves", "Jvp", "Masked",
    "Request", "Vjp", "Vmap", "expand", "grad", "has_cotangent", "inline_masks", "jvp", "masked", "saved_bytes",
    "take_apart", "vjp", "vmap",
]
