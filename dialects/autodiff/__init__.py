"""autodiff: derivatives and batching of functions as operations, which refer to the function by name.

The pass `grad` expands them into ordinary operations (passes/differentiate). The interpreter runs this expansion for
derivatives too.
"""

from mlc.dialects.autodiff.attributes import CUSTOM_ARGS, CUSTOM_JVP, CUSTOM_VJP, RECOMPUTE, has_cotangent, is_custom
from mlc.dialects.autodiff.backward import Backward
from mlc.dialects.autodiff.batch import Vmap, vmap
from mlc.dialects.autodiff.operations import Derivative, Grad, Jvp, Vjp, grad, jvp, vjp
from mlc.dialects.autodiff.predication import Predicated, predicated

__all__ = [
    "CUSTOM_ARGS", "CUSTOM_JVP", "CUSTOM_VJP", "RECOMPUTE", "Backward",
    "Derivative", "Grad", "Jvp", "Predicated", "Vjp",
    "Vmap", "grad", "has_cotangent", "is_custom", "jvp", "predicated", "vjp", "vmap",
]
