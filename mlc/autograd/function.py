"""Functions with a backward of their own, under the names of torch.autograd.function."""

from mlc.frontend.autograd.custom_function import Function, once_differentiable
from mlc.frontend.autograd.function_context import FunctionCtx

__all__ = ["Function", "FunctionCtx", "once_differentiable"]
