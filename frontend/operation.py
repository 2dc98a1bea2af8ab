"""Public operations: within a trace a call is recorded, outside it runs at once.

The function's body is written once, on tracers. A parameter annotated `Operand` (alone, optional, or in a sequence)
is an array; all others are constants of the recording, and part of the key of an eager kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from mlc.frontend.arguments import with_one_name
from mlc.frontend.autocast import cast_operands
from mlc.frontend.autograd.operation_node import run
from mlc.frontend.dispatch import DISPATCHERS
from mlc.frontend.in_place import write_inplace
from mlc.frontend.out_tensors import write_out
from mlc.frontend.recorded_operation import Operation
from mlc.frontend.tensor import OPERATIONS
from mlc.frontend.trace import state
from mlc.frontend.tree import Leaf
from mlc.frontend.views import dispatching, run_view

P = ParamSpec("P")
R = TypeVar("R")


def operation(*, literal: Iterable[str] = (), stored: Mapping[str, str] = MappingProxyType({}),
              name: str = "", view: bool | Callable[..., Any] = False, static: Iterable[str] = (),
              autocast: str | Callable[..., str] = "",
              integers: Iterable[str] = ()) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function on tracers public, under its own name in `OPERATIONS`; the arguments are those of `Operation`."""

    def decorate(body: Callable[P, R]) -> Callable[P, R]:
        op = Operation(body, literal, stored, name or body.__name__, view, static, autocast, integers)
        run_eagerly = run_view if view else run

        def general(*args: P.args, **keywords: P.kwargs) -> R:
            if state.in_operation:
                return body(*args, **keywords)
            if any(isinstance(x, np.generic) for x in (*args, *keywords.values())) and _has_tensor(args, keywords):
                args, keywords = _plain(args, keywords)  # type: ignore[assignment]
            if (composite := _composite(args, keywords)) is not None:
                return composite.run(op.name, body, args, with_one_name(op.parameters, keywords))  # type: ignore[no-any-return]
            if state.autocast is not None and op.autocast:
                policy = op.autocast if isinstance(op.autocast, str) else op.autocast(*args, **keywords)
                args, keywords = cast_operands(policy, args, keywords)  # type: ignore[assignment]
            if "out" in keywords and "out" not in op.parameters:
                return write_out(op.name, public, args, keywords)  # type: ignore[no-any-return]
            if op.inplace is not None and (keywords.get("inplace", False) is not False or (
                    len(args) > op.inplace and args[op.inplace] is not False)):
                return write_inplace(public, op.inplace, args, keywords)  # type: ignore[no-any-return]
            if op.stored:
                op.check_stored(args, keywords)
            if state.trace is not None:
                return op.record(args, keywords)  # type: ignore[no-any-return]
            return run_eagerly(op, args, keywords)  # type: ignore[no-any-return]

        op.call = dispatching(op, general) if view else general

        @functools.wraps(body)
        def public(*args: P.args, **keywords: P.kwargs) -> R:
            return op.call(*args, **keywords)  # type: ignore[no-any-return]

        DISPATCHERS[op.name] = op
        OPERATIONS[op.name] = public
        return public

    return decorate


def _has_tensor(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether there are tensors among the operands."""
    return any(isinstance(x, Leaf) for x in (*args, *keywords.values()))


def _plain(args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with Python's numbers in place of numpy's, which have no element type beside a tensor either."""
    def plain(x: Any) -> Any:
        return x.item() if isinstance(x, np.generic) and x.dtype.kind in "biufc" else x

    return tuple(map(plain, args)), {name: plain(x) for name, x in keywords.items()}


def _composite(args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The first operand that is made of several tensors, and has implementations of operations of its own."""
    for x in (*args, *keywords.values()):
        if isinstance(x, Leaf):
            if x.composite:
                return x
        elif type(x) is list or type(x) is tuple:
            for item in x:
                if isinstance(item, Leaf) and item.composite:
                    return item
    return None
