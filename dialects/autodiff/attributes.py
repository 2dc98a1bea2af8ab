"""autodiff, attributes: what a function says about its own derivative, and which types have one.

    custom_vjp = [@fwd, @bwd]    fwd(x, a) -> y, r        bwd(r, cotangents of y, b) -> cotangents of x
    custom_jvp = [@rule]         rule(x, tangents of x, a) -> y, tangents of y
    custom_args = [i, [..], [..]]   the first i arguments are x; those that are a, those that are b, by their numbers
    recompute = true             a derivative keeps the arguments of the function and runs it again

x are the arguments that are differentiated, y the results; floating-point ones have tangents and cotangents. The rules
are linear in the tangents or cotangents.
"""

from __future__ import annotations

from typing import TypeGuard

from mlc.dialects.func import Func
from mlc.ir.types import FloatType, TensorType, Type

CUSTOM_VJP, CUSTOM_JVP, CUSTOM_ARGS = "custom_vjp", "custom_jvp", "custom_args"
CUSTOM = (CUSTOM_VJP, CUSTOM_JVP, CUSTOM_ARGS)

RECOMPUTE = "recompute"
"""Attribute of functions of which a derivative saves only the arguments, and which no pass inlines."""


def has_cotangent(type: Type) -> TypeGuard[TensorType]:
    """Whether values of a type have derivatives: floating-point tensors do."""
    return isinstance(type, TensorType) and isinstance(type.dtype, FloatType)


def is_custom(function: Func) -> bool:
    """Whether a function has a custom derivative rule."""
    return CUSTOM_ARGS in function.attrs
