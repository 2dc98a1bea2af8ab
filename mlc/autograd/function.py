"""Functions with a backward of their own, under the names of torch.autograd.function.

A subclass of `Function` computes a result in `forward`, saves what it needs in its context, and returns the gradients
of its inputs from `backward`; `apply` calls it and records it as one node.

Example:
    >>> class Square(mlc.autograd.function.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return 2 * ctx.saved_tensors[0] * g
    >>> x = mlc.tensor(3.0, requires_grad=True)
    >>> mlc.autograd.grad(Square.apply(x), x)
    (tensor(6., dtype=mlc.float32),)
"""

from mlc.frontend.autograd.custom_function import Function, once_differentiable
from mlc.frontend.autograd.function_context import FunctionCtx

__all__ = ["Function", "FunctionCtx", "once_differentiable"]
