"""The methods that a `Function` defines: how they are called, and checks of what they return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend.autograd.differentiable import Differentiable
from mlc.frontend.autograd.function_context import FunctionCtx
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.autograd.tangents import NoTangents
from mlc.frontend.functions.create import zeros
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import captured
from mlc.ir.diag import Loc, UserError, UserTypeError

_undefined: set[Any] = set()


def to_define(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a method that a subclass may define."""
    _undefined.add(f)
    return f


def is_defined(f: Any) -> bool:
    """Whether a method is the subclass's own."""
    return f not in _undefined


class Like:
    """Shape, dtype and device of a tensor."""

    __slots__ = ("device", "dtype", "shape")

    def __init__(self, tensor: Tensor) -> None:
        self.shape, self.dtype, self.device = tensor.shape, tensor.dtype, tensor.device

    @staticmethod
    def of(x: Any) -> Like | None:
        return Like(x) if isinstance(x, Tensor) else None

    def zeros(self) -> Any:
        return zeros(self.shape, dtype=self.dtype, device=self.device)


def has_setup(cls: type[Any]) -> bool:
    return is_defined(cls.setup_context)


def forward_of(cls: type[Any], ctx: FunctionCtx, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """The result of forward, with the context as it is left to backward."""
    with GradMode(False):
        if not has_setup(cls):
            return captured(cls.forward)(ctx, *args, **keywords)
        out = captured(cls.forward)(*args, **keywords)
        captured(cls.setup_context)(ctx, tuple(args), out)
        return out


def backward_of(cls: type[Any]) -> Callable[..., Any]:
    """The backward of a class; UserTypeError unless exactly one of `backward` and `vjp` is defined."""
    has_backward, has_vjp = is_defined(cls.backward), is_defined(cls.vjp)
    if has_backward == has_vjp and not (has_backward and cls.backward is cls.vjp):
        what = "both backward and vjp, which mean the same" if has_vjp else "no backward"
        raise UserTypeError(f"{cls.__name__} has {what}", code="MLC0731", loc=place_of(cls.forward),
                            notes=(f"its gradient is needed at {user_loc()}",), hint="define one of them")
    return captured(cls.backward if has_backward else cls.vjp)


def tangents_of(cls: type[Any], ctx: FunctionCtx, given: Sequence[Tensor | None], results: Sequence[Any],
                moving: Sequence[int]) -> dict[int, Tensor]:
    """The tangents of the results `moving`, by jvp; UserError if the class has none, or they do not fit."""
    name = cls.__name__
    if not is_defined(cls.jvp):
        raise UserTypeError(f"{name} is called with dual tensors, and has no jvp", code="MLC0731",
                            loc=place_of(cls.forward), notes=(f"it is called at {user_loc()}",),
                            hint="define it as a static method: jvp(ctx, *tangents)")
    ctx._kept.in_forward = True
    try:
        with NoTangents():
            found = cls.jvp(ctx, *given)
    finally:
        ctx._kept.in_forward = False
    several = list(found) if isinstance(found, tuple) else [found]
    place, asked = place_of(cls.jvp), (f"it is called at {user_loc()}",)
    if len(several) != len(results):
        raise UserError(f"the jvp of {name} returned {len(several)} tangents for {len(results)} results of forward",
                        code="MLC0726", loc=place, notes=asked)
    out = {}
    for i, (x, y) in enumerate(zip(several, results)):
        if x is None:
            continue
        if i not in moving or not isinstance(x, Tensor):
            raise UserTypeError(f"the jvp of {name} returned a {type(x).__name__} as tangent {i}", code="MLC0726",
                                loc=place, notes=asked, hint="return a tensor for a result of floats, None for others")
        if x.shape != y.shape or x.dtype is not y.dtype:
            raise UserError(f"the jvp of {name} returned a tangent of shape {list(x.shape)} and {x.dtype.name} for "
                            f"result {i}, of {list(y.shape)} and {y.dtype.name}", code="MLC0726", loc=place,
                            notes=asked)
        out[i] = x
    return out


def differentiable(ctx: FunctionCtx, results: Sequence[Any]) -> list[int]:
    """The positions of the results that have a gradient."""
    return [i for i, x in enumerate(results) if isinstance(x, Tensor) and x.dtype.ir.is_inexact
            and not any(x is y for y in ctx._kept.constant)]


def attributes(ctx: FunctionCtx) -> dict[str, Any]:
    """The attributes that the program has assigned to a context."""
    return {name: x for name, x in vars(ctx).items() if name not in ("_kept", "needs_input_grad")}


def place_of(f: Any) -> Loc:
    """Where a method is defined."""
    code = getattr(inspect.unwrap(f), "__code__", None)
    return user_loc() if code is None else Loc(code.co_filename, code.co_firstlineno, 0)


def gradients_for(cls: type[Any], found: Any, inputs: Sequence[Like | None]) -> list[Any]:
    """The gradients that backward returned, one for each argument; UserError if they do not fit."""
    gradients = list(found) if isinstance(found, tuple) else [found]
    while len(gradients) > len(inputs) and gradients[-1] is None:
        gradients.pop()
    place, name = place_of(cls.backward if is_defined(cls.backward) else cls.vjp), cls.__name__
    asked = (f"backward was called at {user_loc()}",)
    if len(gradients) != len(inputs):
        raise UserError(f"the backward of {name} returned {len(gradients)} gradient{'s' * (len(gradients) != 1)} for "
                        f"the {len(inputs)} argument{'s' * (len(inputs) != 1)} of forward", code="MLC0726", loc=place,
                        notes=asked, hint="return a tuple with one for each, None for what has none")
    for i, (x, like) in enumerate(zip(gradients, inputs)):
        if x is None:
            continue
        if like is None or not isinstance(x, Differentiable):
            what = "argument that is no tensor" if isinstance(x, Differentiable) else "gradient"
            raise UserTypeError(f"the backward of {name} returned a {type(x).__name__} as gradient {i}"
                                + (f", for an {what}" if like is None else ""), code="MLC0726", loc=place, notes=asked,
                                hint="return None there" if like is None else "return a tensor, or None for zeros")
        gradients[i] = _fitting(x, like, i, name, place, asked)
    return gradients


def _fitting(x: Any, like: Like, i: int, name: str, place: Loc, asked: tuple[str, ...]) -> Any:
    """A gradient in the shape and dtype of its argument, summed over dimensions that are broadcast."""
    if x.dtype is not like.dtype and like.dtype.ir.is_inexact:
        x = x.to(like.dtype)
    if x.shape == like.shape:
        return x
    extra = len(x.shape) - len(like.shape)
    rest = x.shape[extra:] if extra >= 0 else ()
    if extra < 0 or any(m not in (1, n) for m, n in zip(like.shape, rest)):
        raise UserError(f"the backward of {name} returned a gradient of shape {list(x.shape)} for argument {i}, of "
                        f"shape {list(like.shape)}", code="MLC0726", loc=place, notes=asked,
                        hint="return one of the shape of the argument")
    dims = [*range(extra), *(extra + d for d, (m, n) in enumerate(zip(like.shape, rest)) if m != n)]
    return x.sum(dims).reshape(like.shape)
