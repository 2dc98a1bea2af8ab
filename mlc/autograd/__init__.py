"""Define-by-run differentiation under the names of torch.autograd."""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.anomaly import detect_backward_anomaly as detect_anomaly
from mlc.anomaly import set_detect_anomaly
from mlc.autograd import function, functional, grad_mode, graph
from mlc.autograd.calls import backward, grad
from mlc.autograd.function import Function
from mlc.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from mlc.autograd.variable import Variable
from mlc.gradient_check import gradcheck, gradgradcheck

__all__ = ["Function", "Variable", "backward", "detect_anomaly", "enable_grad", "function", "functional", "grad",
           "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_grad_enabled",
           "is_multithreading_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled",
           "set_multithreading_enabled"]
