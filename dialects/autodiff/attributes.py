"""autodiff, attributes: custom derivative rules of functions, and differentiable types.

    custom_vjp = [@fwd, @bwd]    fwd(x, a) -> y, r        bwd(r, cotangents of y, b) -> cotangents of x
    custom_jvp = [@rule]         rule(x, tangents of x, a) -> y, tangents of y
    custom_args = [i, [..], [..]]   the first i arguments are x; then the indices of the arguments a, and of b
    recompute = true             a derivative saves only the arguments of the function, and recomputes it

x are the differentiated arguments, y the results; those of floating-point type have tangents and cotangents. The rules
are linear in the tangents or cotangents.
"""

from __future__ import annotations

from typing import TypeGuard

from mlc.dialects.func import Func
from mlc.ir.types import ComplexType, FloatType, TensorType, Type

CUSTOM_VJP, CUSTOM_JVP, CUSTOM_ARGS = "custom_vjp", "custom_jvp", "custom_args"
CUSTOM = (CUSTOM_VJP, CUSTOM_JVP, CUSTOM_ARGS)

RECOMPUTE = "recompute"
"""Attribute of a function that is recomputed in its derivative (gradient checkpointing) and never inlined."""


def has_cotangent(type: Type) -> TypeGuard[TensorType]:
    """Whether values of a type have derivatives: floating-point and complex tensors do."""
    return isinstance(type, TensorType) and isinstance(type.dtype, FloatType | ComplexType)


def is_custom(function: Func) -> bool:
    """Whether a function has a custom derivative rule."""
    return CUSTOM_ARGS in function.attrs
