"""Calls of a `Function` in functions that are recorded: the program's backward becomes the rule of a `custom_vjp`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend import tree
from mlc.frontend.autograd.function_context import FunctionCtx
from mlc.frontend.autograd.function_methods import (
    Like,
    attributes,
    backward_of,
    differentiable,
    forward_of,
    gradients_for,
)
from mlc.frontend.functions.create import zeros_like
from mlc.frontend.location import user_loc
from mlc.frontend.operands import tracer
from mlc.frontend.recorded_operation import constant
from mlc.frontend.rules import custom_vjp
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import current
from mlc.ir.core import located

MOST = 2
"""The highest derivative of a result that forward saves; the next one is an error when the code runs."""


def record_in_trace(cls: type[Any], args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Record a call of a `Function`."""
    call = _Call(cls, args, keywords)
    out = call.rule()(*(args[i] for i in call.places))
    results = list(out) if isinstance(out, tuple) else [out]
    for i, x in enumerate(results):
        if isinstance(x, Tensor) and i not in call.moving:
            results[i] = constant(x)
    return tuple(results) if isinstance(out, tuple) else results[0]


class _Call:
    """One call. Derivatives are with respect to the tensors among the arguments.

    places        the positions of these
    moving        the positions of the results that have a gradient
    materializes  whether backward is given zeros in place of None
    held          the structure of what the context holds
    outputs       of its leaves, those that are results, with their positions
    """

    def __init__(self, cls: type[Any], args: Sequence[Any], keywords: dict[str, Any]) -> None:
        self.cls, self.args, self.keywords = cls, args, keywords
        self.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        self.moving: list[int] = []
        self.materializes = True
        self.held: tree.TreeDef
        self.outputs: dict[int, int] = {}

    def rule(self) -> custom_vjp:
        """The function of the tensors."""
        def plain(*tensors: Any) -> Any:
            return self.run(tensors)[1]

        plain.__name__ = self.cls.__name__
        def pull(held: Any, cotangent: Any) -> Any:
            tensors, leaves, results = held
            return self.pull(tensors, leaves, results, cotangent if isinstance(cotangent, tuple) else (cotangent,), 0)

        function = custom_vjp(plain)
        function.defvjp(self.forward, pull)
        return function

    def context(self, tensors: Sequence[Any]) -> tuple[FunctionCtx, list[Any]]:
        ctx, given = FunctionCtx(), list(self.args)
        for i, x in zip(self.places, tensors):
            given[i] = x
        ctx.needs_input_grad = tuple(isinstance(x, Tensor) and x.dtype.ir.is_inexact for x in given)
        return ctx, given

    def run(self, tensors: Sequence[Any]) -> tuple[FunctionCtx, Any]:
        ctx, given = self.context(tensors)
        out = forward_of(self.cls, ctx, given, self.keywords)
        self.moving = differentiable(ctx, out if isinstance(out, tuple) else (out,))
        return ctx, out

    def forward(self, *tensors: Any) -> Any:
        """(results, what the context holds): a tensor is that argument, or a constant, as operations are not
        differentiated within forward."""
        ctx, out = self.run(tensors)
        results = out if isinstance(out, tuple) else (out,)
        leaves, self.held = tree.flatten((ctx._kept.tensors, attributes(ctx)))
        self.materializes = ctx._kept.materializes
        given = {id(x) for x in tensors}
        numbers = {id(x): i for i, x in enumerate(results) if i in self.moving and id(x) not in given}
        self.outputs = {n: numbers[id(x)] for n, x in enumerate(leaves) if id(x) in numbers}
        return out, (tensors, leaves, [x if isinstance(x, Tensor) else None for x in results])

    def pull(self, tensors: Sequence[Any], leaves: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any],
             depth: int) -> tuple[Any, ...]:
        """The cotangents of the tensors, by the program's backward."""
        ctx, given = self.context(tensors)
        own = list(leaves)
        for n, i in self.outputs.items():
            own[n] = self.result(i, tensors, leaves, results, depth)
        ctx._kept.tensors, held = self.held.unflatten(own)
        vars(ctx).update(held)
        flow = [(x if i in self.moving and x is not None else zeros_like(y) if self.materializes else None)
                if isinstance(y, Tensor) else None for i, (x, y) in enumerate(zip(cotangents, results))]
        found = gradients_for(self.cls, backward_of(self.cls)(ctx, *flow), [Like.of(x) for x in given])
        return tuple(found[i] for i in self.places)

    def result(self, i: int, tensors: Sequence[Any], leaves: Sequence[Any], results: Sequence[Any],
               depth: int) -> Any:
        """A result that the context holds, whose derivative is that of backward."""
        if depth == MOST:
            return _fails_to_differentiate(results[i],
                                           f"a derivative of {self.cls.__name__} of an order above {MOST + 1}")
        fixed = [*leaves, *results]
        moving = [n for n, x in enumerate(fixed) if isinstance(x, Tensor)]
        place = moving.index(len(leaves) + i)

        def pull(held: Any, cotangent: Any) -> Any:
            tensors, values = held
            for n, x in zip(moving, values):
                fixed[n] = x
            flow = [cotangent if k == i else None for k in range(len(results))]
            found = self.pull(tensors, fixed[: len(leaves)], fixed[len(leaves):], flow, depth + 1)
            return found, [None] * len(moving)

        function = custom_vjp(lambda tensors, values: values[place])
        function.defvjp(lambda tensors, values: (values[place], (tensors, values)), pull)
        return function(tuple(tensors), [fixed[n] for n in moving])


def _fails_to_differentiate(x: Any, what: str) -> Any:
    """The tensor itself, of which a derivative fails when it is computed."""
    def fail(held: None, cotangent: Any) -> Any:
        with located(user_loc()):
            T.FailIf(T.Item(current().local(tracer(True))).result, f"{what} is not known")
        return cotangent

    function = custom_vjp(lambda x: x)
    function.defvjp(lambda x: (x, None), fail)
    return function(x)
