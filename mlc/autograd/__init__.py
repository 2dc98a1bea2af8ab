"""Define-by-run differentiation under the names of torch.autograd.

Operations on tensors with `requires_grad` record a graph as they run; `backward` and `grad` go through it from a result
to its leaves, and add up the products of each cotangent with the Jacobian of its operation. `mlc.grad` differentiates
a function instead, and compiles the derivative.

Example:
    >>> x = mlc.tensor([1.0, 2.0], requires_grad=True)
    >>> mlc.autograd.grad((x ** 3).sum(), x)
    (tensor([ 3., 12.], dtype=mlc.float32),)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mlc.autograd.calls import backward, grad
from mlc.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

if TYPE_CHECKING:
    from mlc.anomaly import detect_backward_anomaly as detect_anomaly
    from mlc.anomaly import set_detect_anomaly
    from mlc.autograd import forward_ad, function, functional, grad_mode, graph
    from mlc.autograd.function import Function
    from mlc.autograd.variable import Variable
    from mlc.gradient_check import gradcheck, gradgradcheck

__all__ = ["Function", "Variable", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function",
           "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode",
           "is_grad_enabled", "is_multithreading_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled",
           "set_multithreading_enabled"]

_MODULES = frozenset({"forward_ad", "function", "functional", "grad_mode", "graph"})
_ELSEWHERE = {
    "Function": ("mlc.autograd.function", "Function"), "Variable": ("mlc.autograd.variable", "Variable"),
    "detect_anomaly": ("mlc.anomaly", "detect_backward_anomaly"),
    "set_detect_anomaly": ("mlc.anomaly", "set_detect_anomaly"),
    "gradcheck": ("mlc.gradient_check", "gradcheck"), "gradgradcheck": ("mlc.gradient_check", "gradgradcheck"),
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"mlc.autograd.{name}")
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'mlc.autograd' has no attribute {name!r}", name=name)
    importlib.import_module("mlc.api")                     # it gives the frontend its compiler
    module, attribute = _ELSEWHERE[name]
    value = globals()[name] = getattr(importlib.import_module(module), attribute)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
