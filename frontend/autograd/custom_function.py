"""`Function`: functions whose backward the program defines, as in torch.autograd."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend import tree
from mlc.frontend.autograd.function_context import FunctionCtx
from mlc.frontend.autograd.function_methods import (
    Like,
    attributes,
    backward_of,
    differentiable,
    forward_of,
    gradients_for,
    has_setup,
    place_of,
    tangents_of,
    to_define,
)
from mlc.frontend.autograd.function_node import requires_grad
from mlc.frontend.autograd.function_trace import record_in_trace
from mlc.frontend.autograd.grad_mode import GradMode, mode
from mlc.frontend.autograd.graph import Node, kept
from mlc.frontend.autograd.tangents import NoTangents, duals, tangent_of
from mlc.frontend.location import user_loc
from mlc.frontend.recorded_operation import constant
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state
from mlc.ir.diag import Loc, UserError, UserTypeError


class Function:
    """Base of functions whose gradient the program defines.

    A subclass has static methods: `forward(ctx, *args)`, or `forward(*args)` with `setup_context(ctx, inputs, output)`,
    and `backward(ctx, *gradients)`, which takes a gradient for each result and returns one for each argument, None for
    what has none. It is called by `apply`. Operations within forward are not recorded; those of backward are if it is
    run with `create_graph`, and define the second derivative.

    In a function that is compiled or differentiated as a function, a call is recorded as one of `mlc.custom_vjp`: the
    gradient is that of backward there too, and `mlc.jvp` uses the transpose of backward, which has to be linear. Of
    dual tensors (`mlc.autograd.forward_ad`), `jvp(ctx, *tangents)` gives the tangents of the results.

    Raises:
        UserError: Backward or jvp returns what has another shape or count (MLC0726), none is defined (MLC0731), or
            backward is differentiated and `once_differentiable` (MLC0730).

    Example:
        >>> class Exp(mlc.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         y = mlc.exp(x)
        ...         ctx.save_for_backward(y)
        ...         return y
        ...     @staticmethod
        ...     def backward(ctx, gradient):
        ...         y, = ctx.saved_tensors
        ...         return gradient * y
        >>> x = mlc.tensor(0.0, requires_grad=True)
        >>> Exp.apply(x).backward()
        >>> x.grad
        tensor(1., dtype=mlc.float32)
    """

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        raise UserTypeError(f"an instance of {type(self).__name__} is called", code="MLC0731", loc=user_loc(),
                            hint=f"its methods are static: {type(self).__name__}.apply(...)")

    @staticmethod
    @to_define
    def forward(*args: Any, **keywords: Any) -> Any:
        """Compute the result. A subclass defines it, with or without a context as its first argument.

        Args:
            args: The context, unless the class has `setup_context`, and the arguments of `apply`.
            keywords: Those of `apply`.

        Returns:
            A tensor, or a tuple of tensors and other values.

        Raises:
            UserTypeError: The class does not define it (MLC0731).
        """
        raise UserTypeError("a Function has no forward", code="MLC0731", loc=user_loc(),
                            hint="define it as a static method")

    @staticmethod
    @to_define
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what backward needs. A subclass may define it, so that forward needs no context.

        Args:
            ctx: The context.
            inputs: The arguments of forward.
            output: The result of forward.

        Raises:
            UserTypeError: The class does not define it (MLC0731).
        """
        raise UserTypeError("a Function has no setup_context", code="MLC0731", loc=user_loc(),
                            hint="define it as a static method")

    @staticmethod
    @to_define
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Compute the gradients by the arguments from those by the results. A subclass defines it, or `vjp`.

        Args:
            ctx: The context.
            gradients: One for each result, None for a result that is no tensor.

        Returns:
            A gradient for each argument, None for what has none; alone or in a tuple.

        Raises:
            UserTypeError: The class does not define it (MLC0731).
        """
        raise UserTypeError("a Function has no backward", code="MLC0731", loc=user_loc(),
                            hint="define it as a static method")

    vjp = backward

    @staticmethod
    @to_define
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Compute the tangents of the results from those of the arguments. A subclass that is called with dual tensors
        defines it.

        Args:
            ctx: The context, whose `saved_tensors` are those of `save_for_forward`.
            tangents: One for each argument, None for an argument that has none.

        Returns:
            A tangent for each result, None for what has none; alone or in a tuple.

        Raises:
            UserTypeError: The class does not define it (MLC0731).
        """
        raise UserTypeError("a Function has no jvp", code="MLC0731", loc=user_loc(),
                            hint="define it as a static method")

    @classmethod
    def apply(cls, *args: Any, **keywords: Any) -> Any:
        """Call the function, so that its gradient is that of backward.

        Args:
            args: The arguments of forward. Only tensors that are arguments themselves have gradients, not those within
                containers.
            keywords: More of them; tensors among them have gradients only if the class has `setup_context`.

        Returns:
            The result of forward.

        Example:
            >>> class Reversed(mlc.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         return x.clone()
            ...     @staticmethod
            ...     def backward(ctx, gradient):
            ...         return -gradient
            >>> x = mlc.tensor(1.0, requires_grad=True)
            >>> Reversed.apply(x).backward()
            >>> x.grad
            tensor(-1., dtype=mlc.float32)
        """
        if has_setup(cls):
            bound = inspect.signature(cls.forward).bind(*args, **keywords)
            bound.apply_defaults()
            args, keywords = bound.args, bound.kwargs
        if state.trace is not None:
            return record_in_trace(cls, args, keywords)
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple(type(x) is Tensor and x.requires_grad for x in args)
        tangents = [tangent_of(x) if type(x) is Tensor else None for x in args]
        with NoTangents():
            out = forward_of(cls, ctx, args, keywords)
        results = list(out) if isinstance(out, tuple) else [out]
        moving = differentiable(ctx, results) if requires_grad(args) else []
        for i, x in enumerate(results):
            if type(x) is Tensor and (x.requires_grad or any(x is y for y in (*args, *results[:i]))):
                results[i] = kept(x)                       # a tensor of its own, whose history is this call
                results[i]._autograd = None
        if any(t is not None for t in tangents):
            _push(cls, ctx, tangents, out if isinstance(out, tuple) else (out,), results)
        if moving:
            CustomNode(cls, ctx, args, out, results, moving)
        return tuple(results) if isinstance(out, tuple) else results[0]


def _push(cls: type[Function], ctx: FunctionCtx, tangents: Sequence[Tensor | None], returned: Sequence[Any],
          results: Sequence[Any]) -> None:
    """Give the results of a call their tangents, and the tensors that forward returned, which it may have saved."""
    moved = tangents_of(cls, ctx, tangents, returned, differentiable(ctx, returned))
    for i, x in enumerate(results):
        if isinstance(x, Tensor) and duals.level is not None:
            for y in (x, returned[i]):
                if y is x or tangent_of(y) is None:        # not an argument that is returned
                    duals.level.put(y, moved.get(i))


def once_differentiable(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a backward that is not to be differentiated in turn, as one that computes with numpy.

    Args:
        f: The backward.

    Returns:
        The backward, of whose results a gradient is an error (MLC0730).

    Example:
        >>> class Sine(mlc.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return mlc.tensor(np.sin(x.numpy()))
        ...     @staticmethod
        ...     @mlc.autograd.function.once_differentiable
        ...     def backward(ctx, gradient):
        ...         x, = ctx.saved_tensors
        ...         return gradient * mlc.tensor(np.cos(x.numpy()))
        >>> x = mlc.tensor(0.0, requires_grad=True)
        >>> Sine.apply(x).backward()
        >>> x.grad
        tensor(1., dtype=mlc.float32)
    """
    @functools.wraps(f)
    def once(ctx: Any, *gradients: Any) -> Any:
        with GradMode(False):
            found = f(ctx, *gradients)
        if state.trace is not None:
            return tree.map(constant, found)
        seen = [x for x in tree.leaves((gradients, ctx.saved_tensors, attributes(ctx))) if type(x) is Tensor]
        if any(tangent_of(x) is not None for x in seen):
            raise _twice(place_of(f))
        if not mode.enabled or not any(x.requires_grad for x in seen):
            return found
        several = found if isinstance(found, tuple) else (found,)
        own = [x.detach() if type(x) is Tensor else x for x in several]
        moving = [x for x in own if type(x) is Tensor and x.dtype.ir.is_inexact]
        if moving:
            OnceNode(moving, place_of(f))
        return tuple(own) if isinstance(found, tuple) else own[0]

    return once


class CustomNode(Node):
    """A recorded call of a `Function`.

    inputs   per argument: a tensor of its shape, dtype and device, None for other values
    outputs  per result: the same
    numbers  per result: the number of the output of the node, None for a result without a gradient
    """

    __slots__ = ("__weakref__", "ctx", "function", "inputs", "numbers", "outputs")
    takes_zeros = True

    def __init__(self, function: type[Function], ctx: FunctionCtx, args: Sequence[Any], out: Any,
                 results: Sequence[Any], moving: Sequence[int]) -> None:
        super().__init__([x for x, needed in zip(args, ctx.needs_input_grad) if needed], [results[i] for i in moving])
        self.function, self.ctx = function, ctx
        self.inputs = [Like.of(x) for x in args]
        self.outputs = [Like.of(x) for x in results]
        self.numbers: list[int | None] = [None] * len(results)
        for number, i in enumerate(moving):
            self.numbers[i] = number
        returned = out if isinstance(out, tuple) else (out,)
        own = {id(returned[i]): number for number, i in reversed([*enumerate(moving)])}
        ctx._kept.pack(self, args, own)

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}", name=name, obj=self)
        return getattr(self.ctx, name)

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        materializes = self.ctx._kept.materializes
        given = []
        for number, like in zip(self.numbers, self.outputs):
            x = None if number is None else cotangents[number]
            given.append(like.zeros() if x is None and like is not None and materializes else x)
        found = backward_of(self.function)(self.ctx, *given)
        checked = gradients_for(self.function, found, self.inputs)
        return [x for x, needed in zip(checked, self.ctx.needs_input_grad) if needed]

    def check_saved(self) -> None:
        """Nothing: `saved_tensors` raises the error, if backward asks for them."""

    def release(self) -> None:
        super().release()
        if self.ctx._kept.tensors:
            self.ctx._kept.tensors = None


class OnceNode(Node):
    """Stands for a backward that is not to be differentiated."""

    __slots__ = ("place",)

    def __init__(self, results: Sequence[Tensor], place: Loc) -> None:
        super().__init__([], results)
        self.place = place

    def name(self) -> str:
        return "OnceDifferentiableBackward"

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        raise _twice(self.place)


def _twice(place: Loc) -> UserError:
    return UserError("a backward that is marked once_differentiable is differentiated", code="MLC0730", loc=user_loc(),
                     notes=(f"the backward is at {place}",),
                     hint="write it in operations of mlc and leave out the mark, or call detach() on its results")
