"""Autocast in functions whose backward the program defines."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mlc.frontend import tree
from mlc.frontend.arguments import coded
from mlc.frontend.autocast import autocast, get_autocast_dtype, is_autocast_enabled
from mlc.frontend.functions import elementwise as E
from mlc.frontend.methods import DTypeLike
from mlc.frontend.tensor import Tensor


@coded
def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: DTypeLike = None
               ) -> Callable[..., Any]:
    """Decorator of the forward of an `mlc.autograd.Function`, for its calls in the scope of `autocast`.

    Args:
        fwd: The forward; without it, a decorator is returned.
        device_type: "cpu" or "cuda": whose autocast state it is.
        cast_inputs: Dtype that floating-point arguments are cast to; operations of the forward then do not cast. None
            to leave them, and let operations cast.

    Returns:
        The decorated function.

    Example:
        >>> class Square(mlc.autograd.Function):
        ...     @staticmethod
        ...     @mlc.amp.custom_fwd(device_type="cpu", cast_inputs=mlc.float32)
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     @mlc.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, gradient):
        ...         x, = ctx.saved_tensors
        ...         return 2 * x * gradient
        >>> with mlc.autocast("cpu"):
        ...     Square.apply(mlc.ones(2, dtype=mlc.bfloat16)).dtype
        mlc.float32
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **keywords: Any) -> Any:
        ctx = args[0]
        ctx._autocast_dtype, enabled = get_autocast_dtype(device_type), is_autocast_enabled(device_type)
        ctx._forward_used_autocast = enabled and cast_inputs is None
        if not enabled or cast_inputs is None:
            return fwd(*args, **keywords)
        rest, keywords = tree.map(lambda x: _cast(x, cast_inputs), (args[1:], keywords))
        with autocast(device_type, enabled=False):
            return fwd(ctx, *rest, **keywords)

    return forward


@coded
def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorator of the backward of an `mlc.autograd.Function`: it runs in the autocast state of the forward.

    Args:
        bwd: The backward; without it, a decorator is returned.
        device_type: "cpu" or "cuda", as of `custom_fwd`.

    Returns:
        The decorated function.

    Example:
        >>> class Double(mlc.autograd.Function):
        ...     @staticmethod
        ...     @mlc.amp.custom_fwd(device_type="cpu")
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     @mlc.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, gradient):
        ...         return 2 * gradient
        >>> x = mlc.ones(2, requires_grad=True)
        >>> Double.apply(x).sum().backward()
        >>> x.grad
        tensor([2., 2.], dtype=mlc.float32)
    """
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **keywords: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, ctx._autocast_dtype, ctx._forward_used_autocast):
            return bwd(*args, **keywords)

    return backward


def _cast(x: Any, dtype: DTypeLike) -> Any:
    eligible = isinstance(x, Tensor) and x.dtype.is_floating_point and x.dtype.name != "float64"
    return E.cast_to(x, dtype) if eligible else x
