"""autodiff: derivatives and batches of functions as operations, which name the function.

The pass `grad` expands them into ordinary operations (passes/differentiate), and that expansion is also what the
interpreter runs for a derivative.
"""

from mlc.dialects.autodiff.attributes import CUSTOM_ARGS, CUSTOM_JVP, CUSTOM_VJP, RECOMPUTE, has_cotangent, is_custom
from mlc.dialects.autodiff.batch import Vmap, vmap
from mlc.dialects.autodiff.operations import Derivative, Grad, Jvp, Vjp, grad, jvp, vjp
from mlc.dialects.autodiff.predication import Predicated, predicated

__all__ = [
    "CUSTOM_ARGS", "CUSTOM_JVP", "CUSTOM_VJP", "RECOMPUTE", "Derivative", "Grad", "Jvp", "Predicated", "Vjp", "Vmap",
    "grad", "has_cotangent", "is_custom", "jvp", "predicated", "vjp", "vmap",
]
