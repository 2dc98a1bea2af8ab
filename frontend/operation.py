"""Public operations: within a trace a call is recorded, outside it runs at once.

The function's body is written once, on tracers. A parameter annotated `Operand` (alone, optional, or in a sequence)
is an array; all others are constants of the recording, and part of the key of an eager kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import ParamSpec, TypeVar

from mlc.frontend.autograd.operation_node import run
from mlc.frontend.recorded_operation import Operation
from mlc.frontend.tensor import OPERATIONS
from mlc.frontend.trace import state

P = ParamSpec("P")
R = TypeVar("R")


def operation(*, literal: Iterable[str] = (), stored: Mapping[str, str] = MappingProxyType({}),
              name: str = "", static: Iterable[str] = ()) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function on tracers public, under its own name in `OPERATIONS`."""

    def decorate(body: Callable[P, R]) -> Callable[P, R]:
        op = Operation(body, literal, stored, name or body.__name__, static)

        @functools.wraps(body)
        def public(*args: P.args, **keywords: P.kwargs) -> R:
            if state.in_operation:
                return body(*args, **keywords)
            if op.stored:
                op.check_stored(args, keywords)
            if state.trace is not None:
                return op.record(args, keywords)  # type: ignore[no-any-return]
            return run(op, args, keywords)  # type: ignore[no-any-return]

        OPERATIONS[op.name] = public
        return public

    return decorate
