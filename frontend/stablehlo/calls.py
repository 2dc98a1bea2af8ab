"""Calls of functions, composites and custom calls, and operations that order effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlc.frontend.stablehlo.interpreter import CUSTOM_CALLS, Step
from mlc.frontend.stablehlo.table import Row, row

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.syntax import Function


def _function(step: Step, name: Any) -> Function:
    found = step.interpreter.functions.get(str(name))
    if found is None:
        step.op.wrong(f"there is no function @{name}")
    return found


def call_of(step: Step, name: Any, xs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results of a function of the program; what is known of the operands is known of its arguments."""
    function = _function(step, name)
    if function.body is not None and function.body.types != step.op.types and not _fits(function, step):
        step.op.wrong(f"the operands are none of @{name}")
    return step.interpreter.call(function, xs, [step.scope.known.get(n) for n in step.op.operands])


def _fits(function: Function, step: Step) -> bool:
    """Whether the operands are of the types of the arguments but for sizes that are `?` on either side."""
    from mlc.frontend.stablehlo.syntax import ArrayType
    assert function.body is not None
    given, wanted = step.op.types, function.body.types
    return len(given) == len(wanted) and all(
        a == b or (isinstance(a, ArrayType) and isinstance(b, ArrayType) and a.dtype == b.dtype
                   and len(a.shape) == len(b.shape)
                   and all(m is None or n is None or m == n for m, n in zip(a.shape, b.shape)))
        for a, b in zip(given, wanted))


@row("func.call")
def call(step: Step, *xs: Any) -> tuple[Any, ...]:
    return call_of(step, step.op.need("callee"), xs)


@row("stablehlo.composite")
def composite(step: Step, *xs: Any) -> tuple[Any, ...]:
    """The function that decomposes it."""
    return call_of(step, step.op.need("decomposition"), xs)


@row("stablehlo.custom_call")
def custom_call(step: Step, *xs: Any) -> Any:
    name = str(step.op.need("call_target_name"))
    f = CUSTOM_CALLS.get(name)
    if f is None:
        step.op.refuse(f"mlc has no custom call {name}")
    return f(step, *xs)


def custom(*names: str) -> Callable[[Row], Row]:
    """Make a function what is called by these names."""
    def register(f: Row) -> Row:
        for name in names:
            CUSTOM_CALLS[name] = f
        return f
    return register


@custom("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement",
        "xla.sdy.FuncResultSharding")
def as_it_is(step: Step, *xs: Any) -> tuple[Any, ...]:
    """The operands: where arrays are means nothing on one device."""
    return xs


@custom("shape_assertion")
def shape_assertion(step: Step, *xs: Any) -> tuple[Any, ...]:
    """Sizes are checked where the function is called."""
    return ()


@row("stablehlo.optimization_barrier")
def barrier(step: Step, *xs: Any) -> tuple[Any, ...]:
    return xs


@row("stablehlo.after_all", "stablehlo.create_token")
def token(step: Step, *xs: Any) -> tuple[Any, ...]:
    return (None,)
